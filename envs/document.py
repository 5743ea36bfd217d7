"""The generated parts of two pages: what is seen from its layout, the facts, constants, dice.

``python -m retinue.envs.document docs/environment.md`` brings a page up to date, and so it does
``docs/frontends.md``.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from retinue.envs.actions import ENCODINGS, Encoding
from retinue.envs.facts import FACTS
from retinue.envs.game.board import SEAT_NAMES
from retinue.envs.game.dice import GAMMA, die, mix
from retinue.envs.game.ruleset import MODES, load_ruleset
from retinue.envs.observation import (
    OBSERVATION_VERSION,
    PLACE_FEATURES,
    PROGRESSION_SCALE,
    SCORE_SCALE,
    TOTAL_SCALE,
    Section,
    longest_way,
)

FRONTENDS: Final = "frontends.md"
"""The page that is not the environment's."""
_EXAMPLE_SEED: Final = 7
_EXAMPLE_DICE: Final = 4

END: Final = "<!-- end of generated part -->"
HEAD: Final = ("| index | part | shape | range | meaning |", "|---|---|---|---|---|")


def section_row(each: Section) -> str:
    """Return one part of an observation as a row of a Markdown table."""
    last = each.start + each.size - 1
    index = str(last) if each.size == 1 else f"{each.start} ... {last}"
    shape = " x ".join(map(str, each.shape))
    bounds = f"{each.low:g} ... {each.high:g}"
    return f"| {index} | `{each.name}` | {shape} | {bounds} | {each.meaning} |"


def observation_index() -> str:
    """Return the index of the observation."""
    layouts = {
        f"{mode.capitalize()}, `{name}`": Encoding(name, load_ruleset(mode)).layout()
        for mode in MODES
        for name in ENCODINGS
    }
    shared = next(iter(layouts.values())).sections[:-1]
    own = [
        f"| {title} | {layout.size} {section_row(layout.sections[-1])}"
        for title, layout in layouts.items()
    ]
    features = [f"{index}. {text}" for index, text in enumerate(PLACE_FEATURES)]
    return "\n".join(
        [
            *HEAD,
            *map(section_row, shared),
            "",
            "The last part depends on mode and encoding:",
            "",
            f"| mode, encoding | numbers in all {HEAD[0]}",
            f"|---|---{HEAD[1]}",
            *own,
            "",
            "The numbers of each piece in `board`:",
            "",
            *features,
        ]
    )


def fact_index() -> str:
    """Return the facts of a candidate as a Markdown table, in the order of its row."""
    rows = [
        f"| {index} | `{fact.name}` | {fact.scale:g} | {fact.low:g} ... 1 | {fact.meaning} |"
        for index, fact in enumerate(FACTS)
    ]
    return "\n".join(["| index | fact | scale | range | meaning |", HEAD[1], *rows])


def with_part(text: str, title: str, part: str) -> str:
    """Return a document with one of its generated parts replaced.

    Raises:
        ValueError: the marks of that part are missing.
    """
    begin = f"<!-- generated: {title} -->"
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(END)
    if not (found and closed):
        raise ValueError(f"the document has no {begin} ... {END}")
    return f"{before}{begin}\n\n{part}\n\n{END}{after}"


def frontend_index() -> str:
    """Return the index of the observation in the encodings that need no generator."""
    layouts = {
        (mode, name): Encoding(name, load_ruleset(mode)).layout()
        for name in ("turn", "steps")
        for mode in MODES
    }
    shared = next(iter(layouts.values())).sections[:-1]
    own = [
        f"| `{name}`, {mode.capitalize()} | {layout.size} {section_row(layout.sections[-1])}"
        for (mode, name), layout in layouts.items()
    ]
    last = [f"| encoding, mode | numbers in all {HEAD[0]}", f"|---|---{HEAD[1]}", *own]
    return "\n".join([*HEAD, *map(section_row, shared), "", *last])


def constants() -> str:
    """Return the numbers that the observation is made with, as a Markdown table."""
    rulesets = [load_ruleset(mode) for mode in MODES]
    rows: dict[str, Sequence[object]] = {
        "observation version": [OBSERVATION_VERSION] * 2,
        "position code of Home, `H`": [ruleset.home for ruleset in rulesets],
        "store capacity": [ruleset.store_capacity for ruleset in rulesets],
        "most credits": [ruleset.max_credits for ruleset in rulesets],
        "clock at the start, seconds": [ruleset.clock_seconds for ruleset in rulesets],
        "longest way to Home, `L`": [longest_way(ruleset) for ruleset in rulesets],
        "scale of a piece's progression": [f"{PROGRESSION_SCALE:g}"] * 2,
        "scale of scores": [f"{SCORE_SCALE:g}"] * 2,
        "scale of a Guard's assigned total": [f"{TOTAL_SCALE:g}"] * 2,
        "length of the mask of `turn`": [Encoding("turn", each).mask_size for each in rulesets],
        "length of the mask of `steps`": [Encoding("steps", each).mask_size for each in rulesets],
        "rules digest": [f"`{ruleset.digest}`" for ruleset in rulesets],
    }
    head = "".join(f" {mode.capitalize()} |" for mode in MODES)
    lines = [f"| {name} | {' | '.join(map(str, row))} |" for name, row in rows.items()]
    return "\n".join([f"| |{head}", "|---|---|---|", *lines])


def dice_example() -> str:
    """Return the first dice of a seed, step by step, as a Markdown table."""
    key = mix(np.uint64(_EXAMPLE_SEED) + GAMMA)
    lines = [f"For seed {_EXAMPLE_SEED} `key` is `0x{int(key):016x}`. The first dice of the seats:"]
    lines += ["", "| seat | turn | counters | dice |", "|---|---|---|---|"]
    for seat, name in enumerate(SEAT_NAMES):
        first = 1 + 64 * seat
        dice = [int(die(_EXAMPLE_SEED, seat, 0, index)) for index in range(_EXAMPLE_DICE)]
        counters = f"{first} ... {first + _EXAMPLE_DICE - 1}"
        lines.append(f"| {seat}, {name} | 0 | {counters} | {', '.join(map(str, dice))} |")
    return "\n".join(lines)


_PARTS: Final[Mapping[str, Callable[[], str]]] = {
    "observation index": observation_index,
    "facts": fact_index,
}
_FRONTEND_PARTS: Final[Mapping[str, Callable[[], str]]] = {
    "dice": dice_example,
    "constants": constants,
    "sections": frontend_index,
}


def renew(text: str, page: str = "environment.md") -> str:
    """Return a document with its generated parts brought up to date.

    Args:
        text: of it.
        page: the name of its file; any but ``FRONTENDS`` is taken for the environment's.

    Raises:
        ValueError: the marks of a generated part are missing.
    """
    for title, part in (_FRONTEND_PARTS if page == FRONTENDS else _PARTS).items():
        text = with_part(text, title, part())
    return text


if __name__ == "__main__":
    document = Path(sys.argv[1])
    renewed = renew(document.read_text(encoding="utf-8"), document.name)
    document.write_text(renewed, encoding="utf-8")

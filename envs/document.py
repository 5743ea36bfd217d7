"""The generated parts of ``docs/environment.md``: the observation from its layout, and the facts.

``python -m retinue.envs.document docs/environment.md`` brings a file up to date.
"""

import sys
from pathlib import Path
from typing import Final

from retinue.envs.actions import ENCODINGS, Encoding
from retinue.envs.facts import FACTS
from retinue.envs.game.ruleset import MODES, load_ruleset
from retinue.envs.observation import PLACE_FEATURES, Section

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


def renew(text: str) -> str:
    """Return a document with its generated parts brought up to date.

    Raises:
        ValueError: the marks of a generated part are missing.
    """
    text = with_part(text, "observation index", observation_index())
    return with_part(text, "facts", fact_index())


if __name__ == "__main__":
    document = Path(sys.argv[1])
    document.write_text(renew(document.read_text(encoding="utf-8")), encoding="utf-8")

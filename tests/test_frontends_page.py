"""The page on frontends is true: its numbers, its tables, and its arithmetic without 64 bits.

What it says over HTTP is tried in ``test_frontends_service.py``.
"""

import json
import random
import re
from pathlib import Path

import numpy as np
import pytest

from javascript import EXAMPLE, VECTORS
from retinue.agents import artifact, policy
from retinue.envs import document
from retinue.envs.actions import Encoding
from retinue.envs.game.dice import GAMMA, mix
from retinue.envs.game.record import TurnModel
from retinue.envs.game.ruleset import MODES, load_ruleset
from retinue.envs.observation import OBSERVATION_VERSION

PAGE = Path(__file__).resolve().parents[1] / "docs" / document.FRONTENDS
TEXT = PAGE.read_text(encoding="utf-8")
LONGEST = 30
HALF, DIGIT = 1 << 32, 1 << 16


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}


def first_column(head: str) -> list[str]:
    """Return the names in the first column of the table that begins with ``head``."""
    _, _, table = TEXT.partition(f"{head}\n")
    rows = table.split("\n\n")[0].splitlines()[1:]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])]


def test_its_generated_parts_are_up_to_date() -> None:
    assert document.renew(TEXT, PAGE.name) == TEXT


def test_its_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]*)(?:#([^)]+))?\)", TEXT)
    assert len(links) > 20
    for path, anchor in links:
        page = PAGE.parent / path if path else PAGE
        assert page.exists(), path
        if anchor:
            assert anchor in anchors(page), (path, anchor)


@pytest.mark.parametrize("language", ["javascript", "python", "bash"])
def test_its_programs_are_short(language: str) -> None:
    (program,) = re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    assert len([line for line in program.splitlines() if line.strip()]) <= LONGEST


def test_it_explains_every_section() -> None:
    names = {
        each.name
        for mode in MODES
        for encoding in ("turn", "steps")
        for each in Encoding(encoding, load_ruleset(mode)).layout().sections
    }
    assert set(first_column("| section | number |")) == names


def test_it_explains_every_file() -> None:
    patterns = first_column("| file | what is in it |")
    files = {path.name for path in VECTORS.iterdir()}
    assert all(any(Path(name).match(each) for each in patterns) for name in files)
    assert all(any(Path(name).match(each) for name in files) for each in patterns)
    modules = {path.name for path in EXAMPLE.iterdir() if path.suffix in {".js", ".mjs"}}
    assert set(first_column("| file | what it does |")) == modules


def test_its_numbers_are_those_of_the_code() -> None:
    assert f"max({policy.EVEN:g}, {policy.ROUNDED:f} * the largest" in TEXT
    assert f"| `observation_version` | {OBSERVATION_VERSION};" in TEXT
    assert f"- observation version {OBSERVATION_VERSION}," in TEXT
    assert f"| input | `{artifact.INPUT}` |" in TEXT
    assert f"| output | `{artifact.LOGITS}` |" in TEXT
    keys = set(first_column("| key | must be |"))
    assert keys <= set(artifact.ArtifactManifest.model_fields)


def test_its_turn_is_one() -> None:
    (text,) = re.findall(r"^```json\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    played = json.loads((VECTORS / "match-journey.jsonl").read_text().splitlines()[1])
    TurnModel.model_validate_json(json.dumps(played | json.loads(text))).to_turn()


# --- 64 bits in two halves, by the page's words

Halves = tuple[int, int]


def add(one: Halves, other: Halves) -> Halves:
    low = one[1] + other[1]
    carry, low = (1, low - HALF) if low >= HALF else (0, low)
    return (one[0] + other[0] + carry) % HALF, low


def shifted(word: Halves, n: int) -> Halves:
    high, low = word
    return high ^ (high >> n), low ^ (((low >> n) | (high << (32 - n))) % HALF)


def product(one: Halves, other: Halves) -> Halves:
    a, b = (
        [word[1] % DIGIT, word[1] // DIGIT, word[0] % DIGIT, word[0] // DIGIT]
        for word in (one, other)
    )
    digits, carry = [], 0
    for k in range(4):
        total = sum(a[i] * b[k - i] for i in range(k + 1)) + carry
        assert total < 1 << 35
        carry, digit = divmod(total, DIGIT)
        digits.append(digit)
    return digits[3] * DIGIT + digits[2], digits[1] * DIGIT + digits[0]


def halves(word: int) -> Halves:
    return word // HALF, word % HALF


def mixed(word: Halves) -> Halves:
    word = product(shifted(word, 30), halves(0xBF58476D1CE4E5B9))
    word = product(shifted(word, 27), halves(0x94D049BB133111EB))
    return shifted(word, 31)


def test_64_bits_can_be_had_in_halves() -> None:
    chance = random.Random(1)
    words = [0, 1, HALF - 1, HALF, (1 << 64) - 1, *(chance.getrandbits(64) for _ in range(500))]
    for word in words:
        high, low = mixed(halves(word))
        assert high * HALF + low == int(mix(np.uint64(word)))


def test_dice_can_be_had_in_halves() -> None:
    gamma = halves(int(GAMMA))
    for row in json.loads((VECTORS / "dice.json").read_text())["dice"]:
        key = mixed(add(halves(row["seed"]), gamma))
        first = 1 + 64 * (row["seat"] + 4 * row["turn"])
        words = [
            mixed(add(key, product(gamma, halves(first + index))))
            for index in range(len(row["dice"]))
        ]
        assert [1 + high * 6 // HALF for high, _ in words] == row["dice"]

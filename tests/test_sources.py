"""Where the rules' numbers come from: one table, borne out by documentation and rule files."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from positions import BRAWL, JOURNEY, changed
from retinue.envs.game.ruleset import MODES, load_ruleset
from retinue.envs.game.sources import ORIGINS, entries

ROOT = Path(__file__).resolve().parents[1]


def codes(text: str) -> set[str]:
    """Return the documents and assumptions that a text names."""
    return set(re.findall(r"\b[SA]\d+\b", text))


def documented() -> Iterator[tuple[str, str, str]]:
    """Yield key, rule and source of each row of the documentation's table."""
    text = (ROOT / "docs/rules.md").read_text(encoding="utf-8")
    for line in text.split("## Configuration keys")[1].splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 5 and cells[0].startswith("`"):
            yield cells[0].strip("`"), cells[3], cells[4]


def expanded(pattern: str) -> list[str]:
    """Return the keys that ``a.{b, c}.{d, e}`` stands for."""
    keys = [""]
    for part in re.findall(r"\{[^}]*\}|[^{}]+", pattern):
        choices = part[1:-1].split(", ") if part.startswith("{") else [part]
        keys = [key + choice for key in keys for choice in choices]
    return keys


def commented(mode: str) -> Iterator[tuple[str, set[str]]]:
    """Yield each key of a rule file that has a value, and what its comment or its parents' name."""
    text = (ROOT / f"configs/rules/{mode}.yaml").read_text(encoding="utf-8")
    above: list[tuple[str, set[str]]] = []
    for line in text.splitlines():
        found = re.fullmatch(r"( *)(\w+):([^#]*)(#.*)?", line)
        if not found:
            continue
        indent, name, value, comment = found.groups()
        above = above[: len(indent) // 2]
        above.append((name, codes(comment or "")))
        if value.strip() or name == "dice":
            yield ".".join(key for key, _ in above), next((c for _, c in above[::-1] if c), set())


@pytest.mark.parametrize("mode", MODES)
def test_every_number_has_its_source(mode: str) -> None:
    found = entries(load_ruleset(mode))
    assert [entry.key for entry in found] == list(ORIGINS)
    for entry in found:
        assert codes(entry.source), entry


@pytest.mark.parametrize("mode", MODES)
def test_the_rule_files_comments_agree(mode: str) -> None:
    sources = {entry.key: codes(entry.source) for entry in entries(load_ruleset(mode))}
    comments = dict(commented(mode))
    assert comments.pop("mode") == set()
    assert comments == {key: found for key, found in sources.items() if key != "mode"}


def test_the_documentation_agrees() -> None:
    rows = list(documented())
    assert [key for pattern, _, _ in rows for key in expanded(pattern)] == list(ORIGINS)
    for pattern, rule, source in rows:
        origins = [ORIGINS[key] for key in expanded(pattern)]
        assert {origin.rule or "–" for origin in origins} == {rule}, pattern
        named = {code for each in origins for code in codes(f"{each.journey} {each.brawl}")}
        assert named == codes(source), pattern


def test_values_are_written_as_in_yaml() -> None:
    values = {entry.key: entry.value for entry in entries(JOURNEY)}
    assert values["mode"] == "journey"
    assert values["castles_protect"] == "true"
    assert values["combat.regular.past"] == "[70, 105]"
    assert values["dice"] == "[[3, 4], [6, 3], [8, 2], [11, 1], [12, 0]]"


def test_a_changed_number_says_so() -> None:
    sources = {entry.key: entry.source for entry in entries(changed(BRAWL, blockade_penalty=7))}
    assert sources["blockade_penalty"] == "this file; brawl has 5"
    assert sources["clock_seconds"] == "A18"

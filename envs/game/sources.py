"""Where every number of the rules comes from (``docs/rules.md``, "Configuration keys")."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from retinue.envs.game.ruleset import Ruleset, load_ruleset


@dataclass(frozen=True)
class Origin:
    """The origin of one key of a rule file."""

    rule: str
    """Where ``docs/rules.md`` uses it; empty for the mode itself."""
    journey: str
    """Source of the shipped Journey number: a document S0 to S4, or an assumption A1 to A24."""
    brawl: str
    """The same for Brawl."""


def _same(rule: str, source: str) -> Origin:
    return Origin(rule, source, source)


ORIGINS: Final[dict[str, Origin]] = {
    "mode": _same("", "S0, S1"),
    "home_path_tiles": _same("1.7", "A2"),
    "start_credits": _same("3.1.5, 3.6.4", "S4"),
    "max_credits": _same("3.1.3", "S4"),
    "credits_per_grace": _same("3.1.3, 3.1.4", "A5"),
    "store_capacity": _same("3.1.1", "S4"),
    "dice": _same("3.1.1", "S4"),
    "castles_protect": _same("3.6.2", "A13"),
    "progression.midpoint": _same("4.1", "S0"),
    "progression.castle": Origin("4.1", "S0 for a Guard, A14 for the Noble", "A14"),
    "progression.own_entering": _same("4.1", "A14"),
    "progression.other_entering": _same("4.1", "A14"),
    "progression.home": _same("4.1", "A14"),
    "combat.safe.before": _same("4.2", "A15"),
    "combat.safe.past": _same("4.2", "A15"),
    "combat.castle.before": _same("4.2", "A15"),
    "combat.castle.past": _same("4.2", "A15"),
    "combat.regular.before": Origin("4.2", "A15", "S1"),
    "combat.regular.past": _same("4.2", "A15"),
    "blockade_penalty": _same("3.5.4", "A16"),
    "completion_bonus": Origin("4.3", "A17", "S0, S1"),
    "clock_seconds": Origin("5", "S0", "A18"),
    "turn_seconds": _same("5", "A19"),
}


@dataclass(frozen=True)
class Entry:
    """One key of a rule file with its value, as YAML writes it, and where that comes from."""

    key: str
    value: str
    rule: str
    source: str


def _flat(data: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in data.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def entries(ruleset: Ruleset) -> list[Entry]:
    """Return every key of a ruleset; a number that is not the shipped one has no source but it."""
    shipped = dict(_flat(load_ruleset(ruleset.mode).model_dump(mode="json")))
    found = []
    for key, value in _flat(ruleset.model_dump(mode="json")):
        origin = ORIGINS[key]
        source = origin.journey if ruleset.mode == "journey" else origin.brawl
        if value != shipped[key]:
            source = f"this file; {ruleset.mode} has {_written(shipped[key])}"
        found.append(Entry(key, _written(value), origin.rule, source))
    return found

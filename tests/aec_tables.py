"""Playing whole matches through the PettingZoo environment."""

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

from playing import Dealer
from positions import BRAWL, JOURNEY, changed
from retinue.envs.game.ruleset import Ruleset

AGENTS = ["green", "red", "blue", "yellow"]
RULES = {"journey": JOURNEY, "brawl": BRAWL}

Row = tuple[str, Any, float, bool, bool, dict[str, Any]]
"""An agent and what ``last`` returned to it."""


def short(mode: str, seconds: int = 120) -> Ruleset:
    return changed(RULES[mode], clock_seconds=seconds)


def joined(mask: Any) -> Any:
    return np.concatenate(mask) if isinstance(mask, tuple) else mask


def go_on(table: Any, dealer: Callable[[Any], Any] | None = None) -> list[Row]:
    """Play to the match's end, dead steps included; return what was seen on the way."""
    deal = dealer or Dealer(table.unwrapped.batch.encoding, 3, [0])
    rows = []
    for agent in table.agent_iter():
        seen = table.last()
        rows.append((agent, *seen))
        table.step(None if seen[2] else deal(joined(seen[0]["action_mask"])[None])[0])
    return rows


def played(table: Any, seed: int | None, dealer: Callable[[Any], Any] | None = None) -> list[Row]:
    table.reset(seed=seed)
    return go_on(table, dealer)


def digest(rows: list[Row]) -> str:
    """Return what stands for all that was seen in a match."""
    seen = hashlib.blake2b()
    for agent, observation, *rest in rows:
        seen.update(observation["observation"])
        seen.update(joined(observation["action_mask"]))
        seen.update(repr((agent, rest)).encode())
    return seen.hexdigest()

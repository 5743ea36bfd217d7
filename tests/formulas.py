"""Policies that are formulas, so that what is right can be told, and what they are asked about."""

from collections.abc import Callable
from typing import Any

import numpy as np

from positions import JOURNEY
from proposing import played_positions
from retinue.agents.policy import Returns
from retinue.envs.facts import FACT_COUNT, FACT_NAMES
from retinue.envs.game import engine
from retinue.envs.game.events import SILENT
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.state import GAME, OVER, Record, totals
from retinue.envs.observation import EXTRA_AT
from retinue.envs.opponents import View

MARGIN = Returns(mode="margin", scale=300.0, place_bonus=2.0, discount=0.9)
RACING = {"progression": 3.0, "margin": 2.0, "exposed": -1.0}


class Formula:
    """A policy that is a formula: likes some facts of a turn, and values some of what it sees.

    Args:
        likes: weights of facts, by name.
        value: of the state's part of observations, ``(n, EXTRA_AT)``.
    """

    def __init__(self, likes: dict[str, float], value: Callable[[Any], Any] | None = None) -> None:
        self.weights = np.zeros(FACT_COUNT, np.float32)
        for name, weight in likes.items():
            self.weights[FACT_NAMES.index(name)] = weight
        self.value = value or (lambda states: np.zeros(len(states), np.float32))
        self.asked: list[int] = []

    def evaluate(self, observations: Any) -> tuple[Any, Any]:
        """Return logits and values."""
        self.asked.append(len(observations))
        rows = observations[:, EXTRA_AT:].reshape(len(observations), -1, FACT_COUNT)
        return rows @ self.weights, self.value(observations[:, :EXTRA_AT])


def scores(states: Any) -> Any:
    """Value a position by what it looks like, all of it."""
    return np.sin(states @ np.arange(EXTRA_AT))


def some_games(ruleset: Ruleset, count: int) -> Any:
    """Return positions, rolls received, ``GAME`` ``(count,)``."""
    return np.array([game for game, _ in played_positions(ruleset)[:count]], GAME)


def choose(agent: Any, games: Any, ruleset: Ruleset = JOURNEY, keys: Any = None) -> Any:
    """Return an agent's turns."""
    numbers = np.arange(len(games)) if keys is None else np.array(keys)
    view = View(games.copy(), numbers.astype(np.uint64), ruleset)
    return agent.choose(view, np.random.default_rng(0))


def played(game: Record, ruleset: Ruleset, turn: Record) -> Record:
    """Return the game after a turn."""
    after = game.copy()
    engine.play_or_raise(after, ruleset, turn, SILENT.copy())
    return after


def value_of(game: Record, seat: int, returns: Returns) -> float:
    """Return what training pays a seat for in all, were the game to end or pause here."""
    own = totals(game)
    place = 1 + int((own > own[seat]).sum())
    by_place = {1: 1.0, 2: 1 / 3, 3: -1 / 3, 4: -1.0}[place] if game["phase"] == OVER else 0.0
    points = {
        "score": float(own[seat]),
        "margin": own[seat] - np.delete(own, seat).mean(),
        "place": by_place,
    }
    return float(points[returns.mode] / returns.scale + returns.place_bonus * by_place)

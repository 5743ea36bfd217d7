"""The generator of candidates and the facts of turns, called from Python; positions to try them.

Positions come from matches of agents that play well and at random, so that captures, blockades,
Home paths, finished seats and ends of matches are among them.
"""

import functools
import random
from typing import Any, Final, NamedTuple

import numpy as np

from positions import any_state
from retinue.agents.base import Agent
from retinue.agents.registry import make_agent
from retinue.agents.strategies import make_strategy
from retinue.envs.actions import copy_turn
from retinue.envs.batch import Batch
from retinue.envs.candidates import (
    PROPOSALS,
    describe_copy,
    new_scratch,
    play_on_copy,
    propose,
)
from retinue.envs.choosing import draw_turn
from retinue.envs.estimates import STRATEGY
from retinue.envs.facts import FACT_COUNT
from retinue.envs.game.board import PIECES, YARD
from retinue.envs.game.dice import derive
from retinue.envs.game.jit import jit, record_at
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.state import CHOOSE, TURN, Record, state_from_json
from retinue.envs.opponents import View
from retinue.envs.survey import survey

GREEDY: Final = {"progression": 1.0, "combat": 1.0, "penalties": -1.0, "bonus": 1.0}
CAREFUL: Final = {
    "margin": 1.0,
    "steps_guards": -1.0,
    "steps_noble": -1.0,
    "open_guards": 0.1,
    "stacked": 5.0,
    "barrier": 1.0,
    "setbacks": -10.0,
    "risk_guards_next": -0.7,
    "risk_noble_across": -0.7,
    "exposed": -0.1,
    "prey": 4.0,
    "kept": 1.0,
    "dice": 4.0,
    "credits": 3.0,
}
"""Weights that look at facts of every kind."""


@jit
def _propose(game: Any, rules: Any, memory: int, proposals: Any) -> None:
    propose(game, rules, record_at(memory, STRATEGY), new_scratch(), proposals)


@jit
def _describe(game: Any, rules: Any, memory: int, turn: Any, row: Any) -> float:
    strategy = record_at(memory, STRATEGY)
    scratch = new_scratch()
    survey(game, rules, strategy, scratch[0][0])
    copy_turn(turn, scratch[5][0])
    play_on_copy(game, rules, scratch)
    return describe_copy(game, rules, strategy, scratch, row)  # type: ignore[no-any-return]


@jit
def _draw(game: Any, rules: Any, key: Any, turns: Any) -> None:
    for index in range(turns.shape[0]):
        draw_turn(game, rules, derive(key, index), turns[index])


def drawn_turns(game: Record, ruleset: Ruleset, key: int, count: int) -> Any:
    """Return the ``TURN`` array of what a strategy draws that looks at turns drawn at random."""
    turns = np.zeros(count, TURN)
    _draw(game, ruleset.packed, np.uint64(key), turns)
    return turns


class Proposals(NamedTuple):
    """Candidates: a ``TURN`` array, their rows of facts, values and outcomes."""

    turns: np.ndarray[Any, np.dtype[Any]]
    rows: np.ndarray[Any, np.dtype[np.float32]]
    values: np.ndarray[Any, np.dtype[np.float32]]
    outcomes: np.ndarray[Any, np.dtype[np.uint64]]


def propose_for(
    game: Record, ruleset: Ruleset, weights: dict[str, float], candidates: int = 64
) -> Proposals:
    """Return the candidates that a strategy looks at, and check that the game stays as it is."""
    policy = make_strategy("tried", weights, ruleset, candidates).compiled
    proposals = np.zeros(1, PROPOSALS)
    before = game.tobytes()
    _propose(game, ruleset.packed, policy.memory_address, proposals[0])
    assert game.tobytes() == before
    found = proposals[0]
    count = int(found["count"])
    turns = np.zeros(count, TURN)
    for name in ("direction", "noble_steps", "noble_after", "rolls"):
        turns[name] = found[name][:count]
    values = (found[name][:count].copy() for name in ("row", "value", "outcome"))
    return Proposals(turns, *values)


def facts_of(game: Record, ruleset: Ruleset, turn: Record) -> np.ndarray[Any, np.dtype[Any]]:
    """Return the facts of a turn, float32 ``(FACT_COUNT,)``."""
    row = np.zeros(FACT_COUNT, np.float32)
    policy = _looking(ruleset).compiled
    _describe(game, ruleset.packed, policy.memory_address, turn, row)
    return row


@functools.cache
def _looking(ruleset: Ruleset) -> Any:
    return make_strategy("looking", {}, ruleset)


def late_position(chance: random.Random, ruleset: Ruleset) -> Record:
    """Return a position near the end: seats that have finished or nearly so, few turns left."""
    state = any_state(chance, ruleset)
    for seat, places in enumerate(state["position"]):
        finished = chance.random() < 0.3
        for piece in range(PIECES):
            if finished or chance.random() < 0.7:
                places[piece] = ruleset.home
            elif chance.random() < 0.5:
                places[piece] = chance.choice([0, 61, 62, 63, 68, ruleset.home - 1])
            if places[piece] != YARD:
                state["midpoint"][seat][piece] = 1
    state["position"][chance.randrange(4)][chance.randrange(PIECES)] = ruleset.home - 1
    state["clock_seconds"] = ruleset.turn_seconds * chance.randint(1, 8)
    game = state_from_json(state, ruleset)
    game["phase"] = CHOOSE
    return game


class Watcher:
    """Lets an agent play, outside the kernels, and keeps what it saw and chose."""

    compiled = None

    def __init__(self, agent: Agent) -> None:
        self.name = agent.name
        self.seen: list[tuple[Any, Any]] = []
        self._agent = agent

    def choose(self, view: View, rng: np.random.Generator) -> Any:
        """Return what the agent chooses."""
        games = view.games.copy()
        turns = self._agent.choose(view, rng)
        self.seen.append((games, turns.copy()))
        return turns


@functools.cache
def played_positions(
    ruleset: Ruleset, matches: int = 8, seed: int = 0
) -> list[tuple[Record, Record]]:
    """Return positions of matches, rolls received, with the turn that was chosen in each.

    The same matches give the same list, in an order that is shuffled.
    """
    names = ("greedy", "random", "hunter", "blockader")
    watchers = [Watcher(make_agent(name, ruleset)) for name in names]
    batch = Batch(ruleset, matches, seats="none", opponents=watchers, threads=1)
    seating = np.random.default_rng(seed).integers(4, size=(matches, 4))
    batch.play_out(np.arange(seed, seed + matches), seating)
    games, turns = (
        np.concatenate([seen[part] for watcher in watchers for seen in watcher.seen])
        for part in (0, 1)
    )
    order = random.Random(seed).sample(range(len(games)), len(games))
    return [(games[index], turns[index]) for index in order]

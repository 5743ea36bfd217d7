"""Agents: the registry, and what the scripted ones do."""

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from positions import BRAWL, JOURNEY, any_rules, any_state
from retinue.agents import registry
from retinue.agents.base import Agent, CompiledAgent
from retinue.agents.registry import AgentError, known_agents, make_agent, register
from retinue.envs.game import engine, jit
from retinue.envs.game.board import BACKWARD, FORWARD, NOBLE
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.state import CHOOSE, GAME, TURN, new_game, state_from_json, state_to_json
from retinue.envs.opponents import Opponent, View

SCRIPTED = ("random", "racer", "spread")
DRAWS = 6000 if jit.ENABLED else 600
CHECKED = settings(max_examples=150 if jit.ENABLED else 15, database=None, deadline=None)


def choose(agent: str, game: Any, ruleset: Ruleset = JOURNEY, keys: Any = (0,)) -> Any:
    """Return the turns of an agent in the same position with several keys."""
    games = np.zeros(len(keys), GAME)
    games[:] = game
    view = View(games, np.array(keys, np.uint64), ruleset)
    return make_agent(agent, ruleset).choose(view, np.random.default_rng(0))


def position(
    pieces: dict[tuple[int, int], int],
    store: dict[int, int],
    *,
    midpoint: tuple[int, ...] = (),
    credits: int = 0,
) -> Any:
    """Return a game in which Green is to choose; ``midpoint`` names its pieces that are past it."""
    state = state_to_json(new_game(JOURNEY))
    for (seat, piece), place in pieces.items():
        state["position"][seat][piece] = place
    for piece in midpoint:
        state["midpoint"][0][piece] = 1
    for value, count in store.items():
        state["store"][0][value - 1] = count
    state["credits"][0] = credits
    game = state_from_json(state, JOURNEY)
    game["phase"] = CHOOSE
    return game


def given_to(turn: Any) -> list[list[int]]:
    """Return the rolls of each Guard."""
    return [np.repeat(np.arange(1, 7), row).tolist() for row in turn["rolls"]]


# --- The registry


def test_every_known_agent_is_made_and_described() -> None:
    assert set(SCRIPTED) <= set(known_agents())
    for name in SCRIPTED:
        agent = make_agent(name, JOURNEY)
        assert agent.name == name
        assert isinstance(agent, Agent)
        assert isinstance(agent, Opponent)
        assert "\n" not in known_agents()[name]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("rcaer", "unknown agent 'rcaer': did you mean racer[?] known agents: random, racer"),
        ("xyz", "unknown agent 'xyz': known agents: random, racer"),
        ("", "unknown agent ''"),
        (":racer", "unknown agent ''"),
        ("Racer", "unknown agent 'Racer': did you mean racer[?]"),
        ("racer:fast", "agent racer takes no argument, so not 'fast'"),
        ("racer:", "agent racer takes no argument"),
    ],
)
def test_what_makes_no_agent_is_refused(spec: str, message: str) -> None:
    with pytest.raises(AgentError, match=message):
        make_agent(spec, JOURNEY)


def test_other_modules_register_kinds_with_an_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_KINDS", dict(registry._KINDS))
    made: list[tuple[str, Ruleset]] = []

    def make(argument: str, ruleset: Ruleset) -> Agent:
        made.append((argument, ruleset))
        return make_agent("racer", ruleset)

    register("trained", make, "a trained one", "FOLDER")
    assert known_agents()["trained:FOLDER"] == "a trained one"
    make_agent("trained:runs/a:b", BRAWL)
    assert made == [("runs/a:b", BRAWL)]
    for spec in ("trained", "trained:"):
        with pytest.raises(AgentError, match="asked for as trained:FOLDER"):
            make_agent(spec, BRAWL)
    with pytest.raises(ValueError, match="already an agent 'trained'"):
        register("trained", make, "again")


# --- All scripted agents


@given(st.integers(0, 2**32), st.booleans())
@CHECKED
def test_turns_are_legal_under_any_rules_in_any_position(chance: int, shipped: bool) -> None:
    choices = random.Random(chance)
    ruleset = choices.choice([JOURNEY, BRAWL]) if shipped else any_rules(choices)
    game = state_from_json(any_state(choices, ruleset), ruleset)
    if choices.random() < 0.5:
        engine.roll(game, ruleset.packed, np.uint64(chance))
    game["phase"] = CHOOSE
    for name in SCRIPTED:
        for turn in choose(name, game, ruleset, keys=(chance, chance + 1)):
            verdict = engine.judge(game, ruleset.packed, turn)
            assert verdict == engine.LEGAL, engine.explain(verdict, game, turn)


@given(st.integers(0, 2**32), st.integers(1, 3))
@CHECKED
def test_every_seat_plays_alike(chance: int, turned: int) -> None:
    """The same situation seen from another seat gives the same turn."""
    choices = random.Random(chance)
    state = any_state(choices, JOURNEY)
    rotated = {
        name: entry if name == "clock_seconds" else entry[-turned:] + entry[:-turned]
        for name, entry in state.items()
    }
    game, other = state_from_json(state, JOURNEY), state_from_json(rotated, JOURNEY)
    other["seat"] = (game["seat"] + turned) % 4
    game["phase"] = other["phase"] = CHOOSE
    for name in SCRIPTED:
        assert choose(name, game).tobytes() == choose(name, other).tobytes(), name


def test_the_key_is_all_their_chance() -> None:
    game = position({(0, 0): 5, (0, 1): 9}, {1: 3, 4: 3}, credits=2)
    keys = range(50)
    for name in SCRIPTED:
        turns = choose(name, game, keys=keys)
        assert turns.dtype == TURN
        assert turns.tobytes() == choose(name, game, keys=keys).tobytes()
        one_by_one = [choose(name, game, keys=(key,))[0].tobytes() for key in keys]
        assert [turn.tobytes() for turn in turns] == one_by_one, "others in the batch do not count"
        assert (len(set(one_by_one)) == 1) == (name != "random")


def test_choosing_changes_no_game() -> None:
    game = position({(0, 0): 5}, {6: 4}, credits=1)
    games = np.array([game], GAME)
    before = games.tobytes()
    for name in SCRIPTED:
        view = View(games, np.zeros(1, np.uint64), JOURNEY)
        make_agent(name, JOURNEY).choose(view, np.random.default_rng(0))
        assert games.tobytes() == before


def test_any_function_is_an_agent() -> None:
    def pass_on(game: Any, rules: Any, key: Any, turn: Any, memory: int) -> int:
        turn.noble_steps = 2
        return 0

    agent = CompiledAgent("passing", pass_on)
    view = View(np.array([new_game(JOURNEY)], GAME), np.zeros(1, np.uint64), JOURNEY)
    (turn,) = agent.choose(view, np.random.default_rng(0))
    assert (turn["noble_steps"], turn["rolls"].sum()) == (2, 0)
    assert repr(agent) == "CompiledAgent('passing', Policy(pass_on))"


# --- random


def test_random_is_uniform() -> None:
    game = position({(0, 0): 5, (0, 1): 9}, {3: 2}, credits=1)  # G3 may leave, G4 may not
    turns = choose("random", game, keys=range(DRAWS))
    noble = turns["noble_steps"] + 6 * turns["noble_after"]
    rolls = turns["rolls"][:, :, 2]
    assert set(rolls[:, 3]) == {0}
    for counts in (
        np.bincount(turns["direction"], minlength=2),
        np.bincount(noble, minlength=13),
        np.append(rolls[:, :3].sum(axis=0), (2 - rolls.sum(axis=1)).sum()),
    ):
        expected = counts.sum() / len(counts)
        assert np.abs(counts - expected).max() < 5 * expected**0.5


def test_random_keeps_a_noble_that_is_home() -> None:
    game = position({(0, NOBLE): 75}, {})
    turns = choose("random", game, keys=range(100))
    assert not turns["noble_steps"].any()
    assert not turns["noble_after"].any()


# --- racer


def test_racer_spends_everything_on_its_foremost_guard() -> None:
    game = position({(0, 0): 5, (0, 1): 20}, {2: 1, 4: 1, 5: 2}, credits=1)
    (turn,) = choose("racer", game)
    assert given_to(turn) == [[], [2, 4, 5, 5], [], []]
    assert turn["direction"] == FORWARD
    assert (turn["noble_steps"], turn["noble_after"]) == (6, 0)


def test_racer_leaves_the_yard_when_nobody_is_ahead() -> None:
    (turn,) = choose("racer", position({(0, 0): 75}, {2: 1, 5: 2}, credits=1))
    assert given_to(turn) == [[], [2, 5, 5], [], []]
    (turn,) = choose("racer", position({(0, 0): 75}, {2: 1, 5: 2}))
    assert given_to(turn) == [[], [], [], []]


def test_racer_gives_what_the_foremost_does_not_need_to_the_next() -> None:
    game = position({(0, 0): 5, (0, 1): 73}, {1: 1, 6: 3})
    (turn,) = choose("racer", game)  # 2 steps to Home
    assert given_to(turn) == [[1, 6, 6], [6], [], []]


def test_racer_goes_its_foremost_guards_better_way() -> None:
    for offset, past, direction in [
        (3, True, BACKWARD),
        (60, True, FORWARD),
        (60, False, BACKWARD),
    ]:
        game = position({(0, 0): offset}, {3: 1}, midpoint=(0,) * past)
        (turn,) = choose("racer", game)
        assert turn["direction"] == direction
        assert turn["noble_steps"] == (6 if direction == FORWARD else 0)


def test_racers_noble_does_not_overshoot() -> None:
    (turn,) = choose("racer", position({(0, NOBLE): 72}, {}))
    assert turn["noble_steps"] == 3


# --- spread


def test_spread_serves_the_hindmost() -> None:
    game = position({(0, 0): 5, (0, 1): 8, (0, 2): 30}, {1: 1, 2: 1, 6: 1})
    (turn,) = choose("spread", game)
    assert given_to(turn) == [[6], [1, 2], [], []]
    (turn,) = choose("spread", position({(0, 0): 5}, {1: 1, 6: 1}, credits=1))
    assert given_to(turn) == [[1], [6], [], []]


def test_spread_goes_the_better_way_for_all() -> None:
    pieces = {(0, 0): 3, (0, 1): 4, (0, 2): 40, (0, 3): 5, (0, NOBLE): 6}
    (turn,) = choose("spread", position(pieces, {3: 1}, midpoint=(0, 1, 2, 3, NOBLE)))
    assert turn["direction"] == BACKWARD

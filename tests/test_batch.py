"""Many matches in step: the same as one at a time, in any company, and as the referee has it."""

import copy
import pickle
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from playing import (
    END,
    Dealer,
    Drawing,
    Outside,
    PlainAgent,
    Trace,
    ask,
    check_same,
    env_trace,
    games_of,
    trace,
    turn_of,
)
from positions import BRAWL, JOURNEY
from random_policies import choose_uniform
from referee import Referee
from retinue.agents.base import CompiledAgent
from retinue.agents.registry import make_agent
from retinue.envs.actions import ENCODINGS
from retinue.envs.batch import Batch
from retinue.envs.game.engine import IllegalTurn
from retinue.envs.game.record import turn_to_json
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.state import OVER, TURN, state_to_json, totals
from retinue.envs.gym_env import RetinueEnv
from retinue.envs.parallel import MAX_THREADS

RACER, RANDOM, SPREAD = (make_agent(name, JOURNEY) for name in ("racer", "random", "spread"))
ALL_SEATS = (0, 1, 2, 3)
MODES = pytest.mark.parametrize("ruleset", [JOURNEY, BRAWL], ids=["journey", "brawl"])


def choose_alike(game: Any, rules: Any, key: Any, turn: Any, memory: int) -> int:
    choose_uniform(game, rules, key, turn)
    return 0


def choose_plainly(game: Any, rules: Any, key: Any, turn: Any) -> None:
    getattr(choose_uniform, "py_func", choose_uniform)(game, rules, key, turn)


COMPILED = CompiledAgent("uniform", choose_alike)
PLAIN = PlainAgent("uniform", choose_plainly)


def new_batch(games: int = 3, **changed: Any) -> Batch:
    arguments = {"seats": 1, "opponents": [RACER, RANDOM], "threads": 1, **changed}
    return Batch(JOURNEY, games, **arguments)


def play(batch: Batch, seed: int = 5, decisions: int = 300, **others: Any) -> Trace:
    batch.reset(seed)
    return trace(batch, Dealer(batch.encoding, 1, range(batch.num_games)), decisions, **others)


# --- One and many

SETTINGS: dict[int, dict[str, Any]] = {
    1500: {"encoding": "steps", "seats": 2, "opponents": [RACER, RANDOM], "reward": "score"},
    4000: {"encoding": "steps", "seats": (0, 1, 2, 3), "opponents": []},
    150: {"encoding": "turn", "seats": "any", "opponents": [RANDOM, PLAIN], "draw": "each match"},
    420: {"encoding": "turn", "seats": (1, 3), "opponents": [SPREAD], "reward": "place"},
}
"""By how many decisions three matches need."""


@MODES
@pytest.mark.parametrize("decisions", SETTINGS)
def test_a_batch_is_many_single_environments(ruleset: Ruleset, decisions: int) -> None:
    seed, games = 2**53 - 2, 3  # the last game's seed is 0
    env = RetinueEnv(ruleset.mode, rules=ruleset, **SETTINGS[decisions])
    arguments = {**SETTINGS[decisions], "reward": env.batch.reward, "threads": 1}
    batch = Batch(ruleset, games, **arguments)
    batch.reset(seed)
    together = trace(batch, Dealer(batch.encoding, 9, range(games)), decisions)
    assert together["terminated after"].sum(axis=0).min() >= 3
    for game in range(games):
        alone = env_trace(env, Dealer(batch.encoding, 9, [game]), (seed + game) % 2**53, decisions)
        check_same(alone, games_of(together, [game]))


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_company_and_the_threads_change_nothing(encoding: str) -> None:
    def played(games: int, threads: int, decisions: int) -> Trace:
        agents = [COMPILED, RACER, Outside(RANDOM)]
        batch = new_batch(games, encoding=encoding, opponents=agents, threads=threads)
        return play(batch, decisions=decisions)

    many = 400 if encoding == "steps" else 80
    large = played(64, 1, many)
    for games in (1, 7):
        check_same(played(games, 1, many), games_of(large, slice(games)))
    for games in (7, 64):
        threaded = played(games, min(2, MAX_THREADS), 60)
        check_same(threaded, {name: rows[:60, :games] for name, rows in large.items()})
    assert large["terminated after"].any(axis=0).all()


def test_chance_elsewhere_in_the_process_changes_nothing() -> None:
    def pollute(number: int) -> None:
        np.random.seed(number)  # noqa: NPY002 - this is what must not matter
        random.seed(number)

    batch = new_batch(seats="any", draw="each match")
    expected = play(batch)
    check_same(play(batch, between=pollute), expected)
    before = repr(np.random.get_state()), random.getstate()  # noqa: NPY002
    play(batch)
    assert (repr(np.random.get_state()), random.getstate()) == before  # noqa: NPY002


def test_an_agent_that_draws_from_the_generator_is_reproducible() -> None:
    batch = new_batch(opponents=[Drawing()])
    first, again, other = (play(batch, seed) for seed in (5, 5, 6))
    check_same(again, first)
    assert not np.array_equal(other["observations after"], first["observations after"])


# --- Seeds


def dice(batch: Batch, turns: int) -> Any:
    """Return the first dice of each match, when all seats pass."""
    rolled = []
    for _ in range(turns):
        rolled.append(batch.games["rolled"].copy())
        batch.step(np.zeros((batch.num_games, 14), np.int64))
    return np.concatenate(rolled, axis=1)


def test_seeds_games_and_episodes_differ() -> None:
    batch = Batch(JOURNEY, 8, encoding="turn", seats=ALL_SEATS, threads=1)
    rows, seeds = [], []
    for seed in (0, 1000, 2**52):
        batch.reset(seed)
        for _ in range(3):
            seeds += batch.seeds.tolist()
            rows += dice(batch, 12).tolist()
            batch.start_next(np.arange(8))
    assert seeds[:8] == list(range(8))
    assert max(seeds) < 2**53
    assert len(set(seeds)) == len(seeds) == 72
    assert len(set(map(tuple, rows))) == 72
    batch.reset(1000)
    assert dice(batch, 12).tolist() == rows[24:32]


# --- Seats and opponents


def check_uniform(chosen: Any, choices: int) -> None:
    """Check that each choice is about as frequent as any other: within five standard deviations."""
    counts = np.bincount(chosen, minlength=choices)
    expected = len(chosen) / choices
    assert len(counts) == choices
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected), counts


def test_any_seat_is_each_seat_as_often() -> None:
    batch = new_batch(2000, seats="any", opponents=[RANDOM])
    batch.reset(3)
    seats = []
    for _ in range(2):
        assert ((batch.control == -1).sum(axis=1) == 1).all()
        seats.append((batch.control == -1).argmax(axis=1))
        assert np.array_equal(batch.seats, seats[-1])
        batch.start_next(np.arange(2000))
    check_uniform(seats[0], 4)
    check_uniform(seats[0] + 4 * seats[1], 16)


def test_each_match_draws_each_agent_as_often() -> None:
    batch = new_batch(3000, opponents=[RANDOM, SPREAD, RACER], draw="each match")
    batch.reset(3)
    before = batch.control.copy()
    assert (batch.control[:, 1] == -1).all()
    check_uniform(before[:, 0] + 3 * before[:, 2] + 9 * before[:, 3], 27)
    batch.start_next(np.arange(3000))
    check_uniform(batch.control[:, 0] + 3 * before[:, 0], 9)


@pytest.mark.parametrize(
    ("seats", "agents", "control"),
    [
        (0, 3, [-1, 0, 1, 2]),
        (2, 3, [1, 2, -1, 0]),
        (2, 2, [1, 0, -1, 0]),
        (3, 1, [0, 0, 0, -1]),
        ((1, 3), 2, [1, -1, 0, -1]),
        ((0, 1, 2, 3), 0, [-1, -1, -1, -1]),
        (np.int64(1), 3, [2, -1, 0, 1]),
    ],
)
def test_agents_take_their_seats_in_order(seats: Any, agents: int, control: list[int]) -> None:
    batch = new_batch(2, seats=seats, opponents=[RANDOM, SPREAD, RACER][:agents])
    batch.reset(0)
    assert batch.control.tolist() == [control] * 2


def test_nobody_changes_seats_within_a_match() -> None:
    batch = new_batch(8, seats="any", opponents=[RANDOM, SPREAD], draw="each match")
    batch.reset(4)
    deal, seen = Dealer(batch.encoding, 4, range(8)), set()
    for _ in range(3):
        control, ended = batch.control.copy(), np.zeros(8, bool)
        seen |= set(map(tuple, control.tolist()))
        for _ in range(150):
            batch.step(deal(batch.masks))
            assert np.array_equal(batch.control[~ended], control[~ended])
            assert (batch.control[np.arange(8), batch.seats] == -1).all()
            ended |= batch.terminated
            batch.start_next(np.flatnonzero(batch.terminated))
        batch.start_next(np.arange(8))
    assert len(seen) > 8


@MODES
def test_an_agent_outside_the_kernels_plays_like_one_inside(ruleset: Ruleset) -> None:
    traces = [
        play(Batch(ruleset, 5, seats=2, opponents=opponents, threads=1))
        for opponents in ([COMPILED, RACER, COMPILED], [PLAIN, RACER, PLAIN])
    ]
    check_same(*traces)


def cheat(game: Any, rules: Any, key: Any, turn: Any, memory: int = 0) -> int:
    if game.turns_taken[game.seat] > 2:
        turn.rolls[0, 5] = 120
    return 0


@pytest.mark.parametrize("make", [CompiledAgent, PlainAgent])
def test_an_illegal_turn_is_refused_by_name(make: Callable[..., Any]) -> None:
    batch = new_batch(opponents=[RANDOM, make("crook", cheat), RANDOM])
    with pytest.raises(IllegalTurn, match="agent crook chose an illegal turn: 120 rolls of 6 are"):
        play(batch)
    assert (batch.games["turns_taken"][:, 3] <= 3).all(), "it was not played"


@pytest.mark.parametrize("turns", [np.zeros(1, TURN), np.zeros((3, 1), TURN), np.zeros(3), None])
def test_what_is_no_turn_for_each_game_is_refused_by_name(turns: Any) -> None:
    agent = PlainAgent("clumsy", lambda *_: None)
    agent.choose = lambda view, rng: turns  # type: ignore[method-assign]
    with pytest.raises(ValueError, match=r"agent clumsy must return a TURN array of shape \(3,\)"):
        play(new_batch(opponents=[agent]))


# --- Ends and starts


def test_a_match_that_is_over_takes_no_action() -> None:
    batch = new_batch(2, encoding="turn")
    batch.reset(1)
    deal = Dealer(batch.encoding, 1, range(2))
    while not batch.step(deal(batch.masks)):
        pass
    over, ended = batch.games.copy(), batch.terminated.copy()
    with pytest.raises(RuntimeError, match=r"the match in game \d is over"):
        batch.step(deal(batch.masks))
    assert np.array_equal(batch.games[ended], over[ended])


def test_starting_some_games_leaves_the_others_alone() -> None:
    batch = new_batch(4)
    play(batch, decisions=37)
    before = [part.copy() for part in (batch.games, batch.turns, batch.observations, batch.masks)]
    batch.start_next(np.array([1, 3]))
    after = [batch.games, batch.turns, batch.observations, batch.masks]
    for old, new in zip(before, after, strict=True):
        assert old[[0, 2]].tobytes() == new[[0, 2]].tobytes()
    assert (batch.games["turn"][[1, 3]] < 4).all()
    assert (batch.games["turn"][[0, 2]] >= 4).all()


@pytest.mark.parametrize("games", [[3], [-1], [0, 7], [0.0], [[0]], [True]])
def test_games_that_are_not_there_are_not_started(games: list[Any]) -> None:
    batch = new_batch(3)
    batch.reset(1)
    before = batch.save_matches()
    with pytest.raises(IndexError, match="games are"):
        batch.start_next(np.array(games))
    assert batch.save_matches() == before


def loaded(batch: Batch) -> Batch:
    other = new_batch(opponents=batch.opponents, seats="any")
    other.load_matches(batch.save_matches())
    return other


def pickled(batch: Batch) -> Batch:
    return pickle.loads(pickle.dumps(batch))  # type: ignore[no-any-return]


@pytest.mark.parametrize("copied", [loaded, pickled, copy.deepcopy])
@pytest.mark.parametrize("agents", [[RACER, RANDOM], [PLAIN, Drawing()]], ids=["in", "outside"])
def test_a_copy_in_the_middle_of_a_turn_goes_on_alike(
    copied: Callable[[Batch], Batch], agents: list[Any]
) -> None:
    batch = new_batch(opponents=agents, seats="any")
    play(batch, decisions=101)
    both = batch, copied(batch)
    results = [trace(each, Dealer(each.encoding, 2, range(3)), 400) for each in both]
    check_same(*results)
    assert results[0]["terminated after"].any()


def test_matches_of_another_batch_are_refused() -> None:
    with pytest.raises(ValueError, match="another batch size or version"):
        new_batch(4).load_matches(new_batch(3).save_matches())


# --- Whole matches


@MODES
def test_three_hundred_matches_never_fault(ruleset: Ruleset) -> None:
    batch = Batch(ruleset, 300, seats="none", opponents=["random", "racer", "spread", COMPILED])
    control = np.random.default_rng(1).integers(4, size=(300, 4))
    batch.play_out(np.arange(300), control)
    games = batch.games.copy()
    assert (games["phase"] == OVER).all()
    assert ((games["clock_seconds"] == 0) | (games["finished"] == 4)).all()
    assert np.array_equal(batch.final_totals, totals(games))
    assert (batch.final_places.min(axis=1) == 1).all()
    order = np.random.default_rng(2).permutation(300)
    batch.play_out(np.arange(300)[order], control[order])
    assert np.array_equal(batch.games, games[order])


@MODES
def test_the_referee_comes_to_the_same_end(ruleset: Ruleset) -> None:
    batch = Batch(ruleset, 4, encoding="turn", seats=ALL_SEATS, threads=1)
    batch.reset(77)
    deal = Dealer(batch.encoding, 77, range(4))
    referees = [Referee(ruleset.model_dump(mode="json")) for _ in range(4)]
    live = np.ones(4, bool)
    while live.any():
        actions = deal(batch.masks)
        actions[:2] = ask(RACER, batch)[:2]
        for index in np.flatnonzero(live):
            game, referee = batch.games[index], referees[index]
            assert batch.seats[index] == referee.seat
            referee.roll(game["rolled"][: game["dice"]].tolist())
            assert referee.state() == state_to_json(game)
            referee.play(turn_to_json(turn_of(game, ruleset, actions[index])[0]))
        batch.step(actions)
        for index in np.flatnonzero(batch.terminated & live):
            result = referees[index].result()
            assert batch.final_totals[index].tolist() == result["totals"]
            assert batch.final_places[index].tolist() == result["places"]
        assert [referee.over for referee in referees] == (batch.terminated | ~live).tolist()
        live &= ~batch.terminated
        batch.start_next(np.flatnonzero(batch.terminated))


# --- Refusals

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"num_games": 0}, "num_games must be 1 to"),
    ({"seats": 4}, "seat 4 is not one of 0, 1, 2, 3"),
    ({"seats": (0, -1)}, "seat -1 is not one of"),
    ({"seats": (1, 2, 1)}, "seat 1 stands twice"),
    ({"seats": ()}, "must name at least one seat"),
    ({"seats": 1.0}, "seat 1.0 is not one of"),
    ({"seats": (0, True)}, "seat True is not one of"),
    ({"seats": "all"}, "seats must be seat numbers"),
    ({"seats": 0, "opponents": ()}, "opponents are needed"),
    ({"seats": ALL_SEATS}, "the caller plays all seats, so there is none for opponents"),
    ({"draw": "by lot"}, "unknown draw 'by lot': use 'in order' or 'each match'"),
    ({"threads": MAX_THREADS + 1}, "threads must be 1 to"),
    ({"opponents": [RANDOM] * 65}, "65 opponents are more than 64"),
]


@pytest.mark.parametrize(("wrong", "message"), REFUSED, ids=[str(each[1]) for each in REFUSED])
def test_arguments_out_of_range_are_refused(wrong: dict[str, Any], message: str) -> None:
    arguments = {"num_games": 1, "seats": 0, "opponents": [RANDOM], **wrong}
    with pytest.raises(ValueError, match=message):
        Batch(JOURNEY, **arguments)


def test_who_plays_out_matches_has_no_seat() -> None:
    with pytest.raises(ValueError, match='only with seats="none"'):
        new_batch().play_out([1, 2, 3], [0, 0, 0, 0])
    batch = new_batch(seats="none")
    for control in ([0, 0, 0, 2], [0, -1, 0, 0]):
        with pytest.raises(ValueError, match="control must be 0 to 1"):
            batch.play_out([1, 2, 3], control)


def test_kept_turns_stay_in_their_match() -> None:
    """A position that somebody wrote may have any turn's number."""
    batch = Batch(JOURNEY, 2, seats="none", opponents=[RACER], keep_turns=True)
    batch.play_out([1, 2], np.zeros(4, np.int64))
    assert batch.trace.shape == (2, JOURNEY.turns)
    assert batch.trace["rolls"].any(axis=(1, 2, 3)).all()
    beyond = Batch(JOURNEY, 2, seats=0, opponents=[RACER], keep_turns=True)
    beyond.reset(1)
    beyond.games["turn"][0] = JOURNEY.turns + 3
    beyond.step(np.full(2, 0))
    beyond.step(np.full(2, END))
    assert not beyond.trace[0]["rolls"].any()
    assert beyond.trace[1, :4]["rolls"].any()
    assert not beyond.trace[1, 4:]["rolls"].any()

"""Some games of a batch at a time, who plays in each, and what a drawing shows of the last move."""

import copy
import re
from typing import Any

import numpy as np
import pytest

from playing import Dealer, Trace, check_same, games_of, trace
from positions import BRAWL, JOURNEY
from retinue.agents.registry import make_agent
from retinue.envs.actions import ENCODINGS
from retinue.envs.batch import Batch
from retinue.envs.game import engine
from retinue.envs.game.events import SILENT
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.state import ROLL, Record, state_to_json

RACER, RANDOM, SPREAD = (make_agent(name, JOURNEY) for name in ("racer", "random", "spread"))
EVERY_ENCODING = pytest.mark.parametrize("encoding", ENCODINGS)


def new_batch(games: int = 3, **changed: Any) -> Batch:
    arguments = {"seats": 1, "opponents": [RACER, RANDOM], "threads": 1, **changed}
    return Batch(arguments.pop("ruleset", JOURNEY), games, **arguments)


def play(batch: Batch, decisions: int = 300) -> Trace:
    return trace(batch, Dealer(batch.encoding, 1, range(batch.num_games)), decisions)


# --- Some of the games


@EVERY_ENCODING
def test_games_that_stand_still_are_not_touched(encoding: str) -> None:
    batch, whole = new_batch(4, encoding=encoding), new_batch(4, encoding=encoding)
    batch.reset(5)
    whole.reset(5)
    deal = Dealer(batch.encoding, 1, range(4))
    moving = np.array([2, 0])
    for _ in range(30):
        actions = deal(whole.masks)
        whole.step(actions)
        still = batch.games[[1, 3]].copy()
        batch.step(actions, moving)
        assert np.array_equal(batch.games[[1, 3]], still)
        assert np.array_equal(batch.games[moving], whole.games[moving])
        assert np.array_equal(batch.observations[moving], whole.observations[moving])
        whole.start_next(np.flatnonzero(whole.terminated))
        batch.start_next(np.flatnonzero(batch.terminated & [True, False, True, False]))


def test_a_game_can_be_started_from_a_seed_of_its_own() -> None:
    batch, other = new_batch(4, seats="any"), new_batch(1, seats="any")
    batch.reset(5)
    batch.start(np.array([3, 1]), [70, 2**53 + 9])
    other.reset(70)
    assert np.array_equal(batch.observations[3], other.observations[0])
    other.reset(9)
    assert np.array_equal(batch.observations[1], other.observations[0])
    batch.start_next(np.array([1]))
    other.start_next(np.array([0]))
    assert np.array_equal(batch.observations[1], other.observations[0]), "and its later matches"


def test_seeds_may_be_given_for_each_game() -> None:
    batch, again = new_batch(3), new_batch(3)
    batch.reset([4, 9, 4])
    again.reset(4)
    assert np.array_equal(batch.observations[0], batch.observations[2])
    assert np.array_equal(batch.observations[0], again.observations[0])
    assert not np.array_equal(batch.observations[0], batch.observations[1])


@pytest.mark.parametrize("indices", [[3], [-1], [0.0], [[0]], [1, 0, 1]], ids=str)
def test_games_that_are_not_there_are_refused(indices: Any) -> None:
    batch = new_batch(3)
    batch.reset(0)
    before = batch.save_matches()
    for call in (batch.start_next, lambda i: batch.step(np.zeros(3, int), i)):
        with pytest.raises(IndexError, match="games are"):
            call(np.array(indices))
    with pytest.raises(IndexError, match="games are"):
        batch.start(np.array(indices), [1])
    with pytest.raises(IndexError, match="games are"):
        batch.arrange(np.array(indices), seats=[0] * len(indices))
    assert batch.save_matches() == before


def test_seeds_that_are_not_one_for_each_game_are_refused() -> None:
    batch = new_batch(3)
    batch.reset(0)
    before = batch.save_matches()
    for seeds in ([5], [], [1, 2, 3, 4]):
        with pytest.raises(ValueError, match=f"{len(seeds)} seeds are not one for each of 3"):
            batch.reset(seeds)
    with pytest.raises(ValueError, match="1 seeds are not one for each of 2"):
        batch.start(np.array([0, 1]), [9])
    for seed in (1.9, "3", [1, 2, 3.5]):
        with pytest.raises(TypeError):
            batch.reset(seed)
    assert batch.save_matches() == before, "chance included"


# --- Who plays


def test_a_game_s_line_up_is_kept_over_its_matches() -> None:
    batch = new_batch(4, opponents=[RACER, RANDOM, SPREAD], draw="in order")
    batch.arrange(
        np.array([2, 0]),
        seats=["any", (0, 3)],
        opponents=[["spread"], [RANDOM, "racer"]],
    )
    batch.reset(1)
    for _ in range(5):
        assert batch.control[0].tolist() == [-1, 1, 0, -1]
        assert batch.control[1].tolist() == [2, -1, 0, 1], "as constructed"
        assert sorted(batch.control[2]) == [-1, 2, 2, 2]
        batch.start_next(np.arange(4))


def test_agents_are_drawn_from_a_game_s_own() -> None:
    batch = new_batch(2, opponents=[RACER, RANDOM, SPREAD], draw="each match")
    batch.arrange(np.array([1]), opponents=[[SPREAD, RACER]])
    batch.reset(1)
    drawn: list[set[int]] = [set(), set()]
    for _ in range(30):
        for game in range(2):
            drawn[game] |= set(batch.control[game].tolist())
        batch.start_next(np.arange(2))
    assert drawn == [{-1, 0, 1, 2}, {-1, 0, 2}]


def test_a_copy_keeps_the_line_ups() -> None:
    batch = new_batch(3, opponents=[RACER, RANDOM, SPREAD])
    batch.arrange(np.array([1]), seats=[3], opponents=["spread"])
    batch.reset(1)
    play(batch, 50)
    other = copy.deepcopy(batch)
    check_same(play(batch), play(other))
    assert other.control[1].tolist() == [2, 2, 2, -1]


@pytest.mark.parametrize(
    ("arrangement", "message"),
    [
        ({"seats": [0, 1]}, "seats must be a list with an entry for each of 1 matches"),
        ({"seats": ["none"]}, 'seats="none" leaves the caller nothing to decide'),
        ({"seats": [[0, 0]]}, "seat 0 stands twice in seats"),
        ({"seats": [3], "opponents": ["spread"]}, "opponent 'spread' is not one of"),
        ({"opponents": [[]]}, "opponents must name 1 to 64 agents, not 0"),
        ({"opponents": [7]}, "opponent 7 is not one of the environment's: 'racer', 'random'"),
    ],
)
def test_line_ups_that_cannot_be_change_nothing(arrangement: Any, message: str) -> None:
    batch = new_batch(2)
    batch.reset(0)
    before = batch.save_matches()
    with pytest.raises(ValueError, match=re.escape(message)):
        batch.arrange(np.array([1]), **arrangement)
    assert batch.save_matches() == before


# --- The last move, and how others see a game


def after(game: Record, turn: Record, ruleset: Ruleset) -> dict[str, Any]:
    """Return STATE after a turn, and before the next roll."""
    played = game.copy()
    assert engine.play(played, ruleset.packed, turn, SILENT) == engine.LEGAL
    return state_to_json(played)


@EVERY_ENCODING
@pytest.mark.parametrize("ruleset", [JOURNEY, BRAWL], ids=["journey", "brawl"])
@pytest.mark.parametrize("seats", [(0, 1, 2, 3), (0, 1), 2])
def test_the_last_move_is_the_one_that_led_here(
    encoding: str, ruleset: Ruleset, seats: Any
) -> None:
    opponents = [] if seats == (0, 1, 2, 3) else [RACER, RANDOM]
    batch = new_batch(
        2, ruleset=ruleset, encoding=encoding, seats=seats, opponents=opponents, remember=True
    )
    batch.reset(3)
    deal = Dealer(batch.encoding, 1, range(2))
    known = 0
    for _ in range(400):
        for index in range(2):
            move = batch.last_move(index)
            assert (move is None) == (batch.games["turn"][index] == 0)
            if move is None:
                continue
            game, turn = move
            known += 1
            assert game["turn"] == batch.games["turn"][index] - 1
            now = batch.games[index].copy()
            # Its roll has been received since: what changed with it is left out.
            expected, here = after(game, turn, ruleset), state_to_json(now)
            if now["phase"] != ROLL:
                for state in (expected, here):
                    for name in ("store", "credits"):
                        state[name][now["seat"]] = None
            assert here == expected
        batch.step(deal(batch.masks))
        batch.start_next(np.flatnonzero(batch.terminated))
    assert known > 700


def test_remembering_changes_nothing_else() -> None:
    plain, remembering = new_batch(3), new_batch(3, remember=True)
    plain.reset(2)
    remembering.reset(2)
    check_same(play(plain), play(remembering))
    assert plain.last_move(0) is None


def test_a_copy_remembers_the_last_move() -> None:
    batch = new_batch(2, remember=True)
    batch.reset(2)
    play(batch, 20)
    ours, theirs = batch.last_move(1), copy.deepcopy(batch).last_move(1)
    assert ours is not None
    assert theirs is not None
    assert [part.tobytes() for part in ours] == [part.tobytes() for part in theirs]


@EVERY_ENCODING
def test_a_game_looks_to_every_seat_as_on_its_turn_but_for_the_decision(encoding: str) -> None:
    batch = new_batch(1, encoding=encoding, seats=(0, 1, 2, 3), opponents=[])
    batch.reset(4)
    play(batch, 60)
    before = batch.save_matches()
    acting = int(batch.seats[0])
    parts = batch.layout.split(batch.observations[0])
    for seat in range(4):
        seen = batch.layout.split(batch.look(0, seat))
        for name in ("board", "midpoint", "progression", "roll_store", "exit_credits", "scores"):
            turned = np.roll(parts[name], acting - seat, axis=0)
            if name == "board":  # but for its angles, which are counted from the seat's own tile
                turned, seen[name] = turned[..., [0, 1, 4, 5]], seen[name][..., [0, 1, 4, 5]]
            assert np.array_equal(seen[name], turned), name
        assert seen["clock"] == parts["clock"]
        assert not seen["legal_guards"].any()
        assert not seen[batch.layout.sections[-1].name].any()
    assert batch.save_matches() == before


@pytest.mark.parametrize("seat", [-1, 4])
def test_nobody_looks_from_a_seat_that_is_not_there(seat: int) -> None:
    batch = new_batch(1)
    batch.reset(0)
    with pytest.raises(ValueError, match=f"seat {seat} is not one of 0, 1, 2, 3"):
        batch.look(0, seat)


def test_whole_matches_are_not_rearranged() -> None:
    batch = new_batch(2, seats="none")
    with pytest.raises(ValueError, match="play_out says who plays"):
        batch.arrange(np.array([0]), seats=[0])
    batch.play_out([1, 2], [0, 1, 0, 1])
    assert batch.terminated.all()


def test_games_of_a_trace_are_compared_at_all() -> None:
    batch = new_batch(2)
    batch.reset(0)
    traced = play(batch, 40)
    with pytest.raises(AssertionError):
        check_same(games_of(traced, [0]), games_of(traced, [1]))

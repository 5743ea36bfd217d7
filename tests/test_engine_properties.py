"""What must hold in every match, whatever is rolled and chosen; and refusals of illegal turns."""

import json
import os
import random
import subprocess
import sys
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import random_policies
from positions import BRAWL, G1, HOME, JOURNEY, YARD, any_rules, any_state
from referee import IllegalTurn as RefereeIllegalTurn
from referee import Referee
from retinue.envs.game import board, engine, jit
from retinue.envs.game.engine import IllegalTurn
from retinue.envs.game.events import events_to_json, new_log
from retinue.envs.game.record import turn_to_json
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.state import (
    CHOOSE,
    OVER,
    ROLL,
    empty_turn,
    new_game,
    state_from_json,
    state_to_json,
    totals,
)

EXAMPLES = 60 if jit.ENABLED else 5
CHECKED = settings(max_examples=EXAMPLES, database=None, deadline=None)
SEEDS = st.integers(0, 2**53 - 1)


class Play(NamedTuple):
    """A match that can be gone on with."""

    ruleset: Ruleset
    game: Any
    seed: int
    policy: int

    def choice(self) -> Any:
        """Return the policy's turn for the position."""
        turn = empty_turn()
        random_policies.choose(
            self.game, self.ruleset.packed, self.policy, np.uint64(self.seed), turn
        )
        return turn

    def receive(self) -> None:
        engine.roll(self.game, self.ruleset.packed, np.uint64(self.seed))

    def advance(self, turns: int) -> None:
        """Play some turns, or to the end."""
        for _ in range(turns):
            if self.game["phase"] == OVER:
                break
            self.receive()
            engine.play_or_raise(self.game, self.ruleset, self.choice(), new_log())


class Start(NamedTuple):
    """How to come to a match under way, in the few numbers that a failing test shows."""

    ruleset: Ruleset | None
    """None for random rules."""
    anywhere: bool
    """From a random position, not from the start of a match."""
    chance: int
    """Seed of the random rules and the random position."""
    seed: int
    policy: int
    turns: int

    def play(self) -> Play:
        chance = random.Random(self.chance)
        ruleset = self.ruleset or any_rules(chance)
        state = any_state(chance, ruleset) if self.anywhere else state_to_json(new_game(ruleset))
        play = Play(ruleset, state_from_json(state, ruleset), self.seed, self.policy)
        play.advance(self.turns)
        return play


def starts(most_turns: int) -> st.SearchStrategy[Start]:
    return st.builds(
        Start,
        ruleset=st.sampled_from([JOURNEY, BRAWL, None]),
        anywhere=st.booleans(),
        chance=SEEDS,
        seed=SEEDS,
        policy=st.sampled_from([random_policies.UNIFORM, random_policies.CROWDING]),
        turns=st.integers(0, most_turns),
    )


def recounted_stacks(game: Any) -> list[int]:
    stacks = [0] * board.LOOP
    for seat in range(board.SEATS):
        for offset in game["position"][seat, : board.GUARDS].tolist():
            if 0 <= offset < board.LOOP:
                stacks[(offset + 17 * seat) % 68] += 1 << (4 * seat)
    return stacks


def check_between_turns(game: Any, ruleset: Ruleset) -> None:
    position = game["position"]
    assert ((position >= YARD) & (position <= ruleset.home)).all()
    assert game["stacks"].tolist() == recounted_stacks(game)
    assert not (game["midpoint"] & (position == YARD)).any()
    assert ((game["midpoint"] == 0) | (game["midpoint"] == 1)).all()
    assert not game["remaining"].any()
    assert (game["dice"], game["credits_earned"]) == (0, 0)
    assert ((game["credits"] >= 0) & (game["credits"] <= ruleset.max_credits)).all()
    assert (game["store"] >= 0).all()
    assert (game["store"].sum(axis=1) <= ruleset.store_capacity).all()
    assert (game["progression"] >= 0).all()
    assert not game["progression"][position == YARD].any()
    parts = game["progression"].sum(axis=1) + game["combat"] + game["bonus"]
    assert totals(game).tolist() == parts.tolist()
    assert [engine.total(game, seat) for seat in range(4)] == parts.tolist()
    home = (position == ruleset.home).all(axis=1)
    assert (
        sorted(game["finish_order"][: game["finished"]].tolist()) == np.flatnonzero(home).tolist()
    )
    assert (game["phase"] == OVER) == (home.all() or game["clock_seconds"] == 0)
    assert game["phase"] == OVER or not home[game["seat"]]


def check_turn(before: Any, after: Any, turn: Any, events: list[dict[str, Any]]) -> None:
    """What one turn may change, from the choice on: and that the events tell all of the score."""
    seat = before["seat"]
    others = [other for other in range(4) if other != seat]
    change = totals(after) - totals(before)
    assert change[seat] == sum(event.get("points", 0) for event in events)
    lost = [0] * 4
    expected = before["position"].copy()
    for event in events:
        if event["type"] == "capture":
            place = (event["seat"], event["piece"])
            assert event["seat"] != seat
            lost[event["seat"]] += int(before["progression"][place])
            expected[place] = YARD
    assert [change[other] for other in others] == [-lost[other] for other in others]
    assert (after["position"][others] == expected[others]).all()
    for name in ("store", "combat", "bonus", "turns_taken"):
        assert (after[name][others] == before[name][others]).all(), name
    assert (before["store"][seat] - after["store"][seat]).tolist() == turn["rolls"].sum(0).tolist()
    assert (after["progression"][seat] >= before["progression"][seat]).all()
    unmoved = [*(turn["rolls"].sum(1) == 0).tolist(), turn["noble_steps"] == 0]
    assert (after["position"][seat] == before["position"][seat])[unmoved].all()
    trimmed = sum(event.get("trimmed", 0) for event in events)
    assert trimmed <= int((turn["rolls"] * np.arange(1, 7)).sum()) + turn["noble_steps"]


@CHECKED
@given(starts(60), st.integers(1, 12))
def test_what_holds_in_every_turn(start: Start, turns: int) -> None:
    play = start.play()
    game, ruleset = play.game, play.ruleset
    check_between_turns(game, ruleset)
    for _ in range(turns):
        if game["phase"] == OVER:
            break
        before = game.copy()
        play.receive()
        dice = np.bincount(game["rolled"][: game["dice"]], minlength=7)[1:]
        assert (game["store"][game["seat"]] - before["store"][game["seat"]] == dice).all()
        assert (
            game["credits"][game["seat"]] - before["credits"][game["seat"]]
            == game["credits_earned"]
        )
        chosen, turn, log = game.copy(), play.choice(), new_log()
        engine.play_or_raise(game, ruleset, turn, log)
        check_between_turns(game, ruleset)
        check_turn(chosen, game, turn, events_to_json(log))
        clock = max(0, before["clock_seconds"] - ruleset.turn_seconds)
        assert (game["turn"], game["clock_seconds"]) == (before["turn"] + 1, clock)


@CHECKED
@given(starts(180))
def test_a_state_survives_json(start: Start) -> None:
    ruleset, game = start.play()[:2]
    if game["phase"] == OVER:
        return
    again = state_from_json(json.loads(json.dumps(state_to_json(game))), ruleset)
    for name in sorted(game.dtype.names, key="rolled".__eq__):
        assert again[name].tolist() == game[name].tolist(), name
    assert again.tobytes() == game.tobytes()


# --- The board looks the same from every seat


def turned(state: dict[str, Any], mover: int) -> dict[str, Any]:
    """The state with every seat's things given to the next seat, which is to move."""
    rows = {
        name: [entry[-1], *entry[:-1]] for name, entry in state.items() if isinstance(entry, list)
    }
    rows["turns_taken"] = [1 + (seat < (mover + 1) % 4) for seat in range(4)]
    return {**state, **rows}


@CHECKED
@given(starts(60), st.integers(1, 12))
def test_a_turned_board_gives_a_turned_match(start: Start, turns: int) -> None:
    play = start.play()
    ruleset = play.ruleset
    state, mover = state_to_json(play.game), int(play.game["seat"])
    if play.game["phase"] == OVER:
        return
    # Turn counts that both boards allow: they say who moves, and that nobody's is the first.
    state["turns_taken"] = [1 + (seat < mover) for seat in range(4)]
    play = play._replace(game=state_from_json(state, ruleset))
    game, other = play.game, state_from_json(turned(state, mover), ruleset)
    for _ in range(turns):
        assert other["seat"] == (game["seat"] + 1) % 4
        play.receive()
        engine.set_dice(other, ruleset, game["rolled"][: game["dice"]].tolist())
        turn, logs = play.choice(), (new_log(), new_log())
        engine.play_or_raise(game, ruleset, turn, logs[0])
        engine.play_or_raise(other, ruleset, turn, logs[1])
        ours, theirs = (events_to_json(log) for log in logs)
        assert theirs == [
            {**event, "seat": (event["seat"] + 1) % 4} if "seat" in event else event
            for event in ours
        ]
        expected, found = turned(state_to_json(game), mover), state_to_json(other)
        del expected["turns_taken"], found["turns_taken"]
        assert found == expected
        assert other["phase"] == game["phase"]
        if game["phase"] == OVER:
            break


# --- Illegal turns


def one_roll(guard: int, value: int, count: int = 1) -> Any:
    turn = empty_turn()
    turn["rolls"][guard, value - 1] = count
    return turn


def with_entries(**entries: int) -> Any:
    turn = empty_turn()
    for name, value in entries.items():
        turn[name] = value
    return turn


REFUSALS = [  # the Guards' and the Noble's positions, the turn, the verdict, what is said
    ((), None, engine.NOT_ROLLED, "green's roll has not been received yet"),
    ((), None, engine.MATCH_OVER, "the match is over"),
    ((), with_entries(direction=2), engine.BAD_DIRECTION, "direction 2 is neither 0"),
    ((), with_entries(direction=-1), engine.BAD_DIRECTION, "direction -1 is neither 0"),
    ((), with_entries(noble_steps=7), engine.BAD_NOBLE_STEPS, "must be 0 to 6, not 7"),
    ((), with_entries(noble_steps=-1), engine.BAD_NOBLE_STEPS, "must be 0 to 6, not -1"),
    ((), with_entries(noble_after=1), engine.BAD_NOBLE_ORDER, "with 0 steps before; not 1"),
    ((), with_entries(noble_steps=1, noble_after=2), engine.BAD_NOBLE_ORDER, "not 2"),
    ((), with_entries(noble_steps=1, noble_after=-1), engine.BAD_NOBLE_ORDER, "not -1"),
    ((), one_roll(1, 3, -1), engine.NEGATIVE_ROLLS, "Guard G2 is given a negative number of 3s"),
    ((), one_roll(0, 4, 3), engine.TOO_FEW_ROLLS, "3 rolls of 4 are assigned, but green's store"),
    (
        (HOME,),
        one_roll(G1, 1),
        engine.GUARD_HOME,
        "a roll of 1 is assigned to green's Guard G1, who is Home",
    ),
    ((), one_roll(2, 2), engine.NO_CREDIT, "Guard G3 in the Yard, but its 2 exit credits belong"),
    (
        (YARD, YARD, YARD, YARD, HOME),
        with_entries(noble_steps=3),
        engine.NOBLE_HOME,
        "green's Noble is Home and cannot move 3 steps",
    ),
]


@pytest.mark.parametrize(("places", "turn", "verdict", "words"), REFUSALS)
def test_an_illegal_turn_is_refused_and_changes_nothing(
    places: tuple[int, ...], turn: Any, verdict: int, words: str
) -> None:
    game, log = new_game(JOURNEY), new_log()
    game["position"][0, : len(places)] = places
    game["store"][0] = 2
    phases = {engine.NOT_ROLLED: ROLL, engine.MATCH_OVER: OVER}
    game["phase"] = phases.get(verdict, CHOOSE)
    turn = empty_turn() if turn is None else turn
    before = game.tobytes(), turn.tobytes(), log.tobytes()
    assert engine.play(game, JOURNEY.packed, turn, log) % 16 == verdict
    with pytest.raises(IllegalTurn) as caught:
        engine.play_or_raise(game, JOURNEY, turn, log)
    assert words in str(caught.value)
    assert before == (game.tobytes(), turn.tobytes(), log.tobytes())


def test_every_verdict_has_its_refusal() -> None:
    assert {verdict for _, _, verdict, _ in REFUSALS} == set(range(1, 11))


CHANGES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(-2, 3)), max_size=3)


@settings(CHECKED, max_examples=5 * EXAMPLES)
@given(starts(30), CHANGES, st.integers(-1, 1), st.booleans())
def test_engine_and_referee_refuse_the_same_turns(
    start: Start, changes: list[tuple[int, int, int]], steps: int, swap: bool
) -> None:
    play = start.play()
    game, ruleset = play.game, play.ruleset
    if game["phase"] == OVER:
        return
    play.receive()
    turn, log = play.choice(), new_log()
    for guard, value, change in changes:
        turn["rolls"][guard, value] += change
    turn["noble_steps"] += steps
    turn["noble_after"] ^= swap
    before = game.tobytes()
    referee = Referee(ruleset.model_dump(mode="json"), state_to_json(game))
    verdict = engine.play(game, ruleset.packed, turn, log)
    if verdict == engine.LEGAL:
        assert referee.play(turn_to_json(turn)) == events_to_json(log)
        assert referee.state() == state_to_json(game)
        return
    if (turn["rolls"] >= 0).all():  # the referee knows no negative number of rolls
        with pytest.raises(RefereeIllegalTurn):
            referee.play(turn_to_json(turn))
    assert game.tobytes() == before
    assert len(engine.explain(verdict, game, turn)) > 10


# --- Without the compiler


def match_states(policy: int, seed: int) -> list[dict[str, Any]]:
    """Every state of one Brawl match."""
    played = random_policies.play_matches(random_policies.new_games(BRAWL, 1), BRAWL, policy, seed)
    return [state_to_json(game) for game in played["after"][0, : played["lengths"][0]]]


@pytest.mark.slow
@pytest.mark.parametrize("policy", [random_policies.UNIFORM, random_policies.CROWDING])
def test_the_same_code_plays_the_same_match_uncompiled(policy: int) -> None:
    program = (
        "import json, test_engine_properties as here\n"
        f"print(json.dumps([here.jit.ENABLED, here.match_states({policy}, 3)]))"
    )
    other = "1" if jit.ENABLED else "0"
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={
            **os.environ,
            "NUMBA_DISABLE_JIT": other,
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    enabled, states = json.loads(run.stdout)
    assert enabled is not jit.ENABLED
    assert states == match_states(policy, 3)
    assert len(states) > 50

"""Candidate turns: legal, different, exactly valued, alike for all seats; and what they find."""

import itertools
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from playing import any_position, is_legal, turned
from positions import (
    BRAWL,
    G1,
    G2,
    G3,
    G4,
    GREEN,
    HOME,
    JOURNEY,
    NOBLE,
    RED,
    Scene,
    changed,
    stack,
)
from proposing import (
    CAREFUL,
    GREEDY,
    Proposals,
    drawn_turns,
    facts_of,
    late_position,
    played_positions,
    propose_for,
)
from retinue.agents.strategies import make_strategy
from retinue.envs.actions import MAX_CANDIDATES
from retinue.envs.facts import FACT_NAMES, pack_weights
from retinue.envs.game import engine, jit
from retinue.envs.game.events import SILENT
from retinue.envs.game.ruleset import MAX_STORE, Ruleset
from retinue.envs.game.state import CHOOSE, GAME, Record, empty_turn
from retinue.envs.opponents import View

SOME = 40 if jit.ENABLED else 2
SHIPPED = pytest.mark.parametrize("ruleset", [JOURNEY, BRAWL], ids=["journey", "brawl"])
LARGE = changed(BRAWL, store_capacity=MAX_STORE, dice=[[MAX_STORE - 1, 1], [MAX_STORE, 0]])


def after(game: Record, ruleset: Ruleset, turn: Record) -> Record:
    """Return the game after a turn."""
    played = np.array([game], GAME)[0]
    assert engine.play(played, ruleset.packed, turn, SILENT) == engine.LEGAL
    return played


def moves_nothing(turn: Record) -> bool:
    return not (turn["noble_steps"] or turn["rolls"].any())


def check(
    game: Record, ruleset: Ruleset, weights: dict[str, float] = CAREFUL, candidates: int = 64
) -> Proposals:
    """Check all that is promised of candidates; return them."""
    found = propose_for(game, ruleset, weights, candidates)
    assert 1 <= len(found.turns) <= candidates
    assert moves_nothing(found.turns[0])
    for turn, row in zip(found.turns, found.rows, strict=True):
        assert is_legal(game, ruleset, turn)
        assert facts_of(game, ruleset, turn).tobytes() == row.tobytes()
    ends = {after(game, ruleset, turn).tobytes() for turn in found.turns}
    assert len(ends) == len(found.turns) == len(set(found.outcomes.tolist()))
    worth = found.rows.astype(np.float64) @ pack_weights(weights)
    np.testing.assert_allclose(found.values, worth, rtol=1e-4, atol=0.05)
    again = propose_for(game, ruleset, weights, candidates)
    for name in Proposals._fields:
        assert np.array_equal(getattr(found, name), getattr(again, name)), name
    return found


def best(found: Proposals) -> Record:
    return found.turns[found.values.argmax()]


def scene(pieces: dict[tuple[int, int], int], store: Iterable[int] = (), **entries: Any) -> Record:
    """Return a position in which Green is to choose, these rolls in its store."""
    entries.setdefault("ruleset", JOURNEY)
    counts = [list(store).count(value) for value in range(1, 7)]
    game = Scene(pieces, store=[counts, *[[0] * 6] * 3], **entries).game
    game["phase"] = CHOOSE
    return game


# --- What is promised of every list


@SHIPPED
def test_candidates_in_matches(ruleset: Ruleset) -> None:
    for index, (game, _) in enumerate(played_positions(ruleset)[:SOME]):
        check(game, ruleset, (CAREFUL, GREEDY)[index % 2], (64, 16, 2, MAX_CANDIDATES)[index % 4])


@SHIPPED
def test_candidates_near_the_end(ruleset: Ruleset) -> None:
    for chance in range(SOME):
        check(late_position(random.Random(chance), ruleset), ruleset)


@pytest.mark.parametrize("chance", range(SOME))
def test_candidates_under_any_rules(chance: int) -> None:
    game, ruleset = any_position(random.Random(chance))
    choices = random.Random(chance)
    weights = {name: choices.gauss(0, 1) * abs(weight) for name, weight in CAREFUL.items()}
    check(game, ruleset, weights)


@pytest.mark.parametrize("ruleset", [JOURNEY, BRAWL, LARGE], ids=["journey", "brawl", "large"])
@pytest.mark.parametrize("least", [1, 3])
def test_a_full_store(ruleset: Ruleset, least: int) -> None:
    pieces = {(GREEN, G1): 3, (GREEN, G2): 3, (GREEN, G3): 40, (GREEN, NOBLE): 20, (RED, G1): 0}
    values = itertools.cycle(range(least, 7))
    store = [next(values) for _ in range(ruleset.store_capacity)]
    for entries in ({}, {"midpoint": [(GREEN, G3)]}):
        game = scene({**pieces, **stack(RED, 30)}, store, ruleset=ruleset, **entries)
        for weights in (CAREFUL, GREEDY):
            found = check(game, ruleset, weights, MAX_CANDIDATES)
            assert len(found.turns) > MAX_CANDIDATES // 2
            assert not moves_nothing(best(found))


@pytest.mark.parametrize("kept", range(3))
def test_a_small_store(kept: int) -> None:
    """Without rolls only the Noble can move: 6 steps in 2 directions and none."""
    game = scene({(GREEN, NOBLE): 20}, [4] * kept, credits=[kept // 2, 0, 0, 0])
    found = check(game, JOURNEY, candidates=MAX_CANDIDATES)
    leave = 2 * 2 * 7 if kept == 2 else 0  # in each direction G1 with one roll or both
    assert len(found.turns) == 13 + leave


def test_only_one_piece_is_left() -> None:
    others = {(GREEN, piece): HOME for piece in (G1, G2, G3, NOBLE)}
    game = scene({**others, (GREEN, G4): 72}, [1, 2, 2], midpoint=others)
    found = check(game, JOURNEY)
    assert len(found.turns) == 6  # kept: all, 1 spent, 2 spent, 1 + 2 or 2 + 2 in Home, or all
    assert after(game, JOURNEY, best(found))["finished"] == 1


def test_only_the_noble_is_left() -> None:
    others = {(GREEN, piece): HOME for piece in (G1, G2, G3, G4)}
    game = scene({**others, (GREEN, NOBLE): 71}, [5] * 3, midpoint=[*others, (GREEN, NOBLE)])
    found = check(game, JOURNEY)
    assert sorted(found.turns["noble_steps"].tolist()) == [0, 1, 2, 3, 4]
    assert not found.turns["rolls"].any()
    assert best(found)["noble_steps"] == 4


def test_the_noble_is_home() -> None:
    noble = {(GREEN, NOBLE): HOME}
    game = scene({**noble, (GREEN, G1): 5}, [2, 3], midpoint=noble, credits=[0] * 4)
    found = check(game, JOURNEY)
    assert not found.turns["noble_steps"].any()
    assert len(found.turns) == 1 + 2 * 3  # in each direction 2, 3 or 5 steps


def test_nothing_can_move() -> None:
    game = scene({(GREEN, NOBLE): HOME}, [6] * 5, midpoint=[(GREEN, NOBLE)], credits=[0, 0, 0, 0])
    found = check(game, JOURNEY)
    assert len(found.turns) == 1


def test_the_last_turn_of_a_match() -> None:
    """Nothing counts any more but points."""
    pieces = {(GREEN, G1): 5, (GREEN, G2): 30, (GREEN, NOBLE): 40}
    game = scene({**pieces, (RED, G1): 10}, [1, 2, 6], clock_seconds=10)
    found = check(game, JOURNEY)
    faded = found.rows[:, [FACT_NAMES.index(name) for name in ("open_guards", "prey", "kept")]]
    risks = found.rows[:, [FACT_NAMES.index(name) for name in ("bounty", "setbacks")]]
    assert not faded.any()
    assert not risks.any()


# --- Every seat


@SHIPPED
def test_every_seat_gets_the_same_candidates(ruleset: Ruleset) -> None:
    for game, _ in played_positions(ruleset)[:SOME]:
        lists = [propose_for(turned(game, by, ruleset), ruleset, CAREFUL) for by in range(4)]
        for found in lists[1:]:
            assert found.turns.tobytes() == lists[0].turns.tobytes()
            assert found.rows.tobytes() == lists[0].rows.tobytes()


# --- What is found


def all_turns(game: Record, ruleset: Ruleset) -> Iterator[Record]:
    """Yield every legal turn."""
    store = game["store"][game["seat"]].tolist()
    rolls = [value for value, count in enumerate(store) for _ in range(count)]
    guards = [guard for guard in range(4) if engine.legal_guards(game, ruleset.packed) >> guard & 1]
    nobles = 13 if engine.noble_may_move(game, ruleset.packed) else 1
    for takers in itertools.product([None, *guards], repeat=len(rolls)):
        for direction, noble in itertools.product(range(2), range(nobles)):
            turn = empty_turn()
            turn["direction"] = direction
            turn["noble_steps"], turn["noble_after"] = noble - 6 * (noble > 6), noble > 6
            for guard, value in zip(takers, rolls, strict=True):
                if guard is not None:
                    turn["rolls"][guard, value] += 1
            yield turn


@pytest.mark.skipif(not jit.ENABLED, reason="tries thousands of turns")
@SHIPPED
def test_the_best_of_all_turns_is_among_them(ruleset: Ruleset) -> None:
    """With few rolls all turns can be tried."""
    weights = pack_weights(CAREFUL)
    lost: list[float] = []
    for game, _ in played_positions(ruleset)[:10]:
        few = np.array([game], GAME)[0]
        kept = random.Random(len(lost)).choices(range(6), k=3)
        few["store"][few["seat"]] = np.bincount(kept, minlength=6)
        values = [float(facts_of(few, ruleset, turn) @ weights) for turn in all_turns(few, ruleset)]
        found = propose_for(few, ruleset, CAREFUL)
        assert found.values.max() <= max(values) + 0.05
        lost.append(max(values) - found.values.max())
    assert np.mean(np.array(lost) < 0.05) >= 0.9, lost


@pytest.mark.parametrize("store", [[5, 5], [1, 5, 2, 5, 6], [3, 4, 3, 4, 6]])
def test_guards_pass_a_stack_together(store: list[int]) -> None:
    """Each alone would be stopped by the two on the third tile."""
    noble = {(GREEN, NOBLE): HOME}
    pieces = {(GREEN, G1): 18, (GREEN, G2): 18, **noble, **stack(RED, 21), (RED, G3): 0}
    game = scene(pieces, store, midpoint=noble, credits=[0] * 4)
    found = check(game, JOURNEY, {"margin": 1.0, "forward_before": 10.0, "kept": -20.0})
    assert (after(game, JOURNEY, best(found))["position"][GREEN, :2] >= 21).all()


@pytest.mark.parametrize("store", [[5, 2], [5, 2, 1, 6], [4, 1, 2, 6, 6]])
def test_two_guards_meet(store: list[int]) -> None:
    noble = {(GREEN, NOBLE): HOME}
    game = scene(
        {(GREEN, G1): 10, (GREEN, G2): 13, **noble}, store, midpoint=noble, credits=[0] * 4
    )
    found = check(game, JOURNEY, {"margin": 0.01, "stacked": 25.0, "steps_guards": -0.01})
    one, other = after(game, JOURNEY, best(found))["position"][GREEN, :2]
    assert one == other


def test_ways_round_that_end_alike_are_different_turns() -> None:
    """34 steps either way end on the same tile, but only one of the two passes the midpoint."""
    noble = {(GREEN, NOBLE): HOME}
    game = scene({(GREEN, G1): 10, **noble}, [6, 6, 6, 6, 6, 4], midpoint=noble, credits=[0] * 4)
    found = check(game, JOURNEY, candidates=MAX_CANDIDATES)
    whole = found.turns[found.turns["rolls"].sum(axis=(1, 2)) == 6]
    assert sorted(whole["direction"].tolist()) == [0, 1]


# --- As ordinary Python

LIST = """
import json, random
from positions import BRAWL, JOURNEY
from proposing import CAREFUL, propose_for
from playing import any_position

lists = []
for chance in range(4):
    game, ruleset = any_position(random.Random(chance), (JOURNEY, BRAWL)[chance % 2])
    found = propose_for(game, ruleset, CAREFUL, 12)
    lists.append([found.outcomes.tolist(), found.rows.tolist(), found.values.tolist()])
print(json.dumps(lists))
"""


def test_interpreted_candidates_are_compiled_ones(tmp_path: Path) -> None:
    """But for ties, which rounding decides: compiled sums have more digits than NumPy's."""
    found = []
    for disabled in ("0", "1"):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", LIST],
            env={
                **os.environ,
                "NUMBA_DISABLE_JIT": disabled,
                "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]),
            },
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    for (ends, rows, values), (other_ends, other_rows, other_values) in zip(*found, strict=True):
        assert (ends[0], len(ends)) == (other_ends[0], len(other_ends))
        assert max(values) == pytest.approx(max(other_values), rel=1e-5)
        both = [end for end in ends if end in other_ends]
        assert len(both) >= len(ends) / 2
        for end in both:
            row, other = rows[ends.index(end)], other_rows[other_ends.index(end)]
            assert row == pytest.approx(other, rel=1e-4, abs=1e-3)


# --- Drawn at random


@pytest.mark.parametrize("candidates", [1, 5, 200])
def test_the_best_of_drawn_turns_is_chosen(candidates: int) -> None:
    agent = make_strategy("drawing", CAREFUL, JOURNEY, candidates, at_random=True)
    weights = pack_weights(CAREFUL).astype(np.float64)
    for key, (game, _) in enumerate(played_positions(JOURNEY)[: 20 if jit.ENABLED else 1]):
        view = View(np.array([game], GAME), np.array([key], np.uint64), JOURNEY)
        (chosen,) = agent.choose(view, np.random.default_rng(0))
        drawn = drawn_turns(game, JOURNEY, key, candidates)
        assert all(is_legal(game, JOURNEY, turn) for turn in drawn)
        values = [float(facts_of(game, JOURNEY, turn) @ weights) for turn in drawn]
        assert chosen.tobytes() in {turn.tobytes() for turn in drawn}
        assert float(facts_of(game, JOURNEY, chosen) @ weights) >= max(values) - 0.01


def test_without_weights_the_first_drawn_turn_is_chosen() -> None:
    agent = make_strategy("drawing", {}, JOURNEY, 10, at_random=True)
    game, _ = played_positions(JOURNEY)[0]
    keys = np.arange(20, dtype=np.uint64)
    turns = agent.choose(View(np.array([game] * 20, GAME), keys, JOURNEY), np.random.default_rng(0))
    for key, turn in zip(keys, turns, strict=True):
        assert turn.tobytes() == drawn_turns(game, JOURNEY, int(key), 1)[0].tobytes()
    assert len({turn.tobytes() for turn in turns}) > 10

"""The action encodings: exact masks, one turn however it is chosen, harmless illegal actions."""

import random
from collections import Counter
from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from playing import (
    END,
    PLANS,
    Dealer,
    Draft,
    any_position,
    any_turn,
    considered,
    is_legal,
    put,
    step_actions,
    turn_action,
    turn_mask,
    turn_of,
)
from positions import BRAWL, GREEN, JOURNEY, NOBLE, Scene, any_rules, any_state
from retinue.envs.actions import ENCODINGS, END_TURN, MAX_MASK, MAX_PARTS, Encoding, describe_noble
from retinue.envs.batch import Batch
from retinue.envs.game import engine
from retinue.envs.game.events import SILENT
from retinue.envs.game.ruleset import MAX_STORE, Ruleset
from retinue.envs.game.state import CHOOSE, Record, empty_turn

MODES = pytest.mark.parametrize("ruleset", [JOURNEY, BRAWL], ids=["journey", "brawl"])
ALL_SEATS = (0, 1, 2, 3)
HUGE = [-1, -(2**31), 51, 100, 2**31 - 1]
FAR = [2**32, 2**32 + 13, 2**32 + END, -(2**32), 2**40 + 27, 2**63 - 1, -(2**63)]
"""Beyond 32 bits, mostly such that the low 32 bits alone are a legal action."""


def four_hands(ruleset: Ruleset, encoding: str, games: int = 1) -> Batch:
    return Batch(ruleset, games, encoding=encoding, seats=ALL_SEATS, threads=1)


# --- Masks


@MODES
def test_the_masks_of_steps_are_what_the_engine_accepts(ruleset: Ruleset) -> None:
    batch = four_hands(ruleset, "steps")
    batch.reset(5)
    deal, decisions = Dealer(batch.encoding, 5, [0]), 0
    while True:
        draft, complete = Draft(batch.games[0], ruleset), False
        while not complete:
            assert batch.masks[0].tolist() == draft.mask().tolist()
            assert batch.masks[0, END] == draft.is_planned, "the end is open once planned"
            action = deal(batch.masks)
            complete, illegal = draft.add(int(action[0]))
            assert not illegal
            ended = batch.step(action)
            decisions += 1
        if ended:
            break
    assert decisions > 500


@MODES
def test_the_masks_of_turn_are_what_the_engine_accepts(ruleset: Ruleset) -> None:
    batch = four_hands(ruleset, "turn")
    batch.reset(6)
    deal, turns = Dealer(batch.encoding, 6, [0]), 0
    ended = 0
    while not ended:
        assert batch.masks[0].tolist() == turn_mask(batch.games[0], ruleset).tolist()
        action = deal(batch.masks)
        meant, illegal = turn_of(batch.games[0], ruleset, action[0])
        assert is_legal(batch.games[0], ruleset, meant), "parts that are legal alone"
        assert not illegal
        ended = batch.step(action)
        turns += 1
    assert turns == ruleset.turns


@pytest.mark.parametrize("seed", range(12))
def test_masks_in_any_position_under_any_rules(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(4):
        game, ruleset = any_position(chance)
        turn = any_turn(game, ruleset, chance)
        _, _, masks = considered(
            game, Encoding("turn", ruleset), [turn_action(turn, game, ruleset)]
        )
        assert masks[0].tolist() == turn_mask(game, ruleset).tolist()
        actions = step_actions(turn)
        _, _, masks = considered(game, Encoding("steps", ruleset), actions)
        draft = Draft(game, ruleset)
        for action, mask in zip(actions, masks, strict=True):
            assert mask.tolist() == draft.mask().tolist()
            draft.add(action)


def test_the_positions_that_decide_a_mask_occur() -> None:
    seen: Counter[str] = Counter()
    chance = random.Random(0)
    for _ in range(100):
        game, ruleset = any_position(chance)
        seen["Noble Home"] += not engine.noble_may_move(game, ruleset.packed)
        guards = game["position"][game["seat"], :4]
        kept = [not engine.legal_guards(game, ruleset.packed) >> each & 1 for each in range(4)]
        seen["no credit left"] += bool(np.any(kept & (guards == -1)))
        seen["Guard Home"] += bool(np.any(guards == ruleset.home))
    assert min(seen[name] for name in ("Noble Home", "no credit left", "Guard Home")) > 5, seen


@MODES
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_after_the_end_the_mask_leaves_what_moves_nothing(ruleset: Ruleset, encoding: str) -> None:
    batch = four_hands(ruleset, encoding)
    batch.reset(7)
    deal = Dealer(batch.encoding, 7, [0])
    while not batch.step(deal(batch.masks)):
        pass
    parts = np.split(batch.masks[0], np.cumsum(batch.encoding.nvec)[:-1])
    legal = [np.flatnonzero(part).tolist() for part in parts]
    left = {
        "steps": [[0, 13]],
        "turn": [[0, 1], *[[0]] * (len(parts) - 1)],
        "candidates": [[0]],
    }
    assert legal == left[encoding]


# --- Both encodings, one turn


@given(seed=st.integers(0, 2**32))
def test_both_encodings_decode_to_the_same_turn(seed: int) -> None:
    chance = random.Random(seed)
    game, ruleset = any_position(chance)
    turn = any_turn(game, ruleset, chance)
    actions = step_actions(turn)
    shuffled = actions[1:-1]
    chance.shuffle(shuffled)
    by_steps, _, masks = considered(
        game, Encoding("steps", ruleset), [actions[0], *shuffled, END_TURN]
    )
    assert by_steps == turn
    assert all(mask[action] for mask, action in zip(masks, [actions[0], *shuffled], strict=False))
    at_once = turn_action(turn, game, ruleset)
    by_turn, _, _ = considered(game, Encoding("turn", ruleset), [at_once])
    assert by_turn == turn


def test_which_of_equal_rolls_is_given_makes_no_difference() -> None:
    scene = Scene({(GREEN, 0): 5, (GREEN, 1): 6}, store={GREEN: [0, 3, 0, 0, 0, 1]})
    scene.game["phase"] = CHOOSE
    turns = []
    for rolls in ([1, 2, 0, 2], [0, 1, 2, 2], [2, 0, 1, 2]):
        action = [1, 8, *rolls, *[0] * 8]
        turns.append(considered(scene.game, Encoding("turn", JOURNEY), [action])[0])
    expected = empty_turn()
    expected["direction"], expected["noble_steps"], expected["noble_after"] = 1, 2, 1
    expected["rolls"][0, 1] = expected["rolls"][1, 1] = expected["rolls"][1, 5] = 1
    assert turns == [expected] * 3


# --- Illegal actions


def any_action(mask: Any, chance: random.Random) -> int:
    """An action of ``steps``: legal, forbidden, or no action at all."""
    way = chance.random()
    if way < 0.5:
        return chance.choice(np.flatnonzero(mask).tolist())
    return chance.choice(np.flatnonzero(~mask).tolist() if way < 0.8 else HUGE)


def check_played(batch: Batch, before: Any, turn: Record) -> None:
    """Check that a turn, and nothing else, was played since ``before``; the next roll is made."""
    packed = batch.ruleset.packed
    assert engine.play(before, packed, turn, SILENT) == engine.LEGAL
    if not batch.terminated[0]:
        engine.roll(before, packed, batch.seeds[0])
    assert before.tobytes() == batch.games[0].tobytes()


@pytest.mark.parametrize("seed", range(8))
def test_illegal_actions_of_steps_are_passive(seed: int) -> None:
    chance = random.Random(seed)
    ruleset = [JOURNEY, BRAWL, any_rules(chance)][seed % 3].model_copy(
        update={"clock_seconds": 1000, "turn_seconds": 10}
    )
    batch = four_hands(ruleset, "steps")
    put(batch, [any_state(chance, ruleset) | {"clock_seconds": 1000}])
    refused = 0
    for _ in range(60):
        before, draft, complete = batch.games[0].copy(), Draft(batch.games[0], ruleset), False
        while not complete:
            action = any_action(batch.masks[0], chance)
            complete, illegal = draft.add(action)
            batch.step(np.array([action]))
            assert batch.illegal[0] == illegal
            refused += illegal
            if not complete:
                assert batch.games[0].tobytes() == before.tobytes(), "nothing is played yet"
                assert batch.turns[0] == draft.turn
        check_played(batch, before, draft.turn)
        if batch.terminated[0]:
            break
    assert refused > 50


@pytest.mark.parametrize("seed", range(8))
def test_illegal_parts_of_turn_are_passive(seed: int) -> None:
    chance = random.Random(seed)
    ruleset = [JOURNEY, BRAWL, any_rules(chance)][seed % 3]
    batch = four_hands(ruleset, "turn")
    batch.reset(seed)
    refused: Counter[bool] = Counter()
    ended = 0
    while not ended:
        before, action = batch.games[0].copy(), []
        share = chance.choice([0.0, 0.1, 0.5])
        for part in np.split(batch.masks[0], np.cumsum(batch.encoding.nvec)[:-1]):
            legal = np.flatnonzero(part).tolist()
            wrong = [*np.flatnonzero(~part).tolist(), *HUGE]
            action.append(chance.choice(wrong if chance.random() < share else legal))
        meant, illegal = turn_of(before, ruleset, action)
        ended = batch.step(np.array([action]))
        assert batch.illegal[0] == illegal
        refused[illegal] += 1
        check_played(batch, before, meant)
    assert min(refused[True], refused[False]) > 2


@pytest.mark.parametrize("action", FAR)
def test_an_action_beyond_32_bits_is_no_other_action(action: int) -> None:
    steps = four_hands(JOURNEY, "steps")
    steps.reset(8)
    steps.step(np.array([action]))
    assert steps.illegal[0]
    assert steps.turns[0] == empty_turn()
    steps.step(np.array([action]))
    assert steps.illegal[0]
    assert steps.games["turn"][0] == 1, "the turn is at its end"
    at_once = four_hands(JOURNEY, "turn")
    at_once.reset(8)
    before = at_once.games[0].copy()
    at_once.step(np.full((1, 14), action))
    assert at_once.illegal[0]
    check_played(at_once, before, empty_turn())


def test_a_plan_for_a_noble_that_is_home_keeps_its_direction() -> None:
    scene = Scene({(GREEN, 0): 5, (GREEN, NOBLE): 75}, store={GREEN: [1, 0, 0, 0, 0, 0]})
    scene.game["phase"] = CHOOSE
    for plan, direction in ((0, 0), (3, 0), (13, 1), (25, 1)):
        turn, _, masks = considered(scene.game, Encoding("steps", JOURNEY), [plan, 26, END])
        expected = empty_turn()
        expected["direction"], expected["rolls"][0, 0] = direction, 1
        assert turn == expected
        assert np.flatnonzero(masks[0]).tolist() == [0, 13]


def test_actions_of_unsigned_and_narrow_integers_are_taken() -> None:
    for dtype in (np.uint8, np.int8, np.int16, np.uint64):
        batch = four_hands(JOURNEY, "steps")
        batch.reset(9)
        batch.step(np.array([16], dtype))
        assert not batch.illegal[0]
        assert (batch.turns["direction"][0], batch.turns["noble_steps"][0]) == (1, 3)


# --- Their form


@pytest.mark.parametrize("actions", [np.zeros(2, int), np.zeros((3, 2), int), np.zeros(3)])
def test_actions_of_another_form_are_refused(actions: Any) -> None:
    batch = four_hands(JOURNEY, "steps", 3)
    batch.reset(1)
    before = batch.save_matches()
    with pytest.raises(ValueError, match=r"actions must be integers of shape \(3,\)"):
        batch.step(actions)
    assert batch.save_matches() == before


@MODES
def test_the_spaces_have_the_documented_sizes(ruleset: Ruleset) -> None:
    steps, turn = (Encoding(name, ruleset) for name in ("steps", "turn"))
    assert steps.action_space() == gymnasium.spaces.Discrete(51)
    assert steps.nvec == (51,)
    assert steps.mask_size == 51
    parts = [2, 13] + [5] * ruleset.store_capacity
    assert turn.action_space() == gymnasium.spaces.MultiDiscrete(parts)
    assert turn.nvec == tuple(parts)
    assert turn.mask_size == 15 + 5 * ruleset.store_capacity


def test_the_largest_rules_fit_the_arrays() -> None:
    ruleset = JOURNEY.model_copy(update={"store_capacity": MAX_STORE, "dice": ((MAX_STORE, 0),)})
    encoding = Encoding("turn", ruleset)
    assert (len(encoding.nvec), encoding.mask_size) == (MAX_PARTS, MAX_MASK) == (38, 195)


def test_an_unknown_encoding_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown encoding 'stepz': use steps, turn, candidates"):
        Encoding("stepz", JOURNEY)


def test_actions_in_words() -> None:
    encoding = Encoding("steps", JOURNEY)
    assert encoding.describe(0) == "forward, the Noble stays"
    assert encoding.describe(np.int64(16)) == "backward, the Noble moves 3 before the Guards"
    assert encoding.describe(12) == "forward, the Noble moves 6 after the Guards"
    assert encoding.describe(26) == "a 1 to G1"
    assert encoding.describe(49) == "a 6 to G4"
    assert encoding.describe(END) == "end the turn"
    words = [encoding.describe(action) for action in range(END + 1)]
    assert len(set(words)) == 51
    assert [describe_noble(choice) in words[choice] for choice in range(13)] == [True] * 13
    assert words.index("a 1 to G1") == PLANS

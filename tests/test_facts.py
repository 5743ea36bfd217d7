"""Facts of turns: the compiled ones are those of the reference, whoever is to move."""

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from facts_reference import facts
from playing import any_position, any_turn, turned
from positions import BRAWL, G1, GREEN, JOURNEY, RED, Scene, changed, values_for
from proposing import facts_of, late_position, played_positions
from retinue.envs.facts import (
    FACT_COUNT,
    FACT_NAMES,
    FACTS,
    LOSS,
    MARGIN,
    pack_weights,
)
from retinue.envs.game import jit
from retinue.envs.game.board import MIDPOINT
from retinue.envs.game.record import turn_to_json
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.state import CHOOSE, Record, empty_turn, state_to_json

PLAYED = 250 if jit.ENABLED else 10


def check(game: Record, ruleset: Ruleset, turn: Record) -> dict[str, float]:
    """Compare the facts of a turn with the reference; return them."""
    rules = ruleset.model_dump(mode="json")
    expected = facts(rules, state_to_json(game), turn_to_json(turn))
    assert set(expected) == set(FACT_NAMES)
    found = dict(zip(FACT_NAMES, facts_of(game, ruleset, turn).tolist(), strict=True))
    wrong = {
        name: (found[name], expected[name])
        for name in FACT_NAMES
        if not np.isclose(found[name], expected[name], rtol=1e-4, atol=1e-3)
    }
    assert not wrong, (wrong, state_to_json(game), turn_to_json(turn))
    return found


SHIPPED = pytest.mark.parametrize("ruleset", [JOURNEY, BRAWL], ids=["journey", "brawl"])


@SHIPPED
def test_facts_of_played_turns_are_the_references(ruleset: Ruleset) -> None:
    """Of turns that agents chose and of any others, in matches and near the end."""
    seen: Counter[str] = Counter()
    late = (late_position(random.Random(index), ruleset) for index in range(60))
    played = [*played_positions(ruleset)[:PLAYED], *((game, None) for game in late)]
    for index, (game, chosen) in enumerate(played):
        for turn in (chosen, any_turn(game, ruleset, random.Random(index))):
            if turn is not None:
                seen.update(name for name, value in check(game, ruleset, turn).items() if value)
    assert set(FACT_NAMES) - set(seen) == ({"bonus"} if ruleset is BRAWL else set())


@pytest.mark.parametrize("chance", range(120))
def test_facts_under_any_rules_are_the_references(chance: int) -> None:
    choices = random.Random(chance)
    game, ruleset = any_position(choices)
    game["midpoint"][game["position"] == MIDPOINT] = 1  # as it always is there (rules 2.9)
    for _ in range(2):
        check(game, ruleset, any_turn(game, ruleset, choices))


@pytest.mark.parametrize("moved", [67, 68, 69, 96])
def test_a_move_round_the_whole_loop(moved: int) -> None:
    """From tile 36 a Guard makes more than a round before its way turns off to Home."""
    rules = changed(BRAWL, store_capacity=36, dice=[[35, 1], [36, 0]])
    game = Scene({(GREEN, G1): 35}, rules, store=[values(moved), *[[0] * 6] * 3]).game
    game["phase"] = CHOOSE
    turn = empty_turn()
    turn["rolls"][G1] = values(moved)
    found = check(game, rules, turn)
    assert found["forward_before"] + found["forward_past"] == moved


def values(total: int) -> list[int]:
    """Return how many rolls of each value add up to a total."""
    return [values_for(total).count(value) for value in range(1, 7)]


@SHIPPED
def test_every_seat_sees_the_same_facts(ruleset: Ruleset) -> None:
    for index, (game, chosen) in enumerate(played_positions(ruleset)[:40]):
        for turn in (chosen, any_turn(game, ruleset, random.Random(index))):
            rows = [facts_of(turned(game, by, ruleset), ruleset, turn) for by in range(4)]
            for row in rows[1:]:
                np.testing.assert_allclose(row, rows[0], rtol=1e-5, atol=1e-4)


# --- Names and weights


def test_each_fact_is_described_and_has_its_place() -> None:
    assert len(set(FACT_NAMES)) == FACT_COUNT == len(FACTS)
    for fact in FACTS:
        assert fact.scale > 0
        assert fact.low in (0, -1)
        assert fact.meaning
        assert "\n" not in fact.meaning
    assert (FACT_NAMES[MARGIN], FACT_NAMES[LOSS + 1]) == ("margin", "loss_across")


def test_weights_are_packed_by_name() -> None:
    packed = pack_weights({"lead": -2, "progression": 0.5})
    assert packed.dtype == np.float32
    expected = np.zeros(FACT_COUNT)
    expected[[FACT_NAMES.index("lead"), 0]] = -2, 0.5
    assert packed.tolist() == expected.tolist()


def test_weights_of_what_is_no_fact_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^there is no fact 'margn': did you mean margin\?$"):
        pack_weights({"margn": 1.0})
    with pytest.raises(ValueError, match=r"^there is no fact 'xyz': use progression, combat, .*, "):
        pack_weights({"margin": 1.0, "xyz": 1.0})


def test_a_guard_that_passes_its_midpoint_turns_off() -> None:
    """Red's Guard needs 31 steps to the own one's tile, but leaves the loop before it."""
    store = [[0] * 6, [1, 0, 0, 0, 0, 5], *[[0] * 6] * 2]
    pieces = {(GREEN, G1): 13, (RED, G1): 33}
    others: dict[str, Any] = {"progression": {(GREEN, G1): 100}, "credits": {RED: 0}}
    game = Scene(pieces, store=store, **others).game
    game["phase"] = CHOOSE
    found = check(game, JOURNEY, empty_turn())
    assert found["risk_guards_next"] == 0
    turned_back = Scene({**pieces, (RED, G1): 44}, store=store, **others).game
    turned_back["phase"] = CHOOSE
    assert check(turned_back, JOURNEY, empty_turn())["risk_guards_next"] > 0

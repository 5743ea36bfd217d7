"""Captures, checkpoints, rolls, finishing and the end of a match: the cases easy to get wrong.

Offsets are Green's unless a seat is named; ``there`` gives another seat's position on Green's tile.
"""

from typing import Any

import pytest

from positions import (
    BLUE,
    BRAWL,
    G1,
    G2,
    G3,
    GREEN,
    HOME,
    JOURNEY,
    NOBLE,
    RED,
    YARD,
    YELLOW,
    Scene,
    blocked,
    captured,
    changed,
    checkpoint,
    stack,
    there,
)
from retinue.envs.game import engine
from retinue.envs.game.record import result_of
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.state import OVER, new_game

UNPROTECTED = {
    mode: changed(rules, castles_protect=False)
    for mode, rules in (("journey", JOURNEY), ("brawl", BRAWL))
}

# --- Captures


def test_pieces_passed_over_are_not_captured() -> None:
    scene = Scene({(GREEN, G1): 35, (RED, G1): there(RED, 36), (BLUE, NOBLE): there(BLUE, 37)})
    assert scene.play(guards={G1: 3}) == []
    assert scene.at((RED, G1), (BLUE, NOBLE)) == [there(RED, 36), there(BLUE, 37)]


def test_a_noble_captures_nobody() -> None:
    scene = Scene({(GREEN, NOBLE): 35, (RED, G1): there(RED, 36)})
    assert scene.play(noble=1) == []
    assert scene.at((RED, G1)) == there(RED, 36)


def test_a_guard_that_does_not_move_captures_nobody() -> None:
    scene = Scene({(GREEN, G1): 36, (RED, G1): there(RED, 36)})
    assert scene.play(noble=1)[0]["type"] == "exit"
    assert scene.at((RED, G1)) == there(RED, 36)


@pytest.mark.parametrize("piece", [G1, NOBLE])
def test_castles_protect(piece: int) -> None:
    scene = Scene({(GREEN, G1): 39, (RED, piece): there(RED, 41)})
    assert scene.play(guards={G1: 2}) == [checkpoint(G1, 5, 20)]
    assert scene.at((RED, piece)) == there(RED, 41)


@pytest.mark.parametrize("piece", [G1, NOBLE])
def test_castles_need_not_protect(piece: int) -> None:
    scene = Scene({(GREEN, G1): 39, (RED, piece): there(RED, 41)}, UNPROTECTED["journey"])
    assert scene.play(guards={G1: 2})[1:] == [captured(RED, piece, 30 if piece == NOBLE else 20)]
    assert scene.at((RED, piece)) == YARD


@pytest.mark.parametrize("rules", [JOURNEY, UNPROTECTED["journey"]], ids=["", "no Castles"])
def test_only_its_owner_is_safe_on_an_entering_tile(rules: Ruleset) -> None:
    pieces = {(RED, G1): 0, (RED, NOBLE): 0, (BLUE, G1): there(BLUE, 17)}
    scene = Scene({(GREEN, G1): 15, **pieces}, rules)
    assert scene.play(guards={G1: 2}) == [checkpoint(G1, 9, 20), captured(BLUE, G1, 20)]
    assert scene.at(*pieces) == [0, 0, YARD]


def test_an_intruder_is_captured_by_a_guard_that_leaves_the_yard() -> None:
    scene = Scene({(RED, G1): there(RED, 0)})
    assert scene.play(guards={G1: 1})[2:] == [captured(RED, G1, 20)]


def test_an_own_noble_on_the_tile_is_no_obstacle_and_no_prey() -> None:
    scene = Scene({(GREEN, G1): 35, (GREEN, NOBLE): 36, (RED, G1): there(RED, 36)})
    assert scene.play(guards={G1: 1}) == [captured(RED, G1, 40)]
    assert scene.at((GREEN, NOBLE)) == 36


def test_what_a_captured_piece_loses_and_keeps() -> None:
    victim = (RED, G2)
    scene = Scene(
        {(GREEN, G1): 35, victim: there(RED, 36), (RED, G1): 40},
        midpoint=[victim, (RED, G1)],
        checkpoints={victim: 0b101},
        progression={victim: 90, (RED, G1): 70},
        credits={RED: 1},
        combat={RED: 11},
    )
    scene.play(guards={G1: 1})
    assert (scene.at(victim), scene.of("midpoint", *victim)) == (YARD, 0)
    assert scene.of("checkpoints", *victim) == 0b101
    assert scene.of("progression", RED) == [70, 0, 0, 0, 0]
    assert (scene.of("credits", RED), scene.of("combat", RED)) == (1, 11)
    assert scene.of("midpoint", RED, G1) == 1


@pytest.mark.parametrize("held", [0, 1, 2, 4])
def test_a_seat_whose_noble_is_captured_starts_with_new_credits(held: int) -> None:
    scene = Scene({(GREEN, G1): 35, (RED, NOBLE): there(RED, 36)}, credits={RED: held})
    assert scene.play(guards={G1: 1}) == [captured(RED, NOBLE, 30)]
    assert scene.of("credits") == [2, 2, 2, 2]


WORTH = {  # rules 4.2: where the own Noble stands, past its midpoint: Journey, Brawl
    ("safe", False): ((20, 30), (50, 75)),
    ("safe", True): ((30, 45), (80, 120)),
    ("castle", False): ((30, 45), (80, 120)),
    ("castle", True): ((50, 75), (120, 180)),
    ("regular", False): ((40, 60), (100, 150)),
    ("regular", True): ((70, 105), (160, 240)),
}
STANDS = {"safe": (YARD, 0, 68, 74, HOME), "castle": (7, 63), "regular": (1, 17, 34, 51, 67)}


@pytest.mark.parametrize("past", [False, True])
@pytest.mark.parametrize("place", STANDS)
def test_what_a_capture_is_worth(place: str, past: bool) -> None:
    for position in STANDS[place]:
        if past and position == YARD:
            continue  # a piece in its Yard has no midpoint progress
        for rules, points in zip((JOURNEY, BRAWL), WORTH[place, past], strict=True):
            scene = Scene(
                {
                    (GREEN, NOBLE): position,
                    (GREEN, G1): 35,
                    (BLUE, G3): there(BLUE, 36),
                    (BLUE, NOBLE): there(BLUE, 36),
                },
                rules,
                midpoint=[(GREEN, NOBLE)] if past else [],
            )
            assert scene.play(guards={G1: 1}) == [
                captured(BLUE, G3, points[0]),
                captured(BLUE, NOBLE, points[1]),
            ]


@pytest.mark.parametrize(("after", "points"), [(False, 70), (True, 40)])
def test_the_price_is_that_of_the_moment(after: bool, points: int) -> None:
    scene = Scene({(GREEN, NOBLE): 33, (GREEN, G1): 35, (RED, G1): there(RED, 36)})
    midpoint = {"type": "midpoint", "piece": NOBLE, "points": 100}
    events = [midpoint, captured(RED, G1, points)]
    assert scene.play(guards={G1: 1}, noble=1, after=after) == (events[::-1] if after else events)


def test_a_captured_stack_blocks_no_more() -> None:
    scene = Scene({(GREEN, G1): 35, (GREEN, G2): 35, (GREEN, NOBLE): 35, **stack(RED, 37)})
    assert scene.play(guards={G1: 2, G2: 2}, noble=1, after=True) == [
        captured(RED, G1, 40),
        captured(RED, G2, 40),
    ]
    for _ in (RED, BLUE, YELLOW):
        scene.play()
    assert scene.play(noble=3) == [blocked(NOBLE, 3)]  # by the captors now


# --- Paths and checkpoints


def test_the_midpoint_clears_the_records_and_counts_once() -> None:
    piece = (GREEN, G1)
    scene = Scene({piece: 33}, checkpoints={piece: 0b11111}, progression={piece: 70})
    assert scene.play(guards={G1: 1}) == [{"type": "midpoint", "piece": G1, "points": 50}]
    assert (scene.of("checkpoints", *piece), scene.of("progression", *piece)) == (0, 120)
    for _ in (RED, BLUE, YELLOW):
        scene.play()
    assert scene.play("backward", {G1: 5}) == [checkpoint(G1, 4, 20)]
    for _ in (RED, BLUE, YELLOW):
        scene.play()
    assert scene.play(guards={G1: 5}) == []  # neither the Castle nor the midpoint again
    assert scene.of("checkpoints", *piece) == 1 << 4


def test_a_piece_on_tile_69_may_go_on_forward() -> None:
    scene = Scene({(GREEN, G1): 0}, midpoint=[(GREEN, G1)])
    scene.play(guards={G1: 3})
    assert scene.at((GREEN, G1)) == 3


def test_without_midpoint_progress_backward_goes_round() -> None:
    scene = Scene({(GREEN, G1): 1})
    scene.play("backward", {G1: 3})
    assert scene.at((GREEN, G1)) == 66


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_on_the_home_path_everything_goes_home(direction: str) -> None:
    scene = Scene({(GREEN, G1): 68, (GREEN, G2): 74, (GREEN, NOBLE): 70})
    assert scene.play(direction, {G1: 4, G2: 12}, noble=5) == [
        {"type": "home", "piece": NOBLE, "points": 200},
        {"type": "home", "piece": G2, "points": 100},
    ]
    assert scene.at((GREEN, G1), (GREEN, G2), (GREEN, NOBLE)) == [72, HOME, HOME]


def test_leaving_the_yard_costs_a_step_in_either_direction() -> None:
    scene = Scene({})
    scene.play("backward", {G1: 1, G2: 8}, noble=3)
    assert scene.at((GREEN, G1), (GREEN, G2), (GREEN, NOBLE)) == [0, 61, 66]
    assert scene.of("credits", GREEN) == 0  # the Noble's exit is free


def test_a_seat_uses_its_own_offsets() -> None:
    scene = Scene({(YELLOW, G1): 60}, seat=YELLOW, midpoint=[(YELLOW, G1)])
    assert scene.play(guards={G1: 9}) == [checkpoint(G1, 8, 20)]
    assert scene.at((YELLOW, G1)) == 73


@pytest.mark.parametrize("tiles", [1, 3, 20])
def test_a_home_path_of_another_length(tiles: int) -> None:
    rules = changed(JOURNEY, home_path_tiles=tiles)
    scene = Scene({(GREEN, G1): 63, (GREEN, NOBLE): 62}, rules, midpoint=[(GREEN, G1)])
    assert scene.play(guards={G1: tiles}) == []
    assert scene.at((GREEN, G1)) == 67 + tiles
    for _ in (RED, BLUE, YELLOW):
        scene.play()
    assert scene.play(guards={G1: 1}) == [{"type": "home", "piece": G1, "points": 100}]
    assert scene.at((GREEN, G1)) == rules.home == 68 + tiles


# --- Rolls and credits


@pytest.mark.parametrize(
    ("dice", "earned"),
    [
        ((6, 1, 2, 3), 1),
        ((1, 6, 2, 3), 1),
        ((1, 5, 2, 3), 1),
        ((4, 2, 1, 1), 1),
        ((3, 3, 1, 1), 1),
        ((1, 2, 6, 6), 0),
        ((1, 2, 3, 3), 0),
        ((5, 5, 1, 1), 0),
    ],
)
def test_grace_looks_at_the_first_two_dice(dice: tuple[int, ...], earned: int) -> None:
    assert Scene({}).roll(*dice) == earned
    assert Scene({}, turns_taken=[0] * 4).roll(*dice) == 0


@pytest.mark.parametrize("value", range(1, 7))
def test_a_single_die_is_grace_by_its_6_alone(value: int) -> None:
    scene = Scene({}, store={GREEN: [0, 0, 0, 0, 0, 11]})
    scene.game["rolled"][1] = 6 - value % 6  # what the turn before has left there
    assert scene.roll(value) == (value == 6)


def test_no_credit_above_the_most() -> None:
    scene = Scene({}, credits={GREEN: 4})
    assert scene.roll(6, 6, 6, 6) == 0
    assert scene.of("credits", GREEN) == 4
    rules = changed(JOURNEY, credits_per_grace=3)
    assert Scene({}, rules, credits={GREEN: 3}).roll(6, 6, 6, 6) == 1


@pytest.mark.parametrize(
    ("guards", "entries", "earned"),
    [
        ((YARD, YARD, YARD, YARD), {}, 1),
        ((YARD, HOME, HOME, HOME), {}, 1),
        ((HOME, HOME, HOME, HOME), {}, 0),
        ((YARD, YARD, YARD, 30), {}, 0),
        ((YARD, YARD, YARD, 0), {}, 0),
        ((YARD, YARD, YARD, 74), {}, 0),
        ((YARD, YARD, YARD, YARD), {"credits": {GREEN: 1}}, 0),
        ((YARD, YARD, YARD, YARD), {"turns_taken": [0, 0, 0, 0]}, 0),
    ],
)
def test_forced_grace(guards: tuple[int, ...], entries: dict[str, Any], earned: int) -> None:
    pieces = {(GREEN, guard): position for guard, position in enumerate(guards)}
    scene = Scene(pieces, **{"credits": {GREEN: 0}, **entries})
    assert scene.roll(1, 2, 1, 1) == earned


def test_forced_grace_needs_no_regard_to_the_noble_and_adds_nothing_to_grace() -> None:
    assert Scene({(GREEN, NOBLE): 30}, credits={GREEN: 0}).roll(1, 2, 1, 1) == 1
    scene = Scene({}, credits={GREEN: 0})
    assert (scene.roll(6, 6, 6, 6), scene.of("credits", GREEN)) == (1, 1)


def test_credits_go_to_the_first_guards_in_the_yard() -> None:
    scene = Scene({(GREEN, G2): 5}, credits={GREEN: 2})
    scene.roll(1, 2, 2, 2)
    assert engine.legal_guards(scene.game, JOURNEY.packed) == 0b0111
    scene.play(guards={G1: [1], G3: [2]})
    assert scene.of("credits", GREEN) == 0


DICE = {
    "journey": [4] * 4 + [3] * 3 + [2] * 2 + [1] * 3 + [0],
    "brawl": [5] * 5 + [4] * 4 + [3] * 3 + [2] * 2 + [1] * 3 + [0],
}


@pytest.mark.parametrize("rules", [JOURNEY, BRAWL], ids=["journey", "brawl"])
def test_how_many_dice_are_rolled(rules: Ruleset) -> None:
    for held, dice in enumerate(DICE[rules.mode]):
        game = new_game(rules)
        game["store"][GREEN, 2] = held
        assert engine.dice_count(game, rules.packed) == dice


# --- Finishing and the end


def almost(*seats: int) -> dict[tuple[int, int], int]:
    """These seats have all but their Noble Home, which needs one step."""
    return {(seat, piece): HOME - (piece == NOBLE) for seat in seats for piece in range(5)}


@pytest.mark.parametrize(("rules", "bonus"), [(JOURNEY, [300, 200, 100, 50]), (BRAWL, [0] * 4)])
def test_finishing_order_and_bonus(rules: Ruleset, bonus: list[int]) -> None:
    scene = Scene(almost(GREEN, RED, BLUE, YELLOW), rules, seat=BLUE)
    for place, seat in enumerate((BLUE, YELLOW, GREEN, RED)):
        assert scene.of("seat") == seat
        finish = {"type": "finish", **({"points": bonus[place]} if bonus[place] else {})}
        assert scene.play(noble=1)[1:] == [finish]
        assert scene.of("bonus", seat) == bonus[place]
    assert scene.of("phase") == OVER
    result = result_of(scene.game)
    assert (result["finish_order"], result["reason"]) == ([BLUE, YELLOW, GREEN, RED], "finished")
    home = rules.progression.home[1]
    assert result["totals"] == [home + bonus[place] for place in (2, 3, 0, 1)]


def test_a_finished_seat_has_no_more_turns() -> None:
    scene = Scene(almost(RED), seat=RED)
    scene.play(noble=1)
    movers = []
    for _ in range(6):
        movers.append(scene.of("seat"))
        scene.play()
    assert movers == [BLUE, YELLOW, GREEN, BLUE, YELLOW, GREEN]
    assert scene.of("turns_taken") == [4, 2, 3, 3]


@pytest.mark.parametrize("left", [10, 5])
def test_the_clock_ends_the_match(left: int) -> None:
    scene = Scene(almost(RED), seat=RED, clock_seconds=left)
    scene.play(noble=1)
    assert (scene.of("clock_seconds"), scene.of("phase")) == (0, OVER)
    result = result_of(scene.game)
    assert (result["finish_order"], result["reason"]) == ([RED], "clock")


def test_finishing_on_the_last_turn_is_finishing() -> None:
    home = {(seat, piece): HOME for seat in (GREEN, BLUE, YELLOW) for piece in range(5)}
    scene = Scene({**home, **almost(RED)}, seat=RED, clock_seconds=10)
    assert scene.play(noble=1)[-1] == {"type": "finish", "points": 50}
    assert result_of(scene.game)["reason"] == "finished"


@pytest.mark.parametrize(
    ("combat", "places"),
    [
        ([0, 0, 0, 0], [1, 1, 1, 1]),
        ([10, 10, 5, 0], [1, 1, 3, 4]),
        ([-3, 5, 5, 9], [4, 2, 2, 1]),
        ([7, 7, 9, 7], [2, 2, 1, 2]),
    ],
)
def test_equal_totals_share_the_better_place(combat: list[int], places: list[int]) -> None:
    scene = Scene({}, combat=combat, clock_seconds=10)
    scene.play()
    assert result_of(scene.game)["places"] == places
    assert [engine.place(scene.game, seat) for seat in range(4)] == places

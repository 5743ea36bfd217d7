"""The worked examples of the rules (section 7), then the cases that are easy to get wrong.

Offsets are Green's unless a seat is named; ``there`` gives another seat's position on Green's tile.
"""

import pytest

from positions import (
    BLUE,
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
    YARD,
    YELLOW,
    Scene,
    blocked,
    captured,
    checkpoint,
    stack,
    there,
)
from retinue.envs.game import engine

# --- The worked examples


def test_example_1_several_rolls_on_one_guard() -> None:
    scene = Scene({(GREEN, G1): 17}, store={GREEN: [0, 1, 2, 0, 1, 0]})
    scene.roll(1, 1, 3)
    scene.play(guards={G1: [3, 3, 5]})
    assert scene.at((GREEN, G1)) == 28
    assert scene.of("store", GREEN) == [2, 1, 1, 0, 0, 0]


def test_example_2_a_checkpoint_pays_once_per_cycle() -> None:
    scene = Scene({(RED, G1): there(RED, 9)}, credits={GREEN: 4})
    assert scene.play(guards={G2: 8}) == [
        {"type": "exit", "piece": G2},
        checkpoint(G2, 0, 10),
        checkpoint(G2, 1, 20),
    ]
    assert (scene.at((GREEN, G2)), scene.of("progression", GREEN, G2)) == (7, 30)
    for guards in ({}, {}, {}, {G2: 3}):  # Red, Blue, Yellow; then Green leaves the Castle
        assert scene.play(guards=guards) == []
    assert scene.play(guards={G1: 1}) == [captured(GREEN, G2, 20)]
    assert (scene.at((GREEN, G2)), scene.of("progression", GREEN, G2)) == (YARD, 0)
    assert scene.of("checkpoints", GREEN, G2) == 0b11
    for _ in (BLUE, YELLOW):
        scene.play()
    assert scene.play(guards={G2: 8}) == [{"type": "exit", "piece": G2}]
    assert (scene.at((GREEN, G2)), scene.of("progression", GREEN, G2)) == (7, 0)


def test_example_3_past_the_home_path() -> None:
    scene = Scene({(GREEN, G1): 60})
    assert scene.play(guards={G1: 9}) == [checkpoint(G1, 8, 20), checkpoint(G1, 0, 10)]
    assert scene.at((GREEN, G1)) == 1


def test_example_4_into_the_home_path_forward() -> None:
    scene = Scene({(GREEN, G1): 60}, midpoint=[(GREEN, G1)])
    assert scene.play(guards={G1: 9}) == [checkpoint(G1, 8, 20)]
    assert scene.at((GREEN, G1)) == 73


def test_example_5_into_the_home_path_backward() -> None:
    scene = Scene({(GREEN, G1): 3}, midpoint=[(GREEN, G1)])
    assert scene.play("backward", {G1: 5}) == [checkpoint(G1, 0, 10)]
    assert scene.at((GREEN, G1)) == 69


@pytest.mark.parametrize(("steps", "position"), [(40, 74), (41, HOME)])
def test_example_6_midpoint_and_home_path_in_one_move(steps: int, position: int) -> None:
    scene = Scene({(GREEN, G1): 30})
    events = scene.play(guards={G1: steps})
    assert events[:6] == [
        {"type": "midpoint", "piece": G1, "points": 50},
        checkpoint(G1, 5, 20),
        checkpoint(G1, 6, 20),
        checkpoint(G1, 10, 20),
        checkpoint(G1, 7, 20),
        checkpoint(G1, 8, 20),
    ]
    assert events[6:] == [{"type": "home", "piece": G1, "points": 100}] * (position == HOME)
    assert scene.at((GREEN, G1)) == position
    assert scene.of("progression", GREEN, G1) == 150 + 100 * (position == HOME)


def test_example_7_a_rich_capture() -> None:
    victims = [(RED, G1), (RED, NOBLE), (BLUE, G1), (YELLOW, G1)]
    pieces = {(seat, piece): there(seat, 20) for seat, piece in victims}
    scene = Scene({(GREEN, G1): 18, (GREEN, NOBLE): 30, **pieces}, BRAWL)
    assert scene.play(guards={G1: 2}) == [
        captured(seat, piece, 150 if piece == NOBLE else 100) for seat, piece in victims
    ]
    assert scene.of("combat", GREEN) == 450
    assert scene.at(*victims) == [YARD] * 4


def test_example_8_a_guard_left_alone() -> None:
    scene = Scene({(GREEN, G1): 51, (GREEN, G2): 51, **stack(RED, 57)})
    assert scene.play(guards={G1: 3, G2: 8}) == [blocked(G2, 3, -6)]
    assert scene.at((GREEN, G1), (GREEN, G2)) == [54, 56]
    assert scene.of("combat", GREEN) == -6


def test_example_9_strong_enough_together() -> None:
    scene = Scene({(GREEN, G1): 51, (GREEN, G2): 51, **stack(RED, 57)})
    assert scene.play(guards={G1: 8, G2: 8}) == [checkpoint(G1, 7, 20), checkpoint(G2, 7, 20)]
    assert scene.at((GREEN, G1), (GREEN, G2)) == [59, 59]
    assert scene.at(*stack(RED, 57)) == [there(RED, 57)] * 2  # passed, not captured


def test_example_10_in_the_nobles_way() -> None:
    scene = Scene({(GREEN, NOBLE): 2, (GREEN, G1): 5, (GREEN, G2): 5})
    assert scene.play(guards={G1: 2, G2: 2}, noble=5) == [
        blocked(NOBLE, 3),
        checkpoint(G1, 1, 20),
        checkpoint(G2, 1, 20),
    ]
    assert scene.at((GREEN, NOBLE)) == 4
    assert scene.of("combat", GREEN) == 0


@pytest.mark.parametrize(("turns", "earned"), [(0, 0), (1, 1)])
def test_example_11_a_single_die(turns: int, earned: int) -> None:
    scene = Scene({}, turns_taken=[turns] * 4, store={GREEN: [9, 0, 0, 0, 0, 0]})
    assert engine.dice_count(scene.game, JOURNEY.packed) == 1
    assert scene.roll(6) == earned
    assert scene.of("credits", GREEN) == 2 + earned


def test_example_12_forced_grace() -> None:
    scene = Scene(
        {(GREEN, G1): HOME, (GREEN, G2): HOME}, credits={GREEN: 0}, store={GREEN: [2] * 6}
    )
    assert scene.roll() == 1
    assert engine.legal_guards(scene.game, JOURNEY.packed) == 1 << G3
    assert scene.play(guards={G3: 1})[0] == {"type": "exit", "piece": G3}
    assert (scene.at((GREEN, G3)), scene.of("credits", GREEN)) == (0, 0)


# --- Groups and their order


def test_guards_that_stop_capture_before_the_others_go_on() -> None:
    scene = Scene({(GREEN, G1): 55, (GREEN, G2): 55, **stack(RED, 57)})
    assert scene.play(guards={G1: 2, G2: 4}) == [
        captured(RED, G1, 20),
        captured(RED, G2, 20),
        checkpoint(G2, 7, 20),
    ]
    assert scene.at((GREEN, G1), (GREEN, G2), (RED, G1)) == [57, 59, YARD]


def test_a_group_captures_once() -> None:
    scene = Scene({(GREEN, G1): 52, (GREEN, G2): 52, (RED, G3): there(RED, 55)})
    assert scene.play(guards={G1: 3, G2: 3}) == [captured(RED, G3, 20)]
    assert scene.of("combat", GREEN) == 20


def test_larger_groups_move_first_then_the_lowest_number() -> None:
    scene = Scene({(GREEN, G1): 6, (GREEN, G2): 11, (GREEN, G3): 40, (GREEN, G4): 40})
    events = scene.play(guards={G1: 1, G2: 1, G3: 1, G4: 1})
    assert [event["piece"] for event in events] == [G3, G4, G1, G2]


def test_guards_leave_the_yard_one_by_one() -> None:
    scene = Scene(stack(RED, 2))
    events = scene.play(guards={G1: 4, G2: 4})
    assert [event for event in events if event["type"] == "blocked"] == [
        blocked(G1, 2, -4),
        blocked(G2, 2, -4),
    ]
    assert scene.at((GREEN, G1), (GREEN, G2)) == [1, 1]


def test_groups_that_meet_do_not_join() -> None:
    scene = Scene({(GREEN, G1): 52, (GREEN, G2): 53, **stack(RED, 56)})
    assert scene.play(guards={G1: 6, G2: 6}) == [blocked(G1, 3, -6), blocked(G2, 4, -8)]
    assert scene.at((GREEN, G1), (GREEN, G2)) == [55, 55]


@pytest.mark.parametrize("past", [[G2, G3], [G2]], ids=["larger part", "lowest number"])
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_a_group_parts_at_the_home_path(direction: str, past: list[int]) -> None:
    # 11 steps forward from 60: Home, or offset 3. 10 back from 2: Home, or offset 60.
    start, steps, bit, end = (60, 11, 8, 3) if direction == "forward" else (2, 10, 0, 60)
    members = [G1, G2, G3][: 1 + len(past)]
    scene = Scene(
        {**{(GREEN, guard): start for guard in members}, (GREEN, G4): 45},
        midpoint=[(GREEN, guard) for guard in past],
    )
    events = scene.play(direction, {**dict.fromkeys(members, steps), G4: 4})
    homes = [{"type": "home", "piece": guard, "points": 100} for guard in past]
    other = checkpoint(G1, 0, 10) if direction == "forward" else checkpoint(G1, 8, 20)
    points = 20 if direction == "forward" else 10
    last = checkpoint(G4, 6 if direction == "forward" else 5, 20)  # A9: after both parts
    assert events == [
        *(checkpoint(guard, bit, points) for guard in members),
        *([*homes, other] if len(past) == 2 else [other, *homes]),
        last,
    ]
    assert scene.at((GREEN, G1)) == end
    assert scene.at(*((GREEN, guard) for guard in [*past, G4]))[:-1] == [HOME] * len(past)


def test_the_smaller_part_of_a_group_meets_a_stack_alone() -> None:
    guards = [G1, G2, G3]
    scene = Scene(
        {**{(GREEN, guard): 62 for guard in guards}, **stack(RED, 65)},
        midpoint=[(GREEN, G2), (GREEN, G3)],
    )
    assert scene.play(guards=dict.fromkeys(guards, 4))[3:] == [blocked(G1, 2, -4)]
    assert scene.at(*((GREEN, guard) for guard in guards)) == [64, 70, 70]


# --- Blockades


def test_blocked_with_no_step_made_captures_nothing() -> None:
    scene = Scene({(GREEN, G1): 53, (RED, G3): there(RED, 53), **stack(RED, 54)})
    assert scene.play(guards={G1: 3}) == [blocked(G1, 3, -6)]
    assert scene.at((RED, G3)) == there(RED, 53)


def test_blocked_after_a_step_captures_where_it_stops() -> None:
    scene = Scene({(GREEN, G1): 52, (RED, G3): there(RED, 53), **stack(RED, 54)})
    assert scene.play(guards={G1: 3}) == [blocked(G1, 2, -4), captured(RED, G3, 20)]
    assert scene.of("combat", GREEN) == 16


def test_blocked_in_the_yard_keeps_the_credit_but_not_the_rolls() -> None:
    scene = Scene(stack(RED, 0))
    assert scene.play(guards={G1: [4], G2: [1]}) == [blocked(G1, 4, -8), blocked(G2, 1, -2)]
    assert scene.at((GREEN, G1), (GREEN, G2)) == [YARD, YARD]
    assert scene.of("credits", GREEN) == 2
    assert scene.of("store", GREEN) == [0] * 6


@pytest.mark.parametrize("position", [35, 36, 70])
def test_guards_are_never_blocked_by_their_own(position: int) -> None:
    own = {(GREEN, guard): position for guard in (G2, G3, G4)}
    scene = Scene({(GREEN, G1): position - 1, **own}, midpoint=[(GREEN, G1), *own])
    assert scene.play(guards={G1: 2}) == []
    assert scene.at((GREEN, G1)) == position + 1


def test_the_noble_is_blocked_by_its_own_on_the_home_path() -> None:
    own = {(GREEN, G1): 71, (GREEN, G2): 71}
    scene = Scene({(GREEN, NOBLE): 69, **own})
    assert scene.play(noble=4) == [blocked(NOBLE, 3)]
    assert (scene.at((GREEN, NOBLE)), scene.of("combat", GREEN)) == (70, 0)


@pytest.mark.parametrize(
    ("own", "others", "penalty"), [(2, 2, 6), (1, 2, 6), (0, 2, 6), (2, 1, 0), (2, 0, 0)]
)
def test_the_noble_pays_only_where_others_block_it(own: int, others: int, penalty: int) -> None:
    guards = {(GREEN, guard): 37 for guard in range(own)}
    scene = Scene({(GREEN, NOBLE): 35, **guards, **stack(RED, 37, others)})
    assert scene.play(noble=4) == [blocked(NOBLE, 3, -penalty)]
    assert (scene.at((GREEN, NOBLE)), scene.of("combat", GREEN)) == (36, -penalty)


def test_home_never_blocks_the_noble() -> None:
    scene = Scene({(GREEN, NOBLE): 74, (GREEN, G1): HOME, (GREEN, G2): HOME})
    assert scene.play(noble=2) == [{"type": "home", "piece": NOBLE, "points": 200}]


def test_a_noble_and_a_guard_are_no_stack() -> None:
    scene = Scene({(GREEN, G1): 35, **stack(RED, 36, 1), (RED, NOBLE): there(RED, 36)})
    assert scene.play(guards={G1: 2}) == []
    scene = Scene({(GREEN, NOBLE): 35, (GREEN, G1): 36, **stack(RED, 36, 1)})
    assert scene.play(noble=2) == []


def test_all_movement_left_is_trimmed_even_what_home_would_not_need() -> None:
    scene = Scene({(GREEN, G1): 60, **stack(RED, 62)}, midpoint=[(GREEN, G1)])
    assert scene.play(guards={G1: 30}) == [blocked(G1, 29, -58)]
    assert scene.at((GREEN, G1)) == 61

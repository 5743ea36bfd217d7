"""The state as JSON: what a new game looks like, what follows from a state, what is refused."""

import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from retinue.envs.game import engine
from retinue.envs.game.events import new_log
from retinue.envs.game.ruleset import Ruleset, load_ruleset
from retinue.envs.game.schema import SchemaError
from retinue.envs.game.state import (
    GAME,
    MAX_POINTS,
    OVER,
    ROLL,
    StateModel,
    empty_turn,
    new_game,
    state_from_json,
    state_to_json,
    totals,
)

State = dict[str, Any]
MODES = ("journey", "brawl")
JOURNEY = load_ruleset("journey")
NEW_GAME: State = {
    "position": [[-1, -1, -1, -1, -1]] * 4,
    "midpoint": [[0, 0, 0, 0, 0]] * 4,
    "checkpoints": [[0, 0, 0, 0, 0]] * 4,
    "progression": [[0, 0, 0, 0, 0]] * 4,
    "combat": [0, 0, 0, 0],
    "bonus": [0, 0, 0, 0],
    "store": [[0, 0, 0, 0, 0, 0]] * 4,
    "credits": [2, 2, 2, 2],
    "turns_taken": [0, 0, 0, 0],
    "clock_seconds": 1800,
}
HOME = [75] * 5
AWAY = [0, 74, 75, 75, 75]


def fresh() -> State:
    """A copy whose rows are lists of their own."""
    return json.loads(json.dumps(NEW_GAME))  # type: ignore[no-any-return]


def state(**entries: Any) -> State:
    return {**fresh(), **entries}


def put(place: tuple[str | int, ...], value: Any) -> State:
    """The state of a new game with one entry changed."""
    changed = fresh()
    inner: Any = changed
    for part in place[:-1]:
        inner = inner[part]
    inner[place[-1]] = value
    return changed


def placed(seat: int, piece: int, position: int, **entries: Any) -> State:
    changed = state(**entries)
    changed["position"][seat][piece] = position
    return changed


def refusal(data: Any, mode: str = "journey") -> str:
    with pytest.raises(SchemaError) as caught:
        state_from_json(data, load_ruleset(mode), "somewhere")
    message = str(caught.value)
    assert message.startswith("somewhere: ")
    return message.removeprefix("somewhere: ")


# --- Writing


@pytest.mark.parametrize("mode", MODES)
def test_a_new_game_as_json(mode: str) -> None:
    data = state_to_json(new_game(load_ruleset(mode)))
    assert data == NEW_GAME
    assert list(data) == list(NEW_GAME), "the record's order of keys"
    assert json.loads(json.dumps(data)) == NEW_GAME


def test_the_state_hides_the_roll_and_what_follows_from_the_rest() -> None:
    game = new_game(JOURNEY)
    engine.roll(game, JOURNEY.packed, np.uint64(7))
    assert set(state_to_json(game)) == set(NEW_GAME)
    assert not {"seed", "key"} & set(GAME.names or ())


def test_totals_of_one_game_and_of_many() -> None:
    games = np.zeros(3, GAME)
    games["progression"][1, 2] = [1, 2, 3, 4, 5]
    games["combat"][1] = [0, -7, 2, 0]
    games["bonus"][1, 3] = 50
    games["progression"][2, 0] = 2**31 - 1  # five of them are more than 32 bits hold
    assert totals(games).tolist() == [
        [0, 0, 0, 0],
        [0, -7, 17, 50],
        [5 * (2**31 - 1), 0, 0, 0],
    ]
    assert totals(games[1]).tolist() == [0, -7, 17, 50]


# --- What follows from a state


@pytest.mark.parametrize("mode", MODES)
def test_a_new_game_comes_back_whole(mode: str) -> None:
    ruleset = load_ruleset(mode)
    game = state_from_json(NEW_GAME, ruleset)
    assert game == new_game(ruleset)
    assert game.dtype == GAME


@pytest.mark.parametrize(
    ("turns_taken", "seat"),
    [
        ([0, 0, 0, 0], 0),
        ([1, 0, 0, 0], 1),
        ([1, 1, 0, 0], 2),
        ([1, 1, 1, 0], 3),
        ([1, 1, 1, 1], 0),
        ([45, 45, 44, 44], 2),
    ],
)
def test_the_seat_with_the_fewest_turns_moves(turns_taken: list[int], seat: int) -> None:
    game = state_from_json(state(turns_taken=turns_taken), JOURNEY)
    assert game["seat"] == seat
    assert game["turn"] == sum(turns_taken)
    assert game["turns_taken"].tolist() == turns_taken
    assert game["phase"] == ROLL
    assert (game["dice"], game["finished"]) == (0, 0)


@pytest.mark.parametrize(
    ("home", "turns_taken", "seat", "order"),
    [
        ((0,), [30, 30, 30, 30], 1, [0]),
        ((1,), [40, 30, 39, 39], 2, [1]),
        ((1,), [40, 30, 40, 40], 0, [1]),
        ((3, 0), [31, 35, 34, 30], 2, [3, 0]),
        ((3, 0), [30, 35, 35, 30], 1, [0, 3]),
        ((2, 1, 0), [39, 38, 37, 40], 3, [2, 1, 0]),
    ],
)
def test_finished_seats_have_no_turns(
    home: tuple[int, ...], turns_taken: list[int], seat: int, order: list[int]
) -> None:
    position = [HOME if s in home else AWAY for s in range(4)]
    midpoint = [[1] * 5] * 4
    game = state_from_json(
        state(position=position, midpoint=midpoint, turns_taken=turns_taken), JOURNEY
    )
    assert game["seat"] == seat
    assert game["finished"] == len(order)
    assert game["finish_order"][: len(order)].tolist() == order
    assert game["phase"] == ROLL


def test_a_match_is_over_when_all_are_home_or_the_clock_has_run_out() -> None:
    home = state(position=[HOME] * 4, midpoint=[[1] * 5] * 4, turns_taken=[35, 33, 35, 34])
    game = state_from_json(home, JOURNEY)
    assert game["phase"] == OVER
    assert game["finish_order"].tolist() == [1, 3, 0, 2]
    assert state_from_json(state(clock_seconds=0), JOURNEY)["phase"] == OVER
    assert state_from_json(state(clock_seconds=1), JOURNEY)["phase"] == ROLL


def test_guards_on_the_loop_stand_in_stacks() -> None:
    position = [[0, 0, 68, -1, 0], [51, 51, 51, 51, 51], [34, 75, 1, 1, 2], [-1] * 5]
    midpoint = [[1, 1, 1, 0, 1], [1] * 5, [1] * 5, [0] * 5]
    game = state_from_json(state(position=position, midpoint=midpoint), JOURNEY)
    # Four bits a seat, Guards only: two Green, four Red and one Blue stand on absolute tile 0.
    expected = {0: 2 | 4 << 4 | 1 << 8, 35: 2 << 8}
    assert {t: int(n) for t, n in enumerate(game["stacks"]) if n} == expected


def random_legal_turn(game: Any, rules: Any, source: random.Random) -> Any:
    """A turn made in a hurry: everything goes forward, each roll to some legal Guard."""
    turn = empty_turn()
    mask = engine.legal_guards(game, rules)
    legal = [guard for guard in range(4) if mask >> guard & 1]
    for value in range(6):
        for _ in range(game["store"][game["seat"], value]):
            if legal:
                turn["rolls"][source.choice(legal), value] += 1
    if engine.noble_may_move(game, rules):
        turn["noble_steps"] = source.randint(1, 6)
    return turn


@pytest.mark.parametrize("seed", range(6))
def test_every_state_of_a_match_comes_back_whole(seed: int) -> None:
    """Seat to move, finishing order, stacks and phase are those of the game that went on."""
    source = random.Random(seed)
    start = state(
        position=[[source.randint(40, 74) for _ in range(5)] for _ in range(4)],
        midpoint=[[1] * 5] * 4,
    )
    game = state_from_json(start, JOURNEY)
    while game["phase"] != OVER:
        assert_same(game, state_from_json(state_to_json(game), JOURNEY))
        engine.roll(game, JOURNEY.packed, np.uint64(seed))
        turn = random_legal_turn(game, JOURNEY.packed, source)
        engine.play_or_raise(game, JOURNEY, turn, new_log())
    again = state_from_json(state_to_json(game), JOURNEY)
    again["seat"] = game["seat"]  # nobody moves
    assert_same(game, again)
    assert game["finished"] > 0


def assert_same(game: Any, again: Any) -> None:
    for name in GAME.names or ():
        if name == "finish_order":
            done = int(game["finished"])
            assert game[name][:done].tolist() == again[name][:done].tolist()
        elif name != "rolled":  # no dice are on the table
            assert np.array_equal(game[name], again[name]), name


def test_reading_changes_nothing_and_takes_a_parsed_state_too() -> None:
    data = state()
    game = state_from_json(data, JOURNEY)
    game["position"][0, 0] = 5
    assert data == NEW_GAME
    parsed = StateModel.model_validate_json(json.dumps(data))
    assert state_from_json(parsed, JOURNEY) == new_game(JOURNEY)


# --- What is refused


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("position", 0, 0), -2, "position[0][0]: -2 is not in -1 ... 75"),
        (("position", 3, 4), 76, "position[3][4]: 76 is not in -1 ... 75"),
        (("midpoint", 1, 2), 2, "midpoint[1][2]: 2 is not in 0 ... 1"),
        (("midpoint", 1, 2), -1, "midpoint[1][2]: -1 is not in 0 ... 1"),
        (("checkpoints", 2, 0), 4096, "checkpoints[2][0]: 4096 is not in 0 ... 4095"),
        (("checkpoints", 2, 0), -1, "checkpoints[2][0]: -1 is not in 0 ... 4095"),
        (("progression", 0, 1), -1, f"progression[0][1]: -1 is not in 0 ... {MAX_POINTS}"),
        (("progression", 0, 1), 10**8 + 1, "progression[0][1]: 100000001 is not in 0 ... "),
        (("combat", 3), -(10**8) - 1, f"combat[3]: -100000001 is not in {-MAX_POINTS} ... "),
        (("combat", 3), 10**30, f"combat[3]: {10**30} is not in {-MAX_POINTS} ... {MAX_POINTS}"),
        (("bonus", 0), -1, f"bonus[0]: -1 is not in 0 ... {MAX_POINTS}"),
        (("store", 0, 5), 13, "store[0][5]: 13 is not in 0 ... 12"),
        (("store", 0, 5), -1, "store[0][5]: -1 is not in 0 ... 12"),
        (("store", 1), [2, 2, 2, 2, 2, 3], "store[1]: 13 rolls are more than 12"),
        (("credits", 2), 5, "credits[2]: 5 is not in 0 ... 4"),
        (("credits", 2), -1, "credits[2]: -1 is not in 0 ... 4"),
        (("turns_taken", 0), -1, "turns_taken[0]: -1 is not in 0 ... "),
        (("turns_taken", 0), 10**30, f"turns_taken[0]: {10**30} is not in 0 ... "),
        (("turns_taken", 1), 181, "turns_taken[1]: 181 is not in 0 ... 180"),
        (("turns_taken",), [2**31 - 1] * 4, "turns_taken"),  # their sum is the match's turn
        (("clock_seconds",), -1, "clock_seconds: -1 is not in 0 ... 1800"),
        (("clock_seconds",), 1801, "clock_seconds: 1801 is not in 0 ... 1800"),
        (("midpoint", 2, 4), 1, "midpoint[2][4]: N is in the Yard, so it must be 0"),
        (("midpoint", 0, 1), 1, "midpoint[0][1]: G2 is in the Yard, so it must be 0"),
    ],
)
def test_numbers_that_no_match_shows_are_refused(
    place: tuple[str | int, ...], value: Any, message: str
) -> None:
    assert refusal(put(place, value)).startswith(message)


def test_limits_are_those_of_the_rules() -> None:
    assert state_from_json(put(("store", 0), [12, 0, 0, 0, 0, 5]), load_ruleset("brawl"))
    assert refusal(put(("store", 0), [12, 0, 0, 0, 0, 6]), "brawl").startswith("store[0]: 18 rolls")
    assert state_from_json(put(("credits",), [4, 0, 4, 0]), JOURNEY)
    assert state_from_json(placed(3, 0, 75), JOURNEY)["position"][3, 0] == 75
    rules = {**JOURNEY.model_dump(mode="json"), "home_path_tiles": 2}
    short = Ruleset.model_validate_json(json.dumps(rules))
    with pytest.raises(SchemaError, match=r"position\[0\]\[0\]: 71 is not in -1 \.\.\. 70"):
        state_from_json(placed(0, 0, 71), short)


@pytest.mark.parametrize("place", [("combat", 0), ("position", 0, 0), ("clock_seconds",)])
@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), 1.0, 1e30, True, "1", None, [1], {}], ids=repr
)
def test_only_integers_are_numbers(place: tuple[str | int, ...], value: Any) -> None:
    name = "".join(f"[{part}]" if isinstance(part, int) else part for part in place)
    assert refusal(put(place, value)).startswith(name)


def without(name: str) -> State:
    return {key: value for key, value in NEW_GAME.items() if key != name}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        *((lambda name=name: without(name), f"{name}: is missing") for name in NEW_GAME),
        (lambda: state(turn=0), "turn: unknown key; "),
        (lambda: state(credit=[2, 2, 2, 2]), "credit: unknown key; did you mean credits?"),
        (lambda: state(combat=[0, 0, 0]), "combat: "),
        (lambda: state(combat=[0] * 5), "combat: "),
        (lambda: state(position=[[-1] * 5] * 3), "position: "),
        (lambda: state(position=[[-1] * 5] * 5), "position: "),
        (lambda: state(position=[[-1] * 5] * 3 + [[-1] * 4]), "position[3]: "),
        (lambda: state(position=[[-1] * 5] * 3 + [[-1] * 6]), "position[3]: "),
        (lambda: state(store=[[0] * 6] * 3 + [[0] * 5]), "store[3]: "),
        (lambda: state(store={"0": 1}), "store: "),
        (lambda: state(clock_seconds=[1800]), "clock_seconds: "),
        (list, "Input should be an object"),
        (lambda: None, "Input should be an object"),
        (lambda: dict([*NEW_GAME.items(), (2, 1)]), "2: unknown key"),
        (lambda: "state", ""),
        (lambda: dict([*NEW_GAME.items(), (("a", "b"), 1)]), ""),
        (lambda: state(clock_seconds=10**5000), ""),  # longer than Python writes out
    ],
)
def test_other_shapes_are_refused(make: Callable[[], Any], message: str) -> None:
    assert refusal(make()).startswith(message)

"""The rules configuration: shipped numbers, the packed record, and how bad files are refused."""

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from retinue.envs.game import board, engine
from retinue.envs.game.events import new_log
from retinue.envs.game.ruleset import CASTLE, REGULAR, SAFE, Ruleset, load_ruleset, rules_file
from retinue.envs.game.schema import SchemaError
from retinue.envs.game.state import OVER, empty_turn, new_game

JOURNEY: dict[str, Any] = {
    "mode": "journey",
    "home_path_tiles": 7,
    "start_credits": 2,
    "max_credits": 4,
    "credits_per_grace": 1,
    "store_capacity": 12,
    "dice": [[3, 4], [6, 3], [8, 2], [11, 1], [12, 0]],
    "castles_protect": True,
    "progression": {
        "midpoint": [50, 100],
        "castle": [20, 40],
        "own_entering": [10, 20],
        "other_entering": [20, 40],
        "home": [100, 200],
    },
    "combat": {
        "safe": {"before": [20, 30], "past": [30, 45]},
        "castle": {"before": [30, 45], "past": [50, 75]},
        "regular": {"before": [40, 60], "past": [70, 105]},
    },
    "blockade_penalty": 2,
    "completion_bonus": [300, 200, 100, 50],
    "clock_seconds": 1800,
    "turn_seconds": 10,
}
BRAWL: dict[str, Any] = {
    **JOURNEY,
    "mode": "brawl",
    "store_capacity": 17,
    "dice": [[4, 5], [8, 4], [11, 3], [13, 2], [16, 1], [17, 0]],
    "progression": {
        "midpoint": [30, 60],
        "castle": [12, 24],
        "own_entering": [6, 12],
        "other_entering": [12, 24],
        "home": [60, 120],
    },
    "combat": {
        "safe": {"before": [50, 75], "past": [80, 120]},
        "castle": {"before": [80, 120], "past": [120, 180]},
        "regular": {"before": [100, 150], "past": [160, 240]},
    },
    "blockade_penalty": 5,
    "completion_bonus": [0, 0, 0, 0],
}
SHIPPED = {"journey": JOURNEY, "brawl": BRAWL}
# Dice rolled for 0, 1, 2 ... stored rolls.
DICE = {
    "journey": [4, 4, 4, 4, 3, 3, 3, 2, 2, 1, 1, 1, 0],
    "brawl": [5, 5, 5, 5, 5, 4, 4, 4, 4, 3, 3, 3, 2, 2, 1, 1, 1, 0],
}


@pytest.fixture
def rules_path(tmp_path: Path) -> Path:
    return tmp_path / "house.yaml"


def write(path: Path, data: Any) -> Path:
    path.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
    return path


def changed(place: str, value: Any) -> dict[str, Any]:
    """Journey's rules with one entry changed, ``place`` being like ``combat.safe.past[0]``."""
    rules = copy.deepcopy(JOURNEY)
    *way, last = [int(p) if p.isdigit() else p for p in re.findall(r"\w+", place)]
    inner: Any = rules
    for part in way:
        inner = inner[part]
    inner[last] = value
    return rules


def refusal(path: Path) -> str:
    """How loading ``path`` is refused; the message starts with the file."""
    with pytest.raises(SchemaError) as caught:
        load_ruleset(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message.removeprefix(f"{path}: ")


# --- What is shipped


@pytest.mark.parametrize("mode", SHIPPED)
def test_shipped_rules_are_the_documented_ones(mode: str) -> None:
    assert load_ruleset(mode).model_dump(mode="json") == SHIPPED[mode]
    assert list(load_ruleset(mode).model_dump()) == list(JOURNEY), "the record's order of keys"


@pytest.mark.parametrize("mode", SHIPPED)
def test_the_shipped_file_can_be_loaded_like_a_user_s_own(mode: str, rules_path: Path) -> None:
    rules_path.write_bytes(rules_file(mode).read_bytes())
    assert load_ruleset(rules_path) == load_ruleset(mode)


@pytest.mark.parametrize("mode", SHIPPED)
def test_packed_rules_hold_every_number(mode: str) -> None:
    ruleset, packed = load_ruleset(mode), load_ruleset(mode).packed
    rules = SHIPPED[mode]
    assert packed["home"] == ruleset.home == 75
    assert ruleset.turns == 180
    for name in (
        "start_credits",
        "max_credits",
        "credits_per_grace",
        "store_capacity",
        "castles_protect",
        "blockade_penalty",
        "clock_seconds",
        "turn_seconds",
    ):
        assert packed[name] == rules[name], name
    assert packed["completion_bonus"].tolist() == rules["completion_bonus"]
    assert packed["midpoint_points"].tolist() == rules["progression"]["midpoint"]


@pytest.mark.parametrize("mode", SHIPPED)
def test_packed_dice_for_every_number_of_stored_rolls(mode: str) -> None:
    packed = load_ruleset(mode).packed
    assert packed["dice"][: len(DICE[mode])].tolist() == DICE[mode]
    game = new_game(load_ruleset(mode))
    for held, rolled in enumerate(DICE[mode]):
        game["store"][0] = [held // 2, 0, 0, 0, 0, held - held // 2]
        assert engine.dice_count(game, packed) == rolled, held


@pytest.mark.parametrize("mode", SHIPPED)
def test_packed_points_by_checkpoint_bit(mode: str) -> None:
    points = SHIPPED[mode]["progression"]
    # Rules 4.1: bit 0 own entering tile, 1 to 8 Castles, 9 and 10 other entering tiles, 11 Home.
    assert load_ruleset(mode).packed["checkpoint_points"].tolist() == [
        points["own_entering"],
        *[points["castle"]] * 8,
        *[points["other_entering"]] * 2,
        points["home"],
    ]


@pytest.mark.parametrize("mode", SHIPPED)
def test_packed_combat_by_the_noble_s_place(mode: str) -> None:
    table, points = load_ruleset(mode).packed["combat"], SHIPPED[mode]["combat"]
    for place, name in ((SAFE, "safe"), (CASTLE, "castle"), (REGULAR, "regular")):
        assert table[place].tolist() == [points[name]["before"], points[name]["past"]]


# --- A user's own file


def test_a_user_s_file_plays_a_match(rules_path: Path) -> None:
    rules = {
        **copy.deepcopy(BRAWL),
        "home_path_tiles": 3,
        "start_credits": 5,
        "max_credits": 6,
        "store_capacity": 36,
        "dice": [[10, 16], [35, 1], [36, 0]],
        "clock_seconds": 95,
        "castles_protect": False,
    }
    ruleset = load_ruleset(write(rules_path, rules))
    assert (ruleset.home, ruleset.turns) == (71, 10)
    game, turns = new_game(ruleset), 0
    assert game["credits"].tolist() == [5, 5, 5, 5]
    while game["phase"] != OVER:
        engine.roll(game, ruleset.packed, np.uint64(3))
        assert game["dice"] == (16 if turns < 4 else 1)
        turn = empty_turn()
        turn["noble_steps"] = 6
        engine.play_or_raise(game, ruleset, turn, new_log())
        turns += 1
    assert turns == 10
    assert game["clock_seconds"] == 0
    assert game["position"][:, board.NOBLE].tolist() == [17, 17, 11, 11]


@pytest.mark.parametrize("name", ["house.yaml", "house.yml"])
def test_both_yaml_endings_are_read(tmp_path: Path, name: str) -> None:
    assert load_ruleset(str(write(tmp_path / name, JOURNEY))) == load_ruleset("journey")


def numbers(data: Any, place: str = "") -> Iterator[tuple[str, int]]:
    if isinstance(data, dict):
        for key, value in data.items():
            yield from numbers(value, f"{place}.{key}" if place else key)
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from numbers(value, f"{place}[{index}]")
    elif isinstance(data, int):
        yield place, data


def test_digest_tells_any_number(rules_path: Path) -> None:
    digests = {load_ruleset("journey").digest, load_ruleset("brawl").digest}
    different = 2
    for place, value in numbers(JOURNEY):
        if place in ("store_capacity", "dice[4][0]", "dice[4][1]"):
            continue  # bound to each other; below
        change = not value if isinstance(value, bool) else value - 1
        digests.add(load_ruleset(write(rules_path, changed(place, change))).digest)
        different += 1
    larger = {**changed("dice[4]", [13, 0]), "store_capacity": 13}
    digests.add(load_ruleset(write(rules_path, larger)).digest)
    assert len(digests) == different + 1


def test_digest_does_not_tell_the_order_of_keys(rules_path: Path) -> None:
    def turned_round(data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        return {key: turned_round(data[key]) for key in reversed(data)}

    assert list(turned_round(JOURNEY)) != list(JOURNEY)
    ruleset = load_ruleset(write(rules_path, turned_round(JOURNEY)))
    assert ruleset.digest == load_ruleset("journey").digest
    assert ruleset == load_ruleset("journey")


# --- What is refused


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        ("start_credit", 2, "start_credit: unknown key; did you mean start_credits?"),
        ("progression.castles", [1, 2], "progression.castles: unknown key; did you mean castle?"),
        ("combat.safe.pst", [1, 2], "combat.safe.pst: unknown key; did you mean past?"),
        ("zzz", 1, "zzz: unknown key; known keys: mode, home_path_tiles"),
        ("start_credits", True, "start_credits: Input should be a valid integer, not True"),
        ("start_credits", 2.0, "start_credits: Input should be a valid integer, not 2.0"),
        ("start_credits", "2", "start_credits: Input should be a valid integer, not '2'"),
        ("start_credits", None, "start_credits: Input should be a valid integer, not None"),
        ("start_credits", float("nan"), "start_credits: Input should be a"),
        ("start_credits", float("inf"), "start_credits: Input should be a"),
        ("clock_seconds", 10**30, "clock_seconds: Input should be less than or equal to 1000000"),
        ("castles_protect", 1, "castles_protect: Input should be a valid boolean, not 1"),
        ("castles_protect", "true", "castles_protect: Input should be a valid boolean, not 'true'"),
        ("mode", "Journey", "mode: Input should be 'journey' or 'brawl', not 'Journey'"),
        ("mode", 1, "mode: Input should be 'journey' or 'brawl', not 1"),
        ("progression", [1, 2], "progression: "),
        ("combat.castle.past", [50], "combat.castle.past[1]: is missing"),
        ("combat.castle.past", [50, 75, 1], "combat.castle.past: "),
        ("combat.castle.past[1]", -1, "combat.castle.past[1]: Input should be greater than or equ"),
        ("blockade_penalty", -2, "blockade_penalty: Input should be greater than or equal to 0"),
        ("completion_bonus", [300, 200, 100], "completion_bonus[3]: is missing"),
        ("completion_bonus[3]", -50, "completion_bonus[3]: Input should be greater than or equal"),
        ("progression.home", "100", "progression.home: "),
        ("home_path_tiles", 0, "home_path_tiles: Input should be greater than or equal to 1"),
        ("turn_seconds", 0, "turn_seconds: Input should be greater than or equal to 1"),
        ("start_credits", 5, "start_credits: 5 is more than max_credits 4"),
        ("store_capacity", 37, "store_capacity: Input should be less than or equal to 36"),
        ("store_capacity", 13, "dice: the last row must be for store_capacity 13, not 12"),
        ("store_capacity", 11, "dice[3]: 11 stored and 1 rolled are more than store_capacity 11"),
        ("dice[3][1]", 2, "dice[3]: 11 stored and 2 rolled are more than store_capacity 12"),
        ("dice[4][1]", 1, "dice[4]: 12 stored and 1 rolled are more than store_capacity 12"),
        ("dice[1][0]", 3, "dice[1]: 3 must be above the row before it, 3"),
        ("dice[2][0]", 5, "dice[2]: 5 must be above the row before it, 6"),
        ("dice[0][0]", -1, "dice[0]: -1 must be above the row before it"),
        ("dice[0][1]", 17, "dice[0][1]: Input should be less than or equal to 16"),
        ("dice[0][1]", -1, "dice[0][1]: Input should be greater than or equal to 0"),
        ("dice[0]", [3], "dice[0][1]: is missing"),
        ("dice", [[3, 4], [11, 1]], "dice: the last row must be for store_capacity 12, not 11"),
        ("dice", [], "dice: "),
        ("dice", {"3": 4}, "dice: "),
    ],
)
def test_a_bad_entry_is_refused_with_its_key(
    rules_path: Path, place: str, value: Any, words: str
) -> None:
    assert words in refusal(write(rules_path, changed(place, value)))


@pytest.mark.parametrize("place", ["mode", "dice", "progression.castle", "combat.safe.past"])
def test_a_missing_key_is_refused(rules_path: Path, place: str) -> None:
    rules = copy.deepcopy(JOURNEY)
    *way, last = place.split(".")
    inner = rules
    for part in way:
        inner = inner[part]
    del inner[last]
    assert refusal(write(rules_path, rules)) == f"{place}: is missing"


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ("start_credits: 3", "'start_credits' stands twice"),
        ("start_credits: 2", "'start_credits' stands twice"),
        ("? [1, 2]\n: 3", ""),  # a list for a key
        ("? {a: 1}\n: 3", ""),
        ("2024-01-01: 3", ""),  # a date for a key
        ("2: 3", "2: unknown key"),
    ],
)
def test_a_bad_key_is_refused(rules_path: Path, extra: str, words: str) -> None:
    text = yaml.safe_dump(JOURNEY) + extra + "\n"
    rules_path.write_text(text, encoding="utf-8")
    assert words in refusal(rules_path)


def test_a_key_that_stands_twice_further_in_is_refused(rules_path: Path) -> None:
    text = yaml.safe_dump(JOURNEY, default_flow_style=None)
    past = "    past: [50, 75]\n"
    assert text.count(past) == 1
    rules_path.write_text(text.replace(past, past + past))
    message = refusal(rules_path)
    assert "'past' stands twice" in message
    assert re.search(r"line \d+", message)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "must hold keys and values, not NoneType"),
        (b"# only a comment\n", "must hold keys and values"),
        (b"- 1\n- 2\n", "must hold keys and values, not list"),
        (b"journey\n", "must hold keys and values, not str"),
        (b"mode: [1, 2\n", "not valid YAML: "),
        (b"mode: journey\n\tdice: 3\n", "not valid YAML: "),
        (b"--- 1\n--- 2\n", "not valid YAML: "),
        (b"mode: \xff\xfe\n", "is not UTF-8 text"),
        (b"mode: \x00\n", "not valid YAML: "),
        (b"mode: 2024-13-45\n", ""),  # a date that is none
        (b"mode: !!int abc\n", ""),
        (b"mode: !!float abc\n", ""),
        (b"mode: !!bool abc\n", ""),
        (b"mode: !!timestamp abc\n", ""),
        (b"mode: " + b"9" * 5000 + b"\n", ""),  # more digits than Python turns into an integer
        (b"mode: &a [*a]\n", ""),  # a list that holds itself
        (b"mode: " + b"[" * 1000 + b"]" * 1000 + b"\n", ""),
        (b'mode: "\\ud800"\n', ""),  # half a character
        (b"mode: !!binary aGk=\n", "mode: Input should be 'journey' or 'brawl'"),
        (b"mode: *nowhere\n", "not valid YAML: "),
    ],
)
def test_a_file_that_is_no_rules_is_refused(rules_path: Path, content: bytes, words: str) -> None:
    rules_path.write_bytes(content)
    assert words in refusal(rules_path)


@pytest.mark.parametrize("tag", ["python/object/apply:pathlib.Path.touch", "python/name:os.system"])
def test_yaml_tags_run_nothing(rules_path: Path, tag: str) -> None:
    trace = rules_path.with_name("ran")
    path = f"!!python/object/apply:pathlib.PosixPath [{trace}]"
    rules_path.write_text(f"mode: !!{tag} [{path}]\n")
    assert "not valid YAML: " in refusal(rules_path)
    assert not trace.exists()


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path / "absent.yaml") == "No such file or directory"
    (tmp_path / "folder.yaml").mkdir()
    assert refusal(tmp_path / "folder.yaml") == "Is a directory"


@pytest.mark.parametrize("name", ["Journey", "", "jurney", "rules.json", "journey/"])
def test_an_unknown_mode_is_refused_with_those_that_exist(name: str) -> None:
    with pytest.raises(SchemaError, match=r"unknown mode .*journey, brawl or a \.yaml rule file"):
        load_ruleset(name)


def test_a_ruleset_cannot_be_changed() -> None:
    ruleset = load_ruleset("journey")
    with pytest.raises(ValueError, match="frozen"):
        ruleset.start_credits = 3  # type: ignore[misc]
    assert json.loads(ruleset.model_dump_json()) == JOURNEY
    assert Ruleset.model_validate_json(json.dumps(JOURNEY)) == ruleset


def test_a_copy_with_other_numbers_packs_those() -> None:
    assert load_ruleset("journey").packed["blockade_penalty"] == 2
    copied = load_ruleset("journey").model_copy(update={"blockade_penalty": 9})
    assert copied.packed["blockade_penalty"] == 9

"""Match records: the form on disk, the round trip, and the recorder."""

import json
import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retinue.envs.game import engine
from retinue.envs.game.record import MatchReplay, Recorder, verify_record
from retinue.envs.game.ruleset import Ruleset, load_ruleset
from retinue.envs.game.schema import SchemaError
from retinue.envs.game.state import OVER, empty_turn, state_to_json

AGENTS = ("greedy", "ppo:journey", "random", "random")
SEED = 7
TURNS = 12
"""Of the short match: a header, twelve turns, the result."""

HEADER_KEYS = ["record", "version", "mode", "seed", "rules", "agents", "start"]
TURN_KEYS = ["turn", "seat", "rolled", "credits_earned", "direction", "noble", "guards"]
TURN_KEYS += ["events", "after"]
RESULT_KEYS = ["totals", "places", "finish_order", "reason"]
STATE_SHAPE = {
    "position": (4, 5),
    "midpoint": (4, 5),
    "checkpoints": (4, 5),
    "progression": (4, 5),
    "combat": (4,),
    "bonus": (4,),
    "store": (4, 6),
    "credits": (4,),
    "turns_taken": (4,),
    "clock_seconds": (),
}
EVENT_KEYS = {
    "exit": {"piece"},
    "checkpoint": {"piece", "checkpoint", "points"},
    "midpoint": {"piece", "points"},
    "capture": {"piece", "seat", "points"},
    "blocked": {"piece", "trimmed", "points"},
    "home": {"piece", "points"},
    "finish": {"points"},
}


def random_legal_turn(game: Any, rules: Any, source: random.Random) -> Any:
    turn = empty_turn()
    turn["direction"] = source.randrange(2)
    if engine.noble_may_move(game, rules):
        turn["noble_steps"] = source.randint(0, 6)
        turn["noble_after"] = turn["noble_steps"] > 0 and source.randrange(2)
    mask = engine.legal_guards(game, rules)
    legal = [guard for guard in range(4) if mask >> guard & 1]
    for value in range(6):
        for _ in range(game["store"][game["seat"], value]):
            if legal and source.random() < 0.8:
                turn["rolls"][source.choice(legal), value] += 1
    return turn


def play_on(recorder: Recorder, source: random.Random, turns: int = 10**6) -> None:
    for _ in range(turns):
        if recorder.game["phase"] == OVER:
            return
        if recorder.seed is None:
            due = engine.dice_count(recorder.game, recorder.ruleset.packed)
            recorder.roll([source.randint(1, 6) for _ in range(due)])
        else:
            recorder.roll()
        rules = recorder.ruleset.packed
        recorder.play(random_legal_turn(recorder.game, rules, source))


def short_rules() -> Ruleset:
    rules = load_ruleset("journey").model_dump(mode="json") | {"clock_seconds": 10 * TURNS}
    return Ruleset.model_validate_json(json.dumps(rules))


@pytest.fixture(scope="module")
def short() -> list[str]:
    """The lines of a short finished match in which every seat has moved its Noble at once."""
    recorder = Recorder(short_rules(), AGENTS, SEED)
    for number in range(TURNS):
        recorder.roll()
        turn = random_legal_turn(recorder.game, recorder.ruleset.packed, random.Random(number))
        turn["noble_steps"] = 6
        recorder.play(turn)
    assert len(recorder.lines) == TURNS + 2
    return list(recorder.lines)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "match.jsonl"


def write(path: Path, lines: Sequence[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


def near_home(**entries: Any) -> dict[str, Any]:
    """STATE: everybody's Guards are Home, the Nobles one step before it."""
    return {
        "position": [[75, 75, 75, 75, 74]] * 4,
        "midpoint": [[1] * 5] * 4,
        "checkpoints": [[2048] * 4 + [0]] * 4,
        "progression": [[150, 150, 150, 150, 100]] * 4,
        "combat": [0, 0, 0, 0],
        "bonus": [0, 0, 0, 0],
        "store": [[0] * 6] * 4,
        "credits": [2, 2, 2, 2],
        "turns_taken": [20, 20, 20, 20],
        "clock_seconds": 1000,
        **entries,
    }


# --- The form and the round trip


@pytest.mark.parametrize(("mode", "seed"), [("journey", 0), ("brawl", 2**53 - 1), ("brawl", None)])
def test_a_whole_match_comes_back(path: Path, mode: str, seed: int | None) -> None:
    recorder = Recorder(load_ruleset(mode), AGENTS, seed)
    play_on(recorder, random.Random(mode))
    recorder.save(path)
    lines = path.read_text(encoding="utf-8").split("\n")
    assert lines.pop() == ""
    assert_documented_form(lines, mode, seed)

    replay = MatchReplay(path)
    numbers = []
    for replayed in replay:
        numbers.append(replayed.line)
        assert state_to_json(replayed.game) == json.loads(lines[replayed.line - 1])["after"]
        assert replay.result is None
    assert numbers == list(range(2, 182))
    assert replay.result is not None
    assert replay.result.model_dump(mode="json") == json.loads(lines[-1])["result"]
    assert verify_record(path).result == replay.result
    assert replay.ruleset == load_ruleset(mode)
    assert replay.header.agents == AGENTS


def assert_documented_form(lines: list[str], mode: str, seed: int | None) -> None:
    header, *turns, last = [json.loads(line) for line in lines]
    assert list(header) == HEADER_KEYS
    assert (header["record"], header["version"]) == ("retinue-match", 1)
    assert (header["mode"], header["seed"], header["agents"]) == (mode, seed, list(AGENTS))
    assert header["rules"] == load_ruleset(mode).model_dump(mode="json")
    assert_is_state(header["start"])
    for number, turn in enumerate(turns):
        assert list(turn) == TURN_KEYS
        assert (turn["turn"], turn["seat"]) == (number, number % 4)
        assert list(turn["noble"]) == ["steps", "when"]
        assert turn["noble"]["when"] in (
            ("before", "after") if turn["noble"]["steps"] else "before"
        )
        assert turn["direction"] in ("forward", "backward")
        assert [sorted(values) for values in turn["guards"]] == turn["guards"]
        assert_is_state(turn["after"])
        for event in turn["events"]:
            extra = set(event) - {"type"}
            assert extra | {"points"} == EVENT_KEYS[event["type"]] | {"points"}, event
    assert {event["type"] for turn in turns for event in turn["events"]} >= {
        "exit",
        "checkpoint",
        "midpoint",
        "capture",
    }
    # The result, worked out from the last turn's STATE.
    assert list(last) == ["result"]
    assert list(last["result"]) == RESULT_KEYS
    after = turns[-1]["after"]
    scores = [
        sum(after["progression"][s]) + after["combat"][s] + after["bonus"][s] for s in range(4)
    ]
    assert last["result"] == {
        "totals": scores,
        "places": [sorted(scores, reverse=True).index(score) + 1 for score in scores],
        "finish_order": [],
        "reason": "clock",
    }


def assert_is_state(state: Any) -> None:
    assert {name: np.shape(value) for name, value in state.items()} == STATE_SHAPE
    assert list(state) == list(STATE_SHAPE)


def test_the_documented_turn(path: Path) -> None:
    """RECORD.md's example turn, played from a state in which it is legal."""
    start = near_home(
        position=[[-1, -1, -1, -1, 30]] + [[-1] * 5] * 3,
        midpoint=[[0] * 5] * 4,
        credits=[3, 2, 2, 2],
        turns_taken=[0, 0, 0, 0],
        clock_seconds=1800,
    )
    recorder = Recorder(load_ruleset("journey"), AGENTS, None, start)
    recorder.roll([3, 6, 1, 1])
    turn = empty_turn()
    turn["noble_steps"] = 4
    turn["rolls"][0, [2, 5]] = 1
    turn["rolls"][2, 0] = 1
    events = recorder.play(turn)
    line = json.loads(recorder.lines[1])
    assert line["events"] == events
    assert line["events"][0] == {"type": "midpoint", "piece": 4, "points": 100}
    del line["events"], line["after"]
    assert line == {
        "turn": 0,
        "seat": 0,
        "rolled": [3, 6, 1, 1],
        "credits_earned": 0,
        "direction": "forward",
        "noble": {"steps": 4, "when": "before"},
        "guards": [[3, 6], [], [1], []],
    }
    recorder.save(path)
    assert verify_record(path).result is None


@pytest.mark.parametrize("turns", [0, 1, 50])
def test_a_match_in_progress_is_a_record_without_result(path: Path, turns: int) -> None:
    recorder = Recorder(load_ruleset("brawl"), AGENTS, SEED)
    play_on(recorder, random.Random(1), turns)
    recorder.save(path)
    replay = verify_record(path)
    assert replay.result is None
    assert len(list(replay)) == turns
    play_on(recorder, random.Random(2), 1)
    recorder.save(path)
    assert len(list(MatchReplay(path))) == turns + 1, "saving again replaces the file"


def test_a_record_may_start_in_the_middle_of_a_match(path: Path, short: list[str]) -> None:
    header = json.loads(short[0])
    header["start"] = json.loads(short[5])["after"]
    write(path, [json.dumps(header), *short[6:]])
    replay = MatchReplay(path)
    assert [replayed.turn.turn for replayed in replay] == list(range(5, TURNS))
    assert replay.result is not None
    recorder = Recorder(short_rules(), AGENTS, SEED, header["start"])
    assert json.loads(recorder.lines[0]) == header


def test_a_verified_record_can_be_replayed_again(path: Path, short: list[str]) -> None:
    write(path, short)
    replay = verify_record(path)
    for _ in range(2):
        assert [replayed.turn.turn for replayed in replay] == list(range(TURNS))
        assert replay.result is not None


def test_a_finished_match(path: Path) -> None:
    recorder = Recorder(load_ruleset("journey"), AGENTS, SEED, near_home(combat=[0, 100, 0, 0]))
    for _ in range(4):
        recorder.roll()
        turn = empty_turn()
        turn["noble_steps"] = 1
        recorder.play(turn)
    assert json.loads(recorder.lines[-1]) == {
        "result": {
            "totals": [1200, 1200, 1000, 950],
            "places": [1, 1, 3, 4],
            "finish_order": [0, 1, 2, 3],
            "reason": "finished",
        }
    }
    recorder.save(path)
    assert verify_record(path).result is not None


@pytest.mark.parametrize("end", [{"position": [[75] * 5] * 4}, {"clock_seconds": 0}])
def test_a_record_that_starts_at_the_end_of_a_match(path: Path, end: dict[str, Any]) -> None:
    recorder = Recorder(load_ruleset("journey"), AGENTS, SEED, near_home(**end))
    recorder.save(path)
    assert verify_record(path).result is not None


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\u0085"])
def test_only_a_newline_ends_a_line(path: Path, short: list[str], separator: str) -> None:
    """JSON allows these characters in a text as they are; other programs write them so."""
    header = {**json.loads(short[0]), "agents": [f"a{separator}b", *AGENTS[1:]]}
    write(path, [json.dumps(header, ensure_ascii=False), *short[1:]])
    assert verify_record(path).header.agents[0] == f"a{separator}b"


def test_events_are_not_compared(path: Path, short: list[str]) -> None:
    turns = [json.loads(line) for line in short]
    turns[1]["events"] = []
    turns[2]["events"] = [{"type": "finish"}, {"type": "home", "piece": 0, "points": 7}]
    turns[3]["events"][0]["points"] = -99
    write(path, [json.dumps(turn) for turn in turns])
    assert verify_record(path).result is not None


# --- The recorder


def test_dice_are_given_exactly_when_there_is_no_seed() -> None:
    with pytest.raises(ValueError, match="exactly when the record has no seed"):
        Recorder(short_rules(), AGENTS, SEED).roll([1, 2, 3, 4])
    recorder = Recorder(short_rules(), AGENTS, None)
    for dice, words in ((None, "exactly"), ([1, 2, 3], "3 dice, but"), ([1, 2, 3, 7], "shows 7")):
        with pytest.raises(ValueError, match=words):
            recorder.roll(dice)
    recorder.roll([1, 2, 3, 4])
    with pytest.raises(ValueError, match="no roll is due"):
        recorder.roll([1, 2, 3, 4])
    assert recorder.game["store"][0].tolist() == [1, 1, 1, 1, 0, 0]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("direction", 2),
        ("direction", -1),
        ("noble_steps", 7),
        ("noble_after", 1),  # with 0 steps
        ("noble_after", 2),
        ("noble_after", -1),
        ("rolls", 1),  # one of each value for every Guard
    ],
)
def test_an_illegal_turn_is_not_recorded(field: str, value: int) -> None:
    recorder = Recorder(short_rules(), AGENTS, SEED)
    turn = empty_turn()
    with pytest.raises(engine.IllegalTurn, match="has not been received"):
        recorder.play(turn)
    recorder.roll()
    before = recorder.game.copy()
    turn[field] = value
    with pytest.raises(engine.IllegalTurn):
        recorder.play(turn)
    assert recorder.game == before
    assert len(recorder.lines) == 1


def test_a_seed_may_be_numpy_s_but_must_be_an_integer(short: list[str]) -> None:
    assert Recorder(short_rules(), AGENTS, np.int64(SEED)).lines == short[:1]
    for seed in (True, 7.0, "7", -1, 2**53):
        with pytest.raises(SchemaError, match=r"^seed: "):
            Recorder(short_rules(), AGENTS, seed)  # type: ignore[arg-type]


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_others_may_read_a_record_as_any_file(path: Path) -> None:
    Recorder(short_rules(), AGENTS, SEED).save(path)
    other = path.with_name("other")
    other.write_text("")
    assert path.stat().st_mode == other.stat().st_mode


@pytest.mark.parametrize("failure", [OSError, KeyboardInterrupt])
def test_a_failed_save_leaves_the_old_file(
    path: Path, monkeypatch: pytest.MonkeyPatch, failure: type[BaseException]
) -> None:
    recorder = Recorder(short_rules(), AGENTS, SEED)
    recorder.save(path)
    before = path.read_bytes()
    play_on(recorder, random.Random(1), 1)

    def fail(*_: Any) -> None:
        raise failure

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        with pytest.raises(failure):
            recorder.save(path)
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    recorder.save(path)
    assert path.read_bytes() != before

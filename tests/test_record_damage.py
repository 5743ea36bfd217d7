"""Damaged and altered match records: refused with the file, the line and what differs."""

import itertools
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from retinue.envs.game import engine
from retinue.envs.game.record import Recorder, RecordError, verify_record
from retinue.envs.game.ruleset import Ruleset, load_ruleset
from retinue.envs.game.state import empty_turn

Place = tuple[str | int, ...]
Lines = list[str]
AGENTS = ("greedy", "ppo:journey", "random", "random")
TURNS = 12
LAST = TURNS + 2
"""The match altered here: the header in line 1, twelve turns, the result in the last line."""
STATE_SHAPE: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("position", "midpoint", "checkpoints", "progression"), (4, 5)),
    **dict.fromkeys(("combat", "bonus", "credits", "turns_taken"), (4,)),
    "store": (4, 6),
    "clock_seconds": (),
}


@pytest.fixture(scope="module")
def match() -> Lines:
    """A short match in which every seat's Noble takes six steps a turn and Guards share rolls."""
    numbers = load_ruleset("journey").model_dump(mode="json") | {"clock_seconds": 10 * TURNS}
    rules = Ruleset.model_validate_json(json.dumps(numbers))
    recorder = Recorder(rules, AGENTS, 7)
    for _ in range(TURNS):
        recorder.roll()
        game, turn = recorder.game, empty_turn()
        mask = engine.legal_guards(game, rules.packed)
        legal = [guard for guard in range(4) if mask >> guard & 1]
        turn["noble_steps"] = 6
        for value in range(5):  # sixes are kept
            guard = legal[value % len(legal)]
            turn["rolls"][guard, value] = game["store"][game["seat"], value]
        recorder.play(turn)
    assert len(recorder.lines) == LAST
    return list(recorder.lines)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "match.jsonl"


def text_of(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def refusal(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    with pytest.raises(RecordError) as caught:
        verify_record(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: "), message
    assert len(message) < 500
    return message.removeprefix(f"{path}: ")


def refused(path: Path, content: bytes | Sequence[str], number: int, *words: str) -> None:
    """The record is refused with its name, the line, and what is wrong with it."""
    message = refusal(path, content if isinstance(content, bytes) else text_of(content))
    assert message.startswith(f"line {number}: "), message
    assert all(word in message for word in words), message


def look(line: str, *place: str | int) -> Any:
    value = json.loads(line)
    for part in place:
        value = value[part]
    return value


def altered(lines: Sequence[str], number: int, place: Place, value: Any) -> Lines:
    """The lines with one entry of line ``number`` changed or added."""
    data = inner = json.loads(lines[number - 1])
    for part in place[:-1]:
        inner = inner[part]
    inner[place[-1]] = value
    return [*lines[: number - 1], json.dumps(data), *lines[number:]]


def in_words(place: Place) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return text.removeprefix(".")


def test_the_match_itself_is_accepted(path: Path, match: Lines) -> None:
    path.write_bytes(text_of(match))
    assert verify_record(path).result is not None


# --- Altered entries


@pytest.mark.parametrize("field", STATE_SHAPE)
def test_every_entry_of_a_state_is_compared(path: Path, match: Lines, field: str) -> None:
    for index in itertools.product(*map(range, STATE_SHAPE[field])):
        place: Place = ("after", field, *index)
        old = look(match[3], *place)
        words = f"{in_words(place)} is {old + 1}, but replaying gives {old}"
        refused(path, altered(match, 4, place, old + 1), 4, words)


@pytest.mark.parametrize(
    ("place", "change", "words"),
    [
        (("turn",), lambda old: old + 1, "turn is 5, but replaying gives 4"),
        (("seat",), lambda old: old + 1, "seat is 1, but replaying gives 0"),
        (("rolled", 0), lambda old: old % 6 + 1, "rolled[0] is "),
        (("rolled",), lambda old: old[:-1], "rolled is "),
        (("rolled",), lambda old: [*old, 1], "rolled is "),
        (("rolled",), lambda old: old[::-1], "rolled[0] is "),
        (("credits_earned",), lambda old: 1 - old, "credits_earned is "),
        (("credits_earned",), lambda _: 10**30, "credits_earned is 1000"),
        (("direction",), lambda _: "backward", "after."),
        (("noble", "steps"), lambda _: 5, "after."),
        (("noble",), lambda _: {"steps": 0, "when": "before"}, "after."),
        (("noble",), lambda _: {"steps": 0, "when": "after"}, "with 0 steps before"),
        (("guards", 1, 0), lambda _: 6, "guards[1]: [6, 2] is not ascending"),
        (("guards", 3), lambda _: [1], "exit credits belong to lower-numbered Guards"),
        (("guards",), lambda _: [[], [], [], []], "after."),
        (("guards", 1), lambda old: old[:-1], "after."),
        (("guards", 0), lambda _: [6] * 13, "13 rolls of 6 are assigned"),
        (("guards", 0), lambda _: [6] * 300, "guards[0]: more rolls than any store"),
        (("guards",), lambda _: [[], [], []], "guards"),
        (("guards",), lambda _: [[], [], [], [], []], "guards"),
        (("after",), lambda _: {}, "after.position: is missing"),
        (("after", "combat"), lambda _: [0, 0, 0], "after.combat"),
    ],
)
def test_an_altered_turn_is_refused(
    path: Path, match: Lines, place: Place, change: Callable[[Any], Any], words: str
) -> None:
    new = change(look(match[5], *place))
    refused(path, altered(match, 6, place, new), 6, words)


def test_the_noble_s_order_is_replayed(path: Path) -> None:
    """Rules 7.10: before the Guards the Noble is stopped by two of them, after them it is not."""
    start = {
        "position": [[6, 6, -1, -1, 3]] + [[-1] * 5] * 3,
        "midpoint": [[0] * 5] * 4,
        "checkpoints": [[0] * 5] * 4,
        "progression": [[0] * 5] * 4,
        "combat": [0] * 4,
        "bonus": [0] * 4,
        "store": [[0] * 6] * 4,
        "credits": [2] * 4,
        "turns_taken": [0] * 4,
        "clock_seconds": 1800,
    }
    recorder = Recorder(load_ruleset("journey"), AGENTS, None, start)
    recorder.roll([4, 4, 1, 1])
    turn = empty_turn()
    turn["noble_steps"] = 5
    turn["rolls"][:2, 3] = 1
    recorder.play(turn)
    lines = altered(recorder.lines, 2, ("noble", "when"), "after")
    refused(path, lines, 2, "after.position[0][4] is 5, but replaying gives 8")


@pytest.mark.parametrize(
    ("place", "change"),
    [
        *((("result", "totals", seat), lambda old: old + 1) for seat in range(4)),
        *((("result", "places", seat), lambda old: old % 4 + 1) for seat in range(4)),
        (("result", "finish_order"), lambda _: [0]),
        (("result", "reason"), lambda _: "finished"),
    ],
)
def test_an_altered_result_is_refused(
    path: Path, match: Lines, place: Place, change: Callable[[Any], Any]
) -> None:
    old = look(match[-1], *place)
    words = f"{in_words(place)} is {change(old)}, but replaying gives {old}"
    refused(path, altered(match, LAST, place, change(old)), LAST, words)


@pytest.mark.parametrize(
    ("place", "value", "number", "words"),
    [
        (("record",), "match", 1, "record: Input should be 'retinue-match'"),
        (("version",), 2, 1, "version: Input should be less than or equal to 1, not 2"),
        (("mode",), "brawl", 1, "mode is brawl, but rules.mode journey"),
        (("rules", "mode"), "brawl", 1, "mode is journey, but rules.mode brawl"),
        (("agents",), ["a", "b", "c"], 1, "agents"),
        (("seed",), 8, 2, "rolled[0] is "),
        (("rules", "dice", 0, 1), 3, 2, "rolled is "),
        (("rules", "start_credits"), 5, 1, "start_credits: 5 is more than max_credits 4"),
        (("rules", "progression", "own_entering", 1), 21, 2, "after.progression[0][4] is 20, but"),
        (("rules", "turn_seconds"), 11, 2, "after.clock_seconds is 110, but replaying gives 109"),
        (("rules", "clock_seconds"), 119, 1, "start: clock_seconds: 120 is not in 0 ... 119"),
        (("start", "clock_seconds"), 119, 2, "after.clock_seconds is 110, but replaying gives 109"),
        (("start", "clock_seconds"), 121, 1, "start: clock_seconds: 121 is not in 0 ... 120"),
        (("start", "position", 3, 0), 76, 1, "start: position[3][0]: 76 is not in -1 ... 75"),
        (("start", "position", 3, 0), 20, 2, "after.position[3][0] is -1, but replaying gives 20"),
        (("start", "midpoint", 0, 0), 1, 1, "start: midpoint[0][0]: G1 is in the Yard"),
        (("start", "checkpoints", 3, 4), 1, 2, "after.checkpoints[3][4] is 0, but"),
        (("start", "progression", 1, 1), 5, 2, "after.progression[1][1] is 0, but"),
        (("start", "combat", 1), -5, 2, "after.combat[1] is 0, but replaying gives -5"),
        (("start", "bonus", 2), 1, 2, "after.bonus[2] is 0, but replaying gives 1"),
        (("start", "store", 3, 0), 1, 2, "after.store[3][0] is 0, but replaying gives 1"),
        (("start", "credits", 3), 3, 2, "after.credits[3] is 2, but replaying gives 3"),
        (("start", "turns_taken", 0), 1, 2, "turn is 0, but replaying gives 1"),
        (("start", "turns_taken"), [2**31 - 1] * 4, 1, ""),
    ],
)
def test_an_altered_header_is_refused(
    path: Path, match: Lines, place: Place, value: Any, number: int, words: str
) -> None:
    refused(path, altered(match, 1, place, value), number, words)


def test_a_match_that_has_finished(path: Path) -> None:
    start = look(Recorder(load_ruleset("journey"), AGENTS, 7).lines[0], "start")
    start |= {"position": [[75, 75, 75, 75, 74]] * 4, "midpoint": [[1] * 5] * 4}
    recorder = Recorder(load_ruleset("journey"), AGENTS, 7, start)
    for _ in range(4):
        recorder.roll()
        turn = empty_turn()
        turn["noble_steps"] = 1
        recorder.play(turn)
    lines = recorder.lines
    for order in ([0, 1, 3, 2], [0, 1, 2], [0, 1, 2, 2], [0, 1, 2, 3, 3], [0, 1, 2, 4]):
        changed = altered(lines, 6, ("result", "finish_order"), order)
        refused(path, changed, 6, "result.finish_order")
    refused(path, altered(lines, 6, ("result", "reason"), "clock"), 6, "gives finished")
    refused(path, lines[:-1], 6, "its result is missing")


# --- Keys and types


@pytest.mark.parametrize("kind", ["unknown", "missing"])
@pytest.mark.parametrize(
    ("number", "place"),
    [
        (1, ("seed",)),
        (1, ("rules", "turn_seconds")),
        (1, ("rules", "progression", "castle")),
        (1, ("rules", "combat", "safe", "past")),
        (1, ("start", "clock_seconds")),
        (2, ("events",)),
        (2, ("noble", "when")),
        (2, ("events", 0, "type")),
        (2, ("after", "credits")),
        (LAST, ("result",)),
        (LAST, ("result", "reason")),
    ],
)
def test_keys_are_exactly_the_documented_ones(
    path: Path, match: Lines, kind: str, number: int, place: Place
) -> None:
    if kind == "unknown":
        place = (*place[:-1], f"{place[-1]}_")
        refused(path, altered(match, number, place, 1), number, f"{in_words(place)}: unknown key")
        return
    data = inner = json.loads(match[number - 1])
    for part in place[:-1]:
        inner = inner[part]
    del inner[place[-1]]
    lines = [*match[: number - 1], json.dumps(data), *match[number:]]
    refused(path, lines, number, f"{in_words(place)}: is missing")


INTEGERS: list[tuple[int, Place]] = [
    (1, ("version",)),
    (1, ("seed",)),
    (1, ("rules", "clock_seconds")),
    (1, ("rules", "dice", 0, 0)),
    (1, ("start", "combat", 0)),
    (1, ("start", "turns_taken", 3)),
    (2, ("turn",)),
    (2, ("seat",)),
    (2, ("rolled", 0)),
    (2, ("credits_earned",)),
    (2, ("noble", "steps")),
    (2, ("guards", 0, 0)),
    (2, ("after", "position", 0, 0)),
    (2, ("after", "clock_seconds")),
    (LAST, ("result", "totals", 0)),
    (LAST, ("result", "places", 3)),
    (LAST, ("result", "finish_order")),
]
NO_INTEGERS = ["NaN", "Infinity", "-Infinity", "1.0", "1e0", "1.5", "true", "false", '"1"', "[]"]
NO_INTEGERS += ["{}", "1" + "0" * 30, "-1" + "0" * 30, "9" * 5000, "01", "+1", "0x1", "1_0"]


@pytest.mark.parametrize(("number", "place"), INTEGERS, ids=str)
def test_only_integers_that_can_be_are_numbers(
    path: Path, match: Lines, number: int, place: Place
) -> None:
    for written in (
        NO_INTEGERS if place[-1] != "finish_order" else [*NO_INTEGERS[:9], "{}", "[true]"]
    ):
        lines = altered(match, number, place, "HERE")
        lines[number - 1] = lines[number - 1].replace('"HERE"', written)
        refused(path, lines, number)


@pytest.mark.parametrize("seed", ["-1", str(2**53), "1.5", "7.0", "true", '"7"', "[7]", "NaN"])
def test_a_seed_is_from_0_to_the_largest_integer_of_every_language(
    path: Path, match: Lines, seed: str
) -> None:
    header = match[0].replace('"seed": 7', f'"seed": {seed}')
    refused(path, [header, *match[1:]], 1, "seed: ")


# --- Lines and bytes


@pytest.mark.parametrize(
    ("damage", "number", "words"),
    [
        (lambda m: [], 1, "the header is missing"),
        (lambda m: m[1:], 1, "record: is missing"),
        (lambda m: ["", *m], 1, "JSON"),
        (lambda m: [m[0], *m], 2, ""),
        (lambda m: [*m[:3], *m[2:]], 4, "turn is 1, but replaying gives 2"),
        (lambda m: [*m[:3], *m[4:]], 4, "turn is 3, but replaying gives 2"),
        (lambda m: [*m[:3], m[4], m[3], *m[5:]], 4, "turn is 3, but replaying gives 2"),
        (lambda m: [*m[:3], "", *m[3:]], 4, "JSON"),
        (lambda m: [*m[:3], " ", *m[3:]], 4, "JSON"),
        (lambda m: [*m[:3], m[-1]], 4, ""),
        (lambda m: [*m[:3], "[]", *m[3:]], 4, "object"),
        (lambda m: [*m[:3], f"[{m[3]}]", *m[4:]], 4, "object"),
        (lambda m: [*m[:3], "null", *m[3:]], 4, "object"),
        (lambda m: [*m[:3], "7", *m[3:]], 4, "object"),
        (lambda m: [*m[:3], "{}", *m[3:]], 4, "turn: is missing"),
        (lambda m: [*m[:3], "[" * 100_000, *m[3:]], 4, "JSON"),
        (lambda m: [*m[:3], m[3] + m[4], *m[5:]], 4, "JSON"),
        (
            lambda m: [*m[:3], m[3].replace("{", '{"turn": 2, ', 1), *m[4:]],
            4,
            "'turn' stands twice",
        ),
        (lambda m: [*m[:3], m[3].replace('"steps"', '"steps": 1, "steps"'), *m[4:]], 4, "'steps'"),
        (lambda m: [*m[:3], m[3].replace('"', "'"), *m[4:]], 4, "JSON"),
        (lambda m: [*m[:3], m[3].replace("[", "[,", 1), *m[4:]], 4, "JSON"),
        (lambda m: [*m[:3], m[3][:-1] + "\0}", *m[4:]], 4, "JSON"),
        (lambda m: m[:-1], LAST, "the match is over, but its result is missing"),
        (lambda m: [*m[:-1], m[-2]], LAST, ""),
        (lambda m: [*m, m[-1]], LAST + 1, "stands after the result"),
        (lambda m: [*m, m[-2]], LAST + 1, "stands after the result"),
        (lambda m: [*m, ""], LAST + 1, "stands after the result"),
    ],
)
def test_lines_out_of_place_are_refused(
    path: Path, match: Lines, damage: Callable[[Lines], Lines], number: int, words: str
) -> None:
    refused(path, damage(match), number, words)


def test_a_file_cut_within_a_line_is_refused_there(path: Path, match: Lines) -> None:
    for number in range(1, LAST + 1):
        whole, line = text_of(match[: number - 1]), match[number - 1].encode()
        for length in (1, len(line) // 2, len(line) - 1):
            refused(path, whole + line[:length], number, "JSON")


def test_a_file_cut_between_two_turns_is_a_match_in_progress(path: Path, match: Lines) -> None:
    for number in range(1, LAST - 1):
        for content in (text_of(match[:number]), text_of(match[:number])[:-1]):
            path.write_bytes(content)
            replay = verify_record(path)
            assert replay.result is None
            assert len(list(replay)) == number - 1


def test_a_byte_that_is_no_utf_8_is_refused_with_its_line(path: Path, match: Lines) -> None:
    content = text_of(match)
    at = content.index(b'"turn": 3')
    refused(path, content[:at] + b"\xff" + content[at:], 5, "UTF-8")


def test_what_is_no_file_is_refused(path: Path) -> None:
    for place, words in ((path, "No such file"), (path.parent, "Is a directory")):
        with pytest.raises(RecordError) as caught:
            verify_record(place)
        assert str(caught.value).startswith(f"{place}: {words}")


def test_random_damage_is_refused_or_changes_nothing_that_is_compared(
    path: Path, match: Lines
) -> None:
    """Whatever a byte becomes: a clean refusal, or dice, states and result stay what they were."""
    source = random.Random(5)
    content = text_of(match)
    kept = compared(content)
    for _ in range(400):
        at = source.randrange(len(content))
        new = bytes(source.choices(b'0123456789-,.[]{}": \nenaf\x80', k=source.randrange(3)))
        damaged = content[:at] + new + content[at + source.randrange(3) :]
        path.write_bytes(damaged)
        try:
            verify_record(path)
        except RecordError as error:
            assert str(error).startswith(f"{path}: ")  # noqa: PT017 - either outcome is right
        else:
            assert compared(damaged) == kept[: len(compared(damaged))]


def compared(content: bytes) -> list[Any]:
    names = ("turn", "seat", "rolled", "credits_earned", "after", "result")
    lines = [json.loads(line) for line in content.decode().splitlines()]
    return [[line.get(name) for name in names] for line in lines]

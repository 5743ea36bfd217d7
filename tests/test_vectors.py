"""The test vectors in ``docs/vectors``: what the code gives, right, and enough to catch a fault."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from referee import IllegalTurn, Referee
from retinue import cli
from retinue.agents.artifact import load_artifact
from retinue.agents.policy import EVEN, ROUNDED
from retinue.agents.vectors import COMMAND, write_vectors
from retinue.envs.actions import Encoding
from retinue.envs.game.board import GUARDS, LOOP, NOBLE, QUARTER, YARD
from retinue.envs.game.record import turn_to_json, verify_record
from retinue.envs.game.ruleset import MODES, load_ruleset
from retinue.envs.game.state import GAME
from retinue.envs.opponents import View
from retinue.envs.scenes import scenes
from retinue.envs.staged import Scene, play_scene, read_scene
from retinue.envs.vectors import Position, bits, considered, numbers, to_text

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "vectors"
FILES = sorted(path.name for path in FOLDER.iterdir())
POLICIES = [name for name in FILES if name.endswith(".onnx")]
MANIFESTS = [Path(name).with_suffix(".json").name for name in POLICIES]
EXACT = sorted({*FILES} - {*POLICIES, *MANIFESTS, "policies.json"})
LARGEST = 1_500_000
SEATS = range(4)


def read(name: str) -> Any:
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the command writes now."""
    folder = tmp_path_factory.mktemp("vectors") / "new"
    assert [path.name for path in write_vectors(folder)] == FILES
    assert sorted(path.name for path in folder.iterdir()) == FILES
    return folder


# --- They are what the code gives


@pytest.mark.parametrize("name", EXACT)
def test_the_files_are_up_to_date(fresh: Path, name: str) -> None:
    assert (fresh / name).read_bytes() == (FOLDER / name).read_bytes(), f"run `{COMMAND}`"


def test_the_policies_are_up_to_date(fresh: Path) -> None:
    """Logits in the last digits, and the file's bytes, depend on the libraries' versions."""
    old, new = (json.loads((each / "policies.json").read_text()) for each in (FOLDER, fresh))
    assert old["choices"] == new["choices"]
    for mine, theirs in zip(old["policies"], new["policies"], strict=True):
        for before, after in zip(mine["decisions"], theirs["decisions"], strict=True):
            for one, other in zip(before["steps"], after["steps"], strict=True):
                assert one.pop("logits") == pytest.approx(other.pop("logits"), abs=EVEN)
        assert mine == theirs, f"run `{COMMAND}`"


@pytest.mark.parametrize("name", POLICIES)
def test_the_networks_are_up_to_date(fresh: Path, name: str) -> None:
    models = [onnx.load(each / name) for each in (FOLDER, fresh)]
    weights = [
        {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
        for model in models
    ]
    assert weights[0].keys() == weights[1].keys()
    for key, value in weights[0].items():
        np.testing.assert_array_equal(value, weights[1][key])
    beside = Path(name).with_suffix(".json").name
    manifests = [json.loads((each / beside).read_text()) for each in (FOLDER, fresh)]
    for manifest in manifests:
        del manifest["sha256"]
    assert manifests[0] == manifests[1]


def test_they_are_small() -> None:
    sizes = {path.name: path.stat().st_size for path in FOLDER.iterdir()}
    assert sum(sizes.values()) < LARGEST
    assert sum(size for name, size in sizes.items() if name in POLICIES) < 200_000


@pytest.mark.parametrize("mode", MODES)
def test_the_matches_verify(mode: str) -> None:
    found = verify_record(FOLDER / f"match-{mode}.jsonl")
    assert found.ruleset.digest == load_ruleset(mode).digest
    assert found.result is not None


def test_one_match_ends_by_the_clock_and_one_before() -> None:
    reasons = {
        verify_record(FOLDER / f"match-{mode}.jsonl").result.reason  # type: ignore[union-attr]
        for mode in MODES
    }
    assert reasons == {"finished", "clock"}


# --- How numbers are written


def test_numbers_mean_the_same_float32() -> None:
    rng = np.random.default_rng(1)
    values = np.concatenate(
        [rng.normal(size=1000), rng.random(1000) * 1e-12, [0, 1, -1, 1 / 3, 0.1]]
    ).astype(np.float32)
    written = json.loads(json.dumps(numbers(values)))
    np.testing.assert_array_equal(np.array(written, np.float32), values)


def test_numbers_are_as_short_as_they_can_be() -> None:
    assert json.dumps(numbers(np.array([0, 1, -1, 0.1, 1 / 3]))) == "[0, 1, -1, 0.1, 0.33333334]"


def test_a_file_has_a_line_for_each_item() -> None:
    content = {"one": 1, "several": [[1, 2], {"a": "b"}]}
    text = to_text(content)
    assert text == '{\n "one": 1,\n "several": [\n  [1,2],\n  {"a":"b"}\n ]\n}\n'
    assert json.loads(text) == content


# --- The rules' turns


TURNS = read("turns.json")["turns"]


def test_every_paragraph_of_the_rules_has_a_turn() -> None:
    text = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
    paragraphs = set(re.findall(r"^- \*\*(\d+(?:\.\d+)+)\*\*", text, re.MULTILINE))
    headings = set(re.findall(r"^#{2,3} (\d(?:\.\d)?)\.? ", text, re.MULTILINE))
    alone = {each for each in headings if not any(p.startswith(f"{each}.") for p in paragraphs)}
    # 1.1 and 1.4 say how long the loop is and how its tiles are numbered: in board.json. Of 4 and 7
    # it is the parts that say something, 6 lists assumptions.
    wanted = (paragraphs | alone) - {"1.1", "1.4", "4", "6", "7"}
    assert {"2.9", "3.1.4", "3.2", "3.4", "3.6.6", "4.1", "4.2", "4.3", "5"} <= wanted
    assert wanted - {turn["rule"] for turn in TURNS} == set()


def test_the_turns_show_what_they_should() -> None:
    """Each kind of event and of refusal, in both modes where numbers differ."""
    kinds = {(turn["mode"], event["type"]) for turn in TURNS for event in turn.get("events", [])}
    names = ("exit", "checkpoint", "midpoint", "capture", "blocked", "home", "finish")
    assert kinds == {(mode, name) for mode in MODES for name in names}
    reasons = {turn["reason"].split(" ")[0] for turn in TURNS if not turn["legal"]}
    assert len(reasons) >= 5
    assert {turn["seat"] for turn in TURNS} == {0, 2, 3}
    assert {turn["result"]["reason"] for turn in TURNS if "result" in turn} == {"finished", "clock"}


@pytest.mark.parametrize("turn", TURNS, ids=[f"{turn['rule']}-{turn['what']}" for turn in TURNS])
def test_the_independent_referee_agrees(turn: dict[str, Any]) -> None:
    ruleset = load_ruleset(turn["mode"])
    referee = Referee(ruleset.model_dump(mode="json"), turn["state"])
    assert referee.seat == turn["seat"]
    assert referee.roll(turn["rolled"]) == turn["credits_earned"]
    if not turn["legal"]:
        with pytest.raises(IllegalTurn):
            referee.play(turn["turn"])
        return
    assert referee.play(turn["turn"]) == turn["events"]
    assert referee.state() == turn["after"]
    assert referee.over == (turn["next"] is None)
    if referee.over:
        assert referee.result() == turn["result"]
    else:
        assert referee.seat == turn["next"]


def test_a_scene_is_read_from_a_line() -> None:
    line = "3.5.1 | what | brawl, red to move, green G1 51 N 70*, red G2 20/5+30 credits 1 | G2 1"
    played = play_scene(read_scene(line))
    assert (played["rule"], played["what"], played["mode"]) == ("3.5.1", "what", "brawl")
    state = played["state"]
    assert state["position"] == [[51, -1, -1, -1, 70], [-1, 3, -1, -1, -1], [-1] * 5, [-1] * 5]
    assert state["midpoint"][0] == [0, 0, 0, 0, 1]
    assert (state["checkpoints"][1][1], state["progression"][1][1]) == (5, 30)
    assert (state["credits"], played["seat"]) == ([2, 1, 2, 2], 1)
    assert played["turn"]["guards"] == [[], [1], [], []]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("1.2 | too few | columns", "must have 4 columns, not 3"),
        ("1.2 | what | green G1 five |", "no place after G1"),
        ("1.2 | what | violet G1 5 |", "'violet' means nothing"),
        ("1.2 | what | green G7 5 |", "G7"),
        ("1.2 | what | rolls 1 1 |", "2 dice"),
        ("1.2 | what | yellow to move, yellow turns 9 |", "yellow is not to move"),
    ],
)
def test_a_scene_that_cannot_be_is_refused(line: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(complaint)):
        play_scene(read_scene(line))


def test_no_two_scenes_are_the_same() -> None:
    found = scenes()
    assert len({(each.position, each.turn) for each in found if each.rule[0] != "7"}) > 150
    assert len(set(found)) == len(found)
    assert all(isinstance(each, Scene) for each in found)


# --- Positions

POSITIONS = {mode: read(f"positions-{mode}.json")["positions"] for mode in MODES}
CASES = [(mode, each) for mode in MODES for each in POSITIONS[mode]]


def position_of(mode: str, case: dict[str, Any]) -> Position:
    return Position(case["from"], case["state"], case["rolled"], load_ruleset(mode))


def own(case: dict[str, Any], name: str) -> Any:
    return case["state"][name][case["seat"]]


def stacked(case: dict[str, Any]) -> bool:
    guards = [place for place in own(case, "position")[:GUARDS] if YARD < place < LOOP]
    return len(set(guards)) < len(guards)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "shows",
    [
        pytest.param(lambda case: sum(case["state"]["turns_taken"]) == 0, id="the start"),
        pytest.param(lambda case: case["state"]["clock_seconds"] < 450, id="near the end"),
        pytest.param(lambda case: 800 < case["state"]["clock_seconds"] < 1500, id="the middle"),
        pytest.param(stacked, id="a stack"),
        pytest.param(lambda case: own(case, "position")[NOBLE] == 75, id="the Noble Home"),
        pytest.param(lambda case: 75 in own(case, "position")[:GUARDS], id="a Guard Home"),
        pytest.param(lambda case: min(own(case, "combat"), 0) < 0, id="a negative score"),
        pytest.param(lambda case: 0 in case["sections"]["legal_guards"], id="a Guard that may not"),
        pytest.param(lambda case: case["credits_earned"] > 0, id="a grace roll"),
        pytest.param(lambda case: "crowded" not in case["from"], id="a match"),
        pytest.param(lambda case: max(own(case, "checkpoints")) >= 1 << 11, id="the last record"),
        pytest.param(lambda case: not all(a["legal"] for a in case["turn"]["actions"]), id="bad"),
        *(
            pytest.param(lambda case, s=seat: case["seat"] == s, id=f"seat {seat}")
            for seat in SEATS
        ),
    ],
)
def test_positions_show_what_they_should(mode: str, shows: Any) -> None:
    assert any(map(shows, POSITIONS[mode]))


@pytest.mark.parametrize(("mode", "case"), CASES, ids=[f"{m}-{c['from']}" for m, c in CASES])
def test_an_agent_sees_what_is_written(mode: str, case: dict[str, Any]) -> None:
    """Sections and the encoding's own part make the vector; the first do not change in a turn."""
    ruleset, position = load_ruleset(mode), position_of(mode, case)
    shared = [value for part in case["sections"].values() for value in part]
    turn = Encoding("turn", ruleset)
    action = case["turn"]["actions"][0]
    meant, (seen,) = considered(position, turn, lambda *_: action["action"])
    assert numbers(seen.observation) == [*shared, *case["turn"]["rolls"]]
    assert (bits(seen.mask), meant) == (case["turn"]["mask"], action["turn"])
    for sequence in case["steps"]:
        script = iter(sequence["seen"])
        meant, steps = considered(
            position, Encoding("steps", ruleset), lambda *_, script=script: next(script)["action"]
        )
        for step, written in zip(steps, sequence["seen"], strict=True):
            assert numbers(step.observation) == [*shared, *written["plan"]]
            assert bits(step.mask) == written["mask"]
        assert meant == sequence["turn"]


def test_the_layouts_are_those_of_the_encodings() -> None:
    for mode in MODES:
        for name, rows in read(f"positions-{mode}.json")["layouts"].items():
            layout = Encoding(name, load_ruleset(mode)).layout()
            assert rows == [[each.name, each.start, each.size] for each in layout.sections]
            assert rows[-1][1] + rows[-1][2] == layout.size


# --- Policies

DECISIONS = [
    (each, decision) for each in read("policies.json")["policies"] for decision in each["decisions"]
]
NAMES = [f"{each['file']}-{decision['position']}" for each, decision in DECISIONS]


@pytest.mark.parametrize(("policy", "decision"), DECISIONS, ids=NAMES)
def test_the_file_plays_the_turn(policy: dict[str, Any], decision: dict[str, Any]) -> None:
    ruleset = load_ruleset(policy["mode"])
    position = position_of(policy["mode"], POSITIONS[policy["mode"]][decision["position"]])
    agent = load_artifact(FOLDER / policy["file"], ruleset)
    view = View(np.array([position.game()], GAME), np.zeros(1, np.uint64), ruleset)
    (turn,) = agent.choose(view, np.random.default_rng(0))
    assert turn_to_json(turn) == decision["turn"]


def test_no_choice_hangs_on_rounding() -> None:
    """Else a frontend with another library for networks would choose otherwise, and be right."""
    chosen = set()
    for policy, decision in DECISIONS:
        encoding = Encoding(policy["encoding"], load_ruleset(policy["mode"]))
        script = iter(decision["steps"])
        _, steps = considered(
            position_of(policy["mode"], POSITIONS[policy["mode"]][decision["position"]]),
            encoding,
            lambda *_, script=script: next(script)["action"],
        )
        for step, written in zip(steps, decision["steps"], strict=True):
            logits = np.array(written["logits"], np.float32)
            parts = np.cumsum(encoding.nvec)[:-1]
            for part, mask in zip(np.split(logits, parts), np.split(step.mask, parts), strict=True):
                below = part[mask].max() - part[mask]
                even = max(EVEN, ROUNDED * np.abs(part).max())
                assert np.abs(below - even).min() > EVEN / 4
        chosen.add(json.dumps(decision["turn"]))
    assert len(chosen) > len(DECISIONS) / 2  # they differ from position to position


# --- The command


def test_the_command_says_what_it_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["vectors", "--out", "some/folder"]) == 0
    out, err = capsys.readouterr()
    size = sum(path.stat().st_size for path in Path("some/folder").iterdir())
    assert out == (
        f"some/folder: {len(FILES)} files, {size:,} bytes; docs/frontends.md explains them\n"
    )
    assert err == ""


def test_a_file_is_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "taken").write_text("")
    assert cli.main(["vectors", "--out", str(tmp_path / "taken")]) == 2
    assert capsys.readouterr().err == f"retinue: {tmp_path / 'taken'}: is a file; give a folder\n"


def test_quarters_are_what_places_are_turned_by() -> None:
    """A scene's places are Green's offsets: what stands on one tile has one number."""
    played = play_scene(read_scene("1.3 | what | red G1 40, blue G1 40, yellow G1 40 |"))
    found = [row[0] for row in played["state"]["position"][1:]]
    assert [(place + QUARTER * seat) % LOOP for seat, place in enumerate(found, 1)] == [40] * 3

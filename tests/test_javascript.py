"""The JavaScript example reproduces every test vector, and notices when it does not."""

import json
import re
import shutil
from pathlib import Path

import pytest

from javascript import EXAMPLE, VECTORS, copy_example, node, run_script

CHECKED = (
    *("rules.json", "dice.json", "board.json", "turns.json", "match-journey.jsonl"),
    *("match-brawl.jsonl", "positions-journey.json", "positions-brawl.json", "policies.json"),
)

# Faults: the file, what is right, what is put in its place, and vectors that have to notice.
FAULTS = [
    ("dice.js", "1 + index + 64", "index + 64", "dice.json"),
    ("dice.js", "word >> 27n", "word >> 28n", "match-brawl.jsonl"),
    ("game.js", "QUARTER * seat) % LOOP", "QUARTER * seat) % (LOOP + 1)", "board.json"),
    ("game.js", "first + second === 6", "first + second === 7", "turns.json"),
    ("game.js", "state.turns_taken[a] - state.turns_taken[b] || a - b", "a - b", "turns.json"),
    ("game.js", "credits-- > 0", "credits > 0", "positions-journey.json"),
    ("game.js", "Math.min(rules.credits_per_grace, room)", "1", "turns.json"),
    ("observation.js", "QUARTER * seen", "QUARTER * (4 - seen)", "board.json"),
    ("observation.js", "offset > TURN_OFF", "offset >= TURN_OFF", "board.json"),
    ("observation.js", "position <= 0", "position < 0", "positions-brawl.json"),
    ("observation.js", "squash(p, 200)", "squash(p, 201)", "positions-journey.json"),
    ("observation.js", "(viewer + seen) % SEATS", "seen", "positions-journey.json"),
    ("observation.js", "squash(total, 12)", "0", "positions-brawl.json"),
    ("observation.js", "'after' ? 3 : 2", "'after' ? 2 : 3", "positions-brawl.json"),
    ("observation.js", "legal && roll < held", "legal", "positions-journey.json"),
    ("observation.js", "guard >= 0 && legal[guard]", "guard >= 0", "positions-journey.json"),
    ("observation.js", "noble > 6 ? 'after'", "noble > 5 ? 'after'", "positions-brawl.json"),
    ("policy.js", "logit < f32(best - even)", "logit < best", "policies.json"),
    ("policy.js", "f32(f32(ROUNDED) * largest)", "0", "policies.json"),
    ("referee.js", "moving;", "moving + 1;", "turns.json"),
    ("referee.js", "if (there === 0) continue;", "", "turns.json"),
    ("referee.js", "sort(largerFirst).forEach", "forEach", "turns.json"),
    ("referee.js", "if (moved) this.captureOn(here);", "", "turns.json"),
    ("referee.js", "if (piece === NOBLE) state.credits", "state.credits", "turns.json"),
    ("referee.js", "order.length === SEATS", "order.length > 0", "match-brawl.jsonl"),
]


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    node()
    return copy_example(tmp_path_factory.mktemp("example"))


def test_it_reproduces_every_vector(example: Path) -> None:
    done = run_script(example, "check-vectors.mjs", VECTORS)
    assert (done.returncode, done.stderr) == (0, "")
    *lines, last = done.stdout.splitlines()
    assert last == "every vector is reproduced"
    counts = {name: counted.split(" of ") for name, counted in (line.split(": ") for line in lines)}
    assert tuple(counts) == CHECKED
    assert all(found == compared and int(compared) > 0 for found, compared in counts.values())


def test_it_reads_every_file() -> None:
    """Networks and manifests are named in ``policies.json``."""
    policies = json.loads((VECTORS / "policies.json").read_text())["policies"]
    named = {each[key] for each in policies for key in ("file", "manifest")}
    assert {path.name for path in VECTORS.iterdir()} == {*CHECKED, *named}


@pytest.mark.parametrize(
    ("file", "right", "wrong", "noticed"), FAULTS, ids=[f"{each[0]}-{each[1]}" for each in FAULTS]
)
def test_a_fault_is_noticed(
    example: Path, tmp_path: Path, file: str, right: str, wrong: str, noticed: str
) -> None:
    copy = tmp_path / "javascript"
    shutil.copytree(example, copy, symlinks=True)
    text = (copy / file).read_text()
    assert text.count(right) == 1
    (copy / file).write_text(text.replace(right, wrong))
    done = run_script(copy, "check-vectors.mjs", VECTORS, noticed)
    assert done.returncode == 1
    assert re.search(rf"^{re.escape(noticed)}: .*", done.stderr, re.MULTILINE)
    assert "SyntaxError" not in done.stderr
    assert done.stdout.endswith("some vectors are not reproduced\n")


@pytest.mark.parametrize("name", CHECKED)
def test_an_altered_vector_is_noticed(example: Path, tmp_path: Path, name: str) -> None:
    """The last number of a file is compared too, unless it is the seat to move or the like."""
    folder = tmp_path / "vectors"
    shutil.copytree(VECTORS, folder)
    text = (folder / name).read_text()
    last = list(re.finditer(r"(?<=[\[,:])\d(?=[\],])", text))[-1]
    other = str((int(last[0]) + 1) % 10)
    (folder / name).write_text(text[: last.start()] + other + text[last.end() :])
    done = run_script(example, "check-vectors.mjs", folder, name)
    assert done.returncode == 1
    assert f"{name}: " in done.stderr


def test_a_missing_file_is_told_in_a_line(example: Path, tmp_path: Path) -> None:
    folder = tmp_path / "vectors"
    shutil.copytree(VECTORS, folder)
    (folder / "dice.json").unlink()
    done = run_script(example, "check-vectors.mjs", folder, "dice.json", "nice.json")
    assert done.returncode == 1
    assert "dice.json: ENOENT" in done.stderr
    assert "nice.json: no such vectors: rules.json, dice.json," in done.stderr


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"mode": "brawl"}, "mode is brawl, not journey"),
        ({"rules_digest": "0" * 16}, "rules_digest is 0000000000000000, not"),
        ({"observation_version": 2}, "observation_version is 2, not 1"),
        ({"encoding": "candidates"}, "encoding is candidates: policies over candidates need"),
        ({"observation_size": 294}, "sizes are not 293 and 75"),
        ({"version": 2}, "version is 2, not 1"),
    ],
)
def test_a_policy_for_something_else_is_refused(
    example: Path, tmp_path: Path, changes: dict[str, object], reason: str
) -> None:
    folder = tmp_path / "vectors"
    shutil.copytree(VECTORS, folder)
    path = folder / "policy-journey-turn.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    done = run_script(example, "check-vectors.mjs", folder, "policies.json")
    assert done.returncode == 1
    assert f"policies.json: {reason}" in done.stderr


def test_it_depends_on_one_package_and_names_no_registry() -> None:
    package = json.loads((EXAMPLE / "package.json").read_text())
    assert list(package["dependencies"]) == ["onnxruntime-web"]
    lock = (EXAMPLE / "package-lock.json").read_text()
    assert "resolved" not in lock
    assert "://" not in re.sub(r'"url": "https?://[^"]*"', "", lock)
    for each in json.loads(lock)["packages"].values():
        assert "integrity" in each or "dependencies" in each


def test_without_a_service_it_says_so(example: Path) -> None:
    done = run_script(example, "play.mjs", "--url", "http://127.0.0.1:1")
    assert done.returncode == 1
    assert done.stderr == ("nobody answers at http://127.0.0.1:1: is `retinue serve` running?\n")

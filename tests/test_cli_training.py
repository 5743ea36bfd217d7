"""`retinue train` and `retinue bench`, run as a user runs them."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from retinue.cli import main

COMMAND = [sys.executable, "-m", "retinue.cli"]
TINY = [
    *("--set", "environments=16", "--set", "network=[16]", "--set", "ppo.rollout_steps=16"),
    *("--set", "ppo.batch_size=64", "--set", "ppo.epochs=1", "--set", "evaluation.every=4096"),
    *("--set", "evaluation.blocks=1", "--set", "evaluation.final_blocks=1"),
    *("--set", "encoding=turn", "--set", "opponents=[racer]", "--set", "engine_threads=1"),
    *("--set", "evaluation.against=[racer]"),
]


def test_training_ends_with_a_table_and_a_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", "quick", *TINY, "--set", "decisions=1024"]) == 0
    shown = capsys.readouterr()
    assert "first places (par 25%)" in shown.out
    assert (tmp_path / "runs" / "quick" / "policy" / "policy.pt").exists()
    assert "Training in runs/quick with 1 engine and 1 torch threads" in shown.err
    players = "policy:runs/quick,racer,random,random"
    assert main(["play", "--agents", players, "--matches", "4"]) == 0
    assert "policy:" in capsys.readouterr().out


def test_ctrl_c_keeps_the_run_and_resume_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = [*COMMAND, "train", "quick", *TINY, "--set", "decisions=16384", "--out", "run"]
    process = subprocess.Popen(arguments, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    measured = tmp_path / "run" / "metrics.jsonl"
    deadline = time.monotonic() + 60
    while not measured.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "go on with: retinue train --resume run" in errors
    assert "Traceback" not in errors
    monkeypatch.chdir(tmp_path)
    assert main(["train", "--resume", "run"]) == 0
    lines = [json.loads(line)["decisions"] for line in measured.read_text().splitlines()]
    assert lines == sorted(set(lines))
    assert json.loads((tmp_path / "run" / "evaluation.json").read_text())["decisions"] >= 16384


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train"], "give a CONFIG"),
        (["train", "nowhere.yaml"], "nowhere.yaml: No such file"),
        (
            ["train", "nowhere"],
            "retinue: unknown configuration 'nowhere': use a .yaml file or one of: brawl, journey, "
            "quick\n",
        ),
        (["train", "folder"], "unknown configuration 'folder': use a .yaml file"),
        (["train", "folder/"], "unknown configuration 'folder': use a .yaml file"),
        (["train", "folder/none"], "No such file"),
        (["train", "quick", "--resume", "x"], "keeps its configuration"),
        (["train", "--resume", "x"], "no checkpoint"),
        (["train", "quick", "--set", "ppo.epoch=3"], "did you mean epochs"),
        (["train", "quick", "--set", "opponents=[racerr]"], "did you mean racer"),
        (["train", "quick", "--set", "rules=none.yaml"], "none.yaml"),
        (["train", "quick", "--out", "."], "exists already"),
        (["bench", "--mode", "chess"], "unknown mode"),
        (["bench", "--json", "no/where.json"], "no/where.json: there is no folder no"),
        (["bench", "--json", "folder"], "folder: is a folder"),
        (["bench", "--json", "something/bench.json"], "there is no folder something"),
        (["bench", "--json", "x" * 255], "cannot be written: File name too long"),
    ],
)
def test_bad_input_is_one_line(
    tmp_path: Path,
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "something").write_text("")
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    errors = capsys.readouterr().err
    assert message in errors
    assert errors.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "something"]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="this user may write anywhere")
def test_figures_are_not_measured_for_a_folder_that_takes_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tmp_path.chmod(0o500)
    assert main(["bench", "--json", str(tmp_path / "bench.json")]) == 2
    out, errors = capsys.readouterr()
    assert out == ""
    assert "bench.json: cannot be written: Permission denied" in errors


def test_benchmarks_are_written_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "bench.json"
    assert main(["bench", "--quick", "--no-training", "--json", str(file)]) == 0
    shown = capsys.readouterr().out
    figures = json.loads(file.read_text())
    machine = figures["machine"]
    assert {"processor", "cores", "threads", "python", "numba"} <= set(machine)
    for name in ("torch", "stable-baselines3", "sb3-contrib"):
        assert f"{name} {machine[name]}" in shown
    names = {row["name"] for row in figures["rows"]}
    vector = {f"vector{copy}/{each}" for copy in ("", "/no copy") for each in ("steps", "turn")}
    assert names == {
        *("batch/steps", "batch/turn", "gym/steps", "pettingzoo/steps", "rgb_array"),
        *("matches/racer", *vector, *(f"{name}/ratio" for name in vector)),
    }
    for row in figures["rows"]:
        assert set(row) == {"name", "batch", "threads", "unit", "median", "min", "max"}
        assert 0 < row["min"] <= row["median"] <= row["max"]
    assert "batch/steps" in shown

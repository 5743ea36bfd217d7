"""`retinue stats` as its users meet it."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest

from positions import JOURNEY, changed
from retinue import cli
from retinue.envs.game.record import MatchReplay
from tabling import lines_of, play_into, put


class Done(NamedTuple):
    """What a command left."""

    code: int
    out: str
    err: str


Command = Callable[..., Done]


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Command:
    """Runs a command in a folder of its own, where ``games`` holds three records of 20 turns."""
    play_into(tmp_path / "games", changed(JOURNEY, clock_seconds=200), 3)
    monkeypatch.chdir(tmp_path)

    def run_it(*words: str) -> Done:
        capsys.readouterr()
        return Done(cli.main(["stats", *words]), *capsys.readouterr())

    return run_it


def files(folder: Path) -> list[str]:
    """Return what is in a folder and below, but for the records."""
    found = [path.relative_to(folder).as_posix() for path in folder.rglob("*")]
    return sorted(name for name in found if not name.startswith("games"))


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_tables_are_written_and_told(run: Command, tmp_path: Path, form: str) -> None:
    code, out, err = run("games", *(() if form == "parquet" else ("--format", form)))
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        f"tables/matches.{form}: 3 matches",
        f"tables/turns.{form}: 60 turns",
        f'Read with pandas.read_{form}("tables/turns.{form}"), say; '
        "docs/statistics.md explains the columns.",
    ]
    assert files(tmp_path) == ["tables", f"tables/matches.{form}", f"tables/turns.{form}"]
    turns = getattr(pd, f"read_{form}")(f"tables/turns.{form}")
    assert len(turns) == 60
    assert turns["record"].unique().tolist() == [f"games/match-00000{i}.jsonl" for i in range(3)]


def test_a_match_in_progress_is_told(run: Command, tmp_path: Path) -> None:
    put(tmp_path / "part.jsonl", lines_of(tmp_path / "games" / "match-000000.jsonl")[:2])
    code, out, _ = run("part.jsonl", "--out", "new/folder")
    assert code == 0
    assert out.startswith("new/folder/matches.parquet: 1 match (1 in progress)\n")
    assert "new/folder/turns.parquet: 1 turn\n" in out


def test_tables_that_are_there_stay(run: Command, tmp_path: Path) -> None:
    assert run("games/match-000000.jsonl", "--out", ".").code == 0
    code, out, err = run("games", "--out", ".")
    assert (code, out) == (2, "")
    assert err == "retinue: matches.parquet: is there already; --overwrite replaces it\n"
    assert len(pd.read_parquet("matches.parquet")) == 1
    assert run("games", "--out", ".", "--overwrite").code == 0
    assert len(pd.read_parquet("matches.parquet")) == 3


def test_a_damaged_record_is_told_by_its_line(run: Command, tmp_path: Path) -> None:
    path = tmp_path / "games" / "match-000001.jsonl"
    lines = lines_of(path)
    lines[4]["turn"] = 99
    put(path, lines)
    code, out, err = run("games")
    assert (code, out) == (1, "")
    assert err == (
        "retinue: games/match-000001.jsonl: line 5: turn is 99, but replaying gives 3 "
        "(no table was written)\n"
    )
    assert files(tmp_path) == []


def test_what_cannot_be_made_tables_of(run: Command, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for words, message in {
        ("no.jsonl",): "no.jsonl: No such file or directory",
        ("games", "empty"): "empty: holds no .jsonl file",
        ("games", "--format", "xlsx"): "unknown format 'xlsx': use parquet or csv",
        ("games", "--out", "games/match-000000.jsonl"): "no folder for tables: File exists",
        (): "Missing argument 'FILE...'",
    }.items():
        code, out, err = run(*words)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert message in err
    assert files(tmp_path) == ["empty"]


def test_ctrl_c_leaves_nothing(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(path: Path) -> Any:
        if path.name == "match-000002.jsonl":
            assert len(files(tmp_path)) == 3, "the folder and two drafts"
            raise KeyboardInterrupt
        return MatchReplay(path)

    monkeypatch.setattr("retinue.evaluation.tables.MatchReplay", stopped)
    assert run("games") == (130, "", "retinue: interrupted\n")
    assert files(tmp_path) == []


def test_progress_is_drawn_on_a_terminal(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retinue.evaluation.progress.MOMENT", 0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    err = run("games").err
    assert "records" in err
    assert "3/3" in err


@pytest.mark.parametrize("closed", [False, True], ids=["ascii", "closed"])
def test_names_that_the_terminal_cannot_show_do_no_harm(tmp_path: Path, closed: bool) -> None:
    play_into(tmp_path / "games", changed(JOURNEY, clock_seconds=200), 1)
    command = f"exec {sys.executable} -m retinue.cli stats games --out é" + " >&-" * closed
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert closed or r"\xe9/matches.parquet: 1 match" in done.stdout
    assert (tmp_path / "é" / "turns.parquet").exists()

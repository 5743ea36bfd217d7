"""The command line as its users meet it: what it prints, and its one line when it cannot."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest
import typer

import retinue
from positions import JOURNEY, changed
from retinue import cli
from retinue.envs.game import jit
from retinue.envs.game.record import verify_record

COMMANDS = tuple(typer.main.get_command(cli.app).commands)  # type: ignore[attr-defined]
RACERS = ("play", "--agents", "racer,racer,racer,racer")
HEAVY = ("gymnasium", "matplotlib", "numba", "numpy", "pydantic", "stable_baselines3", "torch")
LIMIT = 120
"""Seconds for one process, on the slowest machine."""


class Done(NamedTuple):
    """What a command left."""

    code: int
    out: str
    err: str


class Command:
    """Runs commands in this process, in a folder of their own."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: str | Path) -> Done:
        self._capsys.readouterr()
        code = cli.main([str(word) for word in words])
        return Done(code, *self._capsys.readouterr())

    def refused(self, *words: str | Path) -> str:
        """Return the one line in which a command refuses its input."""
        code, out, err = self(*words)
        lines = [line for line in err.splitlines() if not re.match("retinue: compil", line)]
        assert (code, out, len(lines)) == (2, "", 1), (out, err)
        assert lines[0].startswith("retinue: ")
        return lines[0].removeprefix("retinue: ")


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Command:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return Command(capsys)


@pytest.fixture
def short(run: Command, tmp_path: Path) -> Path:
    """A rule file of matches that last 20 turns."""
    path = tmp_path / "short.yaml"
    path.write_text(json.dumps(changed(JOURNEY, clock_seconds=200).model_dump(mode="json")))
    return path


@pytest.fixture
def games(run: Command, short: Path, tmp_path: Path) -> Path:
    """A folder of three records."""
    folder = tmp_path / "games"
    assert run(*RACERS, "--matches", "3", "--rules", short, "--records", folder).code == 0
    return folder


def alter(path: Path, line: int, old: str, new: str) -> None:
    """Replace a text in one line of a file, counted from 1."""
    lines = path.read_text(encoding="utf-8").split("\n")
    assert old in lines[line - 1]
    lines[line - 1] = lines[line - 1].replace(old, new, 1)
    path.write_text("\n".join(lines), encoding="utf-8")


def rows(table: str) -> list[list[str]]:
    """Return the cells of a table's rows below its rule."""
    return [line.split() for line in table.split("─\n")[1].splitlines()]


# --- The command itself


def test_help_of_everything_has_an_example(run: Command) -> None:
    for words in ((), *((name,) for name in COMMANDS)):
        code, out, err = run(*words, "--help")
        assert (code, err) == (0, "")
        assert re.search(rf"Examples?: retinue {' '.join(words)}", out)
    assert all(name in run("--help").out for name in COMMANDS)
    assert run().out == run("--help").out


def test_version(run: Command) -> None:
    assert run("--version") == (0, f"retinue {retinue.__version__}\n", "")


def test_help_is_quick_because_it_imports_nothing_heavy(tmp_path: Path) -> None:
    program = f"""
import sys
from retinue.cli import main
assert main(["--help"]) == 0
print("heavy:", *sorted(set(sys.modules) & set({HEAVY!r})))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.splitlines()[-1] == "heavy:"


def test_module_can_be_run(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "retinue.cli", "paly"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("retinue: No such command 'paly'")
    assert done.stderr.count("\n") == 1


def test_unknown_words_are_refused(run: Command) -> None:
    assert "No such command 'paly'" in run.refused("paly")
    assert "No such option: --match" in run.refused(*RACERS, "--match", "3")
    assert "Missing option '--agents' (see `retinue play --help`)" in run.refused("play")
    assert "(see `retinue agents --help`)" in run.refused("agents", "all")


def test_a_bug_keeps_its_traceback(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ValueError("a bug, not the user's doing")

    monkeypatch.setattr("retinue.agents.registry.known_agents", broken)
    with pytest.raises(ValueError, match="a bug"):
        run("agents")


def test_ctrl_c_is_answered_in_a_line(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("retinue.agents.registry.known_agents", stopped)
    assert run("agents") == (130, "", "retinue: interrupted\n")


# --- agents, rules


def test_agents_are_listed(run: Command) -> None:
    code, out, err = run("agents")
    assert (code, err) == (0, "")
    assert [row[0] for row in rows(out)[:3]] == ["random", "racer", "spread"]


def test_rules_show_every_number_and_its_source(run: Command) -> None:
    code, out, err = run("rules", "journey")
    assert (code, err) == (0, "")
    table = rows(out)
    assert ["blockade_penalty", "2", "3.5.4", "A16"] in table
    assert ["combat.regular.past", "[70,", "105]", "4.2", "A15"] in table
    assert ["blockade_penalty", "5", "3.5.4", "A16"] in rows(run("rules", "brawl").out)


def test_rules_of_a_file(run: Command, short: Path) -> None:
    table = rows(run("rules", short).out)
    assert ["clock_seconds", "200", "5", "this", "file;", "journey", "has", "1800"] in table


def test_rules_that_are_none(run: Command, tmp_path: Path) -> None:
    assert run.refused("rules", "chess").startswith("unknown mode 'chess': use journey, brawl or a")
    assert run.refused("rules", "no.yaml") == "no.yaml: No such file or directory"
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(json.dumps(JOURNEY.model_dump(mode="json") | {"blockade_penalti": 1}))
    message = run.refused("rules", wrong)
    assert message.endswith("blockade_penalti: unknown key; did you mean blockade_penalty?")


# --- play


def test_play_shows_a_row_for_each_seat(run: Command, short: Path) -> None:
    line_up = ("play", "--agents", "racer, random,spread,random")
    code, out, err = run(*line_up, "--matches", "12", "--rules", short)
    assert code == 0
    assert "interrupted" not in err
    assert "Journey, 12 matches, 20 turns each" in out
    table = rows(out)
    assert [row[:2] for row in table] == [
        ["green", "racer"],
        ["red", "random"],
        ["blue", "spread"],
        ["yellow", "random"],
    ]
    for row in table:
        share, low, high = map(float, re.findall(r"[\d.]+", f"{row[2]}{row[3]}"))
        assert low <= share <= high
        total, *parts = map(int, row[5:])
        assert total == pytest.approx(sum(parts), abs=2)
    assert sum(float(row[2].rstrip("%")) for row in table) == pytest.approx(100, abs=0.3)
    assert run(*line_up, "--matches", "12", "--rules", short).out == out
    assert run(*line_up, "--matches", "12", "--rules", short, "--threads", "1").out == out
    assert run(*line_up, "--matches", "12", "--rules", short, "--seed", "1").out != out


def test_rotated_agents_have_no_seat(run: Command, short: Path) -> None:
    line_up = ("play", "--agents", "racer,random,spread,random", "--rules", short, "--rotate")
    out = run(*line_up, "--matches", "8").out
    assert [row[0] for row in rows(out)] == ["racer", "random", "spread", "random"]
    assert run.refused(*line_up, "--matches", "6") == (
        "rotating takes a multiple of 4 matches, not 6"
    )


def test_modes(run: Command, short: Path) -> None:
    few = ("--matches", "4") if jit.ENABLED else ("--matches", "1")
    assert "Journey, " in run(*RACERS, *few).out
    assert "Brawl, " in run(*RACERS, *few, "--mode", "brawl").out
    assert "unknown mode 'chess': use journey or brawl" in run.refused(*RACERS, "--mode", "chess")
    message = run.refused(*RACERS, "--mode", "brawl", "--rules", short)
    assert "short.yaml is a journey rule file, but --mode says brawl" in message


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--agents", "racer,racer,racer"), "a match takes 4 agents, not 3"),
        (("--agents", "racer,racer,racer,"), "unknown agent ''"),
        (("--agents", "racer,racer,racer,rcaer"), "unknown agent 'rcaer': did you mean racer?"),
        (("--agents", "racer:x,racer,racer,racer"), "agent racer takes no argument, so not 'x'"),
        (("--matches", "0"), "Invalid value for '--matches': "),
        (("--matches", "-3"), "Invalid value for '--matches': "),
        (("--matches", "many"), "Invalid value for '--matches': "),
        (("--seed", "-1"), "Invalid value for '--seed': "),
        (("--seed", str(2**53)), "Invalid value for '--seed': "),
        (("--threads", "0"), "Invalid value for '--threads': "),
        (("--threads", "1000"), "threads must be 1 to "),
        (("--rules", "no.yaml"), "no.yaml: No such file or directory"),
        (("--rules", "."), "unknown mode '.': use "),
    ],
)
def test_what_cannot_be_played(run: Command, words: tuple[str, ...], message: str) -> None:
    assert run.refused(*RACERS, *words).startswith(message)


def test_folders_that_cannot_take_records(run: Command, games: Path, tmp_path: Path) -> None:
    there = ("--matches", "1", "--records")
    (tmp_path / "file").write_text("precious")
    assert run.refused(*RACERS, *there, "file") == "file: no folder for records: File exists"
    assert "file/below: no folder" in run.refused(*RACERS, *there, "file/below")
    assert "games: holds records already" in run.refused(*RACERS, *there, "games")
    assert (tmp_path / "file").read_text() == "precious"
    assert len(list(games.iterdir())) == 3


def test_nothing_is_made_for_what_cannot_be_played(run: Command, tmp_path: Path) -> None:
    run.refused("play", "--agents", "racer", "--records", "new")
    run.refused(*RACERS, "--threads", "1000", "--records", "new")
    assert list(tmp_path.iterdir()) == []


# --- replay


def test_records_verify(run: Command, games: Path) -> None:
    assert run("replay", "--verify", games) == (0, "records: 3 finished and fit\n", "")
    one = games / "match-000001.jsonl"
    assert run("replay", "--verify", one, games).out == "records: 4 finished and fit\n"


def test_an_altered_record_is_told_by_its_line(run: Command, games: Path) -> None:
    alter(games / "match-000001.jsonl", 5, '"steps": 6', '"steps": 5')
    alter(games / "match-000002.jsonl", 3, '"turn": 1', '"turn": 2')
    code, out, err = run("replay", "--verify", games)
    assert (code, out) == (1, "records: 1 finished and fit; 2 do not fit\n")
    assert re.fullmatch(r"retinue: \S+match-000001.jsonl: line 5: after\S+ is .*\n", err)
    code, out, err = run("replay", "--no-board", games / "match-000001.jsonl")
    assert code == 1
    assert "Turn 3, blue" in out
    assert "Turn 4" not in out
    assert "line 5: " in err


def test_a_match_in_progress_is_said_to_be_one(run: Command, games: Path) -> None:
    part = games / "match-000000.jsonl"
    part.write_text("".join(part.read_text().splitlines(keepends=True)[:6]))
    code, out, err = run("replay", "--verify", games)
    assert (code, err) == (0, "")
    assert out.startswith("records: 2 finished and fit; 1 in progress and fit so far (")
    assert run("replay", "--no-board", part).out.endswith("In progress after 5 turns.\n")


def test_a_match_is_shown_turn_by_turn(run: Command, games: Path) -> None:
    path = games / "match-000000.jsonl"
    code, out, err = run("replay", "--no-board", path)
    assert (code, err) == (0, "")
    first = verify_record(path)
    assert "Journey, dice seed 0: green racer, red racer, blue racer, yellow racer\n" in out
    assert [int(turn) for turn in re.findall(r"^Turn (\d+), ", out, re.M)] == list(range(1, 21))
    dice = json.loads(path.read_text().splitlines()[1])["rolled"]
    assert f"Turn 1, green rolls {' '.join(map(str, dice))}\n  chooses forward, the Noble 6" in out
    assert "the Noble leaves the Yard, reaches its entering tile (+20); G1 leaves" in out
    assert "The match is over: the clock has run out.\n  1. " in out
    assert first.result is not None
    assert str(max(first.result.totals)) in out.split("The match is over")[1]
    with_board = run("replay", path).out
    assert with_board.count("Tile numbers are") == 20
    assert max(map(len, with_board.splitlines())) <= 100


def test_what_cannot_be_replayed(run: Command, games: Path, tmp_path: Path) -> None:
    assert run.refused("replay", "no.jsonl") == "no.jsonl: No such file or directory"
    assert run.refused("replay", "--verify", "no.jsonl", games).startswith("no.jsonl: No such")
    assert "3 records; one is shown at a time" in run.refused("replay", games)
    (tmp_path / "empty").mkdir()
    assert run.refused("replay", "empty", "--verify") == "empty: holds no .jsonl file"
    assert "Missing argument 'FILE...'" in run.refused("replay")
    (tmp_path / "none.jsonl").write_text("")
    assert run("replay", "none.jsonl").code == 1
    assert "line 1: the header is missing" in run("replay", "--verify", "none.jsonl").err


# --- Progress and interruption


def test_progress_is_drawn_on_a_terminal_only(
    run: Command, short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retinue.evaluation.progress.MOMENT", 0)
    words = (*RACERS, "--matches", "4", "--rules", short)
    assert run(*words).err == ""
    monkeypatch.setenv("FORCE_COLOR", "1")
    err = run(*words).err
    assert "matches" in err
    assert "4/4" in err


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
def test_interrupting_shows_what_was_finished(tmp_path: Path, short: Path) -> None:
    words = (*RACERS, "--matches", "1000000", "--rules", str(short), "--records", "games")
    process = subprocess.Popen(
        [sys.executable, "-m", "retinue.cli", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    with process:
        begun = time.monotonic()
        while not list(tmp_path.glob("games/*.jsonl")) and time.monotonic() - begun < LIMIT:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 130
    count = re.search(r"retinue: interrupted after (\d+) of 1,000,000 matches", err)
    assert count is not None
    assert "Traceback" not in err
    files = list(tmp_path.glob("games/*.jsonl"))
    assert len(files) - 1 <= int(count[1]) <= len(files)
    assert f"Journey, {count[1]} matches" in out


@pytest.mark.skipif(os.name != "posix", reason="pipes are POSIX's")
def test_a_reader_who_has_seen_enough(games: Path) -> None:
    path = games / "match-000000.jsonl"
    process = subprocess.Popen(
        [sys.executable, "-m", "retinue.cli", "replay", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process, contextlib.ExitStack() as stack:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        stack.callback(process.wait, LIMIT)
        assert process.stderr.read() == ""
    assert process.returncode == 0

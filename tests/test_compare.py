"""Which of two agents is stronger; and the commands that say who is."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from positions import JOURNEY, changed
from retinue import cli
from retinue.agents.registry import make_agent
from retinue.evaluation import compare as comparing
from retinue.evaluation import pairs
from retinue.evaluation.arena import ArenaError, play_matches
from retinue.evaluation.compare import Comparison, compare
from retinue.evaluation.sequential import SequentialTest

SHORT = changed(JOURNEY, clock_seconds=240)
"""Matches of 24 turns."""
LIMIT = 120
"""Seconds for one process, on the slowest machine."""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(pairs, "TIMED_FOR", 0.001)


def compared(one: str, other: str, most_blocks: int = 2000, **options: Any) -> Comparison:
    agents = [make_agent(name, SHORT) for name in (one, other)]
    told: list[tuple[int, int]] = []
    found = compare(
        agents[0],
        agents[1],
        SHORT,
        SequentialTest(),
        most_blocks=most_blocks,
        on_progress=lambda *numbers: told.append(numbers),
        **options,
    )
    assert told[-1][1] == most_blocks
    return found


# --- The comparison


def test_the_stronger_one_is_named_whichever_way_round() -> None:
    found, turned = compared("racer", "random"), compared("random", "racer")
    assert (found.test.verdict, turned.test.verdict) == ("first", "second")
    assert found.test.blocks < 200
    assert found.in_words().startswith("racer is stronger than random: racer has ")
    assert turned.in_words().startswith("racer is stronger than random: random has ")


def test_an_agent_equals_itself() -> None:
    found = compared("greedy", "greedy")
    assert found.test.verdict == "equal"
    assert found.test.estimate().value == 0.5, "the same dice from all seats"


def test_samples_are_shares_of_blocks() -> None:
    found = compared("racer", "spread", 40, seed=9)
    agents = {name: make_agent(name, SHORT) for name in ("racer", "spread")}
    shares = []
    for block in range(found.test.blocks):
        won = 0.0
        for turned in range(4):
            names = ["racer" if (seat - turned) % 4 < 2 else "spread" for seat in range(4)]
            match = play_matches([agents[name] for name in names], SHORT, [9 + block])
            won += sum(
                share
                for name, share in zip(names, match.first_shares[0], strict=True)
                if name == "racer"
            )
        shares.append(won / 4)
    assert found.test.estimate().value == pytest.approx(sum(shares) / len(shares))


def test_it_may_stay_undecided() -> None:
    found = compared("racer", "spread", 2)
    assert found.test.verdict is None
    assert found.test.blocks == 2
    assert found.in_words().startswith("not decided yet between racer and spread: ")


def test_looking_more_often_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = compared("racer", "random")
    monkeypatch.setattr(comparing, "BLOCKS_AT_ONCE", 3)
    assert compared("racer", "random").in_words() == before.in_words()


def test_seeds_and_threads_are_checked() -> None:
    with pytest.raises(ArenaError, match="go beyond"):
        compared("racer", "random", seed=2**53 - 10)
    with pytest.raises(ArenaError, match="threads must be"):
        compared("racer", "random", threads=1000)


def test_ctrl_c_leaves_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def interrupted(*arguments: Any, **options: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return play_matches(*arguments, **options)

    monkeypatch.setattr(comparing, "play_matches", interrupted)
    monkeypatch.setattr(comparing, "BLOCKS_AT_ONCE", 2)
    found = compared("racer", "spread")
    assert found.interrupted
    assert found.test.blocks == 2
    assert "after 8 matches in 2 blocks" in found.in_words()


# --- The commands


def test_compare_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compare", "racer", "random"]) == 0
    assert re.fullmatch(
        r"Journey: racer is stronger than random: racer has \d+\.\d% \(\d+\.\d-\d+\.\d\) of the "
        r"first places, par 50, after \d+ matches in \d+ blocks\.\n",
        capsys.readouterr().out,
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("compare racer nobody", "nobody"),
        ("compare racer random --margin 0.6", "margin must be above 0 and below 0.5, not 0.6"),
        ("compare racer random --error 0", "error must be above 0 and below 0.5, not 0"),
        ("compare racer random --mode chess", "unknown mode 'chess'"),
        ("tournament --agents racer", "2 to 64 agents, not 1"),
        ("tournament --agents racer,nobody", "nobody"),
        ("tournament --agents racer,policy:nowhere", "nowhere"),
        ("tournament --agents racer,random --markdown page.md", "page.md"),
        ("tournament --agents racer,random --out file/there", "file/there"),
    ],
)
def test_bad_input_is_one_line(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("file").write_text("a file")
    assert cli.main(words.split()) == 2
    told = capsys.readouterr()
    assert message in told.err
    assert told.err.count("\n") == 1
    assert not told.out
    assert not Path("runs").exists()


def test_a_tournament_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["tournament", "--agents", "racer,random,spread", "--blocks", "6", "--out", "out"]
    assert cli.main([*words, "--mode", "brawl"]) == 0
    told = capsys.readouterr()
    assert "spread" in told.out
    assert max(map(len, told.out.splitlines())) <= 80
    folder = Path("out/brawl")
    names = {path.name for path in folder.iterdir()}
    assert {"results.jsonl", "report.html", "summary.json", "agents.csv"} <= names
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["blocks"] == 6
    assert all(agent["microseconds"] > 0 for agent in summary["agents"])
    report = (folder / "report.html").read_text()
    assert cli.main([*words, "--mode", "brawl"]) == 0
    assert (folder / "report.html").read_text() == report, "nothing is played or timed again"
    assert cli.main([*words[:4], "4", *words[5:], "--seed", "1", "--mode", "brawl"]) == 2
    assert "of seed 0, not 1" in capsys.readouterr().err


def test_both_modes_and_a_page() -> None:
    page = Path("page.md")
    page.write_text("# T\n\n<!-- generated: tournament -->\n<!-- end of generated part -->\n")
    words = ["tournament", "--agents", "racer,random,spread", "--blocks", "4"]
    assert cli.main([*words, "--markdown", "page.md"]) == 0
    text = page.read_text()
    assert "Journey" in text
    assert "Brawl" in text
    for picture in re.findall(r"\]\(([^)]+\.svg)\)", text):
        assert (page.parent / picture).is_file()
    assert ".svg" in text


def test_calibrate_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["calibrate", "--comparisons", "20", "--tournaments", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        *(f"difference {difference:.3f}" for difference in (0, 0.025, 0.05, 0.1)),
        "four copies, 100 blocks",
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
def test_a_tournament_goes_on_after_ctrl_c(tmp_path: Path) -> None:
    words = ["tournament", "--agents", "racer,greedy,spread", "--blocks", "3000", "--mode", "brawl"]
    command = [sys.executable, "-m", "retinue.cli", *words]
    results = tmp_path / "runs/tournament/brawl/results.jsonl"
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        begun = time.monotonic()
        while time.monotonic() - begun < LIMIT and process.poll() is None:
            if results.exists() and results.stat().st_size > 10_000:
                break
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 130
    assert b"the same command goes on" in err
    assert b"greedy" in out
    lines = results.read_bytes().splitlines()
    assert 2 < len(lines) < 3001

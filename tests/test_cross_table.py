"""Cross tables: what a cell says, what an interruption leaves, what is refused, how it is shown."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import retinue.agents
from positions import BRAWL, JOURNEY, changed
from retinue import cli
from retinue.agents.registry import make_agent
from retinue.cli_common import show
from retinue.envs.game import jit
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.schema import SchemaError
from retinue.evaluation import pairs
from retinue.evaluation.arena import ArenaError, first_share
from retinue.evaluation.cross_table import (
    DEFAULT_AGENTS,
    Cell,
    CrossTable,
    open_tables,
    play_pairs,
    time_agents,
)
from retinue.evaluation.cross_table_report import (
    as_markdown,
    as_rich,
    check_page,
    in_words,
    renew_page,
)
from retinue.evaluation.pairs import time_agent

SHORT = changed(JOURNEY, clock_seconds=240)
"""Matches of 24 turns."""
SHORT_BRAWL = changed(BRAWL, clock_seconds=240)
THREE = ("racer", "random", "spread")
PAGE = "# Title\n\n<!-- generated: cross table -->\nold\n<!-- end of generated part -->\n\nEnd.\n"
LIMIT = 120
"""Seconds for one process, on the slowest machine."""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(pairs, "TIMED_FOR", 0.001)


def opened(specs: Sequence[str] = THREE, matches: int = 8, **options: Any) -> CrossTable:
    folder = Path(options.pop("folder", "table"))
    ruleset: Ruleset = options.pop("ruleset", SHORT)
    (table,) = open_tables(folder, [ruleset], specs, matches, **options)
    return table


def ignored(done: int, count: int) -> None:
    """Take no notice of progress."""


def played(table: CrossTable) -> CrossTable:
    time_agents([table], ignored)
    play_pairs([table], on_progress=ignored)
    return table


# --- What is played


def test_cells_say_what_the_arena_says() -> None:
    table = played(opened(matches=16, seed=5))
    assert len(table.cells) == table.size == 6
    for (one, three), cell in table.cells.items():
        ours, theirs = make_agent(one, SHORT), make_agent(three, SHORT)
        found = first_share(ours, [theirs] * 3, SHORT, 4, 5)
        assert (cell.share, cell.low, cell.high) == (found.value, found.low, found.high)
        assert cell.forfeited == 0
    assert table.cells["racer", "random"].total > table.cells["racer", "random"].others_total
    assert table.cells["racer", "random"].total > table.cells["random", "racer"].total


def test_every_pair_is_played_once_and_quick_ones_first() -> None:
    table = opened(DEFAULT_AGENTS, ruleset=JOURNEY)
    for place, spec in enumerate(reversed(DEFAULT_AGENTS)):
        table.speeds[spec] = pairs.Speed(
            agent=spec, microseconds=1.0 + place, turns=180.0, decisions=1, processor="one"
        )
    order = table.pairs()
    assert len(set(order)) == len(order) == table.size == 132
    assert all(one != three for one, three in order)
    for count in range(2, 13):
        quickest = set(DEFAULT_AGENTS[-count:])
        assert {name for pair in order[: count * (count - 1)] for name in pair} == quickest
    one, three = table.seconds("random", "racer"), table.seconds("racer", "random")
    assert one < three, "racer is quicker, and has three seats"


def test_progress_counts_the_work() -> None:
    tables = open_tables(Path("table"), [SHORT, SHORT_BRAWL], THREE, 8)
    told: list[tuple[int, int]] = []
    time_agents(tables, lambda *each: told.append(each))
    assert told == [(done, 6) for done in range(1, 7)]
    for table in tables:  # as if agents were slow
        for spec, speed in table.speeds.items():
            table.speeds[spec] = speed.model_copy(update={"microseconds": 1e6})
    told.clear()
    play_pairs(tables, on_progress=lambda *each: told.append(each))
    assert len(told) == 12
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1] > 1000
    assert {table.path.name for table in tables} == {"journey.jsonl", "brawl.jsonl"}


@pytest.mark.skipif(not jit.ENABLED, reason="speed is of compiled agents")
def test_speed() -> None:
    slow = "yardstick:candidates=100,random=true"
    few = time_agent(make_agent("random", SHORT), "random", SHORT)
    many = time_agent(make_agent(slow, SHORT), slow, SHORT)
    assert (few.agent, few.turns, many.turns) == ("random", 24, 24)
    assert 0 < 5 * few.microseconds < many.microseconds < 1e5
    assert few.decisions % 24 == 0


# --- What an interruption leaves


def test_an_interrupted_table_goes_on_where_it_was() -> None:
    whole = played(opened(folder="whole"))
    table = opened()
    time_agents([table], ignored)

    def stop_in_the_fourth(done: int, count: int) -> None:
        if len(table.cells) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play_pairs([table], on_progress=stop_in_the_fourth)
    again = opened()
    assert again.cells == table.cells
    assert again.speeds == table.speeds
    assert len(again.cells) == 3
    count: list[int] = []
    play_pairs([again], on_progress=lambda *_: count.append(1))
    assert len(count) == 3
    assert again.cells == whole.cells == opened().cells
    before = again.path.read_bytes()
    played(opened())
    assert again.path.read_bytes() == before


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
def test_ctrl_c_is_answered_soon(tmp_path: Path) -> None:
    words = ["cross-table", "--agents", "racer,random", "--mode", "journey", "--out", "table"]
    process = subprocess.Popen(
        [sys.executable, "-m", "retinue.cli", *words, "--matches", "4000000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    file = tmp_path / "table" / "journey.jsonl"
    with process:
        begun = time.monotonic()
        while time.monotonic() - begun < LIMIT:
            if file.exists() and file.read_text().count("speed") == 2:
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 130
    assert "retinue: interrupted after 0 of 2 pairs; the same command goes on\n" in err
    assert "Traceback" not in err
    assert "4,000,000 matches a cell, 0 of 2 played" in out
    assert len(file.read_text().splitlines()) == 3


# --- What is refused


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"specs": ("racer", "random")}, "of the agents racer,random,spread; choose another"),
        ({"matches": 12}, "of matches 8, not 12; choose another folder or remove it"),
        ({"seed": 1}, "of seed 0, not 1; "),
        ({"ruleset": JOURNEY}, f"of rules {SHORT.digest}, not {JOURNEY.digest}; "),
    ],
)
def test_another_table_is_left_alone(change: dict[str, Any], message: str) -> None:
    before = played(opened()).path.read_bytes()
    with pytest.raises(ArenaError) as error:
        opened(**change)
    assert str(error.value).startswith("table/journey.jsonl: holds another table, of ")
    assert message in str(error.value)
    assert Path("table/journey.jsonl").read_bytes() == before


def test_changed_agents_are_others() -> None:
    weights = Path("mine.yaml")
    weights.write_text("description: mine\njourney: {margin: 1}\n")
    specs = ("racer", "strategy:file=mine.yaml")
    played(opened(specs))
    opened(specs)
    weights.write_text("description: mine\njourney: {margin: 1, exposed: -1}\n")
    with pytest.raises(ArenaError, match=r"of strategy:file=mine.yaml as it was before it changed"):
        opened(specs)


def test_a_damaged_file_is_told_by_its_line() -> None:
    path = played(opened()).path
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:4], lines[4][:-9], *lines[5:]]))
    with pytest.raises(SchemaError, match=r"^table/journey.jsonl: line 5: "):
        opened()
    for damaged in (b"", "\n".join(lines[1:]).encode()):
        path.write_bytes(damaged)
        with pytest.raises(SchemaError, match=r"^table/journey.jsonl: line 1: "):
            opened()
    path.write_bytes(b"\xff")
    with pytest.raises(SchemaError, match=r"^table/journey.jsonl: is not UTF-8 text$"):
        opened()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--agents", "racer"], "a cross table takes two agents or more, not 1"),
        (["--agents", "racer,random,racer"], "agent racer is given twice; give each once"),
        (["--agents", "racer,rcaer"], "unknown agent 'rcaer': did you mean racer?"),
        (["--matches", "6"], "matches must be a multiple of 4, not 6"),
        (["--matches", "0"], "Invalid value for '--matches'"),
        (["--seed", str(2**53 - 1)], f"seeds from {2**53 - 1} on go beyond 2**53 - 1"),
        (["--threads", "1000"], "threads must be 1 to "),
        (["--mode", "chess"], "unknown mode 'chess'"),
        (["--out", "file"], "file: no folder for results: File exists"),
        (["--markdown", "no.md"], "no.md: No such file or directory"),
        (["--markdown", "file"], "file: the document has no <!-- generated: cross table -->"),
    ],
)
def test_what_cannot_be_played(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("file").write_text("precious")
    few = [] if "--agents" in words else ["--agents", "racer,random"]
    assert cli.main(["cross-table", *few, *words]) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert message in shown.err
    assert [path.name for path in Path().iterdir()] == ["file"]


# --- How it is shown


def test_the_command_for_both_modes_and_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    Path("page.md").write_text(PAGE)
    words = ["cross-table", "--agents", "racer,random,spread", "--matches", "4", "--out", "here"]
    assert cli.main([*words, "--markdown", "page.md"]) == 0
    out = capsys.readouterr().out
    assert out.count("4 matches a cell, 6 of 6 played; 95% intervals reach at most ") == 2
    assert "Journey: first places in percent, par 25; 4 matches a cell" in out
    assert "Brawl: first places in percent, par 25; 4 matches a cell" in out
    page = Path("page.md").read_text()
    assert page.startswith("# Title\n\n<!-- generated: cross table -->\n\n### Journey\n\n| one")
    assert page.endswith("\n\n<!-- end of generated part -->\n\nEnd.\n")
    assert "old" not in page
    assert page.count("| `spread` |") == 4
    cli.main([*words, "--markdown", "page.md"])
    assert Path("page.md").read_text() == page


def test_numbers_of_the_page() -> None:
    table = played(opened(seed=3))
    text = as_markdown([table])
    rows = {
        line.split(" | ")[0]: line.strip("| ").split(" | ")[1:]
        for line in text.splitlines()
        if line.startswith("| ")
    }
    assert rows["| one \\ three of"] == ["`racer`", "`random`", "`spread`", "mean", "total", "µs"]
    for one in THREE:
        *shares, mean, total, _ = rows[f"| `{one}`"]
        cells = [table.cells.get((one, three)) for three in THREE]
        assert shares == ["–" if cell is None else f"{100 * cell.share:.1f}" for cell in cells]
        known = [cell for cell in cells if cell is not None]
        assert float(mean) == pytest.approx(sum(cell.share for cell in known) * 50, abs=0.06)
        points = sum(cell.total for cell in known) / 2
        assert float(total.replace(",", "")) == pytest.approx(points, abs=0.6)
    widest = max(
        max(cell.share - cell.low, cell.high - cell.share) for cell in table.cells.values()
    )
    assert f"95% intervals reach at most {100 * widest:.1f} to either side." in text
    assert "8 matches a cell: dice of the seeds 3 to 4" in text
    assert f"Rules {SHORT.digest}; " in text


def test_long_names_are_short_where_they_can_be() -> None:
    specs = ("racer", "greedy:candidates=2", "hunter:candidates=2", "hunter:candidates=3")
    text = as_markdown([played(opened(specs, matches=4))])
    assert "| `greedy` |" in text
    assert "| `hunter:candidates=3` |" in text
    assert "In full: `greedy:candidates=2`, `hunter:candidates=2`, " in text


def test_the_terminal_has_room_for_all_agents(capsys: pytest.CaptureFixture[str]) -> None:
    table = opened(DEFAULT_AGENTS, ruleset=JOURNEY)
    for one, three in [(one, three) for one in DEFAULT_AGENTS for three in DEFAULT_AGENTS]:
        table.speeds[one] = pairs.Speed(
            agent=one, microseconds=123.0, turns=180.0, decisions=1, processor="one"
        )
        if one not in (three, "random"):
            table.cells[one, three] = Cell(
                one=one,
                three=three,
                share=1.0,
                low=0.9,
                high=1.0,
                total=3210.0,
                others_total=1.0,
                forfeited=0,
            )
    show(as_rich(table))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    last = next(line for line in lines if line.startswith("12 yardstick"))
    assert last.split()[2:] == ["100"] * 11 + ["–", "100", "3,210", "123"]
    first = next(line for line in lines if line.startswith("1 random"))
    assert first.split()[2:] == ["–", "123"], "not played yet"
    assert "8 matches a cell, 121 of 132 played" in in_words(table)


def test_our_page_has_a_place_for_it(tmp_path: Path) -> None:
    page = Path(retinue.agents.__file__).parents[1] / "docs" / "strategies.md"
    check_page(page)
    copy = tmp_path / "copy.md"
    copy.write_bytes(page.read_bytes())
    renew_page(copy, [played(opened(matches=4))])
    assert "### Journey\n" in copy.read_text(encoding="utf-8")


# --- A user's own agents


BOTS = """
import numpy as np
from retinue.envs.game.state import TURN

class Passive:
    def choose(self, view, rng):
        return np.zeros(len(view.games), TURN)

class Broken:
    def choose(self, view, rng):
        raise RuntimeError("a bug of mine")
"""


def test_a_users_own_agents_take_part(capsys: pytest.CaptureFixture[str]) -> None:
    Path("bots.py").write_text(BOTS)
    words = ["cross-table", "--mode", "journey", "--matches", "4", "--out", "table"]
    assert cli.main([*words, "--agents", "bots.py:Passive,random,bots.py:Broken"]) == 0
    shown = capsys.readouterr()
    told = re.search(r"bots\.py:Broken raised an exception: (\d+) turns forfeited", shown.err)
    # Three in each match before it is not asked again, from one seat or from three, in two pairs.
    assert told is not None
    assert int(told[1]) == 2 * 4 * (3 + 9)
    assert "were forfeited" in shown.out
    lines = [json.loads(line) for line in Path("table/journey.jsonl").read_text().splitlines()]
    cells = {
        (cell["one"], cell["three"]): cell for cell in (each.get("cell") for each in lines) if cell
    }
    assert len(cells) == 6
    assert cells["random", "bots.py:Passive"]["share"] == 1
    assert cells["random", "bots.py:Passive"]["forfeited"] == 0
    # Three seats of 45 turns in each of four matches; nobody else forfeits.
    assert cells["random", "bots.py:Broken"]["forfeited"] == 540
    assert cells["bots.py:Broken", "random"]["forfeited"] == 180
    Path("bots.py").write_text(BOTS + "\n")
    assert cli.main([*words, "--agents", "bots.py:Passive,random,bots.py:Broken"]) == 2
    assert "bots.py:Passive, bots.py:Broken as it was before it" in capsys.readouterr().err

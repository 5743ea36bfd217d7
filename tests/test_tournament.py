"""Tournaments: who meets whom, what is kept on disk and what a killed process leaves."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from positions import BRAWL, JOURNEY, changed
from retinue.agents.registry import AgentError, make_agent
from retinue.envs.game import jit
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.schema import SchemaError
from retinue.evaluation.arena import ArenaError, play_matches
from retinue.evaluation.schedule import line_ups
from retinue.evaluation.tournament import Tournament, open_tournament, play_tournament

SHORT = changed(JOURNEY, clock_seconds=240)
"""Matches of 24 turns."""
FIVE = ("racer", "random", "spread", "greedy", "forward")
FOLDER = Path("tournament")
LIMIT = 120
"""Seconds for one process, on the slowest machine."""


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def opened(
    specs: Sequence[str] = FIVE, ruleset: Ruleset = SHORT, folder: Path = FOLDER, **options: Any
) -> Tournament:
    return open_tournament(folder, ruleset, specs, **options)


def ignored(done: int, count: int) -> None:
    """Take no notice of progress."""


def played(blocks: int = 10, threads: int | None = None, **options: Any) -> Tournament:
    tournament = opened(**options)
    play_tournament(tournament, blocks, threads=threads, on_progress=ignored)
    return tournament


# --- Line-ups


@pytest.mark.parametrize("agents", [2, 3, 4, 5, 8, 13, 64])
def test_line_ups_are_balanced_at_every_point(agents: int) -> None:
    rows = line_ups(agents, 400, 3)
    seats = np.zeros(agents, int)
    met = np.zeros((agents, agents), int)
    for row in rows:
        assert len(set(row)) == min(agents, 4)
        np.add.at(seats, row, 1)
        assert seats.max() - seats.min() <= 1
        for one in set(row):
            for other in set(row) - {one}:
                met[one, other] += 1
    pairs = met[~np.eye(agents, dtype=bool)]
    assert pairs.max() - pairs.min() <= max(4, 0.05 * pairs.mean())


def test_line_ups_go_on_and_depend_on_the_seed() -> None:
    assert (line_ups(9, 40, 5)[:25] == line_ups(9, 25, 5)).all()
    assert (line_ups(9, 40, 5) != line_ups(9, 40, 6)).any()
    neighbours = {tuple(np.roll(row, -row.tolist().index(0))) for row in line_ups(4, 60)}
    assert len(neighbours) == 6, "all orders around the board"


@pytest.mark.parametrize("agents", [0, 1, 65])
def test_too_few_or_too_many_agents(agents: int) -> None:
    with pytest.raises(ArenaError, match=f"2 to 64 agents, not {agents}"):
        line_ups(agents, 1)


# --- What is played


def test_blocks_are_what_the_arena_plays() -> None:
    tournament = played(6, seed=40)
    agents = [make_agent(spec, SHORT) for spec in FIVE]
    for number, (block, line_up) in enumerate(
        zip(tournament.blocks, line_ups(5, 6, 40).tolist(), strict=True)
    ):
        assert block.block == number
        assert list(block.line_up) == line_up
        for turned in range(4):
            seats = [agents[line_up[(seat - turned) % 4]] for seat in range(4)]
            match = play_matches(seats, SHORT, [40 + number])
            order = [(index + turned) % 4 for index in range(4)]
            assert list(block.totals[turned]) == match.totals[0, order].tolist()
            assert list(block.places[turned]) == match.places[0, order].tolist()


def test_sums_fit_together() -> None:
    tournament = played(6, ruleset=changed(BRAWL, clock_seconds=600))
    for block in tournament.blocks:
        totals = np.array(block.totals).sum(axis=0)
        parts = np.array([block.progression, block.combat, block.bonus]).sum(axis=0)
        assert totals.tolist() == parts.tolist()
        assert totals.tolist() == [row[-1] for row in block.rounds]
        assert sum(map(sum, block.tally["captured"])) == sum(map(sum, block.tally["lost"]))
        for name, of in (("captured_at", "captured"), ("lost_at", "lost")):
            by_tile = [sum(row) for row in block.tally[name]]
            assert by_tile == [sum(row) for row in block.tally[of]]
        assert [sum(row) for row in block.tally["turns"]] == [4 * 15] * 4


@pytest.mark.skipif(not jit.ENABLED, reason="several threads need compiled kernels")
def test_threads_decide_nothing() -> None:
    one = played(20, 1, folder=Path("one"))
    two = played(20, None, folder=Path("two"))
    assert one.path.read_bytes() == two.path.read_bytes()


def test_agents_given_twice_have_numbers() -> None:
    tournament = played(2, specs=("racer", "random", "racer", "racer"))
    assert tournament.header.agents == ("racer", "random", "racer #2", "racer #3")


# --- What is on disk


def test_it_goes_on_where_it_was() -> None:
    whole = played(30, folder=Path("whole"))
    played(13)
    told: list[tuple[int, int]] = []
    again = opened()
    assert len(again.blocks) == 13
    play_tournament(again, 30, on_progress=lambda *numbers: told.append(numbers))
    assert told[0] == (13, 30)
    assert told[-1] == (30, 30)
    assert again.path.read_bytes() == whole.path.read_bytes()
    assert opened().blocks == whole.blocks
    play_tournament(opened(), 20, on_progress=lambda *numbers: told.append(numbers))
    assert told[-1] == (20, 20)
    assert again.path.read_bytes() == whole.path.read_bytes()


@pytest.mark.parametrize("cut", [1, 40, 4000])
def test_a_half_written_end_is_played_again(cut: int) -> None:
    tournament = played(8)
    whole = tournament.path.read_bytes()
    tournament.path.write_bytes(whole[:-cut])
    again = opened()
    assert len(again.blocks) < 8
    assert tournament.path.read_bytes() == whole[:-cut], "opening writes nothing"
    play_tournament(again, 8, on_progress=ignored)
    assert tournament.path.read_bytes() == whole


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
def test_killed_at_any_moment_it_ends_the_same(tmp_path: Path) -> None:
    blocks = 500
    whole = played(blocks, folder=Path("whole"))
    rules = tmp_path / "short.json"
    rules.write_text(json.dumps(SHORT.model_dump(mode="json")))
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from retinue.envs.game.ruleset import Ruleset\n"
        "from retinue.evaluation.tournament import open_tournament, play_tournament\n"
        "ruleset = Ruleset.model_validate_json(Path(sys.argv[1]).read_text())\n"
        "played = open_tournament(Path('tournament'), ruleset, sys.argv[3:])\n"
        "print(len(played.blocks), flush=True)\n"
        "play_tournament(played, int(sys.argv[2]), on_progress=lambda *_: None)\n"
    )
    found = [0]
    for _ in range(3):
        command = [sys.executable, "-c", program, str(rules), str(blocks), *FIVE]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            found.append(int(process.stdout.readline()))
            begun = time.monotonic()
            path = tmp_path / FOLDER / "results.jsonl"
            size = path.stat().st_size if path.exists() else 0
            while time.monotonic() - begun < LIMIT and process.poll() is None:
                if path.exists() and path.stat().st_size > size + 10_000:
                    break
            os.kill(process.pid, signal.SIGKILL)
    assert found[1] == 0
    assert 0 < found[2] < found[3], "each killed run left something"
    again = opened()
    play_tournament(again, blocks, on_progress=ignored)
    assert again.path.read_bytes() == whole.path.read_bytes()


# --- What is refused


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"specs": FIVE[:4]}, "of the agents racer,random,spread,greedy,forward;"),
        ({"specs": (*FIVE[:4], "hunter")}, "of the agents racer,random,spread,greedy,forward;"),
        ({"seed": 1}, "of seed 0, not 1;"),
        ({"ruleset": JOURNEY}, f"of rules {SHORT.digest}, not {JOURNEY.digest};"),
        ({"ruleset": changed(BRAWL, clock_seconds=240)}, "of mode journey, not brawl;"),
    ],
)
def test_another_tournament_is_left_alone(change: dict[str, Any], message: str) -> None:
    path = played(2).path
    before = path.read_bytes()
    with pytest.raises(ArenaError) as refused:
        opened(**change)
    assert message in str(refused.value)
    assert str(path) in str(refused.value)
    assert path.read_bytes() == before


def test_a_folder_of_other_things_is_left_alone() -> None:
    FOLDER.mkdir()
    (FOLDER / "thesis.txt").write_text("mine")
    with pytest.raises(ArenaError, match="holds other files"):
        opened()


def test_damage_is_told_by_its_line() -> None:
    path = played(5).path
    lines = path.read_bytes().split(b"\n")
    whole = b"\n".join(lines)
    digit = lines[3].index(b'"totals":[[') + len(b'"totals":[[')
    other = b"8" if lines[3][digit : digit + 1] != b"8" else b"9"
    flipped = lines[3][:digit] + other + lines[3][digit + 1 :]
    for number, damaged in {
        4: [*lines[:3], flipped, *lines[4:]],  # one digit
        3: [*lines[:2], *lines[3:]],  # a block is missing
        5: [*lines[:4], lines[3], *lines[5:]],  # one stands twice
        2: [lines[0], b"\x00" * 50, *lines[2:]],
        1: [b"{}", *lines[1:]],
        6: [*lines[:5], b"\xff\xfe", *lines[6:]],
    }.items():
        path.write_bytes(b"\n".join(damaged))
        with pytest.raises(SchemaError, match=f"results.jsonl: line {number}: "):
            opened()
        assert path.read_bytes() == b"\n".join(damaged)
    path.write_bytes(whole)
    assert len(opened().blocks) == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"specs": ("racer",)}, "2 to 64 agents, not 1"),
        ({"specs": ("racer", "nobody")}, "nobody"),
        ({"seed": 2**53 - 3, "blocks": 4}, "go beyond"),
        ({"threads": 1000}, "threads must be"),
    ],
)
def test_what_cannot_be_played(options: dict[str, Any], message: str) -> None:
    with pytest.raises((ArenaError, AgentError), match=message):
        opened(**options)
    assert not FOLDER.exists()

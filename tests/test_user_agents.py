"""A user's own agent, whatever it does: matches end, and each fault is told."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from playing import Outside
from retinue import cli
from retinue.agents import user
from retinue.agents.base import Agent
from retinue.agents.registry import make_agent
from retinue.agents.user import Faults, UserAgent
from retinue.envs.game.ruleset import load_ruleset
from retinue.evaluation.arena import Matches, play_matches, rotations
from user_bots import SHORT, ask, bots, line_of, made, view_of

LIMIT = 120
"""Seconds for one process, on the slowest machine."""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bots(tmp_path_factory.mktemp("bots"))


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    file = tmp_path / "short.yaml"
    file.write_text(json.dumps(SHORT.model_dump(mode="json")))
    return file


def played(agent: Agent, matches: int = 4, at_once: int | None = None) -> Matches:
    racer = make_agent("racer", SHORT)
    return play_matches([agent, racer, racer, racer], SHORT, range(matches), at_once=at_once)


# --- An agent that does well


def test_an_agent_plays_by_its_own_name(path: Path) -> None:
    agent = made(path, "Draws")
    assert isinstance(agent, Agent)
    assert (agent.name, agent.compiled) == ("drawing lots", None)
    keys = [3, 1, 2**63 + 5]
    steps = [int(np.random.default_rng(key).integers(7, size=1)[0]) for key in keys]
    assert ask(agent, keys)["noble_steps"].tolist() == steps
    assert ask(agent, keys[::-1])["noble_steps"].tolist() == steps[::-1]
    assert ask(agent, []).shape == (0,)
    assert agent.faults == {}


def test_an_agent_without_a_name_is_called_by_its_path(path: Path) -> None:
    assert made(path, "Stays").name == f"{path}:Stays"


def test_a_slow_agent_has_its_time(path: Path) -> None:
    agent = made(path, "Slow", time_limit=10)
    begun = time.monotonic()
    ask(agent, [1, 2, 3])
    assert time.monotonic() - begun > 0.6
    assert agent.faults == {}


def test_other_rules_are_refused(path: Path) -> None:
    with pytest.raises(ValueError, match="was made for other rules than brawl's"):
        made(path, "Stays").choose(view_of([0], load_ruleset("brawl")), np.random.default_rng())


# --- Faults

END = user.ENDED
NO_WAY = f"ZeroDivisionError: no way (line {line_of('raise ZeroDivisionError')})"


@pytest.mark.parametrize(
    ("name", "kind", "reason"),
    [
        ("Raises", user.RAISED, NO_WAY),
        ("Exits", user.RAISED, f"SystemExit: 3 (line {line_of('sys.exit')})"),
        ("Lists", user.NO_TURN, "choose returned a list, not a TURN array of shape (1,)"),
        (
            "TwoTurns",
            user.NO_TURN,
            "choose returned an array of TURN of shape (2,), not a TURN array of shape (1,)",
        ),
        (
            "Numbers",
            user.NO_TURN,
            "choose returned an array of float64 of shape (1,), not a TURN array of shape (1,)",
        ),
        ("Nine", user.ILLEGAL, "Noble steps must be 0 to 6, not 9"),
        ("Dies", END, "its process ended with exit code 7"),
        pytest.param(
            "Crashes",
            END,
            "its process ended by signal SIGSEGV",
            marks=pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's"),
        ),
        ("Hangs", user.SLOW, "no turn within 0.5 s"),
        ("Stuck", user.SLOW, "no turn within 0.5 s"),
    ],
)
def test_a_fault_forfeits_the_turn(path: Path, name: str, kind: str, reason: str) -> None:
    agent = made(path, name, time_limit=0.5 if kind == user.SLOW else 30)
    (turn,) = ask(agent)
    assert not any(turn.tobytes())
    assert agent.faults == {kind: Faults(1, 0, 1, reason)}


def test_only_the_game_at_fault_forfeits(path: Path) -> None:
    keys = range(40)
    steps, expected = [], []
    for key in keys:  # what Unsteady does
        rng = np.random.default_rng(key)
        drawn, fate = int(rng.integers(7, size=1)[0]), rng.random()
        more = drawn + 6 * (fate < 0.6)
        kind = user.RAISED if fate < 0.3 else user.ENDED if fate < 0.33 else user.ILLEGAL
        is_fault = fate < 0.33 or more > 6
        expected.append(kind if is_fault else None)
        steps.append(0 if is_fault else more)
    agent = made(path, "Unsteady")
    assert ask(agent, keys)["noble_steps"].tolist() == steps
    for kind in (user.RAISED, user.ENDED, user.ILLEGAL):
        told = agent.faults[kind]
        assert (told.count, told.match) == (expected.count(kind), expected.index(kind))
    assert len(agent.faults) == 3


def test_after_three_faults_a_seat_is_not_asked(path: Path) -> None:
    agent = made(path, "Raises")
    matches = played(agent, 2, at_once=1)
    assert matches.decisions[:, 0].tolist() == [5, 5]
    assert agent.faults == {
        user.RAISED: Faults(6, 0, 1, NO_WAY),
        user.NOT_ASKED: Faults(4, 0, 13, "after 3 faults in a match"),
    }


def test_two_faults_are_forgiven_in_every_match(path: Path) -> None:
    agent = made(path, "Twice")
    played(agent, 3)
    assert agent.faults == {
        user.RAISED: Faults(6, 0, 1, f"ValueError (line {line_of('raise ValueError')})")
    }


def test_an_agent_that_hangs_does_not_hang_the_match(path: Path) -> None:
    agent = made(path, "Hangs", time_limit=0.3)
    played(agent, 1)
    assert {kind: told.count for kind, told in agent.faults.items()} == {
        user.SLOW: 3,
        user.NOT_ASKED: 2,
    }


@pytest.mark.parametrize("name", ["Draws", "Unsteady"])
def test_matches_do_not_depend_on_how_many_are_played_at_once(path: Path, name: str) -> None:
    agents = [made(path, name), made(path, name)]
    racer = make_agent("racer", SHORT)
    seeds, seating = rotations(3, 5)
    results = []
    for size, agent in zip((1, 8), agents, strict=True):
        line_up = [agent, racer, Outside(racer), racer]
        results.append(play_matches(line_up, SHORT, seeds, seating=seating, at_once=size))
    assert results[0].totals.tolist() == results[1].totals.tolist()
    assert agents[0].faults == agents[1].faults
    assert (user.NOT_ASKED in agents[0].faults) == (name == "Unsteady")


def test_an_agent_that_cannot_start_again_forfeits(tmp_path: Path) -> None:
    path = bots(tmp_path)
    agent = made(path, "Dies")
    path.unlink()
    assert not any(ask(agent, [1, 2]).tobytes())
    assert agent.faults == {user.ENDED: Faults(2, 0, 1, "its process ended with exit code 7")}


# --- The process


def test_a_process_ends_when_it_is_closed_and_starts_when_asked(path: Path) -> None:
    agent = made(path, "Stays")
    assert agent._process is not None
    first = agent._process._process
    agent.close()
    assert first.poll() is not None
    ask(agent)
    second = agent._process._process
    assert second.poll() is None
    del agent
    assert second.poll() is not None


def test_a_copy_has_a_process_of_its_own(path: Path) -> None:
    agent = made(path, "Draws")
    kind, arguments = agent.__reduce__()
    other = kind(*arguments)
    assert isinstance(other, UserAgent)
    assert other.name == agent.name
    assert ask(other, [7]).tobytes() == ask(agent, [7]).tobytes()


def test_in_process_faults_raise(path: Path) -> None:
    agent = user.make_user_agent(f"{path}:Raises", SHORT, in_process=True)
    assert isinstance(agent, Agent)
    with pytest.raises(ZeroDivisionError):
        played(agent, 1)
    drawing = user.make_user_agent(f"{path}:Draws", SHORT, in_process=True)
    assert drawing.name == "drawing lots"
    assert len(played(drawing, 2)) == 2


# --- The command line


def started(path: Path, rules: Path, name: str, *words: str) -> Any:
    line_up = f"{path}:{name},racer,racer,racer"
    command = ["play", "--agents", line_up, "--matches", "4", "--rules", str(rules), *words]
    return subprocess.Popen(
        [sys.executable, "-m", "retinue.cli", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=path.parent,
    )


def test_what_an_agent_prints_stays_out_of_the_table(path: Path, rules: Path) -> None:
    with started(path, rules, "Prints") as process:
        out, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 0
    assert "noise" not in out
    assert "Journey, 4 matches" in out
    assert err.count("noise of Python") == err.count("noise below") == 20
    assert "forfeited" not in err


def test_faults_are_told_and_forfeits_are_recorded(
    path: Path, rules: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    monkeypatch.setenv("COLUMNS", "100")
    folder = rules.parent / "games"
    words = ["play", "--agents", "bots.py:Raises,racer,racer,bots.py:Draws", "--matches", "2"]
    assert cli.main([*words, "--rules", str(rules), "--records", str(folder)]) == 0
    out, err = capfd.readouterr()
    assert "bots.py:Raises" in out
    told = [line for line in err.splitlines() if "compil" not in line]
    assert told == [
        "retinue: bots.py:Raises raised an exception: 6 turns forfeited, the first in match 0, "
        f"turn 1: {NO_WAY}",
        "retinue: bots.py:Raises was not asked again: 4 turns forfeited, the first in match 0, "
        "turn 13: after 3 faults in a match",
    ]
    assert cli.main(["replay", "--verify", str(folder)]) == 0
    assert capfd.readouterr().out == "records: 2 finished and fit\n"
    lines = (folder / "match-000000.jsonl").read_text().splitlines()
    turns = [line for line in map(json.loads, lines[1:-1]) if line["seat"] == 0]
    assert len(turns) == 5
    assert {turn["direction"] for turn in turns} == {"forward"}
    assert {json.dumps(turn["noble"]) for turn in turns} == {json.dumps(turns[0]["noble"])}


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_an_agent_ends_with_the_command(path: Path, rules: Path, sent: signal.Signals) -> None:
    with started(path, rules, "Hangs", "--time-limit", "1000") as process:
        found = None
        while found is None and (line := process.stderr.readline()):
            found = re.match(r"pid (\d+)", line)
        assert found is not None
        begun = time.monotonic()
        process.send_signal(sent)
        out, err = process.communicate(timeout=LIMIT)
        assert time.monotonic() - begun < 20
    while _lives(int(found[1])):
        assert time.monotonic() - begun < LIMIT
        time.sleep(0.05)
    assert out == ""
    if sent == signal.SIGINT:
        assert process.returncode == 130
        assert err.splitlines()[-1] == "retinue: interrupted after 0 of 4 matches"
        assert "Traceback" not in err


def _lives(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{number}/stat")  # nobody may be there to collect it
    return not (state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z")


def test_a_time_limit_is_above_zero(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["play", "--agents", f"{path}:Stays,racer,racer,racer", "--time-limit"]
    for given in ("0", "-1", "nan", "inf", "86401"):
        assert cli.main([*words, given]) == 2
        message = f"a time limit is above 0 and at most 86400 seconds, not {given}"
        assert message in capsys.readouterr().err

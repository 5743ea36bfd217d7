"""How the generator is measured: every legal turn, its value, and what candidates fall short."""

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from positions import BRAWL, JOURNEY
from retinue import cli
from retinue.agents.base import CompiledAgent
from retinue.agents.registry import make_agent
from retinue.envs.game import engine, jit
from retinue.envs.game.board import GUARDS, NOBLE
from retinue.envs.game.events import SILENT
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.state import TURN, totals
from retinue.envs.opponents import View
from retinue.evaluation import generator
from retinue.evaluation.arena import ArenaError
from retinue.evaluation.enumeration import all_turns, count_turns, values_of
from retinue.evaluation.generator import (
    Positions,
    draw_positions,
    looking_at,
    measure_regret,
    measure_strength,
)

pytestmark = pytest.mark.skipif(not jit.ENABLED, reason="too many turns for plain Python")

SMALL = 3000
"""Legal turns at most, so that plain Python can go through them."""
Key = tuple[int, int, int, bytes]


def key_of(turn: Any) -> Key:
    return (
        int(turn["direction"]),
        int(turn["noble_steps"]),
        int(turn["noble_after"]),
        turn["rolls"].tobytes(),
    )


def by_trying(game: Any, ruleset: Ruleset) -> set[Key]:
    """Return every turn that the referee of the engine finds legal, each roll given to anybody."""
    held = [value for value in range(6) for _ in range(game["store"][game["seat"], value])]
    turn = np.zeros(1, TURN)[0]
    tried, found = set(), set()
    for takers in itertools.product(range(GUARDS + 1), repeat=len(held)):
        turn["rolls"] = 0
        for value, taker in zip(held, takers, strict=True):
            if taker < GUARDS:
                turn["rolls"][taker, value] += 1
        if (rolls := turn["rolls"].tobytes()) in tried:
            continue
        tried.add(rolls)
        for direction, steps, after in itertools.product(range(2), range(8), range(2)):
            turn["direction"], turn["noble_steps"], turn["noble_after"] = direction, steps, after
            if engine.judge(game, ruleset.packed, turn) == engine.LEGAL:
                found.add(key_of(turn))
    return found


def scattered(ruleset: Ruleset) -> CompiledAgent:
    """Return the agent that keeps the fewest rolls."""
    agent = make_agent("random", ruleset)
    assert isinstance(agent, CompiledAgent)
    return agent


@pytest.fixture(scope="module", params=[JOURNEY, BRAWL], ids=["journey", "brawl"])
def ruleset(request: pytest.FixtureRequest) -> Ruleset:
    chosen: Ruleset = request.param
    return chosen


@pytest.fixture(scope="module")
def drawn(ruleset: Ruleset) -> Positions:
    return draw_positions(ruleset, scattered(ruleset), 24, seed=3, most_turns=SMALL)


def held_in(game: Any) -> int:
    return int(game["store"][game["seat"]].sum())


# --- All legal turns


def test_every_legal_turn_is_there_once(ruleset: Ruleset, drawn: Positions) -> None:
    for game in sorted(drawn.games, key=held_in)[:3]:
        turns = [key_of(turn) for turn in all_turns(game, ruleset)]
        assert len(turns) == count_turns(game, ruleset)
        assert len(set(turns)) == len(turns)
        assert set(turns) == by_trying(game, ruleset)
        assert len({(steps, after) for _, steps, after, _ in turns}) == 13


def test_a_noble_in_home_stays(ruleset: Ruleset, drawn: Positions) -> None:
    game = min(drawn.games, key=held_in).copy()
    before = count_turns(game, ruleset)
    game["position"][game["seat"], NOBLE] = ruleset.home
    assert 13 * count_turns(game, ruleset) == before
    assert {key_of(turn) for turn in all_turns(game, ruleset)} == by_trying(game, ruleset)


def test_rolls_go_to_nobody_when_no_guard_may_move(ruleset: Ruleset, drawn: Positions) -> None:
    game = drawn.games[0].copy()
    game["position"][game["seat"], :GUARDS] = -1
    game["credits"][game["seat"]] = 0
    assert count_turns(game, ruleset) == 26
    assert not all_turns(game, ruleset)["rolls"].any()


def test_values_are_those_of_the_turns(ruleset: Ruleset, drawn: Positions) -> None:
    """What `greedy` weighs is the change of the own total: found by playing every turn."""
    greedy = make_agent("greedy", ruleset)
    assert isinstance(greedy, CompiledAgent)
    for game in drawn.games[:6]:
        turns = all_turns(game, ruleset)
        gains = np.zeros(len(turns))
        for index, turn in enumerate(turns):
            after = game.copy()
            engine.play(after, ruleset.packed, turn, SILENT)
            gains[index] = (totals(after) - totals(game))[game["seat"]]
        values = values_of(turns, game, ruleset, greedy)
        assert values == pytest.approx(gains, abs=1e-3)
        assert values.max() == pytest.approx(gains.max(), abs=1e-3)


# --- Positions


def test_large_positions_are_left_out_and_counted(ruleset: Ruleset, drawn: Positions) -> None:
    assert len(drawn.games) == len(drawn.turns) == 24
    assert drawn.turns == [count_turns(game, ruleset) for game in drawn.games]
    assert max(drawn.turns) <= SMALL
    assert drawn.too_large > 0
    wider = draw_positions(ruleset, scattered(ruleset), 24, seed=3, most_turns=10**12)
    assert wider.too_large == 0
    assert max(wider.turns) > SMALL
    again = draw_positions(ruleset, scattered(ruleset), 24, seed=3, most_turns=SMALL)
    assert again.games.tobytes() == drawn.games.tobytes()


# --- Regret


@pytest.mark.parametrize("at_random", [False, True], ids=["generated", "at random"])
def test_candidates_are_legal_and_never_better_than_the_best(
    ruleset: Ruleset, drawn: Positions, at_random: bool
) -> None:
    view = View(drawn.games, np.arange(len(drawn.games), dtype=np.uint64), ruleset)
    agent = looking_at(48, ruleset, at_random=at_random)
    chosen = agent.choose(view, np.random.default_rng(0))
    for game, turn in zip(drawn.games, chosen, strict=True):
        turns = all_turns(game, ruleset)
        values = values_of(turns, game, ruleset, agent)
        (index,) = [i for i, each in enumerate(turns) if key_of(each) == key_of(turn)]
        assert values[index] <= values.max()


def test_regret(ruleset: Ruleset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generator, "TIMED_FOR", 0.001)
    told: list[tuple[int, int]] = []
    report = measure_regret(
        ruleset, 20, on_progress=lambda *each: told.append(each), candidates=(8, 64)
    )
    assert told == [(done, 20) for done in range(1, 21)]
    assert (report.positions, report.mode, report.rules) == (20, ruleset.mode, ruleset.digest)
    assert report.turns_median <= report.turns_max <= report.most_turns == generator.MOST_TURNS
    rows = {(row.at_random, row.candidates): row for row in report.rows}
    assert list(rows) == [(False, 8), (False, 64), (True, 8), (True, 64)]
    for row in report.rows:
        assert row.mean >= 0
        assert row.percentile_95 >= 0
        assert row.spread_mean >= 0
        assert 0 <= row.best_found <= 1
        assert row.per_second > 0
    # More draws hold all of fewer draws.
    assert rows[True, 64].mean <= rows[True, 8].mean
    assert rows[True, 64].best_found >= rows[True, 8].best_found
    assert rows[False, 64].mean < rows[True, 64].mean
    assert rows[False, 64].best_found > rows[True, 64].best_found


def test_there_may_be_no_such_position() -> None:
    with pytest.raises(
        ArenaError, match=r"^of [\d,]+ positions only 0 have at most 1 legal turns, "
    ):
        draw_positions(JOURNEY, scattered(JOURNEY), 1, most_turns=1)


# --- In play, and the command


def test_strength() -> None:
    told: list[tuple[int, int]] = []
    found = measure_strength(
        BRAWL, 2, seed=5, candidates=(4, 3), on_progress=lambda *each: told.append(each)
    )
    assert (found.one, found.three) == (
        "tactician:candidates=4",
        "tactician:candidates=3,random=true",
    )
    assert (found.matches, found.first.samples, told) == (8, 2, [(8, 8)])
    assert 0 <= found.first.low <= found.first.value <= found.first.high <= 1


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(generator, "TIMED_FOR", 0.001)
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.usefixtures("quick")
def test_the_command_shows_and_writes_figures(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["bench-generator", "--mode", "journey", "--positions", "3", "--blocks", "0"]
    assert cli.main([*words, "--json", "figures.json"]) == 0
    out = capsys.readouterr().out
    assert "Journey: 3 positions, " in out
    assert all(f"{count} {kind}" in out for count in (32, 64, 128) for kind in ("gen", "at r"))
    figures = json.loads(Path("figures.json").read_text())
    assert list(figures["modes"]) == ["journey"]
    regret = figures["modes"]["journey"]["regret"]
    assert (regret["positions"], len(regret["rows"])) == (3, 6)
    assert figures["modes"]["journey"]["strength"] is None
    assert figures["machine"]["cores"] > 0


@pytest.mark.usefixtures("quick")
def test_ctrl_c_keeps_the_mode_before(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(ruleset: Ruleset, *arguments: Any, **options: Any) -> Any:
        if ruleset.mode == "brawl":
            raise KeyboardInterrupt
        return measure_strength(ruleset, 1, candidates=(2, 2))

    monkeypatch.setattr(generator, "measure_strength", stopped)
    assert cli.main(["bench-generator", "--positions", "2", "--json", "figures.json"]) == 130
    shown = capsys.readouterr()
    assert "against three tactician:candidates=2,random=true, 4 matches: first in" in shown.out
    assert shown.err.endswith("retinue: interrupted\n")
    assert list(json.loads(Path("figures.json").read_text())["modes"]) == ["journey"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--positions", "0"], "Invalid value for '--positions'"),
        (["--blocks", "-1"], "Invalid value for '--blocks'"),
        (["--mode", "chess"], "unknown mode 'chess': use journey or brawl"),
        (["--threads", "1000"], "threads must be 1 to "),
        (["--json", "no/figures.json"], "no/figures.json: there is no folder no"),
    ],
)
@pytest.mark.usefixtures("quick")
def test_what_cannot_be_measured(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["bench-generator", *words]) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert message in shown.err

"""What a tournament's summary says, and how much luck common dice take away."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from positions import BRAWL, JOURNEY, changed
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.schema import SchemaError
from retinue.evaluation import pairs
from retinue.evaluation.luck import variance_factor
from retinue.evaluation.standings import SPEEDS, luck_among_the_best, summarise, time_agents
from retinue.evaluation.tournament import Tournament, open_tournament, play_tournament

MEDIUM = changed(JOURNEY, clock_seconds=800)
"""Matches of 80 turns."""


def ignored(done: int, count: int) -> None:
    """Take no notice of progress."""


def played(
    specs: Sequence[str], folder: Path, blocks: int = 40, ruleset: Ruleset = MEDIUM, seed: int = 0
) -> Tournament:
    tournament = open_tournament(folder, ruleset, specs, seed)
    play_tournament(tournament, blocks, on_progress=ignored)
    return tournament


# --- The summary


@pytest.mark.parametrize("ruleset", [MEDIUM, changed(BRAWL, clock_seconds=800)], ids="JB")
def test_the_summary_s_numbers_fit_together(ruleset: Ruleset, tmp_path: Path) -> None:
    specs = ("random", "racer", "greedy", "spread", "backward")
    summary = summarise(played(specs, tmp_path / "out", ruleset=ruleset))
    assert summary.blocks == 40
    assert sum(agent.matches for agent in summary.agents) == 4 * 4 * 40
    weights = [agent.matches / (4 * 4 * 40) for agent in summary.agents]

    def mean(values: Sequence[float]) -> float:
        return float(np.dot(weights, values))

    assert mean([agent.first.value for agent in summary.agents]) == pytest.approx(0.25)
    made = [agent.guards_captured + agent.nobles_captured for agent in summary.agents]
    lost = [agent.guards_lost + agent.nobles_lost for agent in summary.agents]
    assert mean(made) == pytest.approx(mean(lost))
    assert mean(made) > 0.5
    for agent in summary.agents:
        sources = agent.progression + agent.captures - agent.penalty + agent.bonus
        assert agent.total.value == pytest.approx(sources)
        assert agent.rounds[-1] == pytest.approx(agent.total.value)
        assert len(agent.rounds) == 20
        assert sum(agent.places) == pytest.approx(1)
        assert agent.place == pytest.approx(np.dot(agent.places, (1, 2, 3, 4)))
        assert sum(agent.lost_at) == pytest.approx(agent.guards_lost + agent.nobles_lost)
        assert sum(agent.captured_at) == pytest.approx(
            agent.guards_captured + agent.nobles_captured
        )
        assert 0 < sum(agent.stood) <= 5
        assert agent.first.low <= agent.first.value <= agent.first.high
        assert agent.rating.low <= agent.rating.value <= agent.rating.high
        assert np.mean(agent.by_seat) == pytest.approx(agent.first.value)
        assert (agent.finished > 0) == (agent.finishing_round is not None)
    for seat in summary.seats:
        assert seat.low <= seat.value <= seat.high
    assert sum(seat.value for seat in summary.seats) == pytest.approx(1)
    size = len(summary.agents)
    for one in range(size):
        assert summary.meetings[one][one] is None
        for other in set(range(size)) - {one}:
            mine, theirs = summary.meetings[one][other], summary.meetings[other][one]
            assert mine is not None
            assert theirs is not None
            assert mine.ahead.value + theirs.ahead.value == pytest.approx(1)
            assert mine.points == pytest.approx(-theirs.points)
            assert summary.above[one][other] + summary.above[other][one] == pytest.approx(1)


def test_who_is_stronger_stands_higher(tmp_path: Path) -> None:
    summary = summarise(played(("random", "racer", "greedy", "hunter"), tmp_path / "out", 60))
    names = [agent.name for agent in summary.agents]
    assert names.index("greedy") < names.index("racer") < names.index("random")
    ratings = {agent.name: agent.rating for agent in summary.agents}
    assert summary.pinned == "random"
    assert ratings["random"].value == 0
    assert ratings["racer"].value > 0
    racer = summary.agents[names.index("racer")]
    assert (racer.forward, racer.guard_paths[0]) == (1.0, 1.0), "it knows one direction"
    assert summary.above[names.index("greedy")][names.index("random")] == 1.0


@pytest.mark.parametrize("copies", [4, 6])
def test_copies_of_one_agent_are_equal(copies: int, tmp_path: Path) -> None:
    """Dice and an agent's chance are those of the seat, and every agent has every seat."""
    summary = summarise(played(("random",) * copies, tmp_path / "out", 30))
    for agent in summary.agents:
        assert agent.first.value == pytest.approx(0.25)
        assert agent.rating.low <= 1e-6
        assert agent.rating.high >= -1e-6
    totals = {agent.total.value for agent in summary.agents}
    assert len(totals) == 1 if copies == 4 else len(totals) > 1
    assert max(seat.high for seat in summary.seats) > 0.25 > min(seat.low for seat in summary.seats)


def test_two_agents_share_the_seats(tmp_path: Path) -> None:
    summary = summarise(played(("racer", "random"), tmp_path / "out", 6))
    assert [agent.name for agent in summary.agents] == ["racer", "random"]
    assert [agent.matches for agent in summary.agents] == [48, 48]
    assert summary.agents[0].first.value + summary.agents[1].first.value == pytest.approx(0.5)
    assert summary.luck is None


def test_agents_that_have_not_played_are_left_out(tmp_path: Path) -> None:
    specs = ("racer", "random", "spread", "greedy", "forward", "switch")
    summary = summarise(played(specs, tmp_path / "out", 1))
    assert len(summary.agents) == 4
    with pytest.raises(ValueError, match="no block has been played"):
        summarise(open_tournament(tmp_path / "new", MEDIUM, specs))


def test_speeds_are_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "TIMED_FOR", 0.001)
    tournament = played(("racer", "random", "racer"), tmp_path / "out", 1)
    told: list[tuple[int, int]] = []
    speeds = time_agents(tournament, lambda *numbers: told.append(numbers))
    assert set(speeds) == {"racer", "random"}
    assert told == [(1, 2), (2, 2)]
    assert time_agents(tournament, ignored) == speeds
    times = {agent.name: agent.microseconds for agent in summarise(tournament, speeds).agents}
    assert times["racer"] == times["racer #2"] == speeds["racer"].microseconds
    (tmp_path / "out" / SPEEDS).write_text("{}")
    with pytest.raises(SchemaError, match="remove it to measure"):
        time_agents(tournament, ignored)


# --- Luck


def drawn(blocks: int, of_seats: float, seed: int = 0) -> Any:
    """Draw totals whose chance is the seat's, the same in all four matches, and the match's."""
    rng = np.random.default_rng(seed)
    seats = (np.arange(4) + np.arange(4)[:, None]) % 4
    luck = of_seats * rng.normal(size=(blocks, 4))[:, seats]
    return 50.0 * np.arange(4) + luck + rng.normal(size=(blocks, 4, 4))


@pytest.mark.parametrize(("of_seats", "factor"), [(0.0, 1.0), (1.0, 2.0), (2.0, 5.0)])
def test_luck_of_known_size_is_found(of_seats: float, factor: float) -> None:
    found = variance_factor(drawn(4000, of_seats))
    assert found.value == pytest.approx(factor, rel=0.05)
    assert found.low < found.value < found.high
    few = variance_factor(drawn(100, of_seats))
    assert few.low < factor < few.high
    assert few.high - few.low > found.high - found.low


def test_luck_is_measured_among_the_best(tmp_path: Path) -> None:
    tournament = played(("random", "racer", "spread", "greedy", "forward"), tmp_path / "out")
    luck = luck_among_the_best(tournament, on_progress=ignored)
    assert luck is not None
    assert set(luck.agents) == {"racer", "spread", "greedy", "forward"}
    assert 0.3 < luck.factor.low < luck.factor.value < luck.factor.high < 5
    assert luck == luck_among_the_best(tournament, threads=1, on_progress=ignored)
    assert summarise(tournament, luck=luck).luck == luck


def test_luck_takes_four_agents_that_differ(tmp_path: Path) -> None:
    three = played(("racer", "random", "spread"), tmp_path / "three", 4)
    assert luck_among_the_best(three, on_progress=ignored) is None
    alike = played(("racer",) * 4, tmp_path / "alike", 4)
    assert luck_among_the_best(alike, on_progress=ignored) is None

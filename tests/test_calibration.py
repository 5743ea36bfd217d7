"""Calibration: what the simulations draw is what they say, and what they find is what is so."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from retinue.evaluation import calibration
from retinue.evaluation.arena import rotations
from retinue.evaluation.calibration import (
    calibration_lines,
    draw_blocks,
    proportion,
    simulate_comparisons,
    simulate_copies,
)
from retinue.evaluation.ratings import Ratings, rate
from retinue.evaluation.sequential import LogRatios, Question

COUNT = 1000


def most(error: float, count: int) -> float:
    """Return the share of errors that 1 simulation of 1,000 exceeds if ``error`` is what is so."""
    return error + 3.09 * math.sqrt(error * (1 - error) / count)


# --- What is drawn


@pytest.mark.parametrize("correlation", [0, 0.3, 0.9])
@pytest.mark.parametrize("difference", [0, 0.1, -0.2])
def test_blocks_have_the_true_difference(difference: float, correlation: float) -> None:
    count = 40_000
    rng = np.random.default_rng(1)
    samples = draw_blocks((4, count // 4), difference, rng, shared=0.2, correlation=correlation)
    assert samples.shape == (4, count // 4)
    assert set(np.unique(8 * samples)) <= set(range(9))
    assert samples.mean() == pytest.approx(0.5 + difference, abs=4 * samples.std() / count**0.5)
    if not correlation:
        # Of one match: 1 or 0 but for a fifth, which are 0.5.
        variance = 0.8 / 4 + 0.2 * 0 - difference**2
        assert samples.var() == pytest.approx(variance / 4, rel=0.05)


def test_correlated_matches_vary_together() -> None:
    variances = [
        draw_blocks((20_000, 1), 0, np.random.default_rng(2), correlation=correlation).var()
        for correlation in (0, 0.3, 0.9, 1)
    ]
    assert variances == sorted(variances)
    # All four matches the same: first or second, but for a hundredth that is shared.
    assert variances[-1] == pytest.approx(0.99 / 4, rel=0.02)


def test_places_are_fair_to_agents_but_not_to_seats() -> None:
    rng = np.random.default_rng(3)
    _, seating = rotations(3000, 0)
    places = calibration._draw_places(seating, rng)
    of_agents = [places[seating == agent].mean() for agent in range(4)]
    assert of_agents == pytest.approx([np.mean(places)] * 4, abs=0.04)
    assert (np.diff(places.mean(axis=0)) > 0.1).all()
    assert 0.01 < (np.sort(places, axis=1) != [1, 2, 3, 4]).any(axis=1).mean() < 0.3
    by_block = np.take_along_axis(places, np.argsort(seating), 1).reshape(-1, 4, 4)
    together = by_block.mean(axis=1).var() / (by_block.var() / 4)
    assert not 0.95 < together < 1.05, "matches of a block have luck in common"


@pytest.mark.parametrize(
    ("count", "of", "low", "high"),
    [(0, 10, 0, 0.2775), (10, 10, 0.7225, 1), (5, 10, 0.2366, 0.7634), (50, 1000, 0.0381, 0.0653)],
)
def test_shares_have_wilson_s_intervals(count: int, of: int, low: float, high: float) -> None:
    found = proportion(count, of)
    assert (found.value, found.samples) == (count / of, of)
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-4)
    assert 0 <= found.low <= found.value <= found.high <= 1


# --- What is found


@pytest.mark.parametrize("correlation", [0, 0.3])
def test_comparisons_keep_their_promise(correlation: float) -> None:
    told: list[tuple[int, int]] = []
    found = simulate_comparisons(
        COUNT, seed=1, correlation=correlation, on_progress=lambda *each: told.append(each)
    )
    assert [each.difference for each in found] == [0, 0.025, 0.05, 0.1]
    for each in found:
        assert sum(share.value for share in each.verdicts) == pytest.approx(1)
        assert each.wrong.value <= most(each.error, COUNT)
        assert each.wrong.samples == COUNT
    none, half, whole, double = found
    assert none.wrong.value == pytest.approx(1 - none.verdicts[2].value)
    assert half.wrong == half.verdicts[1]
    assert whole.wrong.value == pytest.approx(1 - whole.verdicts[0].value)
    # As a fixed number of blocks would need that errs as rarely: verdicts do come.
    variance = draw_blocks((1, 20_000), 0, np.random.default_rng(0), correlation=correlation).var()
    assert whole.blocks < variance * ((1.960 + 1.645) / 0.05) ** 2
    assert double.blocks < whole.blocks / 2
    assert told == sorted(told)
    assert told[-1] == (4 * COUNT, 4 * COUNT)


def test_comparisons_show_a_test_that_errs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Question, "needed", LogRatios(1, 1, 1, 1))
    none, _, whole, _ = simulate_comparisons(COUNT, seed=2)
    assert none.wrong.low > none.error
    assert whole.wrong.low > whole.error


def test_four_copies_have_intervals_that_overlap() -> None:
    told: list[tuple[int, int]] = []
    found = simulate_copies(
        100, blocks=60, resamples=500, seed=1, on_progress=lambda *each: told.append(each)
    )
    assert found.overlap.value >= 0.93
    # The promise is 95%; so few would be an accident of 1 in 1,000.
    assert found.joint.value >= 1 - most(0.05, 100)
    assert found.joint.value <= found.overlap.value
    assert found.joint.value <= found.single.value
    assert 0.95 <= found.single.value < 1
    assert told == [(done, 100) for done in range(1, 101)]


def test_four_copies_show_intervals_that_are_too_narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    def narrow(*args: Any, **options: Any) -> Ratings:
        found = rate(*args, **options)
        low, high = ((found.values + end) / 2 for end in (found.low, found.high))
        return dataclasses.replace(found, low=low, high=high)

    monkeypatch.setattr(calibration, "rate", narrow)
    found = simulate_copies(50, blocks=30, resamples=200)
    assert found.overlap.high < 0.95
    assert found.joint.high < 0.95
    assert found.single.high < 0.95


def test_simulations_are_reproducible_and_seeded() -> None:
    assert simulate_comparisons(50, seed=3) == simulate_comparisons(50, seed=3)
    assert simulate_comparisons(50, seed=3) != simulate_comparisons(50, seed=4)
    one, again = (simulate_copies(5, blocks=10, resamples=100, seed=3) for _ in range(2))
    assert one == again


def test_lines_to_print() -> None:
    comparisons = simulate_comparisons(100, margin=0.1, error=0.1)
    copies = simulate_copies(4, blocks=10, resamples=100)
    lines = calibration_lines(comparisons, copies)
    assert len(lines) == 5
    for line, each in zip(lines, comparisons, strict=False):
        first = each.verdicts[0].value
        assert line.startswith(f"difference {each.difference:.3f}: first {first:.1%}, second ")
        assert line.endswith(f"promised at most 10%; {each.blocks:.0f} blocks")
    assert lines[-1].startswith("four copies, 10 blocks: all intervals overlap in ")
    assert " of 4 tournaments " in lines[-1]


# --- What is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"count": 0}, "there must be at least 1 of the comparisons, not 0"),
        ({"margin": 0.25}, "differences must be below 0.5 in size, not 0.5"),
        ({"margin": 0.6}, "margin must be above 0 and below 0.5, not 0.6"),
        ({"error": 0}, "error must be above 0 and below 0.5, not 0"),
        ({"shared": 0.9}, "shared must be 0 to below 0.8 with a difference of 0.1, not 0.9"),
        ({"shared": -0.1}, "shared must be 0 to below 0.8 with a difference of 0.1, not -0.1"),
        ({"correlation": 1.5}, "correlation must be 0 to 1, not 1.5"),
    ],
)
def test_comparisons_that_can_not_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        simulate_comparisons(**options)


def test_tournaments_that_can_not_be() -> None:
    with pytest.raises(ValueError, match="there must be at least 1 of the tournaments, not 0"):
        simulate_copies(0)
    with pytest.raises(ValueError, match="there must be at least 1 of the blocks, not 0"):
        simulate_copies(1, blocks=0)

"""Means, shares and their intervals."""

import numpy as np
import pytest

from retinue.evaluation.statistics import (
    RESAMPLES,
    block_means,
    bootstrap_means,
    estimate,
    estimate_share,
    first_shares,
)


def test_a_shared_first_place_counts_its_part() -> None:
    places = [[1, 2, 3, 4], [4, 1, 1, 3], [1, 1, 1, 1], [2, 2, 2, 1]]
    third = 1 / 4
    assert first_shares(places).tolist() == [
        [1, 0, 0, 0],
        [0, 0.5, 0.5, 0],
        [third, third, third, third],
        [0, 0, 0, 1],
    ]


def test_block_means() -> None:
    assert block_means([1, 2, 3, 4, 0, 0, 0, 1], 4).tolist() == [2.5, 0.25]
    assert block_means([3, 5], 1).tolist() == [3, 5]
    with pytest.raises(ValueError, match="7 values do not fill blocks of 4"):
        block_means(range(7), 4)


@pytest.mark.parametrize("distinct", [2, 1000])
def test_bootstrap_means_have_the_spread_of_a_mean(distinct: int) -> None:
    """Few values go the multinomial way at once, many in parts: both must be right."""
    samples = np.random.default_rng(1).integers(0, distinct, 1000)
    means = bootstrap_means(samples)
    assert len(means) == RESAMPLES
    assert means.mean() == pytest.approx(samples.mean(), rel=0.01)
    assert means.std() == pytest.approx(samples.std() / 1000**0.5, rel=0.05)


def test_bootstrap_is_reproducible_and_seeded() -> None:
    samples = [0, 1, 1, 0, 1, 0.5]
    assert (bootstrap_means(samples) == bootstrap_means(samples)).all()
    assert (bootstrap_means(samples, seed=1) != bootstrap_means(samples)).any()
    assert estimate(samples) == estimate(samples)


def test_memory_is_bounded_by_doing_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retinue.evaluation.statistics._AT_ONCE", 100)
    means = bootstrap_means(np.arange(30), resamples=50)
    assert len(means) == 50
    assert len(set(means.tolist())) > 40, "parts must not repeat each other"


def test_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(2)
    covered = [0.3 in estimate(rng.random(200) < 0.3, seed=trial) for trial in range(400)]
    assert 0.92 <= np.mean(covered) <= 0.98


def test_matches_of_a_block_are_not_independent() -> None:
    """Were they counted as such, the interval would be half as wide as it should be."""
    blocks = (np.random.default_rng(3).random(400) < 0.5).astype(float)
    matches = np.repeat(blocks, 4)
    right, wrong = estimate(block_means(matches, 4)), estimate(matches)
    assert right.value == wrong.value
    assert (right.high - right.low) / (wrong.high - wrong.low) == pytest.approx(2, rel=0.1)


@pytest.mark.parametrize(("value", "low", "high"), [(1, 0.025**0.01, 1), (0, 0, 1 - 0.025**0.01)])
def test_all_alike_is_no_certainty(value: int, low: float, high: float) -> None:
    found = estimate_share([value] * 100)
    assert (found.value, found.low, found.high) == pytest.approx((value, low, high))


def test_one_sample_says_nothing() -> None:
    assert (estimate([3]).low, estimate([3]).high) == (-np.inf, np.inf)
    found = estimate_share([0.5])
    assert (found.value, found.low, found.high, found.samples) == (0.5, 0, 1, 1)


def test_equal_samples_have_a_point_for_an_interval() -> None:
    found = estimate_share([0.25] * 50)
    assert (found.low, found.value, found.high) == (0.25, 0.25, 0.25)
    tenth = estimate([0.1] * 7)  # whose mean is not exactly 0.1
    assert tenth.low <= tenth.value <= tenth.high


def test_no_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="no sample"):
        estimate([])

"""The sequential test: its arithmetic, its verdicts, and that it errs no more than it promises."""

import math
from typing import Any

import numpy as np
import pytest

from retinue.evaluation.sequential import (
    ERROR,
    MARGIN,
    UNDECIDED,
    VERDICTS,
    LogRatios,
    Question,
    SequentialTest,
    SequentialTests,
)
from retinue.evaluation.statistics import estimate_share

COUNT = 2000
"""Tests for each error rate."""


def compared(samples: Any, **question: float) -> SequentialTest:
    test = SequentialTest(**question)
    test.add(samples)
    return test


def eighths(seed: int, count: int = 3000) -> Any:
    """Return samples with a mean of 0.5."""
    return np.random.default_rng(seed).integers(0, 9, count) / 8


# --- Arithmetic


def test_ratios_and_verdicts_are_those_of_the_bets() -> None:
    """Written out, sample by sample."""
    margin, error = 0.08, 0.1
    question = Question(margin, error)
    for seed in range(20):
        samples = eighths(seed).tolist()
        before: list[float] = []
        gains, most = [1.0] * 4, [1.0] * 4
        verdict = None
        while verdict is None:
            # The variance so far, with one sample at par that varies as much as any can.
            means = [(0.5 + sum(before[: i + 1])) / (i + 2) for i in range(len(before))]
            squares = sum((x - mean) ** 2 for x, mean in zip(before, means, strict=True))
            variance = (0.25 + squares) / (1 + len(before))
            bet = min(margin / (variance + margin**2), 1.5)
            above = samples[len(before)] - 0.5
            before.append(samples[len(before)])
            for index, gain in enumerate((above, -above, margin - above, margin + above)):
                gains[index] *= 1 + bet * gain
                most[index] = max(most[index], gains[index])
            if most[0] >= 2 / error:
                verdict = "first"
            elif most[1] >= 2 / error:
                verdict = "second"
            elif min(most[2:]) >= 1 / error:
                verdict = "equal"
        test = compared(samples, margin=margin, error=error)
        assert (test.verdict, test.blocks) == (verdict, len(before))
        assert test.log_ratios == pytest.approx([math.log(gain) for gain in gains])
        assert test.question == question
    assert question.needed == pytest.approx(
        (math.log(20), math.log(20), math.log(10), math.log(10))
    )


def test_it_does_not_matter_how_many_samples_come_at_once() -> None:
    samples = eighths(seed=1)
    whole = compared(samples)
    assert whole.verdict is not None
    assert 50 < whole.blocks < len(samples)
    for size in (1, 7, 64):
        parts = SequentialTest()
        for begun in range(0, len(samples), size):
            parts.add(samples[begun : begun + size])
        assert parts.verdict == whole.verdict
        assert parts.blocks == whole.blocks
        assert parts.log_ratios == whole.log_ratios
        assert parts.estimate() == whole.estimate()
    assert compared(samples[: whole.blocks]).verdict == whole.verdict
    assert compared(samples[: whole.blocks - 1]).verdict is None


def test_the_two_agents_are_treated_alike() -> None:
    for seed in range(10):
        samples = eighths(seed)
        one, other = compared(samples), compared(1 - samples)
        swapped = {"first": "second", "second": "first", "equal": "equal", None: None}
        assert other.verdict == swapped[one.verdict]
        assert other.blocks == one.blocks
        first, second, not_first, not_second = one.log_ratios
        assert other.log_ratios == pytest.approx((second, first, not_second, not_first))


def test_many_tests_are_each_as_if_alone() -> None:
    samples = np.array([eighths(seed) for seed in range(30)])
    many = SequentialTests(30, Question())
    for begun in range(0, samples.shape[1], 100):
        many.add(samples[many.undecided, begun : begun + 100])
    assert len(many.undecided) == 0
    assert len({*many.verdicts.tolist()}) > 1
    for index, row in enumerate(samples):
        alone = compared(row)
        assert VERDICTS[many.verdicts[index]] == alone.verdict
        assert many.blocks[index] == alone.blocks
        assert LogRatios(*many.log_ratios[:, index]) == alone.log_ratios


def test_the_estimate_is_that_of_the_samples_that_were_taken() -> None:
    samples = eighths(seed=2)
    test = compared(samples)
    assert test.estimate() == estimate_share(samples[: test.blocks])
    assert test.estimate().samples == test.blocks
    with pytest.raises(ValueError, match="there is no sample to estimate from"):
        SequentialTest().estimate()


# --- Verdicts that have to come


@pytest.mark.parametrize(
    ("sample", "verdict", "blocks"),
    [(1.0, "first", 12), (0.0, "second", 12), (0.5, "equal", 45), (0.75, "first", 16)],
)
def test_samples_without_variance(sample: float, verdict: str, blocks: int) -> None:
    test = compared([sample] * 100)
    assert (test.verdict, test.blocks) == (verdict, blocks)


def test_no_verdict_without_evidence() -> None:
    test = SequentialTest()
    assert test.verdict is None
    assert test.blocks == 0
    assert test.log_ratios == (0, 0, 0, 0)
    test.add([])
    assert test.verdict is None
    for size in (1, 2, 5):
        assert compared([1.0] * size, error=0.05).verdict is None
        assert compared([1.0] * size, margin=0.4).verdict is None


def test_less_error_or_less_margin_takes_more_blocks() -> None:
    rng = np.random.default_rng(3)
    samples = rng.integers(0, 5, 3000) / 4 * 0.9 + 0.1
    usual = compared(samples)
    assert usual.verdict == "first"
    assert compared(samples, error=0.001).blocks > usual.blocks
    even = eighths(seed=4, count=20_000)
    assert compared(even, margin=0.02).blocks > 2 * compared(even).blocks


# --- Errors


def errors(draw: Any, difference: float, seed: int) -> tuple[float, float]:
    """Return the share of wrong verdicts and the mean of blocks.

    Args:
        draw: gives samples of a shape, with a source of chance.
        difference: of their mean from 0.5.
        seed: of the chance.
    """
    rng = np.random.default_rng(seed)
    tests = SequentialTests(COUNT, Question())
    while len(tests.undecided):
        tests.add(draw((len(tests.undecided), 64), rng))
    assert (tests.verdicts != UNDECIDED).all()
    first, second, equal = (float((tests.verdicts == index).mean()) for index in range(3))
    if not difference:
        return first + second, float(tests.blocks.mean())
    return (second if difference < MARGIN else second + equal), float(tests.blocks.mean())


def allowed(error: float) -> float:
    """Return the share of errors in ``COUNT`` that 1 such test of 1,000 exceeds."""
    return error + 3.09 * math.sqrt(error * (1 - error) / COUNT)


def coins(difference: float) -> Any:
    """All or nothing: no samples vary more."""
    return lambda shape, rng: (rng.random(shape) < 0.5 + difference) * 1.0


def rarely(chance: float, difference: float) -> Any:
    """At par but for few: there may long be no variance."""
    return lambda shape, rng: np.where(rng.random(shape) < chance, 0.5 + difference / chance, 0.5)


def skewed(difference: float) -> Any:
    """A little above par, and now and then 0."""
    chance = (0.05 - difference) / 0.55
    return lambda shape, rng: np.where(rng.random(shape) < chance, 0, 0.55)


@pytest.mark.parametrize(
    ("draw", "difference", "blocks"),
    [
        (coins(0), 0, 1000),
        (coins(MARGIN), MARGIN, 900),
        (coins(2 * MARGIN), 2 * MARGIN, 250),
        (rarely(0.1, MARGIN), MARGIN, 100),
        (rarely(0.5, MARGIN), MARGIN, 100),
        (skewed(0), 0, 200),
    ],
)
def test_errors_are_no_more_than_promised(draw: Any, difference: float, blocks: int) -> None:
    """And verdicts come: the last number is a generous bound."""
    wrong, taken = errors(draw, difference, seed=5)
    assert wrong <= allowed(ERROR)
    assert taken < blocks


@pytest.mark.parametrize("draw", [coins(MARGIN / 2), skewed(MARGIN / 2)])
def test_within_the_margin_only_the_weaker_is_wrong(draw: Any) -> None:
    wrong, taken = errors(draw, MARGIN / 2, seed=6)
    assert wrong <= allowed(ERROR / 2)
    assert taken < 1500


# --- What is refused


@pytest.mark.parametrize("name", ["margin", "error"])
@pytest.mark.parametrize("value", [0, 0.5, -0.1, math.nan])
def test_what_can_not_be_asked(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} must be above 0 and below 0.5, not {value}"):
        SequentialTest(**{name: value})


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ([0.5, 1.01], "samples must be from 0 to 1, not 1.01"),
        ([-0.5], "samples must be from 0 to 1, not -0.5"),
        ([0.5, math.nan], "samples must be from 0 to 1, not nan"),
        ([[0.5]], r"samples must be a row, not of shape \(1, 1\)"),
        (0.5, r"samples must be a row, not of shape \(\)"),
    ],
)
def test_what_is_no_sample(samples: Any, message: str) -> None:
    test = SequentialTest()
    with pytest.raises(ValueError, match=message):
        test.add(samples)
    assert test.blocks == 0

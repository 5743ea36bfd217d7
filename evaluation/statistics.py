"""What samples say: means with bootstrap intervals, and shares of first places.

Nothing here knows agents or games. A sample is the mean of one block of matches (or one match,
where there are no blocks); blocks are independent of each other, matches within a block are not.
"""

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]

LEVEL: Final = 0.95
RESAMPLES: Final = 4000
_AT_ONCE: Final = 4_000_000
"""Random numbers drawn at once: bounds the memory."""


@dataclass(frozen=True)
class Estimate:
    """A mean and its interval."""

    value: float
    low: float
    high: float
    samples: int

    def __contains__(self, value: float) -> bool:
        """Tell whether the interval holds a value."""
        return self.low <= value <= self.high


def first_shares(places: Any) -> Numbers:
    """Return each seat's share of the first place, float64 ``(n, 4)``, from places ``(n, 4)``.

    Seats that share the first place get equal parts, so every row sums to 1.
    """
    firsts = np.asarray(places) == 1
    return firsts / firsts.sum(axis=-1, keepdims=True)  # type: ignore[no-any-return]


def block_means(values: Any, size: int) -> Numbers:
    """Return the means of successive blocks of ``size`` values.

    Raises:
        ValueError: the values do not fill whole blocks.
    """
    values = np.asarray(values, np.float64)
    if len(values) % size:
        raise ValueError(f"{len(values)} values do not fill blocks of {size}")
    return values.reshape(-1, size).mean(axis=1)  # type: ignore[no-any-return]


def bootstrap_means(samples: Any, resamples: int = RESAMPLES, seed: int = 0) -> Numbers:
    """Return the means of ``resamples`` draws of ``len(samples)`` samples with replacement.

    Only how often each distinct value is drawn matters, and those counts are multinomial: with few
    distinct values a million samples cost no more than a hundred.
    """
    values, counts = np.unique(np.asarray(samples, np.float64), return_counts=True)
    total = int(counts.sum())
    rng = np.random.default_rng(seed)
    rows = max(1, _AT_ONCE // len(values))
    means = [
        rng.multinomial(total, counts / total, size=min(rows, resamples - begun)) @ values / total
        for begun in range(0, resamples, rows)
    ]
    return np.concatenate(means)


def estimate(samples: Any, *, level: float = LEVEL, seed: int = 0) -> Estimate:
    """Return the mean of samples with its percentile bootstrap interval.

    A single sample has no interval to speak of: it is unbounded.

    Raises:
        ValueError: there is no sample.
    """
    samples = np.asarray(samples, np.float64)
    if not len(samples):
        raise ValueError("there is no sample to estimate from")
    value = float(samples.mean())
    if len(samples) == 1:
        return Estimate(value, -np.inf, np.inf, 1)
    tail = (1 - level) / 2
    low, high = np.quantile(bootstrap_means(samples, seed=seed), (tail, 1 - tail))
    # A mean of equal numbers may differ from them in the last digit.
    return Estimate(value, min(float(low), value), max(float(high), value), len(samples))


def estimate_share(samples: Any, *, level: float = LEVEL, seed: int = 0) -> Estimate:
    """Return the mean of samples that lie in [0, 1], with its interval.

    When all samples are 0, or all 1, resampling them cannot show anything else. Then the open end
    is the exact one: the mean at which so many such samples in a row still have probability
    ``(1 - level) / 2``.
    """
    found = estimate(samples, level=level, seed=seed)
    open_end = ((1 - level) / 2) ** (1 / found.samples)
    low, high = max(found.low, 0.0), min(found.high, 1.0)
    if found.value == 1:
        low = min(low, open_end)
    if found.value == 0:
        high = max(high, 1 - open_end)
    return Estimate(found.value, low, high, found.samples)

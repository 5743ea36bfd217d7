"""How much of chance the common dice and rotated seats of a block take out of a comparison."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from retinue.agents.base import Agent
from retinue.envs.game.board import SEATS
from retinue.envs.game.ruleset import Ruleset
from retinue.evaluation.arena import Progress, rotated
from retinue.evaluation.statistics import LEVEL, Estimate

BLOCKS: Final = 100
"""Of one line-up, by which it is measured."""
_RESAMPLES: Final = 1000


def variance_factor(totals: Any, seed: int = 0) -> Estimate:
    """Say by how much a block's variance is below that of four matches with dice of their own.

    For each two agents the variance of the mean difference of their totals over a block is compared
    with a quarter of that of a single match.

    Args:
        totals: points of one line-up in blocks, ``(blocks, 4, 4)``, by match and agent.
        seed: of the resamples.

    Returns:
        The mean factor over the pairs that differ in luck at all, with its interval by blocks.

    Raises:
        ValueError: no two agents do.
    """
    one, other = np.triu_indices(SEATS, 1)
    differences = np.asarray(totals, np.float64)[:, :, one] - np.asarray(totals)[:, :, other]
    differences = differences[:, :, differences.std(axis=(0, 1)) > 0]
    if not differences.shape[2] or not (differences.mean(axis=1).std(axis=0) > 0).all():
        raise ValueError("no chance tells these agents apart, so there is no luck to measure")
    rng = np.random.default_rng(seed)
    count = len(differences)
    drawn = [_factor(differences[rng.integers(count, size=count)]) for _ in range(_RESAMPLES)]
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(drawn, (tail, 1 - tail))
    value = _factor(differences)
    return Estimate(value, min(float(low), value), max(float(high), value), count)


def _factor(differences: Any) -> float:
    """Return the mean over pairs, of ``(blocks, 4, pairs)``."""
    of_matches = differences.reshape(-1, differences.shape[2]).var(axis=0)
    of_blocks = np.maximum(differences.mean(axis=1).var(axis=0), np.finfo(np.float64).tiny)
    return float((of_matches / SEATS / of_blocks).mean())


def measure_luck(
    line_up: Sequence[Agent],
    ruleset: Ruleset,
    seed: int = 0,
    *,
    threads: int | None = None,
    on_progress: Progress | None = None,
) -> Estimate:
    """Play blocks of one line-up of four, and say what common dice are worth there.

    Raises:
        ArenaError: there are not four agents, or another argument does not fit.
        ValueError: no chance tells them apart.
    """
    matches = rotated(line_up, ruleset, BLOCKS, seed, threads=threads, on_progress=on_progress)
    return variance_factor(matches.by_agent(matches.totals).reshape(BLOCKS, SEATS, SEATS))

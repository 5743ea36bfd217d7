"""How much of chance the common dice of a block take out of the difference between two agents."""

from typing import Any, Final

import numpy as np

from retinue.envs.game.board import SEATS
from retinue.evaluation.arena import Integers
from retinue.evaluation.statistics import Estimate, estimate

LEAST_BLOCKS: Final = 20
"""In which two agents must have met, beyond what the line-ups' differences use up."""


def _residuals(differences: Any, line_ups: Integers) -> tuple[Any, int]:
    """Take out what the two other agents of each line-up add to a difference.

    Returns:
        what is left, of the same shape ``(blocks, ...)``, and how many numbers were fitted.
    """
    present = (line_ups[:, :, None] == np.unique(line_ups)).sum(axis=1).astype(np.float64)
    fitted = int(np.linalg.matrix_rank(present))
    flat = differences.reshape(len(differences), -1)
    means = flat.mean(axis=1, keepdims=True)
    solution = np.linalg.lstsq(present, means, rcond=None)[0]
    return differences - (present @ solution).reshape(-1, *[1] * (differences.ndim - 1)), fitted


def variance_factor(totals: Integers, line_ups: Integers) -> tuple[Estimate, int] | None:
    """Measure by how much common dice and rotated seats reduce variance.

    For each two agents: the variance of the mean difference of their totals over a block is
    compared with a quarter of that of a single match, which four matches with dice of their own and
    seats drawn at random would have. Differences between line-ups are taken out of both.

    Args:
        totals: points, ``(blocks, 4, 4)``, by match and agent of the line-up.
        line_ups: indices of agents, ``(blocks, 4)``.

    Returns:
        The mean factor over pairs, with its interval over them, and how many pairs; None if no two
        agents met in enough blocks.
    """
    factors = []
    agents = int(line_ups.max()) + 1
    for one in range(agents):
        for other in range(one + 1, agents):
            met = (line_ups == one).any(axis=1) & (line_ups == other).any(axis=1)
            here = line_ups[met]
            means = [
                (totals[met] * (here == agent)[:, None]).sum(axis=2)
                / (here == agent).sum(axis=1)[:, None]
                for agent in (one, other)
            ]
            if len(here) == 0:
                continue
            left, fitted = _residuals(means[0] - means[1], here)
            if len(here) - fitted < LEAST_BLOCKS:
                continue
            of_blocks = (left.mean(axis=1) ** 2).sum() / (len(here) - fitted)
            of_matches = (left**2).sum() / (left.size - fitted)
            if of_blocks > 0:
                factors.append(of_matches / SEATS / of_blocks)
    return (estimate(factors), len(factors)) if factors else None

"""Whether verdicts and intervals hold what they promise: simulations in which the truth is known.

Comparisons: in each match of a block the two agents have two seats each. Whose is the first place
is decided by a number for the match that is partly luck common to the block, so matches of a block
are alike; chances are set so that the true difference is exact. In blocks of the shipped agents
with seats in turn, one first place in a hundred or fewer is shared, and the correlation is 0.3; it
is about 0 if an agent's two seats are neighbours.

Tournaments: four agents of equal strength. A total is the seat's advantage, luck with the dice of
the block that comes with the seat, luck that comes with the agent, and luck of the match.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Final

import numpy as np

from retinue.envs.game.board import SEATS
from retinue.evaluation.arena import Progress, rotations
from retinue.evaluation.ratings import RESAMPLES, rate
from retinue.evaluation.sequential import (
    ERROR,
    MARGIN,
    PAR,
    UNDECIDED,
    VERDICTS,
    Question,
    SequentialTests,
)
from retinue.evaluation.statistics import LEVEL, Estimate, Numbers, estimate_share

COMPARISONS: Final = 1000
TOURNAMENTS: Final = 100
BLOCKS: Final = 100
"""Of each tournament."""
SHARED: Final = 0.01
CORRELATION: Final = 0.3
SEAT_ADVANTAGES: Final = np.array([0.3, 0.1, -0.1, -0.3])
SEAT_LUCK: Final = 1.0
AGENT_LUCK: Final = 0.5
"""Deviations, as parts of that of a match's luck; so is a seat's advantage."""
STEP: Final = 0.1
"""Totals are rounded to it, so that some are equal."""
_AT_ONCE: Final = 64
"""Blocks of each comparison at once."""


@dataclass(frozen=True)
class Comparisons:
    """What came out of simulated comparisons with one true difference.

    Attributes:
        margin, error: that were asked for.
        difference: of the first agent's share of first places from par, in truth.
        verdicts: shares of the verdicts, in the order of ``VERDICTS``.
        wrong: share of wrong ones: a stronger one if there is none, anything but it if the
            difference is at least the margin, and in between the other one.
        blocks: that a comparison took, mean.
    """

    margin: float
    error: float
    difference: float
    verdicts: tuple[Estimate, Estimate, Estimate]
    wrong: Estimate
    blocks: float


@dataclass(frozen=True)
class Copies:
    """What came out of simulated tournaments of four equal agents.

    Attributes:
        blocks: of each tournament.
        overlap: share of the tournaments in which the rating intervals of every pair overlap.
        joint: share of those in which all intervals hold the true rating, 0.
        single: share of the intervals that hold it.
    """

    blocks: int
    overlap: Estimate
    joint: Estimate
    single: Estimate


def proportion(count: int, of: int) -> Estimate:
    """Return a share with its 95% interval, which is Wilson's: good for rare events too."""
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    share = count / of
    middle = (share + z**2 / (2 * of)) / (1 + z**2 / of)
    reach = z / (1 + z**2 / of) * (share * (1 - share) / of + (z / (2 * of)) ** 2) ** 0.5
    # At 0 and 1 the ends are exact; rounding must not say otherwise.
    return Estimate(share, max(0.0, min(middle - reach, share)), max(middle + reach, share), of)


def draw_blocks(
    count: tuple[int, int],
    difference: float,
    rng: np.random.Generator,
    *,
    shared: float = SHARED,
    correlation: float = CORRELATION,
) -> Numbers:
    """Return the first agent's shares of first places in blocks.

    Args:
        count: shape of the result.
        difference: of their mean from par.
        rng: source of chance.
        shared: share of matches whose first place the two agents share.
        correlation: of what decides the matches of a block.

    Raises:
        ValueError: there can be no such blocks.
    """
    _check_chances(difference, shared, correlation)
    ahead, ahead_or_shared = PAR + difference - shared / 2, PAR + difference + shared / 2
    luck = correlation**0.5 * rng.standard_normal((*count, 1))
    luck = luck + (1 - correlation) ** 0.5 * rng.standard_normal((*count, SEATS))
    normal = NormalDist()
    shares = (luck < normal.inv_cdf(ahead)) / 2 + (luck < normal.inv_cdf(ahead_or_shared)) / 2
    return shares.mean(axis=-1)  # type: ignore[no-any-return]


def _check_chances(difference: float, shared: float, correlation: float) -> None:
    most = 2 * (PAR - abs(difference))
    if most <= 0:
        raise ValueError(f"differences must be below {PAR} in size, not {abs(difference)}")
    if not 0 <= shared < most:
        raise ValueError(
            f"shared must be 0 to below {most:g} with a difference of {difference:g}, not {shared}"
        )
    if not 0 <= correlation <= 1:
        raise ValueError(f"correlation must be 0 to 1, not {correlation}")


def simulate_comparisons(
    count: int = COMPARISONS,
    *,
    margin: float = MARGIN,
    error: float = ERROR,
    seed: int = 0,
    shared: float = SHARED,
    correlation: float = CORRELATION,
    on_progress: Progress | None = None,
) -> tuple[Comparisons, ...]:
    """Return what verdicts come out at differences of 0, half the margin, the margin and twice it.

    Args:
        count: of comparisons with each difference.
        margin: of the test.
        error: that it promises.
        seed: of the simulations.
        shared: share of matches whose first place the two agents share.
        correlation: of what decides the matches of a block.
        on_progress: is told how many comparisons have a verdict, of how many.

    Raises:
        ValueError: an argument does not fit.
    """
    question = Question(margin, error)
    _check_count(count, "comparisons")
    differences = (0.0, margin / 2, margin, 2 * margin)
    _check_chances(differences[-1], shared, correlation)
    found: list[Comparisons] = []
    for difference, rng in zip(differences, np.random.default_rng(seed).spawn(4), strict=True):
        tests = SequentialTests(count, question)
        while (tests.verdicts == UNDECIDED).any():
            shape = (len(tests.undecided), _AT_ONCE)
            tests.add(draw_blocks(shape, difference, rng, shared=shared, correlation=correlation))
            if on_progress is not None:
                decided = (len(found) + 1) * count - len(tests.undecided)
                on_progress(decided, len(differences) * count)
        found.append(_verdicts(tests, difference))
    return tuple(found)


def _verdicts(tests: SequentialTests, difference: float) -> Comparisons:
    count = len(tests.verdicts)
    first, second, equal = np.bincount(tests.verdicts, minlength=len(VERDICTS)).tolist()
    wrong = second
    if not difference:
        wrong += first
    elif difference >= tests.question.margin:
        wrong += equal
    return Comparisons(
        margin=tests.question.margin,
        error=tests.question.error,
        difference=difference,
        verdicts=(proportion(first, count), proportion(second, count), proportion(equal, count)),
        wrong=proportion(wrong, count),
        blocks=float(tests.blocks.mean()),
    )


def simulate_copies(
    count: int = TOURNAMENTS,
    *,
    blocks: int = BLOCKS,
    resamples: int = RESAMPLES,
    seed: int = 0,
    on_progress: Progress | None = None,
) -> Copies:
    """Return how the rating intervals of four equal agents come out.

    Args:
        count: of tournaments.
        blocks: of each.
        resamples: of each rating.
        seed: of the simulations.
        on_progress: is told how many tournaments have been rated, of how many.

    Raises:
        ValueError: an argument does not fit.
    """
    _check_count(count, "tournaments")
    _check_count(blocks, "blocks")
    rng = np.random.default_rng(seed)
    _, seating = rotations(blocks, 0)
    overlap = np.zeros(count, np.bool_)
    holding = np.zeros((count, SEATS), np.bool_)
    for index in range(count):
        ratings = rate(seating, _draw_places(seating, rng), SEATS, resamples=resamples, seed=index)
        # Intervals on a line overlap pairwise if and only if they all have a point in common.
        overlap[index] = ratings.low.max() <= ratings.high.min()
        holding[index] = (ratings.low <= 0) & (ratings.high >= 0)
        if on_progress is not None:
            on_progress(index + 1, count)
    return Copies(
        blocks=blocks,
        overlap=proportion(int(overlap.sum()), count),
        joint=proportion(int(holding.all(axis=1).sum()), count),
        single=estimate_share(holding.mean(axis=1)),
    )


def _check_count(count: int, what: str) -> None:
    if count < 1:
        raise ValueError(f"there must be at least 1 of the {what}, not {count}")


def _draw_places(seating: Any, rng: np.random.Generator) -> Any:
    """Return places, int64 ``(m, 4)``, of four equal agents in whole blocks."""
    blocks = len(seating) // SEATS
    of_seats = np.repeat(SEAT_LUCK * rng.standard_normal((blocks, SEATS)), SEATS, axis=0)
    of_agents = np.repeat(AGENT_LUCK * rng.standard_normal((blocks, SEATS)), SEATS, axis=0)
    totals = SEAT_ADVANTAGES + of_seats + np.take_along_axis(of_agents, seating, axis=1)
    totals = np.round((totals + rng.standard_normal(seating.shape)) / STEP)
    return 1 + (totals[:, None, :] > totals[:, :, None]).sum(axis=2)


def calibration_lines(comparisons: Iterable[Comparisons], copies: Copies) -> list[str]:
    """Return what simulations say, in lines to print."""
    lines = []
    for each in comparisons:
        first, second, equal = (f"{verdict.value:.1%}" for verdict in each.verdicts)
        lines.append(
            f"difference {each.difference:.3f}: first {first}, second {second}, equal {equal}; "
            f"wrong {_percent(each.wrong)}, promised at most {each.error:.0%}; "
            f"{each.blocks:.0f} blocks"
        )
    lines.append(
        f"four copies, {copies.blocks} blocks: all intervals overlap in {_percent(copies.overlap)} "
        f"of {copies.overlap.samples} tournaments and hold the truth in {_percent(copies.joint)}, "
        f"promised {LEVEL:.0%}; of single intervals {_percent(copies.single)} do"
    )
    return lines


def _percent(share: Estimate) -> str:
    return f"{share.value:.1%} ({share.low:.1%} to {share.high:.1%})"

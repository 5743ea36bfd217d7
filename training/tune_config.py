"""What tuning is asked for and what it tells of itself, as plain data."""

from dataclasses import dataclass, fields
from typing import Final

from retinue.envs.actions import MAX_CANDIDATES
from retinue.envs.game.schema import StrictModel
from retinue.envs.strategy_file import Weights
from retinue.evaluation.statistics import Estimate

LIMITS: Final = {
    "generations": (1, 100_000),
    "candidates": (2, MAX_CANDIDATES),
    "population": (4, 56),  # with the pool no more than kernels take
    "blocks": (1, 10_000),
    "judging_blocks": (2, 10_000),
    "seed": (0, (1 << 20) - 1),  # times the spacing it is below ``JUDGING_SEED``
}


class TuneError(ValueError):
    """What cannot be tuned, or gone on from; the message says which and why."""


@dataclass(frozen=True)
class TuneConfig:
    """How long and how closely to look.

    Attributes:
        generations: of CMA-ES.
        candidates: turns that the strategies look at.
        population: strategies in a generation.
        blocks: of four matches that each of them plays.
        judging_blocks: in which the mean meets the last champion.
        seed: of dice and chance.

    Raises:
        TuneError: a number is out of its range.
    """

    generations: int = 100
    candidates: int = 32
    population: int = 24
    blocks: int = 16
    judging_blocks: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            value, (low, high) = getattr(self, field.name), LIMITS[field.name]
            if not (isinstance(value, int) and low <= value <= high):
                raise TuneError(f"{field.name} must be {low:,} to {high:,}, not {value!r}")


class Judgement(StrictModel):
    """How the mean did against three of the last champion.

    Attributes:
        generation: after which.
        share: of first places; par is 0.25.
        low: of its 95% interval.
        better: it is a champion too.
    """

    generation: int
    share: float
    low: float
    better: bool


@dataclass(frozen=True)
class Generation:
    """What one generation came to.

    Attributes:
        number: from 1 on.
        share: of first places, the mean over the population; par is 0.25.
        sigma: CMA-ES's step size.
        judgement: of the mean, if it met the last champion.
    """

    number: int
    share: float
    sigma: float
    judgement: Judgement | None

    def __str__(self) -> str:
        text = f"generation {self.number}: {self.share:.1%} first places, sigma {self.sigma:.2f}"
        if self.judgement is not None:
            text += f"; the mean against the last champion {self.judgement.share:.1%}"
            text += ": the next champion" if self.judgement.better else ""
        return text


@dataclass(frozen=True)
class Tuned:
    """What tuning came to.

    Attributes:
        weights: by fact.
        against_start: share of first places against three of the start; par is 0.25.
        champions: how many there were, the start among them.
    """

    weights: Weights
    against_start: Estimate
    champions: int

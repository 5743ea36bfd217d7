"""Which of two agents is stronger, with as few blocks as the answer needs.

A sample is what came out of one block, from 0 to 1: the first agent's share of first places, par
0.5. Nothing is assumed of how samples are distributed but that blocks are independent and alike.
The *difference* is their mean less par. For a margin and an error, whatever the difference is:

- if it is 0, ``first`` or ``second`` is the verdict with probability ``error`` at most;
- if it is at least the margin in size, the verdict is anything but the stronger one with
  probability ``error`` at most;
- in between, ``equal`` and the stronger one are both right, and the other one is the verdict with
  probability ``error / 2`` at most.

This is the generalised sequential probability ratio test that chess engines are tested with, taken
twice, of the margin against 0 on either side, the variance estimated from the samples. There, the
likelihood ratio of a sample that is ``y`` above par is ``exp(b y - b margin / 2)``, with ``b =
margin / variance``: right for many samples, but few may show too little variance, or none, and so
too much evidence. Here it is what becomes of 1 in a fair bet of ``b`` on the sample: ``1 + b y``,
the same to second order, where ``b`` depends on earlier samples only. Fair bets gain nothing on
average, so, whatever the distribution, the probability of ever having ``1 / p`` times what one
began with is at most ``p`` (Ville's inequality). That makes the promises hold exactly, from the
first block on: no least number of blocks has to be set. By default it takes 12 blocks to name an
agent that has all first places, and 45 to call two equal that share all of them.

Four such bettors are followed. Two bet against a difference of 0: theirs is the evidence that the
first agent is stronger, and that the second is; ``2 / error`` is enough of it. Two make the same
bets against a difference of the margin, one on either side: theirs is the evidence that neither
agent is stronger by so much; ``1 / error`` is enough, which each of them must have had, if not at
the same time. Who bets against the larger difference gains more; so whenever the second agent is
named there was enough evidence that the first is not stronger by the margin, and both mistakes
about a first agent that is have together the probability of one.
"""

from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from retinue.evaluation.statistics import Estimate, Numbers, estimate_share

MARGIN: Final = 0.05
"""In share of first places: 0.55 against 0.45."""
ERROR: Final = 0.05
PAR: Final = 0.5
MOST_BET: Final = 1.5
"""``b`` at most; from 2 on, one sample could cost all that was gained before."""
PRIOR_VARIANCE: Final = 0.25
"""As if there had been one sample at par so uncertain: nothing in [0, 1] varies more. It fades as
``1 / (1 + blocks)``, but lets no variance be 0."""

Verdict: TypeAlias = Literal["first", "second", "equal"]
VERDICTS: Final[tuple[Verdict, ...]] = ("first", "second", "equal")
UNDECIDED: Final = -1


class LogRatios(NamedTuple):
    """Logarithms of likelihood ratios, or of how large they have to be.

    Attributes:
        first: that the first agent is stronger, against that it is not.
        second: the same of the second.
        not_first: that the first agent is not stronger by the margin, against that it is.
        not_second: the same of the second.
    """

    first: float
    second: float
    not_first: float
    not_second: float


@dataclass(frozen=True)
class Question:
    """What is asked.

    Attributes:
        margin: in share of first places; a smaller difference may be called equal.
        error: the probability of each kind of wrong answer, at most.

    Raises:
        ValueError: one of them is not in its range.
    """

    margin: float = MARGIN
    error: float = ERROR

    def __post_init__(self) -> None:
        for name in ("margin", "error"):
            value = getattr(self, name)
            if not 0 < value < PAR:
                raise ValueError(f"{name} must be above 0 and below {PAR}, not {value}")

    @property
    def needed(self) -> LogRatios:
        """How large the ratios have to be."""
        named, equal = float(np.log(2 / self.error)), float(np.log(1 / self.error))
        return LogRatios(named, named, equal, equal)


class SequentialTests:
    """Many tests of the same question, each with samples of its own.

    Args:
        count: of tests.
        question: what is asked.

    Attributes:
        verdicts: int64 ``(count,)``, indices into ``VERDICTS``, or ``UNDECIDED``.
        blocks: int64 ``(count,)``, how many samples each took so far, or until its verdict.
        log_ratios: float64 ``(4, count)``, in the order of :class:`LogRatios`.
    """

    def __init__(self, count: int, question: Question) -> None:
        self.question = question
        self.verdicts = np.full(count, UNDECIDED)
        self.blocks = np.zeros(count, np.int64)
        self.log_ratios = np.zeros((4, count))
        self._sums = np.zeros(count)
        self._squares = np.zeros(count)
        self._not_stronger = np.zeros((2, count), np.bool_)

    @property
    def undecided(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The tests that have no verdict yet."""
        return np.flatnonzero(self.verdicts == UNDECIDED)

    def add(self, samples: Numbers) -> None:
        """Take one more sample or several for each test that has no verdict yet.

        What comes after a verdict is left out, so that nothing depends on how many come at once.

        Args:
            samples: float64 ``(t, k)``, a row for each of the ``t`` tests that are undecided.
        """
        tests = self.undecided
        logs, sums, squares = self._walk(tests, samples)
        named, enough = self.question.needed.first, self.question.needed.not_first
        shown = np.maximum.accumulate(logs[2:] >= enough, axis=2)
        shown |= self._not_stronger[:, tests, None]
        reached: Any = np.array([logs[0] >= named, logs[1] >= named, shown.all(axis=0)])
        stops = reached.any(axis=0)
        decided = stops.any(axis=1)
        last = np.where(decided, stops.argmax(axis=1), samples.shape[1] - 1)
        at = (np.arange(len(tests)), last)
        self.verdicts[tests] = np.where(decided, reached[:, *at].argmax(axis=0), UNDECIDED)
        self.blocks[tests] += last + 1
        self.log_ratios[:, tests] = logs[:, *at]
        self._sums[tests], self._squares[tests] = sums[at], squares[at]
        self._not_stronger[:, tests] = shown[:, *at]

    def _walk(self, tests: Any, samples: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """Return what holds after each sample: the ratios, and what the variance is made of."""
        margin = self.question.margin
        before = self.blocks[tests, None] + np.arange(samples.shape[1])
        sums = _go_on(self._sums[tests], samples)
        means = (PAR + sums) / (before + 2)
        squares = _go_on(self._squares[tests], (samples - means) ** 2)
        known = np.concatenate([self._squares[tests, None], squares[:, :-1]], axis=1)
        variances = (PRIOR_VARIANCE + known) / (before + 1)
        # To second order, no other bet makes more of a difference of the margin.
        bets = np.minimum(margin / (variances + margin**2), MOST_BET)
        above = samples - PAR
        gains = np.array([above, -above, margin - above, margin + above])
        return _go_on(self.log_ratios[:, tests], np.log1p(bets * gains)), sums, squares


def _go_on(begun: Numbers, added: Numbers) -> Numbers:
    """Return the running sums ``(..., k)`` of what was begun ``(...)`` and added ``(..., k)``."""
    return np.cumsum(np.concatenate([begun[..., None], added], axis=-1), axis=-1)[..., 1:]


class SequentialTest:
    """The test of two agents: add samples until there is a verdict.

    Args:
        margin: in share of first places; a smaller difference may be called equal.
        error: the probability of each kind of wrong answer, at most.

    Raises:
        ValueError: one of them is not above 0 and below 0.5.
    """

    def __init__(self, *, margin: float = MARGIN, error: float = ERROR) -> None:
        self.question = Question(margin, error)
        self._tests = SequentialTests(1, self.question)
        self._samples: list[Numbers] = []

    def add(self, samples: Any) -> None:
        """Take samples, in order; those that come after the verdict are left out.

        Args:
            samples: numbers ``(k,)``, the first agent's share of first places in each block.

        Raises:
            ValueError: they are not a row of numbers from 0 to 1.
        """
        samples = np.asarray(samples, np.float64)
        if samples.ndim != 1:
            raise ValueError(f"samples must be a row, not of shape {samples.shape}")
        for sample in samples[~((samples >= 0) & (samples <= 1))][:1]:
            raise ValueError(f"samples must be from 0 to 1, not {sample}")
        if self.verdict is None and len(samples):
            taken = self.blocks
            self._tests.add(samples[None])
            self._samples.append(samples[: self.blocks - taken])

    @property
    def verdict(self) -> Verdict | None:
        """Who is stronger, or that they are equal within the margin; None if undecided so far."""
        found = int(self._tests.verdicts[0])
        return None if found == UNDECIDED else VERDICTS[found]

    @property
    def blocks(self) -> int:
        """How many samples were taken."""
        return int(self._tests.blocks[0])

    @property
    def log_ratios(self) -> LogRatios:
        """The evidence so far; ``question.needed`` is how much is needed."""
        return LogRatios(*self._tests.log_ratios[:, 0].tolist())

    def estimate(self) -> Estimate:
        """Return the first agent's share of first places, with its 95% interval.

        It is that of so many blocks fixed beforehand. Here they ended when the evidence was
        enough, so it is a little too hopeful: further from par than it should be, and too narrow.

        Raises:
            ValueError: there is no sample.
        """
        return estimate_share(np.concatenate([np.empty(0), *self._samples]))

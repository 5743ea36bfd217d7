"""How strong agents are, from the places of their matches: Plackett-Luce, on a scale like Elo's.

The model: the first place goes to one of the four seats, the second to one of the three that are
left, and so on, each time with chances in proportion to the strengths of the agents who sit there.
A rating is ``400 / ln 10`` times the logarithm of a strength: 400 points more are odds of 10 to 1
to be ahead. Seats that share a place count as all orders that they may stand for, in equal parts.

The prior: each agent has once been ahead of a virtual player, the same for all, and once behind it;
the virtual player's strength is fitted too. So ratings are finite for an agent that never lost or
that never played, and agents that no chain of matches connects can be compared, if vaguely.

The intervals are percentiles of a bootstrap: blocks are drawn anew, with replacement, and every
draw is rated. Draws are of one block fewer than were played, for only then they vary as much as
ratings do. The weights of the virtual matches are drawn too, from the exponential distribution of
mean 1. Beside many matches that is nothing; but an agent that never lost is so taken to lose as
rarely, or as often, as exact bounds allow for what has not happened yet. As in Student's t, an
agent's deviations are divided by random spreads with as many degrees of freedom as it played
blocks, less one: otherwise few blocks would seem to say too much.

Intervals hold *jointly*: in 95% of tournaments all of them hold their true values. So the intervals
of equal agents all overlap in at least as many. Intervals that hold in 95% each would not do: four
equal agents would seem to differ in 8% of tournaments, eight in 20%.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any, Final

import numpy as np

from retinue.envs.game.board import SEATS
from retinue.evaluation.statistics import LEVEL, Numbers

RESAMPLES: Final = 1000
POINTS: Final = 400 / math.log(10)
"""Of rating, for a factor of e in strength."""
TOLERANCE: Final = 1e-6
"""Strengths are fitted until no step changes a logarithm by more. Newton's steps square what is
left, so ratings are exact to far less than this many points; closer ones are equal."""
_AT_ONCE: Final = 4_000_000
"""Numbers in the largest arrays: bounds the memory."""
_CHOICES: Final = tuple(
    seats for size in range(2, SEATS + 1) for seats in combinations(range(SEATS), size)
)
"""The seats among whom a place may be left to give; the last one has no choice."""

_Integers = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Ratings:
    """Ratings of ``n`` agents.

    Attributes:
        values: float64 ``(n,)``.
        low, high: float64 ``(n,)``, their joint intervals; unbounded if there is but one block.
        above: float64 ``(n, n)``, the share of the resamples in which the one of the row rates
            above the one of the column; an equal rating counts half. All 0.5 if there is but one
            block.
        pinned: the agent whose rating is 0, always; if None the mean of all is.
    """

    values: Numbers
    low: Numbers
    high: Numbers
    above: Numbers
    pinned: int | None


@dataclass(frozen=True)
class _Blocks:
    """What the likelihood needs to know of ``g`` different blocks, as a sparse table.

    Its first ``n`` columns are how often each agent was chosen for a place, the others how often
    each of ``d`` sets of agents was what there was to choose from.

    Attributes:
        counts: int64 ``(g,)``, how often each of these blocks was played.
        rows, columns: int64 ``(e,)``, where the entries of the table are; rows ascend.
        entries: float64 ``(e,)``.
        sets: float64 ``(d, n)``, how many seats each agent has in each set.
    """

    counts: _Integers
    rows: _Integers
    columns: _Integers
    entries: Numbers
    sets: Numbers

    @property
    def width(self) -> int:
        """How many columns the table has."""
        return sum(self.sets.shape)

    def weighed(self, weights: Any) -> Numbers:
        """Return the sums of the blocks, ``(r, n + d)``, for weights ``(r, g)``."""
        sums = np.zeros((len(weights), self.width))
        size = max(1, _AT_ONCE // self.width)
        for begun in range(0, len(self.counts), size):
            blocks = min(size, len(self.counts) - begun)
            part = slice(*np.searchsorted(self.rows, (begun, begun + blocks)))
            cells = (self.rows[part] - begun) * self.width + self.columns[part]
            table = np.bincount(cells, self.entries[part], minlength=blocks * self.width)
            sums += weights[:, begun : begun + blocks] @ table.reshape(blocks, self.width)
        return sums


def rate(
    seating: Any,
    places: Any,
    agents: int,
    *,
    block: int = SEATS,
    pinned: int | None = None,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    seed: int = 0,
) -> Ratings:
    """Rate agents by the places of their matches.

    Nothing depends on the order of the blocks, nor on that of the matches in a block or of the
    agents.

    Args:
        seating: integers ``(m, 4)``, which agent has each seat; it may have several.
        places: integers ``(m, 4)``, from 1; equal ones share the better place.
        agents: how many there are.
        block: how many successive matches share their dice.
        pinned: the agent whose rating is to be 0.
        resamples: how many times the blocks are drawn anew.
        level: in which share of tournaments the intervals are to hold.
        seed: of the draws.

    Raises:
        ValueError: an argument does not fit.
    """
    seating, places = np.asarray(seating, np.int64), np.asarray(places, np.int64)
    _check(seating, places, agents, block, pinned, resamples)
    blocks = _collect(seating, places, agents, block)
    prior = np.ones((1, 2, agents))
    point = _fit(blocks.weighed(blocks.counts[None]), blocks.sets, prior, np.zeros(agents))[0]
    if len(seating) == block:
        return _unbounded(_placed(point, pinned), pinned)
    # The same draws must meet the same blocks, whatever the agents' numbers are.
    order = np.argsort(point)
    ranks = np.argsort(order)
    rng = np.random.default_rng(seed)
    drawn = _resample(_collect(ranks[seating], places, agents, block), point[order], resamples, rng)
    pin = None if pinned is None else int(ranks[pinned])
    drawn = _placed(drawn, pin)
    values = _placed(point[order], pin)
    spread = _spread(_blocks_of(ranks[seating], agents, block), pin, resamples, rng)
    low, high = _joint_interval(values, (drawn - values) / spread, level)
    above = _above(drawn)[np.ix_(ranks, ranks)]
    return Ratings(values[ranks], low[ranks], high[ranks], above, pinned)


def _check(
    seating: _Integers,
    places: _Integers,
    agents: int,
    block: int,
    pinned: int | None,
    resamples: int,
) -> None:
    if seating.ndim != 2 or seating.shape[1] != SEATS or not len(seating):
        raise ValueError(f"seating must be of shape (matches, {SEATS}), not {seating.shape}")
    if places.shape != seating.shape:
        raise ValueError(f"places must be of shape {seating.shape}, not {places.shape}")
    if block < 1 or len(seating) % block:
        raise ValueError(f"{len(seating)} matches do not fill blocks of {block}")
    if agents < 1:
        raise ValueError(f"there must be at least 1 agent, not {agents}")
    if seating.min() < 0 or seating.max() >= agents:
        raise ValueError(f"seating must be 0 to {agents - 1}")
    if pinned is not None and not 0 <= pinned < agents:
        raise ValueError(f"pinned must be 0 to {agents - 1}, not {pinned}")
    if resamples < 1:
        raise ValueError(f"resamples must be at least 1, not {resamples}")
    right = 1 + (places[:, :, None] > places[:, None, :]).sum(axis=2)
    for match in np.flatnonzero((places != right).any(axis=1))[:1]:
        raise ValueError(
            f"places of match {match} must be {right[match].tolist()}, not {places[match].tolist()}"
        )


def _collect(seating: _Integers, places: _Integers, agents: int, block: int) -> _Blocks:
    """Return what matches say, equal blocks as one, in an order that is theirs alone."""
    codes = np.sort(places * agents + seating, axis=1)
    kinds, kind = np.unique(codes, axis=0, return_inverse=True)
    groups, counts = np.unique(np.sort(kind.reshape(-1, block)), axis=0, return_counts=True)
    places, seated = np.divmod(kinds[groups.reshape(-1)], agents)
    rows, members, weights = [], [], []
    chosen_rows, chosen, chosen_weights = [], [], []
    for pattern, matches in _by_pattern(places):
        among, taken = _expected(pattern)
        for seats, weight in among.items():
            rows.append(matches // block)
            members.append(np.full((len(matches), SEATS), agents))
            members[-1][:, : len(seats)] = np.sort(seated[matches][:, seats])
            weights.append(np.full(len(matches), weight))
        for seat, weight in enumerate(taken):
            chosen_rows.append(matches // block)
            chosen.append(seated[matches, seat])
            chosen_weights.append(np.full(len(matches), weight))
    sets, which = np.unique(np.concatenate(members), axis=0, return_inverse=True)
    all_rows = np.concatenate(chosen_rows + rows)
    order = np.argsort(all_rows, kind="stable")
    return _Blocks(
        counts=counts,
        rows=all_rows[order],
        columns=np.concatenate([*chosen, agents + which.reshape(-1)])[order],
        entries=np.concatenate(chosen_weights + weights)[order],
        sets=(sets[:, :, None] == np.arange(agents)).sum(axis=1).astype(np.float64),
    )


def _by_pattern(places: _Integers) -> Iterator[tuple[tuple[int, ...], _Integers]]:
    """Yield each kind of places, in ascending order, and the matches that have it."""
    patterns, which = np.unique(places, axis=0, return_inverse=True)
    for index, pattern in enumerate(patterns):
        yield tuple(pattern.tolist()), np.flatnonzero(which.reshape(-1) == index)


def _expected(places: tuple[int, ...]) -> tuple[dict[tuple[int, ...], float], list[float]]:
    """Return what ascending places mean, over all orders that they may stand for.

    Returns:
        In which share of the orders a place was given among these seats, for all seats among whom
        one may have been; and in which share each seat was chosen for a place.
    """
    orders = [
        order
        for order in permutations(range(SEATS))
        if [places[seat] for seat in order] == list(places)
    ]
    left = [{tuple(sorted(order[place:])) for place in range(SEATS - 1)} for order in orders]
    among = {seats: sum(seats in each for each in left) / len(orders) for seats in _CHOICES}
    taken = [sum(order[-1] != seat for order in orders) / len(orders) for seat in range(SEATS)]
    return {seats: share for seats, share in among.items() if share}, taken


def _resample(blocks: _Blocks, start: Numbers, resamples: int, rng: np.random.Generator) -> Numbers:
    """Return logarithms of strengths, ``(resamples, n)``, each fitted to blocks drawn anew."""
    prior = rng.standard_exponential((resamples, 2, len(start)))
    total = int(blocks.counts.sum())
    size = max(1, _AT_ONCE // max(len(blocks.counts), blocks.width))
    fitted = []
    for begun in range(0, resamples, size):
        part = prior[begun : begun + size]
        times = rng.multinomial(total - 1, blocks.counts / total, size=len(part))
        sums = blocks.weighed(times) * (total / (total - 1))
        fitted.append(_fit(sums, blocks.sets, part, start))
    return np.concatenate(fitted)


def _blocks_of(seating: _Integers, agents: int, block: int) -> _Integers:
    """Return in how many blocks each agent has a seat, ``(n,)``."""
    of_block = np.repeat(np.arange(len(seating) // block), block)
    present = np.unique(of_block[:, None] * agents + seating)
    return np.bincount(present % agents, minlength=agents)


def _spread(
    played: _Integers, pinned: int | None, resamples: int, rng: np.random.Generator
) -> Numbers:
    """Return drawn spreads, ``(resamples, n)``: around 1, and the closer the more blocks there are.

    An agent that did not play has 1: what is known of it does not come from blocks.
    """
    if pinned is not None:
        played = np.minimum(played, played[pinned])
    freedom = np.maximum(played - 1, 1)
    spread = np.sqrt(rng.chisquare(freedom, (resamples, len(played))) / freedom)
    return np.where(played > 0, spread, 1)


def _fit(sums: Numbers, sets: Numbers, prior: Numbers, start: Numbers) -> Numbers:
    """Return the most likely logarithms of strengths, ``(r, n)``, the virtual player's being 0.

    Args:
        sums: ``(r, n + d)``, of blocks.
        sets: ``(d, n)``, those of the blocks.
        prior: ``(r, 2, n)``, weights of being ahead of the virtual player and of being behind it.
        start: ``(n,)``, where to begin.
    """
    agents = len(start)
    chosen, counts = np.split(sums, [agents], axis=1)
    virtual = prior.sum(axis=1)
    logs = np.tile(start, (len(sums), 1))
    diagonal = np.arange(agents)
    longest = np.inf
    while longest > TOLERANCE:
        strengths = np.exp(logs)
        totals = strengths @ sets.T
        expected = strengths * ((counts / totals) @ sets)
        ahead = strengths / (1 + strengths)
        gradient = chosen - expected + prior[:, 0] - virtual * ahead
        curvature = -_pair_sums(counts / totals**2, sets)
        curvature *= strengths[:, :, None] * strengths[:, None, :]
        curvature[:, diagonal, diagonal] += expected + virtual * ahead * (1 - ahead)
        steps = np.linalg.solve(curvature, gradient[:, :, None])[:, :, 0]
        # Along a step, the curvature cannot change faster than by a factor of e to the power of
        # the step's reach. Steps that are shortened for that always lead up, so this ends.
        reach = np.maximum(steps.max(axis=1), 0) - np.minimum(steps.min(axis=1), 0)
        reach = np.maximum(reach, np.finfo(np.float64).tiny)
        logs += steps * (np.log1p(reach) / reach)[:, None]
        longest = reach.max()
    return logs


def _pair_sums(weights: Numbers, sets: Numbers) -> Numbers:
    """Return, for each pair of agents, the weighted sum of the products of their seats in sets.

    Args:
        weights: ``(r, d)``.
        sets: ``(d, n)``.

    Returns:
        ``(r, n, n)``.
    """
    agents = sets.shape[1]
    sums = np.zeros((len(weights), agents * agents))
    size = max(1, _AT_ONCE // agents**2)
    for begun in range(0, len(sets), size):
        part = sets[begun : begun + size]
        products = (part[:, :, None] * part[:, None, :]).reshape(len(part), -1)
        sums += weights[:, begun : begun + size] @ products
    return sums.reshape(-1, agents, agents)


def _placed(logs: Numbers, pinned: int | None) -> Numbers:
    """Return ratings, ``(..., n)``, from logarithms of strengths."""
    zero: Numbers = logs.mean(axis=-1) if pinned is None else logs[..., pinned]
    return POINTS * (logs - zero[..., None])


def _joint_interval(values: Numbers, off: Numbers, level: float) -> tuple[Numbers, Numbers]:
    """Return percentile intervals, all stretched about the values by the same factor.

    It is the least one, from 1, with which a share ``level`` of the draws lies in all intervals.

    Args:
        values: ``(n,)``.
        off: ``(r, n)``, how far from them draws are.
        level: which share.
    """
    tail = (1 - level) / 2
    low, high = np.quantile(off, (tail, 1 - tail), axis=0)
    down, up = np.maximum(-low, 0), np.maximum(high, 0)
    scale = np.where(off < 0, down, up)
    stretch = np.divide(np.abs(off), scale, out=np.zeros_like(off), where=scale > 0).max(axis=1)
    factor = max(1.0, float(np.quantile(stretch, level)))
    return values - factor * down, values + factor * up


def _unbounded(values: Numbers, pinned: int | None) -> Ratings:
    """Return ratings of which nothing is certain but the pinned one."""
    low, high = np.full_like(values, -np.inf), np.full_like(values, np.inf)
    if pinned is not None:
        low[pinned] = high[pinned] = 0
    return Ratings(values, low, high, np.full((len(values), len(values)), 0.5), pinned)


def _above(drawn: Numbers) -> Numbers:
    """Return in which share of the draws ``(r, n)`` each agent rates above each other one."""
    shares = []
    for agent in range(drawn.shape[1]):
        more = drawn[:, agent, None] - drawn
        signs = np.where(np.abs(more) > TOLERANCE, np.sign(more), 0)
        shares.append((1 + signs.mean(axis=0)) / 2)
    return np.array(shares)

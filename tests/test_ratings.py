"""Ratings: what they are, what they do not depend on, and how often their intervals hold."""

import math
from collections.abc import Sequence
from itertools import permutations
from typing import Any

import choix
import numpy as np
import pytest

from retinue.evaluation import ratings
from retinue.evaluation.ratings import POINTS, Ratings, rate

FEW = 200
"""Resamples where the intervals do not matter."""


def ranked(totals: Any) -> Any:
    return 1 + (totals[:, None, :] > totals[:, :, None]).sum(axis=2)


def played(
    strengths: Sequence[float], blocks: int, seed: int, *, luck: float = 0, step: float = 0
) -> tuple[Any, Any]:
    """Draw a tournament: line-ups at random, rotated, places as Plackett and Luce would have them.

    Args:
        strengths: of the agents, their logarithms.
        blocks: of four matches.
        seed: of all that is drawn.
        luck: deviation of what a seat has from the dice of a block.
        step: totals are rounded to it, so that some are equal; 0 for no rounding.
    """
    rng = np.random.default_rng(seed)
    line_ups = np.array([rng.permutation(len(strengths))[:4] for _ in range(blocks)])
    seating = np.stack([np.roll(line_ups, turn, axis=1) for turn in range(4)], axis=1)
    totals = np.array(strengths)[seating] + rng.gumbel(size=seating.shape)
    totals += luck * rng.standard_normal((blocks, 1, 4))
    totals = totals.reshape(-1, 4)
    return seating.reshape(-1, 4), ranked(np.round(totals / step) if step else totals)


def crowd(agents: int, matches: int, seed: int) -> tuple[Any, Any]:
    """Draw matches in which agents have several seats and share places."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, agents, (matches, 4)), ranked(rng.integers(0, 4, (matches, 4)))


def same(one: Ratings, other: Ratings) -> bool:
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("values", "low", "high", "above")
    )


# --- What they are


def log_likelihood(logs: Any, seating: Any, places: Any) -> float:
    """Return it from its definition; the last of the logarithms is the virtual player's."""
    total = -sum(
        math.log1p(math.exp(logs[-1] - each)) + math.log1p(math.exp(each - logs[-1]))
        for each in logs[:-1]
    )
    for seated, row in zip(seating.tolist(), places.tolist(), strict=True):
        orders = [
            order for order in permutations(range(4)) if [row[i] for i in order] == sorted(row)
        ]
        for order in orders:
            left = [math.exp(logs[seated[seat]]) for seat in order]
            total += sum(math.log(left[i] / sum(left[i:])) for i in range(4)) / len(orders)
    return total


@pytest.mark.parametrize("agents", [2, 5])
def test_nothing_is_likelier_than_the_ratings(agents: int) -> None:
    seating, places = crowd(agents, 40, seed=agents)
    logs = rate(seating, places, agents, resamples=FEW).values / POINTS
    # The virtual player's strength is not told: it is the one at which its gradient is 0, too.
    low, high = -10.0, 10.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        expected = sum(1 / (1 + math.exp(middle - each)) for each in logs)
        low, high = (middle, high) if expected > agents / 2 else (low, middle)
    logs = np.append(logs, low)
    step = 1e-4
    for index in range(agents + 1):
        change = step * (np.arange(agents + 1) == index)
        up, down = (log_likelihood(logs + sign * change, seating, places) for sign in (1, -1))
        assert (up - down) / (2 * step) == pytest.approx(0, abs=1e-5)


def test_choix_agrees() -> None:
    """It can be told of the virtual matches as rankings of two."""
    seating, places = played([-1, -0.5, 0, 0, 0.5, 2], 50, seed=1)
    rankings = [tuple(row) for row in np.take_along_axis(seating, np.argsort(places), 1).tolist()]
    virtual = [pair for agent in range(6) for pair in ((agent, 6), (6, agent))]
    theirs = choix.ilsr_rankings(7, rankings + virtual, tol=1e-10)[:6]
    ours = rate(seating, places, 6, resamples=FEW).values
    assert ours == pytest.approx(POINTS * (theirs - theirs.mean()), abs=1e-3)


def test_400_points_are_odds_of_ten_to_one() -> None:
    seating, places = played([0, math.log(10), 0, 0], 2000, seed=2)
    found = rate(seating, places, 4, pinned=0)
    assert found.values[1] == pytest.approx(400, abs=15)
    assert found.low[1] < 400 < found.high[1]
    of_agent = np.take_along_axis(places, np.argsort(seating), 1)
    assert (of_agent[:, 1] < of_agent[:, 0]).mean() == pytest.approx(10 / 11, abs=0.01)


def test_equal_places_stand_for_all_their_orders() -> None:
    among, taken = ratings._expected((1, 1, 3, 4))
    assert among == {(2, 3): 1, (0, 2, 3): 0.5, (1, 2, 3): 0.5, (0, 1, 2, 3): 1}
    assert taken == [1, 1, 1, 0]
    among, taken = ratings._expected((1, 2, 2, 2))
    third = pytest.approx(1 / 3)
    assert among == {
        (1, 2): third,
        (1, 3): third,
        (2, 3): third,
        (1, 2, 3): 1,
        (0, 1, 2, 3): 1,
    }
    assert taken == pytest.approx([1, 2 / 3, 2 / 3, 2 / 3])
    line_up = [[0, 1, 2, 3]] * 2
    shared = rate(line_up, [[1, 1, 3, 4]] * 2, 4, block=1, resamples=FEW)
    orders = rate(line_up, [[1, 2, 3, 4], [2, 1, 3, 4]], 4, block=1, resamples=FEW)
    assert shared.values == pytest.approx(orders.values, abs=1e-9)
    assert shared.values[0] == pytest.approx(shared.values[1], abs=1e-9)


def test_the_mean_or_the_pinned_agent_is_0() -> None:
    seating, places = played([0, 0.5, 1, 1.5, 2], 20, seed=3)
    free = rate(seating, places, 5, resamples=FEW)
    assert free.pinned is None
    assert free.values.mean() == pytest.approx(0, abs=1e-9)
    pinned = rate(seating, places, 5, pinned=3, resamples=FEW)
    assert pinned.pinned == 3
    assert pinned.values[3] == pinned.low[3] == pinned.high[3] == 0
    assert pinned.values == pytest.approx(free.values - free.values[3], abs=1e-9)
    assert (pinned.above == free.above).all()


# --- What they do not depend on


def test_order_does_not_matter() -> None:
    seating, places = crowd(5, 80, seed=4)
    rng = np.random.default_rng(4)
    blocks = rng.permutation(20)
    matches = (4 * blocks[:, None] + np.array([rng.permutation(4) for _ in range(20)])).ravel()
    seats = rng.permutation(4)
    found = rate(seating, places, 5, resamples=FEW)
    again = rate(seating[matches][:, seats], places[matches][:, seats], 5, resamples=FEW)
    assert same(found, again)
    assert not same(found, rate(seating, places, 5, resamples=FEW, seed=1))
    mixed = rng.permutation(80)
    other = rate(seating[mixed], places[mixed], 5, resamples=FEW)
    assert other.values == pytest.approx(found.values)
    assert not np.allclose(other.low, found.low), "blocks are what is drawn"


def test_names_do_not_matter() -> None:
    seating, places = played([0, 0.2, 0.4, 0.6, 0.8, 1], 30, seed=5, step=0.1)
    names = np.array([3, 5, 0, 1, 4, 2])
    found = rate(seating, places, 6, pinned=1, resamples=FEW)
    again = rate(names[seating], places, 6, pinned=5, resamples=FEW)
    for name in ("values", "low", "high"):
        assert getattr(again, name)[names] == pytest.approx(getattr(found, name), abs=1e-6)
    assert (again.above[np.ix_(names, names)] == found.above).all()


def test_memory_is_bounded_by_doing_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    seating, places = crowd(5, 80, seed=6)
    found = rate(seating, places, 5, resamples=FEW)
    monkeypatch.setattr(ratings, "_AT_ONCE", 300)
    again = rate(seating, places, 5, resamples=FEW)
    for name in ("values", "low", "high", "above"):
        assert getattr(again, name) == pytest.approx(getattr(found, name), abs=1e-6)


# --- What little is known


def test_one_block_says_nothing() -> None:
    seating, places = played([0, 0, 1, 2], 1, seed=7)
    found = rate(seating, places, 4, pinned=2)
    assert np.isfinite(found.values).all()
    assert found.low.tolist() == [-math.inf, -math.inf, 0, -math.inf]
    assert found.high.tolist() == [math.inf, math.inf, 0, math.inf]
    assert (found.above == 0.5).all()
    assert np.isinf(rate(seating, places, 4).high).all()


def test_who_never_lost_is_bounded_but_hardly() -> None:
    """The exact bounds, with odds of 1 to ``x`` in each of ``m`` first places that were won."""
    seating, places = played([0, 0, 0, 40], 25, seed=8)
    assert (places[seating == 3] == 1).all()
    found = rate(seating, places, 4, pinned=0)
    assert np.isfinite([found.values, found.low, found.high]).all()
    # Against three equals the odds of a match are strength / 3, and 100 were won.
    lowest = POINTS * math.log(3 / (0.025 ** (-1 / 100) - 1))
    assert found.low[3] < lowest + 50
    assert found.low[3] > 200
    assert found.values[3] + 300 < found.high[3]
    assert (found.above[3, :3] == 1).all()
    assert (found.above[:3, 3] == 0).all()


def test_who_never_met_or_never_played_is_compared_vaguely() -> None:
    seating, places = played([0, 0, 0, 2], 40, seed=9)
    seating = np.concatenate([seating, seating + 4])
    found = rate(seating, np.concatenate([places, places]), 9)
    assert np.isfinite([found.values, found.low, found.high]).all()
    assert found.values[:4] == pytest.approx(found.values[4:8], abs=1e-6)
    assert found.above[3, 0] == found.above[7, 4] == 1
    assert 0.3 < found.above[3, 7] < 0.7
    assert 0.1 < found.above[3, 8] - found.above[0, 8] < 0.9
    alone = rate(seating[:160], places, 4)
    assert (found.high - found.low)[:4].min() > 2 * (alone.high - alone.low).max()


def test_draws_vary_as_ratings_do() -> None:
    """Of two blocks only one is drawn; of both together A would come out above B."""
    seating = np.tile(np.arange(4), (8, 1))
    places = np.array([[1, 4, 2, 3]] * 4 + [[3, 2, 1, 4]] * 4)
    assert rate(seating, places, 4).values[0] > rate(seating, places, 4).values[1]
    assert rate(seating, places, 4).above[0, 1] == pytest.approx(0.5, abs=0.1)


def test_few_blocks_of_either_agent_make_a_difference_uncertain() -> None:
    """Pinned or not, the interval is that of the difference of the two."""
    seating, places = played([0, 0, 0, 0], 60, seed=12)
    rare, rare_places = played([0, 0, 0, 0], 3, seed=13)
    seating = np.concatenate([seating, np.where(rare == 3, 4, rare)])
    places = np.concatenate([places, rare_places])
    of_rare, of_other = (rate(seating, places, 5, pinned=pinned) for pinned in (0, 4))
    width, other_width = of_rare.high[4] - of_rare.low[4], of_other.high[0] - of_other.low[0]
    assert width == pytest.approx(other_width, rel=0.6)
    assert width > 5 * (of_rare.high[1] - of_rare.low[1])


# --- How often intervals hold


@pytest.mark.parametrize(("blocks", "pinned"), [(8, None), (40, 0)])
def test_intervals_jointly_hold_as_often_as_they_say(blocks: int, pinned: int | None) -> None:
    """Neither too seldom nor by being too wide."""
    truth = np.array([-0.5, 0, 0, 0.5])
    truth = POINTS * (truth - (0 if pinned is None else truth[pinned]))
    tournaments = 100
    found = [
        rate(
            *played((truth / POINTS).tolist(), blocks, seed),
            4,
            pinned=pinned,
            resamples=400,
            seed=seed,
        )
        for seed in range(tournaments)
    ]
    hold = [bool(((each.low <= truth) & (truth <= each.high)).all()) for each in found]
    # At 95% so few would be an accident of 1 in 1,000.
    assert sum(hold) >= 88
    spread = np.std([each.values for each in found], axis=0)
    width = np.median([each.high - each.low for each in found], axis=0)
    free = spread > 0
    assert (width[free] < 2 * (4 if blocks < 20 else 3.2) * spread[free]).all()


def test_luck_common_to_a_block_is_not_taken_for_evidence() -> None:
    """The same matches as blocks and as if each had dice of its own."""
    rng = np.random.default_rng(10)
    seating = np.tile(np.arange(4), (200, 1))
    totals = np.repeat(rng.standard_normal((50, 4)), 4, axis=0)
    places = ranked(totals + 0.1 * rng.standard_normal((200, 4)))
    blocks = rate(seating, places, 4)
    matches = rate(seating, places, 4, block=1)
    assert blocks.values == pytest.approx(matches.values, abs=1e-6)
    ratio = (blocks.high - blocks.low) / (matches.high - matches.low)
    assert ratio == pytest.approx(2, rel=0.25), "four matches alike are one"


def test_above_says_how_sure_an_order_is() -> None:
    found = rate(*played([0, 0, 0.3, 3], 60, seed=11, luck=1, step=0.5), 4)
    assert (np.diag(found.above) == 0.5).all()
    assert found.above + found.above.T == pytest.approx(np.ones((4, 4)))
    assert (found.above[3, :3] == 1).all()
    assert 0 < found.above[1, 0] < 1


# --- What is refused


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seating": np.zeros((8, 3))}, r"seating must be of shape \(matches, 4\), not \(8, 3\)"),
        ({"seating": np.zeros((0, 4))}, r"seating must be of shape \(matches, 4\), not \(0, 4\)"),
        ({"places": np.ones((4, 4))}, r"places must be of shape \(8, 4\), not \(4, 4\)"),
        ({"places": np.tile([1, 2, 2, 3], (8, 1))}, r"match 0 must be \[1, 2, 2, 4\], not \[1, 2,"),
        ({"block": 3}, "8 matches do not fill blocks of 3"),
        ({"agents": 3}, "seating must be 0 to 2"),
        ({"agents": 0}, "there must be at least 1 agent, not 0"),
        ({"pinned": 4}, "pinned must be 0 to 3, not 4"),
        ({"resamples": 0}, "resamples must be at least 1, not 0"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {
        "seating": np.tile(np.arange(4), (8, 1)),
        "places": np.tile([1, 2, 3, 4], (8, 1)),
        "agents": 4,
    }
    with pytest.raises(ValueError, match=message):
        rate(**(given | change))


def test_one_agent_has_the_rating_0() -> None:
    found = rate(np.zeros((8, 4)), np.ones((8, 4)), 1)
    assert found.values.tolist() == found.low.tolist() == found.high.tolist() == [0]
    assert found.above.tolist() == [[0.5]]

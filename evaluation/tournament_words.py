"""A tournament in words: its agents' names, its numbers, and what it comes to."""

import re
from collections.abc import Callable, Sequence
from typing import Final

from retinue.envs.game.board import SEATS
from retinue.evaluation.cross_table_report import short_labels
from retinue.evaluation.summary import Interval, Luck, TournamentSummary
from retinue.evaluation.text import printable

LONGEST: Final = 18
"""Letters of a short name, but for a number behind it."""
CERTAIN: Final = 0.975
"""From this share of the resamples on, one agent is called stronger than another."""
LIKELY: Final = 0.8
NOTHING: Final = "–"


def _short(name: str) -> str:
    """Return a name, if it is long without its folders, and if it still is without its middle."""
    if len(name) > LONGEST:
        name = re.sub(r"[^:]*[/\\]", "", name)
    half = LONGEST // 2
    return name if len(name) <= LONGEST else f"{name[:half]}…{name[1 - half :]}"


def short_names(names: Sequence[str]) -> list[str]:
    """Return names that fit a plot, no two alike: cut, and without options where they can be."""
    short = list(map(_short, short_labels(list(map(printable, names)))))
    return [
        name if short.count(name) == 1 else f"{name} #{rank}" for rank, name in enumerate(short, 1)
    ]


def number(value: float, digits: int = 0) -> str:
    """Return a number with a proper minus."""
    text = f"{value:,.{digits}f}"
    text = text.removeprefix("-") if not text.strip("-0.") else text
    return text.replace("-", "−").replace("inf", "∞")


def signed(value: float) -> str:
    """Return a whole number with its sign."""
    text = number(value)
    return text if text == "0" or value < 0 else f"+{text}"


def percent(share: float, digits: int = 1) -> str:
    """Return a share as percent, without the sign for it."""
    return number(100 * share, digits)


def reach(interval: Interval, digits: int = 0, scale: float = 1.0) -> str:
    """Return the ends of an interval."""
    low, high = (number(scale * end, digits) for end in (interval.low, interval.high))
    return f"{low} to {high}"


def pinned(summary: TournamentSummary, shown: Callable[[str], str] = str) -> str:
    """Return what has the rating 0, an agent as ``shown`` makes it."""
    names = [agent.name for agent in summary.agents]
    if summary.pinned not in names:
        return "mean of all"
    return shown(short_names(names)[names.index(summary.pinned)])


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _resamples(share: float) -> str:
    if share == 1:
        return "every resample of the blocks"
    text = "over 99.9%" if share > 0.999 else f"{percent(share)}%"
    return f"{text} of the resamples of the blocks"


def headline(summary: TournamentSummary, shown: Callable[[str], str] = str) -> list[str]:
    """Return who is strongest and by how much, then how sure that is; agents as ``shown``."""
    names = list(map(shown, short_names([agent.name for agent in summary.agents])))
    first = summary.agents[0]
    if len(names) == 1:
        return [f"{names[0]} played alone.", f"Its mean total is {number(first.total.value)}."]
    gap = first.rating.value - summary.agents[1].rating.value
    told = (
        f"{names[0]} rates highest of {len(names)} agents, {number(gap)} points above {names[1]}; "
        f"it comes first in {percent(first.first.value)}% of its matches, where 25% is par."
    )
    rivals = [
        name for name, above in zip(names[1:], summary.above[0][1:], strict=True) if above < CERTAIN
    ]
    sure = summary.above[0][1]
    if sure >= CERTAIN:
        known = "That it is the strongest is clear"
    elif sure >= LIKELY:
        known = "That it is the strongest is likely, but not sure"
    else:
        known = "Which of them is the strongest is open"
    doubt = f"{known}: it rates above {names[1]} in {_resamples(sure)}."
    if len(rivals) > 1 or (rivals and rivals[0] != names[1]):
        doubt += f" Not told apart from it with certainty: {_listed(rivals)}."
    return [told, doubt]


def luck_in_words(luck: Luck | None, shown: Callable[[str], str] = str) -> str:
    """Return what common dice are worth."""
    if luck is None:
        return "What common dice are worth was not measured."
    worth = SEATS * luck.factor.value
    agents = ", ".join(map(shown, short_names(luck.agents)))
    return (
        f"The four matches of a block have the same dice, and each agent has each seat once. To "
        f"tell two agents apart by their points, they are worth {number(worth, 1)} matches with "
        f"dice of their own (95% interval {reach(luck.factor, 1, SEATS)}; "
        f"measured with {agents}): a factor of {number(luck.factor.value, 2)} "
        f"({reach(luck.factor, 2)})."
    )

"""The columns of the report's tables of agents, each described once."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from retinue.envs.game.board import SEAT_NAMES
from retinue.envs.tally import PATHS
from retinue.evaluation.summary import AgentSummary
from retinue.evaluation.tournament_words import NOTHING, number, percent, reach, signed


@dataclass(frozen=True)
class Cell:
    """What stands in one cell.

    Attributes:
        text: the number.
        interval: below it, small.
        share: how far a bar behind it goes, of the cell's width.
    """

    text: str
    interval: str = ""
    share: float | None = None


@dataclass(frozen=True)
class Column:
    """A column of a table with a row for each agent.

    Attributes:
        head: its title.
        meaning: what it shows.
        cell: of an agent.
        group: title over this and its neighbours of the same group.
    """

    head: str
    meaning: str
    cell: Callable[[AgentSummary], Cell]
    group: str = ""


@dataclass(frozen=True)
class Table:
    """A table with a row for each agent."""

    caption: str
    columns: tuple[Column, ...]

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The titles over the columns and how many each spans; empty if there are none."""
        spans = [
            (group, len(list(columns)))
            for group, columns in itertools.groupby(self.columns, lambda column: column.group)
        ]
        return spans if any(group for group, _ in spans) else []


def _plain(
    head: str,
    meaning: str,
    value: Callable[[AgentSummary], float],
    digits: int = 1,
    group: str = "",
) -> Column:
    return Column(head, meaning, lambda agent: Cell(number(value(agent), digits)), group)


def _share(
    head: str, meaning: str, value: Callable[[AgentSummary], float], group: str = ""
) -> Column:
    """Return a column of shares, in percent, with bars."""

    def cell(agent: AgentSummary) -> Cell:
        share = value(agent)
        return Cell(percent(share), share=share)

    return Column(head, meaning, cell, group)


def _part(
    head: str,
    meaning: str,
    values: Callable[[AgentSummary], Sequence[float]],
    index: int,
    group: str,
) -> Column:
    """Return a column of one of several shares, that may be unknown."""

    def cell(agent: AgentSummary) -> Cell:
        shares = values(agent)
        return Cell(percent(shares[index]), share=shares[index]) if shares else Cell(NOTHING)

    return Column(head, meaning, cell, group)


def _finishing(agent: AgentSummary) -> Cell:
    return Cell(NOTHING if agent.finishing_round is None else number(agent.finishing_round, 1))


def _microseconds(agent: AgentSummary) -> Cell:
    if agent.microseconds is None:
        return Cell("not measured")
    return Cell(number(agent.microseconds, 0 if agent.microseconds >= 10 else 1))


RATINGS: Final = Table(
    "The strongest first. Small: the 95% interval, by blocks.",
    (
        Column(
            "rating",
            "on a scale like Elo's: who has more comes out ahead more often than not",
            lambda agent: Cell(
                signed(agent.rating.value),
                f"{signed(agent.rating.low)} to {signed(agent.rating.high)}",
            ),
        ),
        Column(
            "first %",
            "share of first places in percent; a shared one counts in part. 25 is par",
            lambda agent: Cell(percent(agent.first.value), reach(agent.first, 1, 100)),
        ),
        _plain("place", "mean place, 1 to 4; 2.5 is par", lambda agent: agent.place, 2),
        Column(
            "total",
            "mean points in a match",
            lambda agent: Cell(number(agent.total.value), reach(agent.total)),
        ),
    ),
)

PLACES: Final = Table(
    "Share of its matches in percent; equal totals share the better place.",
    (
        _plain("matches", "seats that it had, over all matches", lambda agent: agent.matches, 0),
        _share("1st", "its total was the highest", lambda agent: agent.places[0]),
        _share("2nd", "second place", lambda agent: agent.places[1]),
        _share("3rd", "third place", lambda agent: agent.places[2]),
        _share("4th", "last place", lambda agent: agent.places[3]),
    ),
)

SOURCES: Final = Table(
    "Mean points in a match.",
    (
        _plain("total", "the next three, less penalty", lambda agent: agent.total.value, 0),
        _plain(
            "progression",
            "for checkpoints, midpoints and Home; what captures took away again is not in it",
            lambda agent: agent.progression,
            0,
        ),
        _plain("captures", "for pieces of others", lambda agent: agent.captures, 0),
        _plain("bonus", "for bringing all pieces Home", lambda agent: agent.bonus, 0),
        _plain(
            "penalty",
            "lost for steps that others' blockades stopped",
            lambda agent: agent.penalty,
            1,
        ),
    ),
)

COMBAT: Final = Table(
    "Means of a match.",
    (
        _plain(
            "Guards",
            "of others that it captured",
            lambda agent: agent.guards_captured,
            2,
            "captures made",
        ),
        _plain(
            "Nobles",
            "of others that it captured",
            lambda agent: agent.nobles_captured,
            2,
            "captures made",
        ),
        _plain("points", "that it got for them", lambda agent: agent.captures, 0, "captures made"),
        _plain(
            "Guards",
            "of its own that were captured",
            lambda agent: agent.guards_lost,
            2,
            "captures suffered",
        ),
        _plain(
            "Nobles",
            "of its own that were captured",
            lambda agent: agent.nobles_lost,
            2,
            "captures suffered",
        ),
        _plain(
            "points",
            "of progression lost with them",
            lambda agent: agent.points_lost,
            0,
            "captures suffered",
        ),
    ),
)

PACE: Final = Table(
    "Means of a match, of its five pieces.",
    (
        _plain("exits", "pieces that left the Yard", lambda agent: agent.exits, 1, "pieces"),
        _plain("midpoints", "pieces that reached it", lambda agent: agent.midpoints, 2, "pieces"),
        _plain("Homes", "pieces that came Home", lambda agent: agent.homes, 2, "pieces"),
        _share(
            "finished %",
            "share of its matches in which all five came Home",
            lambda agent: agent.finished,
        ),
        Column(
            "finishing round", "mean of its own turns until then; – if it never did", _finishing
        ),
        _plain("dice", "that it rolled", lambda agent: agent.rolls, 1, "rolls"),
        _plain("kept", "rolls in its store after a turn", lambda agent: agent.kept, 1, "rolls"),
        _plain("left", "rolls in its store at the end", lambda agent: agent.left, 1, "rolls"),
        _plain("wasted steps", "steps that blockades took", lambda agent: agent.wasted, 1),
        _share("still %", "share of its turns that moved nothing", lambda agent: agent.still),
    ),
)

ARROWS: Final = ("→ →", "← ←", "→ ←", "← →")
"""Of ``PATHS``."""

DIRECTIONS: Final = Table(
    "In percent. → is forward, ← backward: to the midpoint, then from it. Paths are shares of the "
    "lives of its pieces, from Yard to capture or end, that came past the midpoint; – if none did.",
    (
        _share(
            "forward",
            "share of its turns that went forward, of those that moved a piece",
            lambda agent: agent.forward,
        ),
        *(
            _part(arrow, f"Guards: {path}", lambda agent: agent.guard_paths, index, "Guards")
            for index, (arrow, path) in enumerate(zip(ARROWS, PATHS, strict=True))
        ),
        *(
            _part(arrow, f"the Noble: {path}", lambda agent: agent.noble_paths, index, "Noble")
            for index, (arrow, path) in enumerate(zip(ARROWS, PATHS, strict=True))
        ),
    ),
)

SEAT_SHARES: Final = Table(
    "Its share of first places in each seat, in percent. Seats play in this order.",
    tuple(
        _part(name, f"first places as {name}", lambda agent: agent.by_seat, seat, "")
        for seat, name in enumerate(SEAT_NAMES)
    ),
)

TIMES: Final = Table(
    "How long a decision takes.",
    (
        Column("µs a turn", "microseconds, on one thread", _microseconds),
        _plain(
            "forfeited",
            "turns that a user's own agent forfeited by an error or by taking too long",
            lambda agent: agent.forfeited,
            0,
        ),
    ),
)

"""What a tournament says, as one document: written as JSON, drawn by the report.

Means are by match and seat: an agent that has two seats of a match counts twice.
"""

from retinue.envs.game.schema import StrictModel


class Interval(StrictModel):
    """A value and its 95% interval, by blocks.

    Attributes:
        value: as measured.
        low, high: its interval; infinite, in JSON null, if a single block does not tell.
    """

    value: float
    low: float
    high: float


class AgentSummary(StrictModel):
    """What one agent did.

    Attributes:
        name: as the tournament calls it.
        matches: seats that it had, over all matches.
        rating: on a scale like Elo's.
        first: share of first places; a shared one counts in part. Par is 0.25.
        places: shares of the places 1 to 4; equal totals share the better one.
        place: mean.
        total: mean points, of which the next four are parts.
        progression, captures, bonus: mean points from each source.
        penalty: mean points lost to blockades, 0 or more.
        guards_captured, nobles_captured: pieces of others that it captured, a match.
        guards_lost, nobles_lost: of its own.
        points_lost: progression that went with them.
        exits, midpoints, homes: of its pieces, a match.
        finished: share of matches in which all its pieces came Home.
        finishing_round: mean of its own turns until then; None if it never did.
        rolls: dice that it rolled, a match.
        kept: rolls in its store after a turn, mean.
        left: rolls in its store at the end of a match, mean.
        wasted: steps that blockades took, a match.
        forward: share of its turns that went forward, of those that moved a piece.
        still: share of its turns that moved nothing.
        guard_paths, noble_paths: for each of ``envs.tally.PATHS``, the share of its pieces' lives,
            from Yard to capture or end, of those that came past the midpoint; empty if none did.
        microseconds: for a turn on one thread; None if it was not measured.
        by_seat: share of first places in each seat.
        rounds: mean total after each round of the match.
        stood: for each loop tile, counted from the own entering tile, the mean number of its pieces
            there after a turn of its own.
        lost_at: the same: its pieces captured there, a match.
        captured_at: the same: pieces of others that it captured there, a match.
        forfeited: turns of a user's own agent that were forfeited.
    """

    name: str
    matches: int
    rating: Interval
    first: Interval
    places: tuple[float, ...]
    place: float
    total: Interval
    progression: float
    captures: float
    penalty: float
    bonus: float
    guards_captured: float
    nobles_captured: float
    guards_lost: float
    nobles_lost: float
    points_lost: float
    exits: float
    midpoints: float
    homes: float
    finished: float
    finishing_round: float | None
    rolls: float
    kept: float
    left: float
    wasted: float
    forward: float
    still: float
    guard_paths: tuple[float, ...]
    noble_paths: tuple[float, ...]
    microseconds: float | None
    by_seat: tuple[float, ...]
    rounds: tuple[float, ...]
    stood: tuple[float, ...]
    lost_at: tuple[float, ...]
    captured_at: tuple[float, ...]
    forfeited: int


class Meeting(StrictModel):
    """How one agent came out beside another in the matches that both played.

    Attributes:
        ahead: share of the pairs of their seats in which the one had the better place; an equal
            one counts half.
        points: mean of the one's total less the other's.
        blocks: in which they met.
    """

    ahead: Interval
    points: float
    blocks: int


class Luck(StrictModel):
    """What common dice are worth.

    Attributes:
        factor: by how much the variance of the difference in total points of two agents is smaller,
            over a block of four matches, than over four matches with dice of their own; the mean
            over pairs of one line-up.
        agents: that line-up.
    """

    factor: Interval
    agents: tuple[str, ...]


class TournamentSummary(StrictModel):
    """What a tournament says.

    Attributes:
        retinue: version.
        mode: journey or brawl.
        rules: their digest.
        seed: of the first block's dice.
        blocks: played, of four matches each.
        pinned: name of the agent whose rating is 0; None if the mean of all is.
        agents: the strongest first.
        meetings: for each agent, in that order, its row; None against itself and those never met.
        above: for each agent its row: in which share of the resamples it rates above the other.
        seats: share of first places by seat.
        luck: None if it was not measured.
        processor: on which decisions were timed.
    """

    retinue: str
    mode: str
    rules: str
    seed: int
    blocks: int
    pinned: str | None
    agents: tuple[AgentSummary, ...]
    meetings: tuple[tuple[Meeting | None, ...], ...]
    above: tuple[tuple[float, ...], ...]
    seats: tuple[Interval, ...]
    luck: Luck | None
    processor: str

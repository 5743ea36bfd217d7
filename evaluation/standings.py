"""What a tournament's blocks say: from results to its summary."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from retinue.agents.user import UserAgent
from retinue.envs.game.board import SEATS
from retinue.envs.game.files import write_atomically
from retinue.envs.game.schema import SchemaError, StrictModel, from_json
from retinue.envs.tally import PATHS
from retinue.evaluation.arena import Integers, Progress
from retinue.evaluation.luck import measure_luck
from retinue.evaluation.pairs import Speed, time_agent
from retinue.evaluation.ratings import Ratings, rate
from retinue.evaluation.statistics import Estimate, estimate, estimate_share, first_shares
from retinue.evaluation.summary import AgentSummary, Interval, Luck, Meeting, TournamentSummary
from retinue.evaluation.tournament import Block, Tournament

PINNED: Final = "random"
"""The agent whose rating is 0, if it takes part."""
SPEEDS: Final = "speeds.json"


class Speeds(StrictModel):
    """A file of speeds, by specification."""

    speeds: dict[str, Speed]


def time_agents(tournament: Tournament, on_progress: Progress) -> dict[str, Speed]:
    """Return each agent's speed, by specification: measured once and kept in the folder.

    Args:
        tournament: played, so that its folder is there.
        on_progress: is told how many agents have been timed, of how many.

    Raises:
        SchemaError: the file that keeps them is damaged.
        OSError: it cannot be read or written.
    """
    path = tournament.folder / SPEEDS
    known: dict[str, Speed] = {}
    if path.exists():
        try:
            known = from_json(Speeds, path.read_text(encoding="utf-8")).speeds
        except SchemaError as error:
            raise SchemaError(f"{path}: {error}; remove it to measure speeds anew") from error
    pairs = dict(zip(tournament.header.specs, tournament.agents, strict=True))
    for done, (spec, agent) in enumerate(pairs.items(), 1):
        if spec not in known:
            known[spec] = time_agent(agent, spec, tournament.ruleset)
            if isinstance(agent, UserAgent):
                agent.faults.clear()  # those of the matches are told
            write_atomically(path, Speeds(speeds=known).model_dump_json(indent=2) + "\n")
        on_progress(done, len(pairs))
    return known


def luck_among_the_best(
    tournament: Tournament, *, threads: int | None = None, on_progress: Progress
) -> Luck | None:
    """Measure what common dice are worth in blocks of one line-up, the best four agents.

    Those that have to be asked are left out: they may be slow, or look at the clock.

    Returns:
        The measure; None if fewer than four are left, or chance does not tell them apart.
    """
    table = _Table(tournament.blocks, len(tournament.agents))
    ratings = rate(table.seating, table.places.reshape(-1, SEATS), len(tournament.agents))
    order = np.argsort(-ratings.values, kind="stable")
    best = [int(agent) for agent in order if tournament.agents[agent].compiled is not None][:SEATS]
    if len(best) < SEATS:
        return None
    line_up = [tournament.agents[agent] for agent in best]
    seed = tournament.header.seed
    try:
        found = measure_luck(
            line_up, tournament.ruleset, seed, threads=threads, on_progress=on_progress
        )
    except ValueError:
        return None
    return Luck(
        factor=_interval(found), agents=tuple(tournament.header.agents[agent] for agent in best)
    )


def summarise(
    tournament: Tournament, speeds: dict[str, Speed] | None = None, luck: Luck | None = None
) -> TournamentSummary:
    """Return what the blocks played so far say.

    Args:
        tournament: with at least one block.
        speeds: by specification, of agents whose decisions were timed.
        luck: what common dice are worth, if it was measured.

    Raises:
        ValueError: no block has been played.
    """
    if not tournament.blocks:
        raise ValueError("no block has been played, so there is nothing to say")
    header, speeds = tournament.header, speeds or {}
    table = _Table(tournament.blocks, len(header.agents))
    pinned = header.agents.index(PINNED) if PINNED in header.agents else None
    ratings = rate(
        table.seating, table.places.reshape(-1, SEATS), len(header.agents), pinned=pinned
    )
    played = [agent for agent in range(len(header.agents)) if table.has(agent).any()]
    order = sorted(played, key=lambda agent: -ratings.values[agent])
    processors = sorted({speed.processor for speed in speeds.values()})
    return TournamentSummary(
        retinue=header.retinue,
        mode=header.mode,
        rules=header.rules,
        seed=header.seed,
        blocks=len(tournament.blocks),
        pinned=None if pinned is None else header.agents[pinned],
        agents=tuple(
            _agent(table, agent, header.agents[agent], ratings, speeds.get(header.specs[agent]))
            for agent in order
        ),
        meetings=tuple(tuple(table.meeting(one, other) for other in order) for one in order),
        above=tuple(tuple(float(ratings.above[one, other]) for other in order) for one in order),
        seats=tuple(map(_interval, table.seat_shares())),
        luck=luck,
        processor=", ".join(processors),
    )


def _interval(found: Estimate) -> Interval:
    return Interval(value=found.value, low=found.low, high=found.high)


class _Table:
    """A tournament's blocks as arrays, by block, (match,) and agent of the line-up.

    Args:
        blocks: at least one.
        agents: of the tournament.
    """

    def __init__(self, blocks: Sequence[Block], agents: int) -> None:
        self.blocks = blocks
        self.line_ups: Integers = np.array([block.line_up for block in blocks])
        self.seating = np.repeat(self.line_ups, SEATS, axis=0)
        self.totals: Integers = np.array([block.totals for block in blocks])
        self.places: Integers = np.array([block.places for block in blocks])
        self.firsts = first_shares(self.places)
        self.forfeited = np.array([block.forfeited for block in blocks]).sum(axis=0)

    def has(self, agent: int) -> Any:
        """Return whether the agent is each one of the line-ups', bool ``(blocks, 4)``."""
        return self.line_ups == agent

    def of_blocks(self, agent: int, values: Any) -> Any:
        """Return the agent's mean of values ``(blocks, 4, 4)`` in each block that it is in."""
        its = self.has(agent)
        met = its.any(axis=1)
        sums = (values.mean(axis=1) * its).sum(axis=1)
        return sums[met] / its.sum(axis=1)[met]

    def sums(self, agent: int, name: str) -> Any:
        """Return the agent's sums of a field of the tally, int64, flat."""
        return sum(
            np.array(block.tally[name], np.int64)[its].sum(axis=0)
            for block, its in zip(self.blocks, self.has(agent), strict=True)
            if its.any()
        )

    def points(self, agent: int, name: str) -> float:
        """Return the agent's sum of a source of points, or of ``finishes``."""
        values = np.array([getattr(block, name) for block in self.blocks], np.float64)
        return float((values * self.has(agent)).sum())

    def rounds(self, agent: int) -> Any:
        """Return the agent's sums of totals after each round."""
        return np.array([block.rounds for block in self.blocks])[self.has(agent)].sum(axis=0)

    def meeting(self, one: int, other: int) -> Meeting | None:
        """Return how an agent came out beside another; None if they never met."""
        met = self.has(one).any(axis=1) & self.has(other).any(axis=1)
        if one == other or not met.any():
            return None
        pairs = (self.has(one)[:, :, None] & self.has(other)[:, None, :])[met][:, None]
        places, totals = self.places[met], self.totals[met]
        ahead = np.sign(places[:, :, None, :] - places[:, :, :, None]) / 2 + 0.5
        points = totals[:, :, :, None] - totals[:, :, None, :]
        count = SEATS * pairs.sum(axis=(1, 2, 3))
        shares = (ahead * pairs).sum(axis=(1, 2, 3)) / count
        return Meeting(
            ahead=_interval(estimate_share(shares)),
            points=float(((points * pairs).sum(axis=(1, 2, 3)) / count).mean()),
            blocks=int(met.sum()),
        )

    def _by_seat(self, values: Any) -> Any:
        """Return values ``(blocks, 4, 4)`` by seat instead of by agent of the line-up."""
        seats = (np.arange(SEATS) - np.arange(SEATS)[:, None]) % SEATS
        return np.take_along_axis(values, seats[None], axis=2)

    def seat_shares(self) -> list[Estimate]:
        """Return each seat's share of first places."""
        shares = self._by_seat(self.firsts).mean(axis=1)
        return [estimate_share(shares[:, seat]) for seat in range(SEATS)]

    def firsts_in_seats(self, agent: int) -> tuple[float, ...]:
        """Return the agent's share of first places in each seat."""
        its = self._by_seat(np.broadcast_to(self.has(agent)[:, None], self.firsts.shape))
        won = (self._by_seat(self.firsts) * its).sum(axis=(0, 1))
        return tuple((won / its.sum(axis=(0, 1))).tolist())


def _paths(counts: Any) -> tuple[float, ...]:
    return tuple((counts / counts.sum()).tolist()) if counts.sum() else ()


def _agent(
    table: _Table, agent: int, name: str, ratings: Ratings, speed: Speed | None
) -> AgentSummary:
    """Return the summary of one agent."""
    matches = SEATS * int(table.has(agent).sum())

    def mean(field: str) -> float:
        return float(table.sums(agent, field)[0]) / matches

    def share(field: str, of: str) -> float:
        whole = int(table.sums(agent, of)[0])
        return float(table.sums(agent, field)[0]) / whole if whole else 0.0

    places = table.of_blocks(agent, table.places)
    shares = [table.of_blocks(agent, table.places == place + 1).mean() for place in range(SEATS)]
    captured, lost = table.sums(agent, "captured") / matches, table.sums(agent, "lost") / matches
    paths = table.sums(agent, "paths").reshape(-1, len(PATHS))
    penalty, turns = mean("penalty"), int(table.sums(agent, "turns")[0])
    finishes = table.points(agent, "finishes")
    finishing = float(table.sums(agent, "finishing_round")[0])
    return AgentSummary(
        name=name,
        matches=matches,
        rating=Interval(
            value=float(ratings.values[agent]),
            low=float(ratings.low[agent]),
            high=float(ratings.high[agent]),
        ),
        first=_interval(estimate_share(table.of_blocks(agent, table.firsts))),
        places=tuple(map(float, shares)),
        place=float(places.mean()),
        total=_interval(estimate(table.of_blocks(agent, table.totals))),
        progression=table.points(agent, "progression") / matches,
        captures=table.points(agent, "combat") / matches + penalty,
        penalty=penalty,
        bonus=table.points(agent, "bonus") / matches,
        guards_captured=captured[0],
        nobles_captured=captured[1],
        guards_lost=lost[0],
        nobles_lost=lost[1],
        points_lost=mean("points_lost"),
        exits=mean("exits"),
        midpoints=mean("midpoints"),
        homes=mean("homes"),
        finished=finishes / matches,
        finishing_round=finishing / finishes if finishes else None,
        rolls=mean("rolled"),
        kept=share("kept", "turns"),
        left=mean("left"),
        wasted=mean("wasted"),
        forward=share("forward", "moved"),
        still=1.0 - share("moved", "turns"),
        guard_paths=_paths(paths[0]),
        noble_paths=_paths(paths[1]),
        microseconds=None if speed is None else speed.microseconds,
        by_seat=table.firsts_in_seats(agent),
        rounds=tuple((table.rounds(agent) / matches).tolist()),
        stood=tuple((table.sums(agent, "stood") / max(1, turns)).tolist()),
        lost_at=tuple((table.sums(agent, "lost_at") / matches).tolist()),
        captured_at=tuple((table.sums(agent, "captured_at") / matches).tolist()),
        forfeited=int(table.forfeited[agent]),
    )

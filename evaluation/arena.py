"""Whole matches between agents, many at once, and blocks of them as the unit of evidence.

A *block* is four matches with the same dice, the line-up rotated through all four seats: luck and
the seat's advantage fall on every agent alike.

Agents that kernels can call play their matches wholly inside one parallel kernel; if any other is
seated, the matches run in step and each agent is asked for all its turns at once. Either way a
match depends on its seed and its agents alone, not on the number of threads or of matches at once,
as long as the agents draw their chance from the keys that they are given.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

import numpy as np

from retinue.agents.base import Agent
from retinue.agents.user import UserAgent
from retinue.envs.batch import Batch
from retinue.envs.game.board import SEATS
from retinue.envs.game.dice import SEED_BITS
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.kernels import MAX_OPPONENTS
from retinue.envs.parallel import MAX_THREADS
from retinue.envs.seating import NONE
from retinue.evaluation.statistics import Estimate, block_means, estimate_share, first_shares

COMPILED_AT_ONCE: Final = 1024
"""Matches at once if kernels can call all agents: a fraction of a second's work."""
ASKED_AT_ONCE: Final = 256
"""Matches at once if an agent has to be asked."""
MOST_KEPT: Final = 1_000_000
"""Turns at once if they are kept: some 60 MB."""
NO_SEAT_YET: Final = -1
"""In finishing orders: nobody else finished."""

Integers = np.ndarray[Any, np.dtype[np.int64]]
Progress = Callable[[int, int], None]
"""Is told how many matches have been played, of how many."""


class ArenaError(ValueError):
    """Matches that cannot be played as asked."""


@dataclass(frozen=True)
class Matches:
    """What came out of ``n`` matches; arrays have a row for each match and a column for each seat.

    Attributes:
        names: of the agents.
        seating: int64 ``(n, 4)``, the index of the agent in each seat.
        seeds: uint64 ``(n,)``, of the dice.
        totals, places: int64 ``(n, 4)``; equal totals share the better place (rules 5).
        progression, combat, bonus: int64 ``(n, 4)``; they sum to the totals (rules 4).
        decisions: int64 ``(n, 4)``, turns taken by each seat; they sum to the match's turns.
        finish_orders: int64 ``(n, 4)``, seats in the order in which they finished, then -1.
        turns: for each match its ``TURN`` array, if they were kept.
    """

    names: tuple[str, ...]
    seating: Integers
    seeds: np.ndarray[Any, np.dtype[np.uint64]]
    totals: Integers
    places: Integers
    progression: Integers
    combat: Integers
    bonus: Integers
    decisions: Integers
    finish_orders: Integers
    turns: tuple[np.ndarray[Any, np.dtype[Any]], ...] | None = None

    def __len__(self) -> int:
        return len(self.seeds)

    @property
    def first_shares(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Each seat's share of the first place, float64 ``(n, 4)``."""
        return first_shares(self.places)

    def head(self, count: int) -> "Matches":
        """Return the first ``count`` matches."""
        cut: dict[str, Any] = {
            field.name: getattr(self, field.name)[:count]
            for field in fields(self)[1:]
            if getattr(self, field.name) is not None
        }
        return replace(self, **cut)

    def by_agent(self, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return values by seat, ``(n, 4)``, as values by agent, ``(n, 4)``.

        Raises:
            ValueError: not every agent has one seat in every match.
        """
        order = np.argsort(self.seating, axis=1)
        if not (np.take_along_axis(self.seating, order, 1) == np.arange(SEATS)).all():
            raise ValueError("not every agent has one seat in every match")
        return np.take_along_axis(values, order, axis=1)


def join(parts: Sequence[Matches]) -> Matches:
    """Return matches of the same agents as one, in the order given."""
    joined: dict[str, Any] = {"names": parts[0].names}
    for field in fields(Matches)[1:]:
        values = [getattr(part, field.name) for part in parts]
        if field.name != "turns":
            joined[field.name] = np.concatenate(values)
        elif None not in values:
            joined[field.name] = tuple(match for part in values for match in part)
    return Matches(**joined)


def _check(agents: Sequence[Agent], seeds: Any, seating: Any, threads: int | None) -> None:
    if seating.ndim == 1 and len(agents) != SEATS:
        raise ArenaError(f"a match takes {SEATS} agents, not {len(agents)}")
    if not 1 <= len(agents) <= MAX_OPPONENTS:
        raise ArenaError(f"there must be 1 to {MAX_OPPONENTS} agents, not {len(agents)}")
    if seating.shape not in ((SEATS,), (len(seeds), SEATS)):
        raise ArenaError(f"seating must be of shape ({len(seeds)}, {SEATS}), not {seating.shape}")
    if seating.min() < 0 or seating.max() >= len(agents):
        raise ArenaError(f"seating must be 0 to {len(agents) - 1}")
    for seed in (min(seeds), max(seeds)):
        if not 0 <= seed < 1 << SEED_BITS:
            raise ArenaError(f"seed {seed} is not in 0 to 2**{SEED_BITS} - 1")
    if threads is not None and not 1 <= threads <= MAX_THREADS:
        raise ArenaError(f"threads must be 1 to {MAX_THREADS} here, not {threads}")


def stream_matches(
    agents: Sequence[Agent],
    ruleset: Ruleset,
    seeds: Sequence[int] | range,
    *,
    seating: Any = None,
    threads: int | None = None,
    keep_turns: bool = False,
    at_once: int | None = None,
) -> Iterator[Matches]:
    """Play matches and yield what came out of some of them at a time, in order.

    Args:
        agents: by seat; with ``seating`` any number of them.
        ruleset: the rules.
        seeds: of the dice, one for each match, from 0 to 2**53 - 1.
        seating: which of the agents sits where, integers ``(n, 4)``.
        threads: of the kernels when they play whole matches; by default all that Numba may use.
        keep_turns: keep every turn.
        at_once: how many matches; decides nothing but speed and memory for agents that draw all
            their chance from keys.

    Raises:
        ArenaError: an argument does not fit.
        IllegalTurn: an agent chose an illegal turn; the message names it.
    """
    seating = np.arange(SEATS) if seating is None else np.asarray(seating)
    if not len(seeds):
        raise ArenaError("there must be at least one match")
    _check(agents, seeds, seating, threads)
    asked = any(agent.compiled is None for agent in agents)
    size = at_once or (ASKED_AT_ONCE if asked else COMPILED_AT_ONCE)
    if keep_turns:
        size = min(size, max(1, MOST_KEPT // ruleset.turns))
    # Between two questions there is too little to do to be worth waking a second thread.
    threads = 1 if asked else threads
    seating = np.broadcast_to(seating, (len(seeds), SEATS)).astype(np.int64)
    return _stream(tuple(agents), ruleset, seeds, seating, size, threads, keep_turns)


def _stream(
    agents: tuple[Agent, ...],
    ruleset: Ruleset,
    seeds: Sequence[int],
    seating: Integers,
    size: int,
    threads: int | None,
    keep_turns: bool,
) -> Iterator[Matches]:
    batch: Batch | None = None
    for begun in range(0, len(seeds), size):
        part = np.array(seeds[begun : begun + size], np.uint64)
        if batch is None or batch.num_games != len(part):
            batch = Batch(
                ruleset,
                len(part),
                seats=NONE,
                opponents=agents,
                threads=threads,
                keep_turns=keep_turns,
            )
        for agent in agents:
            if isinstance(agent, UserAgent):
                agent.first_match = begun
        batch.play_out(part, seating[begun : begun + size])
        turns = _turns_of(batch) if keep_turns else None
        yield _results(batch, [each.name for each in agents], part, turns)


def _turns_of(batch: Batch) -> tuple[Any, ...]:
    """Return the turns of each match that a batch has played out, copied."""
    played = zip(batch.trace, batch.games["turn"], strict=True)
    return tuple(turns[:count].copy() for turns, count in played)


def _results(batch: Batch, names: Sequence[str], seeds: Any, turns: Any) -> Matches:
    games = batch.games
    finished = np.arange(SEATS) < games["finished"][:, None]
    return Matches(
        names=tuple(names),
        seating=batch.control.astype(np.int64),
        seeds=seeds,
        totals=batch.final_totals.astype(np.int64),
        places=batch.final_places.astype(np.int64),
        progression=games["progression"].sum(axis=2, dtype=np.int64),
        combat=games["combat"].astype(np.int64),
        bonus=games["bonus"].astype(np.int64),
        decisions=games["turns_taken"].astype(np.int64),
        finish_orders=np.where(finished, games["finish_order"], NO_SEAT_YET).astype(np.int64),
        turns=turns,
    )


def play_matches(
    agents: Sequence[Agent],
    ruleset: Ruleset,
    seeds: Sequence[int] | range,
    threads: int | None = None,
    *,
    keep_turns: bool = False,
    seating: Any = None,
    on_progress: Progress | None = None,
    at_once: int | None = None,
) -> Matches:
    """Play matches to their end; the arguments and errors are those of :func:`stream_matches`."""
    parts = []
    played = 0
    for part in stream_matches(
        agents,
        ruleset,
        seeds,
        seating=seating,
        threads=threads,
        keep_turns=keep_turns,
        at_once=at_once,
    ):
        parts.append(part)
        played += len(part)
        if on_progress is not None:
            on_progress(played, len(seeds))
    return join(parts)


def rotations(blocks: int, seed: int) -> tuple[list[int], Integers]:
    """Return the seeds and the seating of whole blocks, for :func:`play_matches`.

    In match ``4 * b + r`` the dice are those of ``(seed + b) mod 2**53`` and agent ``i`` has the
    seat ``(i + r) mod 4``.
    """
    seeds = [(seed + block) % (1 << SEED_BITS) for block in range(blocks) for _ in range(SEATS)]
    one_block = (np.arange(SEATS) - np.arange(SEATS)[:, None]) % SEATS
    return seeds, np.tile(one_block, (blocks, 1))


def rotated(
    agents: Sequence[Agent],
    ruleset: Ruleset,
    blocks: int,
    seed: int = 0,
    *,
    threads: int | None = None,
    keep_turns: bool = False,
    on_progress: Progress | None = None,
) -> Matches:
    """Play blocks: every match of four agents in all four rotations with the same dice.

    Raises:
        ArenaError: there are not four agents, or another argument does not fit.
    """
    if len(agents) != SEATS:
        raise ArenaError(f"a block takes {SEATS} agents, not {len(agents)}")
    seeds, seating = rotations(blocks, seed)
    return play_matches(
        agents,
        ruleset,
        seeds,
        threads,
        seating=seating,
        keep_turns=keep_turns,
        on_progress=on_progress,
    )


def first_share(
    agent: Agent,
    others: Sequence[Agent],
    ruleset: Ruleset,
    blocks: int,
    seed: int = 0,
    *,
    threads: int | None = None,
) -> Estimate:
    """Return an agent's share of first places against three others, with its 95% interval.

    Par is 0.25. A shared first place counts 1 / (number of seats that share it).
    """
    matches = rotated([agent, *others], ruleset, blocks, seed, threads=threads)
    return estimate_share(block_means(matches.by_agent(matches.first_shares)[:, 0], SEATS))

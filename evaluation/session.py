"""A session of matches that a person asked for: recorded if wanted, and good for what it has."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from retinue.agents.base import Agent
from retinue.envs.game.board import SEATS
from retinue.envs.game.dice import SEED_BITS
from retinue.envs.game.ruleset import Ruleset
from retinue.evaluation.arena import (
    ArenaError,
    Matches,
    Progress,
    join,
    rotations,
    stream_matches,
)
from retinue.evaluation.records import prepare_folder, save_records

RECORDED_AT_ONCE: Final = 64
"""Matches at once while they are recorded: what an interruption may cost."""
MAX_MATCHES: Final = 10_000_000
"""Of one session: their results are all kept, and fill a few gigabytes."""


@dataclass(frozen=True)
class Session:
    """What a session played."""

    matches: Matches | None
    """None if it was interrupted before the first was finished."""
    interrupted: bool


def play_session(
    agents: Sequence[Agent],
    ruleset: Ruleset,
    count: int,
    seed: int,
    *,
    rotate: bool,
    records: Path | None,
    threads: int | None,
    on_progress: Progress,
) -> Session:
    """Play ``count`` matches until they are done or the user interrupts (Ctrl-C).

    Args:
        agents: four, by seat (in the first match of each block, if they rotate).
        ruleset: the rules.
        count: of matches; whole blocks if they rotate.
        seed: of the first match's dice; the next match, or block, has the next seed.
        rotate: play blocks of four matches, the line-up rotated through all seats.
        records: a folder for the matches' records; None keeps none.
        threads: of the kernels.
        on_progress: is told how many matches are done, of how many.

    Raises:
        ArenaError: an argument does not fit.
        RecordError: the folder cannot be used.
    """
    if count > MAX_MATCHES:
        raise ArenaError(f"a session takes at most {MAX_MATCHES:,} matches, not {count:,}")
    if rotate and count % SEATS:
        raise ArenaError(f"rotating takes a multiple of {SEATS} matches, not {count}")
    dice = count // SEATS if rotate else count
    if seed + dice > 1 << SEED_BITS:
        raise ArenaError(f"{dice:,} seeds from {seed} on go beyond 2**{SEED_BITS} - 1, the largest")
    seeds, seating = rotations(dice, seed) if rotate else (range(seed, seed + dice), None)
    stream = stream_matches(
        agents,
        ruleset,
        seeds,
        seating=seating,
        threads=threads,
        keep_turns=records is not None,
        at_once=None if records is None else RECORDED_AT_ONCE,
    )
    if records is not None:
        prepare_folder(records)
    done: list[Matches] = []
    played = 0
    interrupted = False
    try:
        for part in stream:
            if records is None:
                done.append(part)
            else:
                done.append(part.head(0))
                for written in save_records(part, ruleset, records, played):
                    done[-1] = part.head(written)
                    on_progress(played + written, count)
            played += len(done[-1])
            on_progress(played, count)
    except KeyboardInterrupt:
        interrupted = True
    finished = join(done) if done else None
    if finished is not None and rotate and len(finished) % SEATS:
        finished = finished.head(len(finished) - len(finished) % SEATS)
    return Session(finished if finished is not None and len(finished) else None, interrupted)

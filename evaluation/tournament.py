"""Tournaments: blocks of matches between changing line-ups, kept on disk as they are played.

The results are a file in JSON lines: a header that says what the tournament is, then a line for
each block, in order. Lines are only ever added, and flushed to the disk. What a killed process left
half-written at the end is dropped and played again; anything else that does not fit is refused.
"""

import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import numpy as np
from pydantic import Field

from retinue import __version__
from retinue.agents.base import Agent
from retinue.agents.registry import make_agent
from retinue.agents.user import UserAgent
from retinue.envs.game.board import SEATS
from retinue.envs.game.dice import SEED_BITS
from retinue.envs.game.files import write_atomically
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.schema import SchemaError, StrictModel, from_json
from retinue.envs.tally import TALLY, tally
from retinue.evaluation.arena import ArenaError, Integers, Matches, Progress, play_matches
from retinue.evaluation.pairs import check_threads, difference, fingerprint
from retinue.evaluation.schedule import line_ups

FORMAT: Final = "retinue-tournament"
RESULTS: Final = "results.jsonl"
BLOCKS_AT_ONCE: Final = 64
"""What is played between two additions to the file, if kernels can call all agents."""
ASKED_BLOCKS: Final = 8
"""The same if an agent has to be asked, which may take its time."""

_Row = Annotated[tuple[int, ...], Field(min_length=SEATS, max_length=SEATS)]
_Rows = Annotated[tuple[_Row, ...], Field(min_length=SEATS, max_length=SEATS)]
_Lists = Annotated[tuple[tuple[int, ...], ...], Field(min_length=SEATS, max_length=SEATS)]


class Header(StrictModel):
    """What a tournament is; results of another do not belong in its file.

    Attributes:
        agents: their names in it; one that is given twice is numbered.
        specs: what makes them.
        fingerprints: of each agent, see :func:`~retinue.evaluation.pairs.fingerprint`.
        seed: of the first block's dice, the next block has the next; and of the line-ups.
    """

    format: Literal["retinue-tournament"] = FORMAT
    retinue: str
    mode: str
    rules: str
    agents: tuple[str, ...]
    specs: tuple[str, ...]
    fingerprints: tuple[str, ...]
    seed: int


class Block(StrictModel):
    """Four matches with the same dice.

    Agent ``i`` of the line-up has seat ``(i + r) mod 4`` in match ``r``. Inner rows belong to the
    agents of the line-up.

    Attributes:
        block: its number, from 0.
        line_up: indices of agents.
        totals, places: by match and agent.
        progression, combat, bonus: points, added up over the four matches; so is all that follows.
        finishes: matches in which all its pieces came Home.
        rounds: total after each round.
        tally: each field of ``TALLY``, flat.
        forfeited: turns that agents of users' own forfeited, by agent of the tournament; those of
            blocks that are played together stand with the first.
        check: of this line without it, so that damage shows.
    """

    block: int
    line_up: _Row
    totals: _Rows
    places: _Rows
    progression: _Row
    combat: _Row
    bonus: _Row
    finishes: _Row
    rounds: _Lists
    tally: dict[str, _Lists]
    forfeited: tuple[int, ...]
    check: int = 0

    def digest(self) -> int:
        """Return what ``check`` has to be."""
        return zlib.crc32(self.model_dump_json(exclude={"check"}).encode())


@dataclass
class Tournament:
    """A tournament as far as it has been played.

    Attributes:
        folder: where it is kept.
        header: what it is.
        ruleset: the rules.
        agents: in the order of ``header.agents``.
        blocks: played, in order.
    """

    folder: Path
    header: Header
    ruleset: Ruleset
    agents: list[Agent]
    blocks: list[Block] = field(default_factory=list)

    @property
    def path(self) -> Path:
        """The file of results."""
        return self.folder / RESULTS


# --- Opening


def _names(specs: Sequence[str]) -> tuple[str, ...]:
    """Return a name for each agent: its specification, numbered if it is not the first such."""
    seen: dict[str, int] = {}
    names = []
    for spec in specs:
        seen[spec] = seen.get(spec, 0) + 1
        names.append(spec if seen[spec] == 1 else f"{spec} #{seen[spec]}")
    return tuple(names)


def open_tournament(
    folder: Path,
    ruleset: Ruleset,
    specs: Sequence[str],
    seed: int = 0,
    *,
    blocks: int = 0,
    threads: int | None = None,
    time_limit: float | None = None,
) -> Tournament:
    """Return a tournament with what the folder holds of it; nothing is written yet.

    Args:
        folder: need not be there.
        ruleset: the rules.
        specs: of two agents or more; one may be given more than once.
        seed: of the first block's dice and of the line-ups.
        blocks: how many are to be played; only checked, as ``threads`` is.
        threads: that will be asked for.
        time_limit: seconds for a turn of a user's own agent.

    Raises:
        ArenaError: an argument does not fit, or the folder holds another tournament.
        AgentError: a specification makes no agent.
        SchemaError: the results are damaged.
        OSError: they cannot be read.
    """
    line_ups(len(specs), 0)
    if not 0 <= seed <= (1 << SEED_BITS) - max(1, blocks):
        raise ArenaError(f"seeds from {seed} on go beyond 2**{SEED_BITS} - 1, the largest")
    check_threads(threads)
    agents = [make_agent(spec, ruleset, time_limit=time_limit) for spec in specs]
    header = Header(
        retinue=__version__,
        mode=ruleset.mode,
        rules=ruleset.digest,
        agents=_names(specs),
        specs=tuple(specs),
        fingerprints=tuple(map(fingerprint, agents, specs)),
        seed=seed,
    )
    tournament = Tournament(folder, header, ruleset, agents)
    if tournament.path.exists():
        tournament.blocks = _read(tournament)
    elif folder.is_dir() and any(folder.iterdir()):
        raise ArenaError(f"{folder}: holds other files but no {RESULTS}; choose another folder")
    return tournament


def _read(tournament: Tournament) -> list[Block]:
    """Return the blocks that a file holds.

    Raises:
        ArenaError: it is of another tournament.
        SchemaError: a line is damaged.
    """
    path, header = tournament.path, tournament.header
    whole = path.read_bytes().rpartition(b"\n")[0]
    found = []
    for number, line in enumerate(whole.split(b"\n"), 1):
        try:
            text = line.decode("utf-8")
            if number == 1:
                _refuse_another(from_json(Header, text), header, path)
                continue
            block = from_json(Block, text)
        except UnicodeDecodeError as error:
            raise SchemaError(f"{path}: line {number}: is not UTF-8 text") from error
        except SchemaError as error:
            raise SchemaError(f"{path}: line {number}: {error}") from error
        if block.check != block.digest() or block.block != number - 2:
            raise SchemaError(
                f"{path}: line {number}: is damaged: it is not what was written for block "
                f"{number - 2}; remove this line and those below it to play them again"
            )
        found.append(block)
    return found


def _refuse_another(found: Header, wanted: Header, path: Path) -> None:
    names = ("retinue", "mode", "rules", "specs", "fingerprints", "seed")
    if what := difference(found, wanted, names):
        raise ArenaError(
            f"{path}: holds another tournament, of {what}; choose another folder or remove it"
        )


# --- Playing


def play_tournament(
    tournament: Tournament,
    blocks: int,
    *,
    threads: int | None = None,
    on_progress: Progress,
) -> None:
    """Play a tournament on until it has so many blocks; those that it has are not played again.

    Args:
        tournament: of :func:`open_tournament`.
        blocks: in all.
        threads: of the kernels; decides nothing but the speed.
        on_progress: is told how many blocks are there, of how many.

    Raises:
        ArenaError: the folder cannot be made.
        IllegalTurn: an agent chose an illegal turn.
        OSError: results cannot be written.
    """
    rows = line_ups(len(tournament.agents), blocks, tournament.header.seed)
    begun = len(tournament.blocks)
    on_progress(min(begun, blocks), blocks)
    if begun >= blocks:
        return
    asked = any(agent.compiled is None for agent in tournament.agents)
    at_once = ASKED_BLOCKS if asked else BLOCKS_AT_ONCE
    with _opened(tournament) as file:
        for first in range(begun, blocks, at_once):
            last = min(first + at_once, blocks)
            played = _play(tournament, rows[first:last], first, threads)
            lines = "".join(f"{block.model_dump_json()}\n" for block in played)
            file.write(lines.encode())
            file.flush()
            os.fsync(file.fileno())
            tournament.blocks += played
            on_progress(last, blocks)


def _opened(tournament: Tournament) -> Any:
    """Return the file, open at the end of its last whole line."""
    path = tournament.path
    try:
        tournament.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArenaError(f"{path.parent}: no folder for results: {error.strerror}") from error
    if not path.exists():
        write_atomically(path, tournament.header.model_dump_json() + "\n")
    file = path.open("r+b")
    file.truncate(path.read_bytes().rfind(b"\n") + 1)
    file.seek(0, os.SEEK_END)
    return file


def _play(tournament: Tournament, rows: Integers, first: int, threads: int | None) -> list[Block]:
    """Play the blocks of some line-ups; the first of them has the number ``first``."""
    turned = (np.arange(SEATS) - np.arange(SEATS)[:, None]) % SEATS
    seed = tournament.header.seed
    seeds = [seed + first + block for block in range(len(rows)) for _ in range(SEATS)]
    before = _forfeited(tournament.agents)
    matches = play_matches(
        tournament.agents,
        tournament.ruleset,
        seeds,
        threads,
        seating=rows[:, turned].reshape(-1, SEATS),
        keep_turns=True,
    )
    forfeited = (_forfeited(tournament.agents) - before).tolist()
    assert matches.turns is not None
    tallies, rounds = tally(tournament.ruleset, seeds, matches.turns, threads)
    blocks = []
    for index, row in enumerate(rows):
        part = slice(SEATS * index, SEATS * index + SEATS)
        told = forfeited if index == 0 else [0] * len(forfeited)
        block = _block(matches, tallies, rounds, part, first + index, row, told)
        blocks.append(block.model_copy(update={"check": block.digest()}))
    return blocks


_SEAT_OF: Final = (np.arange(SEATS) + np.arange(SEATS)[:, None]) % SEATS
"""By match of a block and agent of its line-up."""


def _by_agent(values: Any) -> Any:
    """Return values of a block's matches by agent instead of by seat, both ``(4, 4, ...)``."""
    return np.take_along_axis(values, _SEAT_OF.reshape(SEATS, SEATS, *[1] * (values.ndim - 2)), 1)


def _sums(values: Any) -> tuple[int, ...]:
    """Return sums over a block's matches, ``(4, 4)``, for each agent."""
    return tuple(_by_agent(values).sum(axis=0, dtype=np.int64).tolist())


def _lists(values: Any) -> tuple[tuple[int, ...], ...]:
    """Return the same for ``(4, 4, ...)``, flat for each agent."""
    return _rows(_by_agent(values).sum(axis=0, dtype=np.int64).reshape(SEATS, -1))


def _rows(values: Any) -> tuple[tuple[int, ...], ...]:
    return tuple(map(tuple, values.tolist()))


def _block(
    matches: Matches,
    tallies: Any,
    rounds: Any,
    part: slice,
    number: int,
    line_up: Integers,
    forfeited: list[int],
) -> Block:
    """Return a block's line, its ``check`` not yet known."""
    counted = tallies[part]
    return Block(
        block=number,
        line_up=tuple(line_up.tolist()),
        totals=_rows(_by_agent(matches.totals[part])),
        places=_rows(_by_agent(matches.places[part])),
        progression=_sums(matches.progression[part]),
        combat=_sums(matches.combat[part]),
        bonus=_sums(matches.bonus[part]),
        finishes=_sums(counted["finishing_round"] > 0),
        rounds=_lists(rounds[part]),
        tally={name: _lists(counted[name]) for name in TALLY.names or ()},
        forfeited=tuple(forfeited),
    )


def _forfeited(agents: Sequence[Agent]) -> Integers:
    """Return how many turns each agent has forfeited so far."""
    return np.array(
        [
            sum(kind.count for kind in agent.faults.values()) if isinstance(agent, UserAgent) else 0
            for agent in agents
        ]
    )

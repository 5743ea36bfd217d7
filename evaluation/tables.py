"""Statistics tables from match records: a row a match and a row a turn (``docs/statistics.md``).

Every number is worked out while the record is replayed, which verifies it; what the file says under
``events`` is not read.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyarrow.csv import CSVWriter
from pyarrow.parquet import ParquetWriter

from retinue.envs.game.board import BACKWARD, DIRECTION_NAMES, NOBLE, SEAT_NAMES
from retinue.envs.game.events import (
    BLOCKED,
    CAPTURE,
    CHECKPOINT,
    DETAIL,
    EXIT,
    FINISH,
    HOME,
    KIND,
    MIDPOINT,
    PIECE,
    POINTS,
)
from retinue.envs.game.files import replacing
from retinue.envs.game.record import MatchReplay, Replayed
from retinue.envs.game.state import Record, StateModel, new_game, state_to_json
from retinue.evaluation.table_columns import GUARD_NAMES, SUMMED, TABLES, schema_of

CELLS_AT_ONCE: Final = 2_000_000
"""Cells of a table that are held before they are written: some dozen megabytes."""

FORMATS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "parquet": lambda file, schema: ParquetWriter(file, schema, compression="zstd"),
    "csv": CSVWriter,
}
Row = dict[str, Any]
"""A row by column name."""


@dataclass(frozen=True)
class Tables:
    """What was written."""

    matches: Path
    turns: Path
    match_rows: int
    turn_rows: int
    in_progress: int
    """Matches that are not over."""

    def in_words(self) -> list[str]:
        """Return lines that say what was written and how to read it."""
        going = f" ({self.in_progress:,} in progress)" if self.in_progress else ""
        reader = f"pandas.read_{self.turns.suffix[1:]}"
        return [
            f"{self.matches}: {_counted(self.match_rows, 'match', 'matches')}{going}",
            f"{self.turns}: {_counted(self.turn_rows, 'turn', 'turns')}",
            f'Read with {reader}("{self.turns}"), say; docs/statistics.md explains the columns.',
        ]


def _counted(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"


def write_tables(
    records: Sequence[Path],
    folder: Path,
    table_format: str,
    on_progress: Callable[[int, int], None],
    *,
    overwrite: bool = False,
) -> Tables:
    """Write ``matches`` and ``turns`` of records to a folder; none takes its name half-written.

    Args:
        records: match records; a file that stands there twice counts once.
        folder: is made if it is not there.
        table_format: a key of ``FORMATS``, and the ending of the files' names.
        on_progress: is told how many records are done, of how many.
        overwrite: replace tables that are there.

    Raises:
        RecordError: a record is damaged; the message names it, the line and what is wrong.
        OSError: the folder or a file cannot be written, or a table is there already.
    """
    unique: dict[Path, Path] = {}
    for path in records:
        unique.setdefault(path.resolve(), path)
    first, second = targets = tuple(folder / f"{name}.{table_format}" for name in TABLES)
    for target in targets:
        if target.is_dir() or (target.exists() and not overwrite):
            hint = "is a folder" if target.is_dir() else "is there already; --overwrite replaces it"
            raise FileExistsError(f"{target}: {hint}")
    with _made(folder), contextlib.ExitStack() as stack:
        # All drafts first: so no table takes its place before the other is closed.
        drafts = [stack.enter_context(replacing(target)) for target in targets]
        matches, turns = (
            stack.enter_context(_open_table(draft, schema_of(columns), table_format))
            for draft, columns in zip(drafts, TABLES.values(), strict=True)
        )
        in_progress = 0
        for done, path in enumerate(unique.values(), start=1):
            replay = MatchReplay(path)
            matches.add(_match_row(replay, turns))
            in_progress += replay.result is None
            on_progress(done, len(unique))
    return Tables(first, second, matches.rows, turns.rows, in_progress)


@contextlib.contextmanager
def _made(folder: Path) -> Iterator[None]:
    """Make a folder for what is done inside, and unmake it if that fails."""
    new = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(f"{folder}: no folder for tables: {error.strerror}") from error
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            for each in new:
                each.rmdir()
        raise


class _Table:
    """Takes rows and hands them on, many at a time.

    Args:
        sink: has ``write_table``.
        schema: of the rows.
    """

    def __init__(self, sink: Any, schema: Any) -> None:
        self.rows = 0
        self._sink = sink
        self._schema = schema
        self._held: dict[str, list[Any]] = {name: [] for name in schema.names}

    def add(self, row: Row) -> None:
        """Take a row, which has a value for every column."""
        for name, value in row.items():
            self._held[name].append(value)
        self.rows += 1
        if self.rows % max(1, CELLS_AT_ONCE // len(self._held)) == 0:
            self.flush()

    def flush(self) -> None:
        """Hand on what is held."""
        self._sink.write_table(pa.table(self._held, schema=self._schema))
        self._held = {name: [] for name in self._held}


@contextlib.contextmanager
def _open_table(path: Path, schema: Any, table_format: str) -> Iterator[_Table]:
    # Opened here, since Arrow cannot open every path that Python can.
    with path.open("xb") as file, FORMATS[table_format](file, schema) as sink:
        table = _Table(sink, schema)
        yield table
        table.flush()


def _readable(text: str) -> str:
    """Return text with what Unicode cannot write, such as bytes of a file name, as escapes."""
    plain = text.encode(errors="ignore").decode() == text
    return text if plain else text.replace("\\", r"\\").encode(errors="backslashreplace").decode()


def _by_seat(name: str, values: Sequence[Any]) -> Row:
    return {f"{name}_{seat}": value for seat, value in zip(SEAT_NAMES, values, strict=True)}


# --- A row a match


def _match_row(replay: MatchReplay, turns: _Table) -> Row:
    """Replay a match and return its row; the rows of its turns are added to ``turns``."""
    header = replay.header
    record, agents = _readable(str(replay.path)), [_readable(name) for name in header.agents]
    tallies: list[Counter[str]] = [Counter() for _ in SEAT_NAMES]
    state = header.start
    for replayed in replay:
        row = _turn_row(replayed, state)
        turns.add({"record": record, "agent": agents[replayed.turn.seat], **row})
        _tally(tallies, replayed.turn.seat, row)
        state = replayed.turn.after
    return {
        "record": record,
        "mode": header.mode,
        "rules": replay.ruleset.digest,
        "seed": header.seed,
        "from_start": state_to_json(replay.start) == state_to_json(new_game(replay.ruleset)),
        "length": sum(tally["turns"] for tally in tallies),
        "clock_seconds": state.clock_seconds,
        **_by_seat("agent", agents),
        **_ending(replay, state),
        **{
            column: value
            for name in ("turns", "backward", *SUMMED, "captured", "lost")
            for column, value in _by_seat(name, [tally[name] for tally in tallies]).items()
        },
    }


def _tally(tallies: Sequence[Counter[str]], mover: int, row: Row) -> None:
    """Add a turn to what each seat has done and suffered."""
    own = tallies[mover]
    own["turns"] += 1
    own["backward"] += row["direction"] == DIRECTION_NAMES[BACKWARD]
    for name in SUMMED:
        own[name] += row[name]
    for seat, tally in zip(SEAT_NAMES, tallies, strict=True):
        tally["captured"] += row[f"captured_{seat}"]
        tally["lost"] += row[f"lost_{seat}"]


def _ending(replay: MatchReplay, state: StateModel) -> Row:
    """Return the columns that are null until a match is over."""
    result = replay.result
    ending: dict[str, Sequence[Any]] = dict.fromkeys(
        ("place", "total", "progression", "combat", "bonus", "finish_position"),
        [None] * len(SEAT_NAMES),
    )
    if result is not None:
        order = {seat: position for position, seat in enumerate(result.finish_order, start=1)}
        ending = {
            "place": result.places,
            "total": result.totals,
            "progression": [sum(pieces) for pieces in state.progression],
            "combat": state.combat,
            "bonus": state.bonus,
            "finish_position": [order.get(seat) for seat in range(len(SEAT_NAMES))],
        }
    columns: Row = {"finished": result is not None, "reason": result and result.reason}
    for name, values in ending.items():
        columns |= _by_seat(name, values)
    return columns


# --- A row a turn


def _turn_row(replayed: Replayed, before: StateModel) -> Row:
    """Return a turn's row but for the record and the agent.

    Args:
        replayed: the turn, its state confirmed by the replay.
        before: the state before it.
    """
    turn, after = replayed.turn, replayed.turn.after
    was, now = ([sum(pieces) for pieces in each.progression] for each in (before, after))
    gained = {
        "progression": now[turn.seat] - was[turn.seat],
        "combat": after.combat[turn.seat] - before.combat[turn.seat],
        "bonus": after.bonus[turn.seat] - before.bonus[turn.seat],
    }
    # Only a capture lowers progression, and nobody captures its own pieces.
    lost = [0 if seat == turn.seat else was[seat] - now[seat] for seat in range(len(was))]
    totals = [sum(parts) for parts in zip(now, after.combat, after.bonus, strict=True)]
    row: Row = {
        "turn": turn.turn,
        "seat": SEAT_NAMES[turn.seat],
        "seat_turn": before.turns_taken[turn.seat],
        "dice": len(turn.rolled),
        "rolled": " ".join(map(str, turn.rolled)),
        "credits_earned": turn.credits_earned,
        "direction": turn.direction,
        "noble_steps": turn.noble.steps,
        "noble_when": turn.noble.when,
        "store": sum(after.store[turn.seat]),
        "credits": after.credits[turn.seat],
        **gained,
        "points": sum(gained.values()),
        **_events_row(replayed.log),
        **_by_seat("lost", lost),
        **_by_seat("total", totals),
        "clock_seconds": after.clock_seconds,
    }
    for guard, rolls in zip(GUARD_NAMES, turn.guards, strict=True):
        row |= {f"rolls_{guard}": len(rolls), f"steps_{guard}": sum(rolls)}
    return row


def _events_row(log: Record) -> Row:
    """Return the columns that count what happened in a turn.

    Args:
        log: ``LOG``, as the engine filled it in the replay.
    """
    events = log["rows"][: log["count"]].tolist()
    counts = Counter(event[KIND] for event in events)
    captures = [event for event in events if event[KIND] == CAPTURE]
    stops = [event for event in events if event[KIND] == BLOCKED]
    victims = Counter(event[DETAIL] for event in captures)
    return {
        "captures": len(captures),
        "nobles_captured": sum(event[PIECE] == NOBLE for event in captures),
        "exits": counts[EXIT],
        "checkpoints": counts[CHECKPOINT],
        "midpoints": counts[MIDPOINT],
        "homes": counts[HOME],
        "blocked": len(stops),
        "trimmed": sum(event[DETAIL] for event in stops),
        "penalty": -sum(event[POINTS] for event in stops),
        "finished": counts[FINISH] > 0,
        **_by_seat("captured", [victims[seat] for seat in range(len(SEAT_NAMES))]),
    }

"""The columns of the statistics tables, each described once, and the page that lists them.

``python -m retinue.evaluation.table_columns docs/statistics.md`` brings a page up to date.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from retinue.envs.document import with_part
from retinue.envs.game.board import GUARDS, SEAT_NAMES

GUARD_NAMES: Final = tuple(f"g{guard + 1}" for guard in range(GUARDS))
HEAD: Final = ("| column | type | unit | meaning |", "|---|---|---|---|")

STANDS_FOR: Final = {SEAT_NAMES: "SEAT", GUARD_NAMES: "GUARD"}

# Not smaller, although most counts would fit: `captures * 100` of 8 bits overflows without a word,
# and in the files they take no more room.
COUNT, LARGE = pa.int32(), pa.int64()
BOOL, TEXT = pa.bool_(), pa.string()
CATEGORY: Final = pa.dictionary(pa.int8(), TEXT)
"""One of a few names: a category in pandas and polars."""


@dataclass(frozen=True)
class Column:
    """A column, or one for each seat or Guard, whose name is then its last part."""

    name: str
    type: Any
    unit: str
    meaning: str
    each: tuple[str, ...] = ()
    nullable: bool = False

    def fields(self) -> Iterator[Any]:
        """Yield the Arrow field of every column meant."""
        for name in [f"{self.name}_{each}" for each in self.each] or [self.name]:
            yield pa.field(name, self.type, nullable=self.nullable)

    def row(self) -> str:
        """Return the column as a row of a Markdown table."""
        name = f"{self.name}_{STANDS_FOR[self.each]}" if self.each else self.name
        kind = "category" if self.type == CATEGORY else str(self.type)
        kind += " or null" if self.nullable else ""
        return f"| `{name}` | {kind} | {self.unit} | {self.meaning} |"


def _by_seat(name: str, kind: Any, unit: str, meaning: str, *, null: bool = False) -> Column:
    return Column(name, kind, unit, meaning, SEAT_NAMES, null)


_COUNTS: Final = {
    "dice": ("dice", "dice that it rolled"),
    "credits_earned": ("credits", "exit credits that its rolls added"),
    "noble_steps": ("steps", "steps chosen for its Noble, blocked or not"),
    "captures": ("pieces", "pieces of other seats that it captured"),
    "nobles_captured": ("pieces", "Nobles among these"),
    "exits": ("pieces", "its pieces that left the Yard"),
    "checkpoints": ("checkpoints", "Castles and entering tiles that its pieces scored"),
    "midpoints": ("pieces", "its pieces that reached their midpoint"),
    "homes": ("pieces", "its pieces that reached Home"),
    "blocked": ("pieces", "its pieces that a stack stopped; for the Noble also its own"),
    "trimmed": ("steps", "steps that these lost"),
    "penalty": ("points", "what that took off its combat score, 0 or more"),
}
"""What a turn counts for the seat that moves, and a match adds up for each seat: unit, meaning."""
SUMMED: Final = tuple(_COUNTS)


def _of_a_turn(*names: str) -> Iterator[Column]:
    for name in names:
        unit, meaning = _COUNTS[name]
        yield Column(name, LARGE if unit == "points" else COUNT, unit, meaning)


def _of_a_match(*names: str) -> Iterator[Column]:
    for column in _of_a_turn(*names):
        yield replace(column, each=SEAT_NAMES)


MATCH_COLUMNS: Final = (
    Column("record", TEXT, "", "path of the record's file as the command found it: the key"),
    Column("mode", CATEGORY, "", "`journey` or `brawl`"),
    Column("rules", TEXT, "", "digest of all rule numbers: equal for equal rules"),
    Column("seed", LARGE, "", "seed of the dice; null when they came from elsewhere", (), True),
    Column("from_start", BOOL, "", "whether the record begins with a new match, not in its middle"),
    Column("finished", BOOL, "", "whether the match is over; else it is in progress"),
    Column("reason", CATEGORY, "", "why it ended: `finished` (all seats) or `clock`", (), True),
    Column("length", COUNT, "turns", "turns of all seats together"),
    Column("clock_seconds", COUNT, "seconds", "what is left on the clock"),
    _by_seat("agent", TEXT, "", "name of the agent that had the seat"),
    _by_seat("place", COUNT, "1 ... 4", "its place; equal totals share the better one", null=True),
    _by_seat("total", LARGE, "points", "progression + combat + bonus", null=True),
    _by_seat("progression", LARGE, "points", "progression of its pieces at the end", null=True),
    _by_seat("combat", LARGE, "points", "from captures, less the penalty", null=True),
    _by_seat("bonus", LARGE, "points", "for finishing", null=True),
    _by_seat(
        "finish_position",
        COUNT,
        "1 ... 4",
        "1 for the seat that finished first; null for one that did not finish",
        null=True,
    ),
    _by_seat("turns", COUNT, "turns", "turns that it took"),
    _by_seat("backward", COUNT, "turns", "turns among these that went backward"),
    *_of_a_match(*SUMMED),
    _by_seat("captured", COUNT, "pieces", "its pieces that others captured"),
    _by_seat("lost", LARGE, "points", "progression that it lost with them"),
)

TURN_COLUMNS: Final = (
    Column("record", TEXT, "", "as in `matches`"),
    Column("turn", COUNT, "", "number of the turn in the match, from 0"),
    Column("seat", CATEGORY, "", "seat that moves: `green`, `red`, `blue` or `yellow`"),
    Column("seat_turn", COUNT, "", "number of the turn among the seat's own, from 0"),
    Column("agent", TEXT, "", "name of the agent that has the seat"),
    *_of_a_turn("dice"),
    Column("rolled", TEXT, "", "values in the order in which the dice fell, such as `3 6 1`"),
    *_of_a_turn("credits_earned"),
    Column("direction", CATEGORY, "", "`forward` or `backward`"),
    *_of_a_turn("noble_steps"),
    Column("noble_when", CATEGORY, "", "`before` or `after` the Guards; `before` if it stays"),
    Column("rolls", COUNT, "rolls", "rolls given to the Guard", GUARD_NAMES),
    Column("steps", COUNT, "steps", "what these add up to, blocked or not", GUARD_NAMES),
    Column("store", COUNT, "rolls", "rolls kept: its store after the turn"),
    Column("credits", COUNT, "credits", "its exit credits after the turn"),
    Column("progression", LARGE, "points", "progression that its pieces scored"),
    Column("combat", LARGE, "points", "from captures, less the penalty"),
    Column("bonus", LARGE, "points", "for finishing"),
    Column("points", LARGE, "points", "progression + combat + bonus"),
    *_of_a_turn("captures", "nobles_captured", "exits", "checkpoints", "midpoints", "homes"),
    *_of_a_turn("blocked", "trimmed", "penalty"),
    Column("finished", BOOL, "", "whether this turn brought its last piece Home"),
    _by_seat("captured", COUNT, "pieces", "pieces of this seat that were captured"),
    _by_seat("lost", LARGE, "points", "progression that this seat lost with them"),
    _by_seat("total", LARGE, "points", "this seat's total after the turn"),
    Column("clock_seconds", COUNT, "seconds", "what is left on the clock after the turn"),
)

TABLES: Final = {"matches": MATCH_COLUMNS, "turns": TURN_COLUMNS}
"""The columns of each table, by its name."""


def schema_of(columns: Sequence[Column]) -> Any:
    """Return the Arrow schema of a table."""
    return pa.schema([field for column in columns for field in column.fields()])


def renew(text: str) -> str:
    """Return the page with its lists of columns brought up to date.

    Raises:
        ValueError: the marks of a generated part are missing.
    """
    for table, columns in TABLES.items():
        rows = "\n".join([*HEAD, *(column.row() for column in columns)])
        text = with_part(text, f"columns of {table}", rows)
    return text


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(renew(page.read_text(encoding="utf-8")), encoding="utf-8")

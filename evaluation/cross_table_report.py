"""What a cross table looks like: in the terminal, and as the generated part of a page."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from retinue.evaluation.cross_table import CrossTable
from retinue.evaluation.pages import check_part, renew_part
from retinue.evaluation.text import printable

PART: Final = "cross table"
"""Title of the generated part of a page."""
NEVER: Final = "–"
"""In place of an agent's share against itself."""


def short_labels(agents: Sequence[str]) -> list[str]:
    """Return short names: without options where no other agent has the same."""
    starts = [spec.partition(":")[0] for spec in agents]
    return [
        start if starts.count(start) == 1 else spec
        for spec, start in zip(agents, starts, strict=True)
    ]


def _rows(table: CrossTable, digits: int) -> Iterator[list[str]]:
    """Yield the numbers of each agent's row: shares, their mean, mean total, microseconds."""
    for one in table.header.agents:
        cells = [table.cells.get((one, three)) for three in table.header.agents]
        known = [cell for cell in cells if cell is not None]
        shares = [
            NEVER if three == one else "" if cell is None else f"{100 * cell.share:.{digits}f}"
            for three, cell in zip(table.header.agents, cells, strict=True)
        ]
        means = ["", ""]
        if known:
            means = [
                f"{100 * sum(cell.share for cell in known) / len(known):.{digits}f}",
                f"{sum(cell.total for cell in known) / len(known):,.0f}",
            ]
        speed = table.speeds.get(one)
        yield [*shares, *means, _microseconds(speed.microseconds) if speed else ""]


def _microseconds(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def _widest(table: CrossTable) -> float:
    """Return how far an interval reaches to one side at most, in percent."""
    sides = [max(cell.share - cell.low, cell.high - cell.share) for cell in table.cells.values()]
    return 100 * max(sides, default=0.0)


def _forfeits(table: CrossTable) -> str:
    count = sum(cell.forfeited for cell in table.cells.values())
    return f" {count:,} turns were forfeited." if count else ""


def as_rich(table: CrossTable) -> Table:
    """Return a table for the terminal, complete or not; columns are numbered as the rows are."""
    header = table.header
    drawn = Table(box=SIMPLE, show_edge=False, padding=0)
    drawn.add_column("one \\ three", min_width=12)  # 12 agents fit 80 columns
    for number in range(1, len(header.agents) + 1):
        drawn.add_column(str(number), justify="right", no_wrap=True)
    for name in ("mean", "total", "µs"):
        drawn.add_column(name, justify="right", no_wrap=True)
    for number, (label, row) in enumerate(
        zip(short_labels(header.agents), _rows(table, 0), strict=True), 1
    ):
        drawn.add_row(Text(f"{number} {printable(label)}"), *row)
    return drawn


def in_words(table: CrossTable) -> str:
    """Return the line that goes with :func:`as_rich`."""
    header = table.header
    return (
        f"{header.mode.capitalize()}: first places in percent, par 25; {header.matches:,} matches "
        f"a cell, {len(table.cells):,} of {table.size:,} played; 95% intervals reach at most "
        f"{_widest(table):.1f} to either side.{_forfeits(table)}\n"
    )


def as_markdown(tables: Sequence[CrossTable]) -> str:
    """Return complete tables as the generated part of a page, one below the other."""
    parts: list[str] = []
    for table in tables:
        header = table.header
        labels = [f"`{printable(label)}`" for label in short_labels(header.agents)]
        heads = ["one \\ three of", *labels, "mean", "total", "µs"]
        lines = [heads, ["---", *["--:"] * (len(heads) - 1)]]
        lines += [[label, *row] for label, row in zip(labels, _rows(table, 1), strict=True)]
        processors = sorted({speed.processor for speed in table.speeds.values()})
        last = header.seed + header.matches // 4 - 1
        parts += [
            f"### {header.mode.capitalize()}",
            "\n".join(f"| {' | '.join(line)} |" for line in lines),
            f"{header.matches:,} matches a cell: dice of the seeds {header.seed} to {last}, each "
            f"from all four seats. 95% intervals reach at most {_widest(table):.1f} to either "
            f"side.{_forfeits(table)} Rules {header.rules}; speed on {', '.join(processors)}.",
        ]
    long = [f"`{printable(spec)}`" for spec in tables[0].header.agents if ":" in spec]
    if long:
        parts.append(f"In full: {', '.join(long)}.")
    return "\n\n".join(parts)


def check_page(page: Path) -> None:
    """Check that a page has a part for the tables, before the work for them is done.

    Raises:
        OSError: it cannot be written.
        SchemaError: it cannot be read, or has no such part.
    """
    check_part(page, PART)


def renew_page(page: Path, tables: Sequence[CrossTable]) -> None:
    """Bring the generated part of a page up to date.

    Raises:
        OSError: the page cannot be written.
        SchemaError: it cannot be read, or has no such part.
    """
    renew_part(page, PART, as_markdown(tables))

"""What a tournament looks like: a report, tables for programs, for the terminal and for pages."""

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from retinue.envs.game.board import SEAT_NAMES
from retinue.envs.game.files import write_atomically
from retinue.envs.tally import PATHS
from retinue.evaluation.cross_table_report import short_labels
from retinue.evaluation.pages import check_part, renew_part
from retinue.evaluation.plots import PLACE_NAMES, SAVED, save_plots
from retinue.evaluation.summary import AgentSummary, Interval, TournamentSummary
from retinue.evaluation.text import printable
from retinue.evaluation.tournament_columns import ARROWS
from retinue.evaluation.tournament_html import as_html
from retinue.evaluation.tournament_words import (
    NOTHING,
    headline,
    luck_in_words,
    number,
    percent,
    pinned,
    reach,
    signed,
)

REPORT: Final = "report.html"
PART: Final = "tournament"
"""Title of the generated part of a page."""


def write_report(summary: TournamentSummary, path: Path) -> None:
    """Write the report as one HTML file.

    Raises:
        OSError: it cannot be written.
    """
    write_atomically(path, as_html(summary))


def write_all(summary: TournamentSummary, folder: Path) -> Path:
    """Write the report and the tables, and return the report's path.

    Raises:
        OSError: a file cannot be written.
    """
    write_tables(summary, folder)
    write_report(summary, folder / REPORT)
    return folder / REPORT


# --- Tables for programs


def _fields(agent: AgentSummary) -> Iterator[tuple[str, Any]]:
    """Yield the columns of an agent: all but what is by round or by tile."""
    names = {
        "places": ("1", "2", "3", "4"),
        "guard_paths": PATHS,
        "noble_paths": PATHS,
        "by_seat": SEAT_NAMES,
    }
    for field in AgentSummary.model_fields:
        value = getattr(agent, field)
        if isinstance(value, Interval):
            yield from (
                (field, value.value),
                (f"{field}_low", value.low),
                (f"{field}_high", value.high),
            )
        elif field in names:
            parts = value or (None,) * len(names[field])
            for part, each in zip(names[field], parts, strict=True):
                yield f"{field}_{part.replace(' ', '_')}", each
        elif not isinstance(value, tuple):
            yield field, value


def _meeting_rows(summary: TournamentSummary) -> Iterator[dict[str, Any]]:
    """Yield a row for each agent and each other, met or not."""
    for one, meetings, above in zip(summary.agents, summary.meetings, summary.above, strict=True):
        for other, meeting, share in zip(summary.agents, meetings, above, strict=True):
            if one is other:
                continue
            yield {
                "one": one.name,
                "other": other.name,
                "ahead": meeting and meeting.ahead.value,
                "ahead_low": meeting and meeting.ahead.low,
                "ahead_high": meeting and meeting.ahead.high,
                "points": meeting and meeting.points,
                "blocks": meeting.blocks if meeting else 0,
                "rates_above": share,
            }


def _csv(rows: Sequence[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def write_tables(summary: TournamentSummary, folder: Path) -> list[Path]:
    """Write ``summary.json``, ``agents.csv`` and ``head_to_head.csv``, and return their paths.

    The folder is made if it is not there. What is by round or by tile stands in the JSON alone.

    Raises:
        OSError: a file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        "summary.json": summary.model_dump_json(indent=1) + "\n",
        "agents.csv": _csv([dict(_fields(agent)) for agent in summary.agents]),
        "head_to_head.csv": _csv(list(_meeting_rows(summary))),
    }
    for name, text in texts.items():
        write_atomically(folder / name, text)
    return [folder / name for name in texts]


# --- Tables for the terminal and for a page


def _rating_reach(agent: AgentSummary) -> str:
    return f"{signed(agent.rating.low)} to {signed(agent.rating.high)}"


def as_rich(summary: TournamentSummary) -> Table:
    """Return the ratings as a table for the terminal; it fits 80 columns."""
    table = Table(box=SIMPLE, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column("agent", overflow="fold")
    for name in ("rating (95%)", "first % (95%)", "place", "total"):
        table.add_column(name, justify="right", no_wrap=True)
    labels = short_labels([agent.name for agent in summary.agents])
    for label, agent in zip(labels, summary.agents, strict=True):
        table.add_row(
            Text(printable(label)),
            f"{signed(agent.rating.value)} ({_rating_reach(agent)})",
            f"{percent(agent.first.value)} ({reach(agent.first, 1, 100)})",
            number(agent.place, 2),
            number(agent.total.value),
        )
    return table


def _code(name: str) -> str:
    """Return a name as code in Markdown."""
    return f"`{printable(name).replace('`', '?')}`"


def _markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [" | ".join(heads), " | ".join(["---", *["--:"] * (len(heads) - 1)])]
    lines += [" | ".join(cell.replace("|", "\\|") for cell in row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def _compact(label: str, agent: AgentSummary) -> list[str]:
    """Return an agent's row of the second table."""
    return [
        label,
        *(percent(share, 0) for share in agent.places),
        *(number(each) for each in (agent.progression, agent.captures, agent.bonus, agent.penalty)),
        number(agent.guards_captured + agent.nobles_captured, 1),
        number(agent.guards_lost + agent.nobles_lost, 1),
        number(agent.homes, 1),
        *([percent(share, 0) for share in agent.guard_paths] or [NOTHING] * len(PATHS)),
    ]


def as_markdown(summary: TournamentSummary, pictures: str = "") -> str:
    """Return the ratings, and more of each agent, as the generated part of a page.

    Args:
        summary: of the tournament.
        pictures: the folder of the plots of :func:`~retinue.evaluation.plots.save_plots`, as the
            page calls it; without it they are not shown.
    """
    names = [agent.name for agent in summary.agents]
    labels = [_code(label) for label in short_labels(names)]
    rows = [
        [
            label,
            signed(agent.rating.value),
            _rating_reach(agent),
            percent(agent.first.value),
            reach(agent.first, 1, 100),
            number(agent.place, 2),
            number(agent.total.value),
        ]
        for label, agent in zip(labels, summary.agents, strict=True)
    ]
    heads = ("agent", "rating", "95%", "first %", "95%", "place", "total")
    more = (
        *("agent", *PLACE_NAMES, "progression", "captures", "bonus", "penalty"),
        *("captured", "lost", "Homes", *ARROWS),
    )
    last = summary.seed + summary.blocks - 1
    shown = [f"![{words}]({pictures}/{name})" for name, (_, words) in SAVED.items() if pictures]
    luck = [] if summary.luck is None else [luck_in_words(summary.luck, _code)]
    long = [_code(name) for name, label in zip(names, labels, strict=True) if _code(name) != label]
    return "\n\n".join(
        [
            f"### {summary.mode.capitalize()}",
            " ".join(headline(summary, _code)),
            _markdown(heads, rows),
            f"{summary.blocks:,} blocks of four matches, with dice of the seeds {summary.seed} to "
            f"{last}. Rating 0: {pinned(summary, _code)}. Rules {summary.rules}.",
            _markdown(more, list(map(_compact, labels, summary.agents))),
            "Places in percent; mean points by source; pieces of others captured, own ones lost "
            "and own ones that came Home, a match; and, in percent, the paths of Guards that came "
            "past the midpoint: → is forward, ← backward, to the midpoint and then from it.",
            *luck,
            *shown,
            *([f"In full: {', '.join(long)}."] if long else []),
        ]
    )


def check_page(page: Path) -> None:
    """Check that a page has a part for tournaments, before the work for them is done.

    Raises:
        OSError: it cannot be written.
        SchemaError: it cannot be read, or has no such part.
    """
    check_part(page, PART)


def renew_page(page: Path, summaries: Sequence[TournamentSummary]) -> None:
    """Bring the generated part of a page up to date, its plots in a folder a mode beside it.

    Raises:
        OSError: the page or a plot cannot be written.
        SchemaError: the page cannot be read, or has no such part.
    """
    parts = []
    for summary in summaries:
        folder = page.with_name(f"{page.stem}-{summary.mode}")
        save_plots(summary, folder)
        parts.append(as_markdown(summary, folder.name))
    renew_part(page, PART, "\n\n".join(parts))

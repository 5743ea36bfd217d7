"""A tournament's report: one page of HTML that needs nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.colors import to_hex

from retinue.envs.game.board import SEAT_NAMES
from retinue.evaluation import plots
from retinue.evaluation import tournament_columns as columns
from retinue.evaluation.heat_maps import board, heat_maps
from retinue.evaluation.summary import AgentSummary, Meeting, TournamentSummary
from retinue.evaluation.text import printable
from retinue.evaluation.tournament_words import (
    headline,
    luck_in_words,
    number,
    percent,
    pinned,
    reach,
    short_names,
    signed,
)

TEMPLATES: Final = Path(__file__).parent / "templates"
TEMPLATE: Final = "report.html"


@dataclass(frozen=True)
class Named:
    """An agent as the report shows it."""

    label: str
    name: str
    colour: str
    summary: AgentSummary


@dataclass(frozen=True)
class Versus:
    """A cell of the table of meetings: its numbers, words to them, and the colours of both."""

    share: str
    interval: str
    points: str
    words: str
    colour: str
    ink: str


def _named(summary: TournamentSummary) -> list[Named]:
    names = [agent.name for agent in summary.agents]
    shown = zip(short_names(names), names, plots.agent_colours(names), summary.agents, strict=True)
    return [Named(label, printable(name), colour, agent) for label, name, colour, agent in shown]


def _versus(one: Named, other: Named, meeting: Meeting | None, above: float) -> Versus | None:
    if meeting is None:
        return None
    colour = plots.share_colour(meeting.ahead.value)
    return Versus(
        percent(meeting.ahead.value, 0),
        reach(meeting.ahead, 0, 100),
        signed(meeting.points),
        f"{one.label} beside {other.label}, in {meeting.blocks:,} blocks; rates above it in "
        f"{percent(above)}% of the resamples",
        to_hex(colour),
        plots.ink_on(colour),
    )


def _meetings(summary: TournamentSummary, agents: Sequence[Named]) -> list[list[Versus | None]]:
    return [
        [_versus(one, *cell) for cell in zip(agents, meetings, above, strict=True)]
        for one, meetings, above in zip(agents, summary.meetings, summary.above, strict=True)
    ]


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": number, "percent": percent, "reach": reach}
    return environment


def as_html(summary: TournamentSummary) -> str:
    """Return the report: one page that needs nothing else."""
    agents = _named(summary)
    return (
        _environment()
        .get_template(TEMPLATE)
        .render(
            summary=summary,
            agents=agents,
            shortened=[agent for agent in agents if agent.label != agent.name],
            headline=headline(summary),
            luck=luck_in_words(summary.luck),
            pinned=pinned(summary),
            # What Matplotlib writes is SVG, with names escaped by it.
            plots={draw.__name__: Markup(plots.as_svg(draw(summary))) for draw in plots.FIGURES},
            tables=columns,
            meetings=_meetings(summary, agents),
            seats=list(zip(SEAT_NAMES, summary.seats, strict=True)),
            board=board(),
            maps=list(zip(agents, heat_maps(summary), strict=True)),
        )
    )

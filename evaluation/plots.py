"""Plots of a tournament, as figures and as SVG.

Matplotlib's global state stays as it is: figures are made without ``pyplot``, and the style holds
only while one is made or written. Widths suit a phone; a page may draw them larger.
"""

import contextlib
import io
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from matplotlib import colormaps, style
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator, StrMethodFormatter
from matplotlib.transforms import ScaledTranslation

from retinue.envs.game.files import write_atomically
from retinue.evaluation.summary import TournamentSummary
from retinue.evaluation.tournament_words import number, pinned, short_names, signed

AGENT_COLOURS: Final = (
    *("#4422aa", "#cc2200", "#33bbff", "#dd99aa", "#551133", "#ff8811"),
    *("#99aa66", "#885588", "#770011", "#7777ff", "#441166", "#8800ff"),
)
"""Told apart with every common kind of colour blindness; a test measures it."""
PLACE_COLOURS: Final = ("#08306b", "#2e7ebc", "#93c4df", "#dfebf7")
PLACE_NAMES: Final = ("1st", "2nd", "3rd", "4th")
SOURCE_COLOURS: Final = {
    "progression": "#4477aa",
    "captures": "#ddaa33",
    "bonus": "#77bbcc",
    "penalty": "#bb5566",
}
SHARES: Final = "RdBu"
"""Diverging, and told apart with every common kind of colour blindness."""
INK: Final = "#1c2430"
QUIET: Final = "#5b6675"
GRID: Final = "#dde2e9"
LUMINANCE: Final = (0.2126, 0.7152, 0.0722)
HALF_WAY: Final = 0.215
"""Luminance of what differs as much from ``INK`` as from white."""

WIDTH: Final = 3.9
"""Inches."""
ROW: Final = 0.25
BAR: Final = 0.78
"""Of a row."""
LEAST_NAMED: Final = 7
"""Percent: a narrower bar has no room for its number."""
SMALL: Final = 8.0
"""Points: the smallest text."""
POINTS: Final = 72
LETTER: Final = 0.085
"""Inches: how wide a letter of a name is at most, on average."""

Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]

STYLE: Final[dict[str, Any]] = {
    "font.size": 9.0,
    "text.color": INK,
    "text.parse_math": False,  # a name may have a dollar sign
    "axes.edgecolor": GRID,
    "axes.labelcolor": QUIET,
    "axes.labelsize": SMALL,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "legend.fontsize": SMALL,
    "legend.handlelength": 1.0,
    "legend.handletextpad": 0.4,
    "legend.columnspacing": 1.2,
    "xtick.labelsize": SMALL,
    "xtick.color": GRID,
    "xtick.labelcolor": QUIET,
    "ytick.color": GRID,
    "ytick.labelcolor": INK,
    "svg.fonttype": "none",
}
NO_METADATA: Final = dict.fromkeys(("Date", "Creator", "Format", "Type"))


@contextlib.contextmanager
def styled(**more: str) -> Iterator[None]:
    """Hold the style, whatever a user's own settings are."""
    with style.context([STYLE, more], after_reset=True):
        yield


def agent_colours(names: Sequence[str]) -> list[str]:
    """Return a colour for each agent: the same whenever the same agents meet, whoever wins."""
    order = sorted(names)
    return [AGENT_COLOURS[order.index(name) % len(AGENT_COLOURS)] for name in names]


def ink_on(colour: Any) -> str:
    """Return the colour of text on a background, dark or white: that which differs more."""
    parts = np.array(to_rgb(colour))
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return INK if linear @ LUMINANCE > HALF_WAY else "white"


def share_colour(share: float) -> tuple[float, float, float]:
    """Return the colour of a share from 0 to 1: white at a half, blue above, red below."""
    # Without the darkest, so that small print can be read on all of them.
    return to_rgb(colormaps[SHARES](0.2 + 0.6 * share))


def _names(summary: TournamentSummary) -> list[str]:
    return [agent.name for agent in summary.agents]


def new_figure(name: str, width: float, height: float) -> tuple[Figure, Axes]:
    """Return an empty figure; its name, in its label, keeps the ids in its SVG its own."""
    layout = ConstrainedLayoutEngine(w_pad=0.03, h_pad=0.03)
    figure = Figure(figsize=(width, height), layout=layout, label=name)
    return figure, figure.add_subplot()


def _figure_of_rows(summary: TournamentSummary, name: str, extra: float) -> tuple[Figure, Axes]:
    """Return a figure with a row for each agent, the strongest on top."""
    count = len(summary.agents)
    figure, axes = new_figure(name, WIDTH, ROW * count + extra)
    axes.set_ylim(count - 0.45, -0.55)
    axes.set_yticks(range(count), short_names(_names(summary)))
    axes.tick_params("y", length=0, pad=13)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")
    axes.scatter(
        np.zeros(count),
        range(count),
        s=34,
        c=agent_colours(_names(summary)),
        marker="s",
        transform=axes.get_yaxis_transform()
        + ScaledTranslation(-8 / POINTS, 0, figure.dpi_scale_trans),
        clip_on=False,
    )
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.xaxis.set_major_locator(whole_ticks())
    return figure, axes


def whole_ticks() -> MaxNLocator:
    """Return what puts at most six ticks on an axis, at whole numbers."""
    return MaxNLocator(6, steps=[1, 2, 5, 10], integer=True)


def _at_right(axes: Axes, texts: Sequence[str]) -> None:
    """Write a text behind each row."""
    for row, text in enumerate(texts):
        axes.annotate(
            text, (1, row), (4, 0), axes.get_yaxis_transform(), "offset points", va="center"
        )


def _bars(axes: Axes, lengths: Floats, starts: Floats, label: str, colour: str) -> None:
    """Draw a bar in each row."""
    rows = range(len(lengths))
    axes.barh(rows, lengths, BAR, starts, color=colour, edgecolor="white", label=label)


def _number_at(axes: Axes, x: float, y: float, value: float, colour: Any) -> None:
    """Write a whole number on a place of that colour."""
    axes.text(x, y, number(value), color=ink_on(colour), size=SMALL, ha="center", va="center")


def ratings(summary: TournamentSummary) -> Figure:
    """Return the ratings with their 95% intervals."""
    with styled():
        figure, axes = _figure_of_rows(summary, "ratings", 0.5)
        found = [agent.rating for agent in summary.agents]
        ends = np.array([(each.low, each.high) for each in found])
        known = [*(each.value for each in found), *ends[np.isfinite(ends)], 0.0]
        room = 0.04 * (max(known) - min(known)) or 1.0
        axes.set_xlim(min(known) - room, max(known) + room)
        axes.axvline(0, color=QUIET, linewidth=0.8)
        # A single block leaves an interval open: it then runs out of the plot.
        low, high = np.clip(ends, *axes.get_xlim()).T
        for row, colour in enumerate(agent_colours(_names(summary))):
            axes.plot((low[row], high[row]), (row, row), "|-", color=colour, markersize=7)
            axes.plot(found[row].value, row, "o", color=colour, markersize=5)
        _at_right(axes, [signed(each.value) for each in found])
        axes.set_xlabel(f"rating ({pinned(summary)} = 0), with 95% interval")
    return figure


def places(summary: TournamentSummary) -> Figure:
    """Return how often each agent had each place."""
    with styled():
        figure, axes = _figure_of_rows(summary, "places", 0.72)
        shares = 100 * np.array([agent.places for agent in summary.agents])
        starts = np.cumsum(shares, axis=1) - shares
        for place, (label, colour) in enumerate(zip(PLACE_NAMES, PLACE_COLOURS, strict=True)):
            width, left = shares[:, place], starts[:, place]
            _bars(axes, width, left, label, colour)
            for row in map(int, np.flatnonzero(width >= LEAST_NAMED)):
                _number_at(axes, left[row] + width[row] / 2, row, width[row], colour)
        axes.set_xlim(0, 100)
        axes.set_xlabel("share of matches in percent")
        figure.legend(loc="outside upper center", ncols=len(PLACE_NAMES))
    return figure


def sources(summary: TournamentSummary) -> Figure:
    """Return where the points of each agent come from, and what blockades cost it."""
    with styled():
        figure, axes = _figure_of_rows(summary, "sources", 0.9)
        rows = range(len(summary.agents))
        right = np.zeros(len(rows))
        for source, colour in SOURCE_COLOURS.items():
            points = np.array([getattr(agent, source) for agent in summary.agents])
            if source == "penalty":
                left, points = np.zeros(len(rows)), -points
            else:
                left, right = right, right + points
            _bars(axes, points, left, source, colour)
        totals = [agent.total.value for agent in summary.agents]
        (marks,) = axes.plot(totals, rows, "D", color=INK, markersize=5, mec="white")
        marks.set(label="total", clip_on=False)
        axes.axvline(0, color=QUIET, linewidth=0.8)
        axes.margins(x=0.02)
        _at_right(axes, [number(total) for total in totals])
        axes.set_xlabel("mean points in a match")
        figure.legend(loc="outside upper center", ncols=3)
    return figure


def apart(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return places at least ``gap`` from each other, as near as can be to those wanted.

    They are between ``low`` and ``high`` if there is room for all.
    """
    # Less a gap for each one below it, a place needs only not to fall below the one before.
    groups: list[list[float]] = []
    order = sorted(range(len(wanted)), key=wanted.__getitem__)
    for rank, index in enumerate(order):
        groups.append([wanted[index] - rank * gap])
        while len(groups) > 1 and np.mean(groups[-2]) > np.mean(groups[-1]):
            groups[-2:] = [groups[-2] + groups[-1]]
    highest = max(low, high - (len(wanted) - 1) * gap)
    flat = [min(max(low, float(np.mean(group))), highest) for group in groups for _ in group]
    found = [0.0] * len(wanted)
    for rank, index in enumerate(order):
        found[index] = flat[rank] + rank * gap
    return found


def rounds(summary: TournamentSummary) -> Figure:
    """Return the mean total of each agent after each round, named at the end of its line."""
    with styled():
        height = max(3.0, 0.19 * len(summary.agents) + 0.6)
        figure, axes = new_figure("rounds", WIDTH, height)
        ends = [agent.rounds[-1] for agent in summary.agents]
        last = max(len(agent.rounds) for agent in summary.agents)
        low = min(0.0, *(min(agent.rounds) for agent in summary.agents))
        high = max(1.0, *(max(agent.rounds) for agent in summary.agents))
        axes.set_xlim(0, last)
        axes.set_ylim(low - 0.03 * (high - low), high + 0.03 * (high - low))
        gap = 1.3 * SMALL * 1.06 * (high - low) / ((height - 0.5) * POINTS)
        named = zip(short_names(_names(summary)), apart(ends, gap, low, high), strict=True)
        for (name, at), agent, colour in zip(
            named, summary.agents, agent_colours(_names(summary)), strict=True
        ):
            axes.plot(range(1, len(agent.rounds) + 1), agent.rounds, color=colour, linewidth=1.6)
            leader = [(len(agent.rounds), agent.rounds[-1]), (1.08 * last, at)]
            axes.plot(*zip(*leader, strict=True), color=colour, linewidth=0.7, clip_on=False)
            axes.plot(*leader[1], "s", color=colour, markersize=5, clip_on=False)
            axes.annotate(
                name,
                leader[1],
                (6, 0),
                textcoords="offset points",
                size=SMALL,
                va="center",
                annotation_clip=False,
            )
        axes.grid(axis="y")
        axes.spines["left"].set_visible(False)
        axes.tick_params("y", length=0, labelcolor=QUIET, labelsize=SMALL)
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axes.xaxis.set_major_locator(whole_ticks())
        axes.yaxis.set_major_locator(whole_ticks())
        axes.set_xlabel("round")
        axes.set_ylabel("mean total")
    return figure


def head_to_head(summary: TournamentSummary) -> Figure:
    """Return how often the agent of each row came out ahead of that of each column."""
    with styled():
        count = len(summary.agents)
        names = short_names(_names(summary))
        side = max(0.27, min(0.45, 2.6 / count))
        room = 0.5 + max(map(len, names)) * LETTER
        width = max(WIDTH, side * count + room)
        figure, axes = new_figure("head to head", width, side * count + 0.3)
        for row, meetings in enumerate(summary.meetings):
            for column, meeting in enumerate(meetings):
                colour: Any = GRID if row == column else "#f4f6f9"
                if meeting is not None:
                    colour = share_colour(meeting.ahead.value)
                    _number_at(axes, column, row, 100 * meeting.ahead.value, colour)
                axes.fill_between(
                    (column - 0.47, column + 0.47), row - 0.47, row + 0.47, facecolor=colour
                )
        axes.set(xlim=(-0.5, count - 0.5), ylim=(count - 0.5, -0.5))
        numbers = [str(number) for number in range(1, count + 1)]
        axes.set_xticks(range(count), numbers)
        axes.set_yticks(
            range(count), [f"{no}  {name}" for no, name in zip(numbers, names, strict=True)]
        )
        axes.tick_params(length=0, labelcolor=INK, top=True, labeltop=True, labelbottom=False)
        axes.spines[:].set_visible(False)
    return figure


FIGURES: Final = (ratings, places, sources, rounds, head_to_head)
"""All plots of a tournament."""


def as_svg(figure: Figure) -> str:
    """Return a figure as SVG, without a prologue: fit for a file and for a place in HTML.

    Equal figures give equal text, and what is written in them stays text.
    """
    buffer = io.StringIO()
    salt = f"retinue {figure.get_label()}"
    with styled(**{"svg.hashsalt": salt}), warnings.catch_warnings():
        # Only measured with Matplotlib's font: a browser has others.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        figure.savefig(buffer, format="svg", metadata=NO_METADATA)
    text = buffer.getvalue()
    # Nothing refers to the ids of groups, which are the same in every figure.
    return re.sub(r'<g id="[^"]*"', "<g", text[text.index("<svg") :])


SAVED: Final[dict[str, tuple[Callable[[TournamentSummary], Figure], str]]] = {
    "ratings.svg": (ratings, "Ratings with their 95% intervals"),
    "places.svg": (places, "How often each agent had each place"),
    "sources.svg": (sources, "Where the points of each agent come from"),
    "rounds.svg": (rounds, "Mean total of each agent after each round"),
}
"""The plots of a page, and what they show, by name of their file."""


def save_plots(summary: TournamentSummary, folder: Path) -> list[Path]:
    """Write the plots of a page, and return their paths; the folder is made if it is not there.

    Raises:
        OSError: a file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, (draw, _) in SAVED.items():
        write_atomically(folder / name, as_svg(draw(summary)))
    return [folder / name for name in SAVED]

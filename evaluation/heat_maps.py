"""Heat maps on the drawing of the board, as what a template needs to draw them in SVG.

All is drawn as green sees it, so that an offset from the own entering tile is a tile.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from matplotlib import colormaps
from matplotlib.colors import to_hex

from retinue.envs.game.board import (
    CASTLES,
    ENTERING,
    FORWARD,
    LOOP,
    MIDPOINT,
    OTHER_ENTERING,
    QUARTER,
    SEAT_NAMES,
    SEATS,
    tile_number,
)
from retinue.envs.render_layout import DESIGN_SIZE, SEAT_COLOURS, Box, Layout, Point
from retinue.envs.render_shapes import CHEVRON, TOWER_SHAPE, placed
from retinue.evaluation.summary import AgentSummary, TournamentSummary
from retinue.evaluation.tournament_words import number

_LAYOUT: Final = Layout(DESIGN_SIZE)
STEPS: Final = 5
"""Colours in a legend."""
MOST: Final = 3
"""Tiles that are named below a map."""
SIGNIFICANT: Final = 0.0005
"""What is less is shown as nothing."""


@dataclass(frozen=True)
class Kind:
    """What a map shows.

    Attributes:
        title: of the map.
        unit: of its numbers.
        colours: name of a colour map from light to dark.
        values: of an agent, by loop offset.
    """

    title: str
    unit: str
    colours: str
    values: Callable[[AgentSummary], Sequence[float]]


KINDS: Final = (
    Kind("Where its pieces stand", "pieces after a turn", "Blues", lambda agent: agent.stood),
    Kind("Where they are captured", "pieces lost a match", "Oranges", lambda agent: agent.lost_at),
    Kind(
        "Where it captures", "pieces captured a match", "Purples", lambda agent: agent.captured_at
    ),
)


@dataclass(frozen=True)
class Tile:
    """A tile of a map: its box, its colour and what it says when pointed at."""

    box: Box
    colour: str
    words: str


@dataclass(frozen=True)
class HeatMap:
    """One agent's map of one kind.

    Attributes:
        kind: what it shows.
        tiles: by loop offset.
        whole: sum of all tiles.
        most: the tiles that have most.
        legend: colours and the values that they stand for.
    """

    kind: Kind
    tiles: list[Tile]
    whole: str
    most: str
    legend: list[tuple[str, str]]


@dataclass(frozen=True)
class Board:
    """The drawing that all maps share; places and shapes are in its own units.

    Attributes:
        view: its part that is shown: left, top, width, height.
        plates: the cross below the tiles.
        yards, paths: of each seat, with its colour.
        arrows: shapes on the own Home path.
        homes: triangle of each seat, with its colour.
        castles: shapes of towers.
        entering: shape of an arrow on each entering tile, with the seat's colour.
        own, midpoint: boxes of these tiles.
    """

    view: str
    plates: list[Box]
    yards: list[tuple[Box, str]]
    paths: list[tuple[Box, str]]
    arrows: list[str]
    homes: list[tuple[str, str]]
    castles: list[str]
    entering: list[tuple[str, str]]
    own: Box
    midpoint: Box


def _shape(points: Sequence[Point]) -> str:
    return " ".join(f"{x:.4g},{y:.4g}" for x, y in points)


def _middle(box: Box) -> Point:
    left, top, width, height = box
    return left + width / 2, top + height / 2


def _path(seat: int) -> Box:
    """Return the box of a seat's whole Home path."""
    edges = _LAYOUT.edges
    across = (edges[9] + 1, edges[10] - edges[9] - 2)
    near, far = (edges[11], edges[18]) if seat in (0, 1) else (edges[1], edges[8])
    along = (near + 1, far - near - 2)
    (x, width), (y, height) = (across, along) if seat % 2 == 0 else (along, across)
    return x, y, width, height


def board() -> Board:
    """Return the drawing of the board."""
    edges, boxes = _LAYOUT.edges, _LAYOUT.tiles
    first, low, high, last = (edges[index] for index in (0, 8, 11, 19))
    colours = ["#{:02x}{:02x}{:02x}".format(*colour) for colour in SEAT_COLOURS]
    corners = ((low, high), (high, high), (high, low), (low, low))
    centre = ((low + high) / 2, (low + high) / 2)
    starts = [boxes[QUARTER * seat] for seat in range(SEATS)]
    own_path = _path(0)
    return Board(
        f"{first - 4} {first - 4} {last - first + 8} {last - first + 8}",
        [(first, low, last - first, high - low), (low, first, high - low, last - first)],
        [(_LAYOUT.card(seat), colours[seat]) for seat in range(SEATS)],
        [(_path(seat), colours[seat]) for seat in range(SEATS)],
        [
            _shape(placed(CHEVRON, (_middle(own_path)[0], own_path[1] + share * own_path[3]), 9, 2))
            for share in (0.15, 0.5, 0.85)
        ],
        [
            (_shape((corners[seat], corners[(seat + 1) % SEATS], centre)), colours[seat])
            for seat in range(SEATS)
        ],
        [_shape(placed(TOWER_SHAPE, _middle(boxes[offset]), 9)) for offset in CASTLES],
        [
            (_shape(placed(CHEVRON, _middle(box), 8, (1 - seat) % SEATS)), colours[seat])
            for seat, box in enumerate(starts)
        ],
        starts[0],
        boxes[MIDPOINT],
    )


def _called(offset: int) -> str:
    """Return the name of a tile."""
    name = f"tile {tile_number(offset, FORWARD)}"
    if offset == ENTERING:
        return f"{name}, the own entering tile"
    if offset == MIDPOINT:
        return f"{name}, the midpoint"
    if offset in CASTLES:
        return f"{name}, a Castle"
    if offset in OTHER_ENTERING:
        return f"{name}, {SEAT_NAMES[offset // QUARTER]}'s entering tile"
    return name


def _value(value: float) -> str:
    return number(value, 3 if value < 1 else 2)


def _colour(kind: Kind, share: float) -> str:
    """Return the colour of a share of the largest value: by its root, so that small ones show."""
    return to_hex(colormaps[kind.colours](0.04 + 0.9 * share**0.5))


def _map(kind: Kind, agent: AgentSummary, largest: float) -> HeatMap:
    values = kind.values(agent)
    order = sorted(range(LOOP), key=lambda offset: -values[offset])
    most = [
        f"{_called(offset)} ({_value(values[offset])})"
        for offset in order[:MOST]
        if values[offset] >= SIGNIFICANT
    ]
    shares = [(step / (STEPS - 1)) ** 2 for step in range(STEPS)]
    return HeatMap(
        kind,
        [
            Tile(box, _colour(kind, value / largest), f"{_called(offset)}: {_value(value)}")
            for offset, (box, value) in enumerate(zip(_LAYOUT.tiles, values, strict=True))
        ],
        number(sum(values), 2),
        "; ".join(most),
        [(_colour(kind, share), _value(share * largest)) for share in shares],
    )


def heat_maps(summary: TournamentSummary) -> list[list[HeatMap]]:
    """Return the maps of each agent; a kind has the same colours for all of them."""
    largest = [
        max(SIGNIFICANT, *(max(kind.values(agent)) for agent in summary.agents)) for kind in KINDS
    ]
    return [
        [_map(kind, agent, most) for kind, most in zip(KINDS, largest, strict=True)]
        for agent in summary.agents
    ]

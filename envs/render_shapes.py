"""The board's shapes, everything but text: corners, the cross with its tiles, Home, the bar."""

from typing import TYPE_CHECKING, Final

from retinue.envs.game import board
from retinue.envs.game.board import CASTLES, ENTERING, NOBLE, PIECES, SEATS
from retinue.envs.render_layout import (
    BACKGROUND,
    CARD,
    CARD_EDGE,
    CASTLE_TILE,
    DARK,
    GOLD,
    PIECE,
    PLATE,
    PLATE_EDGE,
    SEAT_COLOURS,
    TILE,
    TOWER,
    WHITE,
    Box,
    Colour,
    Layout,
    Point,
    mix,
)

if TYPE_CHECKING:
    import pygame

CROWN: Final = (
    *((-0.52, 0.46), (-0.64, -0.30), (-0.30, 0.02), (0.0, -0.56)),
    *((0.30, 0.02), (0.64, -0.30), (0.52, 0.46)),
)
TOWER_SHAPE: Final = (
    *((-0.8, 1.0), (-0.8, 0.72), (-0.56, 0.72), (-0.56, -0.3), (-0.84, -0.3), (-0.84, -1.0)),
    *((-0.42, -1.0), (-0.42, -0.68), (-0.21, -0.68), (-0.21, -1.0), (0.21, -1.0), (0.21, -0.68)),
    *((0.42, -0.68), (0.42, -1.0), (0.84, -1.0), (0.84, -0.3), (0.56, -0.3), (0.56, 0.72)),
    *((0.8, 0.72), (0.8, 1.0)),
)
CHEVRON: Final = ((-1.0, -0.5), (0.0, 0.5), (1.0, -0.5))


def placed(shape: tuple[Point, ...], centre: Point, scale: float, turns: int = 0) -> list[Point]:
    """Return a shape about a centre, turned clockwise by quarters."""
    points = []
    for x, y in shape:
        for _ in range(turns):
            x, y = -y, x  # noqa: PLW2901
        points.append((centre[0] + x * scale, centre[1] + y * scale))
    return points


def draw_shapes(surface: "pygame.Surface", layout: Layout, home_path_tiles: int) -> None:
    """Draw all of the board that is no text: corners, cross, tiles, Home paths and Home."""
    surface.fill(BACKGROUND)
    _draw_cards(surface, layout)
    _draw_plate(surface, layout)
    for absolute, box in enumerate(layout.tiles):
        _draw_tile(surface, layout, absolute, box)
    for seat in range(SEATS):
        _draw_home_path(surface, layout, seat, home_path_tiles)
    _draw_home(surface, layout)


def _rounded(
    surface: "pygame.Surface", box: Box, colour: Colour, radius: int, line: int = 0
) -> None:
    import pygame

    pygame.draw.rect(surface, colour, box, line, border_radius=radius)


def _draw_cards(surface: "pygame.Surface", layout: Layout) -> None:
    import pygame

    corner = layout.px(12)
    for seat, colour in enumerate(SEAT_COLOURS):
        left, _, width, _ = layout.card(seat)
        _rounded(surface, layout.card(seat), CARD, corner)
        _rounded(surface, layout.card(seat), CARD_EDGE, corner, layout.px(1))
        yard = (left + layout.px(12), layout.in_card(seat, 0, 93)[1])
        size = (width - 2 * layout.px(12), layout.px(48))
        _rounded(surface, (*yard, *size), mix(CARD, colour, 0.28), layout.px(24))
        for piece in range(PIECES):
            at = layout.yard_slot(seat, piece)
            pygame.draw.circle(surface, mix(CARD, colour, 0.10), at, layout.px(PIECE + 5) // 2)
            if piece == NOBLE:
                crown = placed(CROWN, at, layout.px(8))
                pygame.draw.polygon(surface, mix(CARD, colour, 0.32), crown)
    _rounded(surface, layout.bar, CARD, corner)
    _rounded(surface, layout.bar, CARD_EDGE, corner, layout.px(1))


def _draw_plate(surface: "pygame.Surface", layout: Layout) -> None:
    """Draw the cross on which the tiles lie."""
    first, low, high, last = (layout.edges[index] for index in (0, 8, 11, 19))
    for grown, colour in ((layout.px(4), PLATE_EDGE), (layout.px(3), PLATE)):
        for box in ((first, low, last - first, high - low), (low, first, high - low, last - first)):
            x, y, width, height = box
            wide = (x - grown, y - grown, width + 2 * grown, height + 2 * grown)
            _rounded(surface, wide, colour, layout.px(7))


def _draw_tile(surface: "pygame.Surface", layout: Layout, absolute: int, box: Box) -> None:
    import pygame

    seat, offset = divmod(absolute, board.QUARTER)
    x, y, width, height = layout.stands[absolute]
    centre, radius = (x + width / 2, y + height / 2), layout.px(4)
    if offset in CASTLES:
        _rounded(surface, box, CASTLE_TILE, radius)
        _rounded(surface, box, mix(CASTLE_TILE, GOLD, 0.75), radius, layout.px(1))
        pygame.draw.polygon(surface, TOWER, placed(TOWER_SHAPE, centre, layout.px(10)))
    elif offset == ENTERING:
        colour = SEAT_COLOURS[seat]
        _rounded(surface, box, mix(DARK, colour, 0.68), radius)
        arrow = placed(CHEVRON, centre, layout.px(7), (1 - seat) % SEATS)
        pygame.draw.lines(surface, mix(colour, WHITE, 0.55), False, arrow, layout.px(3))
    else:
        _rounded(surface, box, TILE, radius)


def _draw_home_path(surface: "pygame.Surface", layout: Layout, seat: int, tiles: int) -> None:
    import pygame

    colour = SEAT_COLOURS[seat]
    for index in range(tiles):
        x, y, width, height = layout.path_tile(seat, index, tiles)
        _rounded(surface, (x, y, width, height), mix(DARK, colour, 0.48), layout.px(4))
        arrow = placed(CHEVRON, (x + width / 2, y + height / 2), layout.px(6), (2 - seat) % SEATS)
        pygame.draw.lines(surface, mix(DARK, colour, 0.8), False, arrow, layout.px(2))


def _draw_home(surface: "pygame.Surface", layout: Layout) -> None:
    """Draw Home: a triangle for each seat, and a crown where they meet."""
    import pygame

    low, high = layout.edges[8] + layout.px(1), layout.edges[11] - layout.px(1)
    middle = ((low + high) / 2, (low + high) / 2)
    corners = ((low, high), (high, high), (high, low), (low, low))
    for seat, colour in enumerate(SEAT_COLOURS):
        sides = (corners[seat], corners[(seat + 1) % SEATS], middle)
        pygame.draw.polygon(surface, mix(DARK, colour, 0.48), sides)
    for corner in corners:
        pygame.draw.line(surface, PLATE, corner, middle, layout.px(3))
    pygame.draw.circle(surface, PLATE, middle, layout.px(24))
    pygame.draw.circle(surface, GOLD, middle, layout.px(22))
    pygame.draw.circle(surface, DARK, middle, layout.px(20))
    pygame.draw.polygon(surface, GOLD, placed(CROWN, middle, layout.px(18)))

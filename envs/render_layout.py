"""The picture's measures and colours: where everything lies, for a board of any size.

Lengths are those of a board 720 pixels wide. Nothing here needs pygame.
"""

import functools
from dataclasses import dataclass
from typing import Final, TypeAlias

from retinue.envs.game import board
from retinue.envs.game.board import GRID, PIECES

Colour: TypeAlias = tuple[int, int, int]
Box: TypeAlias = tuple[int, int, int, int]
"""Left, top, width, height."""
Point: TypeAlias = tuple[float, float]

SEAT_COLOURS: Final[tuple[Colour, ...]] = (
    (23, 184, 144),
    (200, 55, 31),
    (47, 111, 208),
    (245, 206, 66),
)
"""Told apart with every common kind of colour blindness; a test measures it."""
BACKGROUND: Final = (16, 20, 27)
CARD: Final = (26, 32, 42)
CARD_EDGE: Final = (44, 53, 67)
PLATE: Final = (9, 12, 16)
PLATE_EDGE: Final = (58, 69, 86)
TILE: Final = (47, 56, 71)
CASTLE_TILE: Final = (72, 63, 42)
TOWER: Final = (122, 105, 64)
GOLD: Final = (222, 180, 84)
GLOW: Final = (255, 232, 160)
DARK: Final = (12, 15, 20)
WHITE: Final = (244, 246, 250)
MUTED: Final = (146, 158, 177)
FAINT: Final = (88, 99, 118)

DESIGN_SIZE: Final = 720
BAR_HEIGHT: Final = 80
MIN_SIZE: Final = 360
MARGIN: Final = 20
ARM: Final = 8
TILE_RATIO: Final = 2
"""How much wider than long a tile of an arm is; the corners' cells are square."""
NUMBER_STRIP: Final = 17

PIECE: Final = 25
"""Diameter of a piece that stands alone."""
HALO: Final = 4
OVERLAP: Final = 0.78
"""How far apart the middles of crowded pieces may get, of their diameter; numbers stay free."""
SLOT_PITCH: Final = 40
DIE: Final = 25
DIE_PITCH: Final = 36


def mix(colour: Colour, other: Colour, share: float) -> Colour:
    """Return ``colour`` with a ``share`` of ``other`` in it."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(colour, other))
    return red, green, blue


@dataclass(frozen=True)
class Layout:
    """Where everything lies, for a board ``size`` pixels wide drawn ``zoom`` times as large."""

    size: int
    zoom: int = 1

    def px(self, length: float) -> int:
        """Return a length of the design in pixels."""
        return max(1, round(length * self.size / DESIGN_SIZE)) * self.zoom

    @property
    def width(self) -> int:
        """Of the picture, in pixels."""
        return self.size * self.zoom

    @property
    def height(self) -> int:
        """Of the picture: the board and the bar below it; even, as video wants it."""
        return (self.size + 2 * round(BAR_HEIGHT * self.size / DESIGN_SIZE / 2)) * self.zoom

    @functools.cached_property
    def edges(self) -> tuple[int, ...]:
        """Where the columns of cells, and likewise the rows, begin and the last one ends."""
        margin = MARGIN * self.size / DESIGN_SIZE
        unit = (self.size - 2 * margin) / (2 * ARM + 3 * TILE_RATIO)
        wide = [min(max(index - ARM, 0), 3) for index in range(GRID + 1)]
        return tuple(
            round(margin + unit * (index + (TILE_RATIO - 1) * extra)) * self.zoom
            for index, extra in enumerate(wide)
        )

    def point(self, at: Point) -> tuple[int, int]:
        """Return the pixel of a point given in cells."""
        return self._along(at[0]), self._along(at[1])

    def _along(self, value: float) -> int:
        cell = min(int(value), GRID - 1)
        first, last = self.edges[cell], self.edges[cell + 1]
        return round(first + (last - first) * (value - cell))

    @functools.cached_property
    def tiles(self) -> tuple[Box, ...]:
        """The boxes of the loop's tiles, by absolute tile."""
        gap, edges = self.px(1), self.edges
        return tuple(
            (
                edges[x] + gap,
                edges[y] + gap,
                edges[x + 1] - edges[x] - 2 * gap,
                edges[y + 1] - edges[y] - 2 * gap,
            )
            for x, y in board.loop_cells()
        )

    def path_tile(self, seat: int, index: int, tiles: int) -> Box:
        """Return the box of a Home-path tile."""
        x, y = self.point(board.home_path_cells(seat, tiles)[index])
        across = self.edges[ARM + 2] - self.edges[ARM + 1] - 2 * self.px(1)
        along = (self.edges[ARM] - self.edges[1]) // max(tiles, ARM - 1) - 2 * self.px(1)
        w, h = (across, along) if seat % 2 == 0 else (along, across)
        return x - w // 2, y - h // 2, w, h

    @functools.cached_property
    def numbers(self) -> tuple[Box, ...]:
        """The strips of the tiles, at their outer ends, that bear their numbers."""
        strip, middle = self.px(NUMBER_STRIP), GRID // 2
        boxes = []
        for (column, row), (x, y, width, height) in zip(board.loop_cells(), self.tiles):
            if width > height:
                left = x if column <= middle else x + width - strip
                boxes.append((left, y, strip, height))
            else:
                boxes.append((x, y if row <= middle else y + height - strip, width, strip))
        return tuple(boxes)

    @functools.cached_property
    def stands(self) -> tuple[Box, ...]:
        """The parts of the tiles where pieces stand: all but the numbers."""
        boxes = []
        for (x, y, width, height), (nx, ny, across, down) in zip(self.tiles, self.numbers):
            if width > height:
                boxes.append((x + across if nx == x else x, y, width - across, height))
            else:
                boxes.append((x, y + down if ny == y else y, width, height - down))
        return tuple(boxes)

    def card(self, seat: int) -> Box:
        """Return the box of a seat's corner."""
        side = self.edges[ARM] - self.edges[0] - self.px(8)
        x, y = board.yard_centre(seat)
        left = self.edges[0] if x < GRID / 2 else self.edges[-1] - side
        return left, self.edges[0] if y < GRID / 2 else self.edges[-1] - side, side, side

    def in_card(self, seat: int, x: float, y: float) -> tuple[int, int]:
        """Return the pixel of a place in a seat's corner."""
        left, top, _, _ = self.card(seat)
        return left + self.px(x), top + self.px(y)

    def yard_slot(self, seat: int, piece: int) -> tuple[int, int]:
        """Return the centre of a piece's place in its Yard."""
        left, _, width, _ = self.card(seat)
        middle = left + width // 2
        return middle + (piece - PIECES // 2) * self.px(SLOT_PITCH), self.in_card(seat, 0, 117)[1]

    def home_slot(self, seat: int, piece: int) -> tuple[int, int]:
        """Return the centre of a piece's place in Home."""
        x, y = self.point(board.home_centre(seat))
        shift = (piece - PIECES // 2) * self.px(21)
        return (x + shift, y) if seat % 2 == 0 else (x, y + shift)

    def die(self, seat: int, value: int) -> Box:
        """Return the box of a value's die in a seat's corner; the value is 0 to 5."""
        left, _, width, _ = self.card(seat)
        side = self.px(DIE)
        middle = left + width // 2 + round((value - 2.5) * self.px(DIE_PITCH))
        return middle - side // 2, self.in_card(seat, 0, 153)[1], side, side

    @property
    def bar(self) -> Box:
        """The box of the bar below the board."""
        top = self.size * self.zoom - self.px(7)
        left, right = self.edges[0], self.edges[-1]
        return left, top, right - left, self.height - self.px(12) - top


def spread(count: int, width: float, height: float, largest: float) -> tuple[int, list[Point]]:
    """Return the diameter of ``count`` discs that share a box, and their middles from its own."""
    best = (0.0, 1, 1)
    for rows in range(1, count + 1):
        columns = -(-count // rows)
        fit = min(
            width / (1 + (columns - 1) * OVERLAP), height / (1 + (rows - 1) * OVERLAP), largest
        )
        best = max(best, (fit, rows, columns))
    diameter, rows, columns = int(best[0]), best[1], best[2]
    across = min(diameter + 1, (width - diameter) / max(columns - 1, 1))
    down = min(diameter + 1, (height - diameter) / max(rows - 1, 1))
    middles = []
    for index in range(count):
        row, column = divmod(index, columns)
        in_row = min(columns, count - row * columns)
        middles.append(((column - (in_row - 1) / 2) * across, (row - (rows - 1) / 2) * down))
    return diameter, middles

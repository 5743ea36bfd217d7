"""The board: the loop's named offsets, seat rotation, tile numbers and where to draw them.

Only geometry stands here (rules 1 and 2); every number that could be otherwise is in
``configs/rules``.
"""

from typing import Final

import numpy as np

from retinue.envs.game.jit import jit

SEATS: Final = 4
GUARDS: Final = 4
PIECES: Final = 5
NOBLE: Final = 4
"""Index of the Noble among a seat's pieces; the Guards are 0 to 3."""

SEAT_NAMES: Final = ("green", "red", "blue", "yellow")
PIECE_NAMES: Final = ("G1", "G2", "G3", "G4", "N")

LOOP: Final = 68
QUARTER: Final = LOOP // SEATS
YARD: Final = -1
HOME_PATH: Final = LOOP
"""Position code of the first Home-path tile; Home's own code depends on the rules (rules 1.8)."""

ENTERING: Final = 0
MIDPOINT: Final = 2 * QUARTER
TURN_OFF: Final = 63
"""The last forward offset before the Home path (tile 64); backward it is offset 0 (tile 69)."""
OTHER_ENTERING: Final = (QUARTER, 3 * QUARTER)
CASTLES: Final = (7, 12, 24, 29, 41, 46, 58, 63)

FORWARD: Final = 0
BACKWARD: Final = 1
DIRECTION_NAMES: Final = ("forward", "backward")

# Record bits (rules 4.1).
OWN_ENTERING_BIT: Final = 0
FIRST_CASTLE_BIT: Final = 1
FIRST_OTHER_ENTERING_BIT: Final = 9
HOME_BIT: Final = 11
CHECKPOINTS: Final = 12
NO_CHECKPOINT: Final = -1
CHECKPOINT_AT: Final = np.full(LOOP, NO_CHECKPOINT, np.int8)
"""Record bit of each loop offset, or ``NO_CHECKPOINT``; the midpoint has a flag of its own."""
CHECKPOINT_AT[ENTERING] = OWN_ENTERING_BIT
CHECKPOINT_AT[list(CASTLES)] = np.arange(FIRST_CASTLE_BIT, FIRST_CASTLE_BIT + len(CASTLES))
CHECKPOINT_AT[list(OTHER_ENTERING)] = (FIRST_OTHER_ENTERING_BIT, FIRST_OTHER_ENTERING_BIT + 1)

IS_CASTLE: Final = np.zeros(LOOP, np.bool_)
IS_CASTLE[list(CASTLES)] = True


@jit
def tile(seat: int, offset: int) -> int:
    """Return the absolute tile of a seat's loop offset (rules 1.3)."""
    position = int(offset) + QUARTER * int(seat)
    return position - LOOP if position >= LOOP else position


@jit
def offset_seen_by(viewer: int, seat: int, offset: int) -> int:
    """Return where another seat's loop offset lies when counted from the viewer's entering tile."""
    turned = QUARTER * (int(seat) - int(viewer))
    return (int(offset) + turned) % LOOP


def tile_number(offset: int, direction: int, *, arriving: bool = False) -> int:
    """Return the number of a loop tile shown to a player (rules 1.4).

    Args:
        offset: loop offset, 0 to 67.
        direction: ``FORWARD`` or ``BACKWARD``.
        arriving: offset 0 is meant as the end of the backward path (69), not its start (1).
    """
    if direction == FORWARD:
        return offset + 1
    if offset == 0 and not arriving:
        return 1
    return LOOP + 1 - offset


GRID: Final = 19
"""The drawing is a cross on a ``GRID`` by ``GRID`` field of unit cells, ``x`` right, ``y`` down."""


def _south_arm() -> list[tuple[int, int]]:
    """Return the cells of seat 0's offsets 64 to 67 and 0 to 12, from its arm's end on."""
    down_the_arm = [(10, 18 - row) for row in range(8)]
    next_arm = [(11 + column, 10) for column in range(8)]
    return [*down_the_arm, *next_arm, (18, 9)]


def _turned(cell: tuple[int, int], seat: int) -> tuple[int, int]:
    x, y = cell
    for _ in range(seat):
        x, y = y, GRID - 1 - x
    return x, y


def loop_cells() -> list[tuple[int, int]]:
    """Return the grid cell ``(x, y)`` of each absolute tile, 0 to 67."""
    cells = [(0, 0)] * LOOP
    for seat in range(SEATS):
        for step, cell in enumerate(_south_arm()):
            cells[tile(seat, (TURN_OFF + 1 + step) % LOOP)] = _turned(cell, seat)
    return cells


def home_path_cells(seat: int, tiles: int) -> list[tuple[float, float]]:
    """Return the centres, in cells, of a seat's ``tiles`` Home-path tiles, outermost first."""
    first, last = 17.5, 11.5
    step = (first - last) / max(tiles - 1, 1)
    return [_turned_point((9.5, first - step * index), seat) for index in range(tiles)]


def _turned_point(point: tuple[float, float], seat: int) -> tuple[float, float]:
    x, y = point
    for _ in range(seat):
        x, y = y, GRID - x
    return x, y


def yard_centre(seat: int) -> tuple[float, float]:
    """Return the centre, in cells, of a seat's Yard: the corner beside its entering tile."""
    return _turned_point((15.0, 15.0), seat)


def home_centre(seat: int) -> tuple[float, float]:
    """Return the centre, in cells, of a seat's part of Home, the middle of the board."""
    return _turned_point((9.5, 10.6), seat)

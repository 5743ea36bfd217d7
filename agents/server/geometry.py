"""The board as a frontend draws it: every tile's cell, numbers and meaning for each seat."""

from retinue.agents.server.schemas import Plain
from retinue.envs.game import board


def board_answer(home_path_tiles: int) -> Plain:
    """Return the ``BoardAnswer`` for so many Home-path tiles."""
    seats = range(board.SEATS)
    return {
        "grid": board.GRID,
        "seat_names": list(board.SEAT_NAMES),
        "piece_names": list(board.PIECE_NAMES),
        "loop": [_tile(index, *cell) for index, cell in enumerate(board.loop_cells())],
        "seats": [
            {
                "seat": seat,
                "name": board.SEAT_NAMES[seat],
                "yard": list(board.yard_centre(seat)),
                "home": list(board.home_centre(seat)),
                "home_path": [list(cell) for cell in board.home_path_cells(seat, home_path_tiles)],
            }
            for seat in seats
        ],
        "home_code": board.HOME_PATH + home_path_tiles,
        "end_number": {
            "forward": board.tile_number(board.TURN_OFF, board.FORWARD),
            "backward": board.tile_number(board.ENTERING, board.BACKWARD, arriving=True),
        },
    }


def _tile(index: int, x: int, y: int) -> Plain:
    offsets = [(index - board.QUARTER * seat) % board.LOOP for seat in range(board.SEATS)]
    numbers = {
        name: [board.tile_number(offset, direction) for offset in offsets]
        for direction, name in enumerate(board.DIRECTION_NAMES)
    }
    return {
        "tile": index,
        "x": x,
        "y": y,
        "castle": bool(board.IS_CASTLE[offsets[0]]),
        "entering": _seat_at(offsets, board.ENTERING),
        "midpoint": _seat_at(offsets, board.MIDPOINT),
        "turn_off": _seat_at(offsets, board.TURN_OFF),
        "offsets": offsets,
        "numbers": numbers,
    }


def _seat_at(offsets: list[int], offset: int) -> int | None:
    """Return the seat for which a tile has an offset, None if there is none."""
    return offsets.index(offset) if offset in offsets else None

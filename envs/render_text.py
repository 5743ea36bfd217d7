"""The board as plain text, and turns in words."""

import textwrap
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from retinue.envs.game import board, engine
from retinue.envs.game.board import (
    CASTLES,
    ENTERING,
    FORWARD,
    GRID,
    GUARDS,
    HOME_PATH,
    LOOP,
    NOBLE,
    PIECES,
    SEATS,
    YARD,
)
from retinue.envs.game.events import BLOCKED, CAPTURE, new_log
from retinue.envs.game.movement import STACK_BITS, STACK_MASK
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.state import CHOOSE, OVER, Record, totals

SEAT_WORDS: Final = tuple(name.capitalize() for name in board.SEAT_NAMES)
PIECE_WORDS: Final = (*board.PIECE_NAMES[:NOBLE], "Noble")
LETTERS: Final = "GRBY"
PIECE_LETTERS: Final = "1234N"

CELL: Final = 4
"""Characters of a cell."""
WIDTH: Final = 80
"""No line of the text is longer."""
ARM: Final = 8
"""Cells along an arm; the board is two arms and the middle three cells wide."""
PATH_MARK: Final = "="


class LastMove(NamedTuple):
    """The move that led to a position: the game when it was chosen, and the turn."""

    game: Record
    turn: Record


def outcome(game: Record, ruleset: Ruleset, turn: Record) -> tuple[Record, Any] | None:
    """Return the game after ``turn`` and the log of its events, or None if it is not legal."""
    after, log = game.copy(), new_log()
    if engine.play(after, ruleset.packed, turn, log) != engine.LEGAL:
        return None
    return after, log


def draft(game: Record, turn: Record | None) -> Record | None:
    """Return a drafted turn while one is to be chosen, else None."""
    return turn if game["phase"] == CHOOSE else None


def direction_of(turn: Record | None) -> int:
    """Return the direction in which tiles are numbered: the turn's, else forward."""
    return FORWARD if turn is None else int(turn["direction"])


def number_at(seat: int, absolute: int, direction: int) -> str:
    """Return the number of an absolute tile for a seat; its entering tile has two backward."""
    offset = (absolute - board.tile(seat, ENTERING)) % LOOP
    numbers = {board.tile_number(offset, direction, arriving=late) for late in (False, True)}
    return "/".join(str(number) for number in sorted(numbers))


def place_name(viewer: int, seat: int, position: int, direction: int, home: int) -> str:
    """Return where a piece stands, its tile as the viewer counts: ``24``, ``path 3``, ``Home``."""
    if position == YARD:
        return "Yard"
    if position == home:
        return "Home"
    if position >= HOME_PATH:
        return f"path {position - HOME_PATH + 1}"
    return number_at(viewer, board.tile(seat, position), direction)


def blockades(game: Record) -> Iterator[tuple[int, int, int]]:
    """Yield the absolute tile, the Guards and the seat of every stack, largest first on a tile."""
    for absolute, stacks in enumerate(game["stacks"].tolist()):
        sizes = [(stacks >> STACK_BITS * seat & STACK_MASK, seat) for seat in range(SEATS)]
        for guards, seat in sorted(sizes, reverse=True):
            if guards > 1:
                yield absolute, guards, seat


def clock_text(seconds: int) -> str:
    """Return seconds as minutes and seconds."""
    return f"{seconds // 60}:{seconds % 60:02d}"


def acting_seat(game: Record) -> int:
    """Return the seat to move; after the match, the seat that won it."""
    return int(totals(game).argmax()) if game["phase"] == OVER else int(game["seat"])


def status(game: Record) -> str:
    """Return what the match waits for or how it ended, to follow the acting seat's name."""
    if game["phase"] != OVER:
        return "to choose" if game["phase"] == CHOOSE else "to roll"
    scores = totals(game).tolist()
    best = [word for word, score in zip(SEAT_WORDS, scores) if score == max(scores)]
    if len(best) == 1:
        return f"wins with {max(scores)} points"
    return f"and {', '.join(best[1:])} share the first place with {max(scores)} points"


def turn_in_words(
    game: Record, ruleset: Ruleset, turn: Record, numbered: tuple[int, int] | None = None
) -> str:
    """Return what a turn does, or why it is refused, in one line.

    Args:
        game: ``GAME``, as it stands when the turn is chosen.
        ruleset: the rules of the match.
        turn: ``TURN``.
        numbered: the seat and direction by which tiles are numbered, if not those of the turn.
    """
    result = outcome(game, ruleset, turn)
    if result is None:
        return engine.explain(engine.judge(game, ruleset.packed, turn), game, turn)
    after, log = result
    seat, direction = int(game["seat"]), direction_of(turn)
    trimmed = Counter[int]()
    taken = []
    for kind, piece, detail, _ in log["rows"][: log["count"]].tolist():
        if kind == BLOCKED:
            trimmed[piece] += detail
        elif kind == CAPTURE:
            taken.append(f"{SEAT_WORDS[detail]} {PIECE_WORDS[piece]}")
    moves = []
    for piece in sorted(range(PIECES), key=lambda piece: piece != NOBLE or turn["noble_after"]):
        if spent := _spent(turn, piece):
            where = _landing(game, after, ruleset, piece, *(numbered or (seat, direction)))
            blocked = f", {trimmed[piece]} blocked" if trimmed[piece] else ""
            moves.append(f"{PIECE_WORDS[piece]} to {where} ({spent}{blocked})")
    captures = f"; captures {', '.join(taken)}" if taken else ""
    gain = totals(after)[seat] - totals(game)[seat]
    way = board.DIRECTION_NAMES[direction]
    return f"{way}: {', '.join(moves) or 'nothing moves'}{captures}; {gain:+d}"


def _landing(
    game: Record, after: Record, ruleset: Ruleset, piece: int, viewer: int, direction: int
) -> str:
    """Return where a piece came, in the viewer's numbers."""
    seat = int(game["seat"])
    position = int(after["position"][seat, piece])
    where = place_name(viewer, seat, position, direction, ruleset.home)
    if "/" not in where:
        return where
    # The viewer's entering tile: 1 to a piece that sets out there, else 69.
    sets_out = viewer == seat and game["position"][seat, piece] == YARD
    return where.split("/")[0 if sets_out else -1]


def _spent(turn: Record, piece: int) -> str:
    """Return the rolls or steps that a turn gives a piece, or nothing."""
    if piece == NOBLE:
        return str(turn["noble_steps"] or "")
    counts = turn["rolls"][piece].tolist()
    return "+".join(str(value + 1) for value, count in enumerate(counts) for _ in range(count))


def render_text(
    game: Record, ruleset: Ruleset, turn: Record | None = None, last: LastMove | None = None
) -> str:
    """Return the board and every number of a position as plain text.

    Args:
        game: ``GAME``; it is only read.
        ruleset: the rules of the match.
        turn: ``TURN``, a draft of the seat to move, told in words; its direction also numbers the
            tiles, which otherwise are numbered forward.
        last: the move that led here, to be told too.
    """
    turn = draft(game, turn)
    cells, crowded = _board_lines(game, ruleset, direction_of(turn))
    lines = [_headline(game)]
    if game["phase"] == CHOOSE:
        lines.append(_choice(game, ruleset))
    lines += ["", *cells, "", *_table(game, ruleset, direction_of(turn)), "", *crowded]
    lines += _blockade_lines(game, direction_of(turn))
    lines += _legend(game, turn)
    if last is not None:
        shown = (acting_seat(game), direction_of(turn))
        told = turn_in_words(last.game, ruleset, last.turn, shown)
        lines.append(f"Last, {SEAT_WORDS[last.game['seat']]}: {told}")
    if turn is not None:
        lines.append(f"Draft, {turn_in_words(game, ruleset, turn)}")
    wrapped = (textwrap.wrap(line, WIDTH, subsequent_indent="  ") or [""] for line in lines)
    return "\n".join(line.rstrip() for each in wrapped for line in each) + "\n"


def _headline(game: Record) -> str:
    words = [
        f"Turn {game['turn'] + (game['phase'] != OVER)}, clock {clock_text(game['clock_seconds'])}:"
        f" {SEAT_WORDS[acting_seat(game)]} {status(game)}"
    ]
    if game["phase"] == CHOOSE:
        dice = " ".join(str(value) for value in game["rolled"][: game["dice"]])
        words.append(f"rolled {dice}" if dice else "no dice")
    if game["credits_earned"]:
        words.append(f"{game['credits_earned']:+d} exit credit")
    return ", ".join(words)


def _choice(game: Record, ruleset: Ruleset) -> str:
    """Return what the seat to move may spend and move."""
    mask = engine.legal_guards(game, ruleset.packed)
    movers = [PIECE_WORDS[guard] for guard in range(GUARDS) if mask >> guard & 1]
    if engine.noble_may_move(game, ruleset.packed):
        movers.append(PIECE_WORDS[NOBLE])
    held = int(game["store"][game["seat"]].sum())
    return (
        f"{SEAT_WORDS[game['seat']]} holds {held} of {ruleset.store_capacity} rolls, these dice "
        f"included, and may move {', '.join(movers) or 'nothing'}."
    )


def _blockade_lines(game: Record, direction: int) -> list[str]:
    """Return a line with every stack on the loop, if there are any."""
    viewer = acting_seat(game)
    stacks = [
        f"{guards} {SEAT_WORDS[seat]} on {number_at(viewer, absolute, direction)}"
        for absolute, guards, seat in blockades(game)
    ]
    return [f"Blockades: {', '.join(stacks)}"] if stacks else []


def _legend(game: Record, turn: Record | None) -> list[str]:
    seat, direction = SEAT_WORDS[acting_seat(game)], board.DIRECTION_NAMES[direction_of(turn)]
    return [
        f"Tile numbers are {seat}'s, {direction}. R12N: Red's Guards 1 and 2 and its Noble.",
        f"[n] Castle, (n) entering tile, {PATH_MARK} Home path, {PATH_MARK}3 its third tile, "
        "* past midpoint.",
    ]


def _pieces_by_cell(game: Record, ruleset: Ruleset) -> dict[tuple[int, int], list[str]]:
    """Return the pieces on each cell of the loop and the Home paths, like ``R12``, by seat."""
    tiles = board.loop_cells()
    found: dict[tuple[int, int], list[str]] = {}
    for seat, letter in enumerate(LETTERS):
        path = board.home_path_cells(seat, ruleset.home_path_tiles)
        groups: dict[tuple[int, int], str] = {}
        for piece, position in enumerate(game["position"][seat].tolist()):
            if position in (YARD, ruleset.home):
                continue
            if position < LOOP:
                cell = tiles[board.tile(seat, position)]
            else:
                x, y = path[position - HOME_PATH]
                cell = int(x), int(y)
            groups[cell] = groups.get(cell, letter) + PIECE_LETTERS[piece]
        for cell, group in groups.items():
            found.setdefault(cell, []).append(group)
    return found


def _board_lines(game: Record, ruleset: Ruleset, direction: int) -> tuple[list[str], list[str]]:
    """Return the lines of the cross, and a line for every cell whose pieces do not fit it."""
    canvas = [[" "] * _column(GRID) for _ in range(GRID)]
    pieces = _pieces_by_cell(game, ruleset)
    crowded = []
    for absolute, cell in enumerate(board.loop_cells()):
        number = number_at(acting_seat(game), absolute, direction)
        text = "".join(pieces.get(cell, [number]))
        if cell in pieces and len(text) >= CELL:
            crowded.append(f"Tile {number}: {', '.join(pieces[cell])}")
            text = text[: CELL - 2] + "+"
        _put(canvas, cell, _framed(text, absolute))
    for seat in range(board.SEATS):
        path = board.home_path_cells(seat, ruleset.home_path_tiles)
        for cell in [(int(x), int(y)) for x, y in path]:
            text = "".join(pieces.get(cell, [PATH_MARK]))
            if len(text) >= CELL and len(pieces[cell]) == 1:
                crowded.append(f"{SEAT_WORDS[seat]}'s Home path: {', '.join(pieces[cell])}")
                text = text[: CELL - 2] + "+"
            _put(canvas, cell, text)
    _put_yards_and_home(canvas, game, ruleset)
    return ["".join(row) for row in canvas], list(dict.fromkeys(crowded))


def _framed(text: str, absolute: int) -> str:
    """Return a tile's text with the mark of a Castle or an entering tile, if there is room."""
    offset = absolute % board.QUARTER
    if len(text) > CELL - 2:
        return text
    if offset == ENTERING:
        return f"({text})"
    return f"[{text}]" if offset in (CASTLES[0], CASTLES[1]) else text


def _column(x: int) -> int:
    """Return where a column of cells begins; the middle is wider, for what stands in Home."""
    return x * CELL + min(max(x - ARM, 0), 2)


def _put(canvas: list[list[str]], cell: tuple[int, int], text: str, width: int = CELL) -> None:
    """Write a text into the middle of the ``width`` characters that begin at a cell."""
    x, y = cell
    start = _column(x) + (width - len(text)) // 2
    canvas[y][start : start + len(text)] = list(text)


def _put_yards_and_home(canvas: list[list[str]], game: Record, ruleset: Ruleset) -> None:
    """Write each seat's name, Yard and total into its corner, and its Home into the middle."""
    middle = GRID // 2
    for seat, word in enumerate(SEAT_WORDS):
        position = game["position"][seat].tolist()
        yard = [name for name, at in zip(board.PIECE_NAMES, position) if at == YARD]
        x, y = board.yard_centre(seat)
        column = 0 if x < middle else GRID - ARM
        _put(canvas, (column, int(y) - 1), word.upper(), ARM * CELL)
        _put(canvas, (column, int(y)), f"Yard: {' '.join(yard) or '-'}", ARM * CELL)
        home = "".join(letter for letter, at in zip(PIECE_LETTERS, position) if at == ruleset.home)
        if home:
            _put_home(canvas, seat, LETTERS[seat] + home)


def _put_home(canvas: list[list[str]], seat: int, text: str) -> None:
    """Write a seat's pieces in Home beside the last tile of its Home path."""
    first, middle = _column(ARM), GRID // 2
    x, y = board.home_centre(seat)
    row = middle + (y > middle + 1) - (y < middle)
    room = _column(GRID - ARM) - first
    if x < middle:
        start = first
    elif x > middle + 1:
        start = first + room - len(text)
    else:
        start = first + (room - len(text)) // 2
    canvas[row][start : start + len(text)] = list(text)


def _table(game: Record, ruleset: Ruleset, direction: int) -> list[str]:
    """Return a row for each seat: scores, credits, store by value and where its pieces stand."""
    names = "".join(f"{name:>5}" for name in board.PIECE_NAMES)
    rows = [f"  seat  total prog comb bonus cred 1s 2s 3s 4s 5s 6s{names}"]
    sums, scores = game["progression"].sum(axis=1), totals(game)
    for seat, word in enumerate(SEAT_WORDS):
        mark = ">" if seat == game["seat"] and game["phase"] != OVER else " "
        store = "".join(f"{count:>3}" for count in game["store"][seat])
        places = "".join(
            f"{_place(game, ruleset, seat, piece, direction):>5}" for piece in range(PIECES)
        )
        rows.append(
            f"{mark} {word:<6}{scores[seat]:>5} {sums[seat]:>4} {game['combat'][seat]:>4}"
            f" {game['bonus'][seat]:>5} {game['credits'][seat]:>2}/{ruleset.max_credits}{store}"
            f"{places}"
        )
    return rows


def _place(game: Record, ruleset: Ruleset, seat: int, piece: int, direction: int) -> str:
    """Return where a piece stands in four characters, for the table."""
    position, viewer = int(game["position"][seat, piece]), acting_seat(game)
    where = place_name(viewer, seat, position, direction, ruleset.home)
    where = where.replace("path ", PATH_MARK)
    if not game["midpoint"][seat, piece] or position == ruleset.home:
        return where
    return f"{where.split('/')[-1]}*"

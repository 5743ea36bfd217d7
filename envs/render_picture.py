"""The board as a picture, drawn without a display."""

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from retinue.envs.game import board, engine
from retinue.envs.game.board import HOME_PATH, LOOP, PIECES, SEATS, YARD
from retinue.envs.game.movement import next_position
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.state import CHOOSE, OVER, Record, totals
from retinue.envs.render_art import Art, opaque
from retinue.envs.render_layout import (
    CARD,
    DARK,
    DESIGN_SIZE,
    FAINT,
    GOLD,
    MIN_SIZE,
    MUTED,
    PIECE,
    SEAT_COLOURS,
    WHITE,
    Box,
    Colour,
    mix,
    spread,
)
from retinue.envs.render_text import (
    SEAT_WORDS,
    LastMove,
    acting_seat,
    blockades,
    clock_text,
    direction_of,
    draft,
    outcome,
    status,
    turn_in_words,
)

if TYPE_CHECKING:
    import pygame

STEP: Final = getattr(next_position, "py_func", next_position)
"""As Python: the compiled function can be called from compiled code only."""
ORDINALS: Final = ("1st", "2nd", "3rd", "4th")
PIECE_HOME: Final = 20
"""Diameter of a piece in Home."""
MOST_COINS: Final = 6
MOST_DICE: Final = 6


class Standing(NamedTuple):
    """A piece to draw; a ghost is where the drafted turn would lead it."""

    seat: int
    piece: int
    midpoint: bool
    ghost: bool


def _standing(game: Record) -> Iterator[tuple[Standing, int]]:
    """Yield every piece of a position and where it is."""
    midpoints = game["midpoint"].tolist()
    for seat, row in enumerate(game["position"].tolist()):
        for piece, position in enumerate(row):
            yield Standing(seat, piece, bool(midpoints[seat][piece]), False), position


def grown(box: Box, by: int) -> Box:
    """Return a box with its edges moved outward."""
    x, y, width, height = box
    return x - by, y - by, width + 2 * by, height + 2 * by


def minus(points: int) -> str:
    """Return a number with a real minus sign."""
    return str(points).replace("-", "−")


def _rolled_in_words(game: Record) -> str:
    dice = " ".join(str(value) for value in game["rolled"][: game["dice"]])
    return f"rolled {dice}" if dice else "no dice"


class BoardPicture:
    """Draws positions of a match; the board itself is drawn once and reused.

    Args:
        ruleset: the rules of the match.
        size: width of the picture in pixels. A bar below the board makes it a ninth higher.

    Raises:
        ImportError: pygame is not installed; the message says how to get it.
        ValueError: the size is too small to be legible.
    """

    def __init__(self, ruleset: Ruleset, size: int = DESIGN_SIZE) -> None:
        if size < MIN_SIZE:
            raise ValueError(f"size: {size} is below {MIN_SIZE} pixels")
        self.ruleset = ruleset
        self.art = Art(size, ruleset.home_path_tiles)
        self.layout = self.art.layout
        self._canvas, self._pixels = opaque(self.layout)

    def draw(
        self, game: Record, turn: Record | None = None, last: LastMove | None = None
    ) -> "np.ndarray[Any, np.dtype[np.uint8]]":
        """Return the picture, uint8, shape ``(height, width, 3)``.

        Args:
            game: ``GAME``; it is only read.
            turn: ``TURN``, a draft of the seat to move: where it leads is shown, and its direction
                numbers the tiles, which otherwise are numbered forward.
            last: the move that led here, to be shown.
        """
        self.paint(game, turn, last)
        return self._pixels.copy()

    def paint(
        self, game: Record, turn: Record | None = None, last: LastMove | None = None
    ) -> "pygame.Surface":
        """Draw like :meth:`draw` and return the surface, which the next drawing overwrites."""
        turn = draft(game, turn)
        self._canvas.blit(self.art.board(acting_seat(game), direction_of(turn)), (0, 0))
        if last is not None:
            self._draw_trail(last)
        self._draw_pieces(game, turn)
        for seat in range(SEATS):
            self._draw_card(game, seat)
        self._draw_bar(game, turn, last)
        return self._canvas

    # Pieces ---------------------------------------------------------------------------------

    def _draw_pieces(self, game: Record, turn: Record | None) -> None:
        places: dict[Box, list[Standing]] = {}
        for standing, position in (*_standing(game), *self._drafted(game, turn)):
            seat, piece = standing[:2]
            if position == YARD:
                self._blit(self._lone(standing, PIECE), self.layout.yard_slot(seat, piece))
            elif position == self.ruleset.home:
                self._blit(self._lone(standing, PIECE_HOME), self.layout.home_slot(seat, piece))
            elif position < LOOP:
                place = self.layout.stands[board.tile(seat, position)]
                places.setdefault(place, []).append(standing)
            else:
                tiles = self.ruleset.home_path_tiles
                place = self.layout.path_tile(seat, position - HOME_PATH, tiles)
                places.setdefault(place, []).append(standing)
        self._draw_blockades(game)
        for place, together in places.items():
            self._draw_together(place, together)

    def _lone(self, standing: Standing, diameter: float) -> "pygame.Surface":
        seat, piece, midpoint, ghost = standing
        return self.art.piece(seat, piece, self.layout.px(diameter), midpoint, ghost)

    def _draw_blockades(self, game: Record) -> None:
        """Frame the tiles where a seat has two Guards or more, for the largest stack outermost."""
        line = self.layout.px(2)
        for absolute, together in itertools.groupby(blockades(game), lambda stack: stack[0]):
            for inset, (_, _, seat) in enumerate(together):
                tile = grown(self.layout.tiles[absolute], -inset * line)
                self._outline(tile, SEAT_COLOURS[seat], 2)

    def _drafted(self, game: Record, turn: Record | None) -> Iterator[tuple[Standing, int]]:
        """Yield the pieces that a draft moves and where it leaves them."""
        result = None if turn is None else outcome(game, self.ruleset, turn)
        if result is None:
            return
        after, seat = result[0], int(game["seat"])
        for piece in range(PIECES):
            position = int(after["position"][seat, piece])
            if position != game["position"][seat, piece]:
                midpoint = bool(after["midpoint"][seat, piece])
                yield Standing(seat, piece, midpoint, True), position

    def _draw_together(self, place: Box, together: list[Standing]) -> None:
        x, y, width, height = place
        diameter, middles = spread(len(together), width, height, self.layout.px(PIECE))
        for standing, (dx, dy) in zip(together, middles):
            sprite = self.art.piece(standing.seat, standing.piece, diameter, *standing[2:])
            self._blit(sprite, (x + width / 2 + dx, y + height / 2 + dy))

    def _blit(self, sprite: "pygame.Surface", middle: tuple[float, float]) -> None:
        width, height = sprite.get_size()
        self._canvas.blit(sprite, (round(middle[0] - width / 2), round(middle[1] - height / 2)))

    def _outline(self, tile: Box, colour: Colour, line: int) -> None:
        x, y, width, height = tile
        self._canvas.blit(self.art.frame(width, height, self.layout.px(line), colour), (x, y))

    # The last move --------------------------------------------------------------------------

    def _draw_trail(self, last: LastMove) -> None:
        """Mark the tiles that the last move's pieces left, crossed and reached, and captures."""
        result = outcome(last.game, self.ruleset, last.turn)
        if result is None:
            return
        before, after, seat = last.game, result[0], int(last.game["seat"])
        light = mix(SEAT_COLOURS[seat], WHITE, 0.45)
        left, crossed, reached = set(), set(), set()
        for piece in range(PIECES):
            way = self._way(before, after, seat, piece, direction_of(last.turn))
            left.update(way[:1])
            crossed.update(way[1:-1])
            reached.update(way[-1:])
        dot = self.art.disc(self.layout.px(6), light)
        ring = self.art.disc(self.layout.px(14), light, True)
        for positions, mark in ((crossed - reached, dot), (left - reached - crossed, ring)):
            for x, y, width, height in self._boxes(seat, positions, self.layout.stands):
                self._blit(mark, (x + width / 2, y + height / 2))
        # In the gap around the tile, where no frame of a blockade covers it.
        for tile in self._boxes(seat, reached, self.layout.tiles):
            self._outline(grown(tile, self.layout.px(1)), WHITE, 1)
        circle = self.art.disc(self.layout.px(PIECE + 5), WHITE, True)
        taken = (after["position"] == YARD) & (before["position"] != YARD)
        for captured in np.argwhere(taken).tolist():
            self._blit(circle, self.layout.yard_slot(*captured))

    def _way(
        self, before: Record, after: Record, seat: int, piece: int, direction: int
    ) -> list[int]:
        """Return the positions of a piece from where it was to where it came, if it moved."""
        position, end = (int(game["position"][seat, piece]) for game in (before, after))
        midpoint = int(before["midpoint"][seat, piece])
        way = [position] if position != end else []
        while position != end:
            position = STEP(position, midpoint, direction)
            midpoint |= position == board.MIDPOINT
            way.append(position)
        return way

    def _boxes(self, seat: int, positions: set[int], loop: tuple[Box, ...]) -> list[Box]:
        """Return the boxes of those positions that are on the loop or a Home path."""
        home, tiles = self.ruleset.home, self.ruleset.home_path_tiles
        return [
            loop[board.tile(seat, position)]
            if position < LOOP
            else self.layout.path_tile(seat, position - HOME_PATH, tiles)
            for position in positions
            if position not in (YARD, home)
        ]

    # Corners and bar ------------------------------------------------------------------------

    def _write(
        self, text: str, at: tuple[int, int], height: float, colour: Colour, right: bool = False
    ) -> int:
        """Write a line from, or if ``right`` up to, a point; return where it ends."""
        drawn = self.art.text(text, height, colour)
        x = at[0] - drawn.get_width() if right else at[0]
        self._canvas.blit(drawn, (x, at[1]))
        return x + drawn.get_width()

    def _draw_card(self, game: Record, seat: int) -> None:
        layout, scores = self.layout, totals(game)
        left, top, width, _ = layout.card(seat)
        edge = left + width - layout.px(16)
        self._write(minus(scores[seat]), (edge, top + layout.px(11)), 28, WHITE, right=True)
        if len(set(scores.tolist())) > 1:
            x = left + layout.px(22) + self.art.text(SEAT_WORDS[seat], 19).get_width()
            place = ORDINALS[engine.place(game, seat) - 1]
            self._write(place, (x, top + layout.px(21)), 12, MUTED)
        parts = (int(game["progression"][seat].sum()), game["combat"][seat], game["bonus"][seat])
        for column, points in enumerate(parts):
            self._write(minus(points), layout.in_card(seat, 16 + 78 * column, 52), 14, WHITE)
        self._draw_store(game, seat, edge)

    def _draw_store(self, game: Record, seat: int, edge: int) -> None:
        """Draw a seat's stored rolls and exit credits."""
        layout, store = self.layout, game["store"][seat].tolist()
        for value, count in enumerate(store):
            if count:
                x, y, side, _ = layout.die(seat, value)
                self._canvas.blit(self.art.die(value + 1, side, WHITE, DARK), (x, y))
                number = self.art.text(f"×{count}", 12.5, WHITE)
                middle = x + (side - number.get_width()) // 2
                self._canvas.blit(number, (middle, y + side + layout.px(4)))
        y = layout.in_card(seat, 0, 214)[1]
        held = f"{sum(store)} of {self.ruleset.store_capacity} rolls"
        self._write(held, (edge, y), 10.5, MUTED, right=True)
        own, most = int(game["credits"][seat]), self.ruleset.max_credits
        x = layout.in_card(seat, 66, 0)[0]
        if most > MOST_COINS:
            self._write(f"{own} of {most}", (x, y - layout.px(1)), 12, GOLD)
            return
        for coin in range(most):
            disc = self.art.disc(layout.px(11), GOLD if coin < own else FAINT, coin >= own)
            self._canvas.blit(disc, (x + coin * layout.px(15), y - layout.px(1)))

    def _draw_bar(self, game: Record, turn: Record | None, last: LastMove | None) -> None:
        layout, seat = self.layout, acting_seat(game)
        left, top, width, _ = layout.bar
        line = top + layout.px(9)
        x = self._write(SEAT_WORDS[seat], (left + layout.px(16), line), 17, self._light(seat))
        x = self._write(status(game), (x + layout.px(6), line), 17, WHITE)
        x = self._draw_rolled(game, x + layout.px(12), line - layout.px(1))
        if game["phase"] != OVER:
            way = f"tile numbers: {board.DIRECTION_NAMES[direction_of(turn)]}"
            self._write(way, (x, line + layout.px(5)), 11, MUTED)
        self._draw_clock(game, left + width - layout.px(16), top)
        shown = (seat, direction_of(turn))
        if last is not None:
            words = turn_in_words(last.game, self.ruleset, last.turn, shown)
            if turn is None:  # there is room for more
                words = f"{_rolled_in_words(last.game)}; {words}"
            self._draw_words("Last", int(last.game["seat"]), words, 0, 2 if turn is None else 1)
        if turn is not None:
            words = turn_in_words(game, self.ruleset, turn)
            self._draw_words("Draft", seat, words, int(last is not None), 1)

    def _draw_words(self, title: str, seat: int, words: str, row: int, rows: int) -> None:
        """Write what a seat does into the bar, from a row on and into as many as it may take."""
        layout = self.layout
        left, top, width, _ = layout.bar
        y = top + layout.px(36 + 17 * row)
        self._write(title, (left + layout.px(16), y), 11.5, MUTED)
        x = self._write(SEAT_WORDS[seat], (left + layout.px(52), y), 11.5, self._light(seat))
        x += layout.px(5)
        for number, line in enumerate(
            self._wrapped(words, left + width - layout.px(120) - x, rows)
        ):
            self._write(line, (x, y + layout.px(17 * number)), 11.5, WHITE)

    def _wrapped(self, words: str, room: int, rows: int) -> list[str]:
        """Return words in at most so many lines, the last cut short if there is no room for it."""
        lines = [""]
        for word in words.split():
            longer = f"{lines[-1]} {word}".lstrip()
            if len(lines) < rows and self.art.width(longer, 11.5) > room:
                lines.append(word)
            else:
                lines[-1] = longer
        return [*lines[:-1], self._fitted(lines[-1], room)]

    def _light(self, seat: int) -> Colour:
        return mix(SEAT_COLOURS[seat], WHITE, 0.2)

    def _fitted(self, words: str, room: int) -> str:
        """Return as much of a line as there is room for."""
        width = self.art.width(words, 11.5)
        if width <= room:
            return words
        return words[: max(0, len(words) * room // width - 3)] + "…"

    def _draw_rolled(self, game: Record, x: int, y: int) -> int:
        """Draw the dice just rolled and a credit that they earned; return where they end."""
        if game["phase"] != CHOOSE:
            return x
        layout = self.layout
        side = layout.px(22)
        for value in game["rolled"][: min(game["dice"], MOST_DICE)].tolist():
            self._canvas.blit(self.art.die(value, side, WHITE, DARK), (x, y))
            x += side + layout.px(5)
        if not game["dice"]:
            x = self._write("no dice", (x, y + layout.px(5)), 12, MUTED)
        if game["dice"] > MOST_DICE:
            x = self._write("…", (x, y), 17, WHITE) + layout.px(5)
        if game["credits_earned"]:
            words = f"{game['credits_earned']:+d} credit"
            x = self._write(words, (x + layout.px(4), y + layout.px(5)), 12, GOLD)
        return x + layout.px(10)

    def _draw_clock(self, game: Record, edge: int, top: int) -> None:
        layout, left = self.layout, max(0, int(game["clock_seconds"]))
        self._write(clock_text(left), (edge, top + layout.px(7)), 24, WHITE, right=True)
        turns = f"turn {min(game['turn'] + 1, self.ruleset.turns)} of {self.ruleset.turns}"
        self._write(turns, (edge, top + layout.px(38)), 11, MUTED, right=True)
        length, height = layout.px(92), layout.px(4)
        at = (edge - length, top + layout.px(57))
        self._canvas.fill(mix(CARD, WHITE, 0.12), (*at, length, height))
        share = left / self.ruleset.clock_seconds
        self._canvas.fill(GOLD, (*at, round(length * share), height))

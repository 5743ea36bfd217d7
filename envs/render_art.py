"""Sprites and the board without its pieces, drawn large and scaled down smoothly.

Pygame is imported where it draws, so that the module itself imports without it.
"""

import functools
import os
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from retinue.envs.game import board
from retinue.envs.game.board import ENTERING, MIDPOINT, NOBLE, SEATS
from retinue.envs.render_layout import (
    CARD,
    DARK,
    DIE,
    GLOW,
    HALO,
    MUTED,
    SEAT_COLOURS,
    TILE,
    WHITE,
    Colour,
    Layout,
    mix,
)
from retinue.envs.render_shapes import CROWN, draw_shapes, placed
from retinue.envs.render_text import PIECE_LETTERS, SEAT_WORDS, number_at

if TYPE_CHECKING:
    import pygame

FINE: Final = 3
"""The board's shapes are drawn this much larger and scaled down; sprites twice that."""
FONT_HEIGHT: Final = 0.6875
"""Pixels of height that pygame gives its own font for each unit of the size asked for."""
TEXT_FINE: Final = 3
NUMERAL: Final = 0.66
"""Height of a piece's number, of its diameter."""

PIPS: Final = {
    1: ((0, 0),),
    2: ((-1, -1), (1, 1)),
    3: ((-1, -1), (0, 0), (1, 1)),
    4: ((-1, -1), (1, -1), (-1, 1), (1, 1)),
    5: ((-1, -1), (1, -1), (0, 0), (-1, 1), (1, 1)),
    6: ((-1, -1), (1, -1), (-1, 0), (1, 0), (-1, 1), (1, 1)),
}


def load_pygame() -> Any:
    """Return pygame, its fonts ready and nothing else of it started.

    Raises:
        ImportError: pygame is not installed; the message says how to get it.
    """
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    try:
        import pygame
        import pygame.font
    except ImportError as error:
        raise ImportError("drawing needs pygame: pip install retinue[render]") from error
    pygame.font.init()
    return pygame


class Art:
    """Sprites and board layers of one size, each made once when it is first needed."""

    def __init__(self, size: int, home_path_tiles: int) -> None:
        """Load pygame; see :func:`load_pygame`."""
        load_pygame()
        self.layout = Layout(size)
        self.home_path_tiles = home_path_tiles
        # Caches of this object, so that its surfaces go when it goes.
        self.text = functools.lru_cache(4096)(self._text)
        self.piece = functools.lru_cache(1024)(self._piece)
        self.die = functools.lru_cache(64)(self._die)
        self.disc = functools.lru_cache(64)(self._disc)
        self.frame = functools.lru_cache(256)(self._frame)
        self.board = functools.lru_cache(2 * SEATS)(self._board)
        self.font = functools.lru_cache(64)(self._font)

    def _font(self, height: float) -> "pygame.font.Font":
        import pygame

        return pygame.font.Font(None, round(TEXT_FINE * self.layout.px(height) / FONT_HEIGHT))

    def width(self, text: str, height: float) -> int:
        """Return how wide a line of text is, in pixels."""
        return -(-self.font(height).size(text)[0] // TEXT_FINE)

    def _text(self, text: str, height: float, colour: Colour = WHITE) -> "pygame.Surface":
        """Return a line of text; ``height`` is the font's, in pixels of the design."""
        import pygame

        big = self.font(height).render(text, True, colour)
        width, high = big.get_size()
        clear = pygame.Surface((width + TEXT_FINE, high), pygame.SRCALPHA)
        clear.fill((*colour, 0))
        clear.blit(big, (0, 0))
        size = (-(-width // TEXT_FINE), -(-high // TEXT_FINE))
        return pygame.transform.smoothscale(clear, size)

    def _piece(
        self, seat: int, piece: int, diameter: int, midpoint: bool = False, ghost: bool = False
    ) -> "pygame.Surface":
        """Return a piece with room for its glow around it; a ghost is where a draft leads."""
        import pygame

        pad = self.layout.px(HALO)
        side, fine = diameter + 2 * pad, 2 * FINE
        colour = SEAT_COLOURS[seat]
        big = pygame.Surface((side * fine, side * fine), pygame.SRCALPHA)
        big.fill((*DARK, 0))
        centre, radius = (side * fine / 2, side * fine / 2), diameter * fine / 2
        rim = radius * (0.11 if midpoint else 0.09)
        ink = DARK if seat == SEATS - 1 else WHITE
        rings = [
            (DARK, 0.0),
            (GLOW if midpoint else mix(colour, WHITE, 0.45), rim),
            (colour, (2.3 if midpoint else 1.9) * rim),
        ]
        if ghost:
            rings.append((DARK, 2.8 * rim))
            ink = mix(colour, WHITE, 0.5)
        for ring, inset in rings:
            corner = (radius - inset) * (0.62 if piece == NOBLE else 1.0)
            box = (
                centre[0] - radius + inset,
                centre[1] - radius + inset,
                *(2 * (radius - inset),) * 2,
            )
            pygame.draw.rect(big, ring, box, border_radius=round(corner))
        if piece == NOBLE:
            pygame.draw.polygon(big, ink, placed(CROWN, centre, radius * 0.82))
        else:
            self._stamp(big, PIECE_LETTERS[piece], diameter * fine * NUMERAL, ink)
        sprite = pygame.transform.smoothscale(big, (side, side))
        if not midpoint:
            return sprite
        glow = _glow(side, diameter / 2, pad)
        glow.blit(sprite, (0, 0))
        return glow

    def _stamp(self, surface: "pygame.Surface", text: str, height: float, ink: Colour) -> None:
        """Write a text into the very middle of a surface."""
        import pygame

        font = pygame.font.Font(None, round(height / FONT_HEIGHT))
        drawn = font.render(text, True, ink)
        box = drawn.get_bounding_rect()
        width, height = surface.get_size()
        at = ((width - box.w) / 2 - box.x, (height - box.h) / 2 - box.y)
        surface.blit(drawn, (round(at[0]), round(at[1])))

    def _die(self, value: int, side: int, face: Colour, ink: Colour) -> "pygame.Surface":
        """Return a die's face."""
        import pygame

        fine = 2 * FINE
        big = pygame.Surface((side * fine, side * fine), pygame.SRCALPHA)
        big.fill((*face, 0))
        length = side * fine
        pygame.draw.rect(big, face, (0, 0, length, length), border_radius=length // 4)
        for x, y in PIPS[value]:
            at = (length * (0.5 + 0.25 * x), length * (0.5 + 0.25 * y))
            pygame.draw.circle(big, ink, at, length * 0.095)
        return pygame.transform.smoothscale(big, (side, side))

    def _disc(self, diameter: int, colour: Colour, hollow: bool = False) -> "pygame.Surface":
        """Return a small disc, or its outline."""
        import pygame

        length = diameter * 2 * FINE
        big = pygame.Surface((length, length), pygame.SRCALPHA)
        big.fill((*colour, 0))
        width = length // 7 if hollow else 0
        pygame.draw.circle(big, colour, (length / 2, length / 2), length / 2, width)
        return pygame.transform.smoothscale(big, (diameter, diameter))

    def _frame(
        self, width: int, height: int, line: int, colour: Colour, radius: int = 0
    ) -> "pygame.Surface":
        """Return an outline, by default of a tile."""
        import pygame

        big = pygame.Surface((width * FINE, height * FINE), pygame.SRCALPHA)
        big.fill((*colour, 0))
        corner = (radius or self.layout.px(4)) * FINE
        pygame.draw.rect(big, colour, big.get_rect(), line * FINE, border_radius=corner)
        return pygame.transform.smoothscale(big, (width, height))

    @functools.cached_property
    def _bare(self) -> "pygame.Surface":
        """The board before it is numbered for a seat."""
        import pygame

        large = Layout(self.layout.size, FINE)
        big = pygame.Surface((large.width, large.height))
        draw_shapes(big, large, self.home_path_tiles)
        bare, _ = opaque(self.layout)
        bare.blit(
            pygame.transform.smoothscale(big, (self.layout.width, self.layout.height)), (0, 0)
        )
        self._label_cards(bare)
        return bare

    def _label_cards(self, surface: "pygame.Surface") -> None:
        layout = self.layout
        for seat, word in enumerate(SEAT_WORDS):
            light = mix(SEAT_COLOURS[seat], WHITE, 0.2)
            surface.blit(self.text(word, 19, light), layout.in_card(seat, 16, 15))
            for column, label in enumerate(("progress", "combat", "bonus")):
                at = layout.in_card(seat, 16 + 78 * column, 70)
                surface.blit(self.text(label, 10.5, MUTED), at)
            surface.blit(self.text("credits", 10.5, MUTED), layout.in_card(seat, 16, 214))
            for value in range(1, 7):
                box = layout.die(seat, value - 1)
                die = self.die(
                    value, layout.px(DIE), mix(CARD, WHITE, 0.10), mix(CARD, WHITE, 0.28)
                )
                surface.blit(die, box[:2])

    def _board(self, seat: int, direction: int) -> "pygame.Surface":
        """Return the board numbered for a seat and direction, its corner and midpoint marked."""
        layout, numbered = self.layout, self._bare.copy()
        for absolute, (x, y, width, height) in enumerate(layout.numbers):
            owner, offset = divmod(absolute, board.QUARTER)
            colour = mix(WHITE, TILE, 0.25)
            if offset == ENTERING:
                colour = DARK if owner == SEATS - 1 else WHITE
            lines = number_at(seat, absolute, direction).split("/" if width < height else "\n")
            for row, line in enumerate(lines):
                text = self.text(line, 11, colour)
                middle = y + height / 2 + (row - (len(lines) - 1) / 2) * layout.px(12)
                at = (x + (width - text.get_width()) / 2, middle - text.get_height() / 2)
                numbered.blit(text, (round(at[0]), round(at[1])))
        x, y, width, height = layout.tiles[board.tile(seat, MIDPOINT)]
        numbered.blit(self.frame(width, height, layout.px(2), GLOW), (x, y))
        x, y, width, height = layout.card(seat)
        out = layout.px(2)
        size = (width + 2 * out, height + 2 * out)
        lit = self.frame(*size, out, SEAT_COLOURS[seat], layout.px(13))
        numbered.blit(lit, (x - out, y - out))
        return numbered


def opaque(layout: Layout) -> "tuple[pygame.Surface, np.ndarray[Any, np.dtype[np.uint8]]]":
    """Return an empty picture and its memory."""
    import pygame

    pixels = np.zeros((layout.height, layout.width, 3), np.uint8)
    return pygame.image.frombuffer(pixels.data, (layout.width, layout.height), "RGB"), pixels


def _glow(side: int, radius: float, reach: float) -> "pygame.Surface":
    """Return a soft light around a disc."""
    import pygame

    glow = pygame.Surface((side, side), pygame.SRCALPHA)
    glow.fill((*GLOW, 0))
    x, y = np.indices((side, side)) + 0.5 - side / 2
    beyond = (np.hypot(x, y) - radius) / reach
    light = np.clip(1.0 - beyond, 0.0, 1.0) * 210 * (beyond > -0.5)
    pygame.surfarray.pixels_alpha(glow)[:] = light.astype(np.uint8)
    return glow

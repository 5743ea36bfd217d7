"""Drawing a match: as text, as a picture without a display, and in a window.

The names here are all that other modules need. Importing them does not import pygame; drawing
pictures does, and without it raises an ``ImportError`` that says how to get it.
"""

from typing import TYPE_CHECKING, Final

from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.state import Record
from retinue.envs.render_art import load_pygame
from retinue.envs.render_layout import DESIGN_SIZE
from retinue.envs.render_picture import BoardPicture
from retinue.envs.render_text import LastMove, render_text

if TYPE_CHECKING:
    import pygame

__all__ = ["FPS", "BoardPicture", "LastMove", "Window", "render_text"]

FPS: Final = 4
"""Positions a second that a window shows."""
TITLE: Final = "Retinue"


class Window:
    """Shows positions on the screen; the window opens with the first.

    When its user closes it, further drawing is ignored and :attr:`closed` is true.

    Args:
        ruleset: the rules of the match.
        size: as for :class:`BoardPicture`.
        fps: drawing waits so that no more positions a second are shown; 0 does not wait.
    """

    def __init__(self, ruleset: Ruleset, size: int = DESIGN_SIZE, fps: int = FPS) -> None:
        self.closed = False
        self._picture = BoardPicture(ruleset, size)
        self._fps = fps
        self._screen: pygame.Surface | None = None
        self._clock: pygame.time.Clock | None = None

    def draw(self, game: Record, turn: Record | None = None, last: LastMove | None = None) -> None:
        """Show a position, like :meth:`BoardPicture.draw`."""
        pygame = load_pygame()
        if self.closed:
            return
        if self._screen is None or not pygame.display.get_init():  # pygame has one for all windows
            pygame.display.init()
            pygame.display.set_caption(TITLE)
            layout = self._picture.layout
            self._screen = pygame.display.set_mode((layout.width, layout.height))
            self._clock = pygame.time.Clock()
        self._screen.blit(self._picture.paint(game, turn, last), (0, 0))
        pygame.display.flip()
        self.pump()
        if self._clock is not None:
            self._clock.tick(self._fps)

    def pump(self) -> None:
        """Let the window answer its user; to be called now and then while nothing is drawn."""
        pygame = load_pygame()
        if self._screen is None or not pygame.display.get_init():
            return
        if any(event.type == pygame.QUIT for event in pygame.event.get()):
            self.close()

    def close(self) -> None:
        """Close the window, if it is open."""
        if self._screen is not None:
            load_pygame().display.quit()
        self._screen = self._clock = None
        self.closed = True

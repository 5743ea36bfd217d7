"""Rewards made from scores. The score is the rules' truth; the reward is a choice for training.

A seat's reward is the change in its value since it was last given one, so over a match a seat's
rewards sum to its final value. The value, divided by ``scale``, is by ``mode``:

``score``
    the seat's own total;
``margin``
    its total minus the mean of the others';
``place``
    0 until the match is over, then 1, 1/3, -1/3 or -1 for the first to the fourth place.

A place bonus is paid on top, once the match is over, by place as in ``place``.
"""

import math
import numbers
from dataclasses import dataclass
from typing import Any, Final

from retinue.envs.game.board import SEATS
from retinue.envs.game.engine import place, total
from retinue.envs.game.jit import inner_jit
from retinue.envs.game.state import OVER, Record

SCORE: Final = 0
MARGIN: Final = 1
PLACE: Final = 2
REWARD_MODES: Final = ("score", "margin", "place")


@dataclass(frozen=True)
class Reward:
    """How scores become rewards.

    Args:
        mode: ``"score"``, ``"margin"`` or ``"place"``.
        scale: by which values are divided; by default 100 points, and 1 for ``"place"``.
        place_bonus: what the first place pays in the end beside the value, already divided; the
            last one costs as much.
    """

    mode: str = "margin"
    scale: float | None = None
    place_bonus: float = 0.0

    def __post_init__(self) -> None:
        if self.mode not in REWARD_MODES:
            raise ValueError(f"unknown reward {self.mode!r}: use {', '.join(REWARD_MODES)}")
        scale, bonus = self.scale, self.place_bonus
        if scale is not None and not (isinstance(scale, numbers.Real) and 0 < scale < math.inf):
            raise ValueError(f"reward scale must be a number above 0, not {scale!r}")
        if not (isinstance(bonus, numbers.Real) and 0 <= bonus < math.inf):
            raise ValueError(f"place_bonus must be a number from 0 on, not {bonus!r}")

    @property
    def code(self) -> int:
        """The mode's number in compiled code."""
        return REWARD_MODES.index(self.mode)

    @property
    def divisor(self) -> float:
        """The scale in force."""
        return self.scale if self.scale is not None else 1.0 if self.mode == "place" else 100.0


@inner_jit
def value(game: Record, seat: int, mode: int, bonus: float) -> Any:
    """Return a seat's value before scaling, float64; ``bonus`` is that of places, not scaled."""
    by_place = 0.0
    if game.phase == OVER:
        by_place = 1.0 - 2.0 * (place(game, seat) - 1) / (SEATS - 1)
    if mode == PLACE:
        return (1.0 + bonus) * by_place
    own = total(game, seat)
    if mode == SCORE:
        return own + bonus * by_place
    others = 0
    for other in range(SEATS):
        if other != seat:
            others += total(game, other)
    return own - others / (SEATS - 1) + bonus * by_place

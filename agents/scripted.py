"""Scripted strategies: a few readable lines each, over shared facts of a position.

Each ``choose_...`` is a compiled policy (``opponents.POLICY_ARGUMENTS``): it fills the cleared
``turn`` of the seat to move, always legally, and depends on nothing but its arguments.
"""

from typing import Any, Final

import numpy as np

from retinue.envs.choosing import draw_turn
from retinue.envs.game.board import BACKWARD, FORWARD, GUARDS, NOBLE, PIECES
from retinue.envs.game.engine import legal_guards, noble_may_move
from retinue.envs.game.jit import inner_jit
from retinue.envs.game.state import Record
from retinue.envs.observation import steps_home

DIE: Final = 6
NOBODY: Final = -1
NEAREST: Final = 1
FARTHEST: Final = -1
"""Which of several Guards is served first, by its way Home."""


# --- Facts


@inner_jit
def way(game: Record, rules: Record, piece: int, direction: int) -> int:
    """Return how many steps a piece of the seat to move needs to Home in a direction."""
    seat = game.seat
    past = game.midpoint[seat, piece] != 0
    return steps_home(int(game.position[seat, piece]), past, direction, int(rules.home))


@inner_jit
def shorter(game: Record, rules: Record, piece: int) -> int:
    """Return the direction in which a piece is Home sooner."""
    ahead = way(game, rules, piece, FORWARD)
    return FORWARD if ahead <= way(game, rules, piece, BACKWARD) else BACKWARD


@inner_jit
def foremost(game: Record, rules: Record) -> int:
    """Return the piece that is Home soonest: a Guard that may move, else the Noble."""
    legal = legal_guards(game, rules)
    best = NOBLE
    fewest = 0
    for guard in range(GUARDS):
        if (legal >> guard) & 1:
            steps = way(game, rules, guard, shorter(game, rules, guard))
            if best == NOBLE or steps < fewest:
                best = guard
                fewest = steps
    return best


# --- Parts of a turn


@inner_jit
def send_noble(game: Record, rules: Record, turn: Record) -> None:
    """Move the Noble ahead of the Guards as far as it may, unless that leads it away from Home."""
    if noble_may_move(game, rules) and turn.direction == shorter(game, rules, NOBLE):
        turn.noble_steps = min(DIE, way(game, rules, NOBLE, turn.direction))


@inner_jit
def spend(game: Record, rules: Record, turn: Record, order: int) -> None:
    """Give every roll, highest first, to the ``NEAREST`` or ``FARTHEST`` Guard.

    Only Guards that may be given rolls count, and only until what they were given brings them Home.
    """
    legal = legal_guards(game, rules)
    steps = np.zeros(GUARDS, np.int64)
    for guard in range(GUARDS):
        if (legal >> guard) & 1:
            steps[guard] = way(game, rules, guard, turn.direction)
    for value in range(5, -1, -1):
        for _ in range(game.store[game.seat, value]):
            best = NOBODY
            for guard in range(GUARDS):
                if steps[guard] > 0 and (
                    best == NOBODY or order * (steps[guard] - steps[best]) < 0
                ):
                    best = guard
            if best != NOBODY:
                turn.rolls[best, value] += 1
                steps[best] -= value + 1


# --- Strategies


def choose_random(game: Any, rules: Any, key: Any, turn: Any, memory: int) -> int:
    """Choose uniformly, part by part."""
    draw_turn(game, rules, key, turn)
    return 0


def choose_racer(game: Any, rules: Any, key: Any, turn: Any, memory: int) -> int:
    """Spend everything on the foremost Guard, in its better direction; then on the next one."""
    turn.direction = shorter(game, rules, foremost(game, rules))
    send_noble(game, rules, turn)
    spend(game, rules, turn, NEAREST)
    return 0


def choose_spread(game: Any, rules: Any, key: Any, turn: Any, memory: int) -> int:
    """Keep the Guards level, in the direction that is better for all pieces together."""
    ahead = 0
    behind = 0
    for piece in range(PIECES):
        ahead += way(game, rules, piece, FORWARD)
        behind += way(game, rules, piece, BACKWARD)
    turn.direction = FORWARD if ahead <= behind else BACKWARD
    send_noble(game, rules, turn)
    spend(game, rules, turn, FARTHEST)
    return 0

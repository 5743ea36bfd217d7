"""Scripted strategies: a few readable lines each, over shared facts of a position.

Each ``choose_...`` is a compiled policy (``kernels.POLICY_ARGUMENTS``): it fills the cleared
``turn`` of the seat to move, always legally, and depends on nothing but its arguments.
"""

from typing import Any, Final

import numpy as np

from retinue.envs.game.board import (
    BACKWARD,
    ENTERING,
    FORWARD,
    GUARDS,
    HOME_PATH,
    IS_CASTLE,
    LOOP,
    MIDPOINT,
    NOBLE,
    PIECES,
    SEATS,
    YARD,
    offset_seen_by,
    tile,
)
from retinue.envs.game.dice import draw
from retinue.envs.game.engine import legal_guards, noble_may_move
from retinue.envs.game.jit import inner_jit
from retinue.envs.game.movement import is_blocked, next_position, stack
from retinue.envs.game.state import Record
from retinue.envs.observation import steps_home

DIE: Final = 6
NOBODY: Final = -1
NEAREST: Final = 1
FARTHEST: Final = -1
"""Which of several Guards is served first, by its way Home."""

WAY: Final = 0
ROOM: Final = 1
PREY: Final = 2
FACTS: Final = 3
"""Columns of a table of the Guards, int64 ``(GUARDS, FACTS)``, all 0 for one that may not move:
steps to Home in the turn's direction; steps before a stack stops it if it goes alone; and what one
roll captures, with bit ``value - 1`` set if stopping after ``value`` steps does."""
FREE: Final = 10 * LOOP
"""As ``ROOM``: no stack stands in its way."""


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


@inner_jit
def captures(game: Record, rules: Record, position: int) -> bool:
    """Tell whether a Guard that stops on its loop ``position`` captures somebody (rules 3.6)."""
    if IS_CASTLE[position] and rules.castles_protect:
        return False
    seat = int(game.seat)
    for turned in range(1, SEATS):
        other = (seat + turned) % SEATS
        theirs = offset_seen_by(other, seat, position)
        if theirs == ENTERING:
            continue
        if game.position[other, NOBLE] == theirs or stack(game, other, tile(seat, position)):
            return True
    return False


@inner_jit
def look_ahead(
    game: Record, rules: Record, piece: int, direction: int, most: int, row: Any
) -> None:
    """Write ``ROOM`` and ``PREY`` of a piece that may make up to ``most`` steps."""
    seat = int(game.seat)
    position = int(game.position[seat, piece])
    past = game.midpoint[seat, piece]
    row[PREY] = 0
    row[ROOM] = FREE
    for step in range(most):
        position = next_position(position, past, direction)
        if position >= HOME_PATH:
            return  # where nobody else can stand
        if is_blocked(game, seat, tile(seat, position), 1):
            row[ROOM] = step
            return
        if position == MIDPOINT:
            past = 1
        if step < DIE and captures(game, rules, position):
            row[PREY] |= 1 << step


@inner_jit
def survey(game: Record, rules: Record, turn: Record, table: Any) -> None:
    """Fill the table of the Guards for the turn's direction."""
    legal = legal_guards(game, rules)
    most = 0
    for value in range(6):
        most += int(game.store[game.seat, value]) * (value + 1)
    for guard in range(GUARDS):
        if (legal >> guard) & 1:
            table[guard, WAY] = way(game, rules, guard, turn.direction)
            look_ahead(game, rules, guard, turn.direction, most, table[guard])


@inner_jit
def left(game: Record, turn: Record, value: int) -> int:
    """Return how many stored rolls of ``value + 1`` nobody is given yet."""
    rolls = int(game.store[game.seat, value])
    for guard in range(GUARDS):
        rolls -= int(turn.rolls[guard, value])
    return rolls


@inner_jit
def takes(table: Any, guard: int, value: int) -> bool:
    """Tell whether a Guard that is not Home yet can move a roll of ``value + 1`` unstopped."""
    return bool(table[guard, WAY] > 0 and table[guard, ROOM] > value)


# --- Parts of a turn


@inner_jit
def give(turn: Record, table: Any, guard: int, value: int) -> None:
    """Give a Guard a roll of ``value + 1``."""
    turn.rolls[guard, value] += 1
    table[guard, WAY] -= value + 1
    table[guard, ROOM] -= value + 1


@inner_jit
def send_noble(game: Record, rules: Record, turn: Record) -> None:
    """Move the Noble ahead of the Guards as far as it may, unless that leads it away from Home."""
    if noble_may_move(game, rules):
        steps = way(game, rules, NOBLE, turn.direction)
        if steps == way(game, rules, NOBLE, shorter(game, rules, NOBLE)):
            row = np.empty(FACTS, np.int64)
            look_ahead(game, rules, NOBLE, turn.direction, DIE, row)
            turn.noble_steps = min(DIE, steps, row[ROOM])


@inner_jit
def capture(game: Record, turn: Record, table: Any) -> None:
    """Give a single roll to each Guard that captures with it, which then stays there."""
    for guard in range(GUARDS):
        for value in range(6):
            if (
                (table[guard, PREY] >> value) & 1
                and table[guard, WAY] > 0
                and left(game, turn, value) > 0
            ):
                give(turn, table, guard, value)
                table[guard, WAY] = 0


@inner_jit
def leave_yard(game: Record, turn: Record, table: Any) -> None:
    """Give each Guard that may leave the Yard the lowest roll that is left (rules 3.2)."""
    for guard in range(GUARDS):
        if game.position[game.seat, guard] == YARD:
            value = 0
            while value < 6 and left(game, turn, value) == 0:
                value += 1
            if value < 6 and takes(table, guard, value):
                give(turn, table, guard, value)


@inner_jit
def spend(game: Record, turn: Record, table: Any, order: int) -> None:
    """Give the rolls that are left, highest first, each to one Guard.

    It is the ``NEAREST`` or ``FARTHEST`` of those that the roll does not lead into a stack.
    """
    for value in range(5, -1, -1):
        for _ in range(left(game, turn, value)):
            best = NOBODY
            for guard in range(GUARDS):
                if takes(table, guard, value) and (
                    best == NOBODY or order * (table[guard, WAY] - table[best, WAY]) < 0
                ):
                    best = guard
            if best != NOBODY:
                give(turn, table, best, value)


# --- Strategies


def choose_random(game: Any, rules: Any, key: Any, turn: Any) -> int:
    """Choose uniformly, part by part.

    That is: one of the two directions; one of the Noble's 13 choices, but staying if it is Home;
    and for each stored roll nobody or one of the Guards that may be given rolls.
    """
    turn.direction = draw(key, 0, 2)
    if noble_may_move(game, rules):
        choice = draw(key, 1, 1 + 2 * DIE)
        turn.noble_after = 1 if choice > DIE else 0
        turn.noble_steps = choice - DIE if choice > DIE else choice
    legal = legal_guards(game, rules)
    takers = 1  # the first one is nobody
    for guard in range(GUARDS):
        takers += (legal >> guard) & 1
    counter = 2
    for value in range(6):
        for _ in range(game.store[game.seat, value]):
            taker = draw(key, counter, takers)
            counter += 1
            for guard in range(GUARDS):
                if (legal >> guard) & 1:
                    taker -= 1
                    if taker == 0:
                        turn.rolls[guard, value] += 1
    return 0


def choose_racer(game: Any, rules: Any, key: Any, turn: Any) -> int:
    """Race the foremost Guard Home, then the next, in the foremost one's better direction.

    On the way it captures what a single roll captures, leaves the Yard whenever it may and keeps
    out of blockades; nothing else of what others do concerns it.
    """
    turn.direction = shorter(game, rules, foremost(game, rules))
    send_noble(game, rules, turn)
    table = np.zeros((GUARDS, FACTS), np.int64)
    survey(game, rules, turn, table)
    capture(game, turn, table)
    leave_yard(game, turn, table)
    spend(game, turn, table, NEAREST)
    return 0


def choose_spread(game: Any, rules: Any, key: Any, turn: Any) -> int:
    """Keep the Guards level, in the direction that is better for all pieces together."""
    ahead = 0
    behind = 0
    for piece in range(PIECES):
        ahead += way(game, rules, piece, FORWARD)
        behind += way(game, rules, piece, BACKWARD)
    turn.direction = FORWARD if ahead <= behind else BACKWARD
    send_noble(game, rules, turn)
    table = np.zeros((GUARDS, FACTS), np.int64)
    survey(game, rules, turn, table)
    spend(game, turn, table, FARTHEST)
    return 0

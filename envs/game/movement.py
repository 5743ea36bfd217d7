"""How pieces move within a turn: steps, groups, blockades, captures and what they score."""

from typing import Final

from retinue.envs.game import board
from retinue.envs.game.board import (
    CHECKPOINT_AT,
    FORWARD,
    GUARDS,
    HOME_BIT,
    HOME_PATH,
    IS_CASTLE,
    LOOP,
    NO_CHECKPOINT,
    NOBLE,
    PIECES,
    SEATS,
    TURN_OFF,
    YARD,
    offset_seen_by,
    tile,
)
from retinue.envs.game.events import BLOCKED, CAPTURE, CHECKPOINT, EXIT, HOME, MIDPOINT, emit
from retinue.envs.game.jit import inline_jit, inner_jit
from retinue.envs.game.ruleset import CASTLE, REGULAR, SAFE
from retinue.envs.game.state import Record

LAST: Final = LOOP - 1
STACK_BITS: Final = 4
"""Bits of ``game.stacks`` that count one seat's Guards on a tile."""
STACK_MASK: Final = 15


@inline_jit
def next_position(position: int, midpoint: int, direction: int) -> int:
    """Return where one step leads from ``position`` (rules 2.2 to 2.7); not for a piece in Home."""
    if position == YARD:
        return 0
    if position >= HOME_PATH:
        return position + 1
    if direction == FORWARD:
        if midpoint and position == TURN_OFF:
            return HOME_PATH
        return position + 1 if position < LAST else 0
    if position == 0:
        return HOME_PATH if midpoint else LAST
    return position - 1


@inline_jit
def stack(game: Record, seat: int, at: int) -> int:
    """Return how many Guards a seat has on the absolute tile ``at``."""
    return (int(game.stacks[at]) >> (STACK_BITS * int(seat))) & STACK_MASK


@inline_jit
def is_blocked(game: Record, seat: int, at: int, moving: int) -> bool:
    """Tell whether another seat's stack stops ``moving`` pieces of a seat (rules 3.5.1, A11)."""
    stacks = int(game.stacks[at]) & ~(STACK_MASK << (STACK_BITS * int(seat)))
    while stacks:
        if stacks & STACK_MASK > moving:
            return True
        stacks >>= STACK_BITS
    return False


@inline_jit
def is_blocked_by_own(game: Record, seat: int, position: int, home: int) -> bool:
    """Tell whether two or more own Guards stop a seat's Noble (rules 3.5.2, A11, A22)."""
    if position == home:
        return False
    own = 0
    for guard in range(GUARDS):
        if game.position[seat, guard] == position:
            own += 1
    return own >= 2


@inline_jit
def _relocate(game: Record, seat: int, piece: int, position: int) -> None:
    """Put a piece on ``position`` and keep the table of stacks true."""
    if piece < GUARDS:
        one = 1 << (STACK_BITS * int(seat))
        before = game.position[seat, piece]
        if 0 <= before < HOME_PATH:
            game.stacks[tile(seat, before)] -= one
        if 0 <= position < HOME_PATH:
            game.stacks[tile(seat, position)] += one
    game.position[seat, piece] = position


@inline_jit
def _score_checkpoint(game: Record, rules: Record, piece: int, bit: int, log: Record) -> None:
    seat = game.seat
    kind = 1 if piece == NOBLE else 0
    points = 0
    if not (int(game.checkpoints[seat, piece]) >> bit) & 1:
        game.checkpoints[seat, piece] |= 1 << bit
        points = int(rules.checkpoint_points[bit, kind])
        game.progression[seat, piece] += points
        if bit != HOME_BIT:
            emit(log, CHECKPOINT, piece, bit, points)
    if bit == HOME_BIT:
        emit(log, HOME, piece, 0, points)


@inline_jit
def _step(game: Record, rules: Record, piece: int, position: int, log: Record) -> None:
    """Take a piece of the seat to move one step, to ``position``, and score it (rules 4.1)."""
    seat = game.seat
    if game.position[seat, piece] == YARD:
        if piece != NOBLE:
            game.credits[seat] -= 1
        emit(log, EXIT, piece, 0, 0)
    _relocate(game, seat, piece, position)
    if position == rules.home:
        _score_checkpoint(game, rules, piece, HOME_BIT, log)
        game.remaining[piece] = 0
        return
    game.remaining[piece] -= 1
    if position >= HOME_PATH:
        return
    if position == board.MIDPOINT:
        if not game.midpoint[seat, piece]:
            points = rules.midpoint_points[1 if piece == NOBLE else 0]
            game.midpoint[seat, piece] = 1
            game.checkpoints[seat, piece] = 0
            game.progression[seat, piece] += points
            emit(log, MIDPOINT, piece, 0, points)
        return
    bit = int(CHECKPOINT_AT[position])
    if bit != NO_CHECKPOINT:
        _score_checkpoint(game, rules, piece, bit, log)


@inline_jit
def _trim(game: Record, rules: Record, piece: int, penalised: bool, log: Record) -> None:
    """Take away a blocked piece's remaining steps, and their penalty (rules 3.5.3, 3.5.4)."""
    trimmed = game.remaining[piece]
    penalty = trimmed * rules.blockade_penalty if penalised else 0
    game.combat[game.seat] -= penalty
    game.remaining[piece] = 0
    emit(log, BLOCKED, piece, trimmed, -penalty)


@inner_jit
def noble_zone(game: Record, seat: int) -> int:
    """Return where a seat's Noble stands for captures: a row of the combat table (rules 4.2)."""
    position = game.position[seat, NOBLE]
    if position <= 0 or position >= HOME_PATH:
        return SAFE
    return CASTLE if IS_CASTLE[position] else REGULAR


@inner_jit
def _capture_on(game: Record, rules: Record, position: int, log: Record) -> None:
    """Let the seat to move capture what is unprotected on its ``position`` (rules 3.6)."""
    if IS_CASTLE[position] and rules.castles_protect:
        return
    seat = int(game.seat)
    for turned in range(1, SEATS):
        other = (seat + turned) % SEATS
        theirs = offset_seen_by(other, seat, position)
        if theirs == board.ENTERING:
            continue
        for piece in range(PIECES):
            if game.position[other, piece] == theirs:
                _capture(game, rules, other, piece, log)


@inner_jit
def _capture(game: Record, rules: Record, other: int, piece: int, log: Record) -> None:
    """Send a piece back to its Yard and score it for the seat to move (rules 3.6.3 to 3.6.5)."""
    seat = game.seat
    past = game.midpoint[seat, NOBLE]
    points = rules.combat[noble_zone(game, seat), past, 1 if piece == NOBLE else 0]
    game.combat[seat] += points
    _relocate(game, other, piece, YARD)
    game.progression[other, piece] = 0
    game.midpoint[other, piece] = 0
    if piece == NOBLE:
        game.credits[other] = rules.start_credits
    emit(log, CAPTURE, piece, other, points)


@inner_jit
def move_noble(game: Record, rules: Record, turn: Record, log: Record) -> None:
    """Move the Noble of the seat to move by ``game.remaining`` steps (rules 3.4)."""
    seat = game.seat
    while game.remaining[NOBLE] > 0:
        position = next_position(
            int(game.position[seat, NOBLE]), game.midpoint[seat, NOBLE], turn.direction
        )
        by_others = position < HOME_PATH and is_blocked(game, seat, tile(seat, position), 1)
        if by_others or is_blocked_by_own(game, seat, position, rules.home):
            _trim(game, rules, NOBLE, by_others, log)
        else:
            _step(game, rules, NOBLE, position, log)


@inline_jit
def _members(game: Record, waiting: int, guard: int) -> int:
    """Return the group of ``guard``: those waiting on its tile; one by one from the Yard (A8)."""
    position = game.position[game.seat, guard]
    if position == YARD:
        return 1 << guard
    group = 0
    for other in range(GUARDS):
        if (waiting >> other) & 1 and game.position[game.seat, other] == position:
            group |= 1 << other
    return group


@inline_jit
def _count(group: int) -> int:
    return (group & 1) + ((group >> 1) & 1) + ((group >> 2) & 1) + ((group >> 3) & 1)


@inner_jit
def move_guards(game: Record, rules: Record, turn: Record, log: Record) -> None:
    """Move the Guards of the seat to move by ``game.remaining`` steps, group by group (rules 3.3).

    A group is taken from those still waiting, which have not moved: so it is the group that stood
    together when the Guards' part of the turn began.
    """
    waiting = 0
    for guard in range(GUARDS):
        if game.remaining[guard] > 0:
            waiting |= 1 << guard
    while waiting:
        largest = 0
        for guard in range(GUARDS):
            if (waiting >> guard) & 1:
                group = _members(game, waiting, guard)
                if _count(group) > _count(largest):
                    largest = group
        waiting &= ~largest
        _move_group(game, rules, turn, largest, log)


@inner_jit
def _move_group(game: Record, rules: Record, turn: Record, group: int, log: Record) -> None:
    """Move the Guards of the bit mask ``group``, which stand together, until all have stopped.

    Where their next tiles differ the larger part goes on first, the smaller one after it (A9).
    """
    waiting = 0
    while group:
        alone = group & (group - 1) == 0
        part = group if alone else _larger_part(game, turn.direction, group)
        waiting |= group & ~part
        group = _step_together(game, rules, turn, part, log)
        if not group:
            group = waiting
            waiting = 0


@inline_jit
def _next_of(game: Record, guard: int, direction: int) -> int:
    seat = game.seat
    return next_position(int(game.position[seat, guard]), game.midpoint[seat, guard], direction)


@inner_jit
def _larger_part(game: Record, direction: int, group: int) -> int:
    """Return the Guards of ``group`` that share the next tile of most, else of the lowest one."""
    lowest = 0
    while not (group >> lowest) & 1:
        lowest += 1
    first = 0
    shared = _next_of(game, lowest, direction)
    for guard in range(lowest, GUARDS):
        if (group >> guard) & 1 and _next_of(game, guard, direction) == shared:
            first |= 1 << guard
    rest = group & ~first
    return rest if _count(rest) > _count(first) else first


@inner_jit
def _step_together(game: Record, rules: Record, turn: Record, group: int, log: Record) -> int:
    """Take a group one step; return those that go on (rules 3.3.4, 3.5, 3.6)."""
    seat = game.seat
    lowest = 0
    while not (group >> lowest) & 1:
        lowest += 1
    position = _next_of(game, lowest, turn.direction)
    if position < HOME_PATH and is_blocked(game, seat, tile(seat, position), _count(group)):
        _stop_blocked(game, rules, turn, group, log)
        return 0
    stopped = 0
    for guard in range(lowest, GUARDS):
        if (group >> guard) & 1:
            _step(game, rules, guard, position, log)
            if game.remaining[guard] == 0:
                stopped |= 1 << guard
    if stopped and position < HOME_PATH:
        _capture_on(game, rules, position, log)
    return group & ~stopped


@inner_jit
def _stop_blocked(game: Record, rules: Record, turn: Record, group: int, log: Record) -> None:
    """Stop a group in front of a stack; where it came to in this turn it captures (rules 3.6.1)."""
    seat = game.seat
    arrived = YARD
    for guard in range(GUARDS):
        if (group >> guard) & 1:
            assigned = 0
            for value in range(6):
                assigned += int(turn.rolls[guard, value]) * (value + 1)
            if game.remaining[guard] < assigned:
                arrived = game.position[seat, guard]
            _trim(game, rules, guard, True, log)
    if arrived != YARD:
        _capture_on(game, rules, arrived, log)

"""The referee, one game at a time: roll, legal Guards, play a turn, next seat, end.

A match goes ``start_game``; then for each turn :func:`roll` (or :func:`receive`, when the dice come
from elsewhere) and :func:`play`, until ``game.phase`` is ``OVER``. :func:`play` judges a turn
before it changes anything; movement itself is in :mod:`retinue.envs.game.movement`.
"""

from typing import Any, Final

import numpy as np

from retinue.envs.game import board
from retinue.envs.game.board import GUARDS, NOBLE, PIECES, SEATS, YARD
from retinue.envs.game.dice import die
from retinue.envs.game.events import FINISH, NO_PIECE, emit
from retinue.envs.game.jit import inline_jit, inner_jit, jit
from retinue.envs.game.movement import move_guards, move_noble
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.state import CHOOSE, OVER, ROLL, Record

LEGAL: Final = 0
NOT_ROLLED: Final = 1
MATCH_OVER: Final = 2
BAD_DIRECTION: Final = 3
BAD_NOBLE_STEPS: Final = 4
BAD_NOBLE_ORDER: Final = 5
NOBLE_HOME: Final = 6
NEGATIVE_ROLLS: Final = 7
TOO_FEW_ROLLS: Final = 8
GUARD_HOME: Final = 9
NO_CREDIT: Final = 10


class IllegalTurn(ValueError):  # noqa: N818 - the game's own word for it
    """A turn that the rules do not allow; the game was left as it was."""


@jit
def stored_rolls(game: Record, seat: int) -> int:
    """Return how many rolls a seat has in its store."""
    held = 0
    for value in range(6):
        held += int(game.store[seat, value])
    return held


@jit
def dice_count(game: Record, rules: Record) -> int:
    """Return how many dice the seat to move rolls (rules 3.1.1)."""
    return int(rules.dice[stored_rolls(game, game.seat)])


@inner_jit
def is_grace(game: Record) -> bool:
    """Tell whether the roll received is a natural grace roll (rules 3.1.2)."""
    if game.turns_taken[game.seat] == 0 or game.dice == 0:
        return False
    first = int(game.rolled[0])
    if game.dice == 1:
        return first == 6
    second = int(game.rolled[1])
    return first == 6 or second == 6 or first + second == 6


@inner_jit
def is_forced_grace(game: Record, rules: Record) -> bool:
    """Tell whether a seat that rolled no grace is given one (rules 3.1.4, A6)."""
    seat = game.seat
    if game.turns_taken[seat] == 0 or game.credits[seat] > 0:
        return False
    in_yard = 0
    for guard in range(GUARDS):
        position = game.position[seat, guard]
        if position == YARD:
            in_yard += 1
        elif position != rules.home:
            return False
    return in_yard > 0


@jit
def receive(game: Record, rules: Record) -> None:
    """Take the first ``game.dice`` values of ``game.rolled`` into the store (rules 3.1)."""
    seat = game.seat
    for index in range(game.dice):
        game.store[seat, game.rolled[index] - 1] += 1
    earned = 0
    if is_grace(game) or is_forced_grace(game, rules):
        earned = min(int(rules.credits_per_grace), int(rules.max_credits - game.credits[seat]))
    game.credits[seat] += earned
    game.credits_earned = earned
    game.phase = CHOOSE


@jit
def roll(game: Record, rules: Record, seed: Any) -> None:
    """Roll the dice of the seat to move, those that ``seed`` gives, and receive them."""
    seat = int(game.seat)
    game.dice = dice_count(game, rules)
    for index in range(game.dice):
        game.rolled[index] = die(seed, seat, int(game.turns_taken[seat]), index)
    receive(game, rules)


@jit
def legal_guards(game: Record, rules: Record) -> int:
    """Return a bit mask of the Guards that may be given rolls now (rules 3.2).

    A seat's credits do not change while it chooses, so the mask holds for the whole turn.
    """
    seat = game.seat
    credits = int(game.credits[seat])
    mask = 0
    for guard in range(GUARDS):
        position = game.position[seat, guard]
        if position == YARD:
            if credits > 0:
                credits -= 1
                mask |= 1 << guard
        elif position != rules.home:
            mask |= 1 << guard
    return mask


@jit
def noble_may_move(game: Record, rules: Record) -> bool:
    """Tell whether the Noble of the seat to move may be moved at all (rules 3.2)."""
    return bool(game.position[game.seat, NOBLE] != rules.home)


@inline_jit
def _verdict(reason: int, guard: int, value: int) -> int:
    return reason + 16 * guard + 256 * value


@jit
def judge(game: Record, rules: Record, turn: Record) -> int:
    """Return ``LEGAL`` or what is wrong with ``turn``, to be put in words by :func:`explain`."""
    if game.phase == OVER:
        return MATCH_OVER
    if game.phase == ROLL:
        return NOT_ROLLED
    if not board.FORWARD <= turn.direction <= board.BACKWARD:
        return BAD_DIRECTION
    if turn.noble_steps < 0 or turn.noble_steps > 6:
        return BAD_NOBLE_STEPS
    if turn.noble_after < 0 or turn.noble_after > (1 if turn.noble_steps > 0 else 0):
        return BAD_NOBLE_ORDER
    if turn.noble_steps > 0 and not noble_may_move(game, rules):
        return NOBLE_HOME
    legal = legal_guards(game, rules)
    for value in range(6):
        spent = 0
        for guard in range(GUARDS):
            count = int(turn.rolls[guard, value])
            if count < 0:
                return _verdict(NEGATIVE_ROLLS, guard, value)
            if count > 0 and not (legal >> guard) & 1:
                at_home = game.position[game.seat, guard] == rules.home
                return _verdict(GUARD_HOME if at_home else NO_CREDIT, guard, value)
            spent += count
        if spent > game.store[game.seat, value]:
            return _verdict(TOO_FEW_ROLLS, 0, value)
    return LEGAL


def explain(verdict: int, game: Record, turn: Record) -> str:
    """Return in words why :func:`judge` refused ``turn``: which Guard, which roll, which credit."""
    seat = int(game["seat"])
    guard, value = verdict // 16 % 16, verdict // 256
    spent = int(turn["rolls"][:, value].sum())
    who = f"{board.SEAT_NAMES[seat]}'s"
    return {
        NOT_ROLLED: f"{who} roll has not been received yet",
        MATCH_OVER: "the match is over",
        BAD_DIRECTION: f"direction {turn['direction']} is neither 0 (forward) nor 1 (backward)",
        BAD_NOBLE_STEPS: f"Noble steps must be 0 to 6, not {turn['noble_steps']}",
        BAD_NOBLE_ORDER: "the Noble moves before (0) or after (1) the Guards, and with 0 steps "
        f"before; not {turn['noble_after']}",
        NOBLE_HOME: f"{who} Noble is Home and cannot move {turn['noble_steps']} steps",
        NEGATIVE_ROLLS: f"Guard G{guard + 1} is given a negative number of {value + 1}s",
        TOO_FEW_ROLLS: f"{spent} rolls of {value + 1} are assigned, but {who} store holds "
        f"{game['store'][seat, value]}",
        GUARD_HOME: f"a roll of {value + 1} is assigned to {who} Guard G{guard + 1}, who is Home",
        NO_CREDIT: f"a roll of {value + 1} is assigned to {who} Guard G{guard + 1} in the Yard, "
        f"but its {game['credits'][seat]} exit credits belong to lower-numbered Guards",
    }[verdict % 16]


@jit
def play(game: Record, rules: Record, turn: Record, log: Record) -> int:
    """Play one turn, or refuse it and change nothing (rules 3).

    Args:
        game: ``GAME``, its roll received; on return the next seat's roll is due or the match over.
        rules: ``RULES``.
        turn: ``TURN``.
        log: ``LOG``, to which events are added if it is switched on.

    Returns:
        ``LEGAL`` or what :func:`judge` found.
    """
    verdict = judge(game, rules, turn)
    if verdict != LEGAL:
        return verdict
    seat = game.seat
    for guard in range(GUARDS):
        total = 0
        for value in range(6):
            count = int(turn.rolls[guard, value])
            game.store[seat, value] -= count
            total += count * (value + 1)
        game.remaining[guard] = total
    game.remaining[NOBLE] = turn.noble_steps
    if not turn.noble_after:
        move_noble(game, rules, turn, log)
    move_guards(game, rules, turn, log)
    if turn.noble_after:
        move_noble(game, rules, turn, log)
    _finish_seat(game, rules, log)
    _next_turn(game, rules)
    return LEGAL


@inline_jit
def has_finished(game: Record, rules: Record, seat: int) -> bool:
    """Tell whether all five pieces of a seat are Home."""
    for piece in range(PIECES):
        if game.position[seat, piece] != rules.home:
            return False
    return True


@inner_jit
def _finish_seat(game: Record, rules: Record, log: Record) -> None:
    """Note the seat to move as finished if it is, and give its bonus (rules 4.3)."""
    seat = game.seat
    if not has_finished(game, rules, seat):
        return
    bonus = rules.completion_bonus[game.finished]
    game.bonus[seat] += bonus
    game.finish_order[game.finished] = seat
    game.finished += 1
    emit(log, FINISH, NO_PIECE, 0, bonus)


@inner_jit
def _next_turn(game: Record, rules: Record) -> None:
    """Move the clock on and find the seat that moves next (rules 3 and 5)."""
    game.turns_taken[game.seat] += 1
    game.turn += 1
    game.clock_seconds = max(0, game.clock_seconds - rules.turn_seconds)
    for index in range(game.dice):
        game.rolled[index] = 0
    game.dice = 0
    game.credits_earned = 0
    if game.finished == SEATS or game.clock_seconds == 0:
        game.phase = OVER
        return
    game.phase = ROLL
    seat = (int(game.seat) + 1) % SEATS
    while has_finished(game, rules, seat):
        seat = (seat + 1) % SEATS
    game.seat = seat


@jit
def total(game: Record, seat: int) -> int:
    """Return a seat's total score (rules 4)."""
    points = int(game.combat[seat]) + int(game.bonus[seat])
    for piece in range(PIECES):
        points += int(game.progression[seat, piece])
    return points


@jit
def place(game: Record, seat: int) -> int:
    """Return a seat's place, 1 to 4; equal totals share the better one (rules 5, A20)."""
    own = total(game, seat)
    better = 0
    for other in range(SEATS):
        if total(game, other) > own:
            better += 1
    return 1 + better


def set_dice(game: Record, ruleset: Ruleset, rolled: list[int]) -> None:
    """Receive dice that came from elsewhere, in the order in which they fell.

    Raises:
        ValueError: the roll is not due, or the number or values of the dice cannot be.
    """
    if game["phase"] != ROLL:
        raise ValueError("no roll is due")
    if wrong := [value for value in rolled if not 1 <= value <= 6]:
        raise ValueError(f"a die shows {wrong[0]}, not 1 to 6")
    due = _set_dice(game, ruleset.packed, np.array(rolled, np.int64))
    if len(rolled) != due:
        held = stored_rolls(game, game["seat"])
        raise ValueError(f"{len(rolled)} dice, but with {held} rolls in store {due} are rolled")


@jit
def _set_dice(game: Record, rules: Record, rolled: Any) -> int:
    """Receive dice, int64 ``(n,)``, if there are as many as are due; return how many are."""
    due = dice_count(game, rules)
    if rolled.shape[0] == due:
        game.dice = due
        for index in range(due):
            game.rolled[index] = rolled[index]
        receive(game, rules)
    return int(due)


def play_or_raise(game: Record, ruleset: Ruleset, turn: Record, log: Record) -> None:
    """Play one turn like :func:`play`.

    Raises:
        IllegalTurn: with the reason; the game is byte for byte as it was.
    """
    verdict = play(game, ruleset.packed, turn, log)
    if verdict != LEGAL:
        raise IllegalTurn(explain(verdict, game, turn))

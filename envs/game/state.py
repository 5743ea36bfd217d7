"""The game record, turns, new games, and the state as JSON.

``GAME`` holds everything that all seats see; the seed of the dice is deliberately no part of it,
so that neither a policy nor a search over copies can look at the future.
"""

import math
from itertools import chain
from typing import Annotated, Any, Final, TypeAlias

import numpy as np
from pydantic import Field

from retinue.envs.game import board
from retinue.envs.game.board import GUARDS, LOOP, PIECES, SEATS, YARD
from retinue.envs.game.jit import jit
from retinue.envs.game.ruleset import MAX_DICE, Ruleset
from retinue.envs.game.schema import SchemaError, StrictModel, build

Record: TypeAlias = Any
"""A NumPy record; its docstring or name says of which dtype (``GAME``, ``TURN``, ``RULES``)."""

ROLL: Final = 0
CHOOSE: Final = 1
OVER: Final = 2
"""Phases of a game: the seat's roll is due, its turn is due, the match has ended."""

MAX_POINTS: Final = 10**8
"""The most points that a written state may start from: far from where 32 bits overflow."""

GAME = np.dtype(
    (
        np.record,
        np.dtype(
            [
                ("position", "i2", (SEATS, PIECES)),  # rules 1.8
                ("midpoint", "i2", (SEATS, PIECES)),  # 1 while midpoint progress is active
                ("checkpoints", "i2", (SEATS, PIECES)),  # bit masks, rules 4.1
                ("progression", "i4", (SEATS, PIECES)),
                ("combat", "i8", (SEATS,)),  # penalties of a long match under harsh rules add up
                ("bonus", "i4", (SEATS,)),
                ("store", "i2", (SEATS, 6)),  # stored rolls of each value 1 to 6
                ("credits", "i4", (SEATS,)),
                ("turns_taken", "i4", (SEATS,)),
                ("clock_seconds", "i4"),  # what is left
                ("turn", "i4"),  # turns of the match so far
                ("seat", "i4"),  # to move
                ("phase", "i4"),
                ("rolled", "i2", (MAX_DICE,)),  # this turn's dice, in order
                ("dice", "i4"),  # how many of them
                ("credits_earned", "i4"),  # by this turn's roll
                ("finished", "i4"),  # seats that are wholly Home
                ("finish_order", "i4", (SEATS,)),  # those seats, first first
                ("stacks", "u2", (LOOP,)),  # Guards by absolute tile, four bits for each seat
                ("remaining", "i4", (PIECES,)),  # steps still to make within the turn; else 0
            ],
            align=True,
        ),
    )
)

TURN = np.dtype(
    (
        np.record,
        np.dtype(
            [
                ("direction", "i4"),  # board.FORWARD or board.BACKWARD
                ("noble_steps", "i4"),  # 0 to 6
                ("noble_after", "i4"),  # 1: the Noble moves after the Guards
                ("rolls", "i2", (GUARDS, 6)),  # how many rolls of each value each Guard gets
            ],
            align=True,
        ),
    )
)
"""One seat's whole choice (rules 3.2): everything that plays produces one of these."""


@jit
def start_game(game: Record, rules: Record) -> None:
    """Set ``game`` to the start of a match: all pieces in their Yards, the first roll due."""
    for seat in range(SEATS):
        for piece in range(PIECES):
            game.position[seat, piece] = YARD
            game.midpoint[seat, piece] = 0
            game.checkpoints[seat, piece] = 0
            game.progression[seat, piece] = 0
        for value in range(6):
            game.store[seat, value] = 0
        game.combat[seat] = 0
        game.bonus[seat] = 0
        game.credits[seat] = rules.start_credits
        game.turns_taken[seat] = 0
        game.finish_order[seat] = 0
    for piece in range(PIECES):
        game.remaining[piece] = 0
    for tile in range(LOOP):
        game.stacks[tile] = 0
    for index in range(MAX_DICE):
        game.rolled[index] = 0
    game.clock_seconds = rules.clock_seconds
    game.turn = 0
    game.seat = 0
    game.phase = ROLL
    game.dice = 0
    game.credits_earned = 0
    game.finished = 0


def new_game(ruleset: Ruleset) -> Record:
    """Return a ``GAME`` record at the start of a match."""
    game = np.zeros(1, GAME)[0]
    start_game(game, ruleset.packed)
    return game


def empty_turn() -> Record:
    """Return a ``TURN`` record that moves nothing, forward."""
    return np.zeros(1, TURN)[0]


def totals(games: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return each seat's total score, int64, shape ``(..., 4)``, of a record or array of games."""
    progression = np.asarray(games["progression"], np.int64).sum(axis=-1)
    return progression + games["combat"] + games["bonus"]  # type: ignore[no-any-return]


_SeatRow = Annotated[tuple[int, ...], Field(min_length=SEATS, max_length=SEATS)]
_PieceRow = Annotated[tuple[int, ...], Field(min_length=PIECES, max_length=PIECES)]
_PieceTable = Annotated[tuple[_PieceRow, ...], Field(min_length=SEATS, max_length=SEATS)]
_StoreRow = Annotated[tuple[int, ...], Field(min_length=6, max_length=6)]
_StoreTable = Annotated[tuple[_StoreRow, ...], Field(min_length=SEATS, max_length=SEATS)]


class StateModel(StrictModel):
    """STATE of the match record: what is on the board between two turns."""

    position: _PieceTable
    midpoint: _PieceTable
    checkpoints: _PieceTable
    progression: _PieceTable
    combat: _SeatRow
    bonus: _SeatRow
    store: _StoreTable
    credits: _SeatRow
    turns_taken: _SeatRow
    clock_seconds: int


STATE_FIELDS: Final = tuple(StateModel.model_fields)
_COUNTS: Final = tuple(math.prod(GAME[name].shape) for name in STATE_FIELDS)
"""How many numbers each entry has."""
_ENTRY_OF: Final = np.repeat(np.arange(len(STATE_FIELDS)), _COUNTS)
"""Of which entry each number is."""


def state_to_json(game: Record) -> dict[str, Any]:
    """Return STATE of the match record as plain lists and integers."""
    return {name: game[name].tolist() for name in STATE_FIELDS}


def state_from_json(
    data: dict[str, Any] | StateModel, ruleset: Ruleset, source: str = "state"
) -> Record:
    """Return a ``GAME`` record, its roll due, made from STATE.

    STATE names neither the seat to move nor the finishing order. They follow from the turns taken:
    the lowest-numbered unfinished seat among those with the fewest moves next; seats finished in
    the order of (turns taken, seat).

    Raises:
        SchemaError: the data has not the form of STATE or cannot be under ``ruleset``; the message
            names ``source`` and the entry.
    """
    state = data if isinstance(data, StateModel) else build(StateModel, data, source)
    numbers = np.array(_numbers(state))
    _check_state(state, numbers, ruleset, source)
    games = np.zeros(1, GAME)
    _write_state(games, numbers, ruleset.home)
    return games[0]


def _numbers(state: StateModel) -> list[int]:
    """Return all numbers of a state, entry by entry."""
    found: list[int] = []
    for name in STATE_FIELDS:
        entry = getattr(state, name)
        if isinstance(entry, int):
            found.append(entry)
        elif isinstance(entry[0], int):
            found += entry
        else:
            found += chain.from_iterable(entry)
    return found


@jit
def _write_state(games: Any, numbers: Any, home: int) -> None:
    """Set a game of zeros, ``GAME`` ``(1,)``, to a state, given as by :func:`_numbers`."""
    game = games[0]
    pieces = SEATS * PIECES
    tables = numbers[: 4 * pieces].reshape((4, SEATS, PIECES))
    rest = numbers[4 * pieces :]
    for seat in range(SEATS):
        for piece in range(PIECES):
            game.position[seat, piece] = tables[0, seat, piece]
            game.midpoint[seat, piece] = tables[1, seat, piece]
            game.checkpoints[seat, piece] = tables[2, seat, piece]
            game.progression[seat, piece] = tables[3, seat, piece]
        game.combat[seat] = rest[seat]
        game.bonus[seat] = rest[SEATS + seat]
        for value in range(6):
            game.store[seat, value] = rest[2 * SEATS + 6 * seat + value]
        game.credits[seat] = rest[8 * SEATS + seat]
        game.turns_taken[seat] = rest[9 * SEATS + seat]
    game.clock_seconds = rest[10 * SEATS]
    _write_stacks(game)
    _write_order(game, home)


@jit
def _write_stacks(game: Record) -> None:
    """Note where Guards stand."""
    for seat in range(SEATS):
        for guard in range(GUARDS):
            position = int(game.position[seat, guard])
            if 0 <= position < LOOP:
                game.stacks[board.tile(seat, position)] += 1 << (4 * seat)


@jit
def _write_order(game: Record, home: int) -> None:
    """Note who has finished in which order, and who rolls next."""
    next_seat = -1
    for seat in range(SEATS):
        turns = game.turns_taken[seat]
        game.turn += turns
        finished = True
        for piece in range(PIECES):
            finished = finished and game.position[seat, piece] == home
        if finished:
            at = game.finished
            while at > 0 and game.turns_taken[game.finish_order[at - 1]] > turns:
                game.finish_order[at] = game.finish_order[at - 1]
                at -= 1
            game.finish_order[at] = seat
            game.finished += 1
        elif next_seat < 0 or turns < game.turns_taken[next_seat]:
            next_seat = seat
    over = next_seat < 0 or game.clock_seconds == 0
    game.phase = OVER if over else ROLL
    game.seat = next_seat if next_seat >= 0 else game.finish_order[SEATS - 1]


def _check_state(state: StateModel, numbers: Any, ruleset: Ruleset, source: str) -> None:
    """Refuse numbers, ``(n,)`` in the order of the entries, that no match could show."""
    limits = {
        "position": (YARD, ruleset.home),
        "midpoint": (0, 1),
        "checkpoints": (0, (1 << board.CHECKPOINTS) - 1),
        "progression": (0, MAX_POINTS),
        "combat": (-MAX_POINTS, MAX_POINTS),
        "bonus": (0, MAX_POINTS),
        "store": (0, ruleset.store_capacity),
        "credits": (0, ruleset.max_credits),
        "turns_taken": (0, ruleset.turns),
        "clock_seconds": (0, ruleset.clock_seconds),
    }
    low, high = np.array(list(limits.values()))[_ENTRY_OF].T
    within = (low <= numbers) & (high >= numbers)
    if not within.all():
        at = int(within.argmin())
        entry = int(_ENTRY_OF[at])
        name = STATE_FIELDS[entry]
        least, most = limits[name]
        index = np.unravel_index(at - sum(_COUNTS[:entry]), GAME[name].shape)
        place = "".join(f"[{part}]" for part in index)
        raise SchemaError(
            f"{source}: {name}{place}: {_numbers(state)[at]} is not in {least} ... {most}"
        )
    for seat in range(SEATS):
        held = sum(state.store[seat])
        if held > ruleset.store_capacity:
            raise SchemaError(
                f"{source}: store[{seat}]: {held} rolls are more than {ruleset.store_capacity}"
            )
        for piece in range(PIECES):
            if state.midpoint[seat][piece] and state.position[seat][piece] == YARD:
                name = board.PIECE_NAMES[piece]
                raise SchemaError(
                    f"{source}: midpoint[{seat}][{piece}]: {name} is in the Yard, so it must be 0"
                )

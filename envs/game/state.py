"""The game record, turns, new games, and the state as JSON.

``GAME`` holds everything that all seats see; the seed of the dice is deliberately no part of it,
so that neither a policy nor a search over copies can look at the future.
"""

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
    _check_state(state, ruleset, source)
    game = new_game(ruleset)
    for name in STATE_FIELDS:
        game[name] = getattr(state, name)
    stacks = [0] * LOOP
    for seat in range(SEATS):
        for offset in state.position[seat][:GUARDS]:
            if 0 <= offset < LOOP:
                stacks[board.tile(seat, offset)] += 1 << (4 * seat)
    game["stacks"] = stacks
    home = [set(row) == {ruleset.home} for row in state.position]
    order = sorted((seat for seat in range(SEATS) if home[seat]), key=_by_turns(state))
    waiting = sorted((seat for seat in range(SEATS) if not home[seat]), key=_by_turns(state))
    game["finished"] = len(order)
    game["finish_order"][: len(order)] = order
    game["turn"] = sum(state.turns_taken)
    game["seat"] = waiting[0] if waiting else order[-1]
    game["phase"] = ROLL if waiting and state.clock_seconds > 0 else OVER
    return game


def _by_turns(state: StateModel) -> Any:
    return lambda seat: (state.turns_taken[seat], seat)


def _flat(values: Any) -> tuple[int, ...]:
    """Return the numbers of an entry, whether it is one, a row or a table."""
    if isinstance(values, int):
        return (values,)
    return values if isinstance(values[0], int) else tuple(chain.from_iterable(values))


def _check_state(state: StateModel, ruleset: Ruleset, source: str) -> None:
    """Refuse numbers that no match under ``ruleset`` could show."""
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
    for name, (low, high) in limits.items():
        values = getattr(state, name)
        flat = _flat(values)
        if low <= min(flat) and max(flat) <= high:
            continue
        for index, value in np.ndenumerate(np.asarray(values, object)):
            if not low <= value <= high:
                place = "".join(f"[{part}]" for part in index)
                raise SchemaError(f"{source}: {name}{place}: {value} is not in {low} ... {high}")
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

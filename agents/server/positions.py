"""From a request's position to a game, and from a game to what answers say of it.

Everything that is decided here is decided by the engine.
"""

import functools
import json
import secrets

import numpy as np

from retinue.agents.server.problems import ILLEGAL_TURN, ProblemError, invalid
from retinue.agents.server.schemas import Plain, Position, RollRequest, UnderRules
from retinue.envs.game import engine
from retinue.envs.game.board import GUARDS
from retinue.envs.game.dice import SEED_BITS
from retinue.envs.game.record import ChoicesModel, Recorder, result_of
from retinue.envs.game.ruleset import Ruleset, load_ruleset
from retinue.envs.game.schema import SchemaError
from retinue.envs.game.state import OVER, ROLL, Record, StateModel, state_from_json, totals


def ruleset_of(asked: UnderRules) -> Ruleset:
    """Return the rules that a request is meant under."""
    if asked.rules is not None:
        return asked.rules
    assert asked.mode is not None  # one of the two is given
    return load_ruleset(asked.mode)


@functools.cache
def _digest_of_mode(mode: str) -> str:
    return load_ruleset(mode).digest


def digest_of(ruleset: Ruleset) -> str:
    """Return a ruleset's digest, quickly for those of the modes."""
    shipped = ruleset is load_ruleset(ruleset.mode)
    return _digest_of_mode(ruleset.mode) if shipped else ruleset.digest


def game_of(state: StateModel, seat: int, ruleset: Ruleset) -> Record:
    """Return a ``GAME`` whose roll is due.

    Raises:
        ProblemError: the state cannot be, its match is over, or another seat is to move.
    """
    try:
        game = state_from_json(state, ruleset)
    except SchemaError as error:
        raise invalid("state", str(error).removeprefix("state: ")) from error
    if game["phase"] == OVER:
        raise invalid("state", "the match is over: nobody is to move")
    if game["seat"] != seat:
        raise invalid("seat", f"by the turns taken {game['seat']} is to move, not {seat}")
    return game


def received(game: Record, ruleset: Ruleset, rolled: tuple[int, ...]) -> Record:
    """Receive dice that fell elsewhere in ``game``, and return it.

    Raises:
        ProblemError: they cannot have fallen.
    """
    try:
        engine.set_dice(game, ruleset, list(rolled))
    except ValueError as error:
        raise invalid("rolled", error) from error
    return game


def position_of(asked: Position) -> tuple[Record, Ruleset]:
    """Return the ``GAME`` of a request, its turn due, and its rules.

    Raises:
        ProblemError: there is no such position.
    """
    ruleset = ruleset_of(asked)
    return received(game_of(asked.state, asked.seat, ruleset), ruleset, asked.rolled), ruleset


def roll_of(asked: RollRequest) -> Plain:
    """Roll, or receive what was rolled; return the ``RollAnswer``.

    Raises:
        ProblemError: no roll is due there, or the dice cannot have fallen.
    """
    ruleset = ruleset_of(asked)
    game = game_of(asked.state, asked.seat, ruleset)
    if asked.rolled is not None:
        received(game, ruleset, asked.rolled)
    else:
        seed = secrets.randbits(SEED_BITS) if asked.seed is None else asked.seed
        engine.roll(game, ruleset.packed, np.uint64(seed))
    legal = legal_of(game, ruleset)
    return {
        "seat": asked.seat,
        "rolled": rolled_of(game),
        "credits_earned": int(game["credits_earned"]),
        "credits": int(game["credits"][asked.seat]),
        "store": legal["store"],
        "legal": legal,
    }


def rolled_of(game: Record) -> list[int]:
    """Return the dice of the turn that is due."""
    return game["rolled"][: game["dice"]].tolist()  # type: ignore[no-any-return]


def legal_of(game: Record, ruleset: Ruleset) -> Plain:
    """Return what the seat to move may choose, ``Legal``."""
    mask = int(engine.legal_guards(game, ruleset.packed))
    return {
        "guards": [bool(mask >> guard & 1) for guard in range(GUARDS)],
        "noble": bool(engine.noble_may_move(game, ruleset.packed)),
        "store": game["store"][game["seat"]].tolist(),
    }


def turn_of(choices: ChoicesModel, field: str | None) -> Record:
    """Return the ``TURN`` of a request, which ``field`` of it holds.

    Raises:
        ProblemError: it is not written as the record's format wants it.
    """
    try:
        return choices.to_turn()
    except ValueError as error:
        raise invalid(field, error) from error


def verdict_on(game: Record, ruleset: Ruleset, choices: ChoicesModel) -> Plain:
    """Return whether a turn is legal, ``Verdict``."""
    turn = turn_of(choices, "turn")
    verdict = int(engine.judge(game, ruleset.packed, turn))
    legal = verdict == engine.LEGAL
    return {"legal": legal, "reason": None if legal else engine.explain(verdict, game, turn)}


def illegal(reason: object, field: str | None) -> ProblemError:
    """Return that the rules do not allow a turn."""
    return ProblemError(422, str(reason), field, ILLEGAL_TURN)


def played(asked: Position, choices: ChoicesModel) -> Plain:
    """Play a turn; return the ``PlayAnswer``.

    Raises:
        ProblemError: there is no such position, or the rules do not allow the turn.
    """
    ruleset = ruleset_of(asked)
    game_of(asked.state, asked.seat, ruleset)
    recorder = Recorder(ruleset, [""] * 4, None, asked.state.model_dump(mode="json"))
    received(recorder.game, ruleset, asked.rolled)
    try:
        recorder.play(turn_of(choices, "turn"))
    except engine.IllegalTurn as error:
        raise illegal(error, "turn") from error
    game = recorder.game
    return {
        "line": json.loads(recorder.lines[1]),
        "next": next_of(game, ruleset),
        "totals": totals(game).tolist(),
        "result": result_of(game) if game["phase"] == OVER else None,
    }


def next_of(game: Record, ruleset: Ruleset) -> Plain | None:
    """Return who rolls next and how many dice, ``Next``; None if the match is over."""
    if game["phase"] != ROLL:
        return None
    return {"seat": int(game["seat"]), "dice": int(engine.dice_count(game, ruleset.packed))}

"""Single turns staged for one rule each: a position in a few words, and what is done in it.

A scene is a line of four columns: the paragraph of ``docs/rules.md`` that decides it, what it
shows, the position, and the turn::

    3.5.1 | a stack of two stops one | green G1 51, red G1 57 G2 57 | backward G1 6 2 N 4 after

The position is a list of

- ``green G1 51 N 70* credits 1``: a seat's pieces and numbers (``credits``, ``combat``, ``turns``);
  ``home`` puts all its pieces there. A place on the loop is Green's offset, whose piece it may be;
  others are codes (rules 1.8). ``*`` says that midpoint progress is active, ``/5`` gives the
  record bits and ``+90`` the progression score, in this order.
- ``blue to move``; by default Green is. ``first turn``: nobody has had one; else every seat has.
- ``store 1 1 5`` and ``rolls 6 2``: the stored rolls of the seat to move, and the dice. Without
  ``rolls`` both together are the rolls that the turn spends, filled up with ones.
- ``clock 10``, ``brawl``.

:func:`play_scene` plays one and returns what went in and what came out, as the match record writes
both. The scenes themselves are in :mod:`retinue.envs.scenes`.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

from retinue.envs.game import board, engine
from retinue.envs.game.board import LOOP, PIECE_NAMES, PIECES, QUARTER, SEAT_NAMES, SEATS, YARD
from retinue.envs.game.events import events_to_json, new_log
from retinue.envs.game.record import result_of, turn_to_json
from retinue.envs.game.ruleset import MODES, Ruleset, load_ruleset
from retinue.envs.game.state import (
    OVER,
    Record,
    empty_turn,
    new_game,
    state_from_json,
    state_to_json,
)

_ENTRIES: Final = {"credits": "credits", "combat": "combat", "turns": "turns_taken"}
_PLACE: Final = re.compile(r"(-?\d+)(\*?)(?:/(\d+))?(?:\+(\d+))?")
_FILLER: Final = 1
"""The dice that a scene does not need: two of them, first in a roll, are no grace roll."""


@dataclass(frozen=True)
class Scene:
    """One line, in its four columns."""

    rule: str
    what: str
    position: str
    turn: str


def read_scene(line: str) -> Scene:
    """Return the scene of a line.

    Raises:
        ValueError: it has not four columns.
    """
    columns = [column.strip() for column in line.split("|")]
    if len(columns) != 4:
        raise ValueError(f"{line!r}: must have 4 columns, not {len(columns)}")
    return Scene(*columns)


def play_scene(scene: Scene) -> dict[str, Any]:
    """Play a scene.

    Returns:
        the state before, the seat to move, ``rolled``, ``credits_earned``, the turn, and ``legal``;
        of a legal turn ``events``, the state after it and ``next``, the seat to move then, which is
        None at the end of the match, when there is a ``result``; of an illegal one ``reason``.

    Raises:
        ValueError: the position or the roll cannot be.
    """
    turn = _turn_of(scene.turn)
    ruleset, state, rolled = _position_of(scene.position, turn["rolls"].sum(axis=0))
    game = state_from_json(state, ruleset, scene.what)
    if game["seat"] != (seat := _mover(scene.position)):
        raise ValueError(f"{scene.position!r}: {SEAT_NAMES[seat]} is not to move")
    engine.set_dice(game, ruleset, rolled)
    played = {
        "rule": scene.rule,
        "what": scene.what,
        "mode": ruleset.mode,
        "state": state,
        "seat": int(game["seat"]),
        "rolled": rolled,
        "credits_earned": int(game["credits_earned"]),
        "turn": turn_to_json(turn),
    }
    verdict = engine.judge(game, ruleset.packed, turn)
    if verdict != engine.LEGAL:
        return {**played, "legal": False, "reason": engine.explain(verdict, game, turn)}
    log = new_log()
    engine.play_or_raise(game, ruleset, turn, log)
    over = game["phase"] == OVER
    return {
        **played,
        "legal": True,
        "events": events_to_json(log),
        "after": state_to_json(game),
        "next": None if over else int(game["seat"]),
        **({"result": result_of(game)} if over else {}),
    }


def _position_of(words: str, spent: Any) -> tuple[Ruleset, dict[str, Any], list[int]]:
    """Return the rules, the state and the dice of a position.

    Args:
        words: of it.
        spent: how many rolls of each value the turn spends.

    Raises:
        ValueError: it has a word that means nothing.
    """
    parts = [part.split() for part in words.split(",") if part.strip()]
    modes = [part[0] for part in parts if part[0] in MODES]
    ruleset = load_ruleset(modes[0] if modes else MODES[0])
    seat = _mover(words)
    state = state_to_json(new_game(ruleset))
    state["turns_taken"] = [2 if other < seat else 1 for other in range(SEATS)]
    rolled = None
    for name, *rest in parts:
        if name in MODES or rest == ["to", "move"]:
            continue
        if name in SEAT_NAMES:
            _put(SEAT_NAMES.index(name), rest, state, ruleset)
        elif name == "first":
            state["turns_taken"] = [0] * SEATS
        elif name == "clock":
            state["clock_seconds"] = int(rest[0])
        elif name == "store":
            state["store"][seat] = _counts(list(map(int, rest)))
        elif name == "rolls":
            rolled = list(map(int, rest))
        else:
            raise ValueError(f"{words!r}: {name!r} means nothing")
    if rolled is None:
        state["store"][seat], rolled = _share_out(spent, ruleset)
    return ruleset, state, rolled


def _mover(words: str) -> int:
    """Return the seat that a position says is to move."""
    found = re.search(rf"({'|'.join(SEAT_NAMES)}) to move", words)
    return SEAT_NAMES.index(found[1]) if found else 0


def _put(seat: int, words: list[str], state: dict[str, Any], ruleset: Ruleset) -> None:
    """Write a seat's part of a position into a state."""
    names = iter(words)
    for name in names:
        if name == "home":
            state["position"][seat] = [ruleset.home] * PIECES
        elif name in _ENTRIES:
            state[_ENTRIES[name]][seat] = int(next(names))
        else:
            piece, place = _piece(name), _PLACE.fullmatch(next(names, ""))
            if place is None:
                raise ValueError(f"{' '.join(words)!r}: no place after {name}")
            code, active, records, points = place.groups()
            on_loop = YARD < int(code) < LOOP
            turned = (int(code) - QUARTER * seat) % LOOP
            state["position"][seat][piece] = turned if on_loop else int(code)
            state["midpoint"][seat][piece] = len(active)
            state["checkpoints"][seat][piece] = int(records or 0)
            state["progression"][seat][piece] = int(points or 0)


def _piece(name: str) -> int:
    if name not in PIECE_NAMES:
        raise ValueError(f"{name!r} is neither a piece nor a number of a seat")
    return PIECE_NAMES.index(name)


def _turn_of(words: str) -> Record:
    turn, to = empty_turn(), ""
    for word in words.split():
        if word in board.DIRECTION_NAMES:
            turn["direction"] = board.DIRECTION_NAMES.index(word)
        elif word == "after":
            turn["noble_after"] = 1
        elif word in PIECE_NAMES:
            to = word
        elif to == PIECE_NAMES[board.NOBLE]:
            turn["noble_steps"] = int(word)
        else:
            turn["rolls"][_piece(to), int(word) - 1] += 1
    return turn


def _counts(values: list[int]) -> list[int]:
    """Return how many rolls of each value there are, as STATE has them."""
    return [values.count(value) for value in range(1, 7)]


def _share_out(needed: Any, ruleset: Ruleset) -> tuple[list[int], list[int]]:
    """Return a store and a roll that together hold the rolls of a turn, each value's number."""
    values = [value + 1 for value in range(6) for _ in range(needed[value])]
    for held in range(ruleset.store_capacity + 1):
        dice = int(ruleset.packed["dice"][held])
        useful = max(0, dice - 2)
        if held + useful >= len(values):
            break
    stored, last = values[:held], values[held:]
    stored += [_FILLER] * (held - len(stored))
    return _counts(stored), [_FILLER] * (dice - len(last)) + last

"""Test vectors: what the game and its encodings give, for frontends in other languages to compare.

``docs/frontends.md`` explains the files. Everything here is worked out by the engine and by the
functions that environments use, and by nothing else; the same numbers come out each time.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from retinue.envs.actions import Encoding
from retinue.envs.chooser import choose_turns
from retinue.envs.game import board, dice, engine
from retinue.envs.game.board import BACKWARD, FORWARD, LOOP, PIECES, SEATS, YARD
from retinue.envs.game.record import turn_to_json
from retinue.envs.game.ruleset import MAX_DICE, MODES, Ruleset, load_ruleset
from retinue.envs.game.state import (
    GAME,
    Record,
    new_game,
    state_from_json,
    state_to_json,
)
from retinue.envs.observation import place_table
from retinue.envs.opponents import View
from retinue.envs.scenes import scenes
from retinue.envs.staged import play_scene

Content = dict[str, Any]
"""Of a file, ready for JSON."""

SEEDS: Final = (0, 1, 7, 1_234_567_890_123, (1 << dice.SEED_BITS) - 1)
_WORDS: Final = (0, 1, 0xFFFFFFFF, 1 << 32, 0x0123456789ABCDEF, (1 << 64) - 1)
_OWN_TURNS: Final = (0, 1, 44, 179)
CROWDED: Final = 8
"""Positions that no match gave: pieces close together, and everything that can be in a state."""
_FOR_CHOICES: Final = 1 << 8
"""Chance that draws choices, by position; the crowded positions themselves are drawn below it."""


def to_text(content: Content) -> str:
    """Return the text of a file: an entry a line, and of a list an item a line."""
    lines = []
    for name, entry in content.items():
        text = _dumps(entry)
        if isinstance(entry, list):
            text = "[\n" + ",\n".join(f"  {_dumps(item)}" for item in entry) + "\n ]"
        lines.append(f" {json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def numbers(values: Any) -> list[float]:
    """Return float32 numbers as they are written: the fewest digits that mean the same float32."""
    shortest = [float(str(value)) for value in np.asarray(values, np.float32).ravel()]
    return [int(value) if value.is_integer() else value for value in shortest]


def bits(mask: Any) -> str:
    """Return a mask as it is written: a text of zeros and ones."""
    return "".join("1" if legal else "0" for legal in mask)


def rules_vectors() -> Content:
    """Return the rules of both modes and their digests."""
    found = {mode: load_ruleset(mode) for mode in MODES}
    return {
        mode: {"digest": ruleset.digest, "rules": ruleset.model_dump(mode="json")}
        for mode, ruleset in found.items()
    }


def dice_vectors() -> Content:
    """Return words and what scrambles them to, in hexadecimal, and dice by seed, seat and turn."""
    rows = [
        {"seed": seed, "seat": seat, "turn": turn, "dice": _dice(seed, seat, turn)}
        for seed in SEEDS
        for seat in range(SEATS)
        for turn in _OWN_TURNS
    ]
    return {"mix": [[_hex(word), _hex(dice.mix(np.uint64(word)))] for word in _WORDS], "dice": rows}


def board_vectors() -> Content:
    """Return the loop by offset, and the features of every place (``observation.PLACE_FEATURES``).

    ``places`` has, for each mode, a list for each seat as seen and midpoint flag, with seven
    numbers for each position code, the Yard's first.
    """
    offsets = range(LOOP)
    arriving = board.tile_number(0, BACKWARD, arriving=True)
    return {
        "tiles": [[board.tile(seat, offset) for offset in offsets] for seat in range(SEATS)],
        "forward": [board.tile_number(offset, FORWARD) for offset in offsets],
        "backward": [board.tile_number(offset, BACKWARD) for offset in offsets],
        "arriving": arriving,
        "checkpoints": board.CHECKPOINT_AT.tolist(),
        "places": {mode: _places(load_ruleset(mode)) for mode in MODES},
    }


def turn_vectors() -> Content:
    """Return what the rules make of single turns."""
    return {"turns": [play_scene(scene) for scene in scenes()]}


class Step(NamedTuple):
    """What an agent sees, float32 ``(size,)`` and bool ``(mask_size,)``, and what it does."""

    observation: Any
    mask: Any
    action: Any


@dataclass(frozen=True)
class Position:
    """A seat's decision.

    Args:
        origin: where it is from, in words.
        state: STATE before the roll.
        rolled: the dice.
        ruleset: the rules.
    """

    origin: str
    state: Content
    rolled: list[int]
    ruleset: Ruleset

    def game(self) -> Record:
        """Return it as a ``GAME`` record, its roll received."""
        game = state_from_json(self.state, self.ruleset, self.origin)
        engine.set_dice(game, self.ruleset, self.rolled)
        return game


def position_vectors(positions: Sequence[Position], ruleset: Ruleset) -> Content:
    """Return what a seat sees in positions, what it may choose, and what choices mean."""
    layouts = {name: Encoding(name, ruleset).layout() for name in ("turn", "steps")}
    return {
        "mode": ruleset.mode,
        "layouts": {
            name: [[each.name, each.start, each.size] for each in layout.sections]
            for name, layout in layouts.items()
        },
        "positions": [_position(each, index) for index, each in enumerate(positions)],
    }


def crowded_positions(ruleset: Ruleset) -> Iterator[Position]:
    """Yield positions with pieces close together, drawn entry by entry."""
    for index in range(CROWDED):
        chance = _Chance(ruleset, index)
        state = state_to_json(new_game(ruleset))
        spots = [chance.below(LOOP) for _ in range(4)]
        for seat in range(SEATS):
            for piece in range(PIECES):
                _place(state, seat, piece, spots, chance, ruleset)
            for _ in range(chance.below(ruleset.store_capacity + 1)):
                state["store"][seat][chance.below(6)] += 1
            state["combat"][seat] = chance.below(1000) - 300
            state["bonus"][seat] = 50 * chance.below(3)
            state["credits"][seat] = chance.below(ruleset.max_credits + 1)
            state["turns_taken"][seat] = 20 + (seat < index % SEATS)
        state["clock_seconds"] = 1 + chance.below(ruleset.clock_seconds)
        game = state_from_json(state, ruleset)
        due = engine.dice_count(game, ruleset.packed)
        yield Position(
            f"crowded {index}", state, [1 + chance.below(6) for _ in range(due)], ruleset
        )


def considered(
    position: Position, encoding: Encoding, choose: Callable[[Any, Any], Any]
) -> tuple[Content, list[Step]]:
    """Choose the turn of a position, through what an agent of the encoding sees and does.

    Args:
        position: whose turn it is.
        encoding: of what is seen and chosen.
        choose: from an observation float32 ``(size,)`` and a mask bool ``(mask_size,)`` to an
            action, an integer or ``(parts,)``.

    Returns:
        the turn as the match record writes it, and each step to it.
    """
    steps: list[Step] = []

    def decide(observations: Any, masks: Any) -> Any:
        action = np.asarray(choose(observations[0], masks[0]), np.int64)
        steps.append(Step(observations[0].copy(), masks[0].copy(), action))
        return action[np.newaxis]

    games = np.array([position.game()], GAME)
    view = View(games, np.zeros(1, np.uint64), encoding.ruleset)
    turns = choose_turns(view, encoding, decide)
    return turn_to_json(turns[0]), steps


class _Chance:
    """A counted source of chance, another one for each mode and purpose."""

    def __init__(self, ruleset: Ruleset, purpose: int) -> None:
        self._key = np.uint64(dice.derive(np.uint64(MODES.index(ruleset.mode)), purpose))
        self._count = 0

    def below(self, bound: int) -> int:
        self._count += 1
        return int(dice.draw(self._key, self._count, bound))


def _dumps(entry: Any) -> str:
    return json.dumps(entry, separators=(",", ":"))


def _hex(word: Any) -> str:
    return f"0x{int(word):016x}"


def _dice(seed: int, seat: int, turn: int) -> list[int]:
    return [int(dice.die(np.uint64(seed), seat, turn, index)) for index in range(MAX_DICE)]


def _places(ruleset: Ruleset) -> list[list[list[float]]]:
    table = place_table(ruleset)[:, :, : ruleset.home + 2]
    return [[numbers(row) for row in half] for seen in table for half in seen]


def _place(
    state: Content, seat: int, piece: int, spots: list[int], chance: _Chance, ruleset: Ruleset
) -> None:
    """Put a piece somewhere: mostly near one of ``spots``, which are Green's offsets."""
    where = chance.below(20)
    position = YARD
    if where < 12:
        spot = spots[chance.below(len(spots))] + chance.below(3)
        position = (spot - board.QUARTER * seat) % LOOP
    elif where < 16:
        position = LOOP + chance.below(ruleset.home - LOOP + 1)
    state["position"][seat][piece] = position
    if position != YARD:
        state["midpoint"][seat][piece] = chance.below(2)
        state["progression"][seat][piece] = 10 * chance.below(40)
    state["checkpoints"][seat][piece] = chance.below(1 << board.CHECKPOINTS)


def _position(position: Position, index: int) -> Content:
    """Return the vectors of one position, the ``index``-th of its mode."""
    chance = _Chance(position.ruleset, _FOR_CHOICES + index)
    game, turn = position.game(), Encoding("turn", position.ruleset)
    _, (first,) = considered(position, turn, lambda *_: np.zeros(len(turn.nvec)))
    parts = {name: numbers(part) for name, part in turn.layout().split(first.observation).items()}
    rolls = parts.pop("rolls")
    seat = int(game["seat"])
    return {
        "from": position.origin,
        "state": position.state,
        "seat": seat,
        "rolled": position.rolled,
        "credits_earned": int(game["credits_earned"]),
        "store": game["store"][seat].tolist(),
        "credits": int(game["credits"][seat]),
        "sections": parts,
        "turn": {
            "rolls": rolls,
            "mask": bits(first.mask),
            "actions": [
                _action_of_turn(position, turn, chance, legally=legally)
                for legally in (True, True, True, False, False)
            ],
        },
        "steps": [
            _actions_of_steps(position, chance, legally=legally) for legally in (True, True, False)
        ],
    }


def _action_of_turn(
    position: Position, encoding: Encoding, chance: _Chance, *, legally: bool
) -> Content:
    """Return an action of ``turn`` and the turn that it means."""
    starts = np.cumsum([0, *encoding.nvec[:-1]])

    def choose(_: Any, mask: Any) -> Any:
        action = []
        for start, size in zip(starts, encoding.nvec):
            legal = np.flatnonzero(mask[start : start + size])
            action.append(legal[chance.below(len(legal))] if legally else chance.below(size))
        return action

    turn, (step,) = considered(position, encoding, choose)
    legal = all(step.mask[starts + step.action])
    return {"action": step.action.tolist(), "legal": legal, "turn": turn}


def _actions_of_steps(position: Position, chance: _Chance, *, legally: bool) -> Content:
    """Return actions of ``steps``, what is seen before each, and the turn that they mean."""
    encoding = Encoding("steps", position.ruleset)

    def choose(_: Any, mask: Any) -> int:
        legal = np.flatnonzero(mask)
        if legally or chance.below(4):
            return int(legal[chance.below(len(legal))])
        return chance.below(len(mask))

    turn, steps = considered(position, encoding, choose)
    plan = encoding.layout()["plan"].slice
    return {
        "seen": [
            {
                "plan": numbers(step.observation[plan]),
                "mask": bits(step.mask),
                "action": int(step.action),
                "legal": bool(step.mask[step.action]),
            }
            for step in steps
        ],
        "turn": turn,
    }

"""Positions to draw: random matches, states made by hand, and the documentation's pictures.

The pictures in ``docs`` are what :func:`docs_picture` draws; run this file to renew them.
"""

import random
from pathlib import Path
from typing import Any, Final

import numpy as np

from retinue.envs.game import board, engine
from retinue.envs.game.board import GUARDS, PIECES, SEATS, YARD
from retinue.envs.game.events import SILENT
from retinue.envs.game.ruleset import Ruleset, load_ruleset
from retinue.envs.game.state import (
    OVER,
    Record,
    empty_turn,
    new_game,
    state_from_json,
    state_to_json,
)
from retinue.envs.render import BoardPicture, LastMove

DOCS: Final = Path(__file__).resolve().parents[1] / "docs"
DOCS_PICTURES: Final = {"board.png": ("journey", 131, 335), "brawl.png": ("brawl", 88, 164)}
"""By file: the mode, after how many turns, and the seed."""
JOURNEY: Final = load_ruleset("journey")


def random_turn(game: Record, ruleset: Ruleset, chance: random.Random) -> Record:
    """A legal turn in which a few Guards share most of the rolls, mostly forward."""
    turn, seat = empty_turn(), int(game["seat"])
    turn["direction"] = int(chance.random() < 0.1)
    mask = engine.legal_guards(game, ruleset.packed)
    guards = [guard for guard in range(GUARDS) if mask >> guard & 1 and chance.random() < 0.6]
    for value, count in enumerate(game["store"][seat].tolist()):
        for _ in range(count if guards else 0):
            if chance.random() < 0.7:
                turn["rolls"][guards[int(chance.random() * len(guards))], value] += 1
    if engine.noble_may_move(game, ruleset.packed):
        turn["noble_steps"] = int(chance.random() * 7)
        turn["noble_after"] = int(turn["noble_steps"] > 0 and chance.random() < 0.5)
    return turn


def played(
    turns: int, seed: int, ruleset: Ruleset = JOURNEY
) -> tuple[Record, Record, LastMove | None]:
    """A match after that many random turns, its dice rolled; a draft; and the last move."""
    game, chance, last = new_game(ruleset), random.Random(seed), None
    for _ in range(turns):
        engine.roll(game, ruleset.packed, np.uint64(seed))
        turn = random_turn(game, ruleset, chance)
        last = LastMove(game.copy(), turn)
        assert engine.play(game, ruleset.packed, turn, SILENT) == engine.LEGAL
        if game["phase"] == OVER:
            return game, empty_turn(), last
    engine.roll(game, ruleset.packed, np.uint64(seed))
    return game, random_turn(game, ruleset, chance), last


def docs_picture(name: str) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """A lively mid-match position of the documentation: played, never edited by hand."""
    mode, turns, seed = DOCS_PICTURES[name]
    ruleset = load_ruleset(mode)
    return BoardPicture(ruleset).draw(*played(turns, seed, ruleset))


def hand(**changed: Any) -> Record:
    """A Journey state with every piece in its Yard but for what is changed."""
    return state_from_json(state_to_json(new_game(JOURNEY)) | changed, JOURNEY)


def yards(**placed: int) -> list[list[int]]:
    """Positions with every piece in its Yard but for some: ``yards(red0=7)``."""
    table = [[YARD] * PIECES for _ in range(SEATS)]
    for name, position in placed.items():
        table[board.SEAT_NAMES.index(name[:-1])][int(name[-1])] = position
    return table


if __name__ == "__main__":
    from PIL import Image

    for name in DOCS_PICTURES:
        Image.fromarray(docs_picture(name)).save(DOCS / name, optimize=True)

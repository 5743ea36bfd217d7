"""Every legal turn of a position, and what a strategy's weights say of each."""

import math
from typing import Any

import numpy as np

from retinue.agents.base import CompiledAgent
from retinue.envs.actions import NOBLE_CHOICES, copy_turn
from retinue.envs.candidates import describe_copy, new_scratch, play_on_copy
from retinue.envs.estimates import NOBLE_STEPS, STRATEGY
from retinue.envs.facts import FACT_COUNT
from retinue.envs.game.board import GUARDS
from retinue.envs.game.engine import legal_guards, noble_may_move
from retinue.envs.game.jit import inner_jit, jit, record_at
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.state import TURN, Record
from retinue.envs.survey import survey

Turns = np.ndarray[Any, np.dtype[Any]]
Values = np.ndarray[Any, np.dtype[np.float32]]


def count_turns(game: Record, ruleset: Ruleset) -> int:
    """Return how many legal turns a ``GAME`` has (rules 3.2).

    That is the product of two directions, the Noble's choices and, for each value, the ways to
    share out the rolls of it among the Guards that may be given some and nobody.
    """
    takers = 1 + int(legal_guards(game, ruleset.packed)).bit_count()
    nobles = NOBLE_CHOICES if noble_may_move(game, ruleset.packed) else 1
    shared = [math.comb(int(held) + takers - 1, held) for held in game["store"][game["seat"]]]
    return 2 * nobles * math.prod(shared)


@inner_jit
def _share_out_next(game: Record, legal: int, given: Any) -> bool:
    """Change ``given``, int64 ``(GUARDS, 6)``, to the next way to share out rolls; tell if any."""
    for value in range(6):
        for guard in range(GUARDS):
            if (legal >> guard) & 1:
                spent = 0
                for other in range(GUARDS):
                    spent += given[other, value]
                if spent < game.store[game.seat, value]:
                    given[guard, value] += 1
                    return True
                given[guard, value] = 0
    return False


@jit
def _write_turns(game: Record, rules: Record, turns: Any) -> int:
    legal = legal_guards(game, rules)
    choices = NOBLE_CHOICES if noble_may_move(game, rules) else 1
    given = np.zeros((GUARDS, 6), np.int64)
    count = 0
    while True:
        for direction in range(2):
            for choice in range(choices):
                turn = turns[count]
                turn.direction = direction
                turn.noble_steps = choice if choice <= NOBLE_STEPS else choice - NOBLE_STEPS
                turn.noble_after = 1 if choice > NOBLE_STEPS else 0
                for guard in range(GUARDS):
                    for value in range(6):
                        turn.rolls[guard, value] = given[guard, value]
                count += 1
        if not _share_out_next(game, legal, given):
            return count


def all_turns(game: Record, ruleset: Ruleset) -> Turns:
    """Return every legal turn of a ``GAME``, its roll received, once: ``TURN`` ``(n,)``."""
    turns = np.zeros(count_turns(game, ruleset), TURN)
    written = _write_turns(game, ruleset.packed, turns)
    assert written == len(turns)
    return turns


@jit
def _write_values(game: Record, rules: Record, memory: int, turns: Any, values: Any) -> None:
    strategy = record_at(memory, STRATEGY)
    scratch = new_scratch()
    row = np.empty(FACT_COUNT, np.float32)
    survey(game, rules, strategy, scratch[0][0])
    for index in range(turns.shape[0]):
        copy_turn(turns[index], scratch[5][0])
        play_on_copy(game, rules, scratch)
        values[index] = describe_copy(game, rules, strategy, scratch, row)


def values_of(turns: Turns, game: Record, ruleset: Ruleset, strategy: CompiledAgent) -> Values:
    """Return what a strategy's weights say of legal turns of a ``GAME``, float32 ``(n,)``."""
    values = np.empty(len(turns), np.float32)
    memory = strategy.compiled.memory_address
    _write_values(game, ruleset.packed, memory, turns, values)
    return values

"""Choosing by weights: the policy of all strategies, over turns proposed or drawn at random."""

from typing import Any

import numpy as np

from retinue.envs.actions import NOBLE_CHOICES, clear_turn, copy_turn
from retinue.envs.candidates import (
    PROPOSALS,
    Scratch,
    best_of,
    copy_candidate,
    describe_copy,
    new_scratch,
    play_on_copy,
    propose,
)
from retinue.envs.estimates import NOBLE_STEPS, STRATEGY
from retinue.envs.facts import FACT_COUNT
from retinue.envs.game.board import GUARDS
from retinue.envs.game.dice import derive, draw
from retinue.envs.game.engine import legal_guards, noble_may_move
from retinue.envs.game.jit import inner_jit, record_at
from retinue.envs.game.state import Record
from retinue.envs.survey import survey


@inner_jit
def draw_turn(game: Record, rules: Record, key: Any, turn: Record) -> None:
    """Draw the parts of a cleared ``turn`` uniformly.

    That is: one of the two directions; one of the Noble's 13 choices, but staying if it is Home;
    and for each stored roll nobody or one of the Guards that may be given rolls.
    """
    turn.direction = draw(key, 0, 2)
    if noble_may_move(game, rules):
        choice = draw(key, 1, NOBLE_CHOICES)
        turn.noble_after = 1 if choice > NOBLE_STEPS else 0
        turn.noble_steps = choice - NOBLE_STEPS if choice > NOBLE_STEPS else choice
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


@inner_jit
def _choose_at_random(
    game: Record, rules: Record, key: Any, turn: Record, strategy: Record, scratch: Scratch
) -> None:
    """Set ``turn`` to the best of turns drawn at random."""
    tried = scratch[5][0]
    row = np.empty(FACT_COUNT, np.float32)
    survey(game, rules, strategy, scratch[0][0])
    best = np.float32(0.0)
    for index in range(strategy.count):
        clear_turn(tried)
        draw_turn(game, rules, derive(key, index), tried)
        play_on_copy(game, rules, scratch)
        value = describe_copy(game, rules, strategy, scratch, row)
        if index == 0 or value > best:
            best = value
            copy_turn(tried, turn)


@inner_jit
def _choose_proposed(
    game: Record, rules: Record, turn: Record, strategy: Record, scratch: Scratch, found: Any
) -> None:
    """Set ``turn`` to the best of the proposals, written to ``found``, ``PROPOSALS`` ``(1,)``."""
    proposals = found[0]
    propose(game, rules, strategy, scratch, proposals)
    copy_candidate(proposals, best_of(proposals), turn)


def choose_by_weights(game: Any, rules: Any, key: Any, turn: Any, memory: int) -> int:
    """Choose the candidate that a strategy values most; ``memory`` is a ``STRATEGY``'s address."""
    strategy = record_at(memory, STRATEGY)
    if strategy.at_random:
        _choose_at_random(game, rules, key, turn, strategy, new_scratch())
    else:
        found = np.empty(1, PROPOSALS)
        _choose_proposed(game, rules, turn, strategy, new_scratch(), found)
    return 0

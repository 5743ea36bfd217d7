"""Rollouts, compiled: a turn is played on a copy and policies play on from there, many at once.

The dice of a rollout come from a seed that the searcher drew itself, never from the match's, which
no agent can know. The same rollout has the same dice for every candidate turn: what differs then is
what the turns make of them.

A rollout ends with a decision of the seat that searches. With a strategy it is worth what the
strategy values the best turn there (and the margin so far, if the strategy weighs neither that nor
the lead), without one the margin after the turn that the policy chooses. If the match ends first it
is worth its final totals.
"""

from typing import Any, Final

import numpy as np
from numba import prange

from retinue.envs import facts
from retinue.envs.actions import clear_turn, copy_turn
from retinue.envs.candidates import (
    PROPOSALS,
    best_of,
    copy_candidate,
    new_scratch,
    play_on_copy,
    propose,
)
from retinue.envs.facts import FACT_COUNT
from retinue.envs.game.board import GUARDS, SEATS
from retinue.envs.game.dice import derive
from retinue.envs.game.engine import LEGAL, play, roll, total
from retinue.envs.game.events import LOG
from retinue.envs.game.jit import call_at, inner_jit, jit, parallel_jit
from retinue.envs.game.state import GAME, OVER, ROLL, TURN, Record

CAST: Final = np.dtype(
    (
        np.record,
        np.dtype(
            [
                ("policies", "i8", (SEATS,)),  # address of each seat's policy
                ("memories", "i8", (SEATS,)),  # address of what it knows
                ("valued", "i4"),  # 1: a strategy values the last decision
                ("weighs_totals", "i4"),  # 1: it weighs the margin or the lead
                ("depth", "i4"),  # own decisions after the candidate; it ends with the last
            ],
            align=True,
        ),
    )
)
"""Who plays a rollout, how far, and what it is worth."""

_MARGIN_ALONE: Final = np.zeros(FACT_COUNT, np.float32)
"""Weights of who has no strategy."""
_MARGIN_ALONE[facts.MARGIN] = 1.0


@inner_jit
def _worth_of_totals(game: Record, seat: int, weights: Any) -> float:
    """Return what the totals alone are worth to a seat."""
    own, others, best = total(game, seat), 0, 0
    for turned in range(1, SEATS):
        other = total(game, (seat + turned) % SEATS)
        others += other
        best = other if turned == 1 else max(best, other)
    margin = own - others / (SEATS - 1)
    return float(weights[facts.MARGIN] * margin + weights[facts.LEAD] * (own - best))


@inner_jit
def _same_turn(one: Record, other: Record) -> bool:
    """Tell whether two ``TURN`` are the same."""
    if one.direction != other.direction or one.noble_steps != other.noble_steps:
        return False
    if one.noble_after != other.noble_after:
        return False
    for guard in range(GUARDS):
        for value in range(6):
            if one.rolls[guard, value] != other.rolls[guard, value]:
                return False
    return True


@inner_jit
def _write_candidates(
    game: Record, rules: Record, strategy: Record, turns: Any, memory: Any
) -> int:
    """Write the best proposals after the first turn; return how many turns there are then."""
    scratch, found = memory
    proposals = found[0]
    copy_turn(turns[0], scratch[5][0])
    if play_on_copy(game, rules, scratch).finished > game.finished:
        return 1  # whoever is wholly Home has no decision left to value a rollout by
    propose(game, rules, strategy, scratch, proposals)
    written = 1
    for _ in range(proposals.count):
        if written == turns.shape[0]:
            break
        best = best_of(proposals)
        proposals.value[best] = -np.inf
        copy_candidate(proposals, best, turns[written])
        if not _same_turn(turns[written], turns[0]):
            written += 1
    return written


@jit
def write_candidates(
    games: Any, rules: Any, key: Any, base: Any, strategies: Any, turns: Any
) -> int:
    """Write the turns that a search compares: the base's own choice, then the best proposed.

    Args:
        games: ``GAME`` ``(1,)``, its roll received.
        rules: ``RULES`` ``(1,)``.
        key: uint64, the chance of the base's decision.
        base: int64 ``(2,)``, the addresses of the base's policy and of its memory.
        strategies: ``STRATEGY`` ``(1,)``, which proposes and values turns.
        turns: ``TURN`` ``(m,)``, of which the first ones are written.

    Returns:
        How many are written: ``m`` if there are so many; 1 if the base's choice brings the last
        piece Home.
    """
    clear_turn(turns[0])
    call_at(base[0], (games[0], rules[0], key, turns[0], base[1]))
    memory = new_scratch(), np.empty(1, PROPOSALS)
    return _write_candidates(games[0], rules[0], strategies[0], turns, memory)


@jit
def write_seeds(key: Any, first: int, seeds: Any) -> None:
    """Write the seeds of the dice of rollouts ``first`` and after, uint64 ``(r,)``."""
    for index in range(seeds.shape[0]):
        seeds[index] = derive(key, first + index)


@inner_jit
def _play_on(
    seat: int, rules: Record, cast: Record, strategy: Record, seed: Any, memory: Any
) -> float:
    """Let the policies play on; return what that was worth, NaN if one chose an illegal turn."""
    games, turns, logs, scratch, found = memory
    game, turn, log, proposals = games[0], turns[0], logs[0], found[0]
    left = cast.depth
    while left > 0 and game.phase != OVER:
        if game.phase == ROLL:
            roll(game, rules, seed)
        mover = game.seat
        if mover == seat:
            left -= 1
            if left == 0 and cast.valued:
                propose(game, rules, strategy, scratch, proposals)
                worth = float(proposals.value[best_of(proposals)])
                if cast.weighs_totals:
                    return worth
                return worth + _worth_of_totals(game, seat, _MARGIN_ALONE)
        clear_turn(turn)
        key = derive(seed, int(game.turn))
        call_at(cast.policies[mover], (game, rules, key, turn, cast.memories[mover]))
        if play(game, rules, turn, log) != LEGAL:
            return np.nan
    weights = strategy.weights if cast.weighs_totals else _MARGIN_ALONE
    return _worth_of_totals(game, seat, weights)


@jit
def _roll_out(
    order: int,
    games: Any,
    rules: Any,
    cast: Any,
    strategies: Any,
    turns: Any,
    seeds: Any,
    scores: Any,
) -> None:
    """Play one rollout of one candidate."""
    candidate, rollout = order // seeds.shape[0], order % seeds.shape[0]
    copies, turn, log = np.empty(1, GAME), np.empty(1, TURN), np.empty(1, LOG)
    # A record does not keep its array alive: the tuple does, as it goes into the call.
    memory = copies, turn, log, new_scratch(), np.empty(1, PROPOSALS)
    copies[0] = games[0]
    log[0].on = 0
    if play(copies[0], rules[0], turns[candidate], log[0]) == LEGAL:
        seat, seed = int(games[0].seat), seeds[rollout]
        scores[candidate, rollout] = _play_on(seat, rules[0], cast[0], strategies[0], seed, memory)
    else:
        scores[candidate, rollout] = np.nan


@parallel_jit
def roll_out_parallel(
    games: Any,
    rules: Any,
    cast: Any,
    strategies: Any,
    turns: Any,
    seeds: Any,
    scores: Any,
) -> None:
    """Do what :func:`roll_out` does, on several threads."""
    for order in prange(scores.size):
        _roll_out(order, games, rules, cast, strategies, turns, seeds, scores)


@jit
def roll_out(
    games: Any,
    rules: Any,
    cast: Any,
    strategies: Any,
    turns: Any,
    seeds: Any,
    scores: Any,
) -> None:
    """Play rollouts of every candidate turn of a game.

    Args:
        games: ``GAME`` ``(1,)``, its roll received; left as it is.
        rules: ``RULES`` ``(1,)``.
        cast: ``CAST`` ``(1,)``.
        strategies: ``STRATEGY`` ``(1,)``, which values the last decision if the cast says so.
        turns: ``TURN`` ``(m,)``, the candidates.
        seeds: uint64 ``(r,)``, of the dice of each rollout.
        scores: float64 ``(m, r)``, written: what each rollout was worth to the seat to move; NaN
            if a policy chose an illegal turn in it.
    """
    for order in range(scores.size):
        _roll_out(order, games, rules, cast, strategies, turns, seeds, scores)

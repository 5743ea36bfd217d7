"""Rollouts with a trained policy, compiled: what many games do between two looks at its network.

The dice of a rollout come from a seed that the searcher drew itself, never from the match's. A
rollout is worth what training would have paid for it: the rewards of its own decisions, discounted,
to which the searcher adds the policy's value of the position in which the rollout ends.
"""

from typing import Any, Final

import numpy as np
from numba import prange

from retinue.envs.actions import clear_turn
from retinue.envs.game.dice import derive
from retinue.envs.game.engine import LEGAL, play, roll
from retinue.envs.game.jit import call_at, inner_jit, jit, parallel_jit
from retinue.envs.game.state import OVER, Record
from retinue.envs.rewards import value

ROLLOUT: Final = np.dtype(
    (
        np.record,
        np.dtype(
            [
                ("seed", "u8"),  # of its dice
                ("seat", "i4"),  # who searches
                ("left", "i4"),  # own decisions until it ends
                ("value", "f8"),  # of the seat, before scaling, when it was last paid
                ("factor", "f8"),  # by which rewards are discounted now
                ("worth", "f8"),  # rewards so far, discounted
            ],
            align=True,
        ),
    )
)
"""What a rollout knows beside its game."""

TERMS: Final = np.dtype(
    (
        np.record,
        np.dtype(
            [
                ("reward", "i4"),  # its mode
                ("divisor", "f8"),
                ("place_bonus", "f8"),  # before it is divided
                ("discount", "f8"),
            ],
            align=True,
        ),
    )
)
"""How training paid."""


@inner_jit
def _begin(game: Record, rollout: Record, terms: Record, depth: int) -> None:
    rollout.seat = game.seat
    rollout.left = depth
    rollout.value = value(game, game.seat, terms.reward, terms.place_bonus)
    rollout.factor = 1.0
    rollout.worth = 0.0


@jit
def begin(games: Any, starts: Any, copies: Any, rollouts: Any, terms: Any, depth: int) -> None:
    """Begin rollouts of the seat to move.

    Args:
        games: ``GAME`` ``(g,)``, rolls received.
        starts: int64 ``(n,)``, from which of the games each rollout starts.
        copies: ``GAME`` ``(n,)``, written.
        rollouts: ``ROLLOUT`` ``(n,)``, written but for the seeds.
        terms: ``TERMS`` ``(1,)``.
        depth: own decisions after the one that is due; a rollout ends with the last of them.
    """
    for index in range(starts.shape[0]):
        copies[index] = games[starts[index]]
        _begin(copies[index], rollouts[index], terms[0], depth)


@inner_jit
def _play_on(
    game: Record, turn: Record, rollout: Record, rules: Record, terms: Record, log: Record
) -> int:
    """Play a turn, roll for the next one and pay the seat if that is its own, or the match over."""
    if play(game, rules, turn, log) != LEGAL:
        return 1
    over = game.phase == OVER
    if not over:
        roll(game, rules, rollout.seed)
    if over or game.seat == rollout.seat:
        now = value(game, rollout.seat, terms.reward, terms.place_bonus)
        rollout.worth += rollout.factor * (now - rollout.value) / terms.divisor
        rollout.value = now
        rollout.factor *= terms.discount
        rollout.left -= 1
    return 0


@inner_jit
def _play_and_reply(
    game: Record,
    turn: Record,
    rollout: Record,
    rules: Record,
    terms: Record,
    log: Record,
    others: Any,
) -> int:
    """Play a turn, and what others answer if their policy is given; return 1 if one is illegal."""
    illegal = _play_on(game, turn, rollout, rules, terms, log)
    while others[0] and not illegal and game.phase != OVER and game.seat != rollout.seat:
        clear_turn(turn)
        key = derive(rollout.seed, int(game.turn))
        call_at(others[0], (game, rules, key, turn, others[1]))
        illegal = _play_on(game, turn, rollout, rules, terms, log)
    return illegal


@jit
def play_on(
    games: Any,
    turns: Any,
    rollouts: Any,
    indices: Any,
    rules: Any,
    terms: Any,
    log: Any,
    others: Any,
) -> int:
    """Play the turns chosen in some rollouts, and roll for the next ones.

    Args:
        games: ``GAME`` ``(n,)``, rolls received.
        turns: ``TURN`` ``(n,)``; overwritten where others reply.
        rollouts: ``ROLLOUT`` ``(n,)``.
        indices: int64 ``(m,)``, which.
        rules: ``RULES`` ``(1,)``.
        terms: ``TERMS`` ``(1,)``.
        log: ``LOG`` ``(1,)``, switched off.
        others: int64 ``(2,)``, the addresses of the policy that plays the seats that do not search,
            up to the next decision of the one that does, and of its memory; 0 if none does.

    Returns:
        In how many rollouts a turn was illegal; their games stay as they were before it.
    """
    illegal = 0
    for order in range(indices.shape[0]):
        at = indices[order]
        own = games[at], turns[at], rollouts[at]
        illegal += _play_and_reply(*own, rules[0], terms[0], log[0], others)
    return illegal


@parallel_jit
def play_on_parallel(
    games: Any,
    turns: Any,
    rollouts: Any,
    indices: Any,
    rules: Any,
    terms: Any,
    log: Any,
    others: Any,
) -> int:
    """Do what :func:`play_on` does, on several threads."""
    illegal = 0
    for order in prange(indices.shape[0]):
        at = indices[order]
        own = games[at], turns[at], rollouts[at]
        illegal += _play_and_reply(*own, rules[0], terms[0], log[0], others)
    return illegal

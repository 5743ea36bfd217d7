"""The parallel kernels: one function of :mod:`retinue.envs.kernels` over many games."""

import threading
from typing import Any, Final

import numba
import numpy as np
from numba import prange

from retinue.envs.actions import Encoding
from retinue.envs.game.board import SEATS
from retinue.envs.game.events import SILENT
from retinue.envs.game.jit import call_at, inline_jit, jit, parallel_jit
from retinue.envs.game.state import TURN
from retinue.envs.kernels import OUTCOME, SETUP, SLOT, decision_key
from retinue.envs.observation import place_table

MAX_THREADS: Final[int] = vars(numba.config)["NUMBA_NUM_THREADS"]
"""Threads that Numba may use here."""

Records = np.ndarray[Any, np.dtype[Any]]
Memory = tuple[Records, Records, Records, Records, Records, Records, Records]
"""Arrays ``GAME``, ``TURN``, ``SLOT``, ``OUTCOME`` ``(n,)`` and ``SETUP``, ``RULES``, ``LOG``
``(1,)``."""


def new_memory(encoding: Encoding, games: Any) -> Memory:
    """Return the memory of ``games``, a ``GAME`` array ``(n,)``; all else is zero, agents none."""
    setup = np.zeros(1, SETUP)
    setup["encoding"] = encoding.code
    setup["places"] = place_table(encoding.ruleset)
    rules, log = np.array([encoding.ruleset.packed]), np.array([SILENT])
    own = [np.zeros(len(games), dtype) for dtype in (TURN, SLOT, OUTCOME)]
    return (games, own[0], own[1], own[2], setup, rules, log)


@inline_jit
def _write_out(slot: Any, outcome: Any, at: int, copies: Any) -> None:
    """Write what the caller is to see while it is in the processor's cache."""
    outcome.reward = slot.reward
    for seat in range(SEATS):
        outcome.rewards[seat] = slot.final_rewards[seat] if slot.terminated else 0.0
    outcome.rewards[slot.acting] = slot.reward
    outcome.acting = slot.acting
    outcome.terminated = slot.terminated
    outcome.illegal = slot.illegal
    observations, masks = copies
    observation, mask = slot.observation, slot.mask
    for index in range(observations.shape[1]):
        observations[at, index] = observation[index]
    for index in range(masks.shape[1]):
        masks[at, index] = mask[index]


@jit
def _serve_at(
    order: int, memory: Any, copies: Any, indices: Any, command: int, function: int
) -> int:
    games, turns, slots, outcomes, setup, rules, log = memory
    at = indices[order]
    slot = slots[at]
    result = call_at(function, (games[at], turns[at], slot, setup[0], rules[0], log[0], command))
    _write_out(slot, outcomes[at], at, copies)
    return result


@parallel_jit
def _serve_parallel(memory: Any, copies: Any, indices: Any, command: int, function: int) -> int:
    result = 0
    for order in prange(indices.shape[0]):
        result += _serve_at(order, memory, copies, indices, command, function)
    return result


@jit
def _serve_serial(memory: Any, copies: Any, indices: Any, command: int, function: int) -> int:
    result = 0
    for order in range(indices.shape[0]):
        result += _serve_at(order, memory, copies, indices, command, function)
    return result


_POOL = threading.Lock()
"""Not all of Numba's thread pools can be used from two Python threads at once."""

Copies = tuple[Any, Any]
NO_COPIES: Final[Copies] = (np.zeros((0, 0), np.float32), np.zeros((0, 0), np.uint8))


def copy_of(memory: Memory, indices: Any) -> Memory:
    """Return memory of copies of some games, integers ``(m,)``, in which to try what is not meant.

    What all games share is not copied.
    """
    games, turns, slots, outcomes, *shared = memory
    return (games[indices], turns[indices], slots[indices], outcomes[indices], *shared)


def serve_games(
    memory: Memory,
    indices: Any,
    command: int,
    function: int,
    threads: int = 1,
    copies: Copies = NO_COPIES,
) -> int:
    """Run a command of :mod:`retinue.envs.kernels` in some games.

    Args:
        memory: of :func:`new_memory`.
        indices: int64 ``(m,)``, which games.
        command: ``STEP``, ``RESET``, ``RESUME`` or ``LOOK``.
        function: the address of ``SERVE`` or ``CONSIDER``.
        threads: with one, no thread pool is started, so that the process can still be forked.
        copies: float32 ``(n, size)`` and uint8 ``(n, mask_size)``, contiguous: where to write what
            the games served are then seen as, too.

    Returns:
        The sum of what the function returned.
    """
    if threads == 1 or len(indices) == 1:
        return int(_serve_serial(memory, copies, indices, command, function))
    with _POOL:
        before = numba.get_num_threads()
        numba.set_num_threads(threads)
        try:
            return int(_serve_parallel(memory, copies, indices, command, function))
        finally:
            numba.set_num_threads(before)


@jit
def write_keys(games: Any, slots: Any, indices: Any, keys: Any) -> None:
    """Write the chance of the decisions due in some games to ``keys``, uint64 ``(m,)``."""
    for order in range(indices.shape[0]):
        keys[order] = decision_key(slots[indices[order]], games[indices[order]])

"""The parallel kernels: one function of :mod:`retinue.envs.kernels` over many games."""

import threading
from typing import Any, Final

import numba
import numpy as np
from numba import prange

from retinue.envs.actions import Encoding
from retinue.envs.game.jit import call_at, inline_jit, jit, parallel_jit
from retinue.envs.kernels import SETUP, decision_key
from retinue.envs.observation import place_table

MAX_THREADS: Final[int] = vars(numba.config)["NUMBA_NUM_THREADS"]
"""Threads that Numba may use here."""


def new_setup(encoding: Encoding) -> np.ndarray[Any, np.dtype[Any]]:
    """Return a ``SETUP`` array ``(1,)`` for an encoding, everything else zero."""
    setup = np.zeros(1, SETUP)
    setup["encoding"] = encoding.code
    setup["places"] = place_table(encoding.ruleset)
    return setup


@inline_jit
def _copy_out(slot: Any, at: int, copies: Any) -> None:
    """Copy observation and mask to row ``at`` while they are in the processor's cache."""
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
    games, turns, slots, setup, rules, log = memory
    at = indices[order]
    result = call_at(
        function, (games[at], turns[at], slots[at], setup[0], rules[0], log[0], command)
    )
    _copy_out(slots[at], at, copies)
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

Memory = tuple[Any, Any, Any, Any, Any, Any]
Copies = tuple[Any, Any]
NO_COPIES: Final[Copies] = (np.zeros((0, 0), np.float32), np.zeros((0, 0), np.uint8))


def copy_of(memory: Memory, indices: Any) -> Memory:
    """Return memory of copies of some games, integers ``(m,)``, in which to try what is not meant.

    What all games share is not copied.
    """
    games, turns, slots, *shared = memory
    return (games[indices], turns[indices], slots[indices], *shared)


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
        memory: arrays of ``GAME``, ``TURN``, ``SLOT`` ``(n,)`` and ``SETUP``, ``RULES``, ``LOG``
            ``(1,)``.
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

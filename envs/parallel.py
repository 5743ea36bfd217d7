"""The parallel kernels: one function of :mod:`retinue.envs.kernels` over many games."""

import threading
from typing import Any, Final

import numba
import numpy as np
from numba import prange

from retinue.envs.actions import Encoding
from retinue.envs.game.jit import call_at, jit, parallel_jit
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


@jit
def _serve_at(order: int, memory: Any, indices: Any, command: int, function: int) -> int:
    games, turns, slots, setup, rules, log = memory
    at = indices[order]
    return call_at(function, (games[at], turns[at], slots[at], setup[0], rules[0], log[0], command))


@parallel_jit
def _serve_parallel(memory: Any, indices: Any, command: int, function: int) -> int:
    result = 0
    for order in prange(indices.shape[0]):
        result += _serve_at(order, memory, indices, command, function)
    return result


@jit
def _serve_serial(memory: Any, indices: Any, command: int, function: int) -> int:
    result = 0
    for order in range(indices.shape[0]):
        result += _serve_at(order, memory, indices, command, function)
    return result


_POOL = threading.Lock()
"""Not all of Numba's thread pools can be used from two Python threads at once."""

Memory = tuple[Any, Any, Any, Any, Any, Any]


def serve_games(memory: Memory, indices: Any, command: int, function: int, threads: int = 1) -> int:
    """Run a command of :mod:`retinue.envs.kernels` in some games.

    Args:
        memory: arrays of ``GAME``, ``TURN``, ``SLOT`` ``(n,)`` and ``SETUP``, ``RULES``, ``LOG``
            ``(1,)``.
        indices: int64 ``(m,)``, which games.
        command: ``STEP``, ``RESET`` or ``RESUME``.
        function: the address of ``SERVE`` or ``CONSIDER``.
        threads: with one, no thread pool is started, so that the process can still be forked.

    Returns:
        The sum of what the function returned.
    """
    if threads == 1 or len(indices) == 1:
        return int(_serve_serial(memory, indices, command, function))
    with _POOL:
        before = numba.get_num_threads()
        numba.set_num_threads(threads)
        try:
            return int(_serve_parallel(memory, indices, command, function))
        finally:
            numba.set_num_threads(before)


@jit
def write_keys(games: Any, slots: Any, indices: Any, keys: Any) -> None:
    """Write the chance of the decisions due in some games to ``keys``, uint64 ``(m,)``."""
    for order in range(indices.shape[0]):
        keys[order] = decision_key(slots[indices[order]], games[indices[order]])

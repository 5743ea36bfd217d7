"""The parallel kernels: one function of :mod:`retinue.envs.kernels` over many games."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numba
import numpy as np
from numba import prange

from retinue.envs.actions import Encoding
from retinue.envs.game.events import SILENT
from retinue.envs.game.jit import call_at, jit, parallel_jit
from retinue.envs.game.state import TURN
from retinue.envs.kernels import OUTCOME, SETUP, SLOT, decision_key
from retinue.envs.observation import place_table
from retinue.envs.offers import MAKE_OFFER, OFFER, guide_of

MAX_THREADS: Final[int] = vars(numba.config)["NUMBA_NUM_THREADS"]
"""Threads that Numba may use here."""

Records = np.ndarray[Any, np.dtype[Any]]
Views = tuple[
    np.ndarray[Any, np.dtype[np.float32]],
    np.ndarray[Any, np.dtype[np.bool_]],
    np.ndarray[Any, np.dtype[np.int64]],
]


class Memory(NamedTuple):
    """What kernels work on; the arrays of ``n`` games come first, those of all games last."""

    games: Records
    """``GAME`` ``(n,)``."""
    turns: Records
    """``TURN`` ``(n,)``."""
    slots: Records
    """``SLOT`` ``(n,)``."""
    outcomes: Records
    """``OUTCOME`` ``(n,)``."""
    offers: Records
    """``OFFER`` ``(n,)``, or ``(1,)`` that nobody uses if no candidates are proposed."""
    guide: Records
    """``STRATEGY`` ``(1,)``."""
    setup: Records
    """``SETUP`` ``(1,)``."""
    rules: Records
    """``RULES`` ``(1,)``."""
    log: Records
    """``LOG`` ``(1,)``."""

    def learners_views(self, encoding: Encoding) -> Views:
        """Return views of what a learner sees and does.

        Returns:
            observations float32 ``(n, size)``, masks bool ``(n, mask_size)`` and actions int64
            ``(n, parts)``.
        """
        seen = self.offers if encoding.is_candidates else self.slots
        return (
            seen["observation"][:, : encoding.layout().size],
            self.slots["mask"].view(np.bool_)[:, : encoding.mask_size],
            self.slots["action"][:, : len(encoding.nvec)],
        )


def new_memory(encoding: Encoding, games: Any) -> Memory:
    """Return the memory of ``games``, a ``GAME`` array ``(n,)``; all else is zero, agents none."""
    setup = np.zeros(1, SETUP)
    setup["encoding"] = encoding.code
    setup["places"] = place_table(encoding.ruleset)
    if encoding.is_candidates:
        setup["make_offer"] = MAKE_OFFER.address
    count = len(games)
    return Memory(
        games,
        np.zeros(count, TURN),
        np.zeros(count, SLOT),
        np.zeros(count, OUTCOME),
        np.zeros(count if encoding.is_candidates else 1, OFFER),
        guide_of(encoding),
        setup,
        np.array([encoding.ruleset.packed]),
        np.array([SILENT]),
    )


@jit
def _serve_at(order: int, memory: Any, indices: Any, command: int, function: int) -> int:
    games, turns, slots, outcomes, offers, guide, setup, rules, log = memory
    at = indices[order]
    own = games[at], turns[at], slots[at], outcomes[at], offers[min(at, offers.shape[0] - 1)]
    return call_at(function, (*own, guide[0], setup[0], rules[0], log[0], command))


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


def copy_of(memory: Memory, indices: Any) -> Memory:
    """Return memory of copies of some games, integers ``(m,)``, in which to try what is not meant.

    What all games share is not copied.
    """
    offers = memory.offers[indices] if len(memory.offers) == len(memory.games) else memory.offers
    return memory._replace(
        games=memory.games[indices],
        turns=memory.turns[indices],
        slots=memory.slots[indices],
        outcomes=memory.outcomes[indices],
        offers=offers,
    )


def serve_games(memory: Memory, indices: Any, command: int, function: int, threads: int = 1) -> int:
    """Run a command of :mod:`retinue.envs.kernels` in some games.

    Args:
        memory: of :func:`new_memory`.
        indices: int64 ``(m,)``, which games.
        command: ``STEP``, ``RESET``, ``RESUME`` or ``LOOK``.
        function: the address of ``SERVE`` or ``CONSIDER``.
        threads: with one, no thread pool is started, so that the process can still be forked.

    Returns:
        The sum of what the function returned.
    """
    if threads == 1 or len(indices) == 1:
        return int(_serve_serial(memory, indices, command, function))
    with pool_of(threads):
        return int(_serve_parallel(memory, indices, command, function))


@contextlib.contextmanager
def pool_of(threads: int) -> Iterator[None]:
    """Let parallel kernels called inside run on so many threads."""
    with _POOL:
        before = numba.get_num_threads()
        numba.set_num_threads(threads)
        try:
            yield
        finally:
            numba.set_num_threads(before)


@jit
def _copy_row(rows: Any, index: int, copy: Any) -> None:
    for column in range(copy.shape[1]):
        copy[index, column] = rows[index, column]


@parallel_jit
def _copy_rows(rows: Any, copy: Any) -> None:
    for index in prange(copy.shape[0]):
        _copy_row(rows, index, copy)


def copy_of_rows(rows: Any, threads: int) -> Any:
    """Return a contiguous copy of an array ``(n, m)``, made on so many threads."""
    if threads == 1:
        return rows.copy()
    copy = np.empty(rows.shape, rows.dtype)
    with pool_of(threads):
        _copy_rows(rows, copy)
    return copy


@jit
def write_keys(games: Any, slots: Any, indices: Any, keys: Any) -> None:
    """Write the chance of the decisions due in some games to ``keys``, uint64 ``(m,)``."""
    for order in range(indices.shape[0]):
        keys[order] = decision_key(slots[indices[order]], games[indices[order]])

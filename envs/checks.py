"""Checks of what callers give: each returns it in the form that is used, or says what is wrong."""

import operator
from typing import Any

import numpy as np

from retinue.envs.game.dice import SEED_BITS
from retinue.envs.last_moves import Indices


def checked_seed(seed: Any) -> int:
    """Return an environment's seed as an integer.

    Raises:
        ValueError: it is none, or negative.
    """
    try:
        number = operator.index(seed)
    except TypeError as error:
        raise ValueError(f"seed {seed!r} is not an integer") from error
    if number < 0:
        raise ValueError(f"seed {number} is negative")
    return number


def checked_seeds(seeds: Any, count: int) -> list[int]:
    """Return the seeds of ``count`` matches, mod 2**53.

    Raises:
        ValueError: there are more or fewer.
    """
    if len(seeds) != count:
        raise ValueError(f"{len(seeds)} seeds are not one for each of {count} matches")
    return [operator.index(seed) % (1 << SEED_BITS) for seed in seeds]


def checked_games(indices: Any, count: int) -> Indices:
    """Return the indices of some of ``count`` games as int64 ``(m,)``.

    Raises:
        IndexError: there is no such game, or one stands twice.
    """
    chosen = np.asarray(indices)
    if chosen.dtype.kind not in "iu" or chosen.ndim != 1:
        raise IndexError(f"games are chosen by integers (m,), not {chosen.dtype} {chosen.shape}")
    if len(chosen) and not 0 <= chosen.min() <= chosen.max() < count:
        raise IndexError(f"games are 0 to {count - 1}")
    if len(chosen) > 1 and np.bincount(chosen).max() > 1:
        raise IndexError("games are chosen each once")
    return chosen.astype(np.int64, copy=False)


def checked_actions(actions: Any, games: int, parts: int) -> np.ndarray[Any, Any]:
    """Return actions, one for each game, as integers ``(games, parts)``.

    Raises:
        ValueError: they have another shape or are no integers.
    """
    taken = np.asarray(actions)
    if taken.ndim == 1:
        taken = taken[:, None]
    if taken.shape != (games, parts) or taken.dtype.kind not in "iu":
        shape = (games, parts)[: 1 if parts == 1 else 2]
        raise ValueError(
            f"actions must be integers of shape {shape}, "
            f"not {taken.dtype} of shape {np.shape(actions)}"
        )
    return taken

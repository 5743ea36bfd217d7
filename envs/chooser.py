"""A learner's view of somebody else's games: how a trained policy plays as an agent.

Observations, masks and actions pass through the very functions that a learner's own environment
uses, so a policy meets in play what it met in training.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from retinue.envs.actions import Encoding
from retinue.envs.kernels import CONSIDER, RESET, STEP
from retinue.envs.opponents import View
from retinue.envs.parallel import new_memory, serve_games

Decide = Callable[[np.ndarray[Any, Any], np.ndarray[Any, Any]], np.ndarray[Any, Any]]
"""From observations float32 ``(n, size)`` and masks bool ``(n, mask_size)`` to actions, integers
``(n,)`` or ``(n, parts)``."""


def choose_turns(
    view: View, encoding: Encoding, decide: Decide, threads: int = 1
) -> np.ndarray[Any, np.dtype[Any]]:
    """Ask ``decide`` for actions until every game of ``view`` has its turn.

    Args:
        view: the games.
        encoding: of what is seen and chosen.
        decide: chooses.
        threads: of the kernels.

    Returns:
        ``TURN`` array ``(n,)``.
    """
    count = len(view.games)
    memory = new_memory(encoding, view.games)
    observations, masks, actions = memory.learners_views(encoding)
    open_games = np.arange(count)
    serve_games(memory, open_games, RESET, CONSIDER.address, threads)
    while open_games.size:
        chosen = decide(observations[open_games], masks[open_games])
        actions[open_games] = chosen.reshape(len(open_games), -1)
        serve_games(memory, open_games, STEP, CONSIDER.address, threads)
        open_games = open_games[memory.slots["complete"][open_games] == 0]
    return memory.turns

"""What a drawing of a match also shows: the last turn played and the position before it."""

from typing import Any

import numpy as np

from retinue.envs.game.state import GAME, TURN, Record
from retinue.envs.kernels import CONSIDER, STEP
from retinue.envs.parallel import Memory, copy_of, serve_games

Indices = np.ndarray[Any, np.dtype[np.int64]]


class LastMoves:
    """The last turn played in each of ``num_games`` games, and the position before it."""

    def __init__(self, num_games: int) -> None:
        self._games = np.zeros(num_games, GAME)
        self._turns = np.zeros(num_games, TURN)
        self._known = np.zeros(num_games, np.bool_)

    @property
    def arrays(self) -> tuple[np.ndarray[Any, Any], ...]:
        """All that is kept; writing to these restores it."""
        return self._games, self._turns, self._known

    def note(self, indices: Indices, games: Any, turns: Any) -> None:
        """Note turns ``TURN`` ``(m,)`` about to be played in ``games``, ``GAME`` ``(m,)``."""
        self._games[indices] = games
        self._turns[indices] = turns
        self._known[indices] = True

    def foresee(self, memory: Memory, indices: Indices) -> None:
        """Note the turns that the actions in ``memory`` complete, which are not played yet."""
        trial = copy_of(memory, indices)
        serve_games(trial, np.arange(len(indices)), STEP, CONSIDER.address)
        done = trial.slots["complete"] == 1
        self.note(indices[done], trial.games[done], trial.turns[done])

    def forget(self, indices: Indices) -> None:
        """Note that new matches begin."""
        self._known[indices] = False

    def of(self, index: int) -> tuple[Record, Record] | None:
        """Return ``GAME`` and ``TURN`` of a game's last move; None before its first turn."""
        return (self._games[index], self._turns[index]) if self._known[index] else None

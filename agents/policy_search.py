"""The agent that looks ahead with a trained policy: rollouts of the turns that it likes best.

In rollouts the policy plays all four seats, or another one the others'. They end with one of the
seat's own decisions, which the policy's value judges. Other turns than the policy's own choice are
compared with it as :mod:`retinue.agents.search` does it.
"""

import time
from typing import Any, Final

import numpy as np

from retinue.agents.playouts import Playouts, turns_of
from retinue.agents.policy import PolicyAgent, masked_choice
from retinue.agents.rollouts import write_seeds
from retinue.agents.search import Comparison, Settings, halving
from retinue.envs.game.state import TURN
from retinue.envs.opponents import Policy, View

NEGLIGIBLE: Final = 1e-3
"""Probability below which the policy's opinion of a turn is taken for granted."""


class PolicySearchAgent:
    """An agent that tries a trained policy's best turns in rollouts.

    Args:
        name: its specification.
        policy: of the encoding ``candidates``, with values.
        settings: how it looks ahead.
        others: the policy that the other seats are taken to have; None if it is the same.

    Raises:
        PolicyError: the policy has no values, or nobody knows what they mean.
    """

    compiled = None

    def __init__(
        self, name: str, policy: PolicyAgent, settings: Settings, others: Policy | None = None
    ) -> None:
        self.name = name
        self._settings = settings
        self._playouts = Playouts(
            policy, settings.depth, settings.candidates, others, settings.threads
        )

    def __repr__(self) -> str:
        return f"PolicySearchAgent({self.name!r}, {self._settings})"

    def choose(self, view: View, rng: np.random.Generator) -> np.ndarray[Any, np.dtype[Any]]:
        """Return a ``TURN`` array, shape ``(n,)``: the turn found for each game.

        ``rng`` is left alone: all chance comes from ``view.keys``.

        Raises:
            ValueError: the agent was made for other rules.
            IllegalTurn: the policy chose one in a rollout.
            PolicyError: its model gives no values.
        """
        self._playouts.check(view.ruleset, self.name)
        turns = np.zeros(len(view.games), TURN)
        # With a time limit each game has its own time.
        at_once = 1 if self._settings.time else len(view.games)
        for first in range(0, len(view.games), at_once or 1):
            part = slice(first, first + at_once)
            turns[part] = self._search(view.games[part], view.keys[part])
        return turns

    def _search(self, games: Any, keys: Any) -> Any:
        """Return the turns found for some games, ``TURN`` ``(g,)``."""
        began = time.perf_counter()
        settings = self._settings
        searches = [Comparison(turns) for turns in self._candidates(games)]
        plans = [halving(compared, settings, began) for compared in searches]
        while due := [
            (index, count) for index, plan in enumerate(plans) if (count := next(plan, 0))
        ]:
            self._play(games, keys, searches, due)
        return np.array([compared.best(settings.doubt) for compared in searches], TURN)

    def _candidates(self, games: Any) -> list[Any]:
        """Return for each game the turns to compare, the policy's own choice first."""
        logits, masks, offers = self._playouts.look(games)
        legal = np.where(masks, logits, -np.inf)
        shares = np.exp(legal - legal.max(axis=1, keepdims=True))
        tried = shares >= NEGLIGIBLE * shares.sum(axis=1, keepdims=True)
        order = np.where(tried, -legal, np.inf)
        own = masked_choice(logits, masks, self._playouts.policy.encoding.nvec)
        np.put_along_axis(order, own, -np.inf, axis=1)
        best = np.argsort(order, axis=1, kind="stable")
        counts = np.minimum(tried.sum(axis=1), self._settings.turns_compared())
        return [
            turns_of(offers, np.full(count, index), best[index, :count])
            for index, count in enumerate(counts)
        ]

    def _play(
        self, games: Any, keys: Any, searches: list[Comparison], due: list[tuple[int, int]]
    ) -> None:
        """Play more rollouts.

        Args:
            games: ``GAME`` ``(g,)``.
            keys: uint64 ``(g,)``.
            searches: for each game the turns that are compared.
            due: of which games, and how many rollouts of each turn.
        """
        starts, turns, seeds = [], [], []
        for index, count in due:
            compared = searches[index]
            drawn = np.zeros(count, np.uint64)
            write_seeds(keys[index], compared.scores.shape[1], drawn)
            starts.append(np.full(len(compared.turns) * count, index))
            turns.append(np.repeat(compared.turns, count))
            seeds.append(np.tile(drawn, len(compared.turns)))
        scores = self._playouts.roll_out(
            games, np.concatenate(starts), np.concatenate(turns), np.concatenate(seeds)
        )
        at = 0
        for index, count in due:
            compared = searches[index]
            size = len(compared.turns) * count
            more = scores[at : at + size].reshape(-1, count)
            compared.scores = np.hstack([compared.scores, more])
            at += size

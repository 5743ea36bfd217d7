"""The agent that tries a trained policy's favourite turns once or twice before it chooses.

A policy sees what a turn leads to, but not what others will answer. Here each of its few favourites
is played out until the own next decision, the same dice for all, and the one that is then worth
most is taken. That costs about a millisecond, where a search takes its time.
"""

from typing import Any

import numpy as np

from retinue.agents.playouts import Playouts, turns_of
from retinue.agents.policy import Floats, Lookahead, PolicyAgent, even_within
from retinue.agents.rollouts import write_seeds
from retinue.envs.game.state import TURN
from retinue.envs.opponents import Policy, View


class LookaheadAgent:
    """An agent that plays what a trained policy likes and its rollouts confirm.

    Args:
        name: its specification.
        policy: of the encoding ``candidates``, with values.
        settings: how it looks ahead.
        others: the policy that the other seats are taken to have.

    Raises:
        PolicyError: the policy has no values, or nobody knows what they mean.
    """

    compiled = None

    def __init__(self, name: str, policy: PolicyAgent, settings: Lookahead, others: Policy) -> None:
        self.name = name
        self._settings = settings
        self._playouts = Playouts(policy, 1, settings.candidates, others, policy.threads)

    @property
    def threads(self) -> int:
        """Threads of its kernels, at first the policy's."""
        return self._playouts.threads

    @threads.setter
    def threads(self, threads: int) -> None:
        self._playouts.threads = threads

    def __repr__(self) -> str:
        return f"LookaheadAgent({self.name!r}, {self._settings!r})"

    def choose(self, view: View, rng: np.random.Generator) -> np.ndarray[Any, np.dtype[Any]]:
        """Return a ``TURN`` array, shape ``(n,)``: the turn found for each game.

        ``rng`` is left alone: all chance comes from ``view.keys``.

        Raises:
            ValueError: the agent was made for other rules.
            IllegalTurn: somebody chose one in a rollout.
            PolicyError: the policy's model gives no values.
        """
        self._playouts.check(view.ruleset, self.name)
        if not len(view.games):
            return np.zeros(0, TURN)
        logits, masks, offers = self._playouts.look(view.games)
        favourites, tried = favourites_of(logits, masks, self._settings.top)
        tried[tried.sum(axis=1) < 2] = False  # a single one needs no trial
        worths = np.full(tried.shape, -np.inf)
        if tried.any():
            worths[tried] = self._try(view, offers, favourites, tried)
        games = np.arange(len(view.games))
        turns: np.ndarray[Any, np.dtype[Any]] = turns_of(
            offers, games, favourites[games, worths.argmax(axis=1)]
        )
        return turns

    def _try(self, view: View, offers: Any, favourites: Any, tried: Any) -> Any:
        """Return what the turns that are tried are worth, float64, in the order of ``tried``."""
        rollouts = self._settings.rollouts
        games, ranks = np.nonzero(tried)
        turns = turns_of(offers, games, favourites[games, ranks])
        seeds = np.zeros((len(view.games), rollouts), np.uint64)
        for key, drawn in zip(view.keys, seeds, strict=True):
            write_seeds(key, 0, drawn)
        worths = self._playouts.roll_out(
            view.games,
            np.repeat(games, rollouts),
            np.repeat(turns, rollouts),
            seeds[games].ravel(),
        )
        return worths.reshape(-1, rollouts).mean(axis=1)


def favourites_of(logits: Floats, masks: Any, top: int) -> tuple[Any, Any]:
    """Return the candidates that a policy likes best, and which of them there are.

    Of those that it likes the same, which are the same turn for other Guards of a stack, only
    the first counts.

    Args:
        logits: float32 ``(n, k)``.
        masks: bool ``(n, k)``.
        top: how many.

    Returns:
        int64 ``(n, min(top, k))``, the best first, and bool of the same shape.
    """
    legal = np.where(masks, logits, -np.inf)
    behind = np.floor((legal.max(axis=1, keepdims=True) - legal) / even_within(logits))
    order = np.argsort(behind, axis=1, kind="stable")
    behind = np.take_along_axis(behind, order, axis=1)
    behind[:, 1:][behind[:, 1:] == behind[:, :-1]] = np.inf
    first = np.argsort(behind, axis=1, kind="stable")[:, :top]
    found = np.isfinite(np.take_along_axis(behind, first, axis=1))
    return np.take_along_axis(order, first, axis=1), found

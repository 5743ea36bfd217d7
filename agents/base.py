"""What an agent is, and agents whose whole policy is one compiled function."""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np

from retinue.envs.actions import clear_turn
from retinue.envs.game.jit import call_at, jit
from retinue.envs.game.state import TURN
from retinue.envs.opponents import Opponent, Policy, View


@runtime_checkable
class Agent(Opponent, Protocol):
    """Whatever chooses turns: an :class:`Opponent` that can be asked for by name.

    ``name`` is the specification that :func:`retinue.agents.registry.make_agent` makes it from
    again; records carry it. :meth:`choose` draws all its chance from ``view.keys`` if it can, since
    then the same seed gives the same match whatever else is in the batch.
    """


@jit
def _choose_all(games: Any, rules: Any, keys: Any, turns: Any, policy: int, memory: int) -> None:
    """Let the policy at an address choose in every game."""
    for index in range(games.shape[0]):
        clear_turn(turns[index])
        call_at(policy, (games[index], rules[0], keys[index], turns[index], memory))


class CompiledAgent:
    """An agent whose policy kernels call directly.

    Args:
        name: its specification.
        policy: what kernels call, or its plain Python function, ``choose(game, rules, key, turn,
            memory) -> 0`` (see :class:`~retinue.envs.opponents.Policy`).
    """

    def __init__(self, name: str, policy: Policy | Callable[..., int]) -> None:
        self.name = name
        self._policy = policy if isinstance(policy, Policy) else Policy(policy)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self._policy!r})"

    @property
    def compiled(self) -> Policy:
        """The policy that kernels call."""
        return self._policy

    def choose(self, view: View, rng: np.random.Generator) -> np.ndarray[Any, np.dtype[Any]]:
        """Return a ``TURN`` array, shape ``(n,)``: what kernels would have been given.

        ``rng`` is left alone: all chance comes from ``view.keys``.
        """
        policy = self._policy
        policy.check(view.ruleset, self.name)
        turns = np.zeros(len(view.games), TURN)
        rules = np.array([view.ruleset.packed])
        _choose_all(view.games, rules, view.keys, turns, policy.address, policy.memory_address)
        return turns

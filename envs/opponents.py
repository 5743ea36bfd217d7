"""How agents are injected into environments: what they are asked and what they answer.

``envs`` knows no agent by name; whatever fits :class:`Opponent` can take a seat.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from retinue.envs.game.jit import Callback
from retinue.envs.game.ruleset import Ruleset


@dataclass(frozen=True)
class View:
    """A batch of games in which the same agent is to move: all that players may know.

    The seed of the dice is not among it.

    Args:
        games: ``GAME`` array, shape ``(n,)``, rolls received; ``games["seat"]`` is to move. A copy,
            which the agent may change.
        keys: uint64 ``(n,)``, each decision's own source of chance: an agent that draws from these
            alone plays the same whatever else is in the batch.
        ruleset: the rules.
    """

    games: np.ndarray[Any, np.dtype[Any]]
    keys: np.ndarray[Any, np.dtype[np.uint64]]
    ruleset: Ruleset


@runtime_checkable
class Opponent(Protocol):
    """An agent as environments see it."""

    @property
    def name(self) -> str:
        """What the agent is called in records and tables."""

    @property
    def compiled(self) -> Callback | None:
        """The policy that kernels call directly; None if only :meth:`choose` can be asked."""

    def choose(self, view: View, rng: np.random.Generator) -> np.ndarray[Any, np.dtype[Any]]:
        """Return a ``TURN`` array, shape ``(n,)``: one legal turn for each game of ``view``."""


Resolver = Callable[[str, Ruleset], Opponent]
_resolvers: list[Resolver] = []


def set_resolver(resolver: Resolver) -> None:
    """Let environments take agents by name; ``retinue.agents`` does this when it is imported."""
    _resolvers[:] = [resolver]


def resolve(agent: Opponent | str, ruleset: Ruleset) -> Opponent:
    """Return ``agent``, looked up if it is a name.

    Raises:
        ValueError: it is a name and no agents are known, or not this one.
    """
    if isinstance(agent, Opponent) and not isinstance(agent, type):
        return agent
    if not isinstance(agent, str):
        raise ValueError(
            f"an opponent is a name, or an object with name, compiled and choose, not {agent!r:.80}"
        )
    if not _resolvers:
        raise ValueError(f"to use agent {agent!r} by its name, import retinue.agents first")
    return _resolvers[0](agent, ruleset)

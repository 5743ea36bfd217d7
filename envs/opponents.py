"""How agents are injected into environments: what they are asked and what they answer.

``envs`` knows no agent by name; whatever fits :class:`Opponent` can take a seat.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np

from retinue.envs.game.jit import Callback
from retinue.envs.game.ruleset import RULES, Ruleset
from retinue.envs.game.state import GAME, TURN

POLICY_ARGUMENTS: Final = (GAME, RULES, np.uint64, TURN, np.int64)
"""What a compiled policy takes: ``choose(game, rules, key, turn, memory)`` fills the cleared
``turn`` for the seat to move and returns 0. ``key`` is that decision's own source of chance, and
``memory`` the address of the record that its :class:`Policy` was made with
(``jit.record_at(memory, dtype)``), 0 without one."""


class Policy:
    """A compiled policy and what it knows, for kernels to call.

    Args:
        function: a plain Python function of ``POLICY_ARGUMENTS``, written for
            :func:`retinue.envs.game.jit.jit`; it takes all its chance from ``key``.
        memory: a structured array ``(1,)`` that the function only reads: its weights, say.
        ruleset: the only rules that it can play under; None if it can under any.

    Raises:
        ValueError: the memory has another form.
    """

    def __init__(
        self,
        function: Callable[..., int],
        memory: np.ndarray[Any, np.dtype[Any]] | None = None,
        ruleset: Ruleset | None = None,
    ) -> None:
        if memory is not None and not (
            memory.shape == (1,) and memory.dtype.names and memory.flags.c_contiguous
        ):
            raise ValueError("a policy's memory must be a structured array of shape (1,)")
        self.callback = Callback(function, POLICY_ARGUMENTS)
        self.memory = memory
        self.ruleset = ruleset

    def __repr__(self) -> str:
        return f"Policy({self.callback.function.__name__})"

    @property
    def address(self) -> int:
        """Of the compiled function."""
        return self.callback.address

    @property
    def memory_address(self) -> int:
        """Of the memory, 0 if there is none."""
        return 0 if self.memory is None else int(self.memory.ctypes.data)

    def check(self, ruleset: Ruleset, name: str) -> None:
        """Refuse to play under rules that the policy was not made for.

        Raises:
            ValueError: naming both; ``name`` is the agent's.
        """
        own = self.ruleset
        if own is not None and own is not ruleset and own.digest != ruleset.digest:
            raise ValueError(
                f"agent {name} was made for {own.mode} with rules {own.digest}, "
                f"these are {ruleset.mode} with rules {ruleset.digest}"
            )


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
        matches: int64 ``(n,)``, which of the caller's matches each game is, if it plays several.
    """

    games: np.ndarray[Any, np.dtype[Any]]
    keys: np.ndarray[Any, np.dtype[np.uint64]]
    ruleset: Ruleset
    matches: np.ndarray[Any, np.dtype[np.int64]] | None = None


@runtime_checkable
class Opponent(Protocol):
    """An agent as environments see it."""

    @property
    def name(self) -> str:
        """What the agent is called in records and tables."""

    @property
    def compiled(self) -> Policy | None:
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
        ValueError: it is a name and no agents are known, or not this one; or it was made for other
            rules.
    """
    found = _look_up(agent, ruleset)
    if found.compiled is not None:
        found.compiled.check(ruleset, found.name)
    return found


def _look_up(agent: Opponent | str, ruleset: Ruleset) -> Opponent:
    if isinstance(agent, Opponent) and not isinstance(agent, type):
        return agent
    if not isinstance(agent, str):
        raise ValueError(
            f"an opponent is a name, or an object with name, compiled and choose, not {agent!r:.80}"
        )
    if not _resolvers:
        raise ValueError(f"to use agent {agent!r} by its name, import retinue.agents first")
    return _resolvers[0](agent, ruleset)

"""From a specification, ``name`` or ``name:argument``, to an agent."""

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from retinue.agents.base import Agent, CompiledAgent
from retinue.agents.scripted import choose_racer, choose_random, choose_spread
from retinue.envs.game.ruleset import Ruleset


class AgentError(ValueError):
    """A specification that makes no agent; the message says which and what would."""


Factory: TypeAlias = Callable[[str, Ruleset], Agent]
"""Makes an agent from the argument of its specification; raises ``AgentError`` if it cannot."""


@dataclass(frozen=True)
class Kind:
    """One kind of agent."""

    make: Factory
    description: str
    argument: str
    """What stands after the colon, in capitals; empty if nothing may."""


_KINDS: Final[dict[str, Kind]] = {}


def register(name: str, make: Factory, description: str, argument: str = "") -> None:
    """Add a kind of agent, so that its name makes one.

    Args:
        name: letters, digits and dashes.
        make: is given the text after the colon (empty without one) and the rules.
        description: one line.
        argument: what the argument is, in capitals (``PATH``); it then has to be given.

    Raises:
        ValueError: the name is taken.
    """
    if name in _KINDS:
        raise ValueError(f"there is already an agent {name!r}")
    _KINDS[name] = Kind(make, description, argument)


def known_agents() -> dict[str, str]:
    """Return how each kind of agent is asked for (``name`` or ``name:ARGUMENT``) and what it is."""
    return {
        f"{name}:{kind.argument}" if kind.argument else name: kind.description
        for name, kind in _KINDS.items()
    }


def make_agent(spec: str, ruleset: Ruleset) -> Agent:
    """Return the agent that ``spec`` asks for, to play under ``ruleset``.

    Raises:
        AgentError: there is none of that name, or its argument is wrong.
    """
    name, colon, argument = spec.partition(":")
    kind = _KINDS.get(name)
    if kind is None:
        close = difflib.get_close_matches(name, _KINDS, 1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise AgentError(f"unknown agent {name!r}: {hint}known agents: {', '.join(known_agents())}")
    if kind.argument and not argument:
        raise AgentError(f"agent {name} is asked for as {name}:{kind.argument}")
    if colon and not kind.argument:
        raise AgentError(f"agent {name} takes no argument, so not {argument!r}")
    return kind.make(argument, ruleset)


def _register_compiled(name: str, policy: Callable[..., int], description: str) -> None:
    """Add a scripted agent. All seats share one object, so that it is compiled once."""
    agent = CompiledAgent(name, policy)
    register(name, lambda argument, ruleset: agent, description)


def _make_policy(argument: str, ruleset: Ruleset) -> Agent:
    """Load a trained policy; torch is only needed, and imported, for this."""
    from retinue.agents.policy import PolicyError, load_policy

    try:
        return load_policy(argument, ruleset)
    except PolicyError as error:
        raise AgentError(str(error)) from error


_register_compiled("random", choose_random, "chooses uniformly among what is legal")
_register_compiled("racer", choose_racer, "races its foremost Guard Home, then the next")
_register_compiled("spread", choose_spread, "keeps its Guards level on their way Home")
register("policy", _make_policy, "a trained policy, from a training run's folder", "FOLDER")

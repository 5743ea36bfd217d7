"""The agents that a request may name: a list made when the service starts.

The registry also knows agents that are paths, and options that are. Here a name is compared with
what is known, its options with ranges that keep a decision short, and nothing else is passed on.
"""

import contextlib
import dataclasses
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from retinue.agents.base import Agent
from retinue.agents.lookahead import LookaheadAgent
from retinue.agents.options import Option, OptionError, parse_options
from retinue.agents.policy import PolicyAgent, load_policy
from retinue.agents.registry import (
    LOOKING,
    AgentError,
    agent_options,
    known_agents,
    make_agent,
    make_known_agent,
)
from retinue.agents.server.problems import ProblemError, invalid
from retinue.agents.server.schemas import HUMAN, Plain
from retinue.agents.zoo import LEVELS, levels_of, residents
from retinue.envs.actions import MAX_CANDIDATES
from retinue.envs.game.ruleset import MODES, Ruleset, load_ruleset
from retinue.envs.strategy_file import shipped_files

SUGGESTED: Final = ("random", "racer", "greedy", "policy:easy", "policy:medium", "policy:hard")
"""From the weakest: what a frontend may offer as levels."""

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_POLICY: Final = "policy"
_SCRIPTED: Final = ("random", "racer", "spread", *shipped_files())
_ALONE: Final = "threads=1"
"""Added to a search: the service has its own threads."""

_MOST: Final = {"rollouts": 1600, "depth": 2, "top": 16, "candidates": 32}
"""What a request may ask of a search; seconds are not among it, since they are not repeatable."""
_MOST_AHEAD: Final = {"top": 16, "rollouts": 16, "candidates": 32}
_NAMES: Final = ("base", "opponents")
"""Options that are names of agents, of which a request may give scripted ones."""

log = logging.getLogger("retinue.server")


@dataclass(frozen=True)
class Cast:
    """An agent that a request may have.

    Attributes:
        name: as the request gave it.
        family: the same without its options.
        spec: what the registry makes it from.
        policy: what stands after ``policy:`` of the policy that explains its choices, if any.
        takes_long: a decision may take so long that others must not wait for it.
    """

    name: str
    family: str
    spec: str
    policy: str | None = None
    takes_long: bool = False


@dataclass(frozen=True)
class _Entry:
    """A row of the list."""

    kind: str
    description: str
    options: Mapping[str, Option] = field(default_factory=dict)
    modes: tuple[str, ...] = MODES
    policy: str | None = None
    spec: str | None = None
    takes_long: bool = False


class Roster:
    """All agents that requests may name.

    Args:
        own: the operator's, specification by name; these are trusted and may be paths.
        time_limit: seconds for a turn of those that are classes.
        threads: among which a policy shares the positions that it is asked about at once.

    Raises:
        AgentError: an own name or specification does not do.
    """

    def __init__(self, own: Mapping[str, str], time_limit: float, threads: int = 1) -> None:
        self._time_limit = time_limit
        self._threads = threads
        self._entries = dict(self._shipped())
        for name, spec in own.items():
            self._entries[name] = self._own(name, spec)

    def find(self, text: str) -> Cast:
        """Return the agent that a request names.

        Raises:
            ProblemError: 422; there is none, or its options do not do.
        """
        name, colon, options = text.partition(":")
        if name == _POLICY:
            level, at, rest = options.partition("@")
            way, colon, options = rest.partition(":")
            name = f"{_POLICY}:{level}{at}{way}"
        entry = self._entries.get(name)
        if entry is None:
            raise invalid("agent", f"there is no agent {text!r}; GET /v1/agents lists all")
        if colon and not entry.options:
            raise invalid("agent", f"agent {name} takes no options, so not {options!r}")
        try:
            parse_options(name, options, entry.options, is_given=bool(colon))
        except OptionError as error:
            raise invalid("agent", error) from None
        spec = entry.spec or text
        if entry.kind == "search":
            spec += f",{_ALONE}" if colon else f":{_ALONE}"
        takes_long = entry.takes_long or (entry.kind == "policy" and bool(colon))
        return Cast(text, name, spec, entry.policy, takes_long)

    def make(self, cast: Cast, ruleset: Ruleset) -> Agent:
        """Return a new agent.

        Raises:
            ProblemError: 422; it does not play under these rules.
        """
        try:
            agent = make_agent(cast.spec, ruleset, time_limit=self._time_limit)
        except AgentError as error:
            if self._entries[cast.family].kind in ("scripted", "strategy"):
                raise invalid("agent", error) from error
            # What it says may name files.
            log.info("agent %s under rules %s: %s", cast.name, ruleset.digest, error)
            raise invalid("agent", f"{cast.name} does not play under these rules") from error
        if isinstance(agent, PolicyAgent | LookaheadAgent):
            agent.threads = self._threads
        return agent

    def policy_of(self, cast: Cast, ruleset: Ruleset) -> PolicyAgent | None:
        """Return the policy that explains an agent's choices, None if there is none.

        It has been made under these rules.
        """
        return None if cast.policy is None else load_policy(cast.policy, ruleset)

    def listing(self) -> Plain:
        """Return all that there are, ``AgentsAnswer``."""
        strength = _strengths()
        agents = [
            {
                "name": name,
                "kind": entry.kind,
                "description": entry.description,
                "modes": list(entry.modes),
                "options": [_shown(key, option) for key, option in entry.options.items()],
                "explains": entry.policy is not None,
                "strength": strength.get(name, {}),
            }
            for name, entry in self._entries.items()
        ]
        known = [name for name in SUGGESTED if name in self._entries]
        return {"agents": agents, "suggested": known}

    def _shipped(self) -> Iterator[tuple[str, _Entry]]:
        """Yield what comes with the package."""
        described = {form.partition(":")[0]: text for form, text in known_agents().items()}
        options = agent_options()
        for name in _SCRIPTED:
            if name not in options:
                yield name, _Entry("scripted", described[name])
                continue
            # Turns drawn at random, the other option, may be any number.
            looks_at = dataclasses.replace(options[name]["candidates"], low=2, high=MAX_CANDIDATES)
            modes = tuple(mode for mode in MODES if _plays(name, mode))
            yield name, _Entry("strategy", described[name], {"candidates": looks_at}, modes)
        search = _bounded(options["search"], _MOST)
        yield "search", _Entry("search", described["search"], search, takes_long=True)
        looking = {each.level for each in residents() if each.manifest.lookahead}
        for level in LEVELS:
            name, text = f"{_POLICY}:{level}", f"the zoo's {level}, a trained policy"
            modes = tuple(mode for mode in MODES if level in levels_of(mode))
            if not modes:
                continue
            told = f"{text}: tries its favourite turns before it chooses"
            yield name, _Entry("policy", told if level in looking else text, {}, modes, level)
            ahead = _bounded(LOOKING["lookahead"], _MOST_AHEAD)
            yield f"{name}@lookahead", _Entry("policy", told, ahead, modes, level)
            search = _bounded(LOOKING["search"], _MOST)
            told = f"{text}: rollouts of its favourite turns"
            yield f"{name}@search", _Entry("search", told, search, modes, level, takes_long=True)

    def _own(self, name: str, spec: str) -> _Entry:
        """Return an operator's agent, which has to play in one mode at least.

        Raises:
            AgentError: it does not, or cannot be called so.
        """
        if not _NAME.fullmatch(name) or name in self._entries or name in (HUMAN, _POLICY):
            raise AgentError(
                f"agent {name!r}: an own name begins with a letter, has letters, digits, - and _ "
                "and is not taken"
            )
        modes, refused = [], None
        for mode in MODES:
            try:
                agent = make_agent(spec, load_ruleset(mode), time_limit=self._time_limit)
            except AgentError as error:
                refused = error
                continue
            modes.append(mode)
            close(agent)
        if not modes:
            assert refused is not None
            raise refused
        kind, _, source = spec.partition(":")
        policy = source if kind == _POLICY and "@" not in source else None
        quick = policy is not None or kind in (*_SCRIPTED, "strategy")
        return _Entry(
            "own", f"the operator's own: {name}", {}, tuple(modes), policy, spec, not quick
        )


def _bounded(options: Mapping[str, Option], most: Mapping[str, int]) -> dict[str, Option]:
    """Return those options that a request may give, within what a turn may take."""
    bounded = {}
    for key, option in options.items():
        if key in most:
            bounded[key] = dataclasses.replace(option, high=most[key])
        elif key in _NAMES:
            choices = tuple(dict.fromkeys((option.default, *_SCRIPTED)))
            bounded[key] = dataclasses.replace(option, choices=choices)
    return bounded


def close(agent: Agent) -> None:
    """End an agent's process if it has one."""
    end = getattr(agent, "close", None)
    if end is not None:
        end()


def _plays(name: str, mode: str) -> bool:
    """Tell whether an agent plays under a mode's own rules."""
    with contextlib.suppress(AgentError):
        make_known_agent(name, load_ruleset(mode))
        return True
    return False


def _shown(key: str, option: Option) -> Plain:
    return {
        "name": key,
        "type": "integer" if option.type is int else "name",
        "default": option.default,
        "low": option.low,
        "high": option.high,
        "choices": list(option.choices) or None,
        "description": option.description,
    }


def _strengths() -> dict[str, Plain]:
    """Return what was measured of the zoo's policies, by name and mode."""
    found: dict[str, Plain] = {}
    for resident in residents():
        rows = [
            each.model_dump(include={"against", "share", "low", "high", "matches"})
            for each in resident.manifest.strength
        ]
        found.setdefault(f"{_POLICY}:{resident.level}", {})[resident.mode] = rows
    return found


def under(error: ProblemError, place: str) -> ProblemError:
    """Return what is wrong with an agent, of the field of a request that names it."""
    return ProblemError(error.status, error.reason, place, error.code)

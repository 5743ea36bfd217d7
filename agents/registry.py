"""From a specification to an agent: ``name``, ``name:argument`` or ``name:option=value,...``.

A user's own agent is asked for by the path of its class, ``bot.py:ClassName``.
"""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from retinue.agents.base import Agent, CompiledAgent
from retinue.agents.loading import is_path
from retinue.agents.options import Option, OptionError, join_options, parse_options
from retinue.agents.policy import Lookahead
from retinue.agents.scripted import choose_racer, choose_random, choose_spread
from retinue.agents.search import MOST_DEPTH, MOST_ROLLOUTS, SearchAgent, Settings, quickened
from retinue.agents.strategies import CANDIDATES, MOST_AT_RANDOM, make_strategy
from retinue.envs.actions import MAX_CANDIDATES
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.opponents import Policy
from retinue.envs.parallel import MAX_THREADS
from retinue.envs.strategy_file import (
    StrategyError,
    StrategyFile,
    read_strategy,
    shipped_files,
    shipped_strategy,
)


class AgentError(ValueError):
    """A specification that makes no agent; the message says which and what would."""


Factory: TypeAlias = Callable[[Any, Ruleset], Agent]
"""Makes an agent from its argument (a text) or its options (a dict with a value for each), and from
the rules; raises ``AgentError`` if it cannot."""


@dataclass(frozen=True)
class Kind:
    """One kind of agent."""

    make: Factory
    description: str
    argument: str = ""
    """What stands after the colon, in capitals; empty if nothing may."""
    options: Mapping[str, Option] = field(default_factory=dict)

    def form(self, name: str) -> str:
        """Return how this kind is asked for: with its argument, or with every option's default."""
        after = self.argument or join_options(
            (key, option.default) for key, option in self.options.items()
        )
        return f"{name}:{after}" if after else name


_THE_BASE: Final = "base"
"""The option ``opponents`` of a search: they play as its base does."""

_KINDS: Final[dict[str, Kind]] = {}


def register(
    name: str,
    make: Factory,
    description: str,
    argument: str = "",
    options: Mapping[str, Option] | None = None,
) -> None:
    """Add a kind of agent, so that its name makes one.

    Args:
        name: letters, digits and dashes.
        make: ``make(argument, ruleset)`` is given the text after the colon, empty without one. With
            ``options`` it is ``make(options, ruleset)`` and given a dict of its own, with a value
            for each option; it then returns a new agent each time, whose ``name`` is set to the
            specification as it was given.
        description: one line.
        argument: what the argument is, in capitals (``PATH``); it then has to be given.
        options: what may be given after the colon as ``key=value,key=value``, by key.

    Raises:
        ValueError: the name is taken, a key is no identifier, or there are both an argument and
            options.
    """
    if name in _KINDS:
        raise ValueError(f"there is already an agent {name!r}")
    if argument and options:
        raise ValueError(f"agent {name} can have an argument or options, not both")
    for key in options or ():
        if not key.isidentifier():
            raise ValueError(f"agent {name}: option {key!r} is no identifier")
    _KINDS[name] = Kind(make, description, argument, dict(options or {}))


def known_agents() -> dict[str, str]:
    """Return how each kind of agent is asked for and what it is.

    That is ``name``, ``name:ARGUMENT``, or ``name:key=value,...`` with the defaults of its options,
    all of which may be left out.
    """
    return {kind.form(name): kind.description for name, kind in _KINDS.items()}


def agent_options() -> dict[str, dict[str, Option]]:
    """Return the options of each agent that has any, by its name."""
    return {name: dict(kind.options) for name, kind in _KINDS.items() if kind.options}


def split_specs(text: str) -> list[str]:
    """Return the specifications in a list of them, ``A,B,C``.

    A part of the form ``key=value`` is an option of the specification before it:
    ``search:base=racer,rollouts=8,spread`` is ``search:base=racer,rollouts=8`` and ``spread``.
    """
    specs: list[str] = []
    for part in map(str.strip, text.split(",")):
        key, equals, _ = part.partition("=")
        if specs and equals and key.isidentifier():
            specs[-1] += f",{part}"
        else:
            specs.append(part)
    return specs


def make_agent(spec: str, ruleset: Ruleset, *, time_limit: float | None = None) -> Agent:
    """Return the agent that ``spec`` asks for, to play under ``ruleset``.

    Args:
        spec: what the user, or your code, asks for. **The path of a class is imported, which runs
            what it holds**: a specification from anywhere else is for :func:`make_known_agent`.
        ruleset: the rules.
        time_limit: seconds for a turn of a user's own agent; by default ``user.TIME_LIMIT``.

    Raises:
        AgentError: there is none of that name, its argument or options are wrong, or its path leads
            to no agent.
    """
    if spec.partition(":")[0] in _KINDS or not is_path(spec):
        return make_known_agent(spec, ruleset)
    from retinue.agents.user import TIME_LIMIT, make_user_agent

    return make_user_agent(
        spec, ruleset, time_limit=TIME_LIMIT if time_limit is None else time_limit
    )


def make_known_agent(spec: str, ruleset: Ruleset) -> Agent:
    """Return the agent of a registered kind that ``spec`` asks for; no path is imported.

    This is for what others may have written: configurations, and arguments of environments.

    Raises:
        AgentError: there is none of that name, or its argument or options are wrong.
    """
    name, colon, argument = spec.partition(":")
    kind = _KINDS.get(name)
    if kind is None:
        raise AgentError(_unknown(spec))
    if kind.options:
        try:
            options = parse_options(name, argument, kind.options, is_given=bool(colon))
        except OptionError as error:
            raise AgentError(str(error)) from None
        agent = kind.make(options, ruleset)
        named: Any = agent  # the protocol only reads its name
        named.name = spec
        return agent
    if kind.argument and not argument:
        raise AgentError(f"agent {name} is asked for as {kind.form(name)}")
    if colon and not kind.argument:
        raise AgentError(f"agent {name} takes no argument, so not {argument!r}")
    return kind.make(argument, ruleset)


def _unknown(spec: str) -> str:
    """Return what to say of a specification whose name is no agent's."""
    name = spec.partition(":")[0]
    start, comma, rest = name.partition(",")
    if is_path(spec):
        return f"agent {spec!r} is a path, which is only imported for --agents and make_agent"
    if comma and start in _KINDS:
        return f"unknown agent {name!r}: options stand after a colon: {start}:{rest}"
    close = difflib.get_close_matches(name, _KINDS, 1)
    hint = f"did you mean {close[0]}? " if close else ""
    return f"unknown agent {name!r}: {hint}known agents: {', '.join(known_agents())}"


def _register_compiled(name: str, policy: Callable[..., int], description: str) -> None:
    """Add a scripted agent. All seats share one object, so that it is compiled once."""
    agent = CompiledAgent(name, policy)
    register(name, lambda argument, ruleset: agent, description)


_LOOKS_AT: Final = {
    "candidates": Option(
        int,
        CANDIDATES,
        "turns that it looks at; 2 to 128 unless random",
        low=1,
        high=MOST_AT_RANDOM,
    ),
    "random": Option(bool, False, "they are drawn at random, not proposed by the generator"),
}


def _register_strategy(name: str) -> None:
    """Add a shipped strategy."""

    def make(options: dict[str, Any], ruleset: Ruleset) -> Agent:
        return _strategy(name, shipped_strategy(name), options, ruleset)

    register(name, make, shipped_strategy(name).description, options=_LOOKS_AT)


def _strategy(
    name: str, strategy: StrategyFile, options: dict[str, Any], ruleset: Ruleset
) -> Agent:
    try:
        weights = strategy.weights_for(ruleset, f"agent {name}")
        count, at_random = options["candidates"], options["random"]
        return make_strategy(name, weights, ruleset, count, at_random=at_random)
    except StrategyError as error:
        raise AgentError(str(error)) from error


def _make_own_strategy(options: dict[str, Any], ruleset: Ruleset) -> Agent:
    """Read a user's own strategy."""
    path = options["file"]
    try:
        strategy = read_strategy(path)
    except StrategyError as error:
        raise AgentError(f"agent strategy: {error}") from error
    return _strategy(f"strategy {path}", strategy, options, ruleset)


_SEARCH_OPTIONS: Final = {
    "base": Option(str, "tactician", "whose turns it tries, and who plays its seat in rollouts"),
    "opponents": Option(str, _THE_BASE, "how it takes the other seats to play: an agent"),
    "rollouts": Option(int, 800, "rollouts for a turn, in all", low=0, high=MOST_ROLLOUTS),
    "time": Option(float, 0.0, "seconds for a turn; if not 0 they count, not rollouts", low=0),
    "depth": Option(int, 1, "own decisions that a rollout looks ahead", low=1, high=MOST_DEPTH),
    "top": Option(int, 8, "turns that it compares", low=1, high=MAX_CANDIDATES),
    "candidates": Option(
        int, 16, "turns that a strategy looks at in rollouts", low=1, high=MAX_CANDIDATES
    ),
    "doubt": Option(float, 1.0, "standard errors by which a turn has to beat the base's", low=0),
    "threads": Option(int, 0, "threads of its rollouts; 0 for all", low=0),
}


def _make_search(options: dict[str, Any], ruleset: Ruleset) -> Agent:
    """Make a search over the policies of other agents."""
    base, opponents = options.pop("base"), options.pop("opponents")
    _check_threads("search", options["threads"])
    own = _policy_of("search", "base", base, ruleset)
    others = (
        own if opponents == _THE_BASE else _policy_of("search", "opponents", opponents, ruleset)
    )
    return SearchAgent("search", own, others, Settings(**options), ruleset)


def _policy_of(agent: str, key: str, name: str, ruleset: Ruleset) -> Policy:
    """Return the policy of an agent that an option of another names."""
    try:
        policy = make_known_agent(name, ruleset).compiled
    except AgentError as error:
        raise AgentError(f"agent {agent}: option {key}: {error}") from error
    if policy is None:
        raise AgentError(
            f"agent {agent}: option {key} must be an agent that kernels can call "
            f"(racer, tactician, a strategy), not {name!r}"
        )
    return policy


_THE_POLICY: Final = "policy"
"""The option ``opponents`` of a policy's search: they play as the policy does."""

_POLICY_SEARCH_OPTIONS: Final = {
    "rollouts": Option(int, 400, "rollouts for a turn, in all", low=0, high=MOST_ROLLOUTS),
    **{key: _SEARCH_OPTIONS[key] for key in ("time", "depth", "top")},
    "candidates": Option(int, 16, "turns chosen from in rollouts", low=2, high=MAX_CANDIDATES),
    "opponents": Option(str, _THE_POLICY, "how it takes the other seats to play: an agent"),
    "doubt": Option(float, 1.0, "standard errors by which a turn has to beat its own", low=0),
    "threads": _SEARCH_OPTIONS["threads"],
}

_AHEAD: Final = Lookahead()
_LOOKAHEAD_OPTIONS: Final = {
    "top": Option(int, _AHEAD.top, "turns that it tries", low=1, high=MAX_CANDIDATES),
    "rollouts": Option(int, _AHEAD.rollouts, "rollouts of each", low=1, high=MOST_ROLLOUTS),
    "candidates": Option(
        int, _AHEAD.candidates, "turns chosen from in rollouts", low=2, high=MAX_CANDIDATES
    ),
    "opponents": Option(str, _AHEAD.opponents, "how it takes the other seats to play: an agent"),
}

LOOKING: Final = {"search": _POLICY_SEARCH_OPTIONS, "lookahead": _LOOKAHEAD_OPTIONS}
"""What may stand after the @ of a policy, with its options."""


def _make_policy(argument: str, ruleset: Ruleset) -> Agent:
    """Load a trained policy, and let it look ahead if it is meant to or that is asked for.

    Torch is only needed, and imported, for this.
    """
    from retinue.agents.policy import PolicyError, load_policy

    name, at, suffix = argument.rpartition("@")
    if not at or "/" in suffix:  # the folder's own @
        name, at = argument, ""
    try:
        way, options = _looking(f"policy:{name}", suffix) if at else ("", {})
        policy = load_policy(name, ruleset)
        return _let_look(f"policy:{argument}", policy, way, options, ruleset)
    except PolicyError as error:
        raise AgentError(str(error)) from error


def _looking(policy: str, suffix: str) -> tuple[str, dict[str, Any]]:
    """Return how a policy looks ahead by what stands after its @."""
    way, colon, text = suffix.partition(":")
    name = f"{policy}@{way}"
    if way not in LOOKING:
        raise AgentError(
            f"agent {name}: after the @ stands search or lookahead, as in {policy}@search"
        )
    try:
        options = parse_options(name, text, LOOKING[way], is_given=bool(colon))
    except OptionError as error:
        raise AgentError(str(error)) from None
    _check_threads(name, options.get("threads", 0))
    return way, options


def lookahead_of(text: str, ruleset: Ruleset) -> dict[str, Any]:
    """Return how a policy looks ahead, for :class:`~retinue.agents.policy.Lookahead`.

    Args:
        text: options, as after ``@lookahead:``; may be empty.
        ruleset: the rules.

    Raises:
        AgentError: there are no such options, or nobody plays as its opponents should.
    """
    try:
        options = parse_options("lookahead", text, _LOOKAHEAD_OPTIONS, is_given=bool(text))
    except OptionError as error:
        raise AgentError(str(error)) from None
    _policy_of("lookahead", "opponents", options["opponents"], ruleset)
    return options


def _let_look(name: str, policy: Any, way: str, options: dict[str, Any], ruleset: Ruleset) -> Agent:
    """Return a policy's agent: as it plays, or as it looks ahead.

    Raises:
        AgentError: nobody plays as its opponents should.
        PolicyError: it cannot look ahead.
    """
    if way == "search":
        from retinue.agents.policy_search import PolicySearchAgent

        rest = dict(options)
        opponents = rest.pop("opponents")
        settings = Settings(**rest)
        others = None
        if opponents != _THE_POLICY:
            others = quickened(
                _policy_of(name, "opponents", opponents, ruleset), settings.candidates
            )
        return PolicySearchAgent(name, policy, settings, others)
    lookahead = Lookahead(**options) if way else policy.lookahead
    if lookahead is None:
        return policy  # type: ignore[no-any-return]
    from retinue.agents.lookahead import LookaheadAgent

    others = _policy_of(name, "opponents", lookahead.opponents, ruleset)
    return LookaheadAgent(name, policy, lookahead, quickened(others, lookahead.candidates))


def _check_threads(agent: str, threads: int) -> None:
    if threads > MAX_THREADS:
        raise AgentError(
            f"agent {agent}: option threads must be 0 to {MAX_THREADS} here, not {threads}"
        )


_register_compiled("random", choose_random, "chooses uniformly among what is legal")
_register_compiled("racer", choose_racer, "races its foremost Guard Home, then the next")
_register_compiled("spread", choose_spread, "keeps its Guards level on their way Home")
for _name in shipped_files():
    _register_strategy(_name)
register(
    "search",
    _make_search,
    "looks ahead: rollouts of a base agent's best turns",
    options=_SEARCH_OPTIONS,
)
register(
    "policy",
    _make_policy,
    "a trained policy, from a training run's folder; FOLDER@lookahead and FOLDER@search:time=0.2 "
    "look ahead with it",
    "FOLDER",
)
register(
    "strategy",
    _make_own_strategy,
    "a strategy of your own, from a file of weights",
    options={"file": Option(str, "strategy.yaml", "its YAML file"), **_LOOKS_AT},
)

"""A user's own agent, by the path of its class: it plays in a process of its own, by forfeits.

A fault forfeits the turn: the seat moves nothing (the passive turn: forward, the Noble stays, all
rolls kept). After :data:`FORGIVEN` faults in one match all the seat's remaining turns of that match
are forfeited without asking. So whatever the agent does, its matches come to an end.

Nothing is imported but what the caller of :func:`make_user_agent` names: the user on the command
line, or code. A path in a record, a configuration or a request is never followed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from retinue.agents.base import Agent
from retinue.agents.loading import LoadError, load
from retinue.agents.process import AgentProcess, EndedError, TooSlowError
from retinue.agents.registry import AgentError
from retinue.agents.worker import FAILED, TURN_CHOSEN
from retinue.envs.game import engine
from retinue.envs.game.events import SILENT
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.state import TURN, Record, new_game
from retinue.envs.opponents import View

TIME_LIMIT: Final = 10.0
"""Seconds for a turn, unless another limit is given."""
LONGEST_LIMIT: Final = 86400.0
FORGIVEN: Final = 3
"""Faults in one match after which a seat is not asked again."""

RAISED: Final = "raised an exception"
NO_TURN: Final = "returned no turn"
ILLEGAL: Final = "chose an illegal turn"
SLOW: Final = "was too slow"
ENDED: Final = "ended its process"
NOT_ASKED: Final = "was not asked again"
"""Kinds of faults, and what follows from :data:`FORGIVEN` of them."""


@dataclass(frozen=True)
class Fault:
    """Why a turn was forfeited."""

    kind: str
    reason: str


@dataclass(frozen=True)
class Faults:
    """Faults of one kind."""

    count: int
    match: int
    turn: int
    """Where the first was; turns are counted from 1."""
    reason: str
    """Of that first one."""


class UserAgent:
    """An agent that cannot disturb what asks it.

    It is asked for one game at a time, and its generator seeded from that decision's key: so what
    it chooses in one match cannot depend on others that are played beside. It serves one batch of
    matches at a time, since it counts faults by match.

    Attributes:
        name: its own, or ``spec`` if it has none.
        faults: by kind.
        first_match: the number of the first match of the batch that is played, for messages.

    Args:
        spec: the path of its class, ``bot.py:ClassName`` or ``some.module:ClassName``.
        ruleset: the only rules that it is made for.
        time_limit: seconds for a turn.

    Raises:
        AgentError: there is no such agent; one line that says what is wrong.
    """

    compiled = None

    def __init__(self, spec: str, ruleset: Ruleset, time_limit: float = TIME_LIMIT) -> None:
        if not 0 < time_limit <= LONGEST_LIMIT:
            raise AgentError(
                f"a time limit is above 0 and at most {LONGEST_LIMIT:g} seconds, not {time_limit:g}"
            )
        _compile_engine(ruleset)
        self._arguments = (spec, ruleset, time_limit)
        self._process: AgentProcess | None = None
        self._in_match: dict[tuple[int, int], int] = {}
        self.faults: dict[str, Faults] = {}
        self.first_match = 0
        self.name = self._running().name

    def __repr__(self) -> str:
        return f"UserAgent({self._arguments[0]!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return UserAgent, self._arguments

    def close(self) -> None:
        """End the agent's process; it is started anew should the agent be asked again."""
        if self._process is not None:
            self._process.end()
            self._process = None

    def choose(self, view: View, rng: np.random.Generator) -> np.ndarray[Any, np.dtype[Any]]:
        """Return a ``TURN`` array, shape ``(n,)``: the agent's turns, passive where forfeited.

        ``rng`` is left alone: the agent gets one made from each key.

        Raises:
            ValueError: the view has other rules than those that the agent was made for.
        """
        del rng
        spec, ruleset, _ = self._arguments
        if view.ruleset is not ruleset and view.ruleset.digest != ruleset.digest:
            raise ValueError(f"agent {spec} was made for other rules than {view.ruleset.mode}'s")
        turns = np.zeros(len(view.games), TURN)
        matches = view.matches
        if matches is None:  # then there is but one, as in a single environment
            matches = np.arange(len(turns))
        asked = []
        for index, game in enumerate(view.games):
            seat = int(game["seat"])
            match = int(matches[index])
            if game["turns_taken"][seat] == 0:  # the seat's first turn: a new match
                self._in_match.pop((match, seat), None)
            if self._in_match.get((match, seat), 0) < FORGIVEN:
                asked.append(index)
            else:
                self._note(Fault(NOT_ASKED, f"after {FORGIVEN} faults in a match"), match, game)
        answers = self._answers(view.games[asked], view.keys[asked])
        for index, answer in zip(asked, answers, strict=True):
            game = view.games[index]
            fault = answer if isinstance(answer, Fault) else _take(answer, game, ruleset)
            if isinstance(fault, Fault):
                match, seat = int(matches[index]), int(game["seat"])
                self._in_match[match, seat] = self._in_match.get((match, seat), 0) + 1
                self._note(fault, match, game)
            else:
                turns[index] = fault
        return turns

    def _running(self) -> AgentProcess:
        """Return the agent's process, started if there is none."""
        if self._process is None or self._process.is_anothers:
            try:
                self._process = AgentProcess(*self._arguments)
            except LoadError as error:
                raise AgentError(str(error)) from error
        return self._process

    def _answers(self, games: Any, keys: Any) -> Iterator[bytes | Fault]:
        """Yield an answer for each game; a process that ends is followed by another."""
        done = 0
        while done < len(games):
            try:
                for answer in self._running().ask(games[done:], keys[done:]):
                    done += 1
                    yield answer
            except AgentError as error:  # it does not start any more
                yield from [Fault(ENDED, str(error))] * (len(games) - done)
                return
            except (TooSlowError, EndedError) as error:
                self.close()
                done += 1
                yield Fault(SLOW if isinstance(error, TooSlowError) else ENDED, str(error))
            except (
                BaseException
            ):  # Ctrl-C: an answer that comes late must not meet another question
                self.close()
                raise

    def _note(self, fault: Fault, match: int, game: Record) -> None:
        place = (self.first_match + match, int(game["turn"]) + 1)
        before = self.faults.get(fault.kind)
        if before is None:
            self.faults[fault.kind] = Faults(1, *place, fault.reason)
        elif place < (before.match, before.turn):
            self.faults[fault.kind] = Faults(before.count + 1, *place, fault.reason)
        else:
            first = (before.match, before.turn, before.reason)
            self.faults[fault.kind] = Faults(before.count + 1, *first)


def _take(answer: bytes, game: Record, ruleset: Ruleset) -> Any:
    """Return the turn of an answer, a ``TURN`` record, or the fault that it is."""
    start, rest = answer[:1], answer[1:]
    if start == TURN_CHOSEN and len(rest) == TURN.itemsize:
        turn = np.frombuffer(rest, TURN)[0]
        verdict = int(engine.judge(game, ruleset.packed, turn))
        if verdict == engine.LEGAL:
            return turn
        return Fault(ILLEGAL, engine.explain(verdict, game, turn))
    told = rest.decode(errors="replace")
    if start == FAILED:
        return Fault(RAISED, told)
    return Fault(NO_TURN, f"choose returned {told}, not a TURN array of shape (1,)")


def _compile_engine(ruleset: Ruleset) -> None:
    """Have on disk what agents call, so that no agent's time goes on compiling it."""
    game, turn = new_game(ruleset), np.zeros(1, TURN)[0]
    engine.roll(game, ruleset.packed, np.uint64(0))
    engine.legal_guards(game, ruleset.packed)
    engine.noble_may_move(game, ruleset.packed)
    engine.judge(game, ruleset.packed, turn)
    engine.play(game, ruleset.packed, turn, SILENT)


class _InProcess:
    """A user's agent in this process, as if its object had been given."""

    compiled = None

    def __init__(self, agent: Any, name: str) -> None:
        self.name = name
        self.choose = agent.choose


def make_user_agent(
    spec: str, ruleset: Ruleset, *, time_limit: float = TIME_LIMIT, in_process: bool = False
) -> Agent:
    """Return the agent whose class has the path ``spec``, which runs the code that it names.

    Args:
        spec: ``bot.py:ClassName`` or ``some.module:ClassName``; never somebody else's.
        ruleset: the rules.
        time_limit: seconds for a turn.
        in_process: to debug it: there is no other process, no time limit and no forfeit, and a
            fault raises as that of an agent's object does.

    Raises:
        AgentError: there is no such agent; one line that says what is wrong.
    """
    if not in_process:
        return UserAgent(spec, ruleset, time_limit)
    try:
        return _InProcess(*load(spec, ruleset))
    except LoadError as error:
        raise AgentError(str(error)) from error

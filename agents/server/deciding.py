"""Decisions off the event loop; what is asked while others are answered is answered together.

A thread takes all that wait for the same agent under the same rules, oldest agent first, and asks
it once, for a batch of games. Agents that take long have another thread. More would gain nothing:
they would wait for each other, and policies share a batch among threads of their own.
"""

import asyncio
import logging
import random
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np

from retinue.agents.base import Agent
from retinue.agents.policy import PolicyAgent
from retinue.agents.server.explaining import explain
from retinue.agents.server.positions import digest_of
from retinue.agents.server.problems import ProblemError
from retinue.agents.server.roster import Cast, Roster, close
from retinue.agents.server.schemas import Plain
from retinue.envs.game.dice import derive
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.state import GAME, Record
from retinue.envs.opponents import View

KEPT_AGENTS: Final = 24
"""Agents that a thread keeps, each for its rules; beyond, the one used last goes."""
KEPT_CHECKS: Final = 1024
"""Agents and rules of which it is known that they go together."""
_FOR_AGENT: Final = 17
"""Purpose for which a request's seed is turned into the key of its decision."""
_KEY_BITS: Final = 64

log = logging.getLogger("retinue.server")

_Key: TypeAlias = tuple[str, str]
"""Specification and rules: questions that have them in common are answered together."""


@dataclass
class Question:
    """A position in which an agent is to choose.

    Attributes:
        cast: the agent.
        ruleset: the rules.
        game: ``GAME``, its turn due.
        key: uint64, its own chance.
        explain: how many alternatives are to be shown.
        match: which match it is of; a number that questions of other matches do not have.
    """

    cast: Cast
    ruleset: Ruleset
    game: Record
    key: Any
    explain: int = 0
    match: int = 0
    group: _Key = field(init=False)
    answer: asyncio.Future["Answer"] = field(init=False)

    def __post_init__(self) -> None:
        self.group = self.cast.spec, digest_of(self.ruleset)


@dataclass(frozen=True)
class Answer:
    """An agent's ``TURN``, and why."""

    turn: Record
    explanation: Plain | None


def key_of(seed: int | None) -> Any:
    """Return the key of a decision, uint64: from a request's seed, or drawn."""
    if seed is None:
        return np.uint64(random.getrandbits(_KEY_BITS))  # no secret: it need not be slow
    return np.uint64(derive(np.uint64(seed), _FOR_AGENT))


class _Lane:
    """Questions that wait, by agent and rules, and how many may."""

    def __init__(self, most: int, at_once: int) -> None:
        self._most = most
        self._at_once = at_once
        # Those that are urgent come first.
        self._waiting: tuple[OrderedDict[_Key, list[Question]], ...] = OrderedDict(), OrderedDict()
        self._count = 0
        self._closed = False
        self._changed = threading.Condition()

    def __len__(self) -> int:
        return self._count

    def add(self, questions: list[Question], *, urgent: bool, must_wait: bool) -> None:
        """Let questions wait.

        Raises:
            ProblemError: 429; too many do already.
        """
        waiting = self._waiting[0 if urgent else 1]
        with self._changed:
            if not must_wait and self._count + len(questions) > self._most:
                raise ProblemError(429, f"{self._count} positions wait for a decision already")
            for each in questions:
                waiting.setdefault(each.group, []).append(each)
            self._count += len(questions)
            self._changed.notify()

    def take(self) -> list[Question]:
        """Wait for questions to the same agent and return them, none when the lane is closed."""
        with self._changed:
            while not self._count and not self._closed:
                self._changed.wait()
            waiting = self._waiting[0] or self._waiting[1]
            if not waiting:
                return []
            group, found = waiting.popitem(last=False)
            taken, rest = found[: self._at_once], found[self._at_once :]
            if rest:  # behind those of other agents
                waiting[group] = rest
            self._count -= len(taken)
            if self._count:
                self._changed.notify()
            return taken

    def close(self) -> None:
        """Let nobody wait for further questions."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


class _Minds:
    """The agents of one thread: they are not made to be asked by two at once."""

    def __init__(self, roster: Roster) -> None:
        self._roster = roster
        self._agents: OrderedDict[_Key, tuple[Agent, PolicyAgent | None]] = OrderedDict()
        self._rng = np.random.default_rng(0)  # agents draw from keys

    def answer(self, questions: list[Question]) -> list[Answer]:
        """Ask the agent that all questions are for."""
        first = questions[0]
        agent, policy = self._find(first)
        games = np.zeros(len(questions), GAME)
        for index, each in enumerate(questions):
            games[index] = each.game
        keys = np.array([each.key for each in questions], np.uint64)
        matches = np.array([each.match for each in questions], np.int64)
        turns = agent.choose(View(games, keys, first.ruleset, matches), self._rng)
        return [
            Answer(turn, _explain(policy, each, turn))
            for each, turn in zip(questions, turns, strict=True)
        ]

    def close(self) -> None:
        for agent, _ in self._agents.values():
            close(agent)

    def _find(self, question: Question) -> tuple[Agent, PolicyAgent | None]:
        cast, ruleset, key = question.cast, question.ruleset, question.group
        if key not in self._agents:
            made = self._roster.make(cast, ruleset)
            self._agents[key] = made, self._roster.policy_of(cast, ruleset)
            if len(self._agents) > KEPT_AGENTS:
                close(self._agents.popitem(last=False)[1][0])
        self._agents.move_to_end(key)
        return self._agents[key]


def _explain(policy: PolicyAgent | None, question: Question, turn: Record) -> Plain | None:
    if not question.explain or policy is None:
        return None
    return explain(policy, question.game, question.ruleset, turn, question.explain)


class Decider:
    """Answers questions with two threads of its own.

    Args:
        roster: makes the agents.
        most: questions that may wait, and of these for agents that take long.
        at_once: questions that are answered together.
        observe: is told of each batch: the agent's name and how many questions it has.
    """

    def __init__(
        self,
        roster: Roster,
        most: tuple[int, int],
        at_once: int,
        observe: Callable[[str, int], None],
    ) -> None:
        self._roster = roster
        self._observe = observe
        self._quick, self._long = _Lane(most[0], at_once), _Lane(most[1], 1)
        self._threads = [
            threading.Thread(target=self._work, args=(lane,), name="retinue-decider", daemon=True)
            for lane in (self._quick, self._long)
        ]
        self._loop: asyncio.AbstractEventLoop | None = None
        self._checked: OrderedDict[_Key, None] = OrderedDict()

    @property
    def waiting(self) -> int:
        """How many questions wait."""
        return len(self._quick) + len(self._long)

    def start(self) -> None:
        """Begin to answer, to the event loop that runs."""
        self._loop = asyncio.get_running_loop()
        for thread in self._threads:
            thread.start()

    async def stop(self) -> None:
        """Answer what waits, and end."""
        self._quick.close()
        self._long.close()
        for thread in self._threads:
            await asyncio.to_thread(thread.join)

    async def ask(
        self, questions: list[Question], *, urgent: bool = True, must_wait: bool = False
    ) -> list[Answer]:
        """Return the answers to some questions, in their order.

        Args:
            questions: each for whatever agent.
            urgent: they come before those that are not.
            must_wait: they are never refused for being too many.

        Raises:
            ProblemError: 422; an agent does not play under these rules. 429; too many wait.
        """
        assert self._loop is not None
        long = [each for each in questions if each.cast.takes_long]
        quick = [each for each in questions if not each.cast.takes_long]
        for each in questions:
            each.answer = self._loop.create_future()
        for lane, some in ((self._quick, quick), (self._long, long)):
            if some:
                lane.add(some, urgent=urgent, must_wait=must_wait)
        if len(questions) == 1:
            return [await questions[0].answer]
        found = await asyncio.gather(*(each.answer for each in questions), return_exceptions=True)
        for answer in found:
            if isinstance(answer, BaseException):
                raise answer
        return found  # type: ignore[return-value] # the others were raised

    async def check(self, cast: Cast, ruleset: Ruleset) -> None:
        """Refuse an agent that does not play under some rules.

        Raises:
            ProblemError: 422.
        """
        key = cast.spec, digest_of(ruleset)
        if key not in self._checked:
            close(await asyncio.to_thread(self._roster.make, cast, ruleset))
            self._checked[key] = None
            if len(self._checked) > KEPT_CHECKS:
                self._checked.popitem(last=False)

    def _work(self, lane: _Lane) -> None:
        minds = _Minds(self._roster)
        while questions := lane.take():
            self._observe(questions[0].cast.family, len(questions))
            found = self._answers(minds, questions)
            assert self._loop is not None
            self._loop.call_soon_threadsafe(_deliver, questions, found)
        minds.close()

    def _answers(self, minds: _Minds, questions: list[Question]) -> list[Answer | Exception]:
        """Return answers, or why there is none; what spoils one question spoils no other."""
        try:
            return list(minds.answer(questions))
        except Exception as error:
            if len(questions) > 1:
                return [self._answers(minds, [each])[0] for each in questions]
            if not isinstance(error, ProblemError):
                log.exception("agent %s cannot decide", questions[0].cast.name)
            return [error]


def _deliver(questions: list[Question], answers: list[Answer | Exception]) -> None:
    for question, answer in zip(questions, answers, strict=True):
        if question.answer.done():  # whoever asked has gone
            continue
        if isinstance(answer, Exception):
            question.answer.set_exception(answer)
        else:
            question.answer.set_result(answer)

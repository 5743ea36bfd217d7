"""The process of a user's agent as seen from outside: started, asked, ended."""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from typing import Any, Final

from retinue.agents.loading import LONGEST, LoadError
from retinue.agents.worker import HELLO, NAMED, REFUSED, receive, send
from retinue.envs.game.ruleset import Ruleset

START_LIMIT: Final = 60.0
"""Seconds in which an agent has to be imported and made."""
LONGEST_ANSWER: Final = 1 << 16
"""Bytes; turns and reasons are far shorter."""
PATIENCE: Final = 1.0
"""Seconds for what comes at once when a process has ended."""

_PROGRAM: Final = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from retinue.agents.worker import main; main()"
)

_Answers = queue.SimpleQueue[bytes | None]


class TooSlowError(Exception):
    """The agent took longer than its time limit."""


class EndedError(Exception):
    """The agent's process came to an end; the message says how."""


class AgentProcess:
    """A process that holds one agent. It ends with this one, however this one ends.

    Args:
        spec: the path of the agent's class.
        ruleset: the rules.
        time_limit: seconds for a turn.

    Attributes:
        name: the agent's.

    Raises:
        LoadError: the agent cannot be made; one line that says why.
    """

    def __init__(self, spec: str, ruleset: Ruleset, time_limit: float) -> None:
        self._limit = time_limit
        self._owner = os.getpid()
        child_in, self._requests = os.pipe()
        self._answers, child_out = os.pipe()
        self._threads: list[threading.Thread] = []
        try:
            # No `multiprocessing`: that would run the caller's main script again. A session of its
            # own keeps Ctrl-C away, and lets the agent's own children be ended with it.
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-c",
                    _PROGRAM,
                    json.dumps([*map(os.path.abspath, sys.path)]),
                ],
                stdin=child_in,
                stdout=child_out,
                start_new_session=True,
                env={**os.environ, "PYTHONHASHSEED": "0"},  # sets of texts in one order always
            )
        finally:
            os.close(child_in)
            os.close(child_out)
        self.end = weakref.finalize(
            self, _end, self._process, self._owner, self._threads, (self._requests, self._answers)
        )
        hello = (spec, ruleset.model_dump(mode="json"), time_limit)
        greeting = json.dumps(dict(zip(HELLO, hello, strict=True))).encode()
        try:
            (answer,) = self._exchange(greeting, 1, START_LIMIT)
        except TooSlowError:
            self.end()
            raise LoadError(f"{spec}: took more than {START_LIMIT:g} s to be made") from None
        except EndedError as error:
            self.end()
            raise LoadError(f"{spec}: while it was made, {error}") from None
        except BaseException:
            self.end()
            raise
        told = answer[1:].decode(errors="replace")
        if answer[:1] != NAMED:
            self.end()
            raise LoadError(told if answer[:1] == REFUSED else f"{spec}: its answer is nonsense")
        if not told.isprintable():  # the agent may have written to the pipe itself
            self.end()
            raise LoadError(f"{spec}: its name must be a line of text")
        self.name = told[:LONGEST]

    @property
    def is_anothers(self) -> bool:
        """Whether this process is a fork of the one that started it, and must leave it alone."""
        return os.getpid() != self._owner

    def ask(self, games: Any, keys: Any) -> Iterator[bytes]:
        """Yield the answer for each game, as soon as it is there.

        Args:
            games: ``GAME`` array ``(n,)``.
            keys: uint64 ``(n,)``.

        Raises:
            TooSlowError: there was no answer within the time limit.
            EndedError: the process ended.
        """
        yield from self._exchange(games.tobytes() + keys.tobytes(), len(games), self._limit)

    def _exchange(self, request: bytes, count: int, limit: float) -> Iterator[bytes]:
        answers: _Answers = queue.SimpleQueue()
        # Another thread waits for pipes, since that cannot be given a limit on every system.
        thread = threading.Thread(
            target=_talk, args=(self._requests, self._answers, request, count, answers), daemon=True
        )
        self._threads[:] = [thread]
        thread.start()
        for _ in range(count):
            try:
                answer = answers.get(timeout=limit)
            except queue.Empty:
                raise TooSlowError(f"no turn within {limit:g} s") from None
            if answer is None:
                raise EndedError(f"its process ended{self._how()}")
            yield answer
        thread.join()

    def _how(self) -> str:
        try:
            code = self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            return " the conversation"
        if code >= 0:
            return f" with exit code {code}"
        return f" by signal {signal.Signals(-code).name}"


def _talk(requests: int, source: int, request: bytes, count: int, answers: _Answers) -> None:
    """Put the answers to a request into a queue, and None when no more will come."""
    try:
        send(requests, request)
        for _ in range(count):
            answer = receive(source, LONGEST_ANSWER)
            answers.put(answer)
            if answer is None:
                return
    except OSError:
        answers.put(None)


def _end(
    process: "subprocess.Popen[bytes]",
    owner: int,
    threads: list[threading.Thread],
    pipes: tuple[int, int],
) -> None:
    """End a process and all that it has started, and close the pipes to it."""
    if os.getpid() != owner:
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()
    for thread in threads:
        thread.join(PATIENCE)
    # A pipe that a thread still reads stays open: its number must not become another file's.
    if not any(thread.is_alive() for thread in threads):
        for pipe in pipes:
            os.close(pipe)

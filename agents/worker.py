"""The process in which a user's own agent lives: it may hang, print, exit or crash there.

:class:`retinue.agents.user.UserAgent` starts it and talks to it in frames: four bytes that give the
length, then as many bytes. It is told first a :data:`HELLO`, then for each request some games and
keys; it answers the first with its name, and each game with one frame, as soon as it has it.
"""

import contextlib
import faulthandler
import json
import os
import queue
import signal
import struct
import sys
import threading
from pathlib import Path
from typing import Any, Final

import numpy as np

from retinue.agents.loading import SUFFIX, LoadError, load, told_error
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.schema import from_json
from retinue.envs.game.state import GAME, TURN
from retinue.envs.opponents import View

HELLO: Final = ("spec", "rules", "limit")
"""Of the first frame, JSON: the agent's path, its rules and its seconds for a turn."""
DECISION: Final = GAME.itemsize + 8
"""Bytes of a game and its key; in a request all games stand before all keys."""
NAMED, REFUSED, TURN_CHOSEN, FAILED, WRONG = b"N", b"R", b"T", b"E", b"W"
"""How an answer starts: the agent's name, why it cannot be made, a ``TURN``, what it raised, or
what it returned that is no turn."""
MARGIN: Final = 5.0
"""Seconds after which a turn that is too slow ends this process, should nobody else have."""

_HEADER: Final = struct.Struct("<I")


def send(channel: int, payload: bytes) -> None:
    """Write a frame to a file descriptor; raise OSError if nobody is left to read it."""
    left = memoryview(_HEADER.pack(len(payload)) + payload)
    while left:
        left = left[os.write(channel, left) :]


def receive(channel: int, longest: int) -> bytes | None:
    """Read a frame of at most ``longest`` bytes; None at the end of the stream, or for nonsense."""
    header = _read(channel, _HEADER.size)
    if header is None or _HEADER.unpack(header)[0] > longest:
        return None
    return _read(channel, _HEADER.unpack(header)[0])


def _read(channel: int, size: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < size:
        part = os.read(channel, size - len(parts))
        if not part:
            return None
        parts += part
    return bytes(parts)


def main() -> None:
    """Serve the agent that the first frame asks for until the stream of requests ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the other process's to answer
    requests, answers = os.dup(sys.stdin.fileno()), os.dup(sys.stdout.fileno())
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, sys.stdin.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what the agent prints is no answer
    sys.stdout = sys.stderr
    sys.argv[1:] = []  # these are not the agent's
    waiting: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests, waiting), daemon=True).start()
    hello = json.loads(waiting.get())
    spec, rules, limit = (hello[key] for key in HELLO)
    ruleset = from_json(Ruleset, json.dumps(rules))
    source = Path(spec.rpartition(":")[0]).absolute()
    if source.suffix == SUFFIX:  # what the agent imports later may stand beside it as well
        sys.path.insert(0, str(source.parent))
    else:
        sys.path.append(str(Path.cwd()))
    try:
        agent, name = load(spec, ruleset, alone=True)
    except LoadError as error:
        send(answers, REFUSED + str(error).encode())
        os._exit(0)  # whatever threads it has started
    send(answers, NAMED + name.encode())
    file = getattr(sys.modules.get(type(agent).__module__), "__file__", None)
    while True:
        request = waiting.get()
        size = len(request) // DECISION * GAME.itemsize
        games, keys = np.frombuffer(request[:size], GAME), np.frombuffer(request[size:], np.uint64)
        for index in range(len(games)):
            # Even should this process be alone by now, and hang where no other thread can run.
            faulthandler.dump_traceback_later(limit + MARGIN, exit=True, file=nothing)
            view = View(games[index : index + 1].copy(), keys[index : index + 1].copy(), ruleset)
            answer = _answer(agent, view, file)
            faulthandler.cancel_dump_traceback_later()
            with contextlib.suppress(OSError):  # nobody is left to read it
                send(answers, answer)


def _listen(requests: int, waiting: "queue.SimpleQueue[bytes]") -> None:
    """Hand on what is asked; when nobody is left to ask, end, whatever the agent is doing."""
    while (request := receive(requests, 1 << 32)) is not None:
        waiting.put(request)
    if os.name == "posix" and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)  # and what the agent has started
    os._exit(0)


def _answer(agent: Any, view: View, file: str | None) -> bytes:
    """Return the answer to one decision, which is all that ``view`` has."""
    try:
        turns = agent.choose(view, np.random.default_rng(view.keys[0]))
    except BaseException as error:  # even what would end the process
        return FAILED + told_error(error, file).encode(errors="replace")
    if not isinstance(turns, np.ndarray):
        return WRONG + f"a {type(turns).__name__}".encode(errors="replace")
    if (turns.dtype, turns.shape) != (TURN, (1,)):
        form = "TURN" if turns.dtype == TURN else str(turns.dtype)[:40]
        return WRONG + f"an array of {form} of shape {turns.shape}".encode(errors="replace")
    return TURN_CHOSEN + turns.tobytes()

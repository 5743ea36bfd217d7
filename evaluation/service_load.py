"""A bounded load test of the service: many clients that ask for one decision after the other.

The clients are as frontends are: each keeps one connection, asks for a single position, and asks
again when it has the answer. Meanwhile the service's health is asked for.
"""

import asyncio
import contextlib
import itertools
import json
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import numpy as np

from retinue.agents.registry import make_agent
from retinue.envs.game import engine
from retinue.envs.game.events import SILENT
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.state import OVER, new_game, state_to_json
from retinue.envs.opponents import View

POSITIONS: Final = 512
HEALTH_SECONDS: Final = 0.2
"""Between two questions for the service's health."""
OK: Final = 200
_PLAYER: Final = "greedy"
"""Who plays the matches of which the positions are."""


class LoadError(RuntimeError):
    """The service could not be asked, or refused; the message has what it answered."""


@dataclass
class Load:
    """What a load test found.

    Attributes:
        agent: who was asked.
        clients: that asked at once.
        seconds: that it took.
        delays: of each decision, in seconds, float64 ``(n,)``.
        health: of each answer on health meanwhile.
    """

    agent: str
    clients: int
    seconds: float
    delays: Any
    health: Any

    @property
    def rate(self) -> float:
        """Decisions a second."""
        return len(self.delays) / self.seconds

    def __str__(self) -> str:
        middle, high = np.quantile(self.delays, [0.5, 0.99]) * 1000
        worst = max(self.health) * 1000
        return (
            f"{self.agent}: {self.clients} clients, {self.rate:,.0f} decisions/s, median "
            f"{middle:.0f} ms, 99% within {high:.0f} ms; health within {worst:.0f} ms"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the figures as plain data; times in milliseconds."""
        quantiles = np.quantile(self.delays, [0.5, 0.99]) * 1000
        return {
            "agent": self.agent,
            "clients": self.clients,
            "decisions": len(self.delays),
            "decisions_per_second": self.rate,
            "median_ms": float(quantiles[0]),
            "p99_ms": float(quantiles[1]),
            "health_ms": float(max(self.health) * 1000),
        }


def request_bodies(ruleset: Ruleset, agent: str, count: int = POSITIONS) -> list[bytes]:
    """Return bodies that ask an agent for decisions, in positions of played matches."""
    player, rng = make_agent(_PLAYER, ruleset), np.random.default_rng(0)
    bodies: list[bytes] = []
    game, seed = new_game(ruleset), 0
    while len(bodies) < count:
        state = state_to_json(game)
        engine.roll(game, ruleset.packed, np.uint64(seed))
        asked = {
            "mode": ruleset.mode,
            "state": state,
            "seat": int(game["seat"]),
            "rolled": game["rolled"][: game["dice"]].tolist(),
            "agent": agent,
        }
        bodies.append(json.dumps(asked).encode())
        view = View(np.array([game]), np.zeros(1, np.uint64), ruleset)
        engine.play_or_raise(game, ruleset, player.choose(view, rng)[0], SILENT)
        if game["phase"] == OVER:
            game, seed = new_game(ruleset), seed + 1
    return [bodies[index] for index in rng.permutation(len(bodies))]


def measure_load(url: str, agent: str, ruleset: Ruleset, clients: int, seconds: float) -> Load:
    """Ask a service for decisions for some seconds.

    Args:
        url: of the service, ``http://HOST:PORT``.
        agent: who decides.
        ruleset: of a mode.
        clients: at once.
        seconds: how long.

    Raises:
        LoadError: it does not answer, or refuses.
    """
    bodies = request_bodies(ruleset, agent)
    try:
        return asyncio.run(_measure(url, agent, bodies, clients, seconds))
    except* (OSError, EOFError, ValueError) as group:
        raise LoadError(f"{url}: {_first(group)}") from None
    except* LoadError as group:
        raise _first(group) from None


def _first(group: BaseExceptionGroup[Any]) -> Any:
    """Return the first error of a group, however deep it is."""
    found: Any = group
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found


async def _measure(
    url: str, agent: str, bodies: Sequence[bytes], clients: int, seconds: float
) -> Load:
    async with _connected(url) as client:
        await client.decide(bodies[0])  # whatever is loaded on first use is loaded
    delays: list[float] = []
    health: list[float] = []
    began = time.perf_counter()
    deadline = began + seconds
    rest = len(bodies) // clients
    async with asyncio.TaskGroup() as group:
        for index in range(clients):
            own = [*bodies[index * rest :], *bodies[: index * rest]]
            group.create_task(_decide(url, own, deadline, delays))
        group.create_task(_watch(url, deadline, health))
    took = time.perf_counter() - began
    return Load(agent, clients, took, np.array(delays), np.array(health))


async def _decide(url: str, bodies: Sequence[bytes], deadline: float, delays: list[float]) -> None:
    async with _connected(url) as client:
        for body in itertools.cycle(bodies):
            if time.perf_counter() >= deadline:
                return
            delays.append(await client.decide(body))


async def _watch(url: str, deadline: float, health: list[float]) -> None:
    async with _connected(url) as client:
        while time.perf_counter() < deadline:
            health.append(await client.ask(b"GET", b"/health"))
            await asyncio.sleep(HEALTH_SECONDS)


@dataclass
class _Client:
    """One connection that is kept. A library for HTTP would cost more than what is measured."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    host: bytes

    async def decide(self, body: bytes) -> float:
        return await self.ask(b"POST", b"/v1/decide", body)

    async def ask(self, method: bytes, path: bytes, body: bytes = b"") -> float:
        """Ask, and return how many seconds the answer took."""
        began = time.perf_counter()
        self.writer.write(
            b"%s %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (method, path, self.host, len(body), body)
        )
        head = await self.reader.readuntil(b"\r\n\r\n")
        status = int(head.split(b" ", 2)[1])
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n", 1)[0])
        content = await self.reader.readexactly(length)
        if status != OK:
            raise LoadError(f"{status}: {content.decode()}")
        return time.perf_counter() - began


@contextlib.asynccontextmanager
async def _connected(url: str) -> AsyncIterator[_Client]:
    """Give a client, and close its connection at the end."""
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname:
        raise ValueError("give a URL as http://127.0.0.1:8765")
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 80)
    try:
        yield _Client(reader, writer, parts.netloc.encode())
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

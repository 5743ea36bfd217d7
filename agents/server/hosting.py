"""All hosted matches: begun, found again after a restart, played on, and ended.

What counts is on disk before it is told: a turn is appended and flushed before anybody hears of it.
"""

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, TypeAlias

from retinue.agents.server.deciding import Decider, Question
from retinue.agents.server.match import Match, Played, new_id, new_recorder, new_secret
from retinue.agents.server.positions import illegal, ruleset_of, turn_of
from retinue.agents.server.problems import ProblemError, invalid
from retinue.agents.server.roster import Roster, under
from retinue.agents.server.schemas import HUMAN, HostedTurnRequest, MatchRequest, Plain
from retinue.agents.server.settings import Settings
from retinue.agents.server.store import Store
from retinue.envs.game.engine import IllegalTurn
from retinue.envs.game.record import RecordError
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.state import Record

_STOP_SECONDS: Final = 10.0
"""In which turns that are being played must end when the service does."""

log = logging.getLogger("retinue.server")


Event: TypeAlias = tuple[str, str | None, int | None]


class Hosting:
    """The matches of a service.

    Args:
        settings: its limits.
        store: where they are kept.
        roster: who may have a seat.
        decider: asks them.
    """

    def __init__(self, settings: Settings, store: Store, roster: Roster, decider: Decider) -> None:
        self._settings = settings
        self._store = store
        self._roster = roster
        self._decider = decider
        self._matches: dict[str, Match] = {}
        self._loading: dict[str, asyncio.Lock] = {}
        self._playing = len(store.playing())
        self._streams = 0
        self._sweeper: asyncio.Task[None] | None = None
        self.closing = asyncio.Event()

    @property
    def playing(self) -> int:
        """How many matches are not over."""
        return self._playing

    @property
    def streams(self) -> int:
        """How many streams of events are open."""
        return self._streams

    # --- The service's own life

    def start(self) -> None:
        """Begin to look for matches that have expired."""
        self._sweeper = asyncio.create_task(self._sweep())

    def close_streams(self) -> None:
        """End all streams and waits, and begin no further turn of an agent."""
        self.closing.set()
        for match in self._matches.values():
            match.tell()

    async def stop(self) -> None:
        """End, with every turn that has begun on disk."""
        self.close_streams()
        if self._sweeper is not None:
            self._sweeper.cancel()
        tasks = [match.task for match in self._matches.values() if match.task is not None]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=_STOP_SECONDS)
            for task in late:
                task.cancel()

    # --- Requests

    async def create(self, asked: MatchRequest) -> tuple[list[str | None], Match]:
        """Begin a match; return its human seats' tokens too.

        Raises:
            ProblemError: 422; nobody of that name can have a seat there. 429; there are too many.
        """
        ruleset = ruleset_of(asked)
        clock = asked.clock_seconds
        if clock is not None and clock > ruleset.clock_seconds:
            most = ruleset.clock_seconds
            raise invalid("clock_seconds", f"{clock} is more than the rules' own {most}")
        await self._check_seats(asked.seats, ruleset)
        if self._playing >= self._settings.matches:
            raise ProblemError(429, f"{self._playing} matches are being played already")
        self._playing += 1
        name = new_id()
        secret, tokens = new_secret(asked.seats)
        recorder = new_recorder(ruleset, asked.seats, clock)
        try:
            await self._on_disk(self._store.create, name, secret, recorder.lines[0])
        except ProblemError:
            self._playing -= 1
            raise
        match = await self.find(name)
        return tokens, match

    async def find(self, name: str) -> Match:
        """Return a match, from disk if it is not in memory, and let its agents play on.

        Raises:
            ProblemError: 404; there is none. 503; its record is damaged.
        """
        match = await self._get(name)
        match.touched = time.monotonic()
        self._play_on(match)
        return match

    async def play(
        self, name: str, token: str | None, asked: HostedTurnRequest
    ) -> tuple[Match, Plain]:
        """Play a human seat's turn; return the match and the line of its record.

        Raises:
            ProblemError: 401, 403, 404, 409, 410; it is not due, or not theirs. 422; it is illegal.
        """
        match = await self.find(name)
        match.admit(token, asked.turn)
        turn = turn_of(asked, None)
        async with match.lock:
            match.admit(token, asked.turn)  # it may have been played meanwhile
            try:
                played = match.play(turn)
            except IllegalTurn as error:
                raise illegal(error, None) from error
            await self._commit(match, played)
        self._play_on(match)
        return match, json.loads(played.line)

    async def settle(self, match: Match, seconds: float) -> None:
        """Wait until a human is to move or the match has ended, but only for some seconds."""
        deadline = time.monotonic() + seconds
        while match.is_busy and not self.closing.is_set():
            left = deadline - time.monotonic()
            if left <= 0:
                return
            await _within(match.changed, left)

    async def record(self, name: str) -> bytes:
        """Return a match's record so far."""
        match = await self.find(name)
        async with match.lock:  # no line of it is half written then
            return await self._on_disk(self._store.read, match.id)  # type: ignore[no-any-return]

    async def events(self, match: Match, after: int) -> AsyncIterator[Event]:
        """Yield what has happened in a match, and what happens, until it ends.

        Args:
            match: the match.
            after: number of the last turn that is known; -1 for none.

        Yields:
            an event's name, its data as JSON (None for a sign of life) and a turn's number.
        """
        self._streams += 1
        match.streams += 1
        try:
            at, turn = 0, 0
            while not self.closing.is_set():
                changed, end = match.changed, match.size
                known, due = match.is_playing, match.due()
                lines = (
                    await self._on_disk(self._store.lines, match.id, at, end) if at < end else []
                )
                at = end
                for line in lines:
                    if line.startswith('{"turn"') and turn > after:
                        yield "turn", line, turn
                    turn += 1
                if not known:
                    yield "end", json.dumps(match.view()), None
                    return
                if due is not None:
                    yield "due", json.dumps({"turn": turn, "due": due}), None
                while not await _within(changed, self._settings.ping_seconds):
                    yield "", None, None
        finally:
            match.streams -= 1
            self._streams -= 1

    # --- Play

    def _play_on(self, match: Match) -> None:
        """Let the agents play, if one is to move and none does; end a match that is over."""
        if match.task is None and match.is_busy and not self.closing.is_set():
            match.task = asyncio.create_task(self._play_agents(match))
            match.task.add_done_callback(lambda task: self._rest(match, task))

    def _rest(self, match: Match, task: asyncio.Task[None]) -> None:
        match.task = None
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("match %s: its agents cannot play on", match.id, exc_info=error)
        elif match.is_busy:
            self._play_on(match)  # a human moved while the task came to its end

    async def _play_agents(self, match: Match) -> None:
        while match.is_agents and not self.closing.is_set():
            turn = await self._decide(match)
            async with match.lock:
                if match.is_agents:
                    await self._commit(match, match.play(turn))
        if match.is_over and match.is_playing:
            async with match.lock:
                await self._end(match)

    async def _decide(self, match: Match) -> Record:
        cast = self._roster.find(match.agent)
        question = Question(cast, match.ruleset, match.game.copy(), match.key, match=match.number)
        # Nobody waits for matches that agents have among themselves.
        urgent = HUMAN in match.seats
        (answer,) = await self._decider.ask([question], urgent=urgent, must_wait=True)
        return answer.turn

    async def _commit(self, match: Match, played: Played) -> None:
        """Have a turn on disk, then let it count, then tell of it. The lock is held."""
        await self._on_disk(self._store.append, match.id, played.content)
        match.take(played)
        if match.is_over:
            await self._end(match)
        match.tell()

    async def _end(self, match: Match) -> None:
        """Publish the seed of a match that is over or has expired. The lock is held."""
        if match.is_playing:
            await self._on_disk(self._store.publish, match.id, match.seed)
            match.end()
            self._playing -= 1
            match.tell()

    async def _check_seats(self, names: tuple[str, ...], ruleset: Ruleset) -> None:
        for seat, name in enumerate(names):
            if name != HUMAN:
                try:
                    await self._decider.check(self._roster.find(name), ruleset)
                except ProblemError as error:
                    raise under(error, f"seats[{seat}]") from error

    async def _get(self, name: str) -> Match:
        """Return a match, from disk if it is not in memory; there is never a second one of it."""
        if name not in self._matches:
            try:
                async with self._loading.setdefault(name, asyncio.Lock()):
                    if name not in self._matches:
                        self._matches[name] = await self._load(name)
            finally:
                self._loading.pop(name, None)
        return self._matches[name]

    async def _load(self, name: str) -> Match:
        try:
            stored = await self._on_disk(self._store.load, name)
        except RecordError as error:
            log.error("match %s: %s", name, error)
            raise ProblemError(503, "the record of this match is damaged") from error
        if stored is None:
            raise ProblemError(404, "there is no such match")
        if stored.seed is not None and stored.secret is not None:
            await self._on_disk(self._store.forget, name)
            self._playing -= 1
            stored.secret = None
        return Match(name, stored)

    @staticmethod
    async def _on_disk(work: Callable[..., Any], *arguments: Any) -> Any:
        """Do work on files beside the event loop.

        Raises:
            ProblemError: 503; the files cannot be written or read.
        """
        try:
            return await asyncio.to_thread(work, *arguments)
        except OSError as error:
            log.error("matches cannot be kept: %s", error)
            raise ProblemError(503, "the match cannot be kept at the moment") from error

    # --- What expires

    async def _sweep(self) -> None:
        while True:
            try:
                await self.sweep()
            except Exception:
                log.exception("looking for expired matches failed")
            await asyncio.sleep(self._settings.sweep_seconds)

    async def sweep(self) -> None:
        """Let idle matches expire and rest, and remove the oldest records of too many."""
        limit = time.time() - self._settings.idle_seconds
        for name in await asyncio.to_thread(self._store.playing):
            known = self._matches.get(name)
            played = self._store.played(name) if known is None else known.played
            if 0 < played < limit:
                match = await self._get(name)
                async with match.lock:
                    await self._end(match)
        rested = time.monotonic() - self._settings.rest_seconds
        for name, match in list(self._matches.items()):
            busy = match.task or match.streams or match.lock.locked()
            if match.touched < rested and not busy:
                del self._matches[name]
        await asyncio.to_thread(self._store.remove_oldest, self._settings.kept)


async def _within(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event, but not longer than some seconds; tell whether it came."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True

"""One hosted match in memory: its game, its record's next lines, and who may move."""

import asyncio
import hashlib
import hmac
import itertools
import secrets
import time
from typing import Any, Final

import numpy as np

from retinue.agents.server.positions import legal_of, rolled_of
from retinue.agents.server.problems import ProblemError
from retinue.agents.server.schemas import HUMAN, Plain
from retinue.agents.server.store import Secret, Stored
from retinue.envs.game.dice import SEED_BITS, derive, die
from retinue.envs.game.engine import dice_count
from retinue.envs.game.record import Recorder, result_of
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.state import OVER, ROLL, Record, state_to_json, totals

_ID_BYTES: Final = 16
_TOKEN_BYTES: Final = 32
_FOR_AGENTS: Final = 23
"""Purpose for which a match's seed gives the chance of its agents."""

_numbers = itertools.count(1)


def new_id() -> str:
    """Return an id that nobody can guess."""
    return secrets.token_hex(_ID_BYTES)


def new_secret(seats: tuple[str, ...]) -> tuple[Secret, list[str | None]]:
    """Return what a new match keeps to itself, and the token of each human seat."""
    tokens = [secrets.token_urlsafe(_TOKEN_BYTES) if name == HUMAN else None for name in seats]
    secret = Secret(
        format="retinue-hosted-match",
        version=1,
        seed=secrets.randbits(SEED_BITS),
        tokens=tuple(None if each is None else _digest(each) for each in tokens),
    )
    return secret, tokens


def new_recorder(ruleset: Ruleset, seats: tuple[str, ...], clock_seconds: int | None) -> Recorder:
    """Return the record of a new match; its dice are given turn by turn, so it shows no seed."""
    recorder = Recorder(ruleset, seats, None)
    if clock_seconds is None or clock_seconds == recorder.game["clock_seconds"]:
        return recorder
    start = state_to_json(recorder.game) | {"clock_seconds": clock_seconds}
    return Recorder(ruleset, seats, None, start)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class Match:
    """A hosted match.

    Attributes:
        id: its name, and the leave to watch it.
        ruleset: the rules.
        seats: names of the agents, ``human`` among them.
        number: that no other match of this service has; agents count faults by it.
        lock: whoever changes the match holds it.
        task: that lets the agents play, if one does.
        streams: how many watch.
        changed: set, and replaced, when something has happened.
        size: bytes of the record's lines after its header, all of them on disk.
        played: when the last turn was, in seconds as ``time.time`` counts.
        touched: when it was last asked for, in seconds as ``time.monotonic`` counts.

    Args:
        name: the id.
        stored: what is on disk.
    """

    def __init__(self, name: str, stored: Stored) -> None:
        self.id = name
        self.ruleset = stored.ruleset
        self.seats = stored.seats
        self.number = next(_numbers)
        self.lock = asyncio.Lock()
        self.task: asyncio.Task[None] | None = None
        self.streams = 0
        self.changed = asyncio.Event()
        self.size = stored.size
        self.played = stored.played
        self.touched = time.monotonic()
        self._secret = stored.secret
        self._seed = stored.seed if stored.secret is None else stored.secret.seed
        self._recorder = Recorder(stored.ruleset, stored.seats, None, stored.start)
        self._recorder.game = stored.game
        self._recorder.lines.clear()
        self._before = state_to_json(stored.game)
        self._roll()

    @property
    def game(self) -> Record:
        """``GAME``, its turn due, or over."""
        return self._recorder.game

    @property
    def is_playing(self) -> bool:
        """Whether turns may still come."""
        return self._secret is not None

    @property
    def is_over(self) -> bool:
        """Whether the rules have ended it."""
        return bool(self.game["phase"] == OVER)

    @property
    def is_agents(self) -> bool:
        """Whether an agent is to move."""
        return self.is_playing and not self.is_over and self._due_name() != HUMAN

    @property
    def is_busy(self) -> bool:
        """Whether the service has something to do: to let an agent move, or to end the match."""
        return self.is_playing and (self.is_over or self.is_agents)

    @property
    def agent(self) -> str:
        """The agent that is to move."""
        return self._due_name()

    @property
    def key(self) -> Any:
        """The chance of the decision that is due, uint64; the seed cannot be told from it."""
        assert self._seed is not None
        chance = np.uint64(derive(np.uint64(self._seed), _FOR_AGENTS))
        return np.uint64(derive(chance, int(self.game["turn"])))

    @property
    def seed(self) -> int:
        """Of the dice: for whoever publishes it."""
        assert self._seed is not None
        return self._seed

    def admit(self, token: str | None, number: int) -> None:
        """Refuse a turn that is not due, or not from whose it is.

        Args:
            token: of the seat, if one was given.
            number: of the turn.

        Raises:
            ProblemError: 401, 403, 409, 410.
        """
        if token is None:
            raise ProblemError(401, "a turn needs its seat's token: Authorization: Bearer TOKEN")
        given = _digest(token)
        # All are compared, so that the time taken tells nothing.
        held = [
            each is not None and hmac.compare_digest(each, given)
            for each in (self._secret.tokens if self._secret else ())
        ]
        if self.is_over:
            raise ProblemError(409, "the match is over")
        if not self.is_playing:
            raise ProblemError(410, "the match has expired")
        if not any(held):
            raise ProblemError(403, "the token is of no seat in this match")
        due = int(self.game["turn"])
        if number != due:
            raise ProblemError(409, f"turn {due} is due, not {number}", "turn")
        seat = int(self.game["seat"])
        if self.seats[seat] != HUMAN:
            raise ProblemError(409, f"seat {seat}, an agent, is to move")
        if not held[seat]:
            raise ProblemError(403, f"seat {seat} is to move, and the token is another seat's")

    def play(self, turn: Record) -> "Played":
        """Play a turn on trial: :meth:`take` makes it count.

        Raises:
            IllegalTurn: the rules do not allow it.
        """
        before = self.game
        self._recorder.game = before.copy()
        try:
            self._recorder.play(turn)
            return Played(self._recorder.game, list(self._recorder.lines))
        finally:
            self._recorder.game = before
            self._recorder.lines.clear()

    def take(self, played: "Played") -> None:
        """Let a turn count that is on disk, and roll for the next one."""
        self._recorder.game = played.game
        self._before = state_to_json(played.game)
        self.size += len(played.content)
        self.played = time.time()
        self._roll()

    def end(self) -> None:
        """Let nobody move any more: the seed has been published."""
        self._secret = None

    def tell(self) -> None:
        """Wake whoever waits for something to happen."""
        happened, self.changed = self.changed, asyncio.Event()
        happened.set()

    def view(self) -> Plain:
        """Return the match as everybody may see it, ``MatchView``."""
        ended = not self.is_playing
        over = self.is_over and ended
        return {
            "id": self.id,
            "mode": self.ruleset.mode,
            "seats": list(self.seats),
            "status": "over" if over else "expired" if ended else "playing",
            "turn": int(self.game["turn"]),
            "state": self._before,
            "due": self.due(),
            "totals": totals(self.game).tolist(),
            "result": result_of(self.game) if over else None,
            "seed_sha256": None if self._seed is None else _digest(str(self._seed)),
            "seed": self._seed if ended else None,
        }

    def due(self) -> Plain | None:
        """Return whose turn is due, ``Due``; None if nobody's."""
        if not self.is_playing or self.is_over:
            return None
        game = self.game
        return {
            "seat": int(game["seat"]),
            "kind": "human" if self._due_name() == HUMAN else "agent",
            "rolled": rolled_of(game),
            "credits_earned": int(game["credits_earned"]),
            "legal": legal_of(game, self.ruleset),
        }

    def _due_name(self) -> str:
        return self.seats[int(self.game["seat"])]

    def _roll(self) -> None:
        """Roll the dice of the seed, if a roll is due; the record does not know the seed."""
        game = self.game
        if not self.is_playing or game["phase"] != ROLL:
            return
        seed, seat = np.uint64(self.seed), int(game["seat"])
        turn = int(game["turns_taken"][seat])
        count = dice_count(game, self.ruleset.packed)
        self._recorder.roll([int(die(seed, seat, turn, index)) for index in range(count)])


class Played:
    """A turn that was played on trial.

    Attributes:
        game: ``GAME`` after it.
        line: of the record, as text.
        content: what it adds to the record: the line, and the result at the end.
    """

    def __init__(self, game: Record, lines: list[str]) -> None:
        self.game = game
        self.line = lines[0]
        self.content = "".join(f"{line}\n" for line in lines).encode()

"""Match records: write, read, replay and verify them (``docs/record.md`` has the format)."""

import contextlib
import json
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, SupportsIndex, TypeVar

import numpy as np
from pydantic import Field, model_validator

from retinue.envs.game import board, engine
from retinue.envs.game.dice import SEED_BITS
from retinue.envs.game.events import events_to_json, new_log
from retinue.envs.game.files import write_atomically
from retinue.envs.game.ruleset import MAX_STORE, Ruleset
from retinue.envs.game.schema import StrictModel, from_json
from retinue.envs.game.state import (
    OVER,
    ROLL,
    Record,
    StateModel,
    empty_turn,
    new_game,
    state_from_json,
    state_to_json,
    totals,
)

M = TypeVar("M", bound=StrictModel)
WHEN_NAMES: Final = ("before", "after")
EVENT_KEYS: Final[dict[str, tuple[str, ...]]] = {
    "checkpoint": ("piece", "checkpoint"),
    "capture": ("piece", "seat"),
    "blocked": ("piece", "trimmed"),
    "finish": (),
}
"""What an event of a type has beside its points; of any other type only the piece."""

Die = Annotated[int, Field(ge=1, le=6)]
Seat = Annotated[int, Field(ge=0, lt=board.SEATS)]
Piece = Annotated[int, Field(ge=0, lt=board.PIECES)]
Rolls = tuple[Die, ...]


class RecordError(ValueError):
    """A record that is damaged, altered or not of this format; says which line and why."""


class NobleModel(StrictModel):
    """The Noble's part of a turn."""

    steps: Annotated[int, Field(ge=0, le=6)]
    when: Literal["before", "after"]


class EventModel(StrictModel):
    """Something that happened in a turn; for the reader only."""

    type: Literal["exit", "checkpoint", "midpoint", "capture", "blocked", "home", "finish"]
    piece: Piece | None = None
    seat: Seat | None = None
    checkpoint: Annotated[int, Field(ge=0, lt=board.HOME_BIT)] | None = None
    trimmed: Annotated[int, Field(ge=0)] | None = None
    points: int | None = None

    @model_validator(mode="after")
    def _has_what_its_type_has(self) -> "EventModel":
        wanted = EVENT_KEYS.get(self.type, ("piece",))
        kind = f"{'an' if self.type == 'exit' else 'a'} {self.type} event"
        if missing := [key for key in wanted if getattr(self, key) is None]:
            raise ValueError(f"{kind} needs {' and '.join(missing)}")
        for key in ("piece", "seat", "checkpoint", "trimmed"):
            if key not in wanted and getattr(self, key) is not None:
                raise ValueError(f"{kind} has no {key}")
        return self


class HeaderModel(StrictModel):
    """The first line of a record."""

    record: Literal["retinue-match"]
    version: Annotated[int, Field(ge=1, le=1)]  # Literal[1] would take true and 1.0
    mode: Literal["journey", "brawl"]
    seed: Annotated[int, Field(ge=0, lt=1 << SEED_BITS)] | None
    rules: Ruleset
    agents: tuple[str, str, str, str]
    start: StateModel


class ChoicesModel(StrictModel):
    """What a seat chooses in a turn."""

    direction: Literal["forward", "backward"]
    noble: NobleModel
    guards: tuple[Rolls, Rolls, Rolls, Rolls]

    def to_turn(self) -> Record:
        """Return the ``TURN`` record of the choices.

        Raises:
            ValueError: the choices are not written as the format wants them.
        """
        return _turn_of(self.direction, self.noble, self.guards)


class TurnModel(StrictModel):
    """One turn's line."""

    turn: Annotated[int, Field(ge=0)]
    seat: Seat
    rolled: Rolls
    credits_earned: Annotated[int, Field(ge=0)]
    direction: Literal["forward", "backward"]
    noble: NobleModel
    guards: tuple[Rolls, Rolls, Rolls, Rolls]
    events: tuple[EventModel, ...]
    after: StateModel

    def to_turn(self) -> Record:
        """Return the ``TURN`` record of the choices; as :meth:`ChoicesModel.to_turn`."""
        return _turn_of(self.direction, self.noble, self.guards)


def _turn_of(direction: str, noble: NobleModel, guards: tuple[Rolls, ...]) -> Record:
    turn = empty_turn()
    turn["direction"] = board.DIRECTION_NAMES.index(direction)
    turn["noble_steps"] = noble.steps
    turn["noble_after"] = WHEN_NAMES.index(noble.when)
    for guard, values in enumerate(guards):
        if list(values) != sorted(values):
            raise ValueError(f"guards[{guard}]: {list(values)} is not ascending")
        if len(values) > MAX_STORE:
            raise ValueError(f"guards[{guard}]: more rolls than any store can hold")
        for value in values:
            turn["rolls"][guard, value - 1] += 1
    return turn


class ResultModel(StrictModel):
    """The end of a match."""

    totals: tuple[int, int, int, int]
    places: tuple[int, int, int, int]
    finish_order: tuple[Seat, ...]
    reason: Literal["finished", "clock"]


class ResultLine(StrictModel):
    """The last line of a finished match's record."""

    result: ResultModel


def result_of(game: Record) -> dict[str, Any]:
    """Return the ``result`` object of a match that is over."""
    scores = totals(game)
    finish_order = game["finish_order"][: game["finished"]].tolist()
    return {
        "totals": scores.tolist(),
        "places": [int(1 + (scores > own).sum()) for own in scores],
        "finish_order": finish_order,
        "reason": "finished" if len(finish_order) == board.SEATS else "clock",
    }


def turn_to_json(turn: Record) -> dict[str, Any]:
    """Return the choices of a ``TURN`` record as the match record writes them."""
    steps = int(turn["noble_steps"])
    counts = turn["rolls"].tolist()
    return {
        "direction": board.DIRECTION_NAMES[turn["direction"]],
        "noble": {"steps": steps, "when": WHEN_NAMES[turn["noble_after"]]},
        "guards": [[value + 1 for value in range(6) for _ in range(row[value])] for row in counts],
    }


class Recorder:
    """Plays one match turn by turn and keeps its record.

    Args:
        ruleset: the rules.
        agents: four names, by seat.
        seed: of the dice; None when they come from elsewhere and are given to :meth:`roll`.
        start: STATE to start from; a new match by default.

    Raises:
        SchemaError: the arguments cannot stand in a record's header.
    """

    def __init__(
        self,
        ruleset: Ruleset,
        agents: Sequence[str],
        seed: SupportsIndex | None,
        start: dict[str, Any] | None = None,
    ) -> None:
        self.ruleset = ruleset
        self.game = new_game(ruleset) if start is None else state_from_json(start, ruleset, "start")
        header = {
            "record": "retinue-match",
            "version": 1,
            "mode": ruleset.mode,
            "seed": seed,
            "rules": ruleset.model_dump(mode="json"),
            "agents": list(agents),
            "start": state_to_json(self.game),
        }
        self.lines = [json.dumps(header, default=operator.index)]  # NumPy's integers too
        self.seed = from_json(HeaderModel, self.lines[0]).seed
        self._add_result()

    def roll(self, dice: Sequence[int] | None = None) -> None:
        """Roll for the seat to move: the seed's dice, or ``dice`` in the order they fell.

        Raises:
            ValueError: dice are given although there is a seed, or missing though there is none,
                or they cannot be.
        """
        if dice is not None and self.seed is None:
            engine.set_dice(self.game, self.ruleset, list(dice))
        elif dice is not None or self.seed is None:
            raise ValueError("give the dice exactly when the record has no seed")
        elif self.game["phase"] != ROLL:
            raise ValueError("no roll is due")
        else:
            engine.roll(self.game, self.ruleset.packed, np.uint64(self.seed))

    def play(self, turn: Record) -> list[dict[str, Any]]:
        """Play a ``TURN``, add its line (and, at the end, the result's); return its events.

        Raises:
            IllegalTurn: and nothing has changed.
        """
        game, log = self.game, new_log()
        line = {
            "turn": int(game["turn"]),
            "seat": int(game["seat"]),
            "rolled": game["rolled"][: game["dice"]].tolist(),
            "credits_earned": int(game["credits_earned"]),
        }
        engine.play_or_raise(game, self.ruleset, turn, log)
        events = events_to_json(log)
        line |= {**turn_to_json(turn), "events": events, "after": state_to_json(game)}
        self.lines.append(json.dumps(line))
        self._add_result()
        return events

    def _add_result(self) -> None:
        if self.game["phase"] == OVER:
            self.lines.append(json.dumps({"result": result_of(self.game)}))

    def save(self, path: Path | str) -> None:
        """Write the record so far to a file, whole or not at all."""
        write_atomically(Path(path), "".join(f"{line}\n" for line in self.lines))


def _parse(model: type[M], line: bytes) -> M:
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise ValueError("is not UTF-8 text") from error
    return from_json(model, text)


def _difference(written: Any, replayed: Any, name: str) -> str | None:
    """Return the first place where two plain structures differ, in words."""
    if written == replayed:
        return None  # as a rule; comparing whole is much quicker
    if isinstance(written, dict):
        parts = [(written[key], replayed[key], f"{name}.{key}") for key in written]
    elif isinstance(written, list | tuple) and len(written) == len(replayed):
        parts = [(each, replayed[i], f"{name}[{i}]") for i, each in enumerate(written)]
    else:
        return f"{name} is {written}, but replaying gives {replayed}"
    return next((found for part in parts if (found := _difference(*part))), None)


@dataclass(frozen=True)
class Replayed:
    """What replaying gave for one turn."""

    line: int
    """Line number of the turn in the file, counted from 1."""
    turn: TurnModel
    game: Record
    """``GAME`` after the turn; the next turn changes it."""
    log: Record
    """``LOG`` of the turn: what happened in the replay, whatever the line has as ``events``."""


class MatchReplay:
    """Reads a record and replays it, line by line, refusing the first line that does not fit.

    Iterating gives a :class:`Replayed` for each turn, from the first one every time; ``result`` is
    set once it has come to the end of a finished match, and stays None for a match in progress.

    Args:
        path: the file.

    Raises:
        RecordError: naming the file, the line and what differs; also while iterating.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.result: ResultModel | None = None
        try:
            # Bytes, since only "\n" ends a line: JSON may hold what else Python takes for an end.
            *lines, rest = self.path.read_bytes().split(b"\n")
        except OSError as error:
            raise RecordError(f"{path}: {error.strerror}") from error
        self._lines = [*lines, rest] if rest else lines
        with self._refusing(1):
            if not self._lines:
                raise ValueError("the header is missing; the file is empty")
            self.header = _parse(HeaderModel, self._lines[0])
            self.ruleset = self.header.rules
            if self.ruleset.mode != self.header.mode:
                raise ValueError(f"mode is {self.header.mode}, but rules.mode {self.ruleset.mode}")
            self.start = state_from_json(self.header.start, self.ruleset, "start")

    @contextlib.contextmanager
    def _refusing(self, number: int) -> Iterator[None]:
        """Name the file and the line in what is refused inside."""
        try:
            yield
        except ValueError as error:
            raise RecordError(f"{self.path}: line {number}: {error}") from error

    def __iter__(self) -> Iterator[Replayed]:
        self.result = None
        game = self.start.copy()
        for number, line in enumerate(self._lines[1:], start=2):
            with self._refusing(number):
                if self.result is not None:
                    raise ValueError("stands after the result")
                if game["phase"] == OVER:
                    self.result = self._read_result(game, line)
                    continue
                turn = _parse(TurnModel, line)
                log = self._play(game, turn)
            yield Replayed(number, turn, game, log)
        with self._refusing(len(self._lines) + 1):
            if game["phase"] == OVER and self.result is None:
                raise ValueError("the match is over, but its result is missing")

    def _play(self, game: Record, turn: TurnModel) -> Record:
        """Play one line on ``game``, return its ``LOG``; raise ValueError with what is wrong."""
        expected = {"turn": int(game["turn"]), "seat": int(game["seat"])}
        _require({name: getattr(turn, name) for name in expected}, expected)
        if self.header.seed is None:
            engine.set_dice(game, self.ruleset, list(turn.rolled))
        else:
            engine.roll(game, self.ruleset.packed, np.uint64(self.header.seed))
            _require(
                {"rolled": list(turn.rolled)},
                {"rolled": game["rolled"][: game["dice"]].tolist()},
            )
        _require(
            {"credits_earned": turn.credits_earned}, {"credits_earned": game["credits_earned"]}
        )
        log = new_log()
        engine.play_or_raise(game, self.ruleset, turn.to_turn(), log)
        _require({"after": turn.after.model_dump(mode="json")}, {"after": state_to_json(game)})
        return log

    @staticmethod
    def _read_result(game: Record, line: bytes) -> ResultModel:
        found = _parse(ResultLine, line).result
        _require({"result": found.model_dump(mode="json")}, {"result": result_of(game)})
        return found


def _require(written: dict[str, Any], replayed: dict[str, Any]) -> None:
    for name, value in written.items():
        if problem := _difference(value, replayed[name], name):
            raise ValueError(problem)


def verify_record(path: Path | str) -> MatchReplay:
    """Replay a whole record and return it, its ``result`` set if the match is finished.

    Raises:
        RecordError: naming the file, the first line that does not fit, and what differs.
    """
    replay = MatchReplay(path)
    for _ in replay:
        pass
    return replay

"""Match records of the arena: written, told in words and verified in bulk."""

import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from retinue.envs.game import board
from retinue.envs.game.record import (
    EventModel,
    MatchReplay,
    Recorder,
    RecordError,
    TurnModel,
    verify_record,
)
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.state import OVER, totals
from retinue.envs.render_text import render_text
from retinue.evaluation.arena import Matches
from retinue.evaluation.text import printable

SUFFIX: Final = ".jsonl"
WIDTH: Final = 100
PIECES: Final = ("G1", "G2", "G3", "G4", "the Noble")


def record_name(number: int) -> str:
    """Return the file name of a match."""
    return f"match-{number:06d}{SUFFIX}"


def prepare_folder(folder: Path) -> None:
    """Make a folder for records.

    Raises:
        RecordError: it cannot be made or holds records already, which must not get mixed up.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RecordError(f"{folder}: no folder for records: {error.strerror}") from error
    if any(folder.glob(f"*{SUFFIX}")):
        raise RecordError(f"{folder}: holds records already; choose another folder")


def save_records(matches: Matches, ruleset: Ruleset, folder: Path, first: int = 0) -> Iterator[int]:
    """Write ``folder/match-000000.jsonl`` and so on, and yield how many are written.

    Args:
        matches: with their turns kept.
        ruleset: that they were played under.
        folder: must be there.
        first: number of the first match.

    Raises:
        ValueError: the turns were not kept.
        OSError: a file cannot be written.
    """
    if matches.turns is None:
        raise ValueError("only matches whose turns were kept can be recorded")
    for index, turns in enumerate(matches.turns):
        names = [matches.names[agent] for agent in matches.seating[index]]
        recorder = Recorder(ruleset, names, int(matches.seeds[index]))
        for turn in turns:
            recorder.roll()
            recorder.play(turn)
        played = totals(recorder.game)
        if recorder.game["phase"] != OVER or (played != matches.totals[index]).any():
            raise RuntimeError(f"match {first + index} was played differently when replayed")
        recorder.save(folder / record_name(first + index))
        yield index + 1


def _checkpoint_in_words(bit: int, direction: int) -> str:
    """Return a checkpoint by its tile number, as the board shows it to the moving seat."""
    if bit == board.OWN_ENTERING_BIT:
        return "its entering tile"
    if bit >= board.FIRST_OTHER_ENTERING_BIT:
        offset = board.OTHER_ENTERING[bit - board.FIRST_OTHER_ENTERING_BIT]
        return f"the entering tile {board.tile_number(offset, direction)}"
    offset = board.CASTLES[bit - board.FIRST_CASTLE_BIT]
    return f"Castle {board.tile_number(offset, direction)}"


def _event_in_words(event: EventModel, turn: TurnModel) -> tuple[str, str]:
    """Return who did what in a turn."""
    who = PIECES[event.piece] if event.piece is not None else board.SEAT_NAMES[turn.seat]
    points = f" ({event.points:+d})" if event.points else ""
    if event.type == "capture":
        taken = f"{board.SEAT_NAMES[event.seat or 0]}'s {who.removeprefix('the ')}"
        return board.SEAT_NAMES[turn.seat], f"captures {taken}{points}"
    direction = board.DIRECTION_NAMES.index(turn.direction)
    steps = "1 step" if event.trimmed == 1 else f"{event.trimmed} steps"
    what = {
        "exit": "leaves the Yard",
        "checkpoint": f"reaches {_checkpoint_in_words(event.checkpoint or 0, direction)}",
        "midpoint": "reaches its midpoint",
        "blocked": f"is blocked and loses {steps}",
        "home": "is Home",
        "finish": "has finished",
    }[event.type]
    return who, f"{what}{points}"


def events_in_words(turn: TurnModel) -> str:
    """Return what happened in a turn, in order."""
    sentences: list[str] = []
    last = ""
    for event in turn.events:
        who, what = _event_in_words(event, turn)
        if who == last:
            sentences[-1] += f", {what}"
        else:
            sentences.append(f"{who} {what}")
        last = who
    return "; ".join(sentences) or "nothing else happens"


def choices_in_words(turn: TurnModel) -> str:
    """Return a turn's choices in words."""
    parts: list[str] = [turn.direction]
    if turn.noble.steps:
        parts.append(f"the Noble {turn.noble.steps} {turn.noble.when} the Guards")
    for guard, rolls in enumerate(turn.guards):
        if rolls:
            parts.append(f"{PIECES[guard]} {'+'.join(map(str, rolls))}")
    if len(parts) == 1:
        parts.append("nothing moves")
    return ", ".join(parts)


def _turn_lines(turn: TurnModel) -> list[str]:
    dice = " ".join(map(str, turn.rolled)) or "no dice"
    credits = f", {turn.credits_earned:+d} exit credit" if turn.credits_earned else ""
    return [
        f"Turn {turn.turn + 1}, {board.SEAT_NAMES[turn.seat]} rolls {dice}{credits}",
        f"  chooses {choices_in_words(turn)}",
        *textwrap.wrap(events_in_words(turn), WIDTH, initial_indent="  ", subsequent_indent="    "),
    ]


def tell(replay: MatchReplay, *, with_board: bool = True) -> Iterator[str]:
    """Yield a record as text: its header, turn by turn, and how it ended or that it has not.

    Raises:
        RecordError: at the first line that does not fit.
    """
    header = replay.header
    seed = "dice from elsewhere" if header.seed is None else f"dice seed {header.seed}"
    agents = [printable(name) for name in header.agents]
    seats = zip(board.SEAT_NAMES, agents, strict=True)
    yield f"{header.mode.capitalize()}, {seed}: {', '.join(f'{s} {a}' for s, a in seats)}\n"
    turns = 0
    for replayed in replay:
        turns += 1
        lines = _turn_lines(replayed.turn)
        if with_board:
            lines += ["", render_text(replayed.game, replay.ruleset)]
        yield "\n".join(lines)
    if replay.result is None:
        yield f"In progress after {turns} turns."
        return
    result = replay.result
    standing = sorted(range(board.SEATS), key=lambda seat: (result.places[seat], seat))
    rows = [
        f"  {result.places[seat]}. {board.SEAT_NAMES[seat]:<7}{result.totals[seat]:>6}  "
        f"{agents[seat]}"
        for seat in standing
    ]
    why = "all seats have finished" if result.reason == "finished" else "the clock has run out"
    yield "\n".join([f"The match is over: {why}.", *rows])


def find_records(paths: Sequence[Path]) -> list[Path]:
    """Return the files given, and for a folder the records in it, in order.

    Raises:
        RecordError: one is not there, or a folder holds no record.
    """
    found: list[Path] = []
    for path in paths:
        inside = sorted(path.glob(f"*{SUFFIX}")) if path.is_dir() else [path]
        if not inside:
            raise RecordError(f"{path}: holds no {SUFFIX} file")
        found += inside
    if missing := [path for path in found if not path.exists()]:
        raise RecordError(f"{missing[0]}: No such file or directory")
    return found


@dataclass
class Verdict:
    """What verifying many records found."""

    finished: int = 0
    in_progress: list[Path] = field(default_factory=list)
    refused: list[RecordError] = field(default_factory=list)

    def __str__(self) -> str:
        parts = [f"{self.finished:,} finished and fit"]
        if self.in_progress:
            more = ", ..." if len(self.in_progress) > 1 else ""
            where = f"{self.in_progress[0]}{more}"
            parts.append(f"{len(self.in_progress):,} in progress and fit so far ({where})")
        if self.refused:
            parts.append(f"{len(self.refused):,} do not fit")
        return f"records: {'; '.join(parts)}"


def verify_records(paths: Sequence[Path], on_progress: Callable[[int, int], None]) -> Verdict:
    """Replay every record and say which fit."""
    verdict = Verdict()
    for done, path in enumerate(paths, start=1):
        try:
            replay = verify_record(path)
        except RecordError as error:
            verdict.refused.append(error)
        else:
            if replay.result is None:
                verdict.in_progress.append(path)
            else:
                verdict.finished += 1
        on_progress(done, len(paths))
    return verdict

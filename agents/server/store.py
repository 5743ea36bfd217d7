"""Hosted matches on disk: the match record itself, and beside it what is secret while it is played.

``ID.jsonl`` is the record, appended and flushed turn by turn. ``ID.secret`` holds the seed of the
dice and the digests of the seats' tokens; only the service's own user may read it. It is written
before the match is acknowledged and removed when the seed has been published, in the record's
header. So a record with a secret beside it is played, one without is not.
"""

import contextlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from filelock import FileLock, Timeout
from pydantic import Field

from retinue.agents.server.schemas import Seed
from retinue.envs.game.files import replacing
from retinue.envs.game.record import MatchReplay, RecordError, ResultModel, result_of
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.schema import StrictModel, from_json
from retinue.envs.game.state import OVER, Record

ID_PATTERN: Final = "^[0-9a-f]{32}$"
_RECORD: Final = ".jsonl"
_SECRET: Final = ".secret"
_LOCK: Final = ".lock"

Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class StoreError(OSError):
    """A folder that cannot hold matches; the message says why."""


class Secret(StrictModel):
    """What nobody may know of a match while it is played."""

    format: Literal["retinue-hosted-match"]
    version: Annotated[int, Field(ge=1, le=1)]
    seed: Seed
    tokens: Annotated[tuple[Digest | None, ...], Field(min_length=4, max_length=4)]
    """SHA-256 of the token of each human seat."""


@dataclass
class Stored:
    """A match as it was found on disk.

    Attributes:
        ruleset: its rules.
        seats: names of the agents.
        start: STATE at the start.
        game: ``GAME`` after the last turn.
        result: set if it is over.
        seed: set if it was published.
        secret: set if it is played; both are if the service ended between the two.
        size: bytes of the turns' lines and the result's.
        played: when the last turn was, in seconds as ``time.time`` counts.
    """

    ruleset: Ruleset
    seats: tuple[str, str, str, str]
    start: dict[str, Any]
    game: Record
    result: ResultModel | None
    seed: int | None
    secret: Secret | None
    size: int
    played: float


class Store:
    """The folder of hosted matches. One service at a time has it.

    Args:
        folder: made if it is not there.

    Raises:
        StoreError: it cannot be used, or another service has it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(folder / _LOCK)
            self._lock.acquire(blocking=False)
        except Timeout:
            raise StoreError(f"{folder}: another service keeps its matches there") from None
        except OSError as error:
            raise StoreError(f"{folder}: cannot keep matches: {error.strerror}") from error

    def close(self) -> None:
        """Let another service have the folder."""
        self._lock.release()

    def playing(self) -> list[str]:
        """Return the matches that are not over."""
        return [path.stem for path in self._folder.glob(f"*{_SECRET}") if _is_id(path.stem)]

    def played(self, match: str) -> float:
        """Return when the last turn of a match was written; 0 if there is no such match."""
        try:
            return self._record(match).stat().st_mtime
        except OSError:
            return 0.0

    def create(self, match: str, secret: Secret, header: str) -> None:
        """Begin a match. When this returns, it is on disk.

        Args:
            match: its id.
            secret: what nobody may know.
            header: the first line of its record.

        Raises:
            OSError: it cannot be written; then there is nothing.
        """
        path = self._folder / f"{match}{_SECRET}"
        try:
            path.touch(0o600, exist_ok=False)
            with path.open("w", encoding="utf-8") as file:
                file.write(secret.model_dump_json())
                _flush(file)
            with self._record(match).open("xb") as record:
                record.write(f"{header}\n".encode())
                _flush(record)
            self._flush_folder()
        except OSError:
            for each in (path, self._record(match)):
                with contextlib.suppress(OSError):
                    each.unlink()
            raise

    def append(self, match: str, lines: bytes) -> None:
        """Add whole lines to a record. When this returns, they are on disk.

        Raises:
            OSError: they cannot be written; then the record is as it was.
        """
        with self._record(match).open("ab") as file:
            before = file.tell()
            try:
                file.write(lines)
                _flush(file)
            except OSError:
                with contextlib.suppress(OSError):
                    os.truncate(self._record(match), before)
                raise

    def publish(self, match: str, seed: int) -> None:
        """Write a match's seed into its record's header and forget what was secret.

        Raises:
            OSError: it cannot be written; then all is as it was.
        """
        path = self._record(match)
        header, _, rest = path.read_bytes().partition(b"\n")
        published = json.dumps(json.loads(header) | {"seed": seed}).encode()
        with replacing(path) as draft, draft.open("xb") as file:
            file.write(published + b"\n" + rest)
            _flush(file)
        self._flush_folder()
        self.forget(match)

    def forget(self, match: str) -> None:
        """Remove what was secret of a match, which then is played no more."""
        (self._folder / f"{match}{_SECRET}").unlink(missing_ok=True)
        self._flush_folder()

    def read(self, match: str) -> bytes:
        """Return a whole record.

        Raises:
            OSError: there is none.
        """
        return self._record(match).read_bytes()

    def lines(self, match: str, begin: int, end: int) -> list[str]:
        """Return lines after the header, from one position to another, in bytes after it."""
        with self._record(match).open("rb") as file:
            file.readline()
            file.seek(begin, os.SEEK_CUR)
            return file.read(end - begin).decode().splitlines()

    def load(self, match: str) -> Stored | None:
        """Return a match as it stands on disk, None if there is none.

        A last line that was not wholly written had not been acknowledged, and goes.

        Raises:
            RecordError: the record is damaged otherwise.
        """
        path = self._record(match)
        if not _is_id(match) or not path.exists():
            return None
        _drop_torn_line(path)
        replay, game = _replayed(path)
        content = path.read_bytes()
        return Stored(
            replay.ruleset,
            replay.header.agents,
            replay.header.start.model_dump(mode="json"),
            game,
            replay.result,
            replay.header.seed,
            self._secret(match),
            len(content) - content.index(b"\n") - 1,
            path.stat().st_mtime,
        )

    def remove_oldest(self, kept: int) -> int:
        """Remove the oldest records of matches that are not played, but for so many; count them."""
        playing = set(self.playing())
        found = sorted(
            (self.played(path.stem), path)
            for path in self._folder.glob(f"*{_RECORD}")
            if _is_id(path.stem) and path.stem not in playing
        )
        old = found[: max(0, len(found) - kept)]
        for _, path in old:
            path.unlink(missing_ok=True)
        return len(old)

    def _record(self, match: str) -> Path:
        return self._folder / f"{match}{_RECORD}"

    def _secret(self, match: str) -> Secret | None:
        path = self._folder / f"{match}{_SECRET}"
        try:
            return from_json(Secret, path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise RecordError(f"{path}: cannot be read") from error

    def _flush_folder(self) -> None:
        """Have names on disk too, where folders can be flushed."""
        with contextlib.suppress(OSError):
            folder = os.open(self._folder, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


def _is_id(text: str) -> bool:
    return re.match(ID_PATTERN, text) is not None


def _flush(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())


def _drop_torn_line(path: Path) -> None:
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole != len(content):
        os.truncate(path, whole)


def _replayed(path: Path) -> tuple[MatchReplay, Record]:
    """Replay a record; return ``GAME`` at its end too. A result that is missing is added."""
    replay = MatchReplay(path)
    game, line = replay.start.copy(), 1
    try:
        for turn in replay:
            game, line = turn.game, turn.line
    except RecordError:
        lines = path.read_bytes().count(b"\n")
        if game["phase"] != OVER or line != lines:
            raise
        with path.open("ab") as file:
            file.write(f"{json.dumps({'result': result_of(game)})}\n".encode())
            _flush(file)
        return _replayed(path)
    return replay, game

"""Files that are there whole or not at all, whatever happens while they are written."""

import contextlib
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a path beside ``path`` to write a new file to; it becomes ``path`` at the end.

    If anything is raised inside, what was at ``path`` stays and the new file is removed.
    """
    # Not by tempfile, whose files nobody else may read.
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        yield draft
        draft.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise


def write_atomically(path: Path, text: str) -> None:
    """Write a text file so that it is there whole or not at all."""
    with replacing(path) as draft, draft.open("x", encoding="utf-8", newline="\n") as file:
        file.write(text)


def check_writable(path: Path) -> None:
    """Check that a file could be written, before the work for it is done.

    Raises:
        OSError: it could not; the message says why.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{path}: is a folder")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: there is no folder {path.parent}")
    try:  # beside it and under a name as long, as it will be written
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}."):
            pass
    except OSError as error:
        raise OSError(f"{path}: cannot be written: {error.strerror}") from error

"""Pages with generated parts: checked before the work for one, brought up to date after it."""

from pathlib import Path

from retinue.envs.document import with_part
from retinue.envs.game.files import check_writable, write_atomically
from retinue.envs.game.schema import SchemaError


def _with_part(page: Path, part: str, text: str) -> str:
    try:
        return with_part(page.read_text(encoding="utf-8"), part, text)
    except OSError as error:
        raise SchemaError(f"{page}: {error.strerror}") from error
    except ValueError as error:
        raise SchemaError(f"{page}: {error}") from error


def check_part(page: Path, part: str) -> None:
    """Check that a page has a part of that title and can be written.

    Raises:
        OSError: it cannot be written.
        SchemaError: it cannot be read, or has no such part.
    """
    _with_part(page, part, "")
    check_writable(page)


def renew_part(page: Path, part: str, text: str) -> None:
    """Replace a part of a page.

    Raises:
        OSError: the page cannot be written.
        SchemaError: it cannot be read, or has no such part.
    """
    write_atomically(page, _with_part(page, part, text))

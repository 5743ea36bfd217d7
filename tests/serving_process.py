"""A service in a process of its own, as its operator starts it."""

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import httpx

LIMIT: Final = 120
"""Seconds for whatever it does, on the slowest machine."""


class Running:
    """A service in a process of its own."""

    def __init__(self, folder: Path, *words: str) -> None:
        command = [sys.executable, "-m", "retinue.cli", "serve", "--port", "0", *words]
        self.process = subprocess.Popen(
            [*command, "--matches", str(folder / "matches")],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        found = re.fullmatch(r"retinue: (http://127\.0\.0\.1:\d+) serves; Ctrl-C ends it\n", said)
        assert found, (said, self.process.stderr.read() if self.process.stderr else "")
        self.client = httpx.Client(base_url=found[1], timeout=LIMIT)

    def end(self, number: int) -> tuple[int, str, str]:
        """Send a signal; return the exit code and what else was said."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=LIMIT)
        return self.process.returncode, out, err


@contextlib.contextmanager
def running(folder: Path, *words: str) -> Iterator[Running]:
    service = Running(folder, *words)
    try:
        yield service
    finally:
        service.client.close()
        service.process.kill()
        service.process.communicate()

"""A progress bar with rate and estimate, for whatever takes longer than a moment."""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Final

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

MOMENT: Final = 1.0
"""Seconds after which the bar appears."""


class _Rate(ProgressColumn):
    """How many are done each second."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f}/s" if task.speed else "", style="progress.data.speed")


@contextlib.contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Give a function to be told (done, of how many); draw a bar on standard error, if it is one.

    Args:
        what: is counted, in the plural.
    """
    console = Console(stderr=True)
    remaining = TimeRemainingColumn(elapsed_when_finished=True)
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), _Rate(), remaining)
    bar = Progress(*columns, console=console, transient=True)
    begun = time.monotonic()
    tasks: list[TaskID] = []

    def update(done: int, total: int) -> None:
        if not tasks:
            if not console.is_terminal or time.monotonic() - begun < MOMENT:
                return
            bar.start()
            tasks.append(bar.add_task(what, total=total))
        bar.update(tasks[0], completed=done)

    try:
        yield update
    finally:
        if tasks:
            bar.stop()

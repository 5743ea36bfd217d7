"""What happened within a turn, in order: for records and statistics, off in batch play."""

from typing import Any, Final

import numpy as np

from retinue.envs.game.jit import inline_jit

EXIT: Final = 0
CHECKPOINT: Final = 1
MIDPOINT: Final = 2
CAPTURE: Final = 3
BLOCKED: Final = 4
HOME: Final = 5
FINISH: Final = 6
EVENT_NAMES: Final = ("exit", "checkpoint", "midpoint", "capture", "blocked", "home", "finish")

NO_PIECE: Final = -1
KIND, PIECE, DETAIL, POINTS = range(4)
"""Columns of a row. The detail is a checkpoint's record bit, the seat whose piece was captured, or
the steps that a blockade trimmed; the piece of a capture is the captured one."""
CAPACITY: Final = 512
"""More rows than the longest turn under the largest legal store can fill."""

LOG = np.dtype(
    (
        np.record,
        np.dtype(
            [("on", "i4"), ("count", "i4"), ("rows", "i4", (CAPACITY, 4))],
            align=True,
        ),
    )
)

SILENT = np.zeros(1, LOG)[0]
"""The log for play that nobody reads: it takes no events, so all games can share it."""


def new_log() -> Any:
    """Return an empty ``LOG`` record that takes events."""
    log = np.zeros(1, LOG)[0]
    log["on"] = 1
    return log


@inline_jit
def emit(log: Any, kind: int, piece: int, detail: int, points: int) -> None:
    """Add an event to a log that is switched on."""
    if log.on:
        row = log.count
        log.rows[row, KIND] = kind
        log.rows[row, PIECE] = piece
        log.rows[row, DETAIL] = detail
        log.rows[row, POINTS] = points
        log.count = row + 1


def events_to_json(log: Any) -> list[dict[str, Any]]:
    """Return the events of a log as the match record writes them."""
    return [_event_to_json(*row) for row in log["rows"][: log["count"]].tolist()]


def _event_to_json(kind: int, piece: int, detail: int, points: int) -> dict[str, Any]:
    event: dict[str, Any] = {"type": EVENT_NAMES[kind]}
    if piece != NO_PIECE:
        event["piece"] = piece
    if kind == CHECKPOINT:
        event["checkpoint"] = detail
    elif kind == CAPTURE:
        event["seat"] = detail
    elif kind == BLOCKED:
        event["trimmed"] = detail
    if points:
        event["points"] = points
    return event

"""What a learner sees: the layout of the observation and its compiled encoder.

An observation is seen from the acting seat: seats come as me, next, across, previous, and places on
the loop are angles counted from the acting seat's own entering tile. The same situation therefore
looks the same from every seat. Everything is ``float32`` in [-1, 1].

The flat vector is the concatenation of the named sections in their order here, each in C order.
"""

import functools
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from gymnasium import spaces

from retinue.envs.game import board
from retinue.envs.game.board import (
    CHECKPOINTS,
    GUARDS,
    HOME_PATH,
    LOOP,
    MIDPOINT,
    PIECES,
    QUARTER,
    SEATS,
    TURN_OFF,
    YARD,
)
from retinue.envs.game.jit import inner_jit, jit
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.state import Record

MAX_SIZE: Final = 320
"""The most numbers that a flat observation without candidates may have under any ruleset."""
OBSERVATION_VERSION: Final = 1
"""Raised whenever an observation's meaning changes; a trained policy names the one it needs."""

PROGRESSION_SCALE: Final = np.float32(200.0)
SCORE_SCALE: Final = np.float32(1000.0)
"""Points at which a squashed score, ``x / (|x| + scale)``, is one half."""

PLACE_FEATURES: Final = (
    "in the Yard",
    "share of the Home path done, 1 in Home",
    "cosine of the place on the loop, 0 elsewhere",
    "sine of the place on the loop, 0 elsewhere",
    "steps to Home going forward, as a share of the longest way",
    "steps to Home going backward, as a share of the longest way",
    "out of reach of captures",
)


@dataclass(frozen=True)
class Section:
    """One named part of the observation."""

    name: str
    shape: tuple[int, ...]
    low: float
    high: float
    meaning: str
    start: int

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return int(np.prod(self.shape))

    @property
    def slice(self) -> slice:
        """Where it lies in the flat vector."""
        return slice(self.start, self.start + self.size)


_STATE_SECTIONS: Final = (
    ("board", (SEATS, PIECES, len(PLACE_FEATURES)), -1.0, "where each seat's pieces stand"),
    ("midpoint", (SEATS, PIECES), 0.0, "1 while the piece's midpoint progress is active"),
    ("checkpoints", (PIECES, CHECKPOINTS), 0.0, "own pieces' record bits (rules 4.1)"),
    ("progression", (SEATS, PIECES), 0.0, "each piece's progression score p as p / (p + 200)"),
    ("roll_store", (SEATS, 6), 0.0, "stored rolls of each value as a share of the capacity"),
    ("exit_credits", (SEATS,), 0.0, "credits as a share of the most that can be held"),
    ("scores", (SEATS, 2), -1.0, "total and combat score x as x / (abs(x) + 1000)"),
    ("legal_guards", (GUARDS,), 0.0, "1 for each Guard that may be given rolls"),
    ("clock", (1,), 0.0, "share of the clock that is left"),
)

PLAN_DIRECTION: Final = 0
PLAN_NOBLE: Final = 2
PLAN_TOTALS: Final = 4
PLAN_LEFT: Final = 8
PLAN_SIZE: Final = 14
"""Offsets in the section ``plan``: direction chosen (forward, backward; none before it is chosen),
Noble steps (before, after) / 6, each Guard's total squashed as t / (t + 12), and the rolls of each
value that are not given yet as a share of the capacity."""

TOTAL_SCALE: Final = np.float32(12.0)


class Layout:
    """The observation's sections for a ruleset and an action encoding.

    Args:
        ruleset: the rules.
        extra: the encoding's own section, as (name, shape, least value, meaning).
    """

    def __init__(self, ruleset: Ruleset, extra: tuple[str, tuple[int, ...], float, str]) -> None:
        sections = []
        start = 0
        for each in (*_STATE_SECTIONS, extra):
            section = Section(each[0], each[1], each[2], 1.0, each[3], start)
            sections.append(section)
            start += section.size
        self.ruleset = ruleset
        self.sections = tuple(sections)
        self.size = start

    def __getitem__(self, name: str) -> Section:
        return {section.name: section for section in self.sections}[name]

    def flat_space(self) -> spaces.Box:
        """Return the Gymnasium space of flat observations, float32 ``(size,)``."""
        sizes = [each.size for each in self.sections]
        low = np.repeat(np.array([each.low for each in self.sections], np.float32), sizes)
        high = np.repeat(np.array([each.high for each in self.sections], np.float32), sizes)
        return spaces.Box(low, high, dtype=np.float32)

    def split(self, flat: Any) -> dict[str, np.ndarray[Any, np.dtype[np.float32]]]:
        """Return the named parts ``(..., *section.shape)`` of flat observations ``(..., size)``."""
        lead = flat.shape[:-1]
        return {
            each.name: flat[..., each.slice].reshape(*lead, *each.shape) for each in self.sections
        }


# Offsets of the state sections, the same for every ruleset; compiled code knows them as constants.
_STARTS: Final = dict(
    zip(
        (section[0] for section in _STATE_SECTIONS),
        np.cumsum([0, *(int(np.prod(section[1])) for section in _STATE_SECTIONS)]).tolist(),
        strict=False,
    )
)
_FEATURES: Final = len(PLACE_FEATURES)
_MIDPOINT_AT: Final = _STARTS["midpoint"]
_CHECKPOINTS_AT: Final = _STARTS["checkpoints"]
_PROGRESSION_AT: Final = _STARTS["progression"]
_STORE_AT: Final = _STARTS["roll_store"]
_CREDITS_AT: Final = _STARTS["exit_credits"]
_SCORES_AT: Final = _STARTS["scores"]
_LEGAL_AT: Final = _STARTS["legal_guards"]
_CLOCK_AT: Final = _STARTS["clock"]
EXTRA_AT: Final = _CLOCK_AT + 1
"""Where the encoding's own section begins in the flat vector."""


@jit
def steps_home(position: int, midpoint: bool, direction: int, home: int) -> int:
    """Return how many steps a piece needs to Home when it keeps one direction (rules 2)."""
    if position >= HOME_PATH:
        return home - position
    to_home = home - HOME_PATH + 1
    from_yard = 1 if position == YARD else 0
    offset = max(position, 0)
    if direction == board.FORWARD:
        ahead = (TURN_OFF - offset) % LOOP
        passes = midpoint or offset <= MIDPOINT or offset > TURN_OFF
        return from_yard + ahead + (0 if passes else LOOP) + to_home
    passes = midpoint or offset >= MIDPOINT
    return from_yard + offset + (0 if passes else LOOP) + to_home


def longest_way(ruleset: Ruleset) -> int:
    """Return how many steps a piece on the loop needs to Home at most."""
    ways = (
        steps_home(offset, False, direction, ruleset.home)
        for offset in range(LOOP)
        for direction in (board.FORWARD, board.BACKWARD)
    )
    return max(ways)


MAX_PLACES: Final = LOOP + 22
"""Position codes under the longest Home path that a ruleset may have, the Yard included."""


@functools.cache
def place_table(ruleset: Ruleset) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return the features of every place, float32 ``(4, 2, MAX_PLACES, 7)``.

    Indexed by the seat as seen (me, next, across, previous), the midpoint flag, the position code
    plus one, and the feature of ``PLACE_FEATURES``.
    """
    home = ruleset.home
    table = np.zeros((SEATS, 2, MAX_PLACES, _FEATURES), np.float32)
    longest = longest_way(ruleset)
    for seen, midpoint, position in np.ndindex(SEATS, 2, home + 2):
        code = position - 1
        row = table[seen, midpoint, position]
        row[0] = code == YARD
        row[1] = max(0, code - HOME_PATH + 1) / (home - HOME_PATH + 1)
        if 0 <= code < LOOP:
            angle = 2 * np.pi * ((code + QUARTER * seen) % LOOP) / LOOP
            row[2], row[3] = np.cos(angle), np.sin(angle)
        for direction in (board.FORWARD, board.BACKWARD):
            row[4 + direction] = steps_home(code, bool(midpoint), direction, home) / longest
        on_castle = 0 <= code < LOOP and board.IS_CASTLE[code] and ruleset.castles_protect
        row[6] = code <= 0 or code >= HOME_PATH or on_castle
    table.setflags(write=False)
    return table


@inner_jit
def encode_state(
    game: Record, rules: Record, table: Any, viewer: int, legal: int, out: Any
) -> None:
    """Write all sections but the encoding's own into the flat vector ``out``.

    Args:
        game: ``GAME``.
        rules: ``RULES``.
        table: of :func:`place_table`.
        viewer: the acting seat.
        legal: bit mask of the Guards that it may give rolls to.
        out: float32 ``(size,)``.
    """
    per_roll = np.float32(1.0) / np.float32(rules.store_capacity)
    per_credit = np.float32(1.0) / np.float32(rules.max_credits)
    for seen in range(SEATS):
        seat = (int(viewer) + seen) % SEATS
        total = int(game.combat[seat]) + int(game.bonus[seat])
        for piece in range(PIECES):
            at = seen * PIECES + piece
            midpoint = int(game.midpoint[seat, piece])
            place = int(game.position[seat, piece]) + 1
            for feature in range(_FEATURES):
                out[at * _FEATURES + feature] = table[seen, midpoint, place, feature]
            out[_MIDPOINT_AT + at] = midpoint
            points = int(game.progression[seat, piece])
            total += points
            out[_PROGRESSION_AT + at] = np.float32(points) / (
                np.float32(points) + PROGRESSION_SCALE
            )
        for value in range(6):
            out[_STORE_AT + seen * 6 + value] = np.float32(game.store[seat, value]) * per_roll
        out[_CREDITS_AT + seen] = np.float32(game.credits[seat]) * per_credit
        out[_SCORES_AT + 2 * seen] = squash(total)
        out[_SCORES_AT + 2 * seen + 1] = squash(int(game.combat[seat]))
    for piece in range(PIECES):
        bits = int(game.checkpoints[viewer, piece])
        for bit in range(CHECKPOINTS):
            out[_CHECKPOINTS_AT + piece * CHECKPOINTS + bit] = (bits >> bit) & 1
    for guard in range(GUARDS):
        out[_LEGAL_AT + guard] = (legal >> guard) & 1
    out[_CLOCK_AT] = np.float32(game.clock_seconds) / np.float32(rules.clock_seconds)


@inner_jit
def squash(points: int) -> Any:
    """Return a score as a float32 in (-1, 1)."""
    return np.float32(points) / (np.float32(abs(points)) + SCORE_SCALE)

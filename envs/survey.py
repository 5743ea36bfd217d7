"""What is the same for all candidate turns of a position: threats, prey, ways.

:func:`survey` is made once for each decision; candidates then look up what concerns them.
"""

import functools
import itertools
import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from retinue.envs.facts import EXPOSED_WITHIN, NEAR, REACH
from retinue.envs.game.board import (
    BACKWARD,
    CHECKPOINT_AT,
    CHECKPOINTS,
    FORWARD,
    GUARDS,
    HOME_BIT,
    HOME_PATH,
    IS_CASTLE,
    LOOP,
    MIDPOINT,
    NO_CHECKPOINT,
    NOBLE,
    PIECES,
    SEATS,
    YARD,
    tile,
)
from retinue.envs.game.engine import has_finished, stored_rolls, total
from retinue.envs.game.jit import inline_jit, inner_jit, jit
from retinue.envs.game.movement import next_position, noble_zone
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.state import Record
from retinue.envs.observation import MAX_PLACES, steps_home

OPPONENTS: Final = SEATS - 1
FROM_YARD: Final = GUARDS
"""Row of ``danger`` for the next Guard that leaves the Yard."""

NEARNESS: Final = 0.97
"""What a point to be collected is worth one step later."""
MOST_DICE: Final = 6
"""Of an empty store, for the chances of totals: with more, near totals are all but certain."""
FADING_TURNS: Final = 6.0
"""With so many own turns left, what lies in the future counts half."""

WAYS_FIELDS: Final = (
    # By Guard or Noble, midpoint flag, direction and position code plus one: what each record bit,
    # while it is not set, adds; and what does not depend on them.
    ("open", "f4", (2, 2, 2, MAX_PLACES, CHECKPOINTS)),
    ("open_always", "f4", (2, 2, 2, MAX_PLACES)),
    ("steps", "f4", (2, MAX_PLACES)),  # the shorter way Home
    ("chance", "f4", (REACH + 1,)),  # of a total, with the dice of an empty store
)
"""Tables that depend on the rules alone, fields of what a strategy knows."""

WAYS: Final = np.dtype((np.record, np.dtype(list(WAYS_FIELDS), align=True)))

SURVEY: Final = np.dtype(
    (
        np.record,
        np.dtype(
            [
                ("seat", "i4"),
                ("fade", "f4"),  # how much the future counts
                ("moves_again", "i4", (OPPONENTS,)),  # 1: has a turn before the own next one
                ("hit", "f4", (OPPONENTS, REACH + 1)),  # chance of a total in its next turn
                # By opponent, its Guard and absolute tile: the chance that it captures there.
                ("danger", "f4", (OPPONENTS, GUARDS + 1, LOOP)),
                ("risk", "f4", (OPPONENTS, LOOP)),  # of any of its Guards
                ("worth", "f4", (OPPONENTS, 2)),  # what it gets for a Guard, for a Noble
                ("prey", "f4", (LOOP,)),  # by own Guard's absolute tile
                ("prey_points", "f4", (LOOP,)),
                ("near", "f4", (LOOP,)),  # opponents' Guards within NEAR tiles
                ("close", "u1", (LOOP,)),  # 1: one is within EXPOSED_WITHIN tiles
                ("open", "f4", (PIECES,)),  # of own pieces where they stand
                ("leading", "i4", (OPPONENTS,)),  # 1: no opponent has more points
                ("own_total", "i8"),
                ("totals", "i8", (OPPONENTS,)),
            ],
            align=True,
        ),
    )
)


# --- Tables of the rules


@jit
def _write_open(rules: Record, ways: Record, kind: int, past: int, direction: int) -> None:
    """Write what lies open on the way from every place, one direction kept (rules 2 and 4.1)."""
    for start in range(YARD, rules.home + 1):
        position = start
        midpoint = past
        nearness = 1.0
        always = 0.0
        for bit in range(CHECKPOINTS):
            ways.open[kind, past, direction, start + 1, bit] = 0.0
        while position != rules.home:
            position = next_position(position, midpoint, direction)
            nearness *= NEARNESS
            bit = NO_CHECKPOINT
            if position == rules.home:
                bit = HOME_BIT
            elif position == MIDPOINT:
                if not midpoint:
                    midpoint = 1
                    always += nearness * rules.midpoint_points[kind]
            elif position < HOME_PATH:
                bit = int(CHECKPOINT_AT[position])
            if bit != NO_CHECKPOINT:
                points = nearness * rules.checkpoint_points[bit, kind]
                if midpoint and not past:
                    always += points  # the midpoint clears the records
                else:
                    ways.open[kind, past, direction, start + 1, bit] = points
        ways.open_always[kind, past, direction, start + 1] = always


def _chances(dice: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return how likely some of so many dice add up to each total, float64 ``(REACH + 1,)``."""
    reached = np.zeros(REACH + 1)
    for rolled in itertools.combinations_with_replacement(range(1, 7), dice):
        sums = {0}
        for value in rolled:
            sums |= {each + value for each in sums}
        orders = math.factorial(dice)
        for value in range(1, 7):
            orders //= math.factorial(rolled.count(value))
        for each in sums:
            if each <= REACH:
                reached[each] += orders
    chances: np.ndarray[Any, np.dtype[np.float64]] = reached / 6**dice
    return chances


@functools.lru_cache(16)
def _ways_of(ruleset: Ruleset) -> Any:
    """Return the tables of a ruleset, a ``WAYS`` array ``(1,)``."""
    ways = np.zeros(1, WAYS)
    rules = ruleset.packed
    for kind, past, direction in np.ndindex(2, 2, 2):
        _write_open(rules, ways[0], kind, past, direction)
    for past, place in np.ndindex(2, ruleset.home + 2):
        ways["steps"][0, past, place] = min(
            steps_home(place - 1, bool(past), direction, ruleset.home)
            for direction in (FORWARD, BACKWARD)
        )
    ways["chance"] = _chances(min(int(rules["dice"][0]), MOST_DICE))
    return ways


def fill_ways(memory: np.ndarray[Any, np.dtype[Any]], ruleset: Ruleset) -> None:
    """Write the tables of a ruleset into the fields of ``WAYS_FIELDS`` of an array ``(1,)``."""
    ways = _ways_of(ruleset)
    for name, *_ in WAYS_FIELDS:
        memory[name] = ways[name]


# --- Pieces


@inner_jit
def open_points(ways: Record, kind: int, past: int, position: int, records: int) -> Any:
    """Return the points that lie open before a piece on the better of its two ways, float32.

    Four sums are kept, without branches, which the processor adds up side by side; there are a
    multiple of four checkpoints.
    """
    best = np.float32(0.0)
    for direction in range(2):
        ahead = ways.open[kind, past, direction, position + 1]
        first, second, third, fourth = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
        for bit in range(0, CHECKPOINTS, 4):
            first += ahead[bit] * np.float32(1 - ((records >> bit) & 1))
            second += ahead[bit + 1] * np.float32(1 - ((records >> (bit + 1)) & 1))
            third += ahead[bit + 2] * np.float32(1 - ((records >> (bit + 2)) & 1))
            fourth += ahead[bit + 3] * np.float32(1 - ((records >> (bit + 3)) & 1))
        always = ways.open_always[kind, past, direction, position + 1]
        best = max(best, always + ((first + second) + (third + fourth)))
    return best


@inline_jit
def is_protected(rules: Record, position: int) -> bool:
    """Tell whether a piece is out of reach where it stands, stacks apart (rules 3.6.2)."""
    if position <= 0 or position >= HOME_PATH:
        return True
    return bool(IS_CASTLE[position]) and rules.castles_protect != 0


# --- A position


@inline_jit
def _power(base: float, exponent: int) -> float:
    result = 1.0
    for _ in range(exponent):
        result *= base
    return result


_MOST_PIPS: Final = 12
"""Of two dice."""


def _counts(pips: Mapping[int, int]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return in how many ways a throw fills gaps, by a bit mask of the gaps that there are.

    Args:
        pips: in how many ways the throw shows each number. The mask's lowest bit stands for a gap
            of as many as the highest of them, the next bit for one less.
    """
    high = max(pips)
    masks = range(1 << len(pips))
    ways = [sum(pips[high - bit] for bit in range(len(pips)) if mask >> bit & 1) for mask in masks]
    return np.array(ways)


_SINGLE: Final = _counts(dict.fromkeys(range(1, 7), 1))
_DOUBLE: Final = _counts({pips: 6 - abs(7 - pips) for pips in range(2, _MOST_PIPS + 1)})


@inner_jit
def _write_hits(game: Record, rules: Record, seat: int, hit: Any) -> None:
    """Write how likely a seat can make each total: by stored rolls, else with one or two dice."""
    sums = np.uint64(1)
    one = np.uint64(1)
    for value in range(6):
        for _ in range(game.store[seat, value]):
            sums |= sums << np.uint64(value + 1)
    dice = int(rules.dice[stored_rolls(game, seat)])
    short = sums << np.uint64(_MOST_PIPS)  # bit n: a total of n - _MOST_PIPS can be made
    for steps in range(REACH + 1):
        if (sums >> np.uint64(steps)) & one:
            hit[steps] = 1.0
            continue
        single = _SINGLE[int(short >> np.uint64(steps + _MOST_PIPS - 6)) & (len(_SINGLE) - 1)]
        double = _DOUBLE[int(short >> np.uint64(steps)) & (len(_DOUBLE) - 1)]
        missed = _power(1.0 - single / 6.0, dice)
        missed *= _power(1.0 - double / 36.0, dice * (dice - 1) // 2)
        hit[steps] = 1.0 - missed


@inner_jit
def _write_danger(
    game: Record, seat: int, viewer: int, position: int, past: int, hit: Any, danger: Any
) -> None:
    """Write how likely a Guard of ``seat`` stops on each tile; other seats' stacks stop it."""
    for at in range(LOOP):
        danger[at] = 0.0
    if position >= HOME_PATH:
        return
    # Stacks of two and more; the viewer's own may be gone by then.
    ours = (15 << (4 * seat)) | (15 << (4 * viewer))
    for direction in range(2):
        place = position
        flag = past
        for steps in range(1, REACH + 1):
            place = next_position(place, flag, direction)
            if place >= HOME_PATH:
                break
            if place == MIDPOINT:
                flag = 1
            at = tile(seat, place)
            if int(game.stacks[at]) & ~ours & 0xEEEE:
                break
            danger[at] = 1.0 - (1.0 - danger[at]) * (1.0 - hit[steps])


@inner_jit
def _survey_opponent(game: Record, rules: Record, turned: int, out: Record) -> None:
    """Write what one opponent threatens and what it gets for it."""
    viewer = int(game.seat)
    seat = (viewer + turned) % SEATS
    other = turned - 1
    zone = noble_zone(game, seat)
    past = game.midpoint[seat, NOBLE]
    for kind in range(2):
        out.worth[other, kind] = rules.combat[zone, past, kind]
    hit = out.hit[other]
    if out.moves_again[other]:
        _write_hits(game, rules, seat, hit)
    else:
        for steps in range(REACH + 1):
            hit[steps] = 0.0
    waiting = False
    for guard in range(GUARDS):
        position = int(game.position[seat, guard])
        if position == YARD:
            waiting = True
            position = HOME_PATH  # no danger by itself
        flag = int(game.midpoint[seat, guard])
        _write_danger(game, seat, viewer, position, flag, hit, out.danger[other, guard])
    leaves = waiting and game.credits[seat] > 0
    start = YARD if leaves else HOME_PATH
    _write_danger(game, seat, viewer, start, 0, hit, out.danger[other, FROM_YARD])
    # Tile by tile, which the processor does for several at once.
    missed = out.risk[other]
    one = np.float32(1.0)
    for at in range(LOOP):
        missed[at] = one
    for guard in range(GUARDS + 1):
        danger = out.danger[other, guard]
        for at in range(LOOP):
            missed[at] *= one - danger[at]
    for at in range(LOOP):
        out.risk[other, at] = one - missed[at]


@inner_jit
def add_prey(ways: Record, seat: int, position: int, kind: int, points: float, out: Record) -> None:
    """Add one piece that may be captured to the tables ``prey`` and ``prey_points``."""
    at = tile(seat, position)
    for steps in range(1, REACH + 1):
        chance = ways.chance[steps]
        for place in ((at + steps) % LOOP, (at - steps) % LOOP):
            out.prey[place] += chance * (1.0 + 0.5 * kind)
            out.prey_points[place] += chance * points


@inner_jit
def _survey_pieces(game: Record, rules: Record, ways: Record, out: Record) -> None:
    """Write where opponents' Guards are near, and what there is to be captured."""
    viewer = int(game.seat)
    for at in range(LOOP):
        out.prey[at] = 0.0
        out.prey_points[at] = 0.0
        out.near[at] = 0.0
        out.close[at] = 0
    for turned in range(1, SEATS):
        seat = (viewer + turned) % SEATS
        for piece in range(PIECES):
            position = int(game.position[seat, piece])
            if position < 0 or position >= HOME_PATH:
                continue
            if not is_protected(rules, position):
                kind = 1 if piece == NOBLE else 0
                add_prey(ways, seat, position, kind, float(game.progression[seat, piece]), out)
            if piece != NOBLE:
                at = tile(seat, position)
                for away in range(-EXPOSED_WITHIN, EXPOSED_WITHIN + 1):
                    place = (at + away) % LOOP
                    out.close[place] = 1
                    if -NEAR <= away <= NEAR:
                        out.near[place] += 1.0


@inner_jit
def survey(game: Record, rules: Record, ways: Record, out: Record) -> None:
    """Write a ``SURVEY`` of a position in which a seat is to choose its turn."""
    viewer = int(game.seat)
    out.seat = viewer
    out.own_total = total(game, viewer)
    seconds = max(0, int(game.clock_seconds) - int(rules.turn_seconds))
    left = (seconds + int(rules.turn_seconds) - 1) // int(rules.turn_seconds)
    waiting = 1
    best = 0
    for turned in range(1, SEATS):
        seat = (viewer + turned) % SEATS
        out.moves_again[turned - 1] = 0
        if not has_finished(game, rules, seat):
            out.moves_again[turned - 1] = 1 if left >= waiting else 0
            waiting += 1
        points = total(game, seat)
        best = points if turned == 1 else max(best, points)
    own_turns = left / waiting
    out.fade = own_turns / (own_turns + FADING_TURNS)
    for turned in range(1, SEATS):
        points = total(game, (viewer + turned) % SEATS)
        out.totals[turned - 1] = points
        out.leading[turned - 1] = 1 if points == best else 0
        _survey_opponent(game, rules, turned, out)
    _survey_pieces(game, rules, ways, out)
    for piece in range(PIECES):
        kind = 1 if piece == NOBLE else 0
        past = int(game.midpoint[viewer, piece])
        position = int(game.position[viewer, piece])
        records = int(game.checkpoints[viewer, piece])
        out.open[piece] = open_points(ways, kind, past, position, records)

"""Which Guard gets which rolls: a beam over the Guards on the estimates of single moves.

It starts from the allocation that gives nothing yet and from joint moves of two Guards: together
from one tile, or to the same tile from two.
"""

from typing import Any, Final

import numpy as np

from retinue.envs import facts
from retinue.envs.estimates import MAX_TOTAL, TOGETHER, per_point
from retinue.envs.game.board import GUARDS, HOME_PATH
from retinue.envs.game.jit import inline_jit, inner_jit
from retinue.envs.game.state import Record

MAX_SUBSETS: Final = 1024
"""Ways to give one Guard some of the stored rolls that are looked at."""
OPTIONS: Final = 12
"""The best of them that the beam tries for each Guard."""
SAME_TOTAL: Final = 2
"""How many of those may add up to the same."""
WIDTH: Final = 32
"""Allocations that the beam keeps after each Guard."""
PAIRS: Final = 16
"""With how many the beam starts."""
WAYS_TO_MAKE: Final = 4
"""Subsets of the same total among which those of a joint move are looked for."""
PLACES: Final = HOME_PATH + 24

COUNT_BITS: Final = 8
"""Rolls of each value are packed into an integer, so many bits for each value."""

ALLOCATIONS: Final = np.dtype(
    (
        np.record,
        np.dtype(
            [
                ("store", "i8"),  # packed counts
                ("held", "i4"),  # rolls in it
                ("dice_per_roll", "f4"),  # more to roll next turn for each roll spent, on average
                ("subsets", "i4"),
                ("subset", "i8", (MAX_SUBSETS,)),  # packed counts
                ("total", "i2", (MAX_SUBSETS,)),
                ("spending", "f4", (MAX_SUBSETS,)),  # value of what is no longer kept
                ("made", "i2", (MAX_TOTAL + 1, WAYS_TO_MAKE)),  # subsets that make a total
                ("ways_made", "i4", (MAX_TOTAL + 1,)),
                ("per_capture", "f4", (2,)),  # value of capturing a Guard, a Noble, at best
                ("option", "i2", (GUARDS, OPTIONS)),  # subsets
                ("option_value", "f4", (GUARDS, OPTIONS)),
                ("options", "i4", (GUARDS,)),
                ("leads_to", "i2", (GUARDS, PLACES)),  # the least total that ends on a place
                # Two beams, which take turns; each in descending order of value.
                ("size", "i4", (2,)),
                ("value", "f4", (2, WIDTH)),  # with what Guards still to be served get at best
                ("rest", "f4", (2, WIDTH)),  # value without those and without captures
                ("guards_taken", "i4", (2, WIDTH)),
                ("nobles_taken", "i4", (2, WIDTH)),
                ("served", "i4", (2, WIDTH)),  # bit mask of Guards
                ("left", "i8", (2, WIDTH)),  # packed counts
                ("given", "i8", (2, WIDTH, GUARDS)),  # packed counts
            ],
            align=True,
        ),
    )
)


@inline_jit
def count_of(packed: int, value: int) -> int:
    """Return how many rolls of a value (0 for ones) are in packed counts."""
    return (packed >> (COUNT_BITS * value)) & ((1 << COUNT_BITS) - 1)


@inline_jit
def _fits(subset: int, left: int) -> bool:
    """Tell whether packed counts are all within others."""
    for value in range(6):
        if count_of(subset, value) > count_of(left, value):
            return False
    return True


# --- Subsets of the store


@inner_jit
def note_subsets(game: Record, rules: Record, weights: Any, fade: float, out: Record) -> None:
    """List the ways to take some rolls from the store.

    With very many rolls a single Guard's part is limited, those of which there are most first.
    """
    most = np.zeros(6, np.int64)
    ways = 1
    held = 0
    out.store = 0
    for value in range(6):
        most[value] = game.store[game.seat, value]
        held += most[value]
        ways *= most[value] + 1
        out.store |= most[value] << (COUNT_BITS * value)
    while ways > MAX_SUBSETS:
        largest = 0
        for value in range(6):
            if most[value] >= most[largest]:
                largest = value
        most[largest] -= 1
        ways = ways // (most[largest] + 2) * (most[largest] + 1)
    # While allocations are made, the dice that rolls spent bring back count evenly for each.
    out.held = held
    out.dice_per_roll = float(rules.dice[0] - rules.dice[held]) / max(1, held)
    per_roll = fade * (weights[facts.DICE] * out.dice_per_roll - weights[facts.KEPT])
    out.subset[0] = 0
    out.total[0] = 0
    out.spending[0] = 0.0
    count = 1
    for value in range(6):
        size = count
        change = per_roll - fade * weights[facts.KEPT_PIPS] * (value + 1)
        for taken in range(1, most[value] + 1):
            for index in range(size):
                out.subset[count] = out.subset[index] + (taken << (COUNT_BITS * value))
                out.total[count] = out.total[index] + taken * (value + 1)
                out.spending[count] = out.spending[index] + taken * change
                count += 1
    out.subsets = count
    _note_ways(out)


@inner_jit
def dice_left_out(rules: Record, beam: int, row: int, out: Record) -> float:
    """Return how many more dice an allocation leads to than were counted for its rolls."""
    kept = 0
    for value in range(6):
        kept += count_of(out.left[beam, row], value)
    counted = out.dice_per_roll * (out.held - kept)
    return float(rules.dice[kept] - rules.dice[out.held]) - counted


@inner_jit
def _note_ways(out: Record) -> None:
    """Note for each total the subsets that make it at the least cost."""
    for total in range(MAX_TOTAL + 1):
        out.ways_made[total] = 0
    for subset in range(out.subsets):
        made = out.made[out.total[subset]]
        at = out.ways_made[out.total[subset]]
        if at == WAYS_TO_MAKE:
            at -= 1
            if out.spending[subset] <= out.spending[made[at]]:
                continue
        else:
            out.ways_made[out.total[subset]] = at + 1
        while at > 0 and out.spending[made[at - 1]] < out.spending[subset]:
            made[at] = made[at - 1]
            at -= 1
        made[at] = subset


# --- One Guard's options


@inline_jit
def _captures_value(
    direction: int, mover: int, total: int, estimates: Record, out: Record
) -> float:
    value = estimates.guards_taken[direction, mover, total] * out.per_capture[0]
    value += estimates.nobles_taken[direction, mover, total] * out.per_capture[1]
    return value


@inner_jit
def _choose_options(guard: int, direction: int, estimates: Record, out: Record) -> None:
    """Find the best subsets for one Guard, few of the same total; nothing is always among them."""
    options = out.option[guard]
    values = out.option_value[guard]
    options[0] = 0
    values[0] = 0.0
    count = 1
    for subset in range(1, out.subsets):
        total = out.total[subset]
        value = estimates.gain[direction, guard, total] + out.spending[subset]
        value += _captures_value(direction, guard, total, estimates, out)
        if count == OPTIONS and value <= values[count - 1]:
            continue
        same = 0
        at = count
        for index in range(1, count):
            if out.total[options[index]] == total:
                same += 1
                at = index
        if same >= SAME_TOTAL:
            if value <= values[at]:
                continue
        elif count == OPTIONS:
            at = count - 1
        else:
            at = count
            count += 1
        while at > 1 and values[at - 1] < value:
            options[at] = options[at - 1]
            values[at] = values[at - 1]
            at -= 1
        options[at] = subset
        values[at] = value
    out.options[guard] = count


@inline_jit
def _best_option(guard: int, out: Record) -> float:
    return max(0.0, out.option_value[guard, 1]) if out.options[guard] > 1 else 0.0


# --- The beam


@inline_jit
def _copy(out: Record, source: int, row: int, target: int, at: int) -> None:
    out.left[target, at] = out.left[source, row]
    out.value[target, at] = out.value[source, row]
    out.rest[target, at] = out.rest[source, row]
    out.served[target, at] = out.served[source, row]
    out.guards_taken[target, at] = out.guards_taken[source, row]
    out.nobles_taken[target, at] = out.nobles_taken[source, row]
    for guard in range(GUARDS):
        out.given[target, at, guard] = out.given[source, row, guard]


@inner_jit
def _insert(out: Record, source: int, row: int, target: int, value: float, most: int) -> int:
    """Copy a row of one beam into the other, where its new value puts it.

    Returns:
        its place, or -1 if ``most`` better ones are there.
    """
    size = out.size[target]
    if size == most:
        if value <= out.value[target, size - 1]:
            return -1
        at = size - 1
    else:
        at = size
        out.size[target] = size + 1
    while at > 0 and out.value[target, at - 1] < value:
        _copy(out, target, at - 1, target, at)
        at -= 1
    _copy(out, source, row, target, at)
    out.value[target, at] = value
    return at


@inner_jit
def _give(
    out: Record,
    beam: int,
    row: int,
    guard: int,
    subset: int,
    direction: int,
    mover: int,
    estimates: Record,
) -> None:
    """Settle what one Guard gets in an allocation."""
    total = out.total[subset]
    out.served[beam, row] |= 1 << guard
    out.left[beam, row] -= out.subset[subset]
    out.given[beam, row, guard] = out.subset[subset]
    out.rest[beam, row] += estimates.gain[direction, mover, total] + out.spending[subset]
    out.guards_taken[beam, row] += estimates.guards_taken[direction, mover, total]
    out.nobles_taken[beam, row] += estimates.nobles_taken[direction, mover, total]


@inner_jit
def _start_pair(
    out: Record,
    movers: Any,
    totals: Any,
    bonus: float,
    direction: int,
    estimates: Record,
) -> None:
    """Add to the first beam the allocation in which two Guards make a joint move.

    Args:
        out: ``ALLOCATIONS``; the row to start from is the first one of the second beam.
        movers: of ``ESTIMATES``, two.
        totals: theirs.
        bonus: what they gain beside their own gains.
        direction: of the turn.
        estimates: ``ESTIMATES``.
    """
    first, second = movers[0] % TOGETHER, movers[1] % TOGETHER
    captures = _captures_value(direction, movers[0], totals[0], estimates, out)
    value = (
        out.value[1, 0] + bonus + captures - _best_option(first, out) - _best_option(second, out)
    )
    value += estimates.gain[direction, movers[0], totals[0]]
    value += estimates.gain[direction, movers[1], totals[1]]
    for one in range(out.ways_made[totals[0]]):
        for other in range(out.ways_made[totals[1]]):
            subset = out.made[totals[0], one]
            another = out.made[totals[1], other]
            if not _fits(out.subset[subset] + out.subset[another], out.store):
                continue
            spending = out.spending[subset] + out.spending[another]
            at = _insert(out, 1, 0, 0, value + spending, PAIRS)
            if at >= 0:
                _give(out, 0, at, first, subset, direction, movers[0], estimates)
                # What stands there is captured once.
                guards, nobles = out.guards_taken[0, at], out.nobles_taken[0, at]
                _give(out, 0, at, second, another, direction, movers[1], estimates)
                out.guards_taken[0, at], out.nobles_taken[0, at] = guards, nobles
                out.rest[0, at] += bonus
            return


@inner_jit
def _start_pairs(
    game: Record, legal: int, direction: int, largest: int, estimates: Record, out: Record
) -> None:
    """Start the first beam with joint moves of two Guards."""
    seat = game.seat
    for guard in range(GUARDS):
        for place in range(PLACES):
            out.leads_to[guard, place] = 0
        for total in range(largest, 0, -1):
            if estimates.possible[total] and (legal >> guard) & 1:
                out.leads_to[guard, estimates.end[direction, guard, total]] = total
    for first in range(GUARDS):
        for second in range(first + 1, GUARDS):
            if not ((legal >> first) & 1 and (legal >> second) & 1):
                continue
            place = game.position[seat, first]
            if place >= 0 and place == game.position[seat, second]:
                movers = (first + TOGETHER, second + TOGETHER)
                for total in range(1, largest // 2 + 1):
                    if estimates.possible[total]:
                        _start_pair(out, movers, (total, total), 0.0, direction, estimates)
                continue
            for total in range(1, largest):
                end = estimates.end[direction, first, total]
                if not estimates.possible[total] or end < 0 or end >= HOME_PATH:
                    continue
                other = int(out.leads_to[second, end])
                bonus = estimates.company[direction, first, total]
                bonus += estimates.company[direction, second, other]
                if other > 0 and bonus > 0.0:
                    _start_pair(out, (first, second), (total, other), bonus, direction, estimates)


@inner_jit
def allocate(
    game: Record,
    legal: int,
    direction: int,
    largest: int,
    worth: Any,
    weights: Any,
    estimates: Record,
    out: Record,
) -> int:
    """Find good ways to give the stored rolls to Guards in one direction.

    Args:
        game: ``GAME``.
        legal: bit mask of the Guards that may be given rolls.
        direction: of the turn.
        largest: the largest total that the store can make.
        worth: points for a captured Guard and Noble, float32 ``(2,)``.
        weights: of the strategy.
        estimates: ``ESTIMATES`` of all Guards' moves in that direction.
        out: ``ALLOCATIONS``, subsets noted.

    Returns:
        which of the two beams holds what was found.
    """
    point = weights[facts.COMBAT] + per_point(weights)
    out.per_capture[0] = weights[facts.GUARDS_CAPTURED] + point * worth[0]
    out.per_capture[1] = weights[facts.NOBLES_CAPTURED] + point * worth[1]
    out.left[1, 0] = out.store
    out.value[1, 0] = 0.0
    out.rest[1, 0] = 0.0
    out.served[1, 0] = 0
    out.guards_taken[1, 0] = 0
    out.nobles_taken[1, 0] = 0
    for guard in range(GUARDS):
        out.given[1, 0, guard] = 0
        out.options[guard] = 0
        if (legal >> guard) & 1:
            _choose_options(guard, direction, estimates, out)
            out.value[1, 0] += _best_option(guard, out)
        else:
            out.served[1, 0] |= 1 << guard
    out.size[0] = 0
    _start_pairs(game, legal, direction, largest, estimates, out)
    _insert(out, 1, 0, 0, out.value[1, 0], WIDTH)
    source = 0
    for guard in range(GUARDS):
        if (legal >> guard) & 1:
            _serve(guard, direction, source, estimates, out)
            source = 1 - source
    return source


@inner_jit
def _serve(guard: int, direction: int, source: int, estimates: Record, out: Record) -> None:
    """Make the next beam: every allocation with every option of one Guard that is left to it."""
    target = 1 - source
    best = _best_option(guard, out)
    out.size[target] = 0
    for row in range(out.size[source]):
        value = out.value[source, row]
        if (out.served[source, row] >> guard) & 1:
            _insert(out, source, row, target, value, WIDTH)
            continue
        for option in range(out.options[guard]):
            subset = out.option[guard, option]
            if not _fits(out.subset[subset], out.left[source, row]):
                continue
            added = out.option_value[guard, option] - best
            at = _insert(out, source, row, target, value + added, WIDTH)
            if at >= 0:
                _give(out, target, at, guard, subset, direction, guard, estimates)

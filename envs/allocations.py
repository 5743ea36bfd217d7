"""Which Guard gets which rolls: a beam over the Guards on the estimates of single moves.

It starts from the allocation that gives nothing yet and from joint moves of two Guards: together
from one tile, or to the same tile from two.
"""

from typing import Any

import numpy as np

from retinue.envs import facts
from retinue.envs.estimates import MOVERS, TOGETHER, per_point
from retinue.envs.game.board import GUARDS, HOME_PATH
from retinue.envs.game.jit import inline_jit, inner_jit
from retinue.envs.game.state import Record
from retinue.envs.subsets import (
    NOTHING_NEW,
    OPTIONS,
    PLACES,
    SAME_TOTAL,
    SUBSET_MASK,
    correction,
    fits,
)

# --- One Guard's options


@inline_jit
def _captures_value(direction: int, mover: int, total: int, estimates: Record, out: Record) -> Any:
    value = estimates.guards_taken[direction, mover, total] * out.per_capture[0]
    value += estimates.nobles_taken[direction, mover, total] * out.per_capture[1]
    return value


@inner_jit
def _choose_options(
    guard: int, direction: int, largest: int, estimates: Record, out: Record
) -> None:
    """Find the best subsets for one Guard, few of the same total; nothing is always among them."""
    options = out.option[guard]
    values = out.option_value[guard]
    options[0] = 0
    values[0] = 0.0
    count = 1
    for total in range(1, largest + 1):
        gain = estimates.gain[direction, guard, total]
        gain += _captures_value(direction, guard, total, estimates, out)
        for way in range(min(SAME_TOTAL, out.ways_made[total])):
            subset = out.made[total, way]
            value = gain + out.spending[subset]
            if count == OPTIONS and value <= values[count - 1]:
                break
            count = min(count + 1, OPTIONS)
            at = count - 1
            while at > 1 and values[at - 1] < value:
                options[at] = options[at - 1]
                values[at] = values[at - 1]
                at -= 1
            options[at] = subset
            values[at] = value
    out.options[guard] = count


@inline_jit
def _best_option(guard: int, out: Record) -> Any:
    return max(0.0, out.option_value[guard, 1]) if out.options[guard] > 1 else 0.0


# --- The beam


@inline_jit
def _entry(row: int, subset: int, another: int, movers: int) -> int:
    """Return an entry for the next beam as one number.

    Args:
        row: of the present beam.
        subset: for the Guard that is served, or the first of a pair.
        another: for the second of a pair.
        movers: of a pair, as one number, plus 1; 0 without one; ``NOTHING_NEW`` if the row stays.
    """
    return int(row) | int(subset) << 8 | int(another) << 20 | int(movers) << 32


@inline_jit
def _enter(out: Record, value: float, entry: int, most: int) -> None:
    """Put an entry among the best ``most`` for the next beam."""
    at = out.entries
    if at == most:
        at -= 1
        if value <= out.entry_value[at]:
            return
    else:
        out.entries = at + 1
    while at > 0 and out.entry_value[at - 1] < value:
        out.entry_value[at] = out.entry_value[at - 1]
        out.entry[at] = out.entry[at - 1]
        at -= 1
    out.entry_value[at] = value
    out.entry[at] = entry


@inner_jit
def _copy(out: Record, source: int, row: int, target: int, at: int) -> None:
    out.left[target, at] = out.left[source, row]
    out.kept[target, at] = out.kept[source, row]
    out.rest[target, at] = out.rest[source, row]
    out.served[target, at] = out.served[source, row]
    out.guards_taken[target, at] = out.guards_taken[source, row]
    out.nobles_taken[target, at] = out.nobles_taken[source, row]
    for guard in range(GUARDS):
        out.given[target, at, guard] = out.given[source, row, guard]


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
    kept = out.kept[beam, row]
    out.rest[beam, row] += correction(kept, out.rolls[subset], out)
    out.kept[beam, row] = kept - out.rolls[subset]
    out.served[beam, row] |= 1 << guard
    out.left[beam, row] -= out.subset[subset]
    out.given[beam, row, guard] = out.subset[subset]
    out.rest[beam, row] += estimates.gain[direction, mover, total] + out.spending[subset]
    out.guards_taken[beam, row] += estimates.guards_taken[direction, mover, total]
    out.nobles_taken[beam, row] += estimates.nobles_taken[direction, mover, total]


@inline_jit
def _part_ways(movers: Any, totals: Any) -> bool:
    """Tell whether a joint move ends on two tiles."""
    return bool(movers[0] >= TOGETHER and totals[0] != totals[1])


@inline_jit
def _beside(movers: Any, totals: Any, direction: int, estimates: Record) -> Any:
    """Return what a joint move gains beside what both Guards gain by themselves.

    Estimates of Guards that move together take them to end together, too; those of others do not.
    """
    company = estimates.company[direction]
    both = company[movers[0], totals[0]] + company[movers[1], totals[1]]
    if _part_ways(movers, totals):
        return -both
    # What stands there is lost once.
    once = -estimates.losses[direction, movers[1], totals[1]]
    return both + once if movers[0] < TOGETHER else once


@inline_jit
def _best_way(total: int, out: Record) -> Any:
    """Return what making a total gives at best by what it spends."""
    return out.spending[out.made[total, 0]] if out.ways_made[total] > 0 else -np.inf


@inner_jit
def _enter_pair(out: Record, movers: Any, totals: Any, direction: int, estimates: Record) -> None:
    """Enter the allocation in which two Guards make a joint move, if it can be made.

    Args:
        out: ``ALLOCATIONS``, whose second beam has the allocation to start from.
        movers: of ``ESTIMATES``, two.
        totals: theirs.
        direction: of the turn.
        estimates: ``ESTIMATES``.
    """
    first, second = movers[0] % TOGETHER, movers[1] % TOGETHER
    value = out.value[1, 0] - _best_option(first, out) - _best_option(second, out)
    value += _beside(movers, totals, direction, estimates)
    value += _captures_value(direction, movers[0], totals[0], estimates, out)
    if _part_ways(movers, totals):
        value += _captures_value(direction, movers[1], totals[1], estimates, out)
    value += estimates.gain[direction, movers[0], totals[0]]
    value += estimates.gain[direction, movers[1], totals[1]]
    pairs = out.width // 2
    others_best = _best_way(totals[1], out) + out.lift
    at_best = value + _best_way(totals[0], out) + others_best
    if out.entries == pairs and at_best <= out.entry_value[pairs - 1]:
        return
    best = np.float32(0.0)
    entry = 0
    for one in range(out.ways_made[totals[0]]):
        subset = out.made[totals[0], one]
        if entry != 0 and out.spending[subset] + others_best <= best:
            break
        for other in range(out.ways_made[totals[1]]):
            another = out.made[totals[1], other]
            spent = out.spending[subset] + out.spending[another]
            if entry != 0 and spent + out.lift <= best:
                break
            if not fits(out.subset[subset] + out.subset[another], out.store):
                continue
            spent += correction(out.held, out.rolls[subset] + out.rolls[another], out)
            if entry == 0 or spent > best:
                best = spent
                entry = _entry(0, subset, another, 1 + movers[0] + MOVERS * movers[1])
    if entry != 0:
        _enter(out, value + best, entry, pairs)


@inner_jit
def _enter_group(
    first: int, second: int, direction: int, largest: int, estimates: Record, out: Record
) -> None:
    """Enter the moves of two Guards from the same tile: as far together, or one farther."""
    movers = (first + TOGETHER, second + TOGETHER)
    for total in range(1, largest // 2 + 1):
        if estimates.possible[total]:
            _enter_pair(out, movers, (total, total), direction, estimates)
    end = estimates.end[direction]
    if end[first, largest] == end[movers[0], largest]:
        return  # nothing stops one of them that would not stop both
    for side in range(2):
        for total in range(1, largest):
            at_best = estimates.gain[direction, movers[side], total] + _best_way(total, out)
            at_best += _captures_value(direction, movers[side], total, estimates, out)
            out.apart[side, total] = at_best - estimates.company[direction, movers[side], total]
    base = out.value[1, 0] - _best_option(first, out) - _best_option(second, out) + out.lift
    pairs = out.width // 2
    for total in range(1, largest):
        if not estimates.possible[total]:
            continue
        for farther in range(total + 1, largest + 1 - total):
            if not estimates.possible[farther] or end[first, farther] == end[movers[0], farther]:
                continue
            for totals in ((total, farther), (farther, total)):
                at_best = base + out.apart[0, totals[0]] + out.apart[1, totals[1]]
                if out.entries < pairs or at_best > out.entry_value[pairs - 1]:
                    _enter_pair(out, movers, totals, direction, estimates)


@inner_jit
def _enter_pairs(
    game: Record, legal: int, direction: int, largest: int, estimates: Record, out: Record
) -> None:
    """Enter joint moves of two Guards: from one tile, or to one tile."""
    seat = game.seat
    for guard in range(GUARDS):
        for place in range(PLACES):
            out.leads_to[guard, place] = 0
        for total in range(largest, 0, -1):
            end = estimates.end[direction, guard, total]
            if estimates.possible[total] and (legal >> guard) & 1 and end >= 0:
                out.leads_to[guard, end] = total
    for first in range(GUARDS):
        for second in range(first + 1, GUARDS):
            if not ((legal >> first) & 1 and (legal >> second) & 1):
                continue
            place = game.position[seat, first]
            if place >= 0 and place == game.position[seat, second]:
                _enter_group(first, second, direction, largest, estimates, out)
                continue
            movers = (first, second)
            for total in range(1, largest):
                end = estimates.end[direction, first, total]
                if not estimates.possible[total] or end < 0 or end >= HOME_PATH:
                    continue
                totals = (total, int(out.leads_to[second, end]))
                if totals[1] > 0 and _beside(movers, totals, direction, estimates) > 0.0:
                    _enter_pair(out, movers, totals, direction, estimates)


@inner_jit
def _start_beam(direction: int, estimates: Record, out: Record) -> None:
    """Make the first beam from the pairs entered; the allocation without one is its last row."""
    for at in range(out.entries):
        _copy(out, 1, 0, 0, at)
        out.value[0, at] = out.entry_value[at]
        entry = out.entry[at]
        code = (entry >> 32) - 1
        movers = (code % MOVERS, code // MOVERS)
        subset, another = (entry >> 8) & SUBSET_MASK, (entry >> 20) & SUBSET_MASK
        totals = (int(out.total[subset]), int(out.total[another]))
        _give(out, 0, at, movers[0] % TOGETHER, subset, direction, movers[0], estimates)
        guards, nobles = out.guards_taken[0, at], out.nobles_taken[0, at]
        _give(out, 0, at, movers[1] % TOGETHER, another, direction, movers[1], estimates)
        if not _part_ways(movers, totals):  # what stands there is captured once
            out.guards_taken[0, at], out.nobles_taken[0, at] = guards, nobles
        out.rest[0, at] += _beside(movers, totals, direction, estimates)
    last = out.entries
    _copy(out, 1, 0, 0, last)
    out.value[0, last] = out.value[1, 0]
    out.rows[0] = last + 1


@inner_jit
def _serve(guard: int, direction: int, source: int, estimates: Record, out: Record) -> None:
    """Make the next beam: every allocation with every option of one Guard that is left to it."""
    target = 1 - source
    best = _best_option(guard, out)
    out.entries = 0
    for row in range(out.rows[source]):
        value = out.value[source, row]
        if out.entries == out.width and value + out.slack <= out.entry_value[out.width - 1]:
            break  # all further rows are worse
        if (out.served[source, row] >> guard) & 1:
            _enter(out, value, _entry(row, 0, 0, NOTHING_NEW), out.width)
            continue
        _enter(out, value - best, _entry(row, 0, 0, 0), out.width)
        left = out.left[source, row]
        for option in range(1, out.options[guard]):
            added = value + out.option_value[guard, option] - best
            if out.entries == out.width and added + out.slack <= out.entry_value[out.width - 1]:
                break  # and all further options
            subset = out.option[guard, option]
            if fits(out.subset[subset], left):
                added += correction(out.kept[source, row], out.rolls[subset], out)
                _enter(out, added, _entry(row, subset, 0, 0), out.width)
    for at in range(out.entries):
        entry = out.entry[at]
        _copy(out, source, entry & 255, target, at)
        out.value[target, at] = out.entry_value[at]
        if entry >> 32 != NOTHING_NEW:
            subset = (entry >> 8) & SUBSET_MASK
            _give(out, target, at, guard, subset, direction, guard, estimates)
    out.rows[target] = out.entries


@inner_jit
def allocate(
    game: Record,
    legal: int,
    direction: int,
    largest: int,
    width: int,
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
        width: how many allocations are found at most, 2 to ``WIDTH``.
        worth: points for a captured Guard and Noble, float32 ``(2,)``.
        weights: of the strategy.
        estimates: ``ESTIMATES`` of all Guards' moves in that direction.
        out: ``ALLOCATIONS``, subsets noted.

    Returns:
        which of the two beams holds what was found.
    """
    point = weights[facts.COMBAT] + per_point(weights)
    out.width = width
    out.per_capture[0] = weights[facts.GUARDS_CAPTURED] + point * worth[0]
    out.per_capture[1] = weights[facts.NOBLES_CAPTURED] + point * worth[1]
    out.left[1, 0] = out.store
    out.kept[1, 0] = out.held
    out.value[1, 0] = 0.0
    out.rest[1, 0] = 0.0
    out.served[1, 0] = 0
    out.guards_taken[1, 0] = 0
    out.nobles_taken[1, 0] = 0
    for guard in range(GUARDS):
        out.given[1, 0, guard] = 0
        out.options[guard] = 0
        if (legal >> guard) & 1:
            _choose_options(guard, direction, largest, estimates, out)
            out.value[1, 0] += _best_option(guard, out)
        else:
            out.served[1, 0] |= 1 << guard
    out.entries = 0
    _enter_pairs(game, legal, direction, largest, estimates, out)
    _start_beam(direction, estimates, out)
    source = 0
    for guard in range(GUARDS):
        if (legal >> guard) & 1:
            _serve(guard, direction, source, estimates, out)
            source = 1 - source
    return source

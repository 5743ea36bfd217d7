"""The store's rolls as subsets: what one Guard can be given, and what is then no longer kept.

Rolls of each value are packed into one integer. All that the search over allocations works on is in
the record ``ALLOCATIONS``.
"""

from typing import Any, Final

import numpy as np

from retinue.envs import facts
from retinue.envs.estimates import MAX_TOTAL
from retinue.envs.game.board import GUARDS, HOME_PATH
from retinue.envs.game.jit import inline_jit, inner_jit
from retinue.envs.game.ruleset import MAX_STORE
from retinue.envs.game.state import Record

MAX_SUBSETS: Final = 1024
"""Ways to give one Guard some of the stored rolls that are looked at."""
OPTIONS: Final = 16
"""The best of them that the beam tries for each Guard."""
SAME_TOTAL: Final = 4
"""How many of those may add up to the same."""
WIDTH: Final = 64
"""The most allocations that a beam may keep after each Guard; pairs are half as many at most."""
WAYS_TO_MAKE: Final = 8
"""Subsets of the same total that are looked at, at most two of the same number of rolls."""
PLACES: Final = HOME_PATH + 24
NOTHING_NEW: Final = 255
"""In an entry: the Guard was served before."""
SUBSET_MASK: Final = (1 << 12) - 1

COUNT_BITS: Final = 8
"""Rolls of each value are packed into an integer, so many bits for each value."""
_NO_BORROW: Final = sum(1 << (COUNT_BITS * value + COUNT_BITS - 1) for value in range(6))

ALLOCATIONS: Final = np.dtype(
    (
        np.record,
        np.dtype(
            [
                ("store", "i8"),  # packed counts
                ("held", "i4"),  # rolls in it
                ("width", "i4"),  # allocations that the beams keep
                ("keeping", "f4", (MAX_STORE + 1,)),  # value of so many rolls kept, and of the dice
                ("per_roll", "f4"),  # of which each roll spent takes so much, on average
                ("slack", "f4"),  # by how much that average may be wrong
                ("lift", "f4"),  # by how much too low, for any rolls of the whole store
                ("subsets", "i4"),
                ("subset", "i8", (MAX_SUBSETS,)),  # packed counts
                ("total", "i2", (MAX_SUBSETS,)),
                ("rolls", "i2", (MAX_SUBSETS,)),
                ("spending", "f4", (MAX_SUBSETS,)),  # value of what is no longer kept
                ("made", "i2", (MAX_TOTAL + 1, WAYS_TO_MAKE)),  # subsets by descending spending
                ("ways_made", "i4", (MAX_TOTAL + 1,)),
                ("apart", "f4", (2, MAX_TOTAL + 1)),  # by two Guards that part ways
                ("per_capture", "f4", (2,)),  # value of capturing a Guard, a Noble, at best
                ("option", "i2", (GUARDS, OPTIONS)),  # subsets
                ("option_value", "f4", (GUARDS, OPTIONS)),
                ("options", "i4", (GUARDS,)),
                ("leads_to", "i2", (GUARDS, PLACES)),  # the least total that ends on a place
                # What may go into the next beam, in descending order of value.
                ("entries", "i4"),
                ("entry_value", "f4", (WIDTH,)),
                ("entry", "i8", (WIDTH,)),  # see _entry
                # Two beams, which take turns; each in descending order of value.
                ("rows", "i4", (2,)),
                ("value", "f4", (2, WIDTH)),  # with what Guards still to be served get at best
                ("rest", "f4", (2, WIDTH)),  # value without those and without captures
                ("guards_taken", "i4", (2, WIDTH)),
                ("nobles_taken", "i4", (2, WIDTH)),
                ("served", "i4", (2, WIDTH)),  # bit mask of Guards
                ("left", "i8", (2, WIDTH)),  # packed counts
                ("kept", "i4", (2, WIDTH)),  # rolls left
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
def fits(subset: int, left: int) -> bool:
    """Tell whether packed counts are all within others: no value's borrows from the next one."""
    return ((left | _NO_BORROW) - subset) & _NO_BORROW == _NO_BORROW


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
    out.held = held
    for kept in range(held + 1):
        value_of_dice = weights[facts.DICE] * rules.dice[kept]
        out.keeping[kept] = fade * (weights[facts.KEPT] * kept + value_of_dice)
    out.per_roll = (out.keeping[0] - out.keeping[held]) / max(1, held)
    out.slack = 0.0
    out.lift = 0.0
    for kept in range(held + 1):
        even = out.keeping[held] + out.per_roll * (held - kept)
        out.slack = max(out.slack, 2 * abs(out.keeping[kept] - even))
        out.lift = max(out.lift, out.keeping[kept] - even)
    out.subset[0] = 0
    out.total[0] = 0
    out.rolls[0] = 0
    out.spending[0] = 0.0
    count = 1
    for value in range(6):
        size = count
        change = out.per_roll - fade * weights[facts.KEPT_PIPS] * (value + 1)
        for taken in range(1, most[value] + 1):
            for index in range(size):
                out.subset[count] = out.subset[index] + (taken << (COUNT_BITS * value))
                out.total[count] = out.total[index] + taken * (value + 1)
                out.rolls[count] = out.rolls[index] + taken
                out.spending[count] = out.spending[index] + taken * change
                count += 1
    out.subsets = count
    _note_ways(out)


@inline_jit
def correction(kept: int, rolls: int, out: Record) -> Any:
    """Return what spending some of the rolls kept so far gives beside ``per_roll`` for each."""
    return out.keeping[kept - rolls] - out.keeping[kept] - rolls * out.per_roll


@inner_jit
def _note_ways(out: Record) -> None:
    """Note for each total some subsets that make it, of different numbers of rolls if possible."""
    seen = np.empty((2, MAX_TOTAL + 1), np.int64)  # bit masks of numbers of rolls: once, twice
    for total in range(MAX_TOTAL + 1):
        out.ways_made[total] = 0
    for twice in range(2):
        seen[:] = 0
        for subset in range(out.subsets):
            total = out.total[subset]
            if out.ways_made[total] == WAYS_TO_MAKE:
                continue
            bit = 1 << int(out.rolls[subset])
            known = 1 if seen[0, total] & bit else 0
            if seen[known, total] & bit:
                continue
            seen[known, total] |= bit
            if known == twice:
                _note_way(total, subset, out)


@inline_jit
def _note_way(total: int, subset: int, out: Record) -> None:
    """Note a subset that makes a total, those in front that are best to spend."""
    at = out.ways_made[total]
    out.ways_made[total] = at + 1
    while at > 0 and out.spending[out.made[total, at - 1]] < out.spending[subset]:
        out.made[total, at] = out.made[total, at - 1]
        at -= 1
    out.made[total, at] = subset

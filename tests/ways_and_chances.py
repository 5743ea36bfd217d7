"""Ways on the board and chances of dice, written from the rules; for the reference of facts."""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from referee import ENTERING, HOME_PATH, LAST_FORWARD, LOOP, MIDPOINT, YARD

DIE = range(1, 7)


def next_place(place: int, past: bool, forward: bool) -> int:
    """The next position of a piece that nothing stops (rules 2.2-2.7)."""
    if place == YARD:
        return ENTERING
    if place >= HOME_PATH:
        return place + 1
    if past and place == (LAST_FORWARD if forward else ENTERING):
        return HOME_PATH
    return (place + (1 if forward else -1)) % LOOP


@functools.cache
def way_home(place: int, past: bool, forward: bool, home: int) -> tuple[tuple[int, bool], ...]:
    """Each place on the way Home in one direction, and whether the piece comes there past it."""
    way = []
    while place != home:
        place = next_place(place, past, forward)
        way.append((place, past))
        past = past or place == MIDPOINT
    return tuple(way)


def tile_of(seat: int, offset: int) -> int:
    """The absolute tile at a seat's offset (rules 1.3)."""
    return (offset + 17 * seat) % LOOP


def apart(tile: int, other: int) -> int:
    """How far two tiles are apart, the shorter way round."""
    return min((tile - other) % LOOP, (other - tile) % LOOP)


def sums_of(rolls: Iterable[int]) -> set[int]:
    """What some of the rolls, or none of them, add up to."""
    sums = {0}
    for value in rolls:
        sums |= {each + value for each in sums}
    return sums


@functools.cache
def throws_with(dice: int) -> Counter[int]:
    """In how many throws of so many dice some of them add up to each total."""
    found: Counter[int] = Counter()
    for thrown in itertools.product(DIE, repeat=dice):
        found.update(sums_of(thrown))
    return found


def dice_for(rules: dict[str, Any], stored: int) -> int:
    """Dice rolled with so many rolls in the store (rules 3.1.1)."""
    return next(int(dice) for up_to, dice in rules["dice"] if stored <= up_to)


def none_of(chances: Iterable[float]) -> float:
    """How likely none of several independent things happens."""
    return math.prod(1.0 - chance for chance in chances)


def rolls_in(store: list[int]) -> Iterator[int]:
    """The values of the rolls in a store."""
    for value, count in enumerate(store, start=1):
        yield from [value] * count

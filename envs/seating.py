"""Who plays which seat: the caller's seats as a bit mask, and from where the others are taken."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from retinue.envs.game.board import SEATS
from retinue.envs.kernels import ANY_SEAT, MAX_OPPONENTS, NO_SEAT
from retinue.envs.opponents import Opponent

DRAWS: Final = ("in order", "each match")
ANY: Final = "any"
"""As ``seats``: one seat, drawn anew for each match."""
NONE: Final = "none"
"""As ``seats``: agents play all of them, so starting a match plays it to its end."""
ALL_SEATS: Final = (1 << SEATS) - 1
"""The bit mask of all four."""

NO_OPPONENTS: Final = "opponents are needed for the seats that the caller does not play"


def seat_mask(seats: int | Sequence[int] | str) -> int:
    """Return the caller's seats as a bit mask, or ``ANY_SEAT`` or ``NO_SEAT``.

    Raises:
        ValueError: a seat is not 0 to 3 or stands twice, or there is none.
    """
    if isinstance(seats, str):
        if seats not in (ANY, NONE):
            raise ValueError(f'seats must be seat numbers or "{ANY}", not {seats!r}')
        return ANY_SEAT if seats == ANY else NO_SEAT
    plain: Any = seats.tolist() if isinstance(seats, np.ndarray | np.generic) else seats
    mask = 0
    for each in plain if isinstance(plain, Iterable) else [plain]:
        if type(each) is bool or not hasattr(each, "__index__") or int(each) not in range(SEATS):
            raise ValueError(f"seat {each!r} is not one of 0, 1, 2, 3")
        seat = int(each)
        if (mask >> seat) & 1:
            raise ValueError(f"seat {seat} stands twice in seats")
        mask |= 1 << seat
    if not mask:
        raise ValueError("seats must name at least one seat")
    return mask


def seats_played(mask: int) -> int:
    """Return how many seats of each match a bit mask gives to the caller."""
    return {ANY_SEAT: 1, NO_SEAT: 0}.get(mask, mask.bit_count())


def check_opponents(seats: int, opponents: Sequence[Any], draw: str) -> None:
    """Check that there are opponents exactly if there are seats for them, and how they are drawn.

    Args:
        seats: bit mask of the caller's, or ``ANY_SEAT`` or ``NO_SEAT``.
        opponents: agents or their names.
        draw: one of ``DRAWS``.

    Raises:
        ValueError: something does not fit.
    """
    if draw not in DRAWS:
        raise ValueError(f"unknown draw {draw!r}: use {' or '.join(map(repr, DRAWS))}")
    if len(opponents) > MAX_OPPONENTS:
        raise ValueError(f"{len(opponents)} opponents are more than {MAX_OPPONENTS}")
    if seats != ALL_SEATS and not opponents:
        raise ValueError(NO_OPPONENTS)
    if seats == ALL_SEATS and opponents:
        raise ValueError("the caller plays all seats, so there is none for opponents")


def seat_masks(seats: Any, count: int, *, has_opponents: bool) -> list[int]:
    """Return the bit masks of the caller's seats in ``count`` games, given for each of them.

    Raises:
        ValueError: as :func:`seat_mask`, or there is nobody for the other seats.
    """
    masks = [seat_mask(each) for each in per_game(seats, "seats", count)]
    if NO_SEAT in masks:
        raise ValueError(f'seats="{NONE}" leaves the caller nothing to decide')
    if not has_opponents and set(masks) != {ALL_SEATS}:
        raise ValueError(NO_OPPONENTS)
    return masks


def pools(opponents: Any, count: int, given: Sequence[Opponent | str]) -> list[list[int]]:
    """Return which of the agents ``given`` the seats of ``count`` games are taken from.

    Args:
        opponents: for each game one or more of the agents, as the same objects or by name.
        count: how many games.
        given: a batch's ``opponents``.

    Raises:
        ValueError: one is not among them, or a game has none.
    """
    return [_find_agents(each, given) for each in per_game(opponents, "opponents", count)]


def per_game(values: Any, name: str, count: int) -> list[Any]:
    """Return values of which there has to be one for each of ``count`` matches.

    Raises:
        ValueError: there is not.
    """
    entries = list(values) if isinstance(values, Iterable) and not isinstance(values, str) else []
    if len(entries) != count or isinstance(values, dict | set):
        raise ValueError(f"{name} must be a list with an entry for each of {count} matches")
    return entries


def _find_agents(wanted: Any, given: Sequence[Opponent | str]) -> list[int]:
    chosen = as_list(wanted)
    if not 1 <= len(chosen) <= MAX_OPPONENTS:
        raise ValueError(f"opponents must name 1 to {MAX_OPPONENTS} agents, not {len(chosen)}")
    found = []
    for agent in chosen:
        places = [i for i, each in enumerate(given) if each is agent or _is_name(each, agent)]
        if not places:
            names = ", ".join(repr(_name(each)) for each in given) or "none"
            raise ValueError(f"opponent {agent!r:.80} is not one of the environment's: {names}")
        found.append(places[0])
    return found


def as_list(agents: Any) -> list[Any]:
    """Return agents as a list: an agent, several, or None for nobody."""
    if agents is None:
        return []
    return list(agents) if isinstance(agents, list | tuple | np.ndarray) else [agents]


def _name(agent: Opponent | str) -> str:
    return agent if isinstance(agent, str) else agent.name


def _is_name(agent: Opponent | str, wanted: Any) -> bool:
    return isinstance(wanted, str) and wanted == _name(agent)

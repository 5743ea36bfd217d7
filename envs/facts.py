"""The facts of a candidate turn: what it gains and what it leads to, one number each.

Every fact is seen from the seat to move, once its turn was played and before anybody else moves. A
strategy weighs them (:func:`pack_weights`); a learner sees them scaled.

What lies in the future counts for less near the end: ``open``, ``yard_guards``, ``capture_worth``,
``barrier``, ``prey``, ``kept``, ``dice`` and ``credits`` (and what is named after them) are
multiplied by n / (n + 6), n being the seat's own turns that are left.

Threats are chances, not certainties: a total that an opponent's stored rolls make counts 1, others
what one or two new dice make of it, all its Guards and both directions taken as independent. They
are surveyed once for each decision, so what a turn changes about opponents' own chances counts only
as far as captured Guards no longer threaten from where they stood.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

REACH: Final = 36
"""Steps at which a Guard's threat is still counted."""
NEAR: Final = 12
"""Tiles within which a stack is in an opponent's way."""
EXPOSED_WITHIN: Final = 14
"""Tiles within which an opponent's Guard makes a piece count as exposed."""


@dataclass(frozen=True)
class Fact:
    """One fact.

    Attributes:
        name: of the fact.
        scale: what is 1 in a learner's observation, beyond which it is cut; of a fact that may be
            below 0, what is 1/2: x is seen as x / (abs(x) + scale).
        meaning: what it counts.
        low: the least it can be in an observation, 0 or -1.
    """

    name: str
    scale: float
    meaning: str
    low: float = 0.0


FACTS: Final = (
    Fact("progression", 300, "points of progression gained (rules 4.1)"),
    Fact("combat", 600, "points for captures (rules 4.2)"),
    Fact("penalties", 100, "points lost to blockades (rules 3.5.4)"),
    Fact("bonus", 300, "completion bonus (rules 4.3)"),
    Fact("guards_captured", 4, "opponents' Guards captured"),
    Fact("nobles_captured", 2, "opponents' Nobles captured"),
    Fact("loss_next", 500, "progression that the next seat lost"),
    Fact("loss_across", 500, "progression that the seat across lost"),
    Fact("loss_previous", 500, "progression that the previous seat lost"),
    Fact("loss_leader", 500, "progression lost by the opponents whose total was highest before"),
    Fact("steps_guards", 400, "steps that the Guards still need to Home, each its shorter way"),
    Fact("steps_noble", 150, "the same for the Noble"),
    Fact(
        "open_guards",
        600,
        "points not yet taken on the better way of each Guard, 0.97 per step to them",
    ),
    Fact("open_noble", 300, "the same for the Noble"),
    Fact("midpoint_guards", 4, "Guards whose midpoint progress is active"),
    Fact("midpoint_noble", 1, "1 while the Noble's is"),
    Fact("yard_guards", 4, "Guards in the Yard"),
    Fact("home_guards", 4, "Guards in Home"),
    Fact("noble_home", 1, "1 with the Noble in Home"),
    Fact("noble_castle", 1, "1 with the Noble on a Castle"),
    Fact("noble_regular", 1, "1 with the Noble on a regular tile"),
    Fact("capture_worth", 250, "points for capturing a Guard with the Noble where it stands"),
    Fact("safe_guards", 4, "Guards on the own entering tile, or on Castles if those protect"),
    Fact("stacked", 4, "Guards on the loop in stacks of two or more"),
    Fact("barrier", 8, "opponents' Guards within 12 tiles of own stacks, for each stack"),
    Fact(
        "risk_guards_next",
        300,
        "progression of Guards that the next seat can be expected to capture",
    ),
    Fact("risk_guards_across", 300, "the same, by the seat across"),
    Fact("risk_guards_previous", 300, "the same, by the previous seat"),
    Fact("risk_noble_next", 300, "progression of the Noble, by the next seat"),
    Fact("risk_noble_across", 300, "the same, by the seat across"),
    Fact("risk_noble_previous", 300, "the same, by the previous seat"),
    Fact("bounty", 1000, "points that opponents can be expected to get for such captures"),
    Fact("setbacks", 5, "own pieces that can be expected to be captured"),
    Fact("at_stake", 1500, "progression of own pieces on the loop, lost if they are captured"),
    Fact(
        "exposed",
        600,
        "progression of lone unprotected pieces within 14 tiles of an opponent's Guard",
    ),
    Fact("prey", 16, "opponents' pieces expected to be reached next turn; a Noble counts 1.5"),
    Fact("prey_points", 800, "progression of those pieces"),
    Fact("kept", 17, "rolls kept"),
    Fact("kept_pips", 60, "pips on them"),
    Fact("dice", 5, "dice of the next turn (rules 3.1.1)"),
    Fact("credits", 4, "exit credits left"),
    Fact("forward_before", 40, "steps made forward on the loop by pieces before their midpoint"),
    Fact("forward_past", 40, "the same by pieces past it"),
    Fact("backward_before", 40, "steps made backward on the loop by pieces before their midpoint"),
    Fact("backward_past", 40, "the same by pieces past it"),
    Fact("margin", 1000, "own total minus the mean of the others'", -1.0),
    Fact("lead", 1000, "own total minus the best other total", -1.0),
    Fact("time_left", 1, "share of the clock that is left"),
)
"""In the order in which they stand in a candidate's row."""

FACT_NAMES: Final = tuple(fact.name for fact in FACTS)
FACT_COUNT: Final = len(FACTS)

# Their indices, for compiled code.
(
    PROGRESSION,
    COMBAT,
    PENALTIES,
    BONUS,
    GUARDS_CAPTURED,
    NOBLES_CAPTURED,
    LOSS,
    _,
    _,
    LOSS_LEADER,
    STEPS,
    _,
    OPEN,
    _,
    MIDPOINTS,
    _,
    YARD_GUARDS,
    HOME_GUARDS,
    NOBLE_HOME,
    NOBLE_CASTLE,
    NOBLE_REGULAR,
    CAPTURE_WORTH,
    SAFE_GUARDS,
    STACKED,
    BARRIER,
    RISK,
    _,
    _,
    RISK_NOBLE,
    _,
    _,
    BOUNTY,
    SETBACKS,
    AT_STAKE,
    EXPOSED,
    PREY,
    PREY_POINTS,
    KEPT,
    KEPT_PIPS,
    DICE,
    CREDITS,
    FORWARD_BEFORE,
    FORWARD_PAST,
    BACKWARD_BEFORE,
    BACKWARD_PAST,
    MARGIN,
    LEAD,
    TIME_LEFT,
) = range(FACT_COUNT)


def check_names(weights: Mapping[str, float]) -> None:
    """Refuse weights of facts that there are not.

    Raises:
        ValueError: naming the first and what it may have been meant to be.
    """
    for name in weights:
        if name not in FACT_NAMES:
            close = difflib.get_close_matches(name, FACT_NAMES, 1)
            hint = f"did you mean {close[0]}?" if close else f"use {', '.join(FACT_NAMES)}"
            raise ValueError(f"there is no fact {name!r}: {hint}")


def pack_weights(weights: Mapping[str, float]) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return weights by fact as float32 ``(FACT_COUNT,)``; what is not named weighs nothing.

    Raises:
        ValueError: there is no such fact.
    """
    check_names(weights)
    packed = np.zeros(FACT_COUNT, np.float32)
    for name, weight in weights.items():
        packed[FACT_NAMES.index(name)] = weight
    return packed

"""What a candidate turn leads to: the facts of the game after it, compared with the game before."""

from typing import Any

import numpy as np

from retinue.envs.facts import (
    AT_STAKE,
    BACKWARD_BEFORE,
    BARRIER,
    BONUS,
    BOUNTY,
    CAPTURE_WORTH,
    COMBAT,
    CREDITS,
    DICE,
    EXPOSED,
    FACT_COUNT,
    FORWARD_BEFORE,
    GUARDS_CAPTURED,
    HOME_GUARDS,
    KEPT,
    KEPT_PIPS,
    LEAD,
    LOSS,
    LOSS_LEADER,
    MARGIN,
    MIDPOINTS,
    NOBLE_CASTLE,
    NOBLE_HOME,
    NOBLE_REGULAR,
    NOBLES_CAPTURED,
    OPEN,
    PENALTIES,
    PREY,
    PREY_POINTS,
    PROGRESSION,
    RISK,
    RISK_NOBLE,
    SAFE_GUARDS,
    SETBACKS,
    STACKED,
    STEPS,
    TIME_LEFT,
    YARD_GUARDS,
)
from retinue.envs.game.board import (
    FORWARD,
    GUARDS,
    HOME_PATH,
    LOOP,
    MIDPOINT,
    NOBLE,
    PIECES,
    SEATS,
    TURN_OFF,
    YARD,
    tile,
)
from retinue.envs.game.jit import inline_jit, inner_jit
from retinue.envs.game.movement import noble_zone, stack
from retinue.envs.game.ruleset import CASTLE, REGULAR
from retinue.envs.game.state import Record
from retinue.envs.survey import FROM_YARD, OPPONENTS, is_protected, open_points


@inner_jit
def _count_captures(before: Record, after: Record, survey: Record, row: Any) -> int:
    """Write what opponents lost; return a bit mask of those that lost a Guard."""
    lost_guards = 0
    for other in range(OPPONENTS):
        seat = (survey.seat + other + 1) % SEATS
        for piece in range(PIECES):
            if after.position[seat, piece] == before.position[seat, piece]:
                continue
            points = float(before.progression[seat, piece])
            row[LOSS + other] += points
            if survey.leading[other]:
                row[LOSS_LEADER] += points
            if piece == NOBLE:
                row[NOBLES_CAPTURED] += 1.0
            else:
                row[GUARDS_CAPTURED] += 1.0
                lost_guards |= 1 << other
    return lost_guards


@inner_jit
def _risk_at(before: Record, after: Record, survey: Record, other: int, at: int) -> Any:
    """Return how likely an opponent that has just lost a Guard captures on a tile."""
    seat = (survey.seat + other + 1) % SEATS
    missed = 1.0 - survey.danger[other, FROM_YARD, at]
    for guard in range(GUARDS):
        if after.position[seat, guard] == before.position[seat, guard]:
            missed *= 1.0 - survey.danger[other, guard, at]
    return 1.0 - missed


@inner_jit
def count_steps(
    start: int, end: int, was_past: int, is_past: int, direction: int, row: Any
) -> None:
    """Add the steps that a piece made on the loop, before and past its midpoint."""
    entered = 0
    if start == YARD:
        entered = 1
        start = 0
    if start >= HOME_PATH:
        return
    if end >= HOME_PATH:
        end = TURN_OFF if direction == FORWARD else 0
    made = (end - start if direction == FORWARD else start - end) % LOOP
    out = made
    if was_past:
        out = 0
    elif is_past:
        out = (MIDPOINT - start if direction == FORWARD else start - MIDPOINT) % LOOP
        made = out + (end - MIDPOINT if direction == FORWARD else MIDPOINT - end) % LOOP
    at = FORWARD_BEFORE if direction == FORWARD else BACKWARD_BEFORE
    row[at] += out + entered
    row[at + 1] += made - out


@inner_jit
def _weigh_risk(
    before: Record,
    after: Record,
    survey: Record,
    piece: int,
    at: int,
    lost_guards: int,
    row: Any,
) -> None:
    """Write what may become of a piece that opponents can reach."""
    points = float(after.progression[survey.seat, piece])
    kind = 1 if piece == NOBLE else 0
    first = RISK_NOBLE if piece == NOBLE else RISK
    missed = 1.0
    for other in range(OPPONENTS):
        chance = survey.risk[other, at]
        if chance > 0.0 and (lost_guards >> other) & 1:
            chance = _risk_at(before, after, survey, other, at)
        row[first + other] += chance * points
        row[BOUNTY] += chance * survey.worth[other, kind]
        missed *= 1.0 - chance
    row[SETBACKS] += 1.0 - missed
    if survey.close[at]:
        row[EXPOSED] += points


@inner_jit
def _weigh_piece(
    before: Record,
    after: Record,
    rules: Record,
    ways: Record,
    survey: Record,
    piece: int,
    direction: int,
    lost_guards: int,
    row: Any,
) -> None:
    """Add the facts of one own piece."""
    seat = survey.seat
    kind = 1 if piece == NOBLE else 0
    start = int(before.position[seat, piece])
    position = int(after.position[seat, piece])
    past = int(after.midpoint[seat, piece])
    row[STEPS + kind] += ways.steps[past, position + 1]
    row[MIDPOINTS + kind] += past
    if position == start and past == before.midpoint[seat, piece]:
        row[OPEN + kind] += survey.fade * survey.open[piece]
    else:
        records = int(after.checkpoints[seat, piece])
        row[OPEN + kind] += survey.fade * open_points(ways, kind, past, position, records)
        was_past = int(before.midpoint[seat, piece])
        count_steps(start, position, was_past, past, direction, row)
    if position < 0 or position >= HOME_PATH:
        if piece != NOBLE:
            if position == YARD:
                row[YARD_GUARDS] += survey.fade
            elif position == rules.home:
                row[HOME_GUARDS] += 1.0
        return
    row[AT_STAKE] += after.progression[seat, piece]
    at = tile(seat, position)
    company = stack(after, seat, at)
    if piece != NOBLE:
        row[PREY] += survey.fade * survey.prey[at]
        row[PREY_POINTS] += survey.fade * survey.prey_points[at]
        if company >= 2:
            row[STACKED] += 1.0
            row[BARRIER] += survey.fade * survey.near[at] / company
    if is_protected(rules, position):
        if piece != NOBLE:
            row[SAFE_GUARDS] += 1.0
    elif company < 2:
        _weigh_risk(before, after, survey, piece, at, lost_guards, row)


@inner_jit
def _forget_prey(before: Record, after: Record, ways: Record, survey: Record, row: Any) -> None:
    """Take what was captured out of what may be reached next turn."""
    seat = survey.seat
    for other in range(1, SEATS):
        theirs = (seat + other) % SEATS
        for piece in range(PIECES):
            place = int(before.position[theirs, piece])
            if after.position[theirs, piece] == place:
                continue
            points = float(before.progression[theirs, piece])
            worth = 1.5 if piece == NOBLE else 1.0
            at = tile(theirs, place)
            for guard in range(GUARDS):
                position = int(after.position[seat, guard])
                if 0 <= position < HOME_PATH:
                    away = (at - tile(seat, position)) % LOOP
                    for steps in (away, LOOP - away):
                        if 0 < steps < ways.chance.shape[0]:
                            chance = survey.fade * ways.chance[steps]
                            row[PREY] -= chance * worth
                            row[PREY_POINTS] -= chance * points


@inner_jit
def _weigh_scores(
    before: Record, after: Record, rules: Record, survey: Record, noble_after: int, row: Any
) -> None:
    """Write scores gained, margins, what is kept and where the Noble stands."""
    seat = survey.seat
    gained = 0.0
    for piece in range(PIECES):
        gained += after.progression[seat, piece] - before.progression[seat, piece]
    row[PROGRESSION] = gained
    row[BONUS] = after.bonus[seat] - before.bonus[seat]
    fought = float(after.combat[seat] - before.combat[seat])
    # Captures count by where the Noble stood while the Guards moved (rules 3.6.5).
    now = before if noble_after else after
    zone = noble_zone(now, seat)
    past = now.midpoint[seat, NOBLE]
    row[COMBAT] = row[GUARDS_CAPTURED] * rules.combat[zone, past, 0]
    row[COMBAT] += row[NOBLES_CAPTURED] * rules.combat[zone, past, 1]
    row[PENALTIES] = row[COMBAT] - fought
    own = survey.own_total + gained + row[BONUS] + fought
    others = 0.0
    best = -1e30
    for other in range(OPPONENTS):  # all that they can lose is progression
        points = survey.totals[other] - row[LOSS + other]
        others += points
        best = max(best, points)
    row[MARGIN] = own - others / OPPONENTS
    row[LEAD] = own - best
    kept = 0
    pips = 0
    for value in range(6):
        count = int(after.store[seat, value])
        kept += count
        pips += count * (value + 1)
    row[KEPT] = survey.fade * kept
    row[KEPT_PIPS] = survey.fade * pips
    row[DICE] = survey.fade * rules.dice[kept]
    row[CREDITS] = survey.fade * after.credits[seat]
    zone = noble_zone(after, seat)
    if after.position[seat, NOBLE] == rules.home:
        row[NOBLE_HOME] = 1.0
    elif zone == CASTLE:
        row[NOBLE_CASTLE] = 1.0
    elif zone == REGULAR:
        row[NOBLE_REGULAR] = 1.0
    row[CAPTURE_WORTH] = survey.fade * rules.combat[zone, after.midpoint[seat, NOBLE], 0]
    row[TIME_LEFT] = np.float32(after.clock_seconds) / np.float32(rules.clock_seconds)


@inline_jit
def clear_row(row: Any) -> None:
    """Set all facts to 0."""
    for fact in range(FACT_COUNT):
        row[fact] = 0.0


@inner_jit
def describe(
    before: Record,
    after: Record,
    rules: Record,
    ways: Record,
    survey: Record,
    direction: int,
    noble_after: int,
    row: Any,
) -> None:
    """Write the facts of a turn.

    Args:
        before: ``GAME`` in which the turn was to be chosen.
        after: ``GAME`` after it.
        rules: ``RULES``.
        ways: ``WAYS``.
        survey: ``SURVEY`` of ``before``.
        direction: of the turn.
        noble_after: of the turn.
        row: float32 ``(FACT_COUNT,)``.
    """
    clear_row(row)
    lost_guards = _count_captures(before, after, survey, row)
    for piece in range(PIECES):
        _weigh_piece(before, after, rules, ways, survey, piece, direction, lost_guards, row)
    if row[GUARDS_CAPTURED] + row[NOBLES_CAPTURED] > 0.0:
        _forget_prey(before, after, ways, survey, row)
    _weigh_scores(before, after, rules, survey, noble_after, row)


@inline_jit
def weigh(row: Any, weights: Any) -> Any:
    """Return the value of a row of facts, float32.

    Four sums are kept, which the processor adds up side by side.
    """
    first, second, third, fourth = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
    for fact in range(0, FACT_COUNT - 3, 4):
        first += row[fact] * weights[fact]
        second += row[fact + 1] * weights[fact + 1]
        third += row[fact + 2] * weights[fact + 2]
        fourth += row[fact + 3] * weights[fact + 3]
    for fact in range(FACT_COUNT - FACT_COUNT % 4, FACT_COUNT):
        first += row[fact] * weights[fact]
    return (first + second) + (third + fourth)

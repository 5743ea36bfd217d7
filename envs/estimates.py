"""What each piece alone would gain with each total: the estimates by which turns are tried.

They add up what strategies weigh about a place, one piece at a time, and know nothing of what
pieces do to each other. So they decide only which turns are played and valued exactly
(:mod:`retinue.envs.candidates`).
"""

from typing import Any, Final

import numpy as np

from retinue.envs import facts
from retinue.envs.facts import FACT_COUNT
from retinue.envs.game.board import (
    CHECKPOINT_AT,
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
from retinue.envs.game.jit import inner_jit
from retinue.envs.game.movement import is_blocked, is_blocked_by_own, next_position, stack
from retinue.envs.game.ruleset import CASTLE, MAX_STORE, REGULAR, SAFE
from retinue.envs.game.state import Record
from retinue.envs.survey import OPPONENTS, WAYS_FIELDS, is_protected, open_points

MAX_TOTAL: Final = 6 * MAX_STORE
NOBLE_STEPS: Final = 6
TOGETHER: Final = PIECES
"""A mover is a piece, or ``TOGETHER`` + a Guard: that Guard with another from its tile."""
MOVERS: Final = PIECES + GUARDS

STRATEGY: Final = np.dtype(
    (
        np.record,
        np.dtype(
            [
                ("weights", "f4", (FACT_COUNT,)),
                ("count", "i4"),  # of candidates
                ("at_random", "i4"),  # 1: drawn by chance, not proposed
                *WAYS_FIELDS,
            ],
            align=True,
        ),
    )
)
"""What a strategy knows: how it weighs facts, how many candidates it looks at, the rules' ways."""

ESTIMATES: Final = np.dtype(
    (
        np.record,
        np.dtype(
            [
                ("possible", "u1", (MAX_TOTAL + 1,)),  # 1: some stored rolls add up to it
                # By direction, mover and total: the value above staying, captures apart.
                ("gain", "f4", (2, MOVERS, MAX_TOTAL + 1)),
                ("end", "i1", (2, MOVERS, MAX_TOTAL + 1)),  # where it stops
                ("company", "f4", (2, MOVERS, MAX_TOTAL + 1)),  # worth of another Guard there
                ("guards_taken", "i1", (2, MOVERS, MAX_TOTAL + 1)),
                ("nobles_taken", "i1", (2, MOVERS, MAX_TOTAL + 1)),
                ("losses", "f4", (2, MOVERS, MAX_TOTAL + 1)),  # of what it takes, within its gain
                # By direction, Noble's steps before the Guards and kind of piece: what a capture
                # is then worth.
                ("worth", "f4", (2, NOBLE_STEPS + 1, 2)),
                ("guards_there", "i1", (LOOP,)),  # to be captured, by absolute tile
                ("nobles_there", "i1", (LOOP,)),
                ("losses_there", "f4", (LOOP,)),  # value of what their seats would lose
                # What a strategy sees in what may become of a lone Guard or Noble on a tile: for
                # each of its points, and apart from them; and in what a Guard may capture there.
                ("risk_per_point", "f4", (2, LOOP)),
                ("risk_always", "f4", (2, LOOP)),
                ("prey", "f4", (LOOP,)),
            ],
            align=True,
        ),
    )
)


@inner_jit
def per_point(weights: Any) -> Any:
    """Return the value of a point of one's own."""
    return weights[facts.MARGIN] + weights[facts.LEAD]


@inner_jit
def note_totals(game: Record, estimates: Record) -> int:
    """Note which totals the store can make; return the largest."""
    seat = game.seat
    largest = 0
    possible = estimates.possible
    for total in range(MAX_TOTAL + 1):
        possible[total] = 0
    possible[0] = 1
    for value in range(6):
        for _ in range(game.store[seat, value]):
            for total in range(largest, -1, -1):
                if possible[total]:
                    possible[total + value + 1] = 1
            largest += value + 1
    return largest


@inner_jit
def note_targets(
    game: Record, rules: Record, weights: Any, survey: Record, estimates: Record
) -> None:
    """Note what there is to be captured on each tile, and what its loss is worth."""
    for at in range(LOOP):
        estimates.guards_there[at] = 0
        estimates.nobles_there[at] = 0
        estimates.losses_there[at] = 0.0
    for other in range(OPPONENTS):
        seat = (survey.seat + other + 1) % SEATS
        loss = weights[facts.LOSS + other] + weights[facts.MARGIN] / OPPONENTS
        if survey.leading[other]:
            loss += weights[facts.LOSS_LEADER] + weights[facts.LEAD]
        for piece in range(PIECES):
            position = int(game.position[seat, piece])
            if position < 0 or position >= HOME_PATH or is_protected(rules, position):
                continue
            at = tile(seat, position)
            estimates.losses_there[at] += loss * game.progression[seat, piece]
            if piece == NOBLE:
                estimates.nobles_there[at] += 1
            else:
                estimates.guards_there[at] += 1


@inner_jit
def note_places(weights: Any, survey: Record, estimates: Record) -> None:
    """Note what a strategy sees in the tiles, whichever piece may come to stand there."""
    one = np.float32(1.0)
    for kind in range(2):
        per_point, always = estimates.risk_per_point[kind], estimates.risk_always[kind]
        for at in range(LOOP):
            per_point[at] = weights[facts.EXPOSED] * survey.close[at]
            always[at] = weights[facts.SETBACKS]
        first = facts.RISK_NOBLE if kind else facts.RISK
        missed = np.ones(LOOP, np.float32)
        for other in range(OPPONENTS):
            chance = survey.risk[other]
            loss = weights[first + other]
            bounty = weights[facts.BOUNTY] * survey.worth[other, kind]
            for at in range(LOOP):
                per_point[at] += loss * chance[at]
                always[at] += bounty * chance[at]
                missed[at] *= one - chance[at]
        for at in range(LOOP):
            always[at] -= weights[facts.SETBACKS] * missed[at]
    prey, points = weights[facts.PREY] * survey.fade, weights[facts.PREY_POINTS] * survey.fade
    for at in range(LOOP):
        estimates.prey[at] = prey * survey.prey[at] + points * survey.prey_points[at]


@inner_jit
def _place_value(
    game: Record,
    rules: Record,
    strategy: Record,
    survey: Record,
    estimates: Record,
    piece: int,
    position: int,
    past: int,
    records: int,
    points: float,
    risk: float,
) -> Any:
    """Return what a strategy sees in an own piece on a place, all else left as it is.

    ``risk`` is what it sees in what may become of the piece if it is alone there.
    """
    weights = strategy.weights
    kind = 1 if piece == NOBLE else 0
    fade = survey.fade
    value = weights[facts.STEPS + kind] * strategy.steps[past, position + 1]
    value += weights[facts.MIDPOINTS + kind] * past
    if weights[facts.OPEN + kind] != 0.0:
        opened = open_points(strategy, kind, past, position, records)
        value += weights[facts.OPEN + kind] * fade * opened
    if piece == NOBLE:
        zone = SAFE
        if 0 < position < HOME_PATH:
            zone = CASTLE if IS_CASTLE[position] else REGULAR
        if position == rules.home:
            value += weights[facts.NOBLE_HOME]
        elif zone == CASTLE:
            value += weights[facts.NOBLE_CASTLE]
        elif zone == REGULAR:
            value += weights[facts.NOBLE_REGULAR]
        value += weights[facts.CAPTURE_WORTH] * fade * rules.combat[zone, past, 0]
    elif position == YARD:
        value += weights[facts.YARD_GUARDS] * fade
    elif position == rules.home:
        value += weights[facts.HOME_GUARDS]
    if position < 0 or position >= HOME_PATH:
        return value
    value += weights[facts.AT_STAKE] * points
    at = tile(survey.seat, position)
    company = stack(game, survey.seat, at)
    if piece != NOBLE and game.position[survey.seat, piece] == position:
        company -= 1
    if piece != NOBLE:
        value += estimates.prey[at]
        if company > 0:
            value += weights[facts.STACKED] * (2 if company == 1 else 1)
            value += weights[facts.BARRIER] * fade * survey.near[at] / (company + 1)
    if piece != NOBLE and is_protected(rules, position):
        value += weights[facts.SAFE_GUARDS]
    if company >= (2 if piece == NOBLE else 1):
        return value
    return value + risk


@inner_jit
def _risk_value(
    rules: Record, survey: Record, estimates: Record, piece: int, position: int, points: float
) -> Any:
    """Return what a strategy sees in what may become of a lone piece on a place."""
    if is_protected(rules, position):
        return np.float32(0.0)
    at = tile(survey.seat, position)
    kind = 1 if piece == NOBLE else 0
    return estimates.risk_per_point[kind, at] * points + estimates.risk_always[kind, at]


@inner_jit
def walk(
    game: Record,
    rules: Record,
    strategy: Record,
    survey: Record,
    direction: int,
    mover: int,
    limit: int,
    estimates: Record,
) -> None:
    """Estimate all moves of one mover in one direction, up to ``limit`` steps."""
    seat = survey.seat
    piece = mover if mover < PIECES else mover - TOGETHER
    moving = 1 if mover < PIECES else 2
    weights = strategy.weights
    own_point = per_point(weights)
    kind = 1 if piece == NOBLE else 0
    position = int(game.position[seat, piece])
    past = int(game.midpoint[seat, piece])
    records = int(game.checkpoints[seat, piece])
    points = float(game.progression[seat, piece])
    risk = _risk_value(rules, survey, estimates, piece, position, points)
    place = piece, position, past, records, points, risk
    origin = _place_value(game, rules, strategy, survey, estimates, *place)
    begun = points
    made = 0.0
    if piece != NOBLE:
        estimates.end[direction, mover, 0] = position
        estimates.company[direction, mover, 0] = 0.0
        estimates.guards_taken[direction, mover, 0] = 0
        estimates.losses[direction, mover, 0] = 0.0
        estimates.nobles_taken[direction, mover, 0] = 0
    if position == YARD and piece != NOBLE:
        made -= weights[facts.CREDITS] * survey.fade
    gain = estimates.gain[direction, mover]
    gain[0] = 0.0
    penalty = (weights[facts.PENALTIES] - own_point) * rules.blockade_penalty
    steps_at = facts.FORWARD_BEFORE + 2 * direction
    if piece == NOBLE:
        _note_worth(rules, direction, 0, position, past, estimates)
    steps = 0
    ahead = next_position(position, past, direction) if position != rules.home else position
    stopped = position == rules.home or _is_stopped(game, rules, piece, moving, ahead)
    while steps < limit and not stopped:
        steps += 1
        position = ahead
        if position < HOME_PATH:
            made += weights[steps_at + past]
        bit = NO_CHECKPOINT
        if position == rules.home:
            bit = HOME_BIT
        elif position == MIDPOINT:
            if not past:
                past = 1
                records = 0
                points += rules.midpoint_points[kind]
        elif position < HOME_PATH:
            bit = int(CHECKPOINT_AT[position])
        if bit != NO_CHECKPOINT and not (records >> bit) & 1:
            records |= 1 << bit
            points += rules.checkpoint_points[bit, kind]
        stopped = position == rules.home
        if not stopped:
            ahead = next_position(position, past, direction)
            stopped = _is_stopped(game, rules, piece, moving, ahead)
        if not (stopped or piece == NOBLE or estimates.possible[steps]):
            continue
        risk = _risk_value(rules, survey, estimates, piece, position, points)
        place = piece, position, past, records, points, risk
        value = _place_value(game, rules, strategy, survey, estimates, *place)
        value += (weights[facts.PROGRESSION] + own_point) * (points - begun) + made - origin
        gain[steps] = value
        if piece == NOBLE:
            _note_worth(rules, direction, steps, position, past, estimates)
        else:
            company = weights[facts.STACKED] - risk
            estimates.company[direction, mover, steps] = company
            if moving > 1:
                gain[steps] += company
            estimates.end[direction, mover, steps] = position
            _note_captures(rules, seat, position, direction, mover, steps, estimates)
    if (
        position == rules.home
        or ahead >= HOME_PATH
        or not is_blocked(game, seat, tile(seat, ahead), moving)
    ):
        penalty = 0.0  # nobody, or only own Guards, stopped it
    _fill(estimates, direction, mover, steps, limit, penalty)


@inner_jit
def _is_stopped(game: Record, rules: Record, piece: int, moving: int, ahead: int) -> bool:
    """Tell whether a piece, alone, cannot step on a place (rules 3.5)."""
    seat = game.seat
    if ahead < HOME_PATH and is_blocked(game, seat, tile(seat, ahead), moving):
        return True
    return piece == NOBLE and is_blocked_by_own(game, seat, ahead, rules.home)


@inner_jit
def _note_worth(
    rules: Record, direction: int, steps: int, position: int, past: int, estimates: Record
) -> None:
    """Note what captures are worth once the Noble stands on a place (rules 4.2)."""
    zone = SAFE
    if 0 < position < HOME_PATH:
        zone = CASTLE if IS_CASTLE[position] else REGULAR
    for kind in range(2):
        estimates.worth[direction, steps, kind] = rules.combat[zone, past, kind]


@inner_jit
def _note_captures(
    rules: Record,
    seat: int,
    position: int,
    direction: int,
    mover: int,
    steps: int,
    estimates: Record,
) -> None:
    """Note what a Guard that stops on a place captures there (rules 3.6)."""
    guards = 0
    nobles = 0
    losses = 0.0
    if position < HOME_PATH and not (IS_CASTLE[position] and rules.castles_protect):
        at = tile(seat, position)
        guards = estimates.guards_there[at]
        nobles = estimates.nobles_there[at]
        if guards + nobles > 0:
            losses = estimates.losses_there[at]
            estimates.gain[direction, mover, steps] += losses
    estimates.losses[direction, mover, steps] = losses
    estimates.guards_taken[direction, mover, steps] = guards
    estimates.nobles_taken[direction, mover, steps] = nobles


@inner_jit
def _fill(
    estimates: Record, direction: int, mover: int, steps: int, limit: int, penalty: float
) -> None:
    """Give totals beyond the last step what that step gives, and a penalty for each one more."""
    gain = estimates.gain[direction, mover]
    for total in range(steps + 1, limit + 1):
        gain[total] = gain[steps] + penalty * (total - steps)
        if mover == NOBLE:
            for kind in range(2):
                worth = estimates.worth[direction, steps, kind]
                estimates.worth[direction, total, kind] = worth
            continue
        estimates.end[direction, mover, total] = estimates.end[direction, mover, steps]
        estimates.company[direction, mover, total] = estimates.company[direction, mover, steps]
        taken = estimates.guards_taken[direction, mover, steps]
        estimates.guards_taken[direction, mover, total] = taken
        estimates.losses[direction, mover, total] = estimates.losses[direction, mover, steps]
        taken = estimates.nobles_taken[direction, mover, steps]
        estimates.nobles_taken[direction, mover, total] = taken

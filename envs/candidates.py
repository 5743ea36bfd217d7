"""The generator of candidate turns: few, good, different, each played on a copy and valued.

What it looks at, for each direction: what each piece alone would gain with each total that the
store can make (:mod:`~retinue.envs.estimates`); the best allocations of the rolls by these gains
added up (:mod:`~retinue.envs.allocations`); and the Noble's choices combined with them. The best
of these are played on copies, those of equal outcome counted once, and described by their facts
(:mod:`~retinue.envs.consequences`). The same position always gives the same list.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from retinue.envs import facts
from retinue.envs.actions import MAX_CANDIDATES, clear_turn
from retinue.envs.allocations import allocate
from retinue.envs.consequences import describe, weigh
from retinue.envs.estimates import (
    ESTIMATES,
    NOBLE_STEPS,
    STRATEGY,
    TOGETHER,
    note_places,
    note_targets,
    note_totals,
    per_point,
    walk,
)
from retinue.envs.facts import FACT_COUNT, pack_weights
from retinue.envs.game.board import CHECKPOINTS, GUARDS, NOBLE, PIECES
from retinue.envs.game.dice import GAMMA, mix
from retinue.envs.game.engine import legal_guards, noble_may_move, play
from retinue.envs.game.events import LOG
from retinue.envs.game.jit import inline_jit, inner_jit, wrapping_jit
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.state import GAME, TURN, Record
from retinue.envs.subsets import ALLOCATIONS, WIDTH, count_of, note_subsets
from retinue.envs.survey import SURVEY, fill_ways, survey

MAX_PLANS: Final = MAX_CANDIDATES + MAX_CANDIDATES // 2
LEAST_WIDTH: Final = 8
"""Of the beams, which keep half as many allocations as there are candidates."""
REFINED_PART: Final = 3
"""One in so many candidates comes from changing the best of the others, if that is of use."""

_CHANGES: Final = 6 * (GUARDS + 1) ** 2  # ways to move one roll: its value, from where, to where
_STRIDE: Final = 67  # without a common factor: each is tried once, those alike far apart

_STEP: Final = GAMMA
"""Odd and irregular: what is added after each multiplication by it stays apart."""

CANDIDATE_FIELDS: Final = (
    ("count", "i4"),
    ("direction", "i1", (MAX_CANDIDATES,)),
    ("noble_steps", "i1", (MAX_CANDIDATES,)),
    ("noble_after", "i1", (MAX_CANDIDATES,)),
    ("rolls", "i1", (MAX_CANDIDATES, GUARDS, 6)),
)
"""Fields of a record that holds candidate turns."""

PROPOSALS: Final = np.dtype(
    (
        np.record,
        np.dtype(
            [
                *CANDIDATE_FIELDS,
                ("outcome", "u8", (MAX_CANDIDATES,)),  # the same for turns of equal outcome
                ("value", "f4", (MAX_CANDIDATES,)),
                ("row", "f4", (MAX_CANDIDATES, FACT_COUNT)),
            ],
            align=True,
        ),
    )
)
"""Candidate turns and their facts."""

PLANS: Final = np.dtype(
    (
        np.record,
        np.dtype(
            [
                ("count", "i4"),
                ("value", "f4", (MAX_PLANS,)),  # estimates, in descending order
                ("code", "i4", (MAX_PLANS,)),  # see _plan
                ("given", "i8", (2, WIDTH, GUARDS)),  # packed counts, by direction and row
            ],
            align=True,
        ),
    )
)
"""Turns by their estimates."""

Scratch = Any
"""What one decision needs while it is made: arrays ``(1,)`` of ``SURVEY``, ``ESTIMATES``,
``ALLOCATIONS``, ``PLANS``, ``GAME`` (a copy to play on), ``TURN`` and ``LOG``.

A compiled record does not keep its array alive, and an array is freed after its last mention. So
whatever takes records out of arrays is given them by a caller, which holds them meanwhile."""


@inner_jit
def new_scratch() -> Scratch:
    """Return scratch memory for decisions."""
    log = np.empty(1, LOG)
    log[0].on = 0
    return (
        np.empty(1, SURVEY),
        np.empty(1, ESTIMATES),
        np.empty(1, ALLOCATIONS),
        np.empty(1, PLANS),
        np.empty(1, GAME),
        np.empty(1, TURN),
        log,
    )


def strategy_memory(
    ruleset: Ruleset, weights: Mapping[str, float], count: int, *, at_random: bool = False
) -> np.ndarray[Any, np.dtype[Any]]:
    """Return what a strategy knows, a ``STRATEGY`` array ``(1,)``.

    Args:
        ruleset: the rules.
        weights: by fact; what is not named weighs nothing.
        count: of candidates.
        at_random: they are drawn, not proposed.
    """
    memory = np.zeros(1, STRATEGY)
    fill_ways(memory, ruleset)
    memory["weights"] = pack_weights(weights)
    memory["count"] = count
    memory["at_random"] = at_random
    return memory


@inline_jit
def _plan(direction: int, noble: int, row: int) -> int:
    """Return a turn as one number: its direction, Noble choice (0 to 12) and allocation's row."""
    return direction | (noble << 1) | (row << 5)


@inline_jit
def _insert_plan(plans: Record, most: int, value: float, code: int) -> None:
    """Put a turn among the best by estimate."""
    at = plans.count
    if at == most:
        at -= 1
        if value <= plans.value[at]:
            return
    else:
        plans.count = at + 1
    while at > 0 and plans.value[at - 1] < value:
        plans.value[at] = plans.value[at - 1]
        plans.code[at] = plans.code[at - 1]
        at -= 1
    plans.value[at] = value
    plans.code[at] = code


@inner_jit
def _plan_direction(
    game: Record,
    rules: Record,
    strategy: Record,
    scratch: Scratch,
    direction: int,
    largest: int,
    most: int,
) -> None:
    """Add the turns of one direction to the plans."""
    weights = strategy.weights
    estimates, allocations, plans = scratch[1][0], scratch[2][0], scratch[3][0]
    movable = noble_may_move(game, rules)
    # The beam takes captures for what they are worth at best.
    worth = np.zeros(2, np.float32)
    steps_open = NOBLE_STEPS if movable else 0
    for steps in range(steps_open + 1):
        for kind in range(2):
            worth[kind] = max(worth[kind], estimates.worth[direction, steps, kind])
    legal = legal_guards(game, rules)
    width = min(max(LEAST_WIDTH, strategy.count // 2), WIDTH)
    beam = allocate(game, legal, direction, largest, width, worth, weights, estimates, allocations)
    order = _noble_order(estimates, direction, steps_open)
    point = weights[facts.COMBAT] + per_point(weights)
    for row in range(allocations.rows[beam]):
        guards = allocations.guards_taken[beam, row]
        nobles = allocations.nobles_taken[beam, row]
        for guard in range(GUARDS):
            plans.given[direction, row, guard] = allocations.given[beam, row, guard]
        value = allocations.rest[beam, row]
        value += guards * weights[facts.GUARDS_CAPTURED] + nobles * weights[facts.NOBLES_CAPTURED]
        for index in range(steps_open + 1):
            steps = order[index]
            moved = value + estimates.gain[direction, NOBLE, steps]
            if guards + nobles == 0:
                if plans.count == most and moved <= plans.value[most - 1]:
                    break  # and all further steps of the Noble
                _insert_plan(plans, most, moved, _plan(direction, steps, row))
                continue
            for after in range(2 if steps > 0 else 1):
                stands = 0 if after else steps
                fought = guards * estimates.worth[direction, stands, 0]
                fought += nobles * estimates.worth[direction, stands, 1]
                code = _plan(direction, steps + NOBLE_STEPS * after, row)
                _insert_plan(plans, most, moved + point * fought, code)


@inner_jit
def _noble_order(estimates: Record, direction: int, most: int) -> Any:
    """Return the Noble's steps, those that gain most first."""
    order = np.arange(NOBLE_STEPS + 1)
    gain = estimates.gain[direction, NOBLE]
    for steps in range(1, most + 1):
        at = steps
        while at > 0 and gain[order[at - 1]] < gain[steps]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = steps
    return order


@wrapping_jit
def _outcome(game: Record, seat: int) -> Any:
    """Return a number that is the same for turns that lead to the same, uint64."""
    word = np.uint64(game.credits[seat])
    for piece in range(PIECES):
        reached = (int(game.position[seat, piece]) + 1) << 1 | int(game.midpoint[seat, piece])
        reached = reached << CHECKPOINTS | int(game.checkpoints[seat, piece])
        word = word * _STEP + np.uint64(reached)
        word = word * _STEP + np.uint64(game.progression[seat, piece])
    for value in range(6):
        word = word * _STEP + np.uint64(game.store[seat, value])
    return mix(word * _STEP + np.uint64(int(game.combat[seat]) + (1 << 60)))


@inner_jit
def _write_turn(direction: int, noble: int, given: Any, turn: Record) -> None:
    """Set a ``TURN`` from packed counts for each Guard."""
    turn.direction = direction
    turn.noble_steps = noble if noble <= NOBLE_STEPS else noble - NOBLE_STEPS
    turn.noble_after = 1 if noble > NOBLE_STEPS else 0
    for guard in range(GUARDS):
        for value in range(6):
            turn.rolls[guard, value] = count_of(given[guard], value)


@inner_jit
def play_on_copy(game: Record, rules: Record, scratch: Scratch) -> Record:
    """Play the turn in ``scratch`` on a copy there; return the copy, a ``GAME``."""
    _, _, _, _, afters, turns, logs = scratch
    afters[0] = game
    play(afters[0], rules, turns[0], logs[0])
    return afters[0]


@inner_jit
def describe_copy(game: Record, rules: Record, strategy: Record, scratch: Scratch, row: Any) -> Any:
    """Write the facts of the turn just played on a copy; return its value, float32."""
    view, after, turn = scratch[0][0], scratch[4][0], scratch[5][0]
    describe(game, after, rules, strategy, view, turn.direction, turn.noble_after, row)
    return weigh(row, strategy.weights)


@inner_jit
def _try(
    game: Record, rules: Record, strategy: Record, scratch: Scratch, proposals: Record
) -> None:
    """Add the turn in ``scratch`` to the proposals unless one of the same outcome is there."""
    turn = scratch[5][0]
    outcome = _outcome(play_on_copy(game, rules, scratch), game.seat)
    count = proposals.count
    for index in range(count):
        if proposals.outcome[index] == outcome:
            return
    value = describe_copy(game, rules, strategy, scratch, proposals.row[count])
    proposals.outcome[count] = outcome
    proposals.value[count] = value
    proposals.direction[count] = turn.direction
    proposals.noble_steps[count] = turn.noble_steps
    proposals.noble_after[count] = turn.noble_after
    for guard in range(GUARDS):
        for value_ in range(6):
            proposals.rolls[count, guard, value_] = turn.rolls[guard, value_]
    proposals.count = count + 1


@inner_jit
def _has_company(game: Record, guard: int) -> bool:
    """Tell whether another Guard stands with one, on the loop or the Home path."""
    place = game.position[game.seat, guard]
    for other in range(GUARDS):
        if other != guard and place >= 0 and game.position[game.seat, other] == place:
            return True
    return False


@inner_jit
def best_of(proposals: Record) -> int:
    """Return which candidate has the highest value, the first of several."""
    best = 0
    for index in range(1, proposals.count):
        if proposals.value[index] > proposals.value[best]:
            best = index
    return best


@inner_jit
def copy_candidate(proposals: Record, index: int, turn: Record) -> None:
    """Set a ``TURN`` to a candidate."""
    turn.direction = proposals.direction[index]
    turn.noble_steps = proposals.noble_steps[index]
    turn.noble_after = proposals.noble_after[index]
    for guard in range(GUARDS):
        for value in range(6):
            turn.rolls[guard, value] = proposals.rolls[index, guard, value]


@inner_jit
def _refine(
    game: Record, rules: Record, legal: int, strategy: Record, scratch: Scratch, proposals: Record
) -> None:
    """Try small changes of the best turn, and of what becomes better by them, while there is room.

    That finds what the estimates cannot see: what pieces do to each other.
    """
    turn = scratch[5][0]
    begun = -1
    while proposals.count < strategy.count:
        best = best_of(proposals)
        if best == begun:
            return
        begun = best
        steps_open = NOBLE_STEPS if noble_may_move(game, rules) else 0
        for choice in range(2 * steps_open + 1):
            if proposals.count < strategy.count:
                copy_candidate(proposals, best, turn)
                turn.noble_steps = choice if choice <= NOBLE_STEPS else choice - NOBLE_STEPS
                turn.noble_after = 1 if choice > NOBLE_STEPS else 0
                _try(game, rules, strategy, scratch, proposals)
        for index in range(_CHANGES):
            if proposals.count == strategy.count:
                return
            pair, value = divmod(index * _STRIDE % _CHANGES, 6)
            source, target = divmod(pair, GUARDS + 1)
            copy_candidate(proposals, best, turn)
            if _move_roll(game, legal, turn, value, source, target):
                _try(game, rules, strategy, scratch, proposals)


@inner_jit
def _move_roll(
    game: Record, legal: int, turn: Record, value: int, source: int, target: int
) -> bool:
    """Take one roll from a Guard, or what is kept (``GUARDS``), for another; tell if it can be."""
    if source == target or (target < GUARDS and not (legal >> target) & 1):
        return False
    if source < GUARDS:
        if turn.rolls[source, value] == 0:
            return False
        turn.rolls[source, value] -= 1
    else:
        given = 0
        for guard in range(GUARDS):
            given += turn.rolls[guard, value]
        if given == game.store[game.seat, value]:
            return False
    if target < GUARDS:
        turn.rolls[target, value] += 1
    return True


@inner_jit
def propose(
    game: Record, rules: Record, strategy: Record, scratch: Scratch, proposals: Record
) -> None:
    """Write candidate turns of the seat to move, the one that moves nothing first.

    Args:
        game: ``GAME``, its roll received.
        rules: ``RULES``.
        strategy: ``STRATEGY``, whose weights guide the choice of candidates.
        scratch: ``SCRATCH``.
        proposals: ``PROPOSALS``; ``count`` of them are written.
    """
    view, estimates, plans, turn = scratch[0][0], scratch[1][0], scratch[3][0], scratch[5][0]
    proposals.count = 0
    survey(game, rules, strategy, view)
    clear_turn(turn)
    _try(game, rules, strategy, scratch, proposals)
    largest = note_totals(game, estimates)
    note_targets(game, rules, strategy.weights, view, estimates)
    note_places(strategy.weights, view, estimates)
    plans.count = 0
    note_subsets(game, rules, strategy.weights, view.fade, scratch[2][0])
    legal = legal_guards(game, rules)
    most = strategy.count + strategy.count // 2
    for direction in range(2):
        for guard in range(GUARDS):
            if (legal >> guard) & 1:
                walk(game, rules, strategy, view, direction, guard, largest, estimates)
                if _has_company(game, guard):
                    walk(
                        game, rules, strategy, view, direction, guard + TOGETHER, largest, estimates
                    )
        walk(game, rules, strategy, view, direction, NOBLE, NOBLE_STEPS, estimates)
        _plan_direction(game, rules, strategy, scratch, direction, largest, most)
    begun, count = 0, strategy.count
    for last in range(2):
        most_now = count if last else count - count // REFINED_PART
        for index in range(begun, plans.count):
            if proposals.count >= most_now:
                break
            begun = index + 1
            code = plans.code[index]
            direction = code & 1
            _write_turn(direction, (code >> 1) & 15, plans.given[direction, code >> 5], turn)
            _try(game, rules, strategy, scratch, proposals)
        if not last:
            _refine(game, rules, legal, strategy, scratch, proposals)

"""One game under several hands, compiled: whose choice is due, what is seen and what it earned.

:func:`serve` treats one game of a batch; :mod:`retinue.envs.batch` runs it over all of them.
"""

from typing import Any, Final

import numpy as np

from retinue.envs.actions import (
    CANDIDATES,
    DRAFT_FIELDS,
    MAX_MASK,
    MAX_PARTS,
    STEPS,
    clear_turn,
    close_draft,
    copy_turn,
    encode_choice_of_plan,
    encode_give,
    encode_plan,
    encode_rolls,
    start_draft,
    take_step,
    take_turn,
    update_give_mask,
    write_candidates_mask,
    write_give_mask,
    write_plan_mask,
    write_turn_mask,
)
from retinue.envs.estimates import STRATEGY
from retinue.envs.game.board import SEATS
from retinue.envs.game.dice import derive, draw, episode_seed
from retinue.envs.game.engine import LEGAL, place, play, roll, total
from retinue.envs.game.events import LOG
from retinue.envs.game.jit import Callback, call_at, inline_jit, inner_jit, record_at
from retinue.envs.game.ruleset import RULES
from retinue.envs.game.state import GAME, OVER, ROLL, TURN, Record, start_game
from retinue.envs.observation import MAX_PLACES, MAX_SIZE, PLACE_FEATURES, encode_state
from retinue.envs.offers import OFFER, take_candidate, withdraw
from retinue.envs.rewards import value

CALLER: Final = -1
"""In ``control``: the seat is played by whoever calls the environment."""
ANY_SEAT: Final = 0
"""As ``seats``: the caller plays one seat, drawn anew for each match."""
NO_SEAT: Final = -1
"""As ``seats``: agents play all four, as ``control`` says before the match starts."""
MAX_OPPONENTS: Final = 64

STEP: Final = 0
RESET: Final = 1
RESUME: Final = 2
LOOK: Final = 3
"""Commands of :func:`serve` and, the last one, of :func:`consider`."""

ENDED: Final = 1
WAITING: Final = 1 << 20
FAULT: Final = 1 << 40
MAX_GAMES: Final = WAITING - 1

# Purposes for which chance is derived from a match's seed.
_FOR_SEAT: Final = 1 << 20
_FOR_LINE_UP: Final = 1 << 21
_FOR_AGENTS: Final = 1 << 22

_TURN_BYTES: Final = TURN.itemsize

SETUP = np.dtype(
    (
        np.record,
        np.dtype(
            [
                ("encoding", "i4"),
                ("reward", "i4"),
                ("divisor", "f8"),
                ("place_bonus", "f8"),  # before it is divided
                ("make_offer", "i8"),  # address of what proposes candidates; 0 if nothing does
                ("draw_opponents", "i4"),  # 1: each seat's agent is drawn for each match
                ("policies", "i8", (MAX_OPPONENTS,)),  # address; 0 if kernels cannot call it
                ("memories", "i8", (MAX_OPPONENTS,)),  # address of what each policy knows
                ("places", "f4", (SEATS, 2, MAX_PLACES, len(PLACE_FEATURES))),  # place_table
            ],
            align=True,
        ),
    )
)
"""What is the same for all games of a batch."""

SLOT = np.dtype(
    (
        np.record,
        np.dtype(
            [
                # What every decision touches comes first, so that it shares few cache lines.
                *DRAFT_FIELDS,
                ("waiting", "i4"),  # 1: an agent outside the kernels is to move
                ("fault", "i4"),  # why an agent's turn was refused
                ("complete", "u1"),  # the turn under consideration is (consider only)
                ("action", "i8", (MAX_PARTS,)),
                ("mask", "u1", (MAX_MASK,)),
                ("observation", "f4", (MAX_SIZE,)),
                ("seats", "i4"),  # bit mask of the caller's seats, or ANY_SEAT or NO_SEAT
                ("opponents", "i4"),  # how many agents the other seats are taken from
                ("pool", "i1", (MAX_OPPONENTS,)),  # their indices
                ("control", "i4", (SEATS,)),  # CALLER or an agent's index
                ("delivered", "f8", (SEATS,)),  # value that each seat was given as reward
                ("final_totals", "i8", (SEATS,)),
                ("final_places", "i4", (SEATS,)),
                ("base_seed", "u8"),
                ("episode", "i8"),
                ("seed", "u8"),  # of this match's dice
                ("agents_key", "u8"),  # from which agents' chance is derived
                ("kept_at", "i8"),  # address of the match's turns; 0 if they are not kept
            ],
            align=True,
        ),
    )
)
"""What a batch keeps for each game beside the game itself."""

OUTCOME = np.dtype(
    (
        np.record,
        np.dtype(
            [
                ("reward", "f8"),
                ("rewards", "f8", (SEATS,)),  # what the last step paid to each seat
                ("acting", "i4"),  # the caller's seat whose decision is due, or was the last
                ("terminated", "u1"),
                ("illegal", "u1"),
                ("paid", "u1"),  # 1: some of the rewards may not be 0
            ],
            align=True,
        ),
    )
)
"""What all callers read after each step, apart from the slots: close together for many games."""


@inner_jit
def decision_key(slot: Record, game: Record) -> Any:
    """Return the chance that belongs to the decision due in a game, uint64."""
    return derive(slot.agents_key, int(game.turn))


@inner_jit
def _take_seats(slot: Record, setup: Record) -> int:
    """Decide who plays which seat of a match that starts; return the caller's first seat."""
    seats = int(slot.seats)
    if seats == NO_SEAT:
        return 0
    if seats == ANY_SEAT:
        seats = 1 << draw(derive(slot.seed, _FOR_SEAT), 0, SEATS)
    first = 0
    while first < SEATS - 1 and not (seats >> first) & 1:
        first += 1
    agents = 0
    for turned in range(SEATS):
        seat = (first + turned) % SEATS
        if (seats >> seat) & 1:
            slot.control[seat] = CALLER
        elif setup.draw_opponents:
            drawn = draw(derive(slot.seed, _FOR_LINE_UP), turned, slot.opponents)
            slot.control[seat] = slot.pool[drawn]
        else:
            slot.control[seat] = slot.pool[agents % slot.opponents]
            agents += 1
    return first


@inner_jit
def _start_match(game: Record, slot: Record, outcome: Record, setup: Record, rules: Record) -> None:
    """Set a game to the start of its next match."""
    slot.seed = episode_seed(slot.base_seed, slot.episode)
    slot.agents_key = derive(slot.seed, _FOR_AGENTS)
    slot.episode += 1
    for seat in range(SEATS):
        slot.delivered[seat] = 0.0
    start_game(game, rules)
    outcome.acting = _take_seats(slot, setup)


@inline_jit
def _keep(game: Record, turn: Record, slot: Record, rules: Record) -> None:
    """Keep a turn that is about to be played, if turns are kept and it is one of the clock's."""
    if slot.kept_at != 0 and int(game.turn) * rules.turn_seconds < rules.clock_seconds:
        copy_turn(turn, record_at(slot.kept_at + _TURN_BYTES * int(game.turn), TURN))


@inner_jit
def _run_agents(
    game: Record, turn: Record, slot: Record, setup: Record, rules: Record, log: Record
) -> None:
    """Play on until a decision is due that kernels cannot take, or the match is over."""
    while game.phase != OVER:
        if game.phase == ROLL:
            roll(game, rules, slot.seed)
        agent = slot.control[game.seat]
        if agent == CALLER:
            return
        address = setup.policies[agent]
        if address == 0:
            slot.waiting = 1
            return
        clear_turn(turn)
        key = decision_key(slot, game)
        call_at(address, (game, rules, key, turn, setup.memories[agent]))
        _keep(game, turn, slot, rules)
        slot.fault = play(game, rules, turn, log)
        if slot.fault != LEGAL:
            return


@inner_jit
def _observe(
    game: Record,
    slot: Record,
    offer: Record,
    guide: Record,
    seat: int,
    setup: Record,
    rules: Record,
    decides: bool,
) -> None:
    """Write observation and mask for a new decision of a seat, or for one without any."""
    if setup.encoding == CANDIDATES:
        if decides:
            call_at(setup.make_offer, (game, rules, guide, offer))
        else:
            withdraw(guide, offer)
        encode_state(game, rules, setup.places, seat, slot.legal, offer.observation)
        write_candidates_mask(offer.count, slot.mask, guide.count)
        return
    out = slot.observation
    encode_state(game, rules, setup.places, seat, slot.legal, out)
    if setup.encoding == STEPS:
        encode_plan(slot, rules, out)
        write_plan_mask(slot, slot.mask)
    else:
        encode_rolls(slot, out, rules.store_capacity)
        write_turn_mask(slot, slot.mask, rules.store_capacity)


@inner_jit
def _pay(game: Record, slot: Record, setup: Record, seat: int) -> Any:
    """Return the reward due to a seat, float64, and note that it was given."""
    now = value(game, seat, setup.reward, setup.place_bonus)
    due = (now - slot.delivered[seat]) / setup.divisor
    slot.delivered[seat] = now
    return due


@inner_jit
def _finish(game: Record, turn: Record, slot: Record, outcome: Record, setup: Record) -> None:
    """Note the end of a match: final rewards of the caller's seats, totals and places."""
    for seat in range(SEATS):
        due = 0.0
        if slot.control[seat] == CALLER:
            due = _pay(game, slot, setup, seat)
        outcome.rewards[seat] = due
        slot.final_totals[seat] = total(game, seat)
        slot.final_places[seat] = place(game, seat)
    outcome.reward = outcome.rewards[outcome.acting]
    outcome.paid = 1
    outcome.terminated = 1
    close_draft(slot, turn)


@inner_jit
def _take_action(
    turn: Record, slot: Record, outcome: Record, offer: Record, setup: Record, rules: Record
) -> bool:
    """Add the caller's action to the turn; return whether the turn is complete."""
    if setup.encoding == CANDIDATES:
        outcome.illegal = take_candidate(offer, slot.action[0], turn) >> 1
        return True
    if setup.encoding != STEPS:
        outcome.illegal = take_turn(slot, turn, slot.action, rules.store_capacity) >> 1
        return True
    action = int(slot.action[0])
    was_planned = slot.planned
    taken = take_step(slot, turn, action)
    outcome.illegal = taken >> 1
    if taken & 1:
        return True
    if was_planned:
        update_give_mask(slot, slot.mask, action)
        encode_give(slot, rules, turn, action, slot.observation)
    else:
        write_give_mask(slot, slot.mask)
        encode_choice_of_plan(turn, slot.observation)
    return False


@inner_jit
def _forget_payment(outcome: Record) -> None:
    outcome.paid = 0
    outcome.reward = 0.0
    for seat in range(SEATS):
        outcome.rewards[seat] = 0.0


def serve(
    game: Record,
    turn: Record,
    slot: Record,
    outcome: Record,
    offer: Record,
    guide: Record,
    setup: Record,
    rules: Record,
    log: Record,
    command: int,
) -> int:
    """Carry out one command in one game, up to the caller's next decision or the match's end.

    ``STEP`` takes the caller's ``slot.action``; ``RESET`` starts the next match; ``RESUME`` plays
    ``turn``, which an agent outside the kernels chose. A seat's first reward comes with its second
    decision: before the first one there is no decision that it could be the reward of.

    Returns:
        0, or what the caller of the kernel has to look after, such that the sum over games counts
        each: ``ENDED``, ``WAITING``, ``FAULT``.
    """
    if command != RESUME:
        outcome.terminated = 0
        outcome.illegal = 0
        if outcome.paid:
            _forget_payment(outcome)
    slot.waiting = 0
    slot.fault = LEGAL
    if command == RESET:
        _start_match(game, slot, outcome, setup, rules)
    else:
        if command == STEP and not _take_action(turn, slot, outcome, offer, setup, rules):
            return 0
        _keep(game, turn, slot, rules)
        slot.fault = play(game, rules, turn, log)
    if slot.fault == LEGAL:
        _run_agents(game, turn, slot, setup, rules, log)
    if slot.fault != LEGAL:
        return FAULT
    if slot.waiting:
        return WAITING
    over = game.phase == OVER
    if over:
        _finish(game, turn, slot, outcome, setup)
    else:
        outcome.acting = game.seat
        if game.turns_taken[game.seat] > 0:
            outcome.reward = _pay(game, slot, setup, game.seat)
            outcome.rewards[game.seat] = outcome.reward
            outcome.paid = 1
        start_draft(game, rules, slot, turn)
    _observe(game, slot, offer, guide, outcome.acting, setup, rules, not over)
    return ENDED if over else 0


def consider(
    game: Record,
    turn: Record,
    slot: Record,
    outcome: Record,
    offer: Record,
    guide: Record,
    setup: Record,
    rules: Record,
    log: Record,
    command: int,
) -> int:
    """Choose a turn in a game that somebody else plays: like :func:`serve`, but nothing is played.

    ``RESET`` begins a turn of the seat to move, ``STEP`` takes the next action of it. ``LOOK``
    makes the observation of seat ``outcome.acting``, which has nothing to decide.

    Returns:
        0; ``slot.complete`` tells whether the turn is.
    """
    if command == LOOK:
        close_draft(slot, turn)
        _observe(game, slot, offer, guide, outcome.acting, setup, rules, False)
    elif command == RESET:
        slot.complete = 0
        start_draft(game, rules, slot, turn)
        _observe(game, slot, offer, guide, game.seat, setup, rules, True)
    elif _take_action(turn, slot, outcome, offer, setup, rules):
        slot.complete = 1
    return 0


_ARGUMENTS: Final = (GAME, TURN, SLOT, OUTCOME, OFFER, STRATEGY, SETUP, RULES, LOG, np.int64)

SERVE: Final = Callback(serve, _ARGUMENTS)

CONSIDER: Final = Callback(consider, _ARGUMENTS)

"""What happened in matches, counted for each seat: made by replaying their turns, compiled."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numba import prange

from retinue.envs.consequences import count_steps
from retinue.envs.facts import BACKWARD_BEFORE, FACT_COUNT, FORWARD_BEFORE
from retinue.envs.game.board import (
    BACKWARD,
    FORWARD,
    LOOP,
    NOBLE,
    PIECES,
    SEATS,
    YARD,
    offset_seen_by,
)
from retinue.envs.game.engine import play, roll, stored_rolls, total
from retinue.envs.game.events import BLOCKED, DETAIL, KIND, LOG, POINTS
from retinue.envs.game.jit import inner_jit, jit, parallel_jit
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.state import GAME, Record, start_game
from retinue.envs.parallel import MAX_THREADS, pool_of

PATHS: Final = ("forward", "backward", "forward then backward", "backward then forward")
"""How a piece went to its midpoint, then on: the first two keep one direction, the others switch
there. These are the sources' three path strategies, the third in its two directions."""

GUARD_OR_NOBLE: Final = 2

TALLY: Final = np.dtype(
    [
        ("captured", "i4", (GUARD_OR_NOBLE,)),  # pieces of others
        ("lost", "i4", (GUARD_OR_NOBLE,)),  # own pieces
        ("points_lost", "i8"),  # progression that went with them
        ("penalty", "i8"),  # points that blockades took, 0 or more
        ("wasted", "i4"),  # steps that blockades took
        ("exits", "i4"),
        ("midpoints", "i4"),
        ("homes", "i4"),
        ("finishing_round", "i4"),  # own turns until all pieces were Home; 0 if they never were
        ("rolled", "i4"),  # dice
        ("kept", "i4"),  # rolls in the store after each turn, added up
        ("left", "i4"),  # rolls in the store at the end
        ("turns", "i4"),
        ("moved", "i4"),  # turns that moved a piece
        ("forward", "i4"),  # of these
        ("paths", "i4", (GUARD_OR_NOBLE, len(PATHS))),  # lives that came past the midpoint
        # By loop offset, counted from the own entering tile:
        ("stood", "i4", (LOOP,)),  # own pieces after each own turn, added up
        ("lost_at", "i4", (LOOP,)),
        ("captured_at", "i4", (LOOP,)),
    ],
    align=True,
)
"""What one seat did in one match. A life of a piece goes from the Yard to capture or the match's
end; its path is that of most steps before, and of most steps past, the midpoint."""

_WAYS: Final = np.dtype((np.record, np.dtype([("steps", "f4", (SEATS, PIECES, FACT_COUNT))])))
"""Steps of each piece in its present life, where ``count_steps`` writes them."""


@inner_jit
def _end_life(own: Record, piece: int, steps: Any) -> None:
    """Count the path of a life that came past the midpoint."""
    before_forward, past_forward = steps[FORWARD_BEFORE], steps[FORWARD_BEFORE + 1]
    before_backward, past_backward = steps[BACKWARD_BEFORE], steps[BACKWARD_BEFORE + 1]
    if past_forward + past_backward > 0.0:
        first = BACKWARD if before_backward > before_forward else FORWARD
        then = BACKWARD if past_backward > past_forward else FORWARD
        path = first if first == then else 2 + first
        own.paths[1 if piece == NOBLE else 0, path] += 1
    steps[:] = 0.0


@inner_jit
def _count_own(
    before: Record, after: Record, rules: Record, turn: Record, own: Record, ways: Record
) -> None:
    """Count what the seat that moved did with its own pieces."""
    seat = before.seat
    moved = 0
    for piece in range(PIECES):
        start, end = int(before.position[seat, piece]), int(after.position[seat, piece])
        was_past, is_past = before.midpoint[seat, piece], after.midpoint[seat, piece]
        if start != end or was_past != is_past:
            moved = 1
            steps = ways.steps[seat, piece]
            count_steps(start, end, was_past, is_past, turn.direction, steps)
        own.exits += 1 if start == YARD and end != YARD else 0
        own.midpoints += 1 if is_past > was_past else 0
        own.homes += 1 if start != end and end == rules.home else 0
        if 0 <= end < LOOP:
            own.stood[end] += 1
    own.turns += 1
    own.moved += moved
    if turn.direction == FORWARD:
        own.forward += moved
    own.kept += stored_rolls(after, seat)
    if after.finished > before.finished:
        own.finishing_round = after.turns_taken[seat]


@inner_jit
def _count_captures(before: Record, after: Record, tallies: Any, ways: Record) -> None:
    """Count what the seat that moved took from the others."""
    seat = before.seat
    for other in range(SEATS):
        for piece in range(PIECES):
            place = int(before.position[other, piece])
            if other == seat or place == YARD or after.position[other, piece] != YARD:
                continue
            kind = 1 if piece == NOBLE else 0
            tallies[seat].captured[kind] += 1
            tallies[seat].captured_at[offset_seen_by(seat, other, place)] += 1
            tallies[other].lost[kind] += 1
            tallies[other].lost_at[place] += 1
            tallies[other].points_lost += before.progression[other, piece]
            _end_life(tallies[other], piece, ways.steps[other, piece])


@inner_jit
def _count_blockades(log: Record, own: Record) -> None:
    for row in range(log.count):
        if log.rows[row, KIND] == BLOCKED:
            own.wasted += log.rows[row, DETAIL]
            own.penalty -= log.rows[row, POINTS]


@inner_jit
def _replay(memory: Any, rules: Record, seed: Any, turns: Any, tallies: Any, rounds: Any) -> None:
    """Replay one match into its rows of the results."""
    games, logs, all_ways = memory
    before, game, log, ways = games[0], games[1], logs[0], all_ways[0]
    start_game(game, rules)
    log.on = 1
    ways.steps[:] = 0.0
    for index in range(turns.shape[0]):
        roll(game, rules, seed)
        own = tallies[game.seat]
        own.rolled += game.dice
        games[0] = game
        log.count = 0
        play(game, rules, turns[index], log)
        _count_own(before, game, rules, turns[index], own, ways)
        _count_captures(before, game, tallies, ways)
        _count_blockades(log, own)
        for seat in range(SEATS):
            rounds[seat, index // SEATS :] = total(game, seat)
    for seat in range(SEATS):
        tallies[seat].left = stored_rolls(game, seat)
        for piece in range(PIECES):
            _end_life(tallies[seat], piece, ways.steps[seat, piece])


@jit
def _replay_at(
    index: int, rules: Any, seeds: Any, turns: Any, starts: Any, tallies: Any, rounds: Any
) -> None:
    memory = np.empty(2, GAME), np.empty(1, LOG), np.empty(1, _WAYS)
    own_turns = turns[starts[index] : starts[index + 1]]
    _replay(memory, rules[0], seeds[index], own_turns, tallies[index], rounds[index])


@parallel_jit
def _replay_all(rules: Any, seeds: Any, turns: Any, starts: Any, tallies: Any, rounds: Any) -> None:
    for index in prange(seeds.shape[0]):
        _replay_at(index, rules, seeds, turns, starts, tallies, rounds)


def tally(
    ruleset: Ruleset, seeds: Any, turns: Sequence[Any], threads: int | None = None
) -> tuple[np.ndarray[Any, np.dtype[Any]], np.ndarray[Any, np.dtype[np.int64]]]:
    """Count what each seat did in matches that were played from the start.

    Args:
        ruleset: that they were played under.
        seeds: of their dice, integers ``(n,)``.
        turns: of each match, a ``TURN`` array, legal.
        threads: by default all that Numba may use.

    Returns:
        ``TALLY`` ``(n, 4)``, and totals after each round (four turns) of the match, int64 ``(n, 4,
        rounds)``; after a match's end they stay as they are.
    """
    tallies = np.zeros((len(turns), SEATS), TALLY)
    rounds = np.zeros((len(turns), SEATS, -(-ruleset.turns // SEATS)), np.int64)
    starts = np.cumsum([0, *map(len, turns)])
    rules = np.array([ruleset.packed])
    with pool_of(threads or MAX_THREADS):
        _replay_all(
            rules, np.asarray(seeds, np.uint64), np.concatenate(turns), starts, tallies, rounds
        )
    return tallies, rounds

"""Replays matches of the engine with the referee and compares them, turn by turn.

A module of its own, without the engine, so that a process that only compares starts quickly.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from referee import Event, Referee

ROLL_KEYS = ("seat", "dice", "rolled", "credits_earned")
TURN_KEYS = ("direction", "noble_steps", "noble_after", "rolls")
FINISH_KEYS = ("finished", "finish_order")


class Job(NamedTuple):
    """Matches of the engine as plain data: lists and NumPy arrays, by match and turn."""

    title: str
    rules: dict[str, Any]
    first_seed: int
    starts: list[dict[str, Any]]
    """STATE at the start of each match."""
    lengths: list[int]
    facts: dict[str, Any]
    """Arrays: ``ROLL_KEYS``, ``legal`` (a bit for each piece), ``TURN_KEYS``, ``FINISH_KEYS``."""
    after: Any
    """Array, int32: the state after each turn, its numbers in the order of ``STATE_KEYS``."""
    results: list[dict[str, Any]]
    events: list[list[list[Event]]] | None = None


class Outcome(NamedTuple):
    """The first few differences in words, and how often what happened."""

    problems: list[str]
    counts: Counter[str]


def compare(job: Job) -> Outcome:
    """Replay all matches of a job."""
    outcome = Outcome([], Counter())
    for match in range(len(job.lengths)):
        problem = _compare_match(job, match, outcome.counts)
        if problem:
            outcome.problems.append(f"{job.title}, seed {job.first_seed + match}, {problem}")
        if len(outcome.problems) == 3:
            break
    return outcome


def _compare_match(job: Job, match: int, counts: Counter[str]) -> str:
    """Replay one match; return what differs first, or nothing."""
    referee = Referee(job.rules, job.starts[match])
    length = job.lengths[match]
    rows = _rows(job, match, (*ROLL_KEYS, *FINISH_KEYS, "legal"))
    turns = [_turn(*choice) for choice in _rows(job, match, TURN_KEYS)]
    states = job.after[match].tolist()
    for number in range(length):
        seat, dice, rolled, earned, finished, finish_order, legal = rows[number]
        rolled, finish_order = rolled[:dice], finish_order[:finished]
        grace = _is_grace(referee, rolled)
        engine: tuple[Any, ...] = (seat, earned, legal)
        try:
            found: tuple[Any, ...] = (referee.seat, referee.roll(rolled), _may_move(referee))
            events = referee.play(turns[number])
        except ValueError as error:
            found, events = (repr(error),), []
        problem = ""
        if engine != found:
            problem = f"seat, credits earned, who may move: engine {engine}, referee {found}"
        elif states[number] != referee.numbers():
            problem = _differences(job.after[match, number], referee)
        elif finish_order != referee.finish_order:
            problem = f"finished: engine {finish_order}, referee {referee.finish_order}"
        elif job.events is not None and job.events[match][number] != events:
            problem = f"events:\n  engine  {job.events[match][number]}\n  referee {events}"
        if problem:
            return f"turn {number}, seat {seat}, dice {rolled}, {turns[number]}: {problem}"
        _count(counts, referee, seat, events, grace, earned)
    result = referee.result() if referee.over else None
    if result != job.results[match]:
        return f"after {length} turns: engine {job.results[match]}, referee {result}"
    counts["split"] += referee.splits
    counts[f"end by {job.results[match]['reason']}"] += 1
    counts["shared place"] += len(set(job.results[match]["places"])) < 4
    return ""


def _rows(job: Job, match: int, keys: Iterable[str]) -> list[tuple[Any, ...]]:
    """Return some facts of a match, one row a turn."""
    return list(zip(*(job.facts[key][match].tolist() for key in keys), strict=True))


def _count(
    counts: Counter[str],
    referee: Referee,
    seat: int,
    events: list[Event],
    grace: bool,
    earned: int,
) -> None:
    """Count what a turn contained, so that a test can tell that it happened at all."""
    if grace != bool(earned):
        counts["forced grace" if earned else "grace at the most credits"] += 1
    for event in events:
        kind = event["type"]
        if kind == "capture":
            kind = "capture of a Noble" if event["piece"] == 4 else "capture of a Guard"
        elif kind == "blocked":
            kind = "blocked by others" if "points" in event else "blocked by own"
            counts["blocked in the Yard"] += referee.position[seat][event["piece"]] == -1
        counts[kind] += 1


@functools.cache
def _values(counts: tuple[int, ...]) -> list[int]:
    return [value for value, count in enumerate(counts, start=1) for _ in range(count)]


def _turn(direction: int, noble_steps: int, noble_after: int, rolls: Any) -> dict[str, Any]:
    """Return the choices as the match record writes them."""
    return {
        "direction": ("forward", "backward")[direction],
        "noble": {"steps": noble_steps, "when": ("before", "after")[noble_after]},
        "guards": [_values(tuple(counts)) for counts in rolls],
    }


@functools.cache
def _bits(guards: tuple[int, ...], noble: bool) -> int:
    return sum(1 << guard for guard in guards) + 16 * noble


def _may_move(referee: Referee) -> int:
    """Return the pieces that may move as the engine's bits."""
    return _bits(tuple(referee.legal_guards()), referee.noble_may_move())


def _is_grace(referee: Referee, dice: list[int]) -> bool:
    """Tell whether the dice alone earn a credit (rules 3.1.2)."""
    if referee.turns_taken[referee.seat] == 0:
        return False
    return 6 in dice[:2] or (len(dice) > 1 and sum(dice[:2]) == 6)


def _differences(engine: Any, referee: Referee) -> str:
    """Return the fields in which two states differ."""
    lines = []
    place = 0
    for name, theirs in referee.state().items():
        shape = np.shape(theirs)
        size = int(np.prod(shape))
        ours = engine[place : place + size].reshape(shape).tolist()
        place += size
        if ours != theirs:
            lines.append(f"\n  {name}:\n    engine  {ours}\n    referee {theirs}")
    return "".join(lines)

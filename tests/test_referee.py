"""The engine against the referee: random matches, compared turn by turn.

The compiled engine plays; other processes replay its matches with ``referee.py``, which was written
from the rules text alone, and compare every number of the state, who moves, who may be moved, the
credits earned, the finishing order and the result; on a sample also every event.
"""

import multiprocessing
import random
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from typing import Any

import numpy as np
import pytest

import random_policies
from comparison import FINISH_KEYS, ROLL_KEYS, TURN_KEYS, Job, Outcome, compare
from positions import any_rules, any_state
from random_policies import CROWDING, POLICY_NAMES, UNIFORM
from referee import STATE_KEYS
from retinue.envs.game import jit
from retinue.envs.game.events import events_to_json
from retinue.envs.game.record import result_of
from retinue.envs.game.ruleset import MODES, Ruleset, load_ruleset
from retinue.envs.game.state import state_from_json, state_to_json

PROCESSES = 2
MATCHES, WITH_EVENTS, RULESETS = (1500, 50, 40) if jit.ENABLED else (4, 2, 2)
CHUNK = 50
FIRST_SEED = 1

ALWAYS = (
    "exit",
    "checkpoint",
    "midpoint",
    "capture of a Guard",
    "capture of a Noble",
    "blocked by others",
    "blocked by own",
    "blocked in the Yard",
    "home",
    "split",
    "forced grace",
    "grace at the most credits",
    "end by clock",
)
EXPECTED = {UNIFORM: ALWAYS, CROWDING: (*ALWAYS, "finish", "end by finished", "shared place")}
"""What so many matches of a policy must contain, lest the comparison be vacuous."""


@pytest.fixture(scope="module")
def pool() -> Iterator[Executor]:
    spawn = multiprocessing.get_context("spawn")  # a fork would copy Numba's threads
    with ProcessPoolExecutor(PROCESSES, mp_context=spawn) as executor:
        yield executor


def play(
    title: str, ruleset: Ruleset, policy: int, first_seed: int, games: Any, *, with_events: bool
) -> Job:
    """Play every game of an array to its end; return the matches as plain data."""
    starts = [state_to_json(game) for game in games]
    played = random_policies.play_matches(
        games, ruleset, policy, first_seed, with_events=with_events
    )
    after, lengths = played["after"], played["lengths"].tolist()
    states = [after[name].reshape(*after.shape, -1) for name in STATE_KEYS]
    events = None
    if with_events:
        logs = played["logs"]
        events = [
            [events_to_json(logs[match, number]) for number in range(length)]
            for match, length in enumerate(lengths)
        ]
    return Job(
        title=f"{title}, policy {POLICY_NAMES[policy]}",
        rules=ruleset.model_dump(mode="json"),
        first_seed=first_seed,
        starts=starts,
        lengths=lengths,
        facts={
            **{key: played["rolled"][key] for key in ROLL_KEYS},
            **{key: played["turns"][key] for key in TURN_KEYS},
            **{key: after[key] for key in FINISH_KEYS},
            "legal": played["legal"],
        },
        after=np.concatenate(states, axis=-1, dtype=np.int32),
        results=[result_of(game) for game in games],
        events=events,
    )


def compare_all(pool: Executor, jobs: Iterable[Job]) -> Counter[str]:
    """Compare while the next matches are being played; fail on the first difference."""
    waiting: deque[Future[Outcome]] = deque()
    counts: Counter[str] = Counter()

    def take() -> None:
        outcome = waiting.popleft().result()
        if outcome.problems:
            pytest.fail("\n".join(outcome.problems), pytrace=False)
        counts.update(outcome.counts)

    for job in jobs:
        waiting.append(pool.submit(compare, job))
        if len(waiting) > 2 * PROCESSES:
            take()
    while waiting:
        take()
    return counts


@pytest.mark.slow
@pytest.mark.parametrize("policy", [UNIFORM, CROWDING], ids=POLICY_NAMES)
@pytest.mark.parametrize("mode", MODES)
def test_engine_and_referee_play_the_same_matches(pool: Executor, mode: str, policy: int) -> None:
    ruleset = load_ruleset(mode)

    def jobs() -> Iterator[Job]:
        for first in range(0, MATCHES, CHUNK):
            games = random_policies.new_games(ruleset, min(CHUNK, MATCHES - first))
            with_events = first < WITH_EVENTS
            yield play(mode, ruleset, policy, FIRST_SEED + first, games, with_events=with_events)

    counts = compare_all(pool, jobs())
    assert counts["end by clock"] + counts["end by finished"] == MATCHES
    missing = [name for name in EXPECTED[policy] if not counts[name]]
    assert not missing or not jit.ENABLED, f"these matches had {dict(counts)}"


@pytest.mark.slow
@pytest.mark.parametrize("policy", [UNIFORM, CROWDING], ids=POLICY_NAMES)
def test_they_agree_under_any_rules_and_from_any_position(pool: Executor, policy: int) -> None:
    def jobs() -> Iterator[Job]:
        for seed in range(RULESETS):
            chance = random.Random(seed)
            ruleset = any_rules(chance)
            games = random_policies.new_games(ruleset, 4)
            for index in range(len(games)):
                games[index] = state_from_json(any_state(chance, ruleset), ruleset)
            yield play(f"rules {seed}", ruleset, policy, seed, games, with_events=True)

    counts = compare_all(pool, jobs())
    assert counts["capture of a Guard"] > 0
    assert counts["home"] > 0


ALTERED = {  # one number of turn 5, and what is told about it
    "position": (lambda job: (job.after[0, 5], 3, 99), "position:\n    engine  [["),
    "clock": (lambda job: (job.after[0, 5], -1, 7), "clock_seconds:\n    engine  7"),
    "seat": (lambda job: (job.facts["seat"][0], 5, 3), "engine (3, 1, 23), referee (1, 1, 23)"),
    "credits": (lambda job: (job.facts["credits_earned"][0], 5, 4), "engine (1, 4, 23), referee"),
    "legal": (lambda job: (job.facts["legal"][0], 5, 0), "who may move: engine (1, 1, 0), "),
    "finished": (lambda job: (job.facts["finished"][0], 5, 1), "finished: engine [0], referee []"),
    "turn": (lambda job: (job.facts["rolls"][0, 5, 0], 0, 9), "a roll that is not in the store"),
    "events": (lambda job: (job.events[0], 5, []), "events:\n  engine  []\n  referee [{"),
}


@pytest.mark.parametrize(("alter", "words"), ALTERED.values(), ids=ALTERED)
def test_a_difference_is_told(alter: Callable[[Job], tuple[Any, int, Any]], words: str) -> None:
    ruleset = load_ruleset("journey")
    games = random_policies.new_games(ruleset, 1)
    job = play("journey", ruleset, UNIFORM, 7, games, with_events=True)
    assert compare(job).problems == []
    numbers, index, value = alter(job)
    numbers[index] = value
    (problem,) = compare(job).problems
    assert problem.startswith("journey, policy uniform, seed 7, turn 5, seat ")
    assert words in problem

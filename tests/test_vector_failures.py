"""What a failing opponent and a caller's mistake leave behind: nothing that goes wrong silently."""

import contextlib
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from positions import JOURNEY, changed
from retinue.envs.batch import Batch
from retinue.envs.game.engine import IllegalTurn
from retinue.envs.game.state import TURN
from retinue.envs.opponents import View
from retinue.envs.vector_env import RetinueVectorEnv

SHORT = changed(JOURNEY, clock_seconds=240)
NOTHING = np.zeros((3, 14), np.int64)


class Fickle:
    """Passes, counts the turns that it is asked for, and fails on demand."""

    name, compiled = "fickle", None

    def __init__(self) -> None:
        self.asked = 0
        self.error: BaseException | None = None
        self.is_illegal = False

    def choose(self, view: View, rng: np.random.Generator) -> Any:
        if self.error is not None:
            raise self.error
        self.asked += len(view.games)
        turns = np.zeros(len(view.games), TURN)
        turns["noble_steps"] = 9 if self.is_illegal else 0
        return turns


def one_ending_beside_two_failing(autoreset: AutoresetMode, error: BaseException) -> Any:
    """A step in which match 0 ends while an opponent fails in matches 1 and 2."""
    agent = Fickle()
    env = RetinueVectorEnv(
        3,
        rules=SHORT,
        encoding="turn",
        seats=3,
        opponents=[agent],
        threads=1,
        autoreset_mode=autoreset,
    )
    env.reset(seed=0)
    for _ in range(3):
        env.step(NOTHING)
    env.reset(options={"reset_mask": np.array([False, True, True])})
    for _ in range(2):
        env.step(NOTHING)
    agent.error = error
    with pytest.raises(type(error)):
        env.step(NOTHING)
    assert env.batch.terminated.tolist() == [True, False, False]
    agent.error = None
    return env, agent


@pytest.mark.parametrize("autoreset", list(AutoresetMode))
@pytest.mark.parametrize("error", [ZeroDivisionError(), KeyboardInterrupt()], ids=type)
def test_after_a_failure_matches_that_are_started_again_go_on_well(
    autoreset: AutoresetMode, error: BaseException
) -> None:
    env, agent = one_ending_beside_two_failing(autoreset, error)
    with pytest.raises(RuntimeError):
        env.step(NOTHING)
    rows = np.array([autoreset is AutoresetMode.DISABLED, True, True])
    env.reset(options={"reset_mask": rows})
    for step in range(1, 6):
        asked = agent.asked
        env.step(NOTHING)
        assert agent.asked - asked == 3 * 3, "three turns in each match"
        assert (env.batch.games["seat"] == 3).all()
        assert env.batch.games["turn"][1] == 3 + 4 * step


def test_a_match_that_is_over_stops_a_step_before_anything_is_played() -> None:
    agent = Fickle()
    batch = Batch(SHORT, 2, encoding="turn", seats=0, opponents=[agent], threads=1)
    batch.reset(0)
    while not batch.terminated[0]:
        batch.step(NOTHING[:2], np.array([0]))
    before, asked = batch.save_matches(), agent.asked
    for indices in (None, np.array([0])):
        with pytest.raises(RuntimeError, match="the match in game 0 is over"):
            batch.step(NOTHING[:2], indices)
    assert (batch.save_matches(), agent.asked) == (before, asked)
    agent.is_illegal = True
    with pytest.raises(IllegalTurn, match="agent fickle chose an illegal turn"):
        batch.step(NOTHING[:2], np.array([1]))
    agent.is_illegal = False
    with pytest.raises(RuntimeError, match="an opponent failed"):
        batch.step(NOTHING[:2], np.array([1]))


def test_a_failed_game_waits_until_it_is_started_again() -> None:
    agent = Fickle()
    batch = Batch(SHORT, 3, encoding="turn", seats=0, opponents=[agent], threads=1)
    batch.reset(0)
    agent.error = ZeroDivisionError()
    with contextlib.suppress(ZeroDivisionError):
        batch.step(NOTHING)
    agent.error, asked = None, agent.asked
    batch.start_next(np.array([1]))
    assert agent.asked == asked, "nobody is asked for the games that failed"
    with pytest.raises(RuntimeError, match="an opponent failed"):
        batch.step(NOTHING, np.array([1]))
    batch.start_next(np.array([0, 2]))
    batch.step(NOTHING)

"""What an environment does when an opponent fails, and after a match is over."""

from typing import Any

import numpy as np
import pytest

import retinue.agents  # noqa: F401 - agents by name
from retinue.envs.batch import Batch
from retinue.envs.game.engine import IllegalTurn
from retinue.envs.game.ruleset import load_ruleset
from retinue.envs.game.state import TURN
from retinue.envs.gym_env import RetinueEnv
from retinue.envs.opponents import View


class Moody:
    """Stays put, but fails when told to."""

    name = "moody"
    compiled = None
    mood = "good"

    def choose(self, view: View, rng: np.random.Generator) -> np.ndarray[Any, np.dtype[Any]]:
        if self.mood == "raising":
            raise ZeroDivisionError("moody")
        turns = np.zeros(len(view.games), TURN)
        if self.mood == "illegal":
            turns["noble_steps"] = 9
        return turns


@pytest.mark.parametrize(
    ("mood", "error"), [("raising", ZeroDivisionError), ("illegal", IllegalTurn)]
)
def test_a_failed_opponent_s_turn_is_not_the_caller_s(mood: str, error: type[Exception]) -> None:
    agent = Moody()
    env = RetinueEnv(seats=0, opponents=agent)
    env.reset(seed=1)
    env.step(0)
    agent.mood = mood
    with pytest.raises(error, match="moody"):
        env.step(50)
    for action in (0, 50):
        with pytest.raises(RuntimeError, match="an opponent failed"):
            env.step(action)
    agent.mood = "good"
    _, info = env.reset()
    assert info["seat"] == 0
    assert env.game["turn"] == 0
    env.step(0)
    env.step(50)
    assert env.game["turn"] == 4


@pytest.mark.parametrize("encoding", ["steps", "turn"])
def test_a_match_that_is_over_takes_no_step_at_all(encoding: str) -> None:
    batch = Batch(load_ruleset("journey"), 1, encoding=encoding, seats=range(4), threads=1)
    batch.reset(1)
    parts = len(batch.encoding.nvec)
    passive = [np.zeros((1, parts), np.int64), np.full((1, parts), 50 if parts == 1 else 0)]
    while True:
        if batch.step(passive[0]) or batch.step(passive[1]):
            break
    before = batch.games.tobytes(), batch.observations.tobytes(), batch.terminated.tobytes()
    for action in (*passive, *passive):
        with pytest.raises(RuntimeError, match="over"):
            batch.step(action)
    assert before == (
        batch.games.tobytes(),
        batch.observations.tobytes(),
        batch.terminated.tobytes(),
    )
    batch.start_next(np.zeros(1, np.int64))
    batch.step(passive[0])


@pytest.mark.parametrize("opponent", [Moody, object(), 3, 3.5])
def test_what_is_no_opponent_is_said_so(opponent: Any) -> None:
    with pytest.raises(ValueError, match="an opponent is a name, or an object with name"):
        RetinueEnv(opponents=opponent)
    with pytest.raises(ValueError, match="an opponent is a name, or an object with name"):
        RetinueEnv(opponents=[opponent])

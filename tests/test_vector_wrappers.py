"""Gymnasium's vector wrappers on the native vector environment, and pictures of it."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import vector as wrappers
from gymnasium.wrappers.vector import (
    DictInfoToList,
    NormalizeObservation,
    RecordEpisodeStatistics,
)

import retinue.agents  # noqa: F401 - opponents by name
from playing import Dealer
from positions import JOURNEY, changed
from retinue.envs.vector_env import RetinueVectorEnv

SHORT = changed(JOURNEY, clock_seconds=240)
EVERY_AUTORESET = pytest.mark.parametrize(
    "autoreset", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP]
)


def new_env(games: int = 3, **arguments: Any) -> RetinueVectorEnv:
    arguments = {"rules": SHORT, "opponents": ["racer", "random"], "threads": 1, **arguments}
    return RetinueVectorEnv(games, **arguments)


@EVERY_AUTORESET
def test_episode_statistics_are_those_of_the_matches(autoreset: AutoresetMode) -> None:
    plain = new_env(autoreset_mode=autoreset)
    env = RecordEpisodeStatistics(plain)
    _, info = env.reset(seed=0)
    deal = Dealer(plain.batch.encoding, 1, range(3))
    returns, lengths, ends = np.zeros(3), np.zeros(3, int), 0
    over = np.zeros(3, bool)
    for _ in range(300):
        actions = deal(info["action_mask"])
        _, rewards, terminated, _, info = env.step(actions)
        returns, lengths = returns + rewards, lengths + ~over
        for index in np.flatnonzero(terminated):
            assert info["episode"]["r"][index] == pytest.approx(returns[index], abs=1e-12)
            assert info["episode"]["l"][index] == lengths[index]
            ended = info if autoreset is AutoresetMode.NEXT_STEP else info["final_info"]
            totals, seat = ended["totals"][index], ended["seat"][index]
            margin = totals[seat] - np.delete(totals, seat).mean()
            assert returns[index] == pytest.approx(margin / 100, abs=1e-12)
        ends += int(terminated.sum())
        returns[terminated], lengths[terminated] = 0, 0
        over = terminated if autoreset is AutoresetMode.NEXT_STEP else over
    assert ends >= 6


def test_normalized_observations_have_mean_0_and_variance_1() -> None:
    plain = new_env(16)
    env = NormalizeObservation(plain)  # it refuses any SAME_STEP environment
    _, info = env.reset(seed=0)
    deal = Dealer(plain.batch.encoding, 1, range(16))
    seen = []
    for _ in range(400):
        observations, _, _, _, info = env.step(deal(info["action_mask"]))
        assert np.isfinite(observations).all()
        seen.append(observations)
    late = np.concatenate(seen[200:])
    varying = late.std(axis=0) > 0.1
    assert varying.sum() > 100
    assert np.abs(late.mean(axis=0)[varying]).mean() < 0.2
    assert late.std(axis=0)[varying].mean() == pytest.approx(1, abs=0.2)


WRAPPERS: dict[str, Any] = {
    "ClipReward": lambda env: wrappers.ClipReward(env, -0.1, 0.1),
    "TransformReward": lambda env: wrappers.TransformReward(env, lambda rewards: 2 * rewards),
    "NormalizeReward": wrappers.NormalizeReward,
    "TransformAction": lambda env: wrappers.TransformAction(env, lambda actions: actions),
    "TransformObservation": lambda env: wrappers.TransformObservation(env, lambda seen: seen / 2),
    "RescaleObservation": lambda env: wrappers.RescaleObservation(
        env, np.float32(0), np.float32(1)
    ),
    "ReshapeObservation": lambda env: wrappers.ReshapeObservation(env, (5, 59)),
    "FlattenObservation": wrappers.FlattenObservation,
    "VectorizeTransformReward": lambda env: wrappers.VectorizeTransformReward(
        env, gymnasium.wrappers.TransformReward, func=lambda reward: -reward
    ),
}


@pytest.mark.parametrize("name", WRAPPERS)
def test_gymnasium_s_vector_wrappers_take_it(name: str) -> None:
    plain = new_env()
    env = WRAPPERS[name](plain)
    seen, info = env.reset(seed=0)
    deal, ends = Dealer(plain.batch.encoding, 1, range(3)), 0
    for _ in range(150):
        assert env.observation_space.contains(seen)
        seen, rewards, terminated, _, info = env.step(deal(info["action_mask"]))
        assert np.isfinite(rewards).all()
        ends += int(terminated.sum())
    assert ends >= 3


def test_infos_can_be_had_as_a_list() -> None:
    plain, listed = new_env(autoreset_mode="SameStep"), new_env(autoreset_mode="SameStep")
    env = DictInfoToList(listed)
    info, infos = plain.reset(seed=0)[1], env.reset(seed=0)[1]
    deal = Dealer(plain.batch.encoding, 1, range(3))
    ends = 0
    for _ in range(200):
        actions = deal(info["action_mask"])
        info, (*_, terminated, _, infos) = plain.step(actions)[4], env.step(actions)
        for index in range(3):
            assert infos[index]["seat"] == info["seat"][index]
            assert np.array_equal(infos[index]["action_mask"], info["action_mask"][index])
            assert ("final_info" in infos[index]) == terminated[index]
            if terminated[index]:
                ends += 1
                final = info["final_info"]["places"][index]
                assert np.array_equal(infos[index]["final_info"]["places"], final)
    assert ends >= 3


def test_every_match_can_be_shown() -> None:
    env: Any = gymnasium.make_vec("retinue/Journey-v0", num_envs=2, render_mode="rgb_array")
    env.reset(seed=0)
    deal = Dealer(env.batch.encoding, 1, range(2))
    first = env.render()
    for _ in range(20):
        env.step(deal(env.action_masks()))
    pictures = env.render()
    assert [(each.dtype, each.shape) for each in pictures] == [(np.uint8, (800, 720, 3))] * 2
    assert not np.array_equal(pictures[0], first[0])
    assert not np.array_equal(pictures[0], pictures[1])
    texts = new_env(2, render_mode="ansi")
    texts.reset(seed=0)
    assert all("Green" in text for text in texts.render())
    env.close()


def test_what_cannot_be_shown_is_said() -> None:
    with pytest.raises(ValueError, match="unknown render_mode 'human': use ansi, rgb_array"):
        new_env(render_mode="human")
    env = new_env()
    env.reset(seed=0)
    with pytest.warns(UserWarning, match=r"pass one to gymnasium.make_vec\(\)"):
        assert env.render() is None

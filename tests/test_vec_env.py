"""The batch engine as Stable-Baselines3 sees it."""

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.wrappers import TimeLimit
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecNormalize

from playing import Dealer, Drawing, as_text
from positions import JOURNEY, changed
from retinue.agents.registry import make_agent
from retinue.envs.actions import ENCODINGS, Encoding
from retinue.envs.batch import Batch
from retinue.envs.gym_env import RetinueEnv
from retinue.envs.rewards import Reward
from retinue.training.sb3_vec_env import RetinueVecEnv

RACER, RANDOM = (make_agent(name, JOURNEY) for name in ("racer", "random"))
SHORT = changed(JOURNEY, clock_seconds=240)
"""Six turns for each seat."""
EVERY_ENCODING = pytest.mark.parametrize("encoding", ENCODINGS)


def new_vec_env(games: int = 4, seed: int | None = 20, **changed: Any) -> RetinueVecEnv:
    arguments = {"seats": 1, "opponents": [RACER, RANDOM], "threads": 1, **changed}
    return RetinueVecEnv(Batch(SHORT, games, **arguments), seed)


def play(env: RetinueVecEnv, deal: Dealer, steps: int) -> list[tuple[Any, ...]]:
    """Play drawn actions on; return what each step gave."""
    return [env.step(deal(np.array(env.env_method("action_masks")))) for _ in range(steps)]


@EVERY_ENCODING
def test_its_spaces_are_those_of_the_environment(encoding: str) -> None:
    env, single = new_vec_env(encoding=encoding), RetinueEnv(rules=SHORT, encoding=encoding)
    assert env.num_envs == 4
    assert env.observation_space == single.observation_space
    assert env.action_space == single.action_space
    observations = env.reset()
    assert observations.shape == (4, *env.observation_space.shape)  # type: ignore[misc]
    assert observations.dtype == np.float32
    observations, rewards, dones, infos = play(env, Dealer(env.batch.encoding, 1, range(4)), 1)[0]
    assert all(env.observation_space.contains(each) for each in observations)
    assert (rewards.dtype, rewards.shape) == (np.float32, (4,))
    assert (dones.dtype, dones.shape) == (np.bool_, (4,))
    assert infos == [{}] * 4


@EVERY_ENCODING
@pytest.mark.parametrize("seats", [1, "any"])
def test_each_match_is_that_of_a_single_environment(encoding: str, seats: Any) -> None:
    arguments: dict[str, Any] = {"encoding": encoding, "seats": seats, "opponents": [RACER, RANDOM]}
    env = new_vec_env(3, **arguments, reward=Reward("score"))
    first = env.reset()
    assert not np.array_equal(first[0], first[1])
    steps = 110 if encoding == "steps" else 20
    shown = play(env, Dealer(env.batch.encoding, 7, range(3)), steps)
    for index in range(3):
        single = Monitor(RetinueEnv(rules=SHORT, reward="score", **arguments))
        dealer, ends = Dealer(env.batch.encoding, 7, [index]), 0
        observation, _ = single.reset(seed=20 + index)
        assert np.array_equal(first[index], observation)
        for observations, rewards, dones, infos in shown:
            action = dealer(single.get_wrapper_attr("action_masks")()[None])[0]
            observation, reward, done, _, info = single.step(action)
            assert rewards[index] == np.float32(reward)
            assert dones[index] == done
            if not done:
                assert infos[index] == {}
                assert np.array_equal(observations[index], observation)
                continue
            ends += 1
            assert np.array_equal(infos[index]["terminal_observation"], observation)
            assert infos[index]["episode"]["r"] == pytest.approx(info["episode"]["r"], abs=1e-6)
            assert infos[index]["episode"]["l"] == info["episode"]["l"]
            assert infos[index]["total"] == info["totals"][info["seat"]]
            assert infos[index]["place"] == info["places"][info["seat"]]
            assert infos[index].keys() == {"terminal_observation", "episode", "total", "place"}
            observation, _ = single.reset()
            assert np.array_equal(observations[index], observation)
        assert ends >= 2


def test_nothing_returned_is_overwritten_later() -> None:
    env = new_vec_env()
    first = env.reset()
    before = first.copy()
    shown = play(env, Dealer(env.batch.encoding, 2, range(4)), 60)
    texts = [as_text(row) for row in shown]
    masks = env.action_masks()
    masks_before = masks.copy()
    play(env, Dealer(env.batch.encoding, 3, range(4)), 60)
    assert np.array_equal(first, before)
    assert [as_text(row) for row in shown] == texts
    assert np.array_equal(masks, masks_before)


# --- Masks


@EVERY_ENCODING
def test_masks_by_method_are_those_of_the_environments(encoding: str) -> None:
    env = new_vec_env(encoding=encoding)
    env.reset()
    play(env, Dealer(env.batch.encoding, 4, range(4)), 5)
    masks = env.env_method("action_masks")
    assert np.array_equal(masks, env.batch.masks)
    assert len({row.tobytes() for row in env.batch.masks}) > 1
    assert np.array_equal(env.env_method("action_masks", indices=2), env.batch.masks[[2]])
    assert np.array_equal(env.env_method("action_masks", indices=[3, 0]), env.batch.masks[[3, 0]])
    assert is_masking_supported(env)
    for wrapped in (env, VecNormalize(env)):
        found = get_action_masks(wrapped)
        assert found.dtype == np.bool_
        assert found.shape == (4, Encoding(encoding, SHORT).mask_size)
        assert np.array_equal(found, env.batch.masks)


# --- Seeds


def test_a_seed_makes_the_same_matches() -> None:
    traces = []
    for seed in (3, 3, 4):
        env = new_vec_env(seed=None)
        assert env.seed(seed) == [seed, seed + 1, seed + 2, seed + 3]
        env.reset()
        assert env.batch.seeds.tolist() == [seed, seed + 1, seed + 2, seed + 3]
        traces.append(as_text(play(env, Dealer(env.batch.encoding, 5, range(4)), 80)))
    assert traces[0] == traces[1]
    assert traces[0] != traces[2]
    again = new_vec_env(seed=3)
    again.reset()
    assert as_text(play(again, Dealer(again.batch.encoding, 5, range(4)), 80)) == traces[0]


def test_a_seed_holds_for_one_reset() -> None:
    env = new_vec_env(seed=3)
    env.reset()
    first = env.batch.seeds.tolist()
    env.reset()
    assert not {*env.batch.seeds.tolist()} & {*first}
    env.seed(3)
    env.reset()
    assert env.batch.seeds.tolist() == first


def test_without_a_seed_matches_differ() -> None:
    seeds: set[int] = set()
    for _ in range(3):
        env = new_vec_env(seed=None)
        env.reset()
        seeds |= {*env.batch.seeds.tolist()}
        env.seed()
        env.reset()
        seeds |= {*env.batch.seeds.tolist()}
    assert len(seeds) == 24


# --- Going on


@EVERY_ENCODING
@pytest.mark.parametrize("agents", [[RACER, RANDOM], [Drawing()]], ids=["keyed", "drawing"])
def test_a_snapshot_goes_on_exactly(encoding: str, agents: list[Any]) -> None:
    env, other = (new_vec_env(encoding=encoding, opponents=agents, seed=seed) for seed in (20, 99))
    env.reset()
    play(env, Dealer(env.batch.encoding, 6, range(4)), 33 if encoding == "steps" else 3)
    snapshot, seen = env.snapshot(), env.batch.observations.copy()
    expected = play(env, Dealer(env.batch.encoding, 7, range(4)), 90)
    assert sum(row[2].sum() for row in expected) >= 4
    for each in (env, other):
        assert np.array_equal(each.restore(snapshot), seen)
        again = play(each, Dealer(each.batch.encoding, 7, range(4)), 90)
        assert as_text(again) == as_text(expected)
    other.restore(snapshot)
    other.reset()
    assert not {*other.batch.seeds.tolist()} & {20, 21, 22, 23}, "no match is played again"


# --- Learning


@EVERY_ENCODING
def test_maskable_ppo_learns_on_it(encoding: str) -> None:
    torch.set_num_threads(1)
    env = new_vec_env(encoding=encoding)
    model = MaskablePPO(
        "MlpPolicy", env, n_steps=64, batch_size=64, n_epochs=2, seed=1, device="cpu"
    )
    before = [each.detach().clone() for each in model.policy.parameters()]
    model.learn(2 * 64 * 4)
    assert model.num_timesteps == 512
    after = list(model.policy.parameters())
    assert all(torch.isfinite(each).all() for each in after)
    assert any(not torch.equal(old, new) for old, new in zip(before, after, strict=True))
    assert len(model.ep_info_buffer or ()) >= 4
    rewards, lengths = evaluate_policy(model, env, n_eval_episodes=6, return_episode_rewards=True)
    assert isinstance(lengths, list)
    assert len(lengths) == 6
    least = 12 if encoding == "steps" else 6
    assert all(least <= length <= 6 * 14 for length in lengths), (rewards, lengths)


# --- What it does not do


@pytest.mark.parametrize(("seats", "count"), [((0, 2), 2), ((0, 1, 2), 3), ("none", 0)])
def test_a_learner_has_one_seat(seats: Any, count: int) -> None:
    with pytest.raises(ValueError, match=f"a learner plays one seat of each match, not {count}"):
        new_vec_env(seats=seats)


def test_what_is_not_there_is_refused_clearly() -> None:
    env = new_vec_env()
    with pytest.raises(AttributeError, match="no environment method 'render'"):
        env.env_method("render")
    with pytest.raises(AttributeError, match="no environment method 'action_masks'"):
        env.env_method("action_masks", True)
    with pytest.raises(AttributeError, match="no attribute 'reward' to be set"):
        env.set_attr("reward", 1)
    with pytest.raises(AttributeError, match="rewrad"):
        env.get_attr("rewrad")
    assert not env.has_attr("rewrad")


def test_what_stable_baselines_asks_of_every_vector() -> None:
    env = new_vec_env()
    assert env.get_attr("render_mode") == [None] * 4
    assert env.get_attr("num_envs", indices=[1, 2]) == [4, 4]
    assert env.env_is_wrapped(Monitor) == [True] * 4, "its infos are those of a Monitor"
    assert env.env_is_wrapped(TimeLimit, indices=0) == [False]
    assert list(env.get_images()) == [None] * 4
    assert env.unwrapped is env
    env.close()

"""The scalar environment behind Stable-Baselines3's vectors, monitors, callbacks and wrappers."""

import multiprocessing
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import wrappers
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.callbacks import MaskableEvalCallback
from sb3_contrib.common.maskable.evaluation import evaluate_policy
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    SubprocVecEnv,
    VecEnv,
    VecEnvWrapper,
    VecMonitor,
)

import retinue.agents  # noqa: F401 - agents by name, in the workers too
from playing import END, Cheat, Dealer, Drawing, as_text
from positions import JOURNEY, changed
from retinue.envs.batch import Batch
from retinue.envs.gym_env import RetinueEnv
from retinue.envs.parallel import MAX_THREADS

SEED = 20
SHORT = changed(JOURNEY, clock_seconds=240)
"""Six turns for each seat."""
ARGUMENTS: list[dict[str, Any]] = [
    {"mode": "journey", "opponents": ["racer", Drawing()], "draw": "each match"},
    {"mode": "brawl", "opponents": ["spread", "random"]},
]
"""One environment of each mode: in ``steps`` their spaces are equal, so one vector holds both."""
STEPS = 1300
"""Two whole matches of each and more."""
PLACES = ("places",)
needs_fork = pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="there is no fork"
)


def monitored(index: int, **more: Any) -> Monitor[Any, Any]:
    arguments = {**ARGUMENTS[index], **more}
    name = arguments.pop("mode").capitalize()
    return Monitor(gymnasium.make(f"retinue/{name}-v0", **arguments), info_keywords=PLACES)


MAKERS: list[Callable[[], Any]] = [partial(monitored, index) for index in range(2)]


def in_workers(makers: list[Callable[[], Any]], start_method: str) -> SubprocVecEnv:
    """Make workers of a parent that has used all the engine's threads, as a trainer's would."""
    batch = Batch(JOURNEY, 256, seats=range(4), threads=MAX_THREADS)
    batch.reset(0)
    batch.step(np.zeros(256, np.int64))
    with warnings.catch_warnings():
        # Newer Pythons warn of any fork beside threads.
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
        return SubprocVecEnv(makers, start_method)


@pytest.fixture(scope="module", params=["dummy", pytest.param("fork", marks=needs_fork), "spawn"])
def workers(request: pytest.FixtureRequest) -> Iterator[VecEnv]:
    torch.set_num_threads(1)  # two are many times slower while others use the machine
    env = DummyVecEnv(MAKERS) if request.param == "dummy" else in_workers(MAKERS, request.param)
    yield env
    env.close()


class Counted(VecEnvWrapper):
    """Counts the steps of all its environments, and how many actions were illegal."""

    steps = illegal = 0

    def reset(self) -> Any:
        return self.venv.reset()

    def step_wait(self) -> Any:
        result = self.venv.step_wait()
        self.steps += self.num_envs
        self.illegal += sum(info["illegal_action"] for info in result[-1])
        return result


# --- Playing


def check_alike(first: Any, rows: list[tuple[Any, ...]], index: int) -> None:
    """Check that a vector's environment showed what the plain one shows on the same actions."""
    env, ends = RetinueEnv(**ARGUMENTS[index]), []
    dealer, rewards = Dealer(env.batch.encoding, 7, [index]), [0.0]
    observation, _ = env.reset(seed=SEED + index)
    assert np.array_equal(first[index], observation)
    for masks, observations, given, dones, infos in rows:
        mask, seen = env.action_masks(), infos[index]
        assert np.array_equal(masks[index], mask)
        observation, reward, terminated, _, info = env.step(dealer(mask[None])[0])
        rewards.append(reward)
        assert np.float32(given[index]) == np.float32(reward)
        assert dones[index] == terminated
        assert as_text({name: seen[name] for name in info}) == as_text(info)
        if terminated:
            ends.append(observation.tobytes())
            assert np.array_equal(seen["terminal_observation"], observation)
            assert not seen["TimeLimit.truncated"]
            assert seen["episode"]["r"] == pytest.approx(sum(rewards), abs=1e-4)
            assert seen["episode"]["l"] == len(rewards) - 1
            assert np.array_equal(seen["episode"]["places"], info["places"])
            rewards = [0.0]
            observation, _ = env.reset()
        else:
            assert "episode" not in seen
        assert np.array_equal(observations[index], observation)
    assert len(set(ends)) == len(ends) >= 2, "each match is another"


@pytest.mark.parametrize("monitor", ["Monitor", "VecMonitor"])
def test_matches_through_a_vector_are_those_of_the_plain_environment(
    workers: VecEnv, monitor: str
) -> None:
    env = workers
    if monitor == "VecMonitor":
        with pytest.warns(UserWarning, match="already wrapped with a `Monitor`"):
            env = VecMonitor(workers, info_keywords=PLACES)
    assert is_masking_supported(env)
    env.seed(SEED)
    first, dealer = env.reset(), Dealer(RetinueEnv().batch.encoding, 7, range(2))
    rows = []
    for _ in range(STEPS):
        masks = get_action_masks(env)
        assert masks.dtype == np.bool_
        rows.append((masks, *env.step(dealer(masks))))
    for index in range(2):
        check_alike(first, rows, index)


def test_options_reach_every_environment(workers: VecEnv) -> None:
    workers.seed(SEED)
    workers.set_options([{"seats": 3}, {"seats": 1, "opponents": "random"}])
    workers.reset()
    assert [info["seat"] for info in workers.reset_infos] == [3, 1]
    assert workers.get_attr("seats") == [(3,), (1,)]
    workers.set_options([{"seats": "any"}, {"seats": "any", "opponents": ["spread", "random"]}])
    workers.reset()


def test_an_environment_is_fetched_from_its_worker_in_the_middle_of_a_turn(
    workers: VecEnv,
) -> None:
    workers.reset()
    workers.step(np.zeros(2, np.int64))
    fetched = workers.get_attr("action_masks")
    assert np.array_equal([masks() for masks in fetched], get_action_masks(workers))


def test_environments_of_one_seed_play_different_matches() -> None:
    env = DummyVecEnv([partial(monitored, 0)] * 2)
    shown: list[Any] = []
    for seed in (3, 3, None):
        env.seed(seed)
        shown += list(env.reset())
    assert np.array_equal(shown[:2], shown[2:4])
    assert len({each.tobytes() for each in shown}) == 4


def test_workers_that_import_nothing_find_agents_by_the_environment_s_id() -> None:
    """By Stable-Baselines3's default, whose workers start empty and draw pictures."""
    env: Any = make_vec_env(
        "retinue.agents:retinue/Journey-v0",
        seed=SEED,
        env_kwargs={"opponents": ["racer"], "rules": SHORT},
        vec_env_cls=SubprocVecEnv,
    )
    plain = RetinueEnv(opponents=["racer"], rules=SHORT)
    dealer = Dealer(plain.batch.encoding, 2, [0])
    assert np.array_equal(env.reset()[0], plain.reset(seed=SEED)[0])
    done = False
    while not done:
        action = dealer(get_action_masks(env))
        observations, _, (done,), (info,) = env.step(action)
        observation, *_ = plain.step(action[0])
        if not done:
            assert np.array_equal(observations[0], observation)
    assert np.array_equal(info["terminal_observation"], observation)
    (picture,) = env.get_images()
    assert picture is not None
    assert picture.dtype == np.uint8
    env.close()


@needs_fork
def test_a_worker_says_which_opponent_failed_and_how(capfd: pytest.CaptureFixture[str]) -> None:
    env = in_workers([partial(RetinueEnv, seats=0, opponents=Cheat())], "fork")
    env.reset()
    env.step(np.zeros(1, np.int64))
    with pytest.raises(EOFError):
        env.step(np.array([END]))
    env.processes[0].join()
    env.remotes[0].close()
    assert (
        "IllegalTurn: agent cheat chose an illegal turn: Noble steps must be"
        in capfd.readouterr().err
    )


# --- Learning and evaluating


def test_evaluation_uses_the_masks(workers: VecEnv) -> None:
    train, judge = Counted(DummyVecEnv(MAKERS)), Counted(workers)
    model = MaskablePPO(
        "MlpPolicy", train, n_steps=32, batch_size=32, n_epochs=1, seed=1, device="cpu"
    )
    callback = MaskableEvalCallback(judge, n_eval_episodes=2, eval_freq=32, verbose=0)
    model.learn(64, callback)
    assert np.isfinite(callback.last_mean_reward)
    assert (train.steps, train.illegal, judge.illegal) == (64, 0, 0)
    assert judge.steps >= 2 * 2 * 45, "two matches of two actions a turn at least"
    evaluate_policy(model, judge, 1, deterministic=False, use_masking=False)
    assert judge.illegal > 100


def test_plain_ppo_learns_and_is_evaluated_without_masks() -> None:
    maker = partial(monitored, 0, encoding="turn", rules=SHORT)
    train, judge = (Counted(DummyVecEnv([maker] * 2)) for _ in range(2))
    model = PPO("MlpPolicy", train, n_steps=64, batch_size=64, n_epochs=1, seed=1, device="cpu")
    callback = EvalCallback(judge, n_eval_episodes=4, eval_freq=64, verbose=0)
    model.learn(128, callback)
    assert np.isfinite(callback.last_mean_reward)
    assert judge.steps == 6 * 4
    assert train.illegal > 64
    assert len(model.ep_info_buffer or ()) == 2 * (64 // 6)


@pytest.mark.parametrize(("limit", "is_truncated"), [(5, True), (6, False)])
def test_a_match_that_ends_on_the_step_of_a_limit_is_not_truncated(
    limit: int, is_truncated: bool
) -> None:
    plain = RetinueEnv(encoding="turn", rules=SHORT, seats=0, opponents="racer")
    env = DummyVecEnv([lambda: wrappers.TimeLimit(plain, limit)])
    env.reset()
    for step in range(1, limit + 1):
        _, _, dones, infos = env.step(np.zeros((1, 14), np.int64))
        assert dones[0] == (step == limit)
    assert infos[0]["TimeLimit.truncated"] == is_truncated
    assert ("totals" in infos[0]) is not is_truncated


# --- Wrappers

WRAPPERS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "RecordEpisodeStatistics": ("flat", wrappers.RecordEpisodeStatistics),
    "TransformReward": (
        "flat",
        lambda env: wrappers.TransformReward(env, lambda reward: -float(reward)),
    ),
    "NormalizeReward": ("flat", wrappers.NormalizeReward),
    "NormalizeObservation": ("flat", wrappers.NormalizeObservation),
    "FrameStackObservation": ("flat", lambda env: wrappers.FrameStackObservation(env, 3)),
    "TimeAwareObservation": ("flat", wrappers.TimeAwareObservation),
    "FlattenObservation": ("dict", wrappers.FlattenObservation),
    "FilterObservation": ("dict", lambda env: wrappers.FilterObservation(env, ["board", "plan"])),
    "Autoreset": ("flat", wrappers.Autoreset),
    "TimeLimit": ("flat", lambda env: wrappers.TimeLimit(env, 1000)),
}


@pytest.mark.parametrize("name", WRAPPERS)
def test_a_match_in_a_wrapper_shows_the_masks(name: str) -> None:
    observation, wrap = WRAPPERS[name]
    plain = RetinueEnv(rules=SHORT, opponents="racer", observation=observation)
    made = gymnasium.make(
        "retinue/Journey-v0",
        rules=SHORT,
        opponents="racer",
        observation=observation,
        max_episode_steps=500,
    )
    env: Any = Monitor(wrap(made))
    assert is_masking_supported(env)
    dealer, terminated = Dealer(plain.batch.encoding, 1, [0]), False
    seen, _ = env.reset(seed=SEED)
    plain.reset(seed=SEED)
    while not terminated:
        masks = env.get_wrapper_attr("action_masks")()
        assert masks.dtype == np.bool_
        assert np.array_equal(masks, plain.action_masks())
        assert np.array_equal(get_action_masks(env), masks)
        assert env.observation_space.contains(seen)
        action = dealer(masks[None])[0]
        seen, _, terminated, _, info = env.step(action)
        assert plain.step(action)[2] == terminated
    assert info["episode"]["l"] > 12


def test_flattened_parts_are_the_flat_vector() -> None:
    parts = RetinueEnv(opponents="racer", observation="dict")
    flattened = wrappers.FlattenObservation(parts)
    flat, _ = RetinueEnv(opponents="racer").reset(seed=1)
    assert np.array_equal(flattened.reset(seed=1)[0], flat)

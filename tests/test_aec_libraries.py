"""The PettingZoo environment in other hands: PettingZoo's checkers and wrappers, and SuperSuit."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import supersuit
from pettingzoo.utils.conversions import aec_to_parallel, turn_based_aec_to_parallel
from pettingzoo.utils.wrappers import TerminateIllegalWrapper

from aec_tables import AGENTS, digest, joined, played, short
from playing import Dealer
from retinue.envs.actions import ENCODINGS
from retinue.envs.aec_env import env, raw_env
from retinue.envs.game.ruleset import MODES

CHECKED = pytest.mark.filterwarnings(
    "ignore:The old environment creation API:DeprecationWarning",  # the checkers import games
    "ignore:.*unknown option 'options' is ignored",
    "ignore:Observation is not a NumPy array",
    "ignore:(Observation|Action) space for each agent probably should be",
    "ignore:We recommend agents to be named in the format",
)
"""Remarks of PettingZoo's checkers: on names, and on spaces that its own games have too."""
EVERY_ENCODING = pytest.mark.parametrize("encoding", ENCODINGS)


def new_env(encoding: str = "steps") -> Any:
    return env(encoding=encoding, rules=short("journey"))


def boxed(table: Any) -> Any:
    """Return a table whose agents see the bare vector, as most of SuperSuit's wrappers need it."""
    return supersuit.observation_lambda_v0(
        table, lambda seen, _: seen["observation"], lambda space: space["observation"]
    )


def sample(table: Any, agent: str) -> Any:
    """Return a legal action, whatever a wrapper has made of the observation."""
    mask = table.unwrapped.observe(agent)["action_mask"]
    return table.action_space(agent).sample(mask)


# --- PettingZoo


@CHECKED
@pytest.mark.parametrize("mode", MODES)
@EVERY_ENCODING
@pytest.mark.parametrize(("make", "observation"), [(env, "flat"), (env, "dict"), (raw_env, "flat")])
def test_the_checkers_find_nothing(mode: str, encoding: str, make: Any, observation: str) -> None:
    from pettingzoo.test import api_test, seed_test

    arguments = {"encoding": encoding, "observation": observation}
    api_test(make(mode, **arguments), num_cycles=400)  # four times as many steps: a whole match
    seed_test(lambda: make(mode, **arguments), num_cycles=50)


@CHECKED
@EVERY_ENCODING
def test_a_turn_based_parallel_version_can_be_made(encoding: str) -> None:
    from pettingzoo.test import parallel_api_test

    parallel_api_test(turn_based_aec_to_parallel(new_env(encoding)), num_cycles=200)
    table = new_env(encoding)
    rows = played(table, 5)
    parallel = turn_based_aec_to_parallel(table)
    observations, _ = parallel.reset(seed=5)
    dealer, paid = Dealer(table.unwrapped.batch.encoding, 3, [0]), dict.fromkeys(AGENTS, 0.0)
    for agent, seen, *_ in rows[:-4]:
        shown = observations[agent]
        assert np.array_equal(shown["observation"], seen["observation"])
        assert [each for each in AGENTS if joined(observations[each]["action_mask"]).any()] == [
            agent
        ]
        action = dealer(joined(shown["action_mask"])[None])[0]
        observations, rewards, terminations, truncations, _ = parallel.step(
            {each: action if each == agent else None for each in AGENTS}
        )
        paid = {each: paid[each] + rewards[each] for each in AGENTS}
    assert parallel.agents == []
    assert set(terminations.values()) == {True}
    assert set(truncations.values()) == {False}
    assert paid == pytest.approx({each: sum(r[2] for r in rows if r[0] == each) for each in AGENTS})


def test_a_parallel_version_of_simultaneous_moves_is_refused() -> None:
    with pytest.raises(AssertionError, match="not generally safe"):
        aec_to_parallel(new_env())


def test_illegal_actions_can_be_made_to_end_the_match() -> None:
    table = TerminateIllegalWrapper(new_env(), illegal_reward=-1)
    assert digest(played(table, 4)) == digest(played(new_env(), 4)), "legal ones do nothing"
    table.reset(seed=4)
    table.step(50)
    assert table.last()[1:4] == (-1, True, True)


# --- SuperSuit

WRAPPERS: dict[str, Callable[[Any], Any]] = {
    "clip_reward": supersuit.clip_reward_v0,
    "reward_lambda": lambda table: supersuit.reward_lambda_v0(table, lambda reward: 2 * reward),
    "observation_lambda": boxed,
    "action_lambda": lambda table: supersuit.action_lambda_v1(
        table, lambda action, _: action, lambda space: space
    ),
    "nan_zeros": supersuit.nan_zeros_v0,
    "agent_indicator": lambda table: supersuit.agent_indicator_v0(boxed(table)),
    "delay_observations": lambda table: supersuit.delay_observations_v0(boxed(table), 2),
    "dtype": lambda table: supersuit.dtype_v0(boxed(table), np.float16),
    "flatten": lambda table: supersuit.flatten_v0(boxed(table)),
    "frame_stack": lambda table: supersuit.frame_stack_v1(boxed(table), 3),
    "max_observation": lambda table: supersuit.max_observation_v0(boxed(table), 2),
    "normalize_obs": lambda table: supersuit.normalize_obs_v0(boxed(table)),
    "pad_observations": lambda table: supersuit.pad_observations_v0(boxed(table)),
}


@EVERY_ENCODING
@pytest.mark.parametrize("name", WRAPPERS)
def test_wrappers_of_supersuit(name: str, encoding: str) -> None:
    table = WRAPPERS[name](new_env(encoding))
    table.reset(seed=2)
    seen, steps = [], 0
    for agent in table.agent_iter():
        observation, _, terminated, truncated, info = table.last()
        assert table.observation_space(agent).contains(observation)
        assert info["illegal_action"] is False
        assert truncated is False
        seen.append(agent)
        table.step(None if terminated else sample(table, agent))
        steps += not terminated
    assert set(seen) == set(AGENTS)
    assert steps >= 12
    assert sorted(seen[-4:]) == sorted(AGENTS)


def test_a_wrapped_reward_is_what_it_should_be() -> None:
    plain = played(new_env(), 3)
    doubled = played(WRAPPERS["reward_lambda"](new_env()), 3)
    assert [2 * row[2] for row in plain] == pytest.approx([row[2] for row in doubled])
    assert any(row[2] for row in plain)


@pytest.mark.filterwarnings("ignore:agent_selector is deprecated:DeprecationWarning")
@EVERY_ENCODING
def test_several_tables_side_by_side(encoding: str) -> None:
    tables = supersuit.vectorize_aec_env_v0(boxed(new_env(encoding)), 2)
    tables.reset(seed=1)
    ends = 0
    for agent in tables.agent_iter(300):
        observations, rewards, terminations, *_, passes, _ = tables.last()
        assert observations.shape == (2, *tables.observation_space(agent).shape)
        assert not passes.all()
        ends += terminations.any()
        tables.step([sample(each, agent) for each in tables.envs])
    assert np.isfinite(rewards).all()
    assert ends > 0


@EVERY_ENCODING
@pytest.mark.parametrize("wrap", [lambda table: table, boxed], ids=["dict", "box"])
@pytest.mark.parametrize("library", ["gymnasium", "stable_baselines3"])
def test_a_vector_environment_over_the_agents(encoding: str, wrap: Any, library: str) -> None:
    parallel = turn_based_aec_to_parallel(wrap(new_env(encoding)))
    vector = supersuit.concat_vec_envs_v1(
        supersuit.pettingzoo_env_to_vec_env_v1(parallel), 2, base_class=library
    )
    vector.reset()
    vector.action_space.seed(1)
    ends = 0
    for _ in range(150):
        actions = np.array([vector.action_space.sample() for _ in range(8)])
        _, rewards, dones, *_ = vector.step(actions)
        assert rewards.shape == dones.shape == (8,)
        ends += dones.any()
    assert ends > 0

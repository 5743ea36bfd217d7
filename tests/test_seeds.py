"""What every environment does with a seed, and with one that is none."""

import re
from typing import Any

import numpy as np
import pytest

import retinue.agents  # noqa: F401 - opponents by name
from retinue.envs.aec_env import RetinueAECEnv, env
from retinue.envs.gym_env import RetinueEnv
from retinue.envs.vector_env import RetinueVectorEnv

ENVIRONMENTS = {
    "Gymnasium": lambda: RetinueEnv(opponents=["racer"], seats=0),
    "vector": lambda: RetinueVectorEnv(2, opponents=["racer"], seats=0, threads=1),
    "PettingZoo": RetinueAECEnv,
    "PettingZoo, wrapped": env,
}
EVERY_ENVIRONMENT = pytest.mark.parametrize("make", ENVIRONMENTS.values(), ids=ENVIRONMENTS)


@EVERY_ENVIRONMENT
@pytest.mark.parametrize(
    ("seed", "message"),
    [
        (-1, "seed -1 is negative"),
        (1.5, "seed 1.5 is not an integer"),
        ("3", "seed '3' is not an integer"),
    ],
)
def test_seeds_that_are_none_start_nothing(make: Any, seed: Any, message: str) -> None:
    table = make()
    table.reset(seed=5)
    inner = table.unwrapped
    chance = getattr(inner, "_np_random", None)
    before = inner.batch.save_matches(), chance and chance.bit_generator.state
    with pytest.raises(ValueError, match=re.escape(message)):
        table.reset(seed=seed)
    chance = getattr(inner, "_np_random", None)
    assert (inner.batch.save_matches(), chance and chance.bit_generator.state) == before


@pytest.mark.parametrize("make", list(ENVIRONMENTS.values())[:2], ids=list(ENVIRONMENTS)[:2])
def test_refused_options_leave_the_chance_alone(make: Any) -> None:
    table = make()
    table.reset(seed=5)
    before = table.np_random.bit_generator.state
    with pytest.raises(ValueError, match="opponent"):
        table.reset(seed=6, options={"opponents": ["nobody"] * 2})
    assert table.np_random.bit_generator.state == before


@EVERY_ENVIRONMENT
def test_a_seed_may_be_numpy_s_and_large(make: Any) -> None:
    table, other = make(), make()
    for seed in (np.int64(7), np.uint8(200), 2**53 - 1):
        table.reset(seed=seed)
        other.reset(seed=int(seed))
        ours, theirs = table.unwrapped.batch, other.unwrapped.batch
        assert np.array_equal(ours.seeds, theirs.seeds)
        assert ours.seeds[0] == int(seed)

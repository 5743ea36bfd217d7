"""Speed of training, as a share of the same training on an environment that costs nothing."""

import time
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import torch
from sb3_contrib import MaskablePPO

from retinue.envs.actions import ENCODINGS
from retinue.evaluation.benchmark import Row
from retinue.training.config import load_config
from retinue.training.ppo import make_model, make_vec_env
from retinue.training.sb3_vec_env import RetinueVecEnv

ROUNDS: Final = 5


class FreeVecEnv(RetinueVecEnv):
    """The same spaces, but every step gives the same constants."""

    def step_wait(self) -> tuple[Any, np.ndarray[Any, Any], np.ndarray[Any, Any], list[Any]]:
        """Return the present observations, no reward and no end."""
        none = np.zeros(self.num_envs, np.float32)
        return self.batch.observations, none, none.astype(np.bool_), [{}] * self.num_envs

    def env_method(
        self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any
    ) -> Any:
        """Return the present masks."""
        return self.batch.masks


def benchmark_training(mode: str, *, quick: bool = False) -> Iterator[Row]:
    """Yield the speed of training on a free environment, on the real one, and their ratio.

    Both are timed in turns, so that the ratio holds when the machine's speed drifts.

    Args:
        mode: ``"journey"`` or ``"brawl"``, trained as in ``configs/train/quick.yaml``.
        quick: one short round with few environments: to see that it works, not to quote.
    """
    config = load_config("quick", [f"mode={mode}", *(["environments=32"] if quick else [])])
    torch.set_num_threads(config.torch_threads)
    for encoding in ENCODINGS:
        chosen = config.model_copy(update={"encoding": encoding})
        real = make_vec_env(chosen)
        learners = [make_model(chosen, FreeVecEnv(real.batch, seed=0)), make_model(chosen, real)]
        for learner in learners:
            _speed(learner, 1)
        rounds = 1 if quick else ROUNDS
        speeds = np.array(
            [[_speed(learner, 1 if quick else 4) for learner in learners] for _ in range(rounds)]
        )
        ratios = speeds[:, 1] / speeds[:, 0]
        for name, unit, values in (
            ("train/free", "decisions/s", speeds[:, 0]),
            ("train", "decisions/s", speeds[:, 1]),
            ("train/ratio", "of free", ratios),
        ):
            yield Row(
                f"{name}/{encoding}",
                chosen.environments,
                chosen.torch_threads,
                unit,
                float(np.median(values)),
                float(values.min()),
                float(values.max()),
            )


def _speed(learner: MaskablePPO, rollouts: int) -> float:
    """Train for so many rollouts; return the decisions made a second."""
    decisions = rollouts * learner.n_steps * learner.n_envs
    begun = time.perf_counter()
    learner.learn(decisions, reset_num_timesteps=False)
    return decisions / (time.perf_counter() - begun)

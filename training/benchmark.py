"""Speed of training, as a share of the same training on an environment that costs nothing."""

import statistics
import time
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import torch
from sb3_contrib import MaskablePPO

from retinue.evaluation.benchmark import Row
from retinue.training.config import load_config
from retinue.training.ppo import make_model, make_vec_env
from retinue.training.sb3_vec_env import RetinueVecEnv

ROUNDS: Final = 3


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
    """Yield the speed of training on a free environment and on the real one, timed in turns.

    Args:
        mode: ``"journey"`` or ``"brawl"``, trained as in ``configs/train/quick.yaml``.
        quick: one short round: to see that it works, not to quote.
    """
    config = load_config("quick", [f"mode={mode}"])
    torch.set_num_threads(config.torch_threads)
    for encoding in ("steps", "turn"):
        chosen = config.model_copy(update={"encoding": encoding})
        real = make_vec_env(chosen)
        models = {
            "train/free": make_model(chosen, FreeVecEnv(real.batch, seed=0)),
            "train": make_model(chosen, real),
        }
        rates: dict[str, list[float]] = {name: [] for name in models}
        for model in models.values():
            _learn(model, 1)
        for _ in range(1 if quick else ROUNDS):
            for name, model in models.items():
                begun = time.perf_counter()
                decisions = _learn(model, 1 if quick else 4)
                rates[name].append(decisions / (time.perf_counter() - begun))
        for name, values in rates.items():
            median = statistics.median(values)
            yield Row(
                f"{name}/{encoding}",
                chosen.environments,
                chosen.torch_threads,
                "decisions/s",
                median,
                min(values),
                max(values),
            )


def _learn(model: MaskablePPO, rollouts: int) -> int:
    """Train for so many rollouts; return the decisions made."""
    decisions = rollouts * model.n_steps * model.n_envs
    model.learn(decisions, log_interval=None, reset_num_timesteps=False)
    return decisions

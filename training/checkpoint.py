"""The whole state of a run at the start of a rollout: taken, and put back exactly."""

import hashlib
import math
from typing import Any

import numpy as np
import torch
from sb3_contrib import MaskablePPO

from retinue.envs.game.state import GAME, TURN
from retinue.envs.kernels import OUTCOME, SLOT
from retinue.envs.observation import OBSERVATION_VERSION
from retinue.training.config import TrainConfig
from retinue.training.league import League
from retinue.training.refinement import Refiner
from retinue.training.run_folder import RunError
from retinue.training.sb3_vec_env import RetinueVecEnv


def stamp(config: TrainConfig, environment: RetinueVecEnv) -> dict[str, Any]:
    """Return what a run must have in common with a checkpoint to go on from it, as plain data."""
    ruleset = environment.batch.ruleset
    layout = repr([array.descr for array in (GAME, TURN, SLOT, OUTCOME)])
    return {
        "mode": ruleset.mode,
        "rules": ruleset.digest,
        "encoding": config.encoding,
        "candidates": config.candidates,
        "observation version": OBSERVATION_VERSION,
        "environments": config.environments,
        "network": list(config.network),
        "value network": list(config.value_network),
        "opponents": list(config.opponents),
        "league": None if config.league is None else config.league.model_dump(mode="json"),
        "reward": config.reward.model_dump(mode="json"),
        "memory layout": hashlib.sha256(layout.encode()).hexdigest()[:16],
    }


def capture(
    config: TrainConfig,
    model: MaskablePPO | Refiner,
    environment: RetinueVecEnv,
    league: League,
    elapsed: float,
) -> dict[str, Any]:
    """Return all that a run needs to go on exactly: learner, chance, matches, counters.

    Tensors and plain data only, so that it loads without running code. The learner's own tensors
    are not copied: what is returned is good until the next update.
    """
    snapshot = environment.snapshot()
    return {
        "stamp": stamp(config, environment),
        "is_refining": isinstance(model, Refiner),
        **(model.state() if isinstance(model, Refiner) else _state_of(model)),
        "elapsed": elapsed,
        "torch_rng": torch.get_rng_state(),
        "matches": [
            torch.frombuffer(bytearray(each), dtype=torch.uint8) for each in snapshot["matches"]
        ],
        "returns": snapshot["returns"],
        "lengths": snapshot["lengths"],
        "league": league.state(),
    }


def _state_of(model: MaskablePPO) -> dict[str, Any]:
    generator: Any = np.random.get_state(legacy=True)  # noqa: NPY002 - SB3 draws from it
    kind, keys, position, has_gauss, gauss = generator
    return {
        "policy": model.policy.state_dict(),
        "optimizer": model.policy.optimizer.state_dict(),
        "decisions": model.num_timesteps,
        "updates": model._n_updates,
        "episode_starts": torch.as_tensor(np.array(model._last_episode_starts)),
        "numpy_rng": [kind, torch.as_tensor(keys.astype(np.int64)), position, has_gauss, gauss],
    }


def restore(
    config: TrainConfig,
    model: MaskablePPO | Refiner,
    environment: RetinueVecEnv,
    league: League,
    state: dict[str, Any],
) -> float:
    """Put a learner, its environment and its opponents back to where :func:`capture` took them.

    Returns:
        The seconds that the run had taken.

    Raises:
        RunError: the state is another run's, another version's or damaged; says what differs.
    """
    saved = state.get("stamp")
    for name, mine in stamp(config, environment).items():
        theirs = saved.get(name) if isinstance(saved, dict) else None
        if theirs != mine:
            raise RunError(f"the checkpoint's {name} is {theirs}, but the run's is {mine}")
    try:
        league.restore(state["league"])
        return _put_back(model, environment, state)
    except Exception as error:  # whatever torch and NumPy make of damaged data
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise RunError(f"the checkpoint is damaged or another version's: {reason:.200}") from error


def _put_back(
    model: MaskablePPO | Refiner, environment: RetinueVecEnv, state: dict[str, Any]
) -> float:
    decisions, elapsed = int(state["decisions"]), float(state["elapsed"])
    if decisions < 0 or not math.isfinite(elapsed):
        raise ValueError(f"{decisions} decisions in {elapsed} seconds")
    # NumPy would spread a single value over all environments.
    per_match = ["returns", "lengths", *([] if isinstance(model, Refiner) else ["episode_starts"])]
    for name in per_match:
        if len(state[name]) != environment.num_envs:
            raise ValueError(f"{len(state[name])} {name} for {environment.num_envs} environments")
    observations = environment.restore(
        {
            "matches": [each.numpy().tobytes() for each in state["matches"]],
            "returns": state["returns"],
            "lengths": state["lengths"],
        }
    )
    if isinstance(model, Refiner):
        model.restore(state)
    else:
        _put_back_learner(model, state)
        model._last_obs = observations
    torch.set_rng_state(state["torch_rng"])
    return elapsed


def _put_back_learner(model: MaskablePPO, state: dict[str, Any]) -> None:
    model.policy.load_state_dict(state["policy"])
    model.policy.optimizer.load_state_dict(state["optimizer"])
    model.num_timesteps = int(state["decisions"])
    model._n_updates = state["updates"]
    model._last_episode_starts = state["episode_starts"].numpy()
    kind, keys, position, has_gauss, gauss = state["numpy_rng"]
    np.random.set_state((kind, keys.numpy().astype(np.uint32), position, has_gauss, gauss))  # noqa: NPY002

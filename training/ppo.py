"""Training with sb3-contrib's MaskablePPO, unmodified, on the batch engine."""

from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.logger import Logger, TensorBoardOutputFormat
from stable_baselines3.common.utils import LinearSchedule
from stable_baselines3.common.vec_env.base_vec_env import VecEnv
from torch import nn

from retinue.agents.network import PolicyNetwork
from retinue.agents.policy import PolicyAgent, manifest_of, save_policy
from retinue.agents.registry import make_agent
from retinue.envs.batch import ANY, Batch
from retinue.envs.game.ruleset import Ruleset, load_ruleset
from retinue.envs.rewards import Reward
from retinue.training.callbacks import TrainingCallback
from retinue.training.config import TrainConfig
from retinue.training.measure import Measurement, Measurer
from retinue.training.run_folder import RunFolder
from retinue.training.sb3_vec_env import RetinueVecEnv

MATCH_SEED_SPACING: Final = 1 << 32
"""Training matches start at ``seed`` times this, so that runs share no first match."""


def ruleset_of(config: TrainConfig) -> Ruleset:
    """Return the rules that a run is played by."""
    return load_ruleset(config.rules or config.mode)


def check_names(config: TrainConfig) -> None:
    """Look up the rules and agents that a configuration names, before anything is made.

    Raises:
        ValueError: one of them does not exist.
    """
    ruleset = ruleset_of(config)
    for name in (*config.opponents, *config.evaluation.against):
        make_agent(name, ruleset)


def make_vec_env(config: TrainConfig) -> RetinueVecEnv:
    """Return the training environment of a configuration.

    Raises:
        ValueError: an opponent is unknown.
    """
    ruleset = ruleset_of(config)
    batch = Batch(
        ruleset,
        config.environments,
        encoding=config.encoding,
        seats=ANY,
        opponents=[make_agent(name, ruleset) for name in config.opponents],
        draw="each match",
        reward=Reward(config.reward.mode, config.reward.scale),
        threads=config.engine_threads,
    )
    return RetinueVecEnv(batch, seed=config.seed * MATCH_SEED_SPACING)


def make_model(config: TrainConfig, environment: VecEnv) -> MaskablePPO:
    """Return an untrained MaskablePPO of a configuration."""
    ppo = config.ppo
    # Rounding in float32 probabilities is no error: on, this check ends long runs for nothing.
    torch.distributions.Distribution.set_default_validate_args(False)
    return MaskablePPO(
        "MlpPolicy",
        environment,
        n_steps=ppo.rollout_steps,
        batch_size=ppo.batch_size,
        n_epochs=ppo.epochs,
        learning_rate=LinearSchedule(ppo.learning_rate, ppo.final_learning_rate, 1.0),
        gamma=ppo.discount,
        gae_lambda=ppo.gae_lambda,
        clip_range=ppo.clip_range,
        ent_coef=ppo.entropy_weight,
        vf_coef=ppo.value_weight,
        max_grad_norm=ppo.max_gradient_norm,
        policy_kwargs={
            "net_arch": list(config.network),
            "activation_fn": nn.ReLU,
            "optimizer_kwargs": {"eps": 1e-5},
        },
        seed=config.seed,
        device="cpu",
    )


def policy_of(model: MaskablePPO, hidden: tuple[int, ...]) -> PolicyNetwork:
    """Return a copy of the acting part of a learner, by itself."""
    policy = model.policy
    trained = [*policy.mlp_extractor.policy_net, policy.action_net]
    first, last = trained[0], trained[-1]
    network = PolicyNetwork(first.in_features, hidden, last.out_features)
    for mine, theirs in zip(network.layers, trained, strict=True):
        mine.load_state_dict(theirs.state_dict())
    return network.eval()


def capture(model: MaskablePPO, environment: RetinueVecEnv) -> dict[str, Any]:
    """Return all that a run needs to go on exactly: learner, chance, matches, counters.

    Tensors and plain data only, so that it loads without running code. The learner's own tensors
    are not copied: what is returned is good until the next update.
    """
    generator: Any = np.random.get_state(legacy=True)  # noqa: NPY002 - SB3 draws from it
    kind, keys, position, has_gauss, gauss = generator
    snapshot = environment.snapshot()
    return {
        "policy": model.policy.state_dict(),
        "optimizer": model.policy.optimizer.state_dict(),
        "decisions": model.num_timesteps,
        "updates": model._n_updates,
        "episode_starts": torch.as_tensor(np.array(model._last_episode_starts)),
        "torch_rng": torch.get_rng_state(),
        "numpy_rng": [kind, torch.as_tensor(keys.astype(np.int64)), position, has_gauss, gauss],
        "matches": [
            torch.frombuffer(bytearray(each), dtype=torch.uint8) for each in snapshot["matches"]
        ],
        "returns": snapshot["returns"],
        "lengths": snapshot["lengths"],
    }


def restore(model: MaskablePPO, environment: RetinueVecEnv, state: dict[str, Any]) -> None:
    """Put a learner and its environment back to where :func:`capture` took them."""
    model.policy.load_state_dict(state["policy"])
    model.policy.optimizer.load_state_dict(state["optimizer"])
    model.num_timesteps = state["decisions"]
    model._n_updates = state["updates"]
    model._last_obs = environment.restore(
        {
            "matches": [each.numpy().tobytes() for each in state["matches"]],
            "returns": state["returns"],
            "lengths": state["lengths"],
        }
    )
    model._last_episode_starts = state["episode_starts"].numpy()
    kind, keys, position, has_gauss, gauss = state["numpy_rng"]
    np.random.set_state((kind, keys.numpy().astype(np.uint32), position, has_gauss, gauss))  # noqa: NPY002
    torch.set_rng_state(state["torch_rng"])


def train(config: TrainConfig, run: RunFolder, *, resume: bool = False) -> Measurement | None:
    """Train a policy, measure it and leave everything in the run folder.

    Ctrl-C ends training after the decision under way and keeps the last update; the run can then be
    resumed as if nothing had happened.

    Args:
        config: what to train.
        run: where to keep it.
        resume: go on from the run's checkpoint.

    Returns:
        The final measurement; None if the run was interrupted.
    """
    torch.set_num_threads(config.torch_threads)
    environment = make_vec_env(config)
    model = make_model(config, environment)
    measurer = Measurer(config, environment.batch.ruleset)
    state = None
    if resume:
        state = run.load_checkpoint()
        restore(model, environment, state)
        run.keep_metrics_until(model.num_timesteps)
    model.set_logger(Logger(str(run.path), [TensorBoardOutputFormat(str(run.tensorboard))]))
    callback = TrainingCallback(
        config,
        run,
        measure=lambda: measurer.during(_agent(model, config, environment), model.num_timesteps),
        capture=lambda: capture(model, environment),
        elapsed=state["elapsed"] if state else 0.0,
    )
    remaining = config.decisions - model.num_timesteps
    if remaining > 0:
        model.learn(remaining, callback, log_interval=1, reset_num_timesteps=state is None)
    agent = _agent(model, config, environment)
    save_policy(
        run.policy,
        agent.network,
        manifest_of(environment.batch.encoding, config.network, model.num_timesteps),
    )
    if callback.was_interrupted:
        return None
    result = measurer.final(agent, model.num_timesteps)
    run.save_evaluation(result.as_dict())
    return result


def _agent(model: MaskablePPO, config: TrainConfig, environment: RetinueVecEnv) -> PolicyAgent:
    return PolicyAgent(policy_of(model, config.network), environment.batch.encoding, "learner")


def default_folder(config_path: Path) -> Path:
    """Return the folder that a configuration's runs are kept in by default."""
    return Path("runs") / config_path.stem

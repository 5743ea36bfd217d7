"""Training with sb3-contrib's MaskablePPO, unmodified, on the batch engine."""

import contextlib
import copy
from pathlib import Path
from typing import Final

import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.logger import Logger, TensorBoardOutputFormat
from stable_baselines3.common.utils import LinearSchedule
from stable_baselines3.common.vec_env.base_vec_env import VecEnv
from torch import nn

from retinue.agents.network import CandidateNetwork, Network, PolicyNetwork, network_for
from retinue.agents.policy import PolicyAgent, Returns, TorchModel, manifest_of, save_policy
from retinue.agents.registry import make_known_agent
from retinue.envs.actions import Encoding
from retinue.envs.batch import Batch
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.rewards import Reward
from retinue.envs.seating import ANY
from retinue.training.callbacks import TrainingCallback
from retinue.training.candidate_policy import CandidatePolicy, Extractor
from retinue.training.checkpoint import capture, restore
from retinue.training.clock import Clock
from retinue.training.config import TrainConfig, ruleset_of
from retinue.training.league import League
from retinue.training.measure import Measurement, Measurer, agents_of
from retinue.training.refinement import Refiner, repliers
from retinue.training.run_folder import RunError, RunFolder
from retinue.training.sb3_vec_env import RetinueVecEnv

LARGEST_WEIGHT: Final = 1e6

MATCH_SEED_SPACING: Final = 1 << 32
"""Dice seeds of training matches start at ``seed`` times this, so that runs share no first match;
with seeds below 2**20 they stay below ``MEASURING_SEED``."""


def check_names(config: TrainConfig) -> None:
    """Look up the rules and agents that a configuration names, before anything is made.

    Raises:
        ValueError: one of them does not exist, or the rules are of another mode.
    """
    ruleset = ruleset_of(config)
    for name in (*config.opponents, *agents_of(config.evaluation)):
        make_known_agent(name, ruleset)
    if config.refinement is not None:
        repliers(config.refinement, ruleset)


def make_league(config: TrainConfig, ruleset: Ruleset) -> League:
    """Return the opponents of a configuration, with or without copies of the learner.

    Raises:
        ValueError: an opponent is unknown.
    """
    encoding = Encoding(config.encoding, ruleset, config.candidates)
    return League(
        config.league,
        [make_known_agent(name, ruleset) for name in config.opponents],
        encoding,
        lambda: network_for(encoding, config.network, config.value_network),
        config.engine_threads,
    )


def make_vec_env(
    config: TrainConfig, ruleset: Ruleset | None = None, league: League | None = None
) -> RetinueVecEnv:
    """Return the training environment of a configuration.

    Args:
        config: the configuration.
        ruleset: instead of the rules that it names.
        league: the opponents, which will be told how matches end; by default a new one.

    Raises:
        ValueError: an opponent is unknown.
    """
    ruleset = ruleset or ruleset_of(config)
    league = league or make_league(config, ruleset)
    batch = Batch(
        ruleset,
        config.environments,
        encoding=config.encoding,
        candidates=config.candidates,
        seats=ANY,
        opponents=league.agents,
        draw="each match",
        reward=Reward(config.reward.mode, config.reward.scale, config.reward.place_bonus),
        threads=config.engine_threads,
    )
    league.deal(batch)
    environment = RetinueVecEnv(batch)
    environment.on_ends = lambda ended: league.note(batch, ended)
    return environment


def make_model(config: TrainConfig, environment: VecEnv) -> MaskablePPO:
    """Return an untrained MaskablePPO of a configuration."""
    ppo = config.ppo
    model = MaskablePPO(
        CandidatePolicy if config.encoding == "candidates" else "MlpPolicy",
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
            "net_arch": {"pi": list(config.network), "vf": list(config.value_network)},
            "activation_fn": nn.ReLU,
            "optimizer_kwargs": {"eps": 1e-5},
        },
        seed=config.seed,
        device="cpu",
    )
    # Stable-Baselines3 has just given the environment the learner's own seed.
    environment.seed(config.seed * MATCH_SEED_SPACING)
    return model


def has_diverged(model: MaskablePPO | Refiner) -> bool:
    """Tell whether a learner's weights have grown past all use, or are no numbers any more."""
    return not all(bool((each.abs() < LARGEST_WEIGHT).all()) for each in model.policy.parameters())


def policy_of(model: MaskablePPO, config: TrainConfig, encoding: Encoding) -> Network:
    """Return a copy of the acting part of a learner, by itself."""
    policy = model.policy
    if isinstance(policy, CandidatePolicy):
        extractor: Extractor = policy.mlp_extractor
        return extractor.copy(config.network, config.value_network).eval()
    network = PolicyNetwork(encoding.layout().size, config.network, encoding.mask_size)
    trained = [*policy.mlp_extractor.policy_net, policy.action_net]
    for mine, theirs in zip(network.layers, trained, strict=True):
        mine.load_state_dict(theirs.state_dict())
    return network.eval()


class _Training:
    """A run while it is trained: PPO's learner first, then, if it is to be refined, another."""

    def __init__(self, config: TrainConfig, run: RunFolder) -> None:
        self.config, self.run = config, run
        ruleset = run.ruleset()
        self.league = make_league(config, ruleset)
        self.environment = make_vec_env(config, ruleset, self.league)
        self.encoding = self.environment.batch.encoding
        self.measurer = Measurer(config, ruleset)
        self.learner: MaskablePPO | Refiner = make_model(config, self.environment)
        self.decisions = 0
        self.elapsed = 0.0

    def resume(self) -> None:
        """Go on from the run's checkpoint."""
        state = self.run.load_checkpoint()
        if state.get("is_refining"):
            self.start_refining()
        self.elapsed = restore(self.config, self.learner, self.environment, self.league, state)
        self.decisions = self.learner.num_timesteps
        self.run.keep_metrics_until(self.decisions)

    def start_refining(self) -> None:
        """Let another learner go on with what PPO's has learned."""
        network = self.network()
        assert isinstance(network, CandidateNetwork)  # as the configuration was checked
        self.learner = Refiner(self.config, network, self.environment, self.decisions)

    def network(self) -> Network:
        """Return a copy of what the learner has learned."""
        if isinstance(self.learner, Refiner):
            return copy.deepcopy(self.learner.network).eval()
        return policy_of(self.learner, self.config, self.encoding)

    def agent(self) -> PolicyAgent:
        """Return the learner as an agent."""
        threads = self.config.engine_threads
        return PolicyAgent(TorchModel(self.network()), self.encoding, "learner", threads=threads)

    def keep(self, folder: Path, decisions: int) -> None:
        """Write what the learner has learned, so many decisions, to a folder."""
        config = self.config
        returns = Returns(**config.reward.model_dump(), discount=config.ppo.discount)
        network = self.network()
        manifest = manifest_of(
            self.encoding,
            config.network,
            config.value_network,
            decisions,
            returns,
            refined=isinstance(network, CandidateNetwork) and network.opinion is not None,
        )
        save_policy(folder, network, manifest)

    def measure(self) -> Measurement:
        """Keep the learner as it is in the run's history, and measure it."""
        decisions = self.learner.num_timesteps
        self.keep(self.run.history / str(decisions), decisions)
        return self.measurer.during(self.agent(), decisions)

    def learn(self, until: int) -> bool:
        """Let the learner learn until so many decisions have been made; tell if it may go on.

        Raises:
            RunError: its weights have grown past all use.
        """
        learner, league, environment = self.learner, self.league, self.environment
        callback = TrainingCallback(
            self.config,
            self.run,
            measure=self.measure,
            capture=lambda seconds: capture(self.config, learner, environment, league, seconds),
            renew=lambda: league.update(self.network(), environment.batch, learner.num_timesteps),
            league=league,
            clock=Clock(environment, league),
            measured=self.run.last_measured(),
            elapsed=self.elapsed,
        )
        logger = Logger(str(self.run.path), [TensorBoardOutputFormat(str(self.run.tensorboard))])
        learner.set_logger(logger)
        with contextlib.closing(logger), callback.running():
            try:
                if isinstance(learner, Refiner):
                    learner.learn(until, callback)
                else:
                    learner.learn(
                        until - self.decisions,
                        callback,
                        log_interval=1,
                        reset_num_timesteps=not self.decisions,
                    )
            except ValueError as error:
                if not has_diverged(learner):
                    raise
                raise RunError(
                    f"{self.run.path}: training diverged; try a lower ppo.learning_rate or a "
                    "larger reward.scale"
                ) from error
        self.decisions, self.elapsed = callback.decisions, callback.elapsed
        return not callback.was_interrupted


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

    Raises:
        RunError: the checkpoint does not fit the run.
    """
    torch.set_num_threads(config.torch_threads)
    training = _Training(config, run)
    if resume:
        training.resume()
    goes_on = True
    if training.decisions < config.decisions:
        goes_on = training.learn(config.decisions)
    if goes_on and config.decisions <= training.decisions < config.all_decisions:
        if not isinstance(training.learner, Refiner):
            training.start_refining()
        goes_on = training.learn(config.all_decisions)
    training.keep(run.policy, training.decisions)
    if not goes_on:
        return None
    result = training.measurer.final(training.agent(), training.decisions)
    run.save_evaluation(result.as_dict())
    return result

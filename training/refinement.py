"""Refinement: what a trained policy's rollouts say, learned as a second opinion.

PPO learns from one noisy outcome of one choice. Here every decision tells more: a dozen of its
candidates are each played out once until the own next decision, the dice the same for all. A second
scorer of candidates learns to predict what that is worth by the learner's own value, and so what
others will answer, though it is shown only what the own turn leads to. PPO's opinion and this one
count the same in the end: either by itself is weaker, since rollouts are valued by a value that
a policy which trusts nothing else learns to deceive.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import torch
from stable_baselines3.common.logger import Logger

from retinue.agents.lookahead import favourites_of
from retinue.agents.network import CandidateNetwork, RowScorer
from retinue.agents.playouts import Playouts, turns_of
from retinue.agents.policy import PolicyAgent, Returns, TorchModel
from retinue.agents.registry import make_known_agent
from retinue.agents.search import quickened
from retinue.envs.facts import FACT_COUNT
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.observation import EXTRA_AT
from retinue.envs.opponents import Policy
from retinue.training.callbacks import TrainingCallback
from retinue.training.config import RefinementConfig, TrainConfig
from retinue.training.sb3_vec_env import RetinueVecEnv

PLAYED_OUT: Final = 0.5
"""Share of decisions that go by the rollouts, as where the policy looks ahead when it plays; the
others by the policy's own favourite. So it meets the positions that either leads to."""
ROLLOUT_SEEDS: Final = 1 << 62
LEAST_SLOPE: Final = 1e-6
"""Reward that a logit of PPO's tells of, at least: one that tells nothing must not divide by 0."""
STORED: Final = torch.float16


class Tried:
    """What decisions tell: rows that were tried, and what they turned out to be worth.

    Args:
        states: float16 ``(n, EXTRA_AT)``.
        rows: float16 ``(n, k, FACT_COUNT)``, of the candidates tried.
        there: bool ``(n, k)``: so many there were.
        worths: float32 ``(n, k)``, in rewards.
    """

    FIELDS: Final = ("states", "rows", "there", "worths")

    def __init__(self, states: Any, rows: Any, there: Any, worths: Any) -> None:
        self.states, self.rows, self.there, self.worths = states, rows, there, worths

    def __len__(self) -> int:
        return len(self.states)

    def __getitem__(self, chosen: Any) -> "Tried":
        return Tried(*(getattr(self, name)[chosen] for name in self.FIELDS))

    @classmethod
    def join(cls, parts: "Sequence[Tried]") -> "Tried":
        """Return the decisions of several."""
        return cls(*(torch.cat([getattr(part, name) for part in parts]) for name in cls.FIELDS))

    def scores(self, scorer: RowScorer) -> torch.Tensor:
        """Return what a scorer makes of the candidates, float32 ``(n, k)``."""
        scores: torch.Tensor = scorer(self.states.float(), self.rows.float())
        return scores

    def centred(self, scores: torch.Tensor) -> torch.Tensor:
        """Return scores ``(n, k)`` less their mean over each position's candidates."""
        there = self.there.float()
        means = (scores * there).sum(1, keepdim=True) / there.sum(1, keepdim=True)
        centred: torch.Tensor = (scores - means) * there
        return centred

    def error(self, scores: torch.Tensor) -> torch.Tensor:
        """Return the mean squared error of the differences between candidates."""
        wrong = self.centred(scores) - self.centred(self.worths)
        error: torch.Tensor = (wrong**2).sum() / self.there.sum()
        return error


class Refiner:
    """A learner that :class:`TrainingCallback` accompanies as it does MaskablePPO.

    Args:
        config: of the run, with a refinement.
        network: what PPO trained; it gets a second opinion.
        environment: the matches that it plays.
        decisions: that it has learned from before.

    Attributes:
        network: the learner.
        num_timesteps: decisions so far, those of PPO included.
    """

    def __init__(
        self,
        config: TrainConfig,
        network: CandidateNetwork,
        environment: RetinueVecEnv,
        decisions: int,
    ) -> None:
        settings = config.refinement
        if settings is None:
            raise ValueError("the configuration has no refinement")
        self.network = self.policy = network
        self.num_timesteps = decisions
        self.logger: Any = None
        self._settings: RefinementConfig = settings
        self._hidden = config.network
        self._environment = environment
        self._seen: list[Tried] = []
        batch = environment.batch
        returns = Returns(**config.reward.model_dump(), discount=config.ppo.discount)
        agent = PolicyAgent(TorchModel(network), batch.encoding, "learner", returns)
        others = repliers(settings, batch.ruleset)
        self._playouts = Playouts(agent, 1, settings.candidates, others, config.engine_threads)

    def get_env(self) -> RetinueVecEnv:
        """Return the environment, for callbacks."""
        return self._environment

    def set_logger(self, logger: Logger) -> None:
        """Write curves there."""
        self.logger = logger

    def learn(self, until: int, callback: TrainingCallback) -> None:
        """Try candidates until so many decisions have been made, or the callback ends it.

        The second opinion is fitted in the end.
        """
        callback.init_callback(self)  # type: ignore[arg-type]
        callback.on_training_start({}, {})
        while self.num_timesteps < until:
            callback.on_rollout_start()
            parts = []
            for _ in range(self._settings.rollout_steps):
                parts.append(self._decide())
                self.num_timesteps += self._environment.num_envs
                if not callback.on_step():
                    callback.on_training_end()
                    return
            callback.on_rollout_end()
            self._seen.append(Tried.join(parts))
        self._fit(Tried.join(self._seen))
        callback.on_training_end()

    def _decide(self) -> Tried:
        """Make a decision in each match; return what was learned about it."""
        batch = self._environment.batch
        observations = torch.from_numpy(batch.observations).to(STORED)
        logits, masks, offers = self._playouts.look(batch.games)
        tried, there = self._choose_tried(logits, masks)
        games, ranks = np.nonzero(there)
        seeds = torch.randint(ROLLOUT_SEEDS, (len(tried),)).numpy().astype(np.uint64)
        worths = np.zeros(tried.shape, np.float32)
        worths[there] = self._playouts.roll_out(
            batch.games, games, turns_of(offers, games, tried[games, ranks]), seeds[games]
        )
        rows = observations[:, EXTRA_AT:].reshape(len(tried), -1, FACT_COUNT)
        chosen = torch.from_numpy(tried).unsqueeze(2).expand(-1, -1, FACT_COUNT)
        self._play(tried, np.where(there, worths, -np.inf))
        return Tried(
            observations[:, :EXTRA_AT].clone(),
            rows.gather(1, chosen),
            torch.from_numpy(there),
            torch.from_numpy(worths),
        )

    def _choose_tried(self, logits: Any, masks: Any) -> tuple[Any, Any]:
        """Choose what is tried: the learner's favourites first, then others at random.

        Returns:
            int64 ``(n, k)``, and bool ``(n, k)``: which of them there are.
        """
        favourites, liked = favourites_of(logits, masks, self._settings.favourites)
        left = masks.copy()
        np.put_along_axis(left, favourites, False, axis=1)
        chance = np.where(left, torch.rand(left.shape).numpy(), -1.0)
        others = np.argsort(-chance, axis=1, kind="stable")[:, : self._settings.others]
        drawn = np.take_along_axis(left, others, axis=1)
        return np.concatenate([favourites, others], 1), np.concatenate([liked, drawn], 1)

    def _play(self, tried: Any, worths: Any) -> None:
        """Play a turn in each match: a favourite, by the policy or by its rollout."""
        by_rollouts = torch.rand(len(tried)).numpy() < PLAYED_OUT
        best = worths[:, : self._settings.favourites].argmax(axis=1)
        chosen = tried[np.arange(len(tried)), np.where(by_rollouts, best, 0)]
        self._environment.step_async(chosen)
        self._environment.step_wait()

    def _fit(self, tried: Tried) -> None:
        """Fit the second opinion, and give it the weight of the first."""
        settings = self._settings
        scorer = RowScorer(self._hidden)
        optimizer = torch.optim.AdamW(scorer.parameters(), lr=settings.learning_rate)
        steps = settings.epochs * -(-len(tried) // settings.batch_size)
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, settings.learning_rate, total_steps=steps
        )
        for _ in range(settings.epochs):
            for part in torch.split(torch.randperm(len(tried)), settings.batch_size):
                chosen = tried[part]
                optimizer.zero_grad()
                chosen.error(chosen.scores(scorer)).backward()  # type: ignore[no-untyped-call]
                torch.nn.utils.clip_grad_norm_(scorer.parameters(), 1.0)
                optimizer.step()
                schedule.step()
        with torch.no_grad():
            slope = _slope(tried, self.network.policy)
            for weights in scorer.layers[-1].parameters():
                weights.div_(slope)
        self.network.opinion = scorer.eval()

    def state(self) -> dict[str, Any]:
        """Return all that :meth:`restore` needs beside the matches, tensors and plain data."""
        return {
            "network": self.network.state_dict(),
            "is_refined": self.network.opinion is not None,
            "decisions": self.num_timesteps,
            "seen": [{name: getattr(each, name) for name in Tried.FIELDS} for each in self._seen],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a :meth:`state`."""
        if state["is_refined"]:
            self.network.opinion = RowScorer(self._hidden)
        self.network.load_state_dict(state["network"])
        self.network.eval()
        self.num_timesteps = int(state["decisions"])
        self._seen = [Tried(**each) for each in state["seen"]]


@torch.no_grad()
def _slope(tried: Tried, scorer: RowScorer) -> float:
    """Return by how much a candidate is worth more, in rewards, that has one more of a score."""
    above, found = 0.0, 0.0
    for part in torch.split(torch.arange(len(tried)), 4096):
        chosen = tried[part]
        scores = chosen.centred(chosen.scores(scorer))
        above += float((scores * chosen.centred(chosen.worths)).sum())
        found += float((scores**2).sum())
    return max(above / found, LEAST_SLOPE) if found else LEAST_SLOPE


def repliers(settings: RefinementConfig, ruleset: Ruleset) -> Policy:
    """Return the policy that the other seats are taken to have in rollouts.

    Raises:
        ValueError: there is no such agent, or kernels cannot call it.
    """
    policy = make_known_agent(settings.opponents, ruleset).compiled
    if policy is None:
        raise ValueError(
            f"refinement.opponents: must be an agent that kernels can call (racer, tactician, a "
            f"strategy), not {settings.opponents!r}"
        )
    return quickened(policy, settings.candidates)

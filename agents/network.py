"""Policy networks by themselves: what is left of a trained learner when it only plays.

They need torch but no trainer, so a trained policy loads without Stable-Baselines3.
"""

from collections.abc import Sequence
from typing import Final, TypeAlias

import torch
from torch import nn

from retinue.envs.actions import Encoding
from retinue.envs.facts import FACT_COUNT
from retinue.envs.observation import EXTRA_AT

ABSENT: Final = -1e9
"""Logit of a row that holds no candidate: its probability is 0, and no number overflows."""


class PolicyNetwork(nn.Module):
    """A multilayer perceptron from flat observations to the logits of every choice.

    Args:
        inputs: length of the flat observation.
        hidden: widths of the hidden layers.
        outputs: length of the action mask.
    """

    def __init__(self, inputs: int, hidden: Sequence[int], outputs: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(*_layers(inputs, hidden), nn.Linear(list(hidden)[-1], outputs))

    def logits(self, observations: torch.Tensor) -> torch.Tensor:
        """Return logits float32 ``(n, outputs)`` of observations float32 ``(n, inputs)``."""
        logits: torch.Tensor = self.layers(observations)
        return logits

    forward = logits


class RowScorer(nn.Module):
    """One small network that scores every row of facts, in the light of the state.

    The state is encoded once and added to the first layer of each row.

    Args:
        hidden: widths of the hidden layers.
    """

    def __init__(self, hidden: Sequence[int]) -> None:
        super().__init__()
        first, *others = hidden
        self.state = nn.Sequential(
            nn.Linear(EXTRA_AT, first), nn.ReLU(), nn.Linear(first, first, bias=False)
        )
        self.facts = nn.Linear(FACT_COUNT, first)
        self.layers = nn.Sequential(
            nn.ReLU(), *_layers(first, others), nn.Linear(list(hidden)[-1], 1)
        )

    def forward(self, states: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Return a score for each row, float32 ``(n, k)``.

        Args:
            states: float32 ``(n, EXTRA_AT)``.
            rows: float32 ``(n, k, FACT_COUNT)``.
        """
        scores: torch.Tensor = self.layers(self.facts(rows) + self.state(states).unsqueeze(1))
        return scores.squeeze(2)


class CandidateNetwork(nn.Module):
    """The policy and the value of the encoding ``candidates``, for any number of candidates.

    A candidate's logit is the score of what it leads to. The value of a position is the mean of
    what the candidates are worth by a scorer of its own, weighted by how likely each is chosen: it
    values the outcome of the choice, and trains no weight of the policy.

    Args:
        hidden: widths of the hidden layers of the policy.
        value_hidden: the same of the value.
        refined: there is a second opinion.

    Attributes:
        opinion: a second scorer of candidates, whose scores are added to the policy's; None if
            nothing gave it one.
    """

    def __init__(
        self, hidden: Sequence[int], value_hidden: Sequence[int], *, refined: bool = False
    ) -> None:
        super().__init__()
        self.policy = RowScorer(hidden)
        self.worth = RowScorer(value_hidden)
        self.opinion = RowScorer(hidden) if refined else None

    def score(self, states: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Return logits float32 ``(n, k)`` of states ``(n, ...)`` and rows ``(n, k, ...)``."""
        scores: torch.Tensor = self.policy(states, rows)
        return scores if self.opinion is None else scores + self.opinion(states, rows)

    def logits(self, observations: torch.Tensor) -> torch.Tensor:
        """Return logits float32 ``(n, k)``; those of absent candidates are meaningless."""
        return self.score(*_split(observations))

    def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return logits and values.

        Args:
            observations: float32 ``(n, EXTRA_AT + k * FACT_COUNT)``.

        Returns:
            logits float32 ``(n, k)`` and values float32 ``(n,)``, in rewards of training.
        """
        states, rows = _split(observations)
        logits = self.score(states, rows)
        # A candidate has steps to go, or time left, or a margin: its row is never all zero.
        absent = rows.abs().sum(dim=2) == 0
        shares = torch.softmax(logits.detach().masked_fill(absent, ABSENT), dim=1)
        return logits, (shares * self.worth(states, rows)).sum(dim=1)


Network: TypeAlias = PolicyNetwork | CandidateNetwork


def network_for(
    encoding: Encoding,
    hidden: Sequence[int],
    value_hidden: Sequence[int],
    *,
    refined: bool = False,
) -> Network:
    """Return an untrained network for an encoding.

    Args:
        encoding: of observations and actions.
        hidden: widths of the policy's hidden layers.
        value_hidden: the same of the value, which only ``candidates`` keeps.
        refined: it has a second opinion, of ``candidates`` only.
    """
    if encoding.is_candidates:
        return CandidateNetwork(hidden, value_hidden, refined=refined)
    return PolicyNetwork(encoding.layout().size, hidden, encoding.mask_size)


def _layers(inputs: int, widths: Sequence[int]) -> list[nn.Module]:
    """Return hidden layers of these widths."""
    layers: list[nn.Module] = []
    for width in widths:
        layers += [nn.Linear(inputs, width), nn.ReLU()]
        inputs = width
    return layers


def _split(observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the state's part of observations, and the candidates' rows."""
    rows = observations[:, EXTRA_AT:].reshape(observations.shape[0], -1, FACT_COUNT)
    return observations[:, :EXTRA_AT], rows

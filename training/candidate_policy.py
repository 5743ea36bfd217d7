"""MaskablePPO's policy for the encoding ``candidates``, over the network of ``agents``."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from torch import nn

from retinue.agents.network import CandidateNetwork

FIRST_GAIN: Final = 0.01
"""Of the policy's last layer: the first policy chooses nearly at random, so it tries everything."""


class Extractor(CandidateNetwork):
    """The network under the names by which Stable-Baselines3 calls its parts.

    Attributes:
        temperature: by which logits are divided. A policy that is sharpened while it learns adapts
            to what it does when it only plays, and then always makes the likeliest choice.
    """

    temperature: float = 1.0

    def score(self, states: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Return logits float32 ``(n, k)``, sharpened."""
        return super().score(states, rows) / self.temperature

    def copy(self, hidden: Sequence[int], value_hidden: Sequence[int]) -> CandidateNetwork:
        """Return a network by itself with the same logits, sharpened as they are, and values."""
        network = CandidateNetwork(hidden, value_hidden)
        network.load_state_dict(self.state_dict())
        last = network.policy.layers[-1]
        with torch.no_grad():
            for weights in last.parameters():
                weights.div_(self.temperature)
        return network

    def forward_actor(self, observations: torch.Tensor) -> torch.Tensor:
        """Return logits float32 ``(n, k)``."""
        return self.logits(observations)

    def forward_critic(self, observations: torch.Tensor) -> torch.Tensor:
        """Return values float32 ``(n,)``."""
        values: torch.Tensor = self(observations)[1]
        return values


class CandidatePolicy(MaskableActorCriticPolicy):
    """Scores candidates by one shared network; ``net_arch`` has its widths, ``pi`` and ``vf``."""

    def _build(self, lr_schedule: Any) -> None:
        """Make the network and its optimiser."""
        widths: Any = self.net_arch
        network = Extractor(widths["pi"], widths["vf"]).to(self.device)
        network.apply(partial(self.init_weights, gain=math.sqrt(2)))
        network.policy.layers[-1].apply(partial(self.init_weights, gain=FIRST_GAIN))
        network.worth.layers[-1].apply(partial(self.init_weights, gain=1.0))
        self.mlp_extractor: Any = network
        self.action_net, self.value_net = nn.Identity(), nn.Identity()  # type: ignore[assignment]
        make_optimizer: Any = self.optimizer_class
        self.optimizer = make_optimizer(
            self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs
        )

"""The policy network by itself: what is left of a trained learner when it only plays.

It needs torch but no trainer, so a trained policy loads without Stable-Baselines3.
"""

from collections.abc import Sequence
from typing import Annotated, TypeAlias

import torch
from pydantic import Field
from torch import nn

Hidden: TypeAlias = Annotated[
    tuple[Annotated[int, Field(ge=1, le=65_536)], ...], Field(min_length=1, max_length=32)
]
"""Widths of hidden layers, within what a machine can hold, for models of configurations."""


class PolicyNetwork(nn.Module):
    """A multilayer perceptron from flat observations to the logits of every choice.

    Args:
        inputs: length of the flat observation.
        hidden: widths of the hidden layers.
        outputs: length of the action mask.
    """

    def __init__(self, inputs: int, hidden: Sequence[int], outputs: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for width in hidden:
            layers += [nn.Linear(inputs, width), nn.ReLU()]
            inputs = width
        self.layers = nn.Sequential(*layers, nn.Linear(inputs, outputs))

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """Return logits float32 ``(n, outputs)`` of observations float32 ``(n, inputs)``."""
        logits: torch.Tensor = self.layers(observations)
        return logits


def masked_choice(logits: torch.Tensor, masks: torch.Tensor, nvec: Sequence[int]) -> torch.Tensor:
    """Choose the likeliest legal action for each row.

    Args:
        logits: float32 ``(n, sum(nvec))``.
        masks: bool, of the same shape; each part has a legal choice.
        nvec: choices of each part of an action.

    Returns:
        int64 ``(n, len(nvec))``.

    Raises:
        ValueError: a part of a mask is empty.
    """
    if any(not part.any(dim=1).all() for part in torch.split(masks, list(nvec), dim=1)):
        raise ValueError("an action mask is empty: there is no legal choice")
    logits = logits.masked_fill(~masks, -torch.inf)
    return torch.stack(
        [part.argmax(dim=1) for part in torch.split(logits, list(nvec), dim=1)], dim=1
    )

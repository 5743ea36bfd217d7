"""From a network of PyTorch's to a file of ONNX's, and the proof that both play the same."""

import contextlib
import logging
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import torch

from retinue.agents.artifact import INPUT, LOGITS, VALUES
from retinue.agents.network import Network
from retinue.agents.policy import ROUNDED, Floats, Model, PolicyError, even_within, masked_choice
from retinue.envs.actions import Encoding
from retinue.envs.batch import Batch
from retinue.envs.facts import FACT_COUNT
from retinue.envs.observation import EXTRA_AT
from retinue.envs.seating import ANY

ROUNDING: Final = 1e-5
"""By how much more than what is even a choice may be worse, or ``ROUNDED`` of the largest logit."""

CHECKED: Final = 1_000
"""Positions that a network is checked on when it is exported."""

_GAMES: Final = 8  # so few that some hundred positions are from whole matches
_OTHERS: Final = ("tactician", "racer", "random")

Masks = np.ndarray[Any, np.dtype[np.bool_]]
Positions = tuple[Floats, Masks]
"""Observations float32 ``(n, size)`` and masks bool ``(n, mask_size)``."""


def to_onnx(network: Network, encoding: Encoding) -> bytes:
    """Return a network as an ONNX file, weights included.

    It takes any number of observations at once. They have the one size of its encoding, so that
    what the file declares says whether it fits; of ``candidates`` they may have any number of rows.
    """
    names = [LOGITS, VALUES] if encoding.is_candidates else [LOGITS]
    example = torch.zeros(2, encoding.layout().size)  # of one only, it would be made for one
    with _quietly():
        program = torch.onnx.export(
            network,
            (example,),
            input_names=[INPUT],
            output_names=names,
            dynamic_shapes=(_dynamic(encoding),),
            external_data=False,
            dynamo=True,
            verbose=False,
        )
    assert program is not None  # it is without `dynamo` that there is none
    model = program.model_proto
    # What it notes of each step names the source files by their paths on this machine.
    for each in (model, model.graph, *model.graph.node, *model.graph.value_info):
        each.ClearField("metadata_props")
    content: bytes = model.SerializeToString(deterministic=True)
    return content


def _dynamic(encoding: Encoding) -> dict[int, Any]:
    """Return which sizes of observations are open, by dimension."""
    sizes: dict[int, Any] = {0: torch.export.Dim("n")}
    if encoding.is_candidates:
        sizes[1] = FACT_COUNT * torch.export.Dim("k") + EXTRA_AT
    return sizes


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Keep to itself what the exporter says of its own insides."""
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)  # each time, that torchvision is not installed
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of torch, about torch
            yield
    finally:
        log.setLevel(level)


def played_positions(model: Model, encoding: Encoding, count: int, seed: int = 0) -> Positions:
    """Return what a seat sees in whole matches against scripted agents.

    In every other match the seat plays as ``model`` does, in the rest at random.

    Args:
        model: of a policy.
        encoding: of what is seen and chosen.
        count: how many positions.
        seed: of dice and chance.
    """
    batch = Batch(
        encoding.ruleset,
        _GAMES,
        encoding=encoding.name,
        candidates=encoding.candidates,
        seats=ANY,
        opponents=_OTHERS,
        draw="each match",
        threads=1,
    )
    batch.reset(seed)
    rng = np.random.default_rng(seed)
    observations, masks = [], []
    for _ in range(-(-count // _GAMES)):
        observations.append(batch.observations.copy())
        masks.append(batch.masks.copy())
        scores, _ = model.evaluate(observations[-1])
        scores[::2] = rng.random(scores[::2].shape, np.float32)
        actions = masked_choice(scores, masks[-1], encoding.nvec)
        batch.step(actions if len(encoding.nvec) > 1 else actions[:, 0])
        batch.start_next(np.flatnonzero(batch.terminated))
    return np.concatenate(observations)[:count], np.concatenate(masks)[:count]


def check_same(model: Model, network: Model, nvec: Sequence[int], positions: Positions) -> None:
    """Check that a model computes what a network does, and makes a choice that is best to it.

    Args:
        model: of the ONNX file.
        network: that it was made of.
        nvec: choices of each part of an action.
        positions: to look at.

    Raises:
        PolicyError: it does not; says by how much, and in how many positions.
    """
    observations, masks = positions
    mine, theirs = model.evaluate(observations), network.evaluate(observations)
    for name, found, right in zip((LOGITS, VALUES), mine, theirs, strict=True):
        if found is None or right is None:
            if found is not right:
                raise PolicyError(f"only one of the network and its ONNX file has {name}")
            continue
        difference = float(np.abs(found - right).max())
        allowed = float(even_within(right.reshape(len(right), -1)).max())
        if not difference <= allowed:  # also if it is no number
            raise PolicyError(
                f"the {name} of the ONNX file differ by {difference:g} from the network's; at most "
                f"{allowed:g} is allowed"
            )
    chosen = masked_choice(mine[0], masks, nvec)
    # What is even to one of them may be a little worse to the other.
    rounding = np.maximum(ROUNDING, ROUNDED * np.abs(theirs[0]).max(axis=1))
    worse = _worse(chosen, theirs[0], masks, nvec) > even_within(theirs[0])[:, 0] + rounding
    if worse.any():
        raise PolicyError(
            f"the ONNX file makes a choice that is worse to the network in {worse.sum()} of "
            f"{len(worse)} positions"
        )


def _worse(
    chosen: np.ndarray[Any, Any], logits: Floats, masks: Masks, nvec: Sequence[int]
) -> np.ndarray[Any, Any]:
    """Return by how much logits of chosen actions are below the best legal ones, ``(n,)``."""
    parts = np.split(np.where(masks, logits, -np.inf), np.cumsum(nvec)[:-1], axis=1)
    below = [
        part.max(axis=1) - np.take_along_axis(part, chosen[:, [index]], axis=1)[:, 0]
        for index, part in enumerate(parts)
    ]
    return np.max(below, axis=0)  # type: ignore[no-any-return]

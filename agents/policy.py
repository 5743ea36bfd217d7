"""Trained policies as agents: a folder with the weights and a manifest that says what they fit."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Protocol, TypeAlias

import numpy as np
import torch
from pydantic import Field

from retinue.agents.network import Hidden, Network, network_for
from retinue.envs.actions import MAX_CANDIDATES, Encoding
from retinue.envs.chooser import choose_turns
from retinue.envs.game.files import replacing, write_atomically
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.schema import SchemaError, StrictModel, from_json
from retinue.envs.observation import OBSERVATION_VERSION
from retinue.envs.opponents import View

Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float32]]

WEIGHTS_FILE: Final = "policy.pt"
MANIFEST_FILE: Final = "policy.json"


class PolicyError(ValueError):
    """A trained policy that cannot be loaded or does not fit; says which and why."""


class Manifest(StrictModel):
    """What a policy's weights fit."""

    format: Literal["retinue-policy"]
    version: Literal[2]
    mode: Literal["journey", "brawl"]
    rules_digest: str
    encoding: Literal["steps", "turn", "candidates"]
    candidates: Annotated[int, Field(ge=2, le=MAX_CANDIDATES)] = 64
    """How many turns are proposed; of the encoding ``candidates`` only."""
    observation_version: int
    hidden: Hidden
    value_hidden: Hidden
    decisions: Annotated[int, Field(ge=0)]
    """On how many decisions it was trained."""


class Model(Protocol):
    """What a policy computes, wherever its weights are."""

    def evaluate(self, observations: Floats) -> tuple[Floats, Floats | None]:
        """Return logits and values of observations float32 ``(n, size)``.

        Returns:
            logits float32 ``(n, mask_size)``, those of what a mask forbids meaningless; values
            float32 ``(n,)`` in rewards of training, None if the model has none.
        """


class TorchModel:
    """A network of PyTorch's.

    Args:
        network: in evaluation mode.
    """

    def __init__(self, network: Network) -> None:
        self.network = network

    def evaluate(self, observations: Floats) -> tuple[Floats, Floats | None]:
        """Return logits and values; see :class:`Model`."""
        with torch.no_grad():
            found = self.network(torch.as_tensor(observations))
        if isinstance(found, tuple):
            return found[0].numpy(), found[1].numpy()
        return found.numpy(), None


class PolicyAgent:
    """A trained policy with a seat, which always makes the choice that it holds for the best.

    Args:
        model: its logits.
        encoding: the one that it was trained with.
        name: in records and tables.
    """

    compiled = None

    def __init__(self, model: Model, encoding: Encoding, name: str) -> None:
        self.name = name
        self.model = model
        self.encoding = encoding

    def choose(self, view: View, rng: np.random.Generator) -> np.ndarray[Any, np.dtype[Any]]:
        """Return a ``TURN`` array: one turn for each game of ``view``."""
        del rng  # nothing is left to chance
        return choose_turns(view, self.encoding, self._decide)

    def _decide(self, observations: Any, masks: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
        logits, _ = self.model.evaluate(observations)
        return masked_choice(logits, masks, self.encoding.nvec)


def masked_choice(
    logits: Floats, masks: np.ndarray[Any, np.dtype[np.bool_]], nvec: Sequence[int]
) -> np.ndarray[Any, np.dtype[np.int64]]:
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
    starts = np.cumsum([0, *nvec[:-1]])
    if not np.logical_or.reduceat(masks, starts, axis=1).all():
        raise ValueError("an action mask is empty: there is no legal choice")
    legal = np.where(masks, logits, -np.inf)
    chosen = [
        legal[:, start : start + size].argmax(axis=1)
        for start, size in zip(starts, nvec, strict=True)
    ]
    return np.stack(chosen, axis=1)


def manifest_of(
    encoding: Encoding, hidden: tuple[int, ...], value_hidden: tuple[int, ...], decisions: int
) -> Manifest:
    """Return the manifest of a policy trained with ``encoding`` and its ruleset."""
    return Manifest(
        format="retinue-policy",
        version=2,
        mode=encoding.ruleset.mode,
        rules_digest=encoding.ruleset.digest,
        encoding=encoding.name,  # type: ignore[arg-type]
        candidates=encoding.candidates,
        observation_version=OBSERVATION_VERSION,
        hidden=hidden,
        value_hidden=value_hidden,
        decisions=decisions,
    )


def save_policy(folder: Path, network: Network, manifest: Manifest) -> None:
    """Write weights and manifest to ``folder``, each whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    # Through an open file: given a path, torch would write its name into the weights.
    with replacing(folder / WEIGHTS_FILE) as draft, draft.open("xb") as file:
        torch.save(network.state_dict(), file)
    write_atomically(folder / MANIFEST_FILE, manifest.model_dump_json(indent=2) + "\n")


def load_policy(folder: Path | str, ruleset: Ruleset) -> PolicyAgent:
    """Return the policy in ``folder``, or in ``folder/policy`` of a training run, as an agent.

    Raises:
        PolicyError: it is not there, is damaged, or was made for other rules or observations.
    """
    name = f"policy:{folder}"
    folder = Path(folder)
    if (folder / "policy" / MANIFEST_FILE).exists():
        folder = folder / "policy"
    manifest = _read_manifest(folder / MANIFEST_FILE)
    if manifest.observation_version != OBSERVATION_VERSION:
        raise PolicyError(
            f"{folder}: was trained on observation version {manifest.observation_version}, "
            f"this is version {OBSERVATION_VERSION}"
        )
    if manifest.rules_digest != ruleset.digest:
        raise PolicyError(
            f"{folder}: was trained for {manifest.mode} with rules {manifest.rules_digest}, "
            f"these are {ruleset.mode} with rules {ruleset.digest}"
        )
    encoding = Encoding(manifest.encoding, ruleset, manifest.candidates)
    try:  # around the network too: a manifest may ask for more memory than there is
        network = network_for(encoding, manifest.hidden, manifest.value_hidden)
        network.load_state_dict(torch.load(folder / WEIGHTS_FILE, weights_only=True))
    except Exception as error:
        raise PolicyError(f"{folder / WEIGHTS_FILE}: not the weights of this policy") from error
    network.eval()
    return PolicyAgent(TorchModel(network), encoding, name)


def _read_manifest(path: Path) -> Manifest:
    try:
        return from_json(Manifest, path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8 text"
        raise PolicyError(f"{path}: {reason}; expected a trained policy's folder") from error
    except SchemaError as error:
        raise PolicyError(f"{path}: {error}") from error

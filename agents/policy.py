"""Trained policies as agents, wherever they are: the zoo, an ONNX file, a training run's folder.

A run's folder holds weights and a manifest that says what they fit. Only those need torch, which is
imported where it is used: what is loaded from an ONNX file plays without it.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Protocol, TypeAlias, TypeVar

import numpy as np
from pydantic import Field, FiniteFloat

from retinue.envs.actions import MAX_CANDIDATES, Encoding
from retinue.envs.chooser import choose_turns
from retinue.envs.game.files import replacing, write_atomically
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.schema import SchemaError, StrictModel, from_json
from retinue.envs.observation import OBSERVATION_VERSION
from retinue.envs.opponents import View

if TYPE_CHECKING:
    from retinue.agents.network import Network

Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float32]]

Hidden: TypeAlias = Annotated[
    tuple[Annotated[int, Field(ge=1, le=65_536)], ...], Field(min_length=1, max_length=32)
]
"""Widths of hidden layers, within what a machine can hold, for models of configurations."""

WEIGHTS_FILE: Final = "policy.pt"
MANIFEST_FILE: Final = "policy.json"
ONNX_SUFFIX: Final = ".onnx"

EVEN: Final = 1e-4
ROUNDED: Final = 1e-6
"""Logits that differ by no more than ``EVEN``, or ``ROUNDED`` of the largest of the position in
size, which float32 cannot tell apart, are as good as each other. What a choice leads to may be the
same, to the last fact, as what another does; then rounding would choose, and rounding depends on
how many positions are looked at at once, and on the library."""

M = TypeVar("M", bound="Fit")


class PolicyError(ValueError):
    """A trained policy that cannot be loaded or does not fit; says which and why."""


class Returns(StrictModel):
    """What training paid, and so the unit of a policy's values; as ``envs.rewards.Reward``."""

    mode: Literal["score", "margin", "place"]
    scale: Annotated[FiniteFloat, Field(gt=0)]
    place_bonus: Annotated[FiniteFloat, Field(ge=0)]
    discount: Annotated[FiniteFloat, Field(ge=0, le=1)]
    """By which a reward counts less for each own decision that lies before it."""


class Lookahead(StrictModel):
    """How an agent with a policy tries the turns that it likes best before it chooses.

    Each is played out until the own next decision, the others taken to play as a scripted agent;
    what that is worth, by the policy's value, decides.
    """

    top: Annotated[int, Field(ge=1, le=MAX_CANDIDATES)] = 4
    """How many turns are tried; of a single one nothing is."""
    rollouts: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    """Of each turn."""
    candidates: Annotated[int, Field(ge=2, le=MAX_CANDIDATES)] = 8
    """Turns that anybody chooses from in rollouts."""
    opponents: Annotated[str, Field(min_length=1)] = "tactician"
    """Whom the other seats are taken for: an agent that kernels can call."""


class Fit(StrictModel):
    """What any policy fits and where it comes from; each format says its name and version."""

    format: str
    version: int
    mode: Literal["journey", "brawl"]
    rules_digest: str
    encoding: Literal["steps", "turn", "candidates"]
    candidates: Annotated[int, Field(ge=2, le=MAX_CANDIDATES)] = 64
    """How many turns are proposed; of the encoding ``candidates`` only."""
    observation_version: int
    hidden: Hidden
    value_hidden: Hidden
    refined: bool = False
    """Its network has a second opinion (``retinue.training.refinement``)."""
    returns: Returns
    decisions: Annotated[int, Field(ge=0)]
    """On how many decisions it was trained."""

    def check(self, ruleset: Ruleset, source: Path) -> None:
        """Refuse rules or observations that the policy was not trained with.

        Raises:
            PolicyError: naming ``source``, and both.
        """
        if self.observation_version != OBSERVATION_VERSION:
            raise PolicyError(
                f"{source}: was trained on observation version {self.observation_version}, "
                f"this is version {OBSERVATION_VERSION}"
            )
        if (self.mode, self.rules_digest) != (ruleset.mode, ruleset.digest):
            raise PolicyError(
                f"{source}: was trained for {self.mode} with rules {self.rules_digest}, "
                f"these are {ruleset.mode} with rules {ruleset.digest}"
            )

    def encoding_for(self, ruleset: Ruleset) -> Encoding:
        """Return the encoding that it was trained with."""
        return Encoding(self.encoding, ruleset, self.candidates)


class Manifest(Fit):
    """What the weights in a run's folder fit."""

    format: Literal["retinue-policy"]
    version: Literal[2]


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

    def __init__(self, network: "Network") -> None:
        self.network = network

    def evaluate(self, observations: Floats) -> tuple[Floats, Floats | None]:
        """Return logits and values; see :class:`Model`."""
        import torch

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
        returns: what training paid, if that is known; looking ahead needs it.
        lookahead: how it is meant to look ahead, which whoever gives it a seat sees to.
        threads: of the kernels that show it positions.
    """

    compiled = None

    def __init__(
        self,
        model: Model,
        encoding: Encoding,
        name: str,
        returns: Returns | None = None,
        *,
        lookahead: Lookahead | None = None,
        threads: int = 1,
    ) -> None:
        self.name = name
        self.model = model
        self.encoding = encoding
        self.returns = returns
        self.lookahead = lookahead
        self.threads = threads

    def choose(self, view: View, rng: np.random.Generator) -> np.ndarray[Any, np.dtype[Any]]:
        """Return a ``TURN`` array: one turn for each game of ``view``."""
        del rng  # nothing is left to chance
        return choose_turns(view, self.encoding, self._decide, self.threads)

    def _decide(self, observations: Any, masks: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
        logits, _ = self.model.evaluate(observations)
        return masked_choice(logits, masks, self.encoding.nvec)


def even_within(logits: Floats) -> np.ndarray[Any, np.dtype[Any]]:
    """Return by how much logits ``(n, k)`` may differ and be even, ``(n, 1)``."""
    return np.maximum(EVEN, ROUNDED * np.abs(logits).max(axis=1, keepdims=True))  # type: ignore[no-any-return]


def masked_choice(
    logits: Floats, masks: np.ndarray[Any, np.dtype[np.bool_]], nvec: Sequence[int]
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Choose the likeliest legal action for each row, the first of those that are even.

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
    chosen = []
    for start, size in zip(starts, nvec, strict=True):
        mask, part = masks[:, start : start + size], logits[:, start : start + size]
        best = np.where(mask, part, -np.inf).max(axis=1, keepdims=True)
        # Put so that even what is no number chooses something legal.
        chosen.append((mask & ~(part < best - even_within(part))).argmax(axis=1))
    return np.stack(chosen, axis=1)


def manifest_of(
    encoding: Encoding,
    hidden: tuple[int, ...],
    value_hidden: tuple[int, ...],
    decisions: int,
    returns: Returns,
    *,
    refined: bool = False,
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
        refined=refined,
        returns=returns,
        decisions=decisions,
    )


def save_policy(folder: Path, network: "Network", manifest: Manifest) -> None:
    """Write weights and manifest to ``folder``, each whole or not at all."""
    import torch

    folder.mkdir(parents=True, exist_ok=True)
    # Through an open file: given a path, torch would write its name into the weights.
    with replacing(folder / WEIGHTS_FILE) as draft, draft.open("xb") as file:
        torch.save(network.state_dict(), file)
    write_atomically(folder / MANIFEST_FILE, manifest.model_dump_json(indent=2) + "\n")


def load_policy(source: Path | str, ruleset: Ruleset) -> PolicyAgent:
    """Return the policy that ``policy:SOURCE`` asks for, as an agent.

    ``easy``, ``medium`` and ``hard`` are the zoo's, whatever lies in the current folder. Anything
    else is a path: of an ONNX file if it ends in ``.onnx``, else of a training run's folder, or of
    the folder ``policy`` in one.

    Raises:
        PolicyError: it is not there, is damaged, or was made for other rules or observations.
    """
    from retinue.agents import artifact, zoo

    name, path = f"policy:{source}", Path(source)
    if str(source) in zoo.LEVELS:
        path = zoo.zoo_path(str(source), ruleset.mode)
    if path.suffix == ONNX_SUFFIX:
        return artifact.load_artifact(path, ruleset, name=name)
    if not _is_path(str(source)) and not path.exists():
        raise PolicyError(
            f"{name}: neither a folder nor a level of the zoo; {zoo.levels_in_words(ruleset.mode)}"
        )
    network, manifest = load_network(path, ruleset)
    encoding = manifest.encoding_for(ruleset)
    return PolicyAgent(TorchModel(network), encoding, name, manifest.returns)


def _is_path(source: str) -> bool:
    """Tell whether a text can only be a path: it has a separator, or is an ONNX file's name."""
    separators = {"/", os.sep, os.altsep or os.sep}
    return source.endswith(ONNX_SUFFIX) or any(each in source for each in separators)


def load_network(folder: Path, ruleset: Ruleset) -> tuple["Network", Manifest]:
    """Return the network and the manifest in ``folder``, or in ``folder/policy`` of a training run.

    Raises:
        PolicyError: as :func:`load_policy` does.
    """
    import torch

    from retinue.agents.network import network_for

    if (folder / "policy" / MANIFEST_FILE).exists():
        folder = folder / "policy"
    manifest = read_manifest(folder / MANIFEST_FILE, Manifest, "a trained policy's folder")
    manifest.check(ruleset, folder)
    encoding = manifest.encoding_for(ruleset)
    try:  # around the network too: a manifest may ask for more memory than there is
        network = network_for(
            encoding, manifest.hidden, manifest.value_hidden, refined=manifest.refined
        )
        network.load_state_dict(torch.load(folder / WEIGHTS_FILE, weights_only=True))
    except Exception as error:
        raise PolicyError(f"{folder / WEIGHTS_FILE}: not the weights of this policy") from error
    return network.eval(), manifest


def read_manifest(path: Path, model: type[M], expected: str) -> M:
    """Return the manifest in a file.

    Args:
        path: the file.
        model: of its format.
        expected: what should have been given, for who gave something else.

    Raises:
        PolicyError: it cannot be read, or says what it must not.
    """
    try:
        return from_json(model, path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8 text"
        raise PolicyError(f"{path}: {reason}; expected {expected}") from error
    except SchemaError as error:
        raise PolicyError(f"{path}: {error}") from error

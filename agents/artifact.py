"""Trained policies to be handed on: one ONNX file, and a JSON manifest of the same name beside it.

The file is complete, weights included, and is data: nothing in it runs but the operators of ONNX
itself. Everything that the manifest and the file say is checked before a policy plays.
"""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import numpy as np
from pydantic import Field, FiniteFloat, model_validator

from retinue.agents.policy import (
    ONNX_SUFFIX,
    Fit,
    Floats,
    Lookahead,
    PolicyAgent,
    PolicyError,
    read_manifest,
)
from retinue.envs.actions import Encoding
from retinue.envs.game.files import replacing
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.schema import StrictModel

LARGEST: Final = 2_000_000
"""Bytes of a file: a policy that needs more is too slow for the games that it is meant for."""

THREADS: Final = 1
"""Of one policy: a pass is too short for a second to pay, and each policy would keep its own
threads spinning beside the matches, the other policies and whatever else the machine does."""

INPUT: Final = "observations"
LOGITS: Final = "logits"
VALUES: Final = "values"

_FLOATS: Final = "tensor(float)"
_SILENT: Final = 4  # of onnxruntime's log: errors are raised as well
_PROBES: Final = 2

Share = Annotated[FiniteFloat, Field(ge=0, le=1)]


class Strength(StrictModel):
    """How often a policy came first against the three other seats (par is 25%), measured."""

    against: str
    """Who sat there."""
    share: Share
    low: Share
    high: Share
    """Ends of the 95% interval."""
    matches: Annotated[int, Field(ge=1)]
    command: str
    """What measures it again."""

    @model_validator(mode="after")
    def _is_ordered(self) -> "Strength":
        if not self.low <= self.share <= self.high:
            raise ValueError(f"share {self.share} must be from low {self.low} to high {self.high}")
        return self


class Rating(StrictModel):
    """What a tournament said, with its 95% interval."""

    value: FiniteFloat
    low: FiniteFloat
    high: FiniteFloat
    against: str
    """In which field, and whose rating is 0 in it."""

    @model_validator(mode="after")
    def _is_ordered(self) -> "Rating":
        if not self.low <= self.value <= self.high:
            raise ValueError(f"value {self.value} must be from low {self.low} to high {self.high}")
        return self


class ArtifactManifest(Fit):
    """What an ONNX file fits, how it was made and how strong it is."""

    format: Literal["retinue-artifact"]
    version: Literal[1]
    observation_size: int
    mask_size: int
    command: tuple[str, ...]
    """The training run's, a line for each time that it was begun or resumed."""
    configuration: dict[str, Any]
    """Of the training run, as in its ``config.yaml``."""
    versions: dict[str, str]
    """Of what trained it."""
    licence: Literal["MIT"]
    lookahead: Lookahead | None = None
    """How it looks ahead where it plays; None if it plays as the network says."""
    strength: tuple[Strength, ...]
    rating: Rating | None = None
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    """Of the ONNX file."""

    @model_validator(mode="after")
    def _can_look_ahead(self) -> "ArtifactManifest":
        if self.lookahead is not None and self.encoding != "candidates":
            raise ValueError(
                f"lookahead: must be null with the encoding {self.encoding}; only policies of "
                "candidates have values to look ahead with"
            )
        return self


class OnnxModel:
    """A network in ONNX's form, which plays without torch.

    Args:
        content: of the file.
        encoding: what it must fit.
        threads: of one pass.

    Raises:
        PolicyError: it is no such network, or not for this encoding.
    """

    def __init__(self, content: bytes, encoding: Encoding, threads: int = THREADS) -> None:
        self._made_of = (content, encoding, threads)
        _refuse_external_data(content)
        self._session = _session(content, threads)
        _check_declared(self._session, encoding)
        self._check_computed(encoding)

    def __reduce__(self) -> Any:
        """Make copies from the file, as agents are copied with the matches that they play in."""
        return OnnxModel, self._made_of

    def evaluate(self, observations: Floats) -> tuple[Floats, Floats | None]:
        """Return logits and values; see :class:`~retinue.agents.policy.Model`."""
        logits, *values = self._session.run(None, {INPUT: observations})
        return logits, values[0] if values else None

    def _check_computed(self, encoding: Encoding) -> None:
        """Let it look at nothing: what is declared need not be what comes out."""
        for each in {encoding, _smallest(encoding)}:
            try:
                logits, values = self.evaluate(np.zeros((_PROBES, each.layout().size), np.float32))
            except Exception as error:
                raise PolicyError(f"the network cannot be evaluated: {_line(error)}") from error
            wanted = {LOGITS: (_PROBES, each.mask_size), VALUES: (_PROBES,)}
            for name, found in ((LOGITS, logits), (VALUES, values)):
                if found is not None and found.shape != wanted[name]:
                    raise PolicyError(
                        f"of {_PROBES} observations its {name} have shape {found.shape}; right "
                        f"would be {wanted[name]}"
                    )


def manifest_path(path: Path) -> Path:
    """Return where the manifest of an ONNX file is.

    Raises:
        PolicyError: the path is not an ONNX file's.
    """
    if path.suffix != ONNX_SUFFIX:
        raise PolicyError(f"{path}: must end in {ONNX_SUFFIX}")
    return path.with_suffix(".json")


def read_artifact(path: Path) -> ArtifactManifest:
    """Return the manifest of an ONNX file.

    Raises:
        PolicyError: it is not there or is damaged.
    """
    return read_manifest(manifest_path(path), ArtifactManifest, f"the manifest of {path.name}")


def as_text(manifest: ArtifactManifest) -> str:
    """Return a manifest as the text of its file."""
    return manifest.model_dump_json(indent=2) + "\n"


def digest_of(content: bytes) -> str:
    """Return the digest by which a manifest knows its file."""
    return hashlib.sha256(content).hexdigest()


def load_artifact(
    path: Path | str, ruleset: Ruleset, *, name: str | None = None, threads: int = THREADS
) -> PolicyAgent:
    """Return the policy in an ONNX file as an agent.

    Args:
        path: of the file; its manifest is beside it.
        ruleset: that it is to play under.
        name: in records and tables; by default ``policy:PATH``.
        threads: of one pass.

    Raises:
        PolicyError: something is not there or damaged, does not fit the other or does not fit the
            rules; says what, and what would be right.
    """
    path = Path(path)
    return _load(path, manifest_path(path), ruleset, name or f"policy:{path}", threads)


def write_artifact(
    path: Path,
    content: bytes,
    manifest: ArtifactManifest,
    ruleset: Ruleset,
    check: Callable[[PolicyAgent], object],
) -> None:
    """Write both files, or leave what was there.

    Args:
        path: of the ONNX file.
        content: of it.
        manifest: that fits it.
        ruleset: of the policy.
        check: is given the policy, loaded from the new files before they replace anything; it
            raises ``PolicyError`` if that is not what it should be.

    Raises:
        PolicyError: what was written cannot be loaded, or is not what it should be.
        OSError: it cannot be written.
    """
    if len(content) > LARGEST:
        raise PolicyError(
            f"{path}: would have {len(content):,} bytes; at most {LARGEST:,} are allowed, so train "
            "with narrower hidden layers"
        )
    with replacing(path) as file, replacing(manifest_path(path)) as beside:
        file.write_bytes(content)
        beside.write_text(as_text(manifest), encoding="utf-8", newline="\n")
        try:
            check(_load(file, beside, ruleset, path.name, THREADS))
        except PolicyError as error:
            raise PolicyError(f"{path}: was not written: {error}") from error


def _load(path: Path, beside: Path, ruleset: Ruleset, name: str, threads: int) -> PolicyAgent:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise PolicyError(f"{path}: {error.strerror}; expected an ONNX file") from error
    manifest = read_manifest(beside, ArtifactManifest, f"the manifest of {path.name}")
    if digest_of(content) != manifest.sha256:
        raise PolicyError(
            f"{path}: is damaged or another's: its SHA-256 is {digest_of(content)}, {beside.name} "
            f"says {manifest.sha256}"
        )
    manifest.check(ruleset, path)
    encoding = manifest.encoding_for(ruleset)
    sizes = {"observation_size": encoding.layout().size, "mask_size": encoding.mask_size}
    for key, right in sizes.items():
        if getattr(manifest, key) != right:
            raise PolicyError(
                f"{beside}: {key}: must be {right} for the encoding {encoding.name}, not "
                f"{getattr(manifest, key)}"
            )
    try:
        model = OnnxModel(content, encoding, threads)
    except PolicyError as error:
        raise PolicyError(f"{path}: {error}") from error
    return PolicyAgent(model, encoding, name, manifest.returns, lookahead=manifest.lookahead)


def _smallest(encoding: Encoding) -> Encoding:
    """Return an encoding of the fewest candidates, which a network has to take as well."""
    return Encoding(encoding.name, encoding.ruleset, 2) if encoding.is_candidates else encoding


def _refuse_external_data(content: bytes) -> None:
    """Refuse a network that reads other files: they would be found, or not, beside whoever plays.

    Raises:
        PolicyError: it would, or is none at all.
    """
    import onnx

    try:
        model = onnx.load_model_from_string(content)
    except Exception as error:
        raise PolicyError("is no ONNX file") from error
    for tensor in _tensors(model):
        if tensor.external_data or tensor.data_location == onnx.TensorProto.EXTERNAL:
            raise PolicyError(
                f"the weights {tensor.name!r} are in another file; all must be in this one"
            )


def _tensors(message: Any) -> Iterator[Any]:
    """Yield every tensor in a message of ONNX's, however deep."""
    from onnx import TensorProto

    if isinstance(message, TensorProto):
        yield message
        return
    for field, value in message.ListFields():
        if field.message_type is not None:
            for each in [value] if hasattr(value, "ListFields") else value:
                yield from _tensors(each)


def _session(content: bytes, threads: int) -> Any:
    """Return what evaluates a network, without a word."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = _SILENT
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise PolicyError(f"the network cannot be used: {_line(error)}") from error


def _check_declared(session: Any, encoding: Encoding) -> None:
    """Compare what a network declares with what the encoding needs.

    Raises:
        PolicyError: they differ.
    """
    # Of candidates there may be any number: the size is open, and a text says so.
    size: Any = "size" if encoding.is_candidates else encoding.layout().size
    count: Any = "k" if encoding.is_candidates else encoding.mask_size
    outputs = {LOGITS: [count], **({VALUES: []} if encoding.is_candidates else {})}
    for what, found, wanted in (
        ("input", session.get_inputs(), {INPUT: [size]}),
        ("output", session.get_outputs(), outputs),
    ):
        names = [each.name for each in found]
        if names != list(wanted):
            raise PolicyError(
                f"its {what}s are {', '.join(names)}; right would be {', '.join(wanted)}"
            )
        for each in found:
            batch, *rest = each.shape or [0]
            if each.type != _FLOATS or isinstance(batch, int) or not _fits(rest, wanted[each.name]):
                right = ", ".join(map(str, ["n", *wanted[each.name]]))
                raise PolicyError(
                    f"its {what} {each.name} is {each.type} of shape {each.shape}; right would be "
                    f"{_FLOATS} of shape [{right}] for any n"
                )


def _fits(shape: list[Any], wanted: list[Any]) -> bool:
    """Tell whether declared sizes are those wanted; those that are open are texts."""
    return len(shape) == len(wanted) and all(
        isinstance(found, str) if isinstance(right, str) else found == right
        for found, right in zip(shape, wanted, strict=True)
    )


def _line(error: Exception) -> str:
    return " ".join(str(error).split())

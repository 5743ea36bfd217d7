"""From a training run's folder to a file that anybody can play against: ONNX, manifest and card."""

import json
from pathlib import Path
from typing import Any, Final

from pydantic import FiniteFloat

from retinue.agents.artifact import (
    ArtifactManifest,
    digest_of,
    manifest_path,
    write_artifact,
)
from retinue.agents.onnx_export import CHECKED, check_same, played_positions, to_onnx
from retinue.agents.policy import Manifest, TorchModel, load_network
from retinue.agents.registry import lookahead_of
from retinue.envs.game.board import SEATS
from retinue.envs.game.files import check_writable
from retinue.envs.game.schema import StrictModel, build, read_yaml
from retinue.evaluation.policy_report import card_path, write_card
from retinue.training.run_folder import RunError, RunFolder

NEEDED: Final = ("rules.yaml", "config.yaml", "command.txt", "versions.json", "policy/policy.json")
_EVALUATION: Final = "evaluation.json"


class _Share(StrictModel):
    """An estimate, as a run keeps it."""

    value: FiniteFloat
    low: FiniteFloat
    high: FiniteFloat
    samples: int
    """Blocks of ``SEATS`` matches."""


class _Evaluation(StrictModel):
    """The final measurement of a run, as it keeps it."""

    decisions: int
    par: float
    against: dict[str, _Share]


def export_run(
    folder: Path, out: Path, decisions: int | None = None, lookahead: str | None = None
) -> ArtifactManifest:
    """Write the policy of a training run as an ONNX file, with a manifest and a card beside it.

    The file is checked against the policy on positions of played matches before it replaces
    anything.

    Args:
        folder: of the run.
        out: the ONNX file.
        decisions: which of the policies that the run kept along its way, by its decisions; by
            default the last one, which alone was measured at length.
        lookahead: options of how it is to look ahead where it plays, ``""`` for the defaults; by
            default it plays as the network says, and only then the run's measurements are its own.

    Returns:
        The manifest.

    Raises:
        RunError: the folder holds no run with a policy, or its parts do not fit each other.
        PolicyError: the policy is damaged, too large, or the file would play otherwise.
        AgentError: it cannot look ahead like that.
        SchemaError: the run's rules or configuration are damaged.
        OSError: a file cannot be written.
    """
    for path in (out, manifest_path(out), card_path(out)):
        check_writable(path)
    missing = [name for name in NEEDED if not (folder / name).exists()]
    if missing:
        raise RunError(f"{folder}: no training run with a policy: there is no {', '.join(missing)}")
    run = RunFolder(folder)
    ruleset = run.ruleset()
    network, policy = load_network(_policy_of(run, decisions), ruleset)
    encoding = policy.encoding_for(ruleset)
    origin = _origin(folder, policy)
    if lookahead is not None:
        origin["lookahead"] = lookahead_of(lookahead, ruleset)
    elif decisions is None:
        origin["strength"] = _strength(folder / _EVALUATION, policy.decisions, origin["command"][0])
    content = to_onnx(network, encoding)
    manifest = build(
        ArtifactManifest,
        {
            **policy.model_dump(mode="json"),
            "format": "retinue-artifact",
            "version": 1,
            "observation_size": encoding.layout().size,
            "mask_size": encoding.mask_size,
            "strength": [],
            **origin,
            "licence": "MIT",
            "sha256": digest_of(content),
        },
        str(folder),
    )
    write_artifact(
        out,
        content,
        manifest,
        ruleset,
        lambda agent: check_same(
            agent.model,
            TorchModel(network),
            encoding.nvec,
            played_positions(agent.model, encoding, CHECKED),
        ),
    )
    write_card(out)
    return manifest


def _policy_of(run: RunFolder, decisions: int | None) -> Path:
    """Return the folder of a policy of a run.

    Raises:
        RunError: it was not kept.
    """
    if decisions is None:
        return run.policy
    folder = run.history / str(decisions)
    if not folder.exists():
        kept = sorted(int(each.name) for each in run.history.glob("*") if each.name.isdecimal())
        raise RunError(
            f"{run.path}: kept no policy of {decisions} decisions; those kept: "
            f"{', '.join(map(str, kept)) or 'none'}"
        )
    return folder


def _origin(folder: Path, policy: Manifest) -> dict[str, Any]:
    """Return what a run's folder says of how its policy was made."""
    configuration = read_yaml(folder / "config.yaml")
    for key in ("mode", "encoding"):
        if configuration.get(key) != getattr(policy, key):
            raise RunError(
                f"{folder}: config.yaml is of another run: its {key} is {configuration.get(key)}, "
                f"the policy's is {getattr(policy, key)}"
            )
    command = [line for line in _read(folder / "command.txt").splitlines() if line]
    if not command:
        raise RunError(f"{folder / 'command.txt'}: is empty; expected the command of the run")
    return {
        "command": command,
        "configuration": configuration,
        "versions": _read_json(folder / "versions.json"),
    }


def _strength(path: Path, decisions: int, command: str) -> list[dict[str, Any]]:
    """Return what a run's final measurement says; nothing if it was interrupted before."""
    if not path.exists():
        return []
    found = build(_Evaluation, _read_json(path), str(path))
    if found.decisions != decisions:
        raise RunError(
            f"{path}: measures the policy of {found.decisions:,} decisions, but the run's has "
            f"{decisions:,}: end the run with `retinue train --resume`"
        )
    return [
        {
            "against": against,
            "share": share.value,
            "low": share.low,
            "high": share.high,
            "matches": share.samples * SEATS,
            "command": command,
        }
        for against, share in found.against.items()
    ]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise RunError(f"{path}: is not UTF-8 text") from error


def _read_json(path: Path) -> Any:
    try:
        return json.loads(_read(path))
    except ValueError as error:
        raise RunError(f"{path}: not valid JSON: {error}") from error

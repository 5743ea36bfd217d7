"""The zoo: trained policies that come with the package, by level and mode.

Each is three files in the folder ``zoo``, ``MODE-LEVEL.onnx`` with its manifest (``.json``) and its
card (``.md``).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from retinue.agents.artifact import ArtifactManifest, read_artifact
from retinue.agents.policy import ONNX_SUFFIX, PolicyError
from retinue.envs.game.ruleset import MODES

FOLDER: Final = Path(__file__).with_name("zoo")
LEVELS: Final = ("easy", "medium", "hard")
"""From the weakest."""


@dataclass(frozen=True)
class Resident:
    """A policy of the zoo."""

    mode: str
    level: str
    manifest: ArtifactManifest


def zoo_path(level: str, mode: str) -> Path:
    """Return the ONNX file of a level for a mode.

    Raises:
        PolicyError: there is none; names those that there are.
    """
    path = _file(level, mode)
    if not path.exists():
        raise PolicyError(f"the zoo has no {level!r} for {mode}; {levels_in_words(mode)}")
    return path


def levels_of(mode: str) -> list[str]:
    """Return the levels that there are for a mode, from the weakest."""
    return [level for level in LEVELS if _file(level, mode).exists()]


def levels_in_words(mode: str) -> str:
    """Say which levels there are for a mode."""
    return f"its levels for {mode}: {', '.join(levels_of(mode)) or 'none yet'}"


def residents() -> list[Resident]:
    """Return all policies of the zoo, mode by mode, from the weakest.

    Raises:
        PolicyError: a manifest is damaged.
    """
    return [
        Resident(mode, level, read_artifact(_file(level, mode)))
        for mode in MODES
        for level in levels_of(mode)
    ]


def as_path(path: Path) -> str:
    """Return how a path is written after ``policy:``, so that it is no level of the zoo."""
    return f"./{path}" if str(path) in LEVELS else str(path)


def _file(level: str, mode: str) -> Path:
    return FOLDER / f"{mode}-{level}{ONNX_SUFFIX}"

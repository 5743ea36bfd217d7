"""The folder of one training run: configuration, command, versions, metrics, checkpoint, policy."""

import importlib.metadata
import json
import platform
import shlex
import sys
from pathlib import Path
from typing import Any, Final

import torch
import yaml

from retinue import __version__
from retinue.envs.game.files import replacing, write_atomically
from retinue.envs.game.ruleset import Ruleset, load_ruleset
from retinue.training.config import TrainConfig, dump_config, load_config, ruleset_of

METRICS_FILE: Final = "metrics.jsonl"
EVALUATION_FILE: Final = "evaluation.json"

_PACKAGES: Final = ("numpy", "numba", "torch", "gymnasium", "stable-baselines3", "sb3-contrib")


class RunError(ValueError):
    """A run folder that cannot be used as asked."""


def versions() -> dict[str, str]:
    """Return the versions that a result may depend on."""
    return {
        "retinue": __version__,
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in _PACKAGES},
    }


def free_folder(base: Path) -> Path:
    """Return ``base``, or ``base-2``, ``base-3`` ...: the first that does not exist."""
    candidate, number = base, 2
    while candidate.exists():
        candidate = base.with_name(f"{base.name}-{number}")
        number += 1
    return candidate


class RunFolder:
    """Where a training run keeps everything.

    ``config.yaml``, ``rules.yaml``, ``command.txt`` and ``versions.json`` say how it was made,
    ``metrics.jsonl`` and ``tensorboard/`` what happened, ``checkpoint.pt`` lets it go on,
    ``policy/`` is what it learned and ``evaluation.json`` how strong that is;
    ``history/DECISIONS/`` is what it had learned whenever it was measured before.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.policy = path / "policy"
        self.history = path / "history"
        self.tensorboard = path / "tensorboard"
        self._rules = path / "rules.yaml"
        self._checkpoint = path / "checkpoint.pt"

    @classmethod
    def create(cls, path: Path, config: TrainConfig) -> "RunFolder":
        """Start a run in a new folder.

        Raises:
            RunError: the folder exists and is not empty.
            SchemaError: the rules that the configuration names cannot be used.
        """
        ruleset = ruleset_of(config)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise RunError(f"{path} exists already: resume it, or choose another folder with --out")
        path.mkdir(parents=True, exist_ok=True)
        run = cls(path)
        write_atomically(path / "config.yaml", dump_config(config))
        rules = yaml.safe_dump(ruleset.model_dump(mode="json"), sort_keys=False)
        write_atomically(run._rules, rules)
        run._note_command()
        return run

    @classmethod
    def open(cls, path: Path) -> tuple["RunFolder", TrainConfig]:
        """Open a run to be resumed.

        Raises:
            RunError: there is no checkpoint to resume from.
            SchemaError: its configuration is damaged.
        """
        run = cls(path)
        if not run._checkpoint.exists():
            raise RunError(f"{path} holds no checkpoint.pt to resume from")
        config = load_config(path / "config.yaml")
        run._note_command()
        return run, config

    def ruleset(self) -> Ruleset:
        """Return the run's rules: its own copy, whatever became of the file that it was made from.

        Raises:
            SchemaError: the copy is missing or damaged.
        """
        return load_ruleset(self._rules)

    def _note_command(self) -> None:
        with (self.path / "command.txt").open("a", encoding="utf-8") as file:
            file.write(f"{shlex.join(['retinue', *sys.argv[1:]])}\n")
        write_atomically(self.path / "versions.json", json.dumps(versions(), indent=2) + "\n")

    def add_metrics(self, values: dict[str, Any]) -> None:
        """Append a line to ``metrics.jsonl``."""
        with (self.path / METRICS_FILE).open("a", encoding="utf-8") as file:
            file.write(json.dumps(values) + "\n")

    def keep_metrics_until(self, decisions: int) -> None:
        """Drop metrics that came after the checkpoint that is resumed from."""
        path = self.path / METRICS_FILE
        if path.exists():
            kept = [line for line in _lines(path) if json.loads(line)["decisions"] <= decisions]
            write_atomically(path, "".join(f"{line}\n" for line in kept))

    def last_measured(self) -> int:
        """Return after how many decisions the learner was measured last; 0 if never."""
        path = self.path / METRICS_FILE
        if not path.exists():
            return 0
        return max((json.loads(each)["decisions"] for each in _lines(path)), default=0)

    def save_checkpoint(self, state: dict[str, Any]) -> None:
        """Write a checkpoint of tensors and plain data, whole or not at all."""
        with replacing(self._checkpoint) as draft, draft.open("xb") as file:
            torch.save(state, file)

    def load_checkpoint(self) -> dict[str, Any]:
        """Return the last checkpoint; nothing in it can run code.

        Raises:
            RunError: the file is damaged.
        """
        try:
            state: dict[str, Any] = torch.load(self._checkpoint, weights_only=True)
        except Exception as error:
            raise RunError(f"{self._checkpoint}: not a checkpoint of this program") from error
        if not isinstance(state, dict):
            raise RunError(f"{self._checkpoint}: not a checkpoint of this program")
        return state

    def save_evaluation(self, table: dict[str, Any]) -> None:
        """Write the final measurement to ``evaluation.json``."""
        write_atomically(self.path / EVALUATION_FILE, json.dumps(table, indent=2) + "\n")


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()

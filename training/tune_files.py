"""What tuning leaves in files: checkpoints to go on from, and the strategy that came out."""

from pathlib import Path
from typing import Any

import yaml

from retinue.envs.facts import FACT_NAMES
from retinue.envs.game.board import SEATS
from retinue.envs.game.files import write_atomically
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.schema import SchemaError, StrictModel, from_json
from retinue.envs.strategy_file import Weights
from retinue.evaluation.statistics import Estimate
from retinue.evaluation.text import printable
from retinue.training.tune_config import Judgement, Tuned, TuneError


class Checkpoint(StrictModel):
    """A search after some generations; what was played is enough to learn it all again.

    Attributes:
        stamp: what the search was asked for.
        scales: each fact's spread, by which it is measured.
        fitness: of each generation's strategies.
        mean: of what was learnt, to see that learning again comes to the same.
        judgements: of the mean.
        champions: weights, the start first.
    """

    stamp: dict[str, Any]
    scales: dict[str, float]
    fitness: tuple[tuple[float, ...], ...] = ()
    mean: tuple[float, ...] = ()
    judgements: tuple[Judgement, ...] = ()
    champions: tuple[Weights, ...]

    @classmethod
    def read(cls, path: Path) -> "Checkpoint":
        """Return the checkpoint in a file.

        Raises:
            TuneError: there is none, or it is damaged.
        """
        try:
            found = from_json(cls, path.read_text(encoding="utf-8"))
        except OSError as error:
            raise TuneError(f"{path}: there is nothing to go on from: {error.strerror}") from error
        except (SchemaError, UnicodeDecodeError) as error:
            raise TuneError(f"{path}: is no checkpoint, or damaged: {error}") from error
        if not found.champions or set(found.scales) != set(FACT_NAMES):
            raise TuneError(f"{path}: is no checkpoint, or damaged: something is missing")
        return found

    def write(self, path: Path) -> None:
        """Write it, whole or not at all."""
        write_atomically(path, self.model_dump_json() + "\n")

    def check_stamp(self, wanted: dict[str, Any]) -> None:
        """Refuse to be gone on from by another search.

        Raises:
            TuneError: naming the first thing that differs.
        """
        for name, value in wanted.items():
            mine = self.stamp.get(name)
            if mine != value:
                told = "" if isinstance(value, dict | list) else f": {mine} there, {value} now"
                raise TuneError(f"the checkpoint is another search's, with another {name}{told}")

    def after(
        self,
        fitness: tuple[float, ...],
        mean: list[float],
        judgement: Judgement | None,
        weights: Weights,
    ) -> "Checkpoint":
        """Return what it is after one more generation.

        Args:
            fitness: of the generation.
            mean: of what was learnt.
            judgement: of the mean, if there was one.
            weights: of the mean, a champion if it was judged better.
        """
        changed: dict[str, Any] = {"fitness": (*self.fitness, fitness), "mean": tuple(mean)}
        if judgement is not None:
            changed["judgements"] = (*self.judgements, judgement)
            if judgement.better:
                changed["champions"] = (*self.champions, weights)
        return self.model_copy(update=changed)


def checkpoint_of(out: Path) -> Path:
    """Return where the checkpoint of a strategy file is kept, beside it."""
    return out.with_name(f"{out.name}.checkpoint")


def check_new(out: Path) -> None:
    """Refuse to begin a search where there is something already.

    Raises:
        TuneError: naming what is there and what to do.
    """
    if checkpoint_of(out).exists():
        raise TuneError(
            f"{checkpoint_of(out)} is there already: go on from it with --resume, or remove it"
        )
    if out.exists():
        raise TuneError(f"{out} is there already: choose another file, or remove it")


def percent(share: Estimate) -> str:
    """Return a share of first places with its interval."""
    return f"{share.value:.1%} ({share.low:.1%} to {share.high:.1%})"


def strategy_text(tuned: Tuned, ruleset: Ruleset, command: str, start: str) -> str:
    """Return the file of a tuned strategy, which says how it was made.

    Args:
        tuned: what came out.
        ruleset: under which it was tuned.
        command: that made it.
        start: what was started from.
    """
    share = tuned.against_start
    lines = (
        command,
        f"Rules {ruleset.digest} ({ruleset.mode}); champions, {start} among them: "
        f"{tuned.champions}.",
        f"First places against three of {start}: {percent(share)}, {share.samples * SEATS:,} "
        f"matches; par is 25%.",
    )
    content: dict[str, Any] = {
        "description": f"tuned weights for {ruleset.mode}",
        "rules": [ruleset.digest],
    }
    content[ruleset.mode] = {
        name: tuned.weights[name] for name in FACT_NAMES if name in tuned.weights
    }
    header = "".join(f"# {printable(line)}\n" for line in lines)
    return header + yaml.safe_dump(content, sort_keys=False)

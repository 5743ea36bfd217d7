"""Files of strategies: how facts of candidate turns are weighed, by mode.

Shipped files are in ``configs/strategies``; a user's own has the same form.
"""

import functools
import importlib.resources
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field, field_validator

from retinue.envs.facts import check_names
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.schema import SchemaError, StrictModel, build, read_yaml

LARGEST_WEIGHT: Final = 1e6

Weights = dict[
    str, Annotated[float, Field(allow_inf_nan=False, ge=-LARGEST_WEIGHT, le=LARGEST_WEIGHT)]
]
"""By fact; what is not named weighs nothing."""

GUIDE: Final = "tactician"
"""The shipped strategy that guides the generator where no strategy of its own does."""


class StrategyError(ValueError):
    """A strategy that cannot be read or does not fit the rules; says which and why."""


class StrategyFile(StrictModel):
    """A strategy: what it is and how it weighs facts (``retinue.envs.facts``) in each mode."""

    description: Annotated[str, Field(min_length=1)]
    journey: Weights | None = None
    brawl: Weights | None = None
    rules: tuple[str, ...] = ()
    """Digests of the rules that its weights were tuned for; empty if they mean something under any.
    """

    @field_validator("journey", "brawl")
    @classmethod
    def _known_facts(cls, weights: Weights | None) -> Weights | None:
        if weights is not None:
            check_names(weights)
        return weights

    def weights_for(self, ruleset: Ruleset, name: str) -> Weights:
        """Return the weights to play with under some rules.

        Raises:
            StrategyError: there are none for the mode, or they were tuned for other rules.
        """
        weights: Weights | None = getattr(self, ruleset.mode)
        if weights is None:
            raise StrategyError(f"{name} has no weights for {ruleset.mode}")
        if self.rules and ruleset.digest not in self.rules:
            raise StrategyError(
                f"{name} was tuned for rules {' and '.join(self.rules)}, these are {ruleset.mode} "
                f"with rules {ruleset.digest}: tune weights for them "
                "(retinue tune --rules FILE --out FILE)"
            )
        return weights


def shipped_files() -> dict[str, Any]:
    """Return the shipped strategies' files by name, readable wherever the package is installed."""
    folder = importlib.resources.files("retinue") / "configs" / "strategies"
    files = {Path(each.name).stem: each for each in folder.iterdir() if each.name.endswith(".yaml")}
    return dict(sorted(files.items()))


@functools.cache
def shipped_strategy(name: str) -> StrategyFile:
    """Return a shipped strategy."""
    with importlib.resources.as_file(shipped_files()[name]) as path:
        return build(StrategyFile, read_yaml(path), path.name)


def guiding_weights(mode: str) -> Weights:
    """Return the weights by which turns are proposed to learners, under any rules of a mode."""
    weights: Weights = getattr(shipped_strategy(GUIDE), mode)
    return weights


def read_strategy(path: Path | str) -> StrategyFile:
    """Return the strategy in a file.

    Raises:
        StrategyError: there is none, or it has not the form of one.
    """
    try:
        return build(StrategyFile, read_yaml(str(path)), str(path))
    except (OSError, SchemaError) as error:
        raise StrategyError(str(error)) from error

"""Strategies: agents that weigh the facts of candidate turns, each a file of a few weights.

The candidates are proposed by the generator (:mod:`retinue.envs.candidates`), guided by the
strategy's own weights, or drawn at random. Shipped files are in ``configs/strategies``; a user's
own has the same form.
"""

import functools
import importlib.resources
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
from pydantic import Field, field_validator

from retinue.agents.base import CompiledAgent
from retinue.envs.candidates import MAX_CANDIDATES, STRATEGY, choose_by_weights
from retinue.envs.facts import FACT_NAMES, check_names, pack_weights
from retinue.envs.game.ruleset import Ruleset, load_ruleset
from retinue.envs.game.schema import SchemaError, StrictModel, build, read_yaml
from retinue.envs.opponents import Policy
from retinue.envs.survey import fill_ways

CANDIDATES: Final = 64
"""Candidates that a strategy looks at unless another number is given."""
MOST_AT_RANDOM: Final = 1_000_000

Weights = dict[str, Annotated[float, Field(allow_inf_nan=False)]]


class StrategyError(ValueError):
    """A strategy that cannot be read or does not fit the rules; says which and why."""


class StrategyFile(StrictModel):
    """A strategy: what it is and how it weighs facts (``retinue.envs.facts``) in each mode."""

    description: Annotated[str, Field(min_length=1)]
    journey: Weights | None = None
    brawl: Weights | None = None
    only_shipped_rules: bool = False
    """Its weights were tuned for the numbers of the shipped rules and mean nothing under others."""

    @field_validator("journey", "brawl")
    @classmethod
    def _known_facts(cls, weights: Weights | None) -> Weights | None:
        if weights is not None:
            check_names(weights)
        return weights

    def weights_for(self, ruleset: Ruleset, name: str) -> Weights:
        """Return the weights to play with under some rules.

        Raises:
            StrategyError: there are none for the mode, or for other rules than the mode's own.
        """
        weights: Weights | None = getattr(self, ruleset.mode)
        if weights is None:
            raise StrategyError(f"{name} has no weights for {ruleset.mode}")
        if self.only_shipped_rules and ruleset.digest != load_ruleset(ruleset.mode).digest:
            raise StrategyError(
                f"{name} was tuned for the shipped rules of {ruleset.mode}, not for rules "
                f"{ruleset.digest}: tune weights for these (retinue tune --rules FILE)"
            )
        return weights


def shipped_files() -> dict[str, Any]:
    """Return the shipped strategies' files by name, readable wherever the package is installed."""
    folder = importlib.resources.files("retinue") / "configs" / "strategies"
    files = {Path(each.name).stem: each for each in folder.iterdir() if ".yaml" in each.name}
    return dict(sorted(files.items()))


@functools.cache
def shipped_strategy(name: str) -> StrategyFile:
    """Return a shipped strategy."""
    with importlib.resources.as_file(shipped_files()[name]) as path:
        return build(StrategyFile, read_yaml(path), path.name)


def read_strategy(path: Path | str) -> StrategyFile:
    """Return the strategy in a file.

    Raises:
        StrategyError: there is none, or it has not the form of one.
    """
    try:
        return build(StrategyFile, read_yaml(str(path)), str(path))
    except (OSError, SchemaError) as error:
        raise StrategyError(str(error)) from error


def make_strategy(
    name: str,
    weights: Weights,
    ruleset: Ruleset,
    candidates: int = CANDIDATES,
    *,
    at_random: bool = False,
) -> CompiledAgent:
    """Return the agent that takes the candidate turn which its weights value most.

    Args:
        name: of the agent.
        weights: by fact; what is not named weighs nothing.
        ruleset: the only rules that it can play under.
        candidates: how many turns it looks at.
        at_random: they are drawn, uniformly part by part, not proposed.

    Raises:
        StrategyError: there cannot be so many candidates.
    """
    most = MOST_AT_RANDOM if at_random else MAX_CANDIDATES
    if not 1 <= candidates <= most:
        raise StrategyError(
            f"agent {name}: candidates must be 1 to {most:,}"
            f"{'' if at_random else ' unless they are drawn at random'}, not {candidates:,}"
        )
    memory = np.zeros(1, STRATEGY)
    fill_ways(memory, ruleset)
    memory["weights"] = pack_weights(weights)
    memory["count"] = candidates
    memory["at_random"] = at_random
    return CompiledAgent(name, Policy(choose_by_weights, memory, ruleset))


def weights_in_order(weights: Weights) -> Weights:
    """Return weights in the order of the facts, as files have them."""
    return {name: weights[name] for name in FACT_NAMES if name in weights}

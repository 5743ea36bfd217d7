"""The training configuration: strict YAML, every field explained, no number hidden in code."""

import importlib.resources
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import yaml
from pydantic import Field, FiniteFloat, field_validator, model_validator

from retinue.agents.policy import Hidden
from retinue.envs.actions import MAX_CANDIDATES
from retinue.envs.game.ruleset import Ruleset, load_ruleset
from retinue.envs.game.schema import SchemaError, StrictModel, build, parse_yaml, read_yaml
from retinue.envs.kernels import MAX_GAMES, MAX_OPPONENTS
from retinue.envs.parallel import MAX_THREADS

SHIPPED: Final = importlib.resources.files("retinue") / "configs" / "train"
"""Where the shipped configurations are, wherever the package is installed."""

SPARE_PLACES: Final = 4
"""Of a league, beside those of snapshots: for the latest copy of the learner, and for copies that
nobody meets any more but whose matches still go on."""

MAX_COLLECTED: Final = 1 << 24
"""Decisions between two updates, over all environments: all of them are kept in memory."""

Positive = Annotated[FiniteFloat, Field(gt=0)]
Share = Annotated[FiniteFloat, Field(ge=0, le=1)]
Whole = Annotated[int, Field(ge=1, le=1_000_000)]
Decisions = Annotated[int, Field(ge=1, le=1_000_000_000_000)]


class RewardConfig(StrictModel):
    """How scores become rewards (``retinue.envs.rewards``)."""

    mode: Literal["score", "margin", "place"]
    scale: Positive
    """Points, or places, that make a reward of 1."""
    place_bonus: Annotated[FiniteFloat, Field(ge=0)] = 0.0
    """Reward of the first place in the end, beside the scores; the last one costs as much."""


class PPOConfig(StrictModel):
    """What MaskablePPO is given."""

    rollout_steps: Whole
    """Decisions of each environment between two updates."""
    batch_size: Annotated[int, Field(ge=2, le=MAX_COLLECTED)]
    """At least 2, since advantages are normalised within a batch."""
    epochs: Whole
    learning_rate: Positive
    final_learning_rate: Positive
    """Reached on a straight line at the end of ``decisions``."""
    discount: Share
    gae_lambda: Share
    clip_range: Positive
    temperature: Positive = 1.0
    """Of the learner's choices, of ``candidates`` only: logits are divided by it."""
    final_temperature: Positive = 1.0
    """Reached on a straight line at the end of ``decisions``."""
    entropy_weight: Annotated[FiniteFloat, Field(ge=0)]
    value_weight: Annotated[FiniteFloat, Field(ge=0)]
    max_gradient_norm: Positive


class LeagueConfig(StrictModel):
    """Copies of the learner among its opponents (``retinue.training.league``)."""

    latest: Share = 0.0
    """Share of the other seats that are taken by a copy of the learner as it is."""
    snapshots: Share = 0.0
    """The same by copies of its past that a test admitted. Scripted agents have what is left."""
    most: Annotated[int, Field(ge=1, le=32)] = 8
    """Snapshots that are kept; the easiest one goes."""
    every: Decisions = 500_000
    """Decisions between two tests of whether the learner is to become a snapshot."""
    hardness: Annotated[FiniteFloat, Field(ge=0, le=100)] = 2.0
    """How much harder snapshots are preferred; with 0 all are as likely."""
    margin: Annotated[FiniteFloat, Field(gt=0, lt=0.5)] = 0.05
    """Of the test, as of ``retinue compare``."""
    error: Annotated[FiniteFloat, Field(gt=0, lt=0.5)] = 0.05
    """The same."""
    blocks: Whole = 150
    """Blocks of a test at most; who is not found stronger by then is not admitted."""

    @model_validator(mode="after")
    def _leaves_something(self) -> "LeagueConfig":
        if self.latest + self.snapshots > 1:
            raise ValueError(
                f"latest + snapshots = {self.latest + self.snapshots} must be at most 1"
            )
        return self


class RefinementConfig(StrictModel):
    """What follows PPO: learning from rollouts (``retinue.training.refinement``)."""

    decisions: Decisions
    """At which candidates are tried, after those of PPO."""
    rollout_steps: Whole = 8
    """Decisions of each environment between two looks at the time and the league."""
    favourites: Annotated[int, Field(ge=1, le=MAX_CANDIDATES)] = 8
    """How many of the candidates that the policy likes best are tried at each decision."""
    others: Annotated[int, Field(ge=0, le=MAX_CANDIDATES)] = 4
    """How many of the others are tried, drawn at random."""
    candidates: Annotated[int, Field(ge=2, le=MAX_CANDIDATES)] = 16
    """Turns that anybody chooses from in rollouts; nobody looks at more than by itself."""
    opponents: Annotated[str, Field(min_length=1)] = "tactician"
    """Whom the other seats are taken for in rollouts: an agent that kernels can call."""
    batch_size: Whole = 256
    """Decisions of a step of the optimiser, which fits the second opinion in the end."""
    epochs: Whole = 8
    learning_rate: Positive = 0.004
    """The highest; it rises to that and falls again (one cycle)."""


LineUp = str | Annotated[tuple[str, ...], Field(min_length=3, max_length=3)]


class EvaluationConfig(StrictModel):
    """How the policy is measured; a block is four matches with the same dice, one in each seat."""

    against: Annotated[tuple[LineUp, ...], Field(min_length=1)]
    """An agent, of which three copies are met, or three agents."""
    every: Decisions
    """Decisions between two measurements during training."""
    blocks: Whole
    final_blocks: Whole


class TrainConfig(StrictModel):
    """One training run."""

    mode: Literal["journey", "brawl"]
    rules: str | None = None
    """A rule file instead of the mode's own."""
    encoding: Literal["steps", "turn", "candidates"]
    candidates: Annotated[int, Field(ge=2, le=MAX_CANDIDATES)] = 64
    """How many turns are proposed; of the encoding ``candidates`` only."""
    opponents: Annotated[tuple[str, ...], Field(min_length=1, max_length=MAX_OPPONENTS)]
    """Agents of the other three seats, each seat's drawn anew for each match; twice is twice as
    likely. The learner's own seat is drawn for each match too."""
    league: LeagueConfig | None = None
    """Copies of the learner among the opponents; without it there are none."""
    reward: RewardConfig
    seed: Annotated[int, Field(ge=0, lt=1 << 20)]
    """Below 2**20, so that the dice seeds of first matches, ``MATCH_SEED_SPACING`` = 2**32 apart,
    stay below ``MEASURING_SEED`` = 2**52: no run begins with dice that it is measured with."""
    environments: Annotated[int, Field(ge=1, le=MAX_GAMES)]
    """Matches played at the same time."""
    engine_threads: Whole
    torch_threads: Annotated[int, Field(ge=1, le=256)]
    decisions: Decisions
    """When training ends, counted over all environments."""
    max_minutes: Positive | None = None
    """When training ends at the latest; measurements count."""
    checkpoint_minutes: Positive
    network: Hidden
    """Widths of the policy's hidden layers; of ``candidates`` those of its shared network."""
    value_network: Hidden
    """The same of the value."""
    ppo: PPOConfig
    refinement: RefinementConfig | None = None
    """What follows PPO, of ``candidates`` only; without it nothing does."""
    evaluation: EvaluationConfig

    @model_validator(mode="after")
    def _has_temperature(self) -> "TrainConfig":
        given = (self.ppo.temperature, self.ppo.final_temperature)
        if given != (1.0, 1.0) and self.encoding != "candidates":
            raise ValueError(
                f"ppo.temperature, ppo.final_temperature: {given[0]}, {given[1]} must be 1 with "
                f"encoding {self.encoding}; another one is for candidates only"
            )
        return self

    @model_validator(mode="after")
    def _can_be_refined(self) -> "TrainConfig":
        if self.refinement is not None and self.encoding != "candidates":
            raise ValueError(f"refinement: is for the encoding candidates, not for {self.encoding}")
        return self

    @property
    def all_decisions(self) -> int:
        """When the run ends: after the decisions of PPO and those of its refinement."""
        return self.decisions + (self.refinement.decisions if self.refinement else 0)

    @model_validator(mode="after")
    def _seats_them_all(self) -> "TrainConfig":
        if self.league is not None:
            places = self.league.most + SPARE_PLACES
            if len(self.opponents) + places > MAX_OPPONENTS:
                raise ValueError(
                    f"league.most: {self.league.most} snapshots and {SPARE_PLACES} more places "
                    f"beside {len(self.opponents)} opponents are more than {MAX_OPPONENTS} agents"
                )
        return self

    @field_validator("engine_threads")
    @classmethod
    def _are_there(cls, threads: int) -> int:
        if threads > MAX_THREADS:
            raise ValueError(f"{threads} threads are more than the {MAX_THREADS} that can run here")
        return threads

    @model_validator(mode="after")
    def _fits_together(self) -> "TrainConfig":
        collected = self.environments * self.ppo.rollout_steps
        if collected > MAX_COLLECTED:
            raise ValueError(
                f"ppo.rollout_steps: environments x ppo.rollout_steps = {collected} must be at "
                f"most {MAX_COLLECTED}"
            )
        if collected % self.ppo.batch_size:
            raise ValueError(
                f"ppo.batch_size: {self.ppo.batch_size} must divide environments x "
                f"ppo.rollout_steps = {collected}"
            )
        return self


def _set(data: dict[str, Any], assignment: str) -> None:
    """Carry out one ``key.key=value`` on plain data."""
    key, sign, text = assignment.partition("=")
    if not sign or not key:
        raise SchemaError(f"--set {assignment}: write it as key=value, for example ppo.epochs=4")
    try:
        value = parse_yaml(text)
    except SchemaError as error:
        raise SchemaError(f"--set {assignment}: {error}") from error
    *parents, last = key.split(".")
    for parent in parents:
        inner = data.get(parent)
        if not isinstance(inner, dict):
            raise SchemaError(f"--set {assignment}: there is no section {parent!r}")
        data = inner
    data[last] = value


def load_config(path: Path | str, assignments: tuple[str, ...] | list[str] = ()) -> TrainConfig:
    """Return the configuration of a YAML file with ``key=value`` changes applied.

    Args:
        path: the file, or the bare name of a shipped one (``quick``).
        assignments: changes, such as ``"ppo.epochs=4"``.

    Raises:
        SchemaError: naming the file, the key and what would be right.
    """
    if Path(path).suffix:
        data = read_yaml(path)
    else:
        with importlib.resources.as_file(SHIPPED.joinpath(f"{path}.yaml")) as shipped:
            data = read_yaml(shipped)
    for assignment in assignments:
        _set(data, assignment)
    return build(TrainConfig, data, str(path))


def dump_config(config: TrainConfig) -> str:
    """Return a configuration as YAML that :func:`load_config` reads back."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False)


def ruleset_of(config: TrainConfig) -> Ruleset:
    """Return the rules that a configuration names.

    Raises:
        SchemaError: they are damaged, or of another mode than the configuration says.
    """
    ruleset = load_ruleset(config.rules or config.mode)
    if ruleset.mode != config.mode:
        raise SchemaError(
            f"rules: {config.rules} is for mode {ruleset.mode}, but the configuration says mode "
            f"{config.mode}"
        )
    return ruleset

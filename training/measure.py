"""How strong a learner is: matches against scripted agents, in blocks with common dice."""

from dataclasses import asdict, dataclass
from typing import Any, Final

from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from retinue.agents.base import Agent
from retinue.agents.registry import make_known_agent
from retinue.envs.game.board import SEATS
from retinue.envs.game.ruleset import Ruleset
from retinue.evaluation.arena import first_share
from retinue.evaluation.statistics import Estimate
from retinue.training.config import EvaluationConfig, LineUp, TrainConfig

MEASURING_SEED: Final = 1 << 52
"""First dice seed of measurements, above those that training matches start from (their seed is
below 2**20, times ``MATCH_SEED_SPACING`` = 2**32). The seeds of an environment's later matches are
53-bit hashes, which next to never meet one of these."""


@dataclass(frozen=True)
class Measurement:
    """Share of first places against some line-ups of three agents (par is 25%), by their names."""

    decisions: int
    shares: dict[str, Estimate]

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "decisions": self.decisions,
            "par": 0.25,
            "against": {name: asdict(share) for name, share in self.shares.items()},
        }

    def short(self) -> str:
        """Return the shares with their intervals in a few characters, for a progress bar."""
        return ", ".join(
            f"{100 * share.value:.0f}% ({100 * share.low:.0f}-{100 * share.high:.0f}) vs {name}"
            for name, share in self.shares.items()
        )


def table_of(measurement: Measurement) -> Table:
    """Return a measurement as a table for people."""
    table = Table(title=f"After {measurement.decisions:,} decisions", box=SIMPLE)
    table.add_column("against")
    table.add_column("first places (par 25%)", justify="right")
    table.add_column("95% interval", justify="right")
    table.add_column("matches", justify="right")
    for name, share in measurement.shares.items():
        table.add_row(
            Text(name),  # a path in it may hold what else would be markup
            f"{share.value:.1%}",
            f"{share.low:.1%} to {share.high:.1%}",
            f"{share.samples * SEATS:,}",
        )
    return table


def three_of(line_up: LineUp) -> tuple[str, ...]:
    """Return the three agents of a line-up."""
    return (line_up,) * (SEATS - 1) if isinstance(line_up, str) else line_up


def name_of(line_up: LineUp) -> str:
    """Return what a line-up is called."""
    return f"three {line_up}" if isinstance(line_up, str) else " + ".join(line_up)


def agents_of(config: EvaluationConfig) -> list[str]:
    """Return all agents that a learner is measured against, each once."""
    return list(dict.fromkeys(name for each in config.against for name in three_of(each)))


class Measurer:
    """Measures learners as a configuration says, always with the same dice."""

    def __init__(self, config: TrainConfig, ruleset: Ruleset) -> None:
        self._config = config.evaluation
        self._ruleset = ruleset
        made = {name: make_known_agent(name, ruleset) for name in agents_of(config.evaluation)}
        self._line_ups = {
            name_of(line_up): [made[name] for name in three_of(line_up)]
            for line_up in self._config.against
        }

    def during(self, agent: Agent, decisions: int) -> Measurement:
        """Return a quick measurement."""
        return self._measure(agent, decisions, self._config.blocks, MEASURING_SEED)

    def final(self, agent: Agent, decisions: int) -> Measurement:
        """Return the final measurement, on dice that no quick one has seen."""
        seed = MEASURING_SEED + self._config.blocks
        return self._measure(agent, decisions, self._config.final_blocks, seed)

    def _measure(self, agent: Agent, decisions: int, blocks: int, seed: int) -> Measurement:
        shares = {
            name: first_share(agent, others, self._ruleset, blocks, seed)
            for name, others in self._line_ups.items()
        }
        return Measurement(decisions, shares)

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
from retinue.training.config import TrainConfig

MEASURING_SEED: Final = 1 << 52
"""First dice seed of measurements, above those that training matches start from (their seed is
below 2**20, times ``MATCH_SEED_SPACING`` = 2**32). The seeds of an environment's later matches are
53-bit hashes, which next to never meet one of these."""


@dataclass(frozen=True)
class Measurement:
    """Share of first places against three copies of each of some agents (par is 25%)."""

    decisions: int
    shares: dict[str, Estimate]

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "decisions": self.decisions,
            "par": 0.25,
            "against_three": {name: asdict(share) for name, share in self.shares.items()},
        }

    def short(self) -> str:
        """Return the shares in a few characters, for a progress bar."""
        return ", ".join(
            f"{100 * share.value:.0f}% vs {name}" for name, share in self.shares.items()
        )


def table_of(measurement: Measurement) -> Table:
    """Return a measurement as a table for people."""
    table = Table(title=f"After {measurement.decisions:,} decisions", box=SIMPLE)
    table.add_column("against three")
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


class Measurer:
    """Measures learners as a configuration says, always with the same dice."""

    def __init__(self, config: TrainConfig, ruleset: Ruleset) -> None:
        self._config = config.evaluation
        self._ruleset = ruleset
        self._agents = {name: make_known_agent(name, ruleset) for name in self._config.against}

    def during(self, agent: Agent, decisions: int) -> Measurement:
        """Return a quick measurement."""
        return self._measure(agent, decisions, self._config.blocks, MEASURING_SEED)

    def final(self, agent: Agent, decisions: int) -> Measurement:
        """Return the final measurement, on dice that no quick one has seen."""
        seed = MEASURING_SEED + self._config.blocks
        return self._measure(agent, decisions, self._config.final_blocks, seed)

    def _measure(self, agent: Agent, decisions: int, blocks: int, seed: int) -> Measurement:
        shares = {
            name: first_share(agent, [other] * 3, self._ruleset, blocks, seed)
            for name, other in self._agents.items()
        }
        return Measurement(decisions, shares)

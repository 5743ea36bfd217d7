"""What matches, agents and rules look like as tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from retinue.agents.base import Agent
from retinue.agents.options import Option, in_words
from retinue.agents.user import UserAgent
from retinue.envs.game.board import SEAT_NAMES, SEATS
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.sources import entries
from retinue.evaluation.arena import Matches
from retinue.evaluation.statistics import Estimate, block_means, estimate_share
from retinue.evaluation.text import printable


@dataclass(frozen=True)
class Standing:
    """How one seat, or one agent that had all seats in turn, came out of matches."""

    seat: str
    agent: str
    first: Estimate
    """Share of first places; a shared one counts 1 / (number of seats that share it)."""
    place: float
    total: float
    progression: float
    combat: float
    bonus: float


def standings(matches: Matches, *, rotated: bool = False) -> list[Standing]:
    """Return a row for each seat, or for each agent if the matches are whole blocks of rotations.

    Raises:
        ValueError: an agent changes its seat although the matches are not rotated, or the other
            way round.
    """
    size = SEATS if rotated else 1
    if not rotated and (matches.seating != matches.seating[0]).any():
        raise ValueError("agents change seats, so there is no row for each seat")

    def columns(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return matches.by_agent(values) if rotated else values

    firsts = columns(matches.first_shares)
    parts = (
        matches.places,
        matches.totals,
        matches.progression,
        matches.combat,
        matches.bonus,
    )
    means = np.stack([columns(part).mean(axis=0) for part in parts])
    rows = []
    for column in range(SEATS):
        agent = column if rotated else int(matches.seating[0, column])
        rows.append(
            Standing(
                "all" if rotated else SEAT_NAMES[column],
                matches.names[agent],
                estimate_share(block_means(firsts[:, column], size)),
                *means[:, column].tolist(),
            )
        )
    return rows


def percent(share: Estimate) -> str:
    """Return a share with its interval."""
    return f"{100 * share.value:.1f}% ({100 * share.low:.1f}-{100 * share.high:.1f})"


def _table() -> Table:
    """Return an empty table that takes little room: 80 columns must do."""
    return Table(box=SIMPLE, show_edge=False, padding=(0, 1, 0, 0), title_justify="left")


def standings_table(matches: Matches, ruleset: Ruleset, *, rotated: bool = False) -> Table:
    """Return the table of :func:`standings`."""
    turns = matches.decisions.sum(axis=1).mean()
    table = _table()
    table.title = f"{ruleset.mode.capitalize()}, {len(matches):,} matches, {turns:.0f} turns each"
    if not rotated:
        table.add_column("seat", no_wrap=True)
    table.add_column("agent", overflow="fold")
    for name in ("first (95%)", "place", "total", "progress", "combat", "bonus"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in standings(matches, rotated=rotated):
        numbers = (row.total, row.progression, row.combat, row.bonus)
        table.add_row(
            *([] if rotated else [row.seat]),
            Text(printable(row.agent)),
            percent(row.first),
            f"{row.place:.2f}",
            *(f"{number:.0f}" for number in numbers),
        )
    return table


def rules_table(ruleset: Ruleset) -> Table:
    """Return every number of a ruleset with its key, value, rule and source."""
    table = _table()
    table.add_column("key", no_wrap=True)
    table.add_column("value", overflow="fold")
    table.add_column("rule")
    table.add_column("source")
    for entry in entries(ruleset):
        table.add_row(*map(Text, (entry.key, entry.value, entry.rule, entry.source)))
    table.caption = "S0 to S4: the game's documents. A1 to A24: assumptions (docs/rules.md, 6)."
    table.caption_justify = "left"
    return table


def agents_table(agents: dict[str, str], options: Mapping[str, Mapping[str, Option]]) -> Table:
    """Return the kinds of agents and what they do; agents of the same options have them below.

    Args:
        agents: how they are asked for, and what they are.
        options: of those that have any, by name and key.
    """
    table = _table()
    table.add_column("agent", no_wrap=True)
    table.add_column("what it does")
    names = [form.partition(":")[0] for form in agents]
    after = [*names[1:], ""]
    for name, following, (form, description) in zip(names, after, agents.items(), strict=True):
        known = options.get(name, {})
        table.add_row(Text(name if known else form), Text(description))
        if known == options.get(following):
            continue
        for key, option in known.items():
            default = Text(f"  {key}={in_words(option.default)}")
            table.add_row(default, Text(f"{option.description} ({option.allowed})"))
    example = next((form for form in agents if form.partition(":")[0] in options), None)
    lines = ["Your own: bot.py:ClassName (docs/agents.md)."]
    if example is not None:
        lines.insert(0, f"Options are shown with their defaults, and given as {example}.")
    table.caption = Text("\n".join(lines))
    table.caption_justify = "left"
    return table


def fault_lines(agents: Sequence[Agent]) -> list[str]:
    """Return a line for each user's agent and kind of fault: how many, and the first one."""
    return [
        f"{agent.name} {kind}: {told.count:,} {'turn' if told.count == 1 else 'turns'} forfeited, "
        f"the first in match {told.match}, turn {told.turn}: {told.reason}"
        for agent in agents
        if isinstance(agent, UserAgent)
        for kind, told in agent.faults.items()
    ]

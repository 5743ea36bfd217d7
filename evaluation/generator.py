"""How good the generator of candidate turns is: against all legal turns, and in play.

On positions from real play that are small enough, every legal turn is made and valued with the
same weights. What the best candidate falls short of the best turn is the regret. Turns drawn at
random give the measure: what looking at as many of them would have found.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import numpy as np
from rich.box import SIMPLE
from rich.table import Table

from retinue.agents.base import CompiledAgent
from retinue.agents.registry import make_agent
from retinue.envs.game.board import SEATS
from retinue.envs.game.dice import SEED_BITS
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.opponents import View
from retinue.evaluation.arena import ArenaError, Progress, play_matches
from retinue.evaluation.enumeration import Turns, all_turns, count_turns, values_of
from retinue.evaluation.pairs import play_against_three, share_of_one
from retinue.evaluation.report import percent
from retinue.evaluation.statistics import Estimate

STRATEGY: Final = "tactician"
"""Whose weights guide the generator, and say what is best."""
CANDIDATES: Final = (32, 64, 128)
MOST_TURNS: Final = 60_000
"""A position with more legal turns is left out; with a full store there are many millions."""
POSITIONS_A_MATCH: Final = 4
"""That many at most come from one match, on average."""
MOST_WAVES: Final = 8
"""So many times as many matches are played if large positions are that common."""
SAME: Final = 1e-5
"""Values closer than this part of themselves are equal: they are single precision."""
TIMED_FOR: Final = 0.5
"""Seconds at least for which decisions are timed."""
IN_PLAY: Final = (64, 1000)
"""Candidates in play: of the generator, and of those that draw theirs."""


def looking_at(candidates: int, ruleset: Ruleset, *, at_random: bool = False) -> CompiledAgent:
    """Return the strategy, looking at so many candidates, proposed or drawn at random."""
    drawn = ",random=true" if at_random else ""
    agent = make_agent(f"{STRATEGY}:candidates={candidates}{drawn}", ruleset)
    assert isinstance(agent, CompiledAgent)
    return agent


# --- Positions from real play


class _Recorder:
    """An agent that keeps every position in which it is asked.

    Args:
        agent: who chooses.
    """

    compiled = None

    def __init__(self, agent: CompiledAgent) -> None:
        self.name = agent.name
        self.positions: list[Any] = []
        self._agent = agent

    def choose(self, view: View, rng: np.random.Generator) -> Turns:
        """Return the agent's turns."""
        self.positions.append(view.games.copy())
        return self._agent.choose(view, rng)


@dataclass(frozen=True)
class Positions:
    """Positions to measure on.

    Attributes:
        games: ``GAME`` ``(n,)``, rolls received.
        turns: how many legal turns each has.
        too_large: how many more were drawn but have too many turns.
    """

    games: np.ndarray[Any, np.dtype[Any]]
    turns: list[int]
    too_large: int


def draw_positions(
    ruleset: Ruleset,
    player: CompiledAgent,
    count: int,
    seed: int = 0,
    most_turns: int = MOST_TURNS,
) -> Positions:
    """Draw positions, each decision alike, from matches of four of an agent.

    Args:
        ruleset: the rules.
        player: who plays.
        count: of positions.
        seed: of the first match's dice and of the draw.
        most_turns: positions with more legal turns are left out.

    Raises:
        ArenaError: positions small enough are too rare among those that come up.
    """
    rng = np.random.default_rng(seed)
    matches = math.ceil(count / POSITIONS_A_MATCH)
    kept: list[Any] = []
    sizes: list[int] = []
    too_large = 0
    for wave in range(MOST_WAVES):
        for game in _positions_of(player, ruleset, seed + wave * matches, matches, rng):
            size = count_turns(game, ruleset)
            if size > most_turns:
                too_large += 1
                continue
            kept.append(game)
            sizes.append(size)
            if len(kept) == count:
                return Positions(np.array(kept), sizes, too_large)
    raise ArenaError(
        f"of {too_large + len(kept):,} positions only {len(kept):,} have at most {most_turns:,} "
        f"legal turns, not {count:,}: ask for fewer"
    )


def _positions_of(
    player: CompiledAgent, ruleset: Ruleset, seed: int, matches: int, rng: np.random.Generator
) -> np.ndarray[Any, np.dtype[Any]]:
    """Return all positions of matches of four of an agent, shuffled: ``GAME`` ``(n,)``."""
    seeds = [(seed + match) % (1 << SEED_BITS) for match in range(matches)]
    recorder = _Recorder(player)
    play_matches([recorder], ruleset, seeds, seating=np.zeros((matches, SEATS), np.int64))
    games = np.concatenate(recorder.positions)
    return games[rng.permutation(len(games))]


# --- Regret


@dataclass(frozen=True)
class Regret:
    """What one way to find candidates falls short of the best turn, and how fast it is.

    Attributes:
        candidates: how many turns are looked at.
        at_random: they are drawn, not proposed.
        best_found: share of positions in which the best turn, or one as good, is among them.
        mean, percentile_95: of the regret, in the strategy's own points.
        spread_mean, spread_percentile_95: of the regret in standard deviations of the values of
            all turns of its position.
        per_second: decisions a second on one core, facts of all candidates included.
    """

    candidates: int
    at_random: bool
    best_found: float
    mean: float
    percentile_95: float
    spread_mean: float
    spread_percentile_95: float
    per_second: float


@dataclass(frozen=True)
class RegretReport:
    """The regret of several numbers of candidates on the same positions.

    Attributes:
        strategy: whose weights guide and value.
        mode: of the rules.
        rules: their digest.
        positions: how many.
        turns_median, turns_max: of the legal turns that each has.
        too_large: positions drawn beside these and left out.
        most_turns: what they had more turns than.
        rows: one for each way and number.
    """

    strategy: str
    mode: str
    rules: str
    positions: int
    turns_median: float
    turns_max: int
    too_large: int
    most_turns: int
    rows: list[Regret] = field(default_factory=list)


def _seconds_each(choose: Callable[[], Any], decisions: int) -> float:
    """Return processor seconds for one decision, of a function that makes so many."""
    done = 0
    begun = time.thread_time()
    while (spent := time.thread_time() - begun) < TIMED_FOR:
        choose()
        done += decisions
    return spent / done


def _measure(
    agent: CompiledAgent, view: View, best: Any, spread: Any, candidates: int, *, at_random: bool
) -> Regret:
    """Return the regret of one strategy; ``best`` and ``spread`` are of the values of all turns."""
    rng = np.random.default_rng(0)
    chosen = agent.choose(view, rng)
    found = np.array(
        [
            values_of(chosen[[index]], game, view.ruleset, agent)[0]
            for index, game in enumerate(view.games)
        ],
        np.float64,
    )
    regret = best - found
    in_spreads = regret / np.where(spread > 0, spread, 1.0)  # without any spread there is no regret
    each = _seconds_each(lambda: agent.choose(view, rng), len(view.games))
    return Regret(
        candidates,
        at_random,
        float((regret <= SAME * np.maximum(1.0, np.abs(best))).mean()),
        float(regret.mean()),
        float(np.quantile(regret, 0.95)),
        float(in_spreads.mean()),
        float(np.quantile(in_spreads, 0.95)),
        1 / each,
    )


def measure_regret(
    ruleset: Ruleset,
    count: int,
    seed: int = 0,
    on_progress: Progress | None = None,
    *,
    candidates: Sequence[int] = CANDIDATES,
    most_turns: int = MOST_TURNS,
) -> RegretReport:
    """Measure the generator, and as many turns at random, against all legal turns.

    Args:
        ruleset: the rules.
        count: of positions.
        seed: of positions and of turns at random.
        on_progress: is told how many positions have been enumerated, of how many.
        candidates: how many are looked at; a row each of the generator and at random.
        most_turns: positions with more legal turns are left out.

    Raises:
        AgentError: the strategy has no weights for these rules.
        ArenaError: positions small enough are too rare.
    """
    strategy = looking_at(IN_PLAY[0], ruleset)
    drawn = draw_positions(ruleset, strategy, count, seed, most_turns)
    best = np.empty(len(drawn.games))
    spread = np.empty(len(drawn.games))
    for index, game in enumerate(drawn.games):
        values = values_of(all_turns(game, ruleset), game, ruleset, strategy).astype(np.float64)
        best[index], spread[index] = values.max(), values.std()
        if on_progress is not None:
            on_progress(index + 1, len(drawn.games))
    keys = np.random.default_rng(seed).integers(0, 1 << 63, len(best), np.uint64)
    view = View(drawn.games, keys, ruleset)
    report = RegretReport(
        STRATEGY,
        ruleset.mode,
        ruleset.digest,
        len(best),
        float(np.median(drawn.turns)),
        max(drawn.turns),
        drawn.too_large,
        most_turns,
    )
    for at_random in (False, True):
        for number in candidates:
            agent = looking_at(number, ruleset, at_random=at_random)
            row = _measure(agent, view, best, spread, number, at_random=at_random)
            report.rows.append(row)
    return report


def regret_table(report: RegretReport) -> Table:
    """Return the rows of a report as a table."""
    table = Table(box=SIMPLE, show_edge=False, padding=(0, 1, 0, 0), title_justify="left")
    table.title = (
        f"{report.mode.capitalize()}: {report.positions:,} positions, "
        f"{report.turns_median:,.0f} legal turns in the median"
    )
    table.add_column("candidates", no_wrap=True)
    for name in ("best found", "regret", "95%", "in sd", "95%", "decisions/s"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in report.rows:
        table.add_row(
            f"{row.candidates} {'at random' if row.at_random else 'generated'}",
            f"{100 * row.best_found:.1f}%",
            f"{row.mean:.2f}",
            f"{row.percentile_95:.2f}",
            f"{row.spread_mean:.3f}",
            f"{row.spread_percentile_95:.3f}",
            f"{row.per_second:,.0f}",
        )
    table.caption = (
        f"Regret: the value of the best legal turn less that of the best\n"
        f"candidate, in {report.strategy}'s points, mean and 95th percentile;\n"
        f"in sd: in standard deviations of the values of a position's turns.\n"
        f"Positions are from matches of four {report.strategy}s; left out: {report.too_large:,}\n"
        f"with more than {report.most_turns:,} turns. Decisions on one core."
    )
    table.caption_justify = "left"
    return table


# --- Strength in play


@dataclass(frozen=True)
class Strength:
    """How the generator's candidates do against more of them at random.

    Attributes:
        one: the agent with the generator.
        three: its opponents, all the same.
        matches: that were played, in whole blocks.
        first: share of first places; par is 0.25.
    """

    one: str
    three: str
    matches: int
    first: Estimate


def measure_strength(
    ruleset: Ruleset,
    blocks: int,
    seed: int = 0,
    *,
    candidates: tuple[int, int] = IN_PLAY,
    threads: int | None = None,
    on_progress: Progress | None = None,
) -> Strength:
    """Play one strategy with the generator against three that draw their candidates.

    Args:
        ruleset: the rules.
        blocks: of four matches with the same dice, seats rotated.
        seed: of the first block's dice.
        candidates: of the one, and of the three.
        threads: of the kernels; by default all that Numba may use.
        on_progress: is told how many matches have been played, of how many.

    Raises:
        ArenaError: an argument does not fit.
    """
    few, many = candidates
    one, three = looking_at(few, ruleset), looking_at(many, ruleset, at_random=True)
    played = play_against_three(
        one, three, ruleset, blocks, seed, threads=threads, on_progress=on_progress
    )
    return Strength(one.name, three.name, len(played), share_of_one(played))


def strength_line(strength: Strength) -> str:
    """Return the result in a line."""
    return (
        f"{strength.one} against three {strength.three}, {strength.matches:,} matches: "
        f"first in {percent(strength.first)}\n"
    )


def to_json(report: RegretReport, strength: Strength | None) -> dict[str, Any]:
    """Return the figures of a mode as plain data."""
    return {
        "regret": asdict(report),
        "strength": None if strength is None else asdict(strength),
    }

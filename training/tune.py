"""Tuning a strategy's weights by play: CMA-ES over the facts, against champions and other rivals.

Each generation plays the same dice in blocks: every candidate strategy from all four seats against
three of one rival, a shipped strategy or one of the last champions, the first of which is the
start. Fit is who takes first places and wins by much. Strategies do not rank in a line: what was
tuned against its own champions alone lost to the timid, whom it had never met. Now and then the
mean of all that was learnt meets the last champion, and follows it if it is clearly better.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import numpy as np
from cmaes import CMA  # type: ignore[import-untyped]

from retinue import __version__
from retinue.agents.base import CompiledAgent
from retinue.agents.strategies import make_strategy
from retinue.envs.candidates import PROPOSALS, new_scratch, propose
from retinue.envs.estimates import STRATEGY
from retinue.envs.facts import FACT_COUNT, FACT_NAMES
from retinue.envs.game.board import SEATS
from retinue.envs.game.jit import inner_jit, jit, record_at
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.state import Record
from retinue.envs.strategy_file import Weights, shipped_strategy
from retinue.evaluation.arena import play_matches
from retinue.evaluation.generator import draw_positions
from retinue.evaluation.pairs import play_against_three, share_of_one
from retinue.evaluation.statistics import Estimate
from retinue.training.tune_config import Generation, Judgement, TuneConfig, Tuned, TuneError
from retinue.training.tune_files import Checkpoint

UNIT: Final = "margin"
"""Weighs 1, since only the weights' proportions matter."""
NOT_TUNED: Final = ("progression", "bonus", "loss_next", "time_left")
"""They keep the start's weights: the margin holds own points and what others lose, and the time
that is left is the same for all candidates."""
TUNED: Final = tuple(name for name in FACT_NAMES if name != UNIT and name not in NOT_TUNED)

RIVALS: Final = ("blockader", "greedy", "guardian", "hunter", "yardstick")
"""Shipped strategies against which every generation plays."""
POOL: Final = 3
"""Champions, the last ones, against which it plays besides."""
MARGIN_WIDTH: Final = 0.35
"""The margin that counts for much, as a share of both sides' points."""
JUDGED_EVERY: Final = 10
"""Generations after which the mean meets the last champion; after the last one it does anyway."""
PAR: Final = 1 / SEATS
SIGMA: Final = 0.23
"""First standard deviation of each fact's part in a value, by that of the margin's."""
POSITIONS: Final = 400
"""From which the facts' spreads are taken."""
LEAST_SPREAD: Final = 1e-3
"""Of a fact, by the largest one, so that what was never seen to differ gets no huge weight."""
AT_ONCE: Final = 256
"""Matches between two reports of progress."""
DIGITS: Final = 4
"""Of the weights that come out."""

SEED_SPACING: Final = 1 << 32
JUDGING_SEED: Final = 1 << 52
"""First dice seed of judgements; generations' are below."""

Numbers = np.ndarray[Any, np.dtype[np.float64]]
Progress = Callable[[int, int], None]


# --- What is searched


def prepare(start: Mapping[str, float]) -> Weights:
    """Return a start in the proportions that are tuned: what it weighs of own points is margin.

    Raises:
        TuneError: own points weigh nothing or less.
    """
    moved = start.get("progression", 0.0)
    weights = {name: float(start.get(name, 0.0)) for name in FACT_NAMES}
    weights[UNIT] += moved
    # Own points are the sum of these, penalties taken off.
    for name, sign in (("progression", 1), ("combat", 1), ("bonus", 1), ("penalties", -1)):
        weights[name] -= sign * moved
    unit = weights[UNIT]
    if unit <= 0:
        raise TuneError(
            f"the start must weigh {UNIT} and progression by more than 0 together, not {unit:g}"
        )
    return {name: weight / unit for name, weight in weights.items()}


@inner_jit
def _add_variances(
    game: Record, rules: Record, strategy: Record, scratch: Any, found: Any, sums: Any
) -> None:
    """Add each fact's variance among the candidates of one position."""
    proposals = found[0]
    propose(game, rules, strategy, scratch, proposals)
    count = proposals.count
    for fact in range(FACT_COUNT):
        mean = 0.0
        for index in range(count):
            mean += proposals.row[index, fact] / count
        for index in range(count):
            apart = proposals.row[index, fact] - mean
            sums[fact] += apart * apart / count


@jit
def _sum_variances(games: Any, rules: Any, memory: int, sums: Any) -> None:
    strategy = record_at(memory, STRATEGY)
    for index in range(games.shape[0]):
        found = np.empty(1, PROPOSALS)
        _add_variances(games[index], rules[0], strategy, new_scratch(), found, sums)


def spreads(ruleset: Ruleset, agent: CompiledAgent) -> dict[str, float]:
    """Return each fact's standard deviation among candidates, in matches of four of an agent."""
    games = draw_positions(ruleset, agent, POSITIONS, most_turns=1 << 62).games
    sums = np.zeros(FACT_COUNT)
    rules = np.array([ruleset.packed])
    _sum_variances(games, rules, agent.compiled.memory_address, sums)
    found = np.sqrt(sums / len(games))
    found = np.maximum(found, LEAST_SPREAD * found.max())
    return dict(zip(FACT_NAMES, found.tolist(), strict=True))


def rounded(weights: Mapping[str, float]) -> Weights:
    """Return weights as files have them; what weighs nothing is left out."""
    short = {name: float(f"{weight:.{DIGITS}g}") for name, weight in weights.items()}
    return {name: weight for name, weight in short.items() if weight}


# --- The search


class Tuner:
    """CMA-ES over weights, generation by generation.

    Args:
        ruleset: the rules.
        start: weights by fact to start from, the first champion.
        config: how long and how closely to look.
        threads: of the kernels, by default all that Numba may use; they change no result.
        checkpoint: what an interrupted search left, to go on from.

    Raises:
        TuneError: the start's weights cannot be tuned, or the checkpoint is another search's.
    """

    def __init__(
        self,
        ruleset: Ruleset,
        start: Weights,
        config: TuneConfig,
        *,
        threads: int | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self.ruleset, self.config, self._threads = ruleset, config, threads
        self._start = start
        prepared = prepare(start)
        self._kept = {name: prepared[name] for name in NOT_TUNED}
        self._rivals = [
            self._agent(name, shipped_strategy(name).weights_for(ruleset, name)) for name in RIVALS
        ]
        stamp = self._stamp()
        if checkpoint is None:
            scales = spreads(ruleset, self._agent("start", prepared))
            checkpoint = Checkpoint(stamp=stamp, scales=scales, champions=(dict(start),))
        checkpoint.check_stamp(stamp)
        self.checkpoint = checkpoint
        self._scales = np.array([checkpoint.scales[name] for name in TUNED])
        first = np.array([prepared[name] for name in TUNED]) * self._scales
        self._cma = CMA(
            mean=first,
            sigma=SIGMA * checkpoint.scales[UNIT],
            seed=config.seed,
            population_size=config.population,
        )
        self._replay()

    @property
    def done(self) -> int:
        """Generations that are over."""
        return len(self.checkpoint.fitness)

    @property
    def matches(self) -> int:
        """Matches of a generation."""
        return self.config.population * self.config.blocks * SEATS

    def _stamp(self) -> dict[str, Any]:
        """Return what a search must have in common with a checkpoint to go on from it."""
        searched = {
            field.name: getattr(self.config, field.name)
            for field in fields(self.config)
            if field.name != "generations"
        }
        rules = {"mode": self.ruleset.mode, "rules": self.ruleset.digest, "retinue": __version__}
        return {**rules, "start": dict(self._start), "facts": list(FACT_NAMES), **searched}

    def _agent(self, name: str, weights: Weights) -> CompiledAgent:
        return make_strategy(name, weights, self.ruleset, self.config.candidates)

    def _weights(self, point: Numbers) -> Weights:
        tuned = dict(zip(TUNED, (point / self._scales).tolist(), strict=True))
        return {UNIT: 1.0, **self._kept, **tuned}

    def mean(self) -> Weights:
        """Return the mean of what was learnt."""
        return rounded(self._weights(self._cma.mean))

    def _ask(self) -> list[Numbers]:
        return [self._cma.ask() for _ in range(self.config.population)]

    def _tell(self, points: list[Numbers], fitness: tuple[float, ...]) -> None:
        self._cma.tell([(point, -fit) for point, fit in zip(points, fitness, strict=True)])

    def _replay(self) -> None:
        """Learn again from all that was played, which brings the same chance to the same place."""
        size = self.config.population
        for number, fitness in enumerate(self.checkpoint.fitness, start=1):
            if len(fitness) != size:
                raise TuneError(
                    f"the checkpoint is damaged: generation {number} has {len(fitness)} "
                    f"strategies, not {size}"
                )
            self._tell(self._ask(), fitness)
        if self.done and self._cma.mean.tolist() != list(self.checkpoint.mean):
            raise TuneError(
                "the checkpoint cannot be gone on from exactly: it is damaged, or was made with "
                "another version of cmaes or NumPy"
            )

    def step(self, on_progress: Progress | None = None) -> Generation:
        """Play a generation, learn from it and take it into :attr:`checkpoint`.

        Args:
            on_progress: is told how many of its matches have been played, of how many.
        """
        points = self._ask()
        fitness, share = self._play(points, on_progress)
        self._tell(points, fitness)
        number = self.done + 1
        judgement = None
        if number % JUDGED_EVERY == 0 or number == self.config.generations:
            judgement = self._judge(number)
        self.checkpoint = self.checkpoint.after(
            fitness, self._cma.mean.tolist(), judgement, self.mean()
        )
        return Generation(number, share, float(self._cma._sigma), judgement)

    def _play(
        self, points: list[Numbers], on_progress: Progress | None
    ) -> tuple[tuple[float, ...], float]:
        """Return the fitness of each point and the mean share of first places."""
        size, blocks = self.config.population, self.config.blocks
        champions = self.checkpoint.champions[-POOL:]
        rivals = [*self._rivals, *(self._agent("champion", weights) for weights in champions)]
        agents = [*(self._agent("tuned", self._weights(point)) for point in points), *rivals]
        match = np.arange(self.matches)
        who, block, seat = match // (blocks * SEATS), match // SEATS % blocks, match % SEATS
        seating = np.repeat(size + (block + self.done) % len(rivals), SEATS).reshape(-1, SEATS)
        seating[match, seat] = who
        first = self.config.seed * SEED_SPACING + self.done * blocks
        matches = play_matches(
            agents,
            self.ruleset,
            [first + int(each) for each in block],
            self._threads,
            seating=seating,
            on_progress=on_progress,
            at_once=AT_ONCE,
        )
        totals = matches.totals
        own = totals[match, seat]
        others = (totals.sum(axis=1) - own) / (SEATS - 1)
        width = MARGIN_WIDTH * (np.abs(own) + np.abs(others)) + 1
        shares = matches.first_shares[match, seat]
        fitness = (shares + np.tanh((own - others) / width) / 2).reshape(size, -1).mean(axis=1)
        return tuple(fitness.tolist()), float(shares.mean())

    def _judge(self, number: int) -> Judgement:
        """Let the mean meet the last champion."""
        found = self._first_share(self.mean(), self.checkpoint.champions[-1], number)
        return Judgement(
            generation=number, share=found.value, low=found.low, better=found.low > PAR
        )

    def _first_share(self, weights: Weights, others: Weights, number: int) -> Estimate:
        matches = play_against_three(
            self._agent("one", weights),
            self._agent("three", others),
            self.ruleset,
            self.config.judging_blocks,
            JUDGING_SEED + number * self.config.judging_blocks,
            threads=self._threads,
        )
        return share_of_one(matches)

    def result(self) -> Tuned:
        """Return the mean, or the last champion if that was better, and how it does."""
        judgements, champions = self.checkpoint.judgements, self.checkpoint.champions
        last = judgements[-1] if judgements else None
        if last is None or last.generation != self.done:
            last = self._judge(self.done)
        weights = self.mean() if last.share >= PAR else dict(champions[-1])
        against_start = self._first_share(weights, dict(self._start), 0)
        return Tuned(weights, against_start, len(champions))


def tune_weights(
    ruleset: Ruleset,
    start: Weights,
    config: TuneConfig,
    *,
    threads: int | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
    on_generation: Callable[[Generation], None] | None = None,
    on_progress: Progress | None = None,
) -> Tuned:
    """Tune weights; the same arguments give the same ones, interrupted or not.

    Args:
        ruleset: the rules.
        start: weights by fact to start from.
        config: how long and how closely to look.
        threads: of the kernels; they change no result.
        checkpoint: a file that is written after each generation.
        resume: go on from that file.
        on_generation: is told of each generation.
        on_progress: is told how many matches have been played, of how many.

    Raises:
        TuneError: the start cannot be tuned, or the checkpoint is damaged or another search's.
    """
    found = Checkpoint.read(checkpoint) if resume and checkpoint is not None else None
    tuner = Tuner(ruleset, start, config, threads=threads, checkpoint=found)
    if tuner.done > config.generations:
        raise TuneError(
            f"the checkpoint has {tuner.done:,} generations already, more than "
            f"{config.generations:,}"
        )
    total = config.generations * tuner.matches
    while tuner.done < config.generations:
        begun = tuner.done * tuner.matches

        def report(done: int, _: int, begun: int = begun) -> None:
            if on_progress is not None:
                on_progress(begun + done, total)

        generation = tuner.step(report)
        if checkpoint is not None:
            tuner.checkpoint.write(checkpoint)
        if on_generation is not None:
            on_generation(generation)
    return tuner.result()

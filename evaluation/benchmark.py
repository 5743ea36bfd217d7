"""Speed of the engine and the environments in steady state: compiling is not counted."""

import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import gymnasium
import numpy as np
from numba import prange

from retinue.agents.registry import make_agent
from retinue.envs.batch import Batch
from retinue.envs.game.dice import draw
from retinue.envs.game.jit import inner_jit, jit, parallel_jit
from retinue.envs.game.ruleset import Ruleset, load_ruleset
from retinue.envs.parallel import MAX_THREADS
from retinue.evaluation.arena import play_matches

ROUNDS: Final = 7
"""Timings of each figure, of which the median is quoted."""
LIBRARIES: Final = ("numba", "numpy", "torch", "stable-baselines3", "sb3-contrib")
"""On which speed depends; asked for their versions without importing them, which takes seconds."""


@dataclass(frozen=True)
class Row:
    """One figure: what was counted each second."""

    name: str
    batch: int
    threads: int
    unit: str
    median: float
    min: float
    max: float

    def __str__(self) -> str:
        where = f"{self.name:17} batch {self.batch:5,}, {self.threads} thread(s)"
        digits = 0 if self.median >= 10 else 2
        median, low, high = (f"{each:,.{digits}f}" for each in (self.median, self.min, self.max))
        return f"{where:42} {median:>12} {self.unit}  ({low} to {high})"


@inner_jit
def _draw_legal(mask: Any, key: Any, nvec: Any, out: Any) -> None:
    """Draw a legal choice for each part of an action, uniformly, by trying."""
    start = 0
    tries = 0
    for part in range(nvec.shape[0]):
        choice = draw(key, tries, nvec[part])
        while not mask[start + choice]:
            tries += 1
            choice = draw(key, tries, nvec[part])
        tries += 1
        out[part] = choice
        start += nvec[part]


@parallel_jit
def _draw_parallel(masks: Any, tick: int, nvec: Any, actions: Any) -> None:
    for index in prange(masks.shape[0]):
        _draw_legal(masks[index], np.uint64(tick + (index << 40)), nvec, actions[index])


@jit
def _draw_serial(masks: Any, tick: int, nvec: Any, actions: Any) -> None:
    for index in range(masks.shape[0]):
        _draw_legal(masks[index], np.uint64(tick + (index << 40)), nvec, actions[index])


class RandomPlay:
    """Random legal play in every seat of a batch, mask and observation made at every decision."""

    def __init__(self, ruleset: Ruleset, batch: int, encoding: str, threads: int) -> None:
        self.batch = Batch(ruleset, batch, encoding=encoding, seats=range(4), threads=threads)
        self.batch.reset(0)
        self._nvec = np.array(self.batch.encoding.nvec)
        self._actions = np.zeros((batch, len(self._nvec)), np.int64)
        self._draw = _draw_serial if threads == 1 else _draw_parallel
        self._tick = 0

    def run(self, steps: int) -> int:
        """Play so many steps; return how many decisions that were."""
        batch = self.batch
        for _ in range(steps):
            self._tick += 1
            self._draw(batch.masks, self._tick, self._nvec, self._actions)
            if batch.step(self._actions):
                batch.start_next(np.flatnonzero(batch.terminated))
        return steps * batch.num_games


def play_gym(ruleset: Ruleset) -> Callable[[int], int]:
    """Return random legal play through ``gymnasium.make``."""
    environment = gymnasium.make(f"retinue/{ruleset.mode.capitalize()}-v0")
    rng = np.random.default_rng(0)
    _, info = environment.reset(seed=0)

    def run(steps: int) -> int:
        nonlocal info
        for _ in range(steps):
            legal = info["action_mask"].nonzero()[0]
            action = int(legal[int(rng.random() * len(legal))])
            _, _, terminated, _, info = environment.step(action)
            if terminated:
                _, info = environment.reset()
        return steps

    return run


def play_racers(ruleset: Ruleset, matches: int, threads: int) -> Callable[[int], int]:
    """Return whole matches of four ``racer``s."""
    agents = [make_agent("racer", ruleset)] * 4

    def run(times: int) -> int:
        for time_ in range(times):
            play_matches(agents, ruleset, range(time_ * matches, (time_ + 1) * matches), threads)
        return times * matches

    return run


def time_rate(
    name: str, batch: int, threads: int, unit: str, run: Callable[[int], int], steps: int
) -> Row:
    """Return the figure of ``run(steps)``, which returns what it did, after a warm-up."""
    run(max(1, steps // 10))
    rates = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        done = run(steps)
        rates.append(done / (time.perf_counter() - begun))
    return Row(name, batch, threads, unit, statistics.median(rates), min(rates), max(rates))


def benchmark_engine(mode: str, *, quick: bool = False) -> Iterator[Row]:
    """Yield the figures of engine and environments one after the other.

    Args:
        mode: ``"journey"`` or ``"brawl"``.
        quick: do a hundredth of the work: to see that it works, not to quote.
    """
    ruleset = load_ruleset(mode)
    threads = MAX_THREADS
    share = 100 if quick else 1
    sizes = [(64, 1, 16_000), (1024, 1, 1000), (1024, threads, 2000), (4096, threads, 500)]
    for encoding in ("steps", "turn"):
        for batch, used, steps in sizes:
            per_turn = 1 if encoding == "steps" else 4
            run = RandomPlay(ruleset, batch, encoding, used).run
            count = max(1, steps // share // per_turn)
            yield time_rate(f"batch/{encoding}", batch, used, "decisions/s", run, count)
    yield time_rate("gym/steps", 1, 1, "decisions/s", play_gym(ruleset), 20_000 // share)
    matches = 1024 // share
    racers = play_racers(ruleset, matches, threads)
    yield time_rate("matches/racer", matches, threads, "matches/s", racers, 1 if quick else 8)


def machine() -> dict[str, Any]:
    """Return what a figure depends on beside the program."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": MAX_THREADS,
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in LIBRARIES},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()


def to_json(rows: list[Row], about: dict[str, Any]) -> dict[str, Any]:
    """Return the figures as plain data."""
    return {"machine": about, "rows": [asdict(row) for row in rows]}

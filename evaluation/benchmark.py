"""Speed of the engine and the environments in steady state: compiling is not counted."""

import itertools
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import gymnasium
import numpy as np
from numba import prange

from retinue.agents.registry import make_agent
from retinue.envs import aec_env
from retinue.envs.batch import Batch
from retinue.envs.game.dice import draw
from retinue.envs.game.jit import inner_jit, jit, parallel_jit
from retinue.envs.game.ruleset import Ruleset, load_ruleset
from retinue.envs.parallel import MAX_THREADS
from retinue.envs.vector_env import RetinueVectorEnv
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
        where = f"{self.name:26} batch {self.batch:5,}, {self.threads} thread(s)"
        digits = 0 if self.median >= 10 else 2
        median, low, high = (f"{each:,.{digits}f}" for each in (self.median, self.min, self.max))
        return f"{where:51} {median:>12} {self.unit}  ({low} to {high})"


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


Draw = Callable[[Any, int, Any, Any], None]


def _drawing(threads: int) -> Draw:
    return _draw_serial if threads == 1 else _draw_parallel


class RandomPlay:
    """Random legal play in every seat of a batch, mask and observation made at every decision."""

    def __init__(self, ruleset: Ruleset, batch: int, encoding: str, threads: int) -> None:
        self.batch = Batch(ruleset, batch, encoding=encoding, seats=range(4), threads=threads)
        self.batch.reset(0)
        self._nvec = np.array(self.batch.encoding.nvec)
        self._actions = np.zeros((batch, len(self._nvec)), np.int64)
        self._draw = _drawing(threads)
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


def play_vector(
    ruleset: Ruleset, batch: int, encoding: str, threads: int, *, copy: bool
) -> Callable[[int], int]:
    """Return :class:`RandomPlay` through the vector environment."""
    env = RetinueVectorEnv(batch, ruleset.mode, encoding=encoding, threads=threads, copy=copy)
    _, info = env.reset(seed=0)
    nvec = np.array(env.batch.encoding.nvec)
    drawn = np.zeros((batch, len(nvec)), np.int64)
    actions = drawn[:, 0] if len(nvec) == 1 else drawn
    draw_actions, tick = _drawing(threads), 0

    def run(steps: int) -> int:
        nonlocal info, tick
        for _ in range(steps):
            tick += 1
            draw_actions(info["action_mask"].view(np.bool_), tick, nvec, drawn)
            info = env.step(actions)[4]
        return steps * batch

    return run


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


def play_aec(ruleset: Ruleset) -> Callable[[int], int]:
    """Return random legal play through PettingZoo's interface, with ``last`` at every decision."""
    environment = aec_env.env(ruleset.mode)
    rng = np.random.default_rng(0)
    environment.reset(seed=0)

    def run(steps: int) -> int:
        for _ in range(steps):
            observation, _, terminated, _, _ = environment.last()
            if terminated:
                environment.reset()
                observation = environment.last()[0]
            legal = observation["action_mask"].nonzero()[0]
            environment.step(int(legal[int(rng.random() * len(legal))]))
        return steps

    return run


def draw_pictures(ruleset: Ruleset) -> Callable[[int], int]:
    """Return an environment that draws a picture after every decision."""
    environment = gymnasium.make(f"retinue/{ruleset.mode.capitalize()}-v0", render_mode="rgb_array")
    _, info = environment.reset(seed=0)

    def run(steps: int) -> int:
        nonlocal info
        for _ in range(steps):
            action = environment.action_space.sample(mask=info["action_mask"])
            _, _, terminated, _, info = environment.step(action)
            environment.render()
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


@dataclass(frozen=True)
class Work:
    """Something to be timed: ``run(steps)`` does it and returns how much that was."""

    name: str
    batch: int
    threads: int
    unit: str
    run: Callable[[int], int]
    steps: int

    def rate(self) -> float:
        """Do it once; return how much was done each second."""
        begun = time.perf_counter()
        done = self.run(self.steps)
        return done / (time.perf_counter() - begun)

    def row(self, values: Sequence[float], kind: str = "", unit: str = "") -> Row:
        """Return the row of what was measured."""
        figures = statistics.median(values), min(values), max(values)
        return Row(self.name + kind, self.batch, self.threads, unit or self.unit, *figures)


def time_in_turns(*works: Work) -> Iterator[Row]:
    """Yield the figure of each, and of all but the first its ratio to the first's.

    They are timed in turns, so that ratios hold when the machine's speed drifts.
    """
    for work in works:
        work.run(max(1, work.steps // 10))
    rates = np.array([[work.rate() for work in works] for _ in range(ROUNDS)])
    for index, work in enumerate(works):
        yield work.row(rates[:, index].tolist())
        if index:
            ratios = (rates[:, index] / rates[:, 0]).tolist()
            yield work.row(ratios, "/ratio", f"of {works[0].name}")


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
    for encoding, (batch, used, steps) in itertools.product(("steps", "turn"), sizes):
        plays: dict[str, Callable[[int], int]] = {
            "batch": RandomPlay(ruleset, batch, encoding, used).run
        }
        if batch == 1024:
            for name, copy in (("vector", True), ("vector/no copy", False)):
                plays[name] = play_vector(ruleset, batch, encoding, used, copy=copy)
        count = max(1, steps // share // (1 if encoding == "steps" else 4))
        yield from time_in_turns(
            *(
                Work(f"{name}/{encoding}", batch, used, "decisions/s", play, count)
                for name, play in plays.items()
            )
        )
    for name, unit, play, steps in (
        ("gym/steps", "decisions/s", play_gym(ruleset), 20_000),
        ("pettingzoo/steps", "decisions/s", play_aec(ruleset), 10_000),
        ("rgb_array", "frames/s", draw_pictures(ruleset), 300),
    ):
        yield from time_in_turns(Work(name, 1, 1, unit, play, steps // share))
    matches = 1024 // share
    racers = play_racers(ruleset, matches, threads)
    count = 1 if quick else 8
    yield from time_in_turns(Work("matches/racer", matches, threads, "matches/s", racers, count))


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

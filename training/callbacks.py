"""What happens beside learning: progress, measurements, checkpoints, a clean end on Ctrl-C."""

import contextlib
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.utils import LinearSchedule

from retinue.training.candidate_policy import CandidatePolicy
from retinue.training.clock import Clock
from retinue.training.config import TrainConfig
from retinue.training.league import League
from retinue.training.measure import Measurement
from retinue.training.run_folder import RunFolder

WINDOW_SECONDS: Final = 60.0
SLOW_SHARE: Final = 0.5
"""A run that falls below this share of its own first minute's speed says so."""
LINE_SECONDS: Final = 15.0
"""Between two lines of progress where there is no terminal to draw a bar in."""


class Speed:
    """Decisions per second of training alone, without measurements."""

    def __init__(self) -> None:
        self._since = time.perf_counter()
        self._decisions = 0
        self.rate = 0.0
        self.first_rate = 0.0
        self.was_reported = False

    def update(self, decisions: int, paused: float) -> bool:
        """Take note of the decisions made since the last update.

        Returns:
            True once, when a minute was slower than half the first one.
        """
        self._decisions += decisions
        self._since += paused
        seconds = time.perf_counter() - self._since
        if seconds > 0:
            self.rate = self._decisions / seconds
        if seconds < WINDOW_SECONDS:
            return False
        self._since, self._decisions = time.perf_counter(), 0
        if not self.first_rate:
            self.first_rate = self.rate
        is_slow = self.rate < SLOW_SHARE * self.first_rate
        is_news = is_slow and not self.was_reported
        self.was_reported = is_slow
        return is_news


class TrainingCallback(BaseCallback):
    """Runs beside MaskablePPO's loop.

    A checkpoint always is the state at the start of a rollout, so that a resumed run repeats
    exactly what an undisturbed one would have done.

    Args:
        config: of the run.
        run: its folder.
        measure: measures the learner as it is now.
        capture: returns the state to be kept, given the seconds that the run has taken.
        renew: renews the opponents; returns what there is to tell, if anything.
        league: the opponents.
        clock: of where the time goes.
        measured: after how many decisions the learner was measured last; 0 if never.
        elapsed: seconds that earlier sessions of this run took.
        console: to draw on; standard error by default.
    """

    def __init__(
        self,
        config: TrainConfig,
        run: RunFolder,
        *,
        measure: Callable[[], Measurement],
        capture: Callable[[float], dict[str, Any]],
        renew: Callable[[], str],
        league: League,
        clock: Clock,
        measured: int,
        elapsed: float,
        console: Console | None = None,
    ) -> None:
        super().__init__()
        self.config = config
        self.run = run
        self.was_interrupted = False
        self._measure = measure
        self._capture = capture
        self._renew = renew
        self._league, self._clock = league, clock
        self._elapsed_before = elapsed
        self._console = console or Console(stderr=True)
        self._state: dict[str, Any] = {}
        self._is_broken_off = False
        self._speed = Speed()
        self._measured = ""
        self._last_decisions = 0
        self._last_line = 0.0
        self._last_save = -math.inf  # the first state is saved: an early end can be resumed too
        self._next_measurement = (measured // config.evaluation.every + 1) * config.evaluation.every
        self._bar = Progress(
            TextColumn("{task.completed:,} of {task.total:,} decisions"),
            BarColumn(),
            TextColumn("{task.fields[rate]:,.0f}/s"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            TextColumn("{task.fields[measured]}", markup=False),
            console=self._console,
            disable=not self._console.is_terminal,
        )

    @property
    def elapsed(self) -> float:
        """Seconds that the run has taken, earlier sessions included."""
        return self._elapsed_before + time.perf_counter() - self._begun

    @property
    def decisions(self) -> int:
        """Decisions that the learner has learned from: those of a rollout broken off are not."""
        return int(self._state["decisions"])

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Draw the bar and catch Ctrl-C; leave terminal and handler as they were, come what may."""
        handler = signal.getsignal(signal.SIGINT)
        # Only the main thread may, and a handler that is not Python's could not be put back.
        catches = threading.current_thread() is threading.main_thread() and handler is not None
        try:
            if catches:
                self._next_handler = handler
                signal.signal(signal.SIGINT, self._interrupt)
            yield
        finally:
            if catches:
                signal.signal(signal.SIGINT, handler)
            self._bar.stop()

    def _say(self, message: str) -> None:
        """Print a line as it is: paths and names in it are no markup."""
        self._console.print(message, markup=False, emoji=False, highlight=False, soft_wrap=True)

    def _on_training_start(self) -> None:
        self._begun = self._last_line = time.perf_counter()
        self._speed = Speed()
        done = self._last_decisions = self.num_timesteps
        threads = (
            f"{self.config.engine_threads} engine and {self.config.torch_threads} torch threads"
        )
        self._say(f"Training in {self.run.path} with {threads}; Ctrl-C saves and stops.")
        self._bar.start()
        self._task = self._bar.add_task(
            "", total=self.config.all_decisions, completed=done, rate=0.0, left="", measured=""
        )

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        """Take the first Ctrl-C as a wish to stop; a second one stops at once."""
        del number, frame
        self.was_interrupted = True
        signal.signal(signal.SIGINT, self._next_handler)
        self._say("Stopping; the last update is kept.")

    def _on_rollout_start(self) -> None:
        if self.num_timesteps > self._last_decisions:
            self._clock.end_of_update()
        self._set_temperature()
        paused = self._measure_if_due()
        decisions = self.num_timesteps - self._last_decisions
        self._last_decisions = self.num_timesteps
        if self._speed.update(decisions, paused):
            self._say(
                f"Warning: {self._speed.rate:,.0f} decisions/s, less than half of the "
                f"{self._speed.first_rate:,.0f} of the first minute. Is the machine busy, or are "
                "torch_threads more than it has to spare?"
            )
        self._state = self._capture(self.elapsed)
        if time.perf_counter() - self._last_save > 60 * self.config.checkpoint_minutes:
            self._save()
        self._show()
        self._clock.end_of_pause()
        if told := self._renew():  # after the capture: a resumed run does it again
            self._say(f"{self.num_timesteps:,} decisions. {told}.")
        self._clock.end_of_renewal()

    def _set_temperature(self) -> None:
        """Sharpen the learner's choices as far as it is due."""
        policy = self.model.policy
        if isinstance(policy, CandidatePolicy):
            schedule = LinearSchedule(
                self.config.ppo.temperature, self.config.ppo.final_temperature, 1.0
            )
            left = 1.0 - min(self.num_timesteps / self.config.decisions, 1.0)
            policy.mlp_extractor.temperature = schedule(left)
            self.logger.record("train/temperature", policy.mlp_extractor.temperature)

    def _on_rollout_end(self) -> None:
        self._clock.end_of_rollout()

    def _measure_if_due(self) -> float:
        """Measure the learner when it is time; return how many seconds that took."""
        if self.num_timesteps < self._next_measurement:
            return 0.0
        self._next_measurement += self.config.evaluation.every
        begun = time.perf_counter()
        result = self._measure()
        self._measured = result.short()
        for name, share in result.shares.items():
            for part in ("value", "low", "high"):
                number = getattr(share, part)
                self.logger.record(f"evaluation/first_share_vs_{name}/{part}", number)
        shares = self._clock.shares()
        for name, spent in shares.items():
            self.logger.record(f"time/{name}", spent)
        ahead = self._league.results()
        for name, rate in ahead.items():
            self.logger.record(f"league/ahead_of_{name}", rate)
        beside = {"seconds": round(self.elapsed, 1), "time": shares, "ahead_of": ahead}
        self.run.add_metrics({**result.as_dict(), **beside})
        return time.perf_counter() - begun

    def _on_step(self) -> bool:
        self._is_broken_off = self.was_interrupted or self._seconds_allowed() <= 0
        return not self._is_broken_off

    def _seconds_allowed(self) -> float:
        """Return for how long the configuration lets the run go on."""
        limit = self.config.max_minutes
        return math.inf if limit is None else 60 * limit - self.elapsed

    def _on_training_end(self) -> None:
        # A rollout broken off is not learned from. What is kept is the state at its start, even if
        # its steps are the last ones of the run; else there was an update since that start.
        if self._is_broken_off:
            self._state["elapsed"] = self.elapsed
        else:
            self._state = self._capture(self.elapsed)
        self._save()

    def _save(self) -> None:
        self.run.save_checkpoint(self._state)
        self._last_save = time.perf_counter()

    def _left(self) -> str:
        """Say how long it will take until the decisions or the time run out."""
        remaining, rate = self.config.all_decisions - self.num_timesteps, self._speed.rate
        seconds = min(remaining / rate if rate else math.inf, self._seconds_allowed())
        return f"{max(seconds, 0) / 60:.1f} min left" if math.isfinite(seconds) else ""

    def _show(self) -> None:
        self._bar.update(
            self._task,
            completed=self.num_timesteps,
            rate=self._speed.rate,
            left=self._left(),
            measured=self._measured,
        )
        now = time.perf_counter()
        if self._console.is_terminal or now - self._last_line < LINE_SECONDS:
            return
        self._last_line = now
        self._say(
            f"{self.num_timesteps:,} of {self.config.all_decisions:,} decisions, "
            f"{self._speed.rate:,.0f}/s, {self._left()}  {self._measured}"
        )

"""Learning curves of runs: how strong the learner was after how many decisions."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from retinue.envs.game.files import write_atomically
from retinue.evaluation.plots import (
    QUIET,
    SMALL,
    WIDTH,
    agent_colours,
    as_svg,
    new_figure,
    styled,
    whole_ticks,
)
from retinue.training.run_folder import EVALUATION_FILE, METRICS_FILE, RunError

HEIGHT = 2.7
"""Inches."""


@dataclass(frozen=True)
class Curve:
    """Measurements of one run against one line-up.

    Attributes:
        run: the name of its folder.
        against: the line-up.
        decisions: float64 ``(n,)``, when it was measured, in millions.
        shares: float64 ``(n, 3)``, of first places: the estimate and its 95% interval.
    """

    run: str
    against: str
    decisions: np.ndarray[Any, np.dtype[np.float64]]
    shares: np.ndarray[Any, np.dtype[np.float64]]


def read_curves(run: Path) -> list[Curve]:
    """Return the curves of a run, one for each line-up; the final measurement ends them.

    Raises:
        RunError: the folder holds no measurements, or they are damaged.
    """
    path = run / METRICS_FILE
    try:
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        final = run / EVALUATION_FILE
        if final.exists():
            lines.append(json.loads(final.read_text(encoding="utf-8")))
        curves = [
            Curve(
                run.name,
                name,
                np.array([line["decisions"] / 1e6 for line in lines]),
                np.array(
                    [
                        [line["against"][name][key] for key in ("value", "low", "high")]
                        for line in lines
                    ]
                ),
            )
            for name in (lines[0]["against"] if lines else ())
        ]
    except OSError as error:
        raise RunError(f"{path}: {error.strerror}; expected a training run's folder") from error
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path}: not the measurements of a training run: {error!r}") from error
    if not curves:
        raise RunError(f"{path}: the run has not been measured yet")
    return curves


def draw_curves(curves: Sequence[Curve]) -> Figure:
    """Return a figure of curves: a colour for each line-up, a line for each run."""
    names = list(dict.fromkeys(curve.against for curve in curves))
    colours = dict(zip(names, agent_colours(names), strict=True))
    with styled():
        figure, axes = new_figure("curves", WIDTH, HEIGHT + 0.16 * len(names))
        for curve in curves:
            colour = colours[curve.against]
            is_first = curve.run == curves[0].run
            axes.plot(
                curve.decisions,
                curve.shares[:, 0],
                color=colour,
                linewidth=1.6,
                label=curve.against if is_first else None,
            )
            axes.fill_between(
                curve.decisions, *curve.shares[:, 1:].T, color=colour, alpha=0.18, linewidth=0
            )
        axes.axhline(0.25, color=QUIET, linewidth=0.8, linestyle=(0, (4, 3)))
        axes.set_ylim(0, 1)
        axes.set_xlim(0)
        axes.grid(axis="y")
        axes.spines["left"].set_visible(False)
        axes.tick_params("y", length=0, labelcolor=QUIET, labelsize=SMALL)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
        axes.xaxis.set_major_locator(whole_ticks())
        axes.set_xlabel("million decisions")
        axes.set_ylabel("first places (par 25%)")
        figure.legend(loc="outside upper left", ncols=1)
    return figure


def save_curves(runs: Sequence[Path], out: Path) -> None:
    """Draw the curves of some runs into an SVG file, whole or not at all.

    Raises:
        RunError: one of them has no measurements.
    """
    curves = [curve for run in runs for curve in read_curves(run)]
    write_atomically(out, as_svg(draw_curves(curves)))

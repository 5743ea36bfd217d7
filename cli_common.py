"""What the subcommands of ``retinue`` share: exit codes, the rules asked for, what is shown."""

import sys
from pathlib import Path
from typing import Any, Final

import typer

from retinue.evaluation.text import printable

DONE: Final = 0
DOES_NOT_FIT: Final = 1
BAD_INPUT: Final = 2
INTERRUPTED: Final = 130
LARGEST_SEED: Final = 2**53 - 1


def choose_ruleset(mode: str | None, file: Path | None = None) -> Any:
    """Return the rules of a mode, or of a file, which must then be of that mode if one is given.

    Raises:
        typer.BadParameter: there is no such mode, or the file is of another.
    """
    from retinue.envs.game.ruleset import MODES, load_ruleset

    if mode is not None and mode not in MODES:
        raise typer.BadParameter(f"unknown mode {mode!r}: use {' or '.join(MODES)}")
    if file is None:
        return load_ruleset(mode or MODES[0])
    ruleset = load_ruleset(file)
    if mode not in (None, ruleset.mode):
        raise typer.BadParameter(f"{file} is a {ruleset.mode} rule file, but --mode says {mode}")
    return ruleset


def choose_rulesets(mode: str | None) -> list[Any]:
    """Return the rules of a mode, or of every mode if none is given.

    Raises:
        typer.BadParameter: there is no such mode.
    """
    from retinue.envs.game.ruleset import MODES

    return [choose_ruleset(each) for each in ([mode] if mode is not None else MODES)]


def show(table: Any) -> None:
    """Print a table of rich's."""
    from rich.console import Console

    Console(markup=False, emoji=False).print(table)  # names and paths are to be read as they are


def complain(message: str) -> None:
    """Say on standard error, in one line, what is wrong."""
    print(f"retinue: {printable(' '.join(message.split()))}", file=sys.stderr, flush=True)

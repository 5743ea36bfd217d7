"""Records to make statistics tables of, and tables written and read."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pandas as pd

from retinue.agents.registry import make_agent
from retinue.envs.game.ruleset import Ruleset
from retinue.evaluation.arena import Matches, play_matches
from retinue.evaluation.records import save_records
from retinue.evaluation.table_columns import TABLES
from retinue.evaluation.tables import Tables, write_tables

SEATS: Final = ("green", "red", "blue", "yellow")
LINE_UP: Final = ("racer", "random", "spread", "racer")


class Frames(NamedTuple):
    """The two tables as pandas reads them."""

    matches: Any
    turns: Any


def play_into(folder: Path, ruleset: Ruleset, count: int) -> Matches:
    """Play matches of the line-up, the dice seeded 0, 1, ..., and record them in a new folder."""
    folder.mkdir(parents=True)
    agents = [make_agent(name, ruleset) for name in LINE_UP]
    matches = play_matches(agents, ruleset, range(count), keep_turns=True)
    assert list(save_records(matches, ruleset, folder))[-1] == count
    return matches


def lines_of(path: Path) -> list[Any]:
    """Return the lines of a record."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def put(path: Path, lines: Sequence[Any]) -> Path:
    """Write a record of these lines."""
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path


def write(records: Sequence[Path], folder: Path, form: str = "parquet", **options: Any) -> Tables:
    """Write the tables, and check what is told of the progress."""
    told: list[tuple[int, int]] = []
    tables = write_tables(records, folder, form, lambda *numbers: told.append(numbers), **options)
    assert told == [(done, told[-1][1]) for done in range(1, told[-1][1] + 1)]
    return tables


def read(folder: Path) -> Frames:
    """Return the tables of a folder."""
    return Frames(*(pd.read_parquet(folder / f"{name}.parquet") for name in TABLES))

"""Statistics tables as files: formats, names, what is refused, and the page that explains them."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from positions import BRAWL, JOURNEY, changed
from retinue.envs.game.record import Recorder, RecordError
from retinue.envs.game.state import empty_turn
from retinue.evaluation import table_columns
from retinue.evaluation.records import find_records, record_name
from retinue.evaluation.table_columns import TABLES, schema_of
from retinue.evaluation.tables import write_tables
from tabling import LINE_UP, SEATS, lines_of, play_into, put, read, write

PAGE = Path(__file__).resolve().parents[1] / "docs" / "statistics.md"
TURNS = 24
FEW = 3


@pytest.fixture(scope="module")
def games(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with short matches of each mode in folders of their own."""
    folder = tmp_path_factory.mktemp("played")
    for ruleset in (JOURNEY, BRAWL):
        play_into(folder / ruleset.mode, changed(ruleset, clock_seconds=10 * TURNS), FEW)
    return folder


@pytest.fixture(scope="module")
def records(games: Path) -> list[Path]:
    return find_records(sorted(games.iterdir()))


# --- Files


def test_csv_and_parquet_agree(records: list[Path], tmp_path: Path) -> None:
    part = put(tmp_path / "part.jsonl", lines_of(records[0])[:8])
    write([*records, part], tmp_path)
    told = write([*records, part], tmp_path, "csv")
    assert [told.matches.name, told.turns.name] == ["matches.csv", "turns.csv"]
    for name, frame in zip(TABLES, read(tmp_path), strict=True):
        text = pd.read_csv(tmp_path / f"{name}.csv")
        assert list(text) == list(frame)
        for column in text:
            assert text[column].isna().tolist() == frame[column].isna().tolist(), column
            assert text[column].dropna().tolist() == frame[column].dropna().tolist(), column


def test_records_given_twice_count_once(
    games: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(games)
    folder, one = Path("brawl"), Path("brawl") / record_name(1)
    told = write(find_records([one, folder, one.absolute()]), tmp_path)
    assert told.match_rows == FEW
    names = sorted(read(tmp_path).matches["record"])
    assert names == [str(folder / record_name(number)) for number in range(FEW)]


def test_equal_names_in_two_folders_are_two_records(records: list[Path], tmp_path: Path) -> None:
    write(records, tmp_path)
    matches, turns = read(tmp_path)
    assert matches["record"].tolist() == [str(path) for path in records]
    assert matches["mode"].tolist() == ["brawl"] * FEW + ["journey"] * FEW
    assert (turns.groupby("record").size() == TURNS).all()
    assert turns["record"].nunique() == 2 * FEW


@pytest.mark.skipif(os.name != "posix", reason="names that other systems refuse")
@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_odd_names(tmp_path: Path, form: str) -> None:
    agents = ('a,"b"', "ü\u2028\n", "NA", "")
    recorder = Recorder(JOURNEY, agents, 5)
    recorder.roll()
    recorder.play(empty_turn())
    names = ['a,b "c" ü\n.jsonl', os.fsdecode(b"\xff.jsonl")]
    folder = tmp_path / os.fsdecode(b"tables \xfe")
    for name in names:
        recorder.save(tmp_path / name)
    write([tmp_path / name for name in names], folder, form)
    if form == "parquet":
        with (folder / "matches.parquet").open("rb") as file:
            matches = pd.read_parquet(file)
    else:
        matches = pd.read_csv(folder / "matches.csv", keep_default_na=False)
    assert matches["record"].tolist() == [f"{tmp_path}/{names[0]}", f"{tmp_path}/\\udcff.jsonl"]
    found = [tuple(row) for row in matches[[f"agent_{seat}" for seat in SEATS]].to_numpy()]
    assert found == [agents] * 2


# --- What is refused or fails leaves nothing


@pytest.mark.parametrize(
    ("line", "old", "new"),
    [
        (1, '"version": 1', '"version": 2'),
        (2, '"turn": 0', '"turn": 1'),
        (13, '"turns_taken": [3', '"turns_taken": [4'),
        (TURNS + 1, "}}", "}"),
        (TURNS + 2, '"places": [', '"places": [1'),
    ],
)
def test_a_damaged_record_is_refused(
    records: list[Path], tmp_path: Path, line: int, old: str, new: str
) -> None:
    lines = records[0].read_text(encoding="utf-8").split("\n")
    assert old in lines[line - 1]
    lines[line - 1] = lines[line - 1].replace(old, new)
    bad = tmp_path / "bad.jsonl"
    bad.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(RecordError, match=rf"^{re.escape(str(bad))}: line {line}: "):
        write([records[1], bad], tmp_path / "new" / "tables")
    assert [path.name for path in tmp_path.iterdir()] == ["bad.jsonl"]


@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError])
def test_what_is_interrupted_leaves_the_old_tables(
    records: list[Path], tmp_path: Path, failure: type[BaseException]
) -> None:
    write(records[:1], tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert before.keys() == {"matches.parquet", "turns.parquet"}

    def stop(done: int, total: int) -> None:
        assert total == len(records)
        if done == 2:
            raise failure

    for folder in (tmp_path, tmp_path / "new"):
        with pytest.raises(failure):
            write_tables(records, folder, "parquet", stop, overwrite=True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_no_table_takes_its_place_before_both_are_closed(
    records: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(table: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("retinue.evaluation.tables._Table.flush", full)
    with pytest.raises(OSError, match="no space"):
        write(records[:1], tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


def test_tables_that_are_there_are_replaced_only_if_asked(
    records: list[Path], tmp_path: Path
) -> None:
    (tmp_path / "turns.parquet").write_text("precious")
    with pytest.raises(FileExistsError, match=r"turns\.parquet: is there already; --overwrite"):
        write(records[:1], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["turns.parquet"]
    assert (tmp_path / "turns.parquet").read_text() == "precious"
    write(records[:1], tmp_path, overwrite=True)
    assert len(read(tmp_path).matches) == 1
    (tmp_path / "matches.csv").mkdir()
    with pytest.raises(FileExistsError, match=r"matches\.csv: is a folder"):
        write(records[:1], tmp_path, "csv", overwrite=True)


def test_a_folder_that_cannot_be(records: list[Path], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OSError, match=rf"^{re.escape(str(folder))}: no folder for tables: "):
            write(records[:1], folder)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


# --- Their page


def documented(table: str) -> list[tuple[str, str]]:
    """Return the name and type of each column, as the page has them, by seat and Guard."""
    part = PAGE.read_text(encoding="utf-8").split(f"## Columns of `{table}`")[1].split("\n## ")[0]
    found: list[tuple[str, str]] = []
    for name, kind in re.findall(r"^\| `(\w+)` \| ([^|]+) \|", part, re.MULTILINE):
        each = {"SEAT": SEATS, "GUARD": ("g1", "g2", "g3", "g4")}.get(name.rsplit("_")[-1])
        stem = name.rsplit("_", 1)[0]
        found += [(f"{stem}_{one}", kind) for one in each] if each else [(name, kind)]
    return found


@pytest.mark.parametrize("table", TABLES)
def test_the_page_has_every_column(table: str) -> None:
    kinds = {"dictionary<values=string, indices=int8, ordered=0>": "category"}
    assert documented(table) == [
        (field.name, kinds.get(str(field.type), str(field.type)) + " or null" * field.nullable)
        for field in schema_of(TABLES[table])
    ]


def test_the_page_is_up_to_date(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert table_columns.renew(text) == text
    with pytest.raises(ValueError, match="has no <!-- generated: columns of matches -->"):
        table_columns.renew("# Something else")
    stale = tmp_path / "stale.md"
    stale.write_text(re.sub(r"\| `turn` .*\n", "", text), encoding="utf-8")
    module = "retinue.evaluation.table_columns"
    subprocess.run([sys.executable, "-m", module, str(stale)], check=True, timeout=300)
    assert stale.read_text(encoding="utf-8") == text


def test_the_page_s_programs_run(
    records: list[Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    part = put(tmp_path / "part.jsonl", lines_of(records[0])[:8])
    write([*records, part], Path("tables"))
    programs = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
    names: dict[str, Any] = {}
    for program in programs:
        exec(compile(program, PAGE.name, "exec"), names)
    out = capsys.readouterr().out
    assert all(agent in out for agent in LINE_UP)
    matches, seats = names["matches"], names["seats"]
    assert len(seats) == 4 * matches["finished"].sum()
    racers = seats[seats["agent"] == "racer"]
    finished = matches[matches["finished"]]
    expected = pd.concat([finished["total_green"], finished["total_yellow"]]).mean()
    assert racers["total"].mean() == pytest.approx(expected)
    assert len(names["both"]) == len(names["turns"])

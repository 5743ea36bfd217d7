"""Statistics tables: every number against the records that it comes from."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet

from positions import BRAWL, JOURNEY, changed
from retinue.envs.game import jit
from retinue.envs.game.record import Recorder
from retinue.envs.game.state import empty_turn
from retinue.evaluation.arena import Matches
from retinue.evaluation.records import find_records, record_name
from retinue.evaluation.table_columns import SUMMED, TABLES, schema_of
from tabling import LINE_UP, SEATS, Frames, lines_of, play_into, put, read, write

FEW = 2 if jit.ENABLED else 1
SHORT: dict[str, int] = {} if jit.ENABLED else {"clock_seconds": 600}
RULES = {
    "journey": changed(JOURNEY, **SHORT),
    "brawl": changed(BRAWL, **SHORT),
    "long": changed(JOURNEY, clock_seconds=100_000 if jit.ENABLED else 590),  # until all finish
}
LATE = 30
"""Turns into a match after which another record goes on, with dice from elsewhere."""


class Played(NamedTuple):
    """Records in folders, and what the arena knows of them."""

    folder: Path
    matches: dict[str, Matches]

    @property
    def records(self) -> list[Path]:
        """All of them."""
        return find_records(sorted(self.folder.iterdir()))


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Matches of both modes under the same file names; one in progress, one that begins late."""
    folder = tmp_path_factory.mktemp("played") / "games"
    counts = {"journey": FEW, "brawl": FEW, "long": 1}
    matches = {name: play_into(folder / name, RULES[name], n) for name, n in counts.items()}
    (folder / "more").mkdir()
    whole = folder / "brawl" / record_name(0)
    header, *turns = lines_of(whole)
    put(folder / "more" / "part.jsonl", [header, *turns[:33]])
    late = {**header, "seed": None, "start": turns[LATE - 1]["after"]}
    put(folder / "more" / "late.jsonl", [late, *turns[LATE:]])
    return Played(folder, matches)


@pytest.fixture(scope="module")
def tables(played: Played, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the tables of all these."""
    folder = tmp_path_factory.mktemp("tables")
    told = write(played.records, folder)
    assert told.match_rows == len(played.records) == 2 * FEW + 3
    assert told.turn_rows == sum(len(lines_of(path)) - 2 for path in played.records) + 1
    assert told.in_progress == 1
    return folder


@pytest.fixture(scope="module")
def frames(tables: Path) -> Frames:
    return read(tables)


# --- Rows


def total(state: Any, seat: int) -> int:
    return int(sum(state["progression"][seat]) + state["combat"][seat] + state["bonus"][seat])


def expected_turn(turn: Any, before: Any) -> dict[str, Any]:
    """Return a row worked out from a record's own line, its events among it, and the last state."""
    seat, after = turn["seat"], turn["after"]
    captures = [each for each in turn["events"] if each["type"] == "capture"]
    stops = [each for each in turn["events"] if each["type"] == "blocked"]
    points: dict[str, int] = {}
    for event in turn["events"]:
        points[event["type"]] = points.get(event["type"], 0) + event.get("points", 0)
    row = {
        "turn": turn["turn"],
        "seat": SEATS[seat],
        "seat_turn": after["turns_taken"][seat] - 1,
        "dice": len(turn["rolled"]),
        "rolled": " ".join(str(value) for value in turn["rolled"]),
        "credits_earned": turn["credits_earned"],
        "direction": turn["direction"],
        "noble_steps": turn["noble"]["steps"],
        "noble_when": turn["noble"]["when"],
        "store": sum(after["store"][seat]),
        "credits": after["credits"][seat],
        "progression": sum(points.get(name, 0) for name in ("checkpoint", "midpoint", "home")),
        "combat": points.get("capture", 0) + points.get("blocked", 0),
        "bonus": points.get("finish", 0),
        "points": sum(points.values()),
        "captures": len(captures),
        "nobles_captured": len([each for each in captures if each["piece"] == 4]),
        "blocked": len(stops),
        "trimmed": sum(each["trimmed"] for each in stops),
        "penalty": -points.get("blocked", 0),
        "finished": "finish" in points,
        "clock_seconds": after["clock_seconds"],
    }
    for guard, rolls in enumerate(turn["guards"], start=1):
        row |= {f"rolls_g{guard}": len(rolls), f"steps_g{guard}": sum(rolls)}
    for name in ("exit", "checkpoint", "midpoint", "home"):
        row[f"{name}s"] = len([each for each in turn["events"] if each["type"] == name])
    for other, name in enumerate(SEATS):
        taken = [each["piece"] for each in captures if each["seat"] == other]
        row[f"captured_{name}"] = len(taken)
        row[f"lost_{name}"] = sum(before["progression"][other][piece] for piece in taken)
        row[f"total_{name}"] = total(after, other)
    return row


def test_a_turn_s_row_is_what_its_line_says(played: Played, frames: Frames) -> None:
    rows = frames.turns.to_dict("records")
    for path in played.records:
        header, *lines = lines_of(path)
        before = header["start"]
        for line in lines:
            if "result" in line:
                break
            row = rows.pop(0)
            assert row.pop("record") == str(path)
            assert row.pop("agent") == header["agents"][line["seat"]]
            assert row == expected_turn(line, before)
            before = line["after"]
    assert rows == []


def test_the_matches_are_worth_the_tests(frames: Frames) -> None:
    turns = frames.turns
    rare = ["captures", "nobles_captured", "penalty", "homes", "midpoints"]
    assert (turns[[*rare, *(f"lost_{seat}" for seat in SEATS)]].sum() > 0).all()
    assert set(turns["direction"]) == {"forward", "backward"}
    assert set(turns["noble_when"]) == {"before", "after"}
    if jit.ENABLED:
        assert turns["finished"].sum() >= 4
        assert turns["bonus"].sum() >= 650


def test_a_match_s_row_is_its_header_and_its_result(played: Played, frames: Frames) -> None:
    for row, path in zip(frames.matches.to_dict("records"), played.records, strict=True):
        header, *_, last = lines_of(path)
        assert (row["record"], row["mode"]) == (str(path), header["mode"])
        assert [row[f"agent_{seat}"] for seat in SEATS] == header["agents"]
        assert row["finished"] == ("result" in last)
        if not row["finished"]:
            continue
        result = last["result"]
        assert [row[f"total_{seat}"] for seat in SEATS] == result["totals"]
        assert [row[f"place_{seat}"] for seat in SEATS] == result["places"]
        assert row["reason"] == result["reason"]
        positions = {row[f"finish_position_{seat}"]: number for number, seat in enumerate(SEATS)}
        found = [positions[number] for number in range(1, 5) if number in positions]
        assert found == result["finish_order"]


def test_a_match_s_row_agrees_with_the_arena(played: Played, frames: Frames) -> None:
    for name, matches in played.matches.items():
        there = frames.matches[frames.matches["record"].str.contains(f"/games/{name}/")]
        assert there["seed"].tolist() == matches.seeds.tolist()
        assert set(there["rules"]) == {RULES[name].digest}
        assert there["from_start"].all()
        columns = {"turns": matches.decisions, "total": matches.totals, "place": matches.places}
        columns |= {"progression": matches.progression, "combat": matches.combat}
        columns |= {"bonus": matches.bonus}
        for column, values in columns.items():
            table = there[[f"{column}_{seat}" for seat in SEATS]].to_numpy()
            assert np.array_equal(table, values), column
    assert frames.matches["rules"].nunique() == len({each.digest for each in RULES.values()})


def test_what_turns_count_matches_add_up(frames: Frames) -> None:
    matches, turns = frames.matches.set_index("record"), frames.turns
    assert (matches["length"] == turns.groupby("record").size()).all()
    for seat in SEATS:
        own = turns[turns["seat"] == seat].groupby("record")
        assert (matches[f"turns_{seat}"] == own.size()).all()
        backward = own["direction"].apply(lambda each: (each == "backward").sum())
        assert (matches[f"backward_{seat}"] == backward).all()
        for name in SUMMED:
            assert (matches[f"{name}_{seat}"] == own[name].sum()).all(), name
        for name in ("captured", "lost"):
            of_all = turns.groupby("record")[f"{name}_{seat}"].sum()
            assert (matches[f"{name}_{seat}"] == of_all).all(), name
    made, suffered = (
        matches[[f"{name}_{seat}" for seat in SEATS]].sum(axis=1)
        for name in ("captures", "captured")
    )
    assert (made == suffered).all()
    assert made.sum() == turns["captures"].sum() > 0


def test_points_add_up_to_totals(frames: Frames) -> None:
    turns = frames.turns
    whole = frames.matches[frames.matches["from_start"] & frames.matches["finished"]]
    assert len(whole) == 2 * FEW + 1
    for match in whole.to_dict("records"):
        own = turns[turns["record"] == match["record"]]
        for seat in SEATS:
            gained = own.loc[own["seat"] == seat, "points"].sum()
            assert gained - own[f"lost_{seat}"].sum() == match[f"total_{seat}"]
            assert own[f"total_{seat}"].iloc[-1] == match[f"total_{seat}"]
            bonus = own.loc[own["seat"] == seat, "bonus"].sum()
            assert bonus == match[f"bonus_{seat}"]


def test_rolls_are_conserved(frames: Frames) -> None:
    turns = frames.turns[~frames.turns["record"].str.endswith("late.jsonl")]
    given = turns[[f"rolls_g{guard}" for guard in range(1, 5)]].sum(axis=1)
    for _, own in turns.assign(given=given).groupby(["record", "seat"]):
        before = own["store"].shift(fill_value=0)
        assert (own["store"] == before + own["dice"] - own["given"]).all()


# --- Records of other kinds


def test_a_match_in_progress(played: Played, frames: Frames) -> None:
    (row,) = frames.matches[~frames.matches["finished"]].to_dict("records")
    assert row["record"] == str(played.folder / "more" / "part.jsonl")
    assert (row["length"], row["seed"], row["from_start"]) == (33, 0, True)
    assert row["clock_seconds"] == RULES["brawl"].clock_seconds - 330
    names = ("place", "total", "progression", "combat", "bonus", "finish_position")
    nulls = {"reason", *(f"{name}_{seat}" for name in names for seat in SEATS)}
    assert {name for name, value in row.items() if pd.isna(value)} == nulls


def test_a_record_that_begins_late_with_dice_from_elsewhere(frames: Frames) -> None:
    by_end = {"/".join(Path(row["record"]).parts[-2:]): row for _, row in frames.matches.iterrows()}
    late, whole = by_end["more/late.jsonl"], by_end[f"brawl/{record_name(0)}"]
    assert pd.isna(late["seed"])
    assert not late["from_start"]
    assert late["length"] == whole["length"] - LATE
    assert late["total_green"] == whole["total_green"]
    first = frames.turns[frames.turns["record"] == late["record"]].iloc[0]
    assert (first["turn"], first["seat"], first["seat_turn"]) == (LATE, "blue", LATE // 4)


def test_only_what_may_be_null_is(tables: Path) -> None:
    for name, columns in TABLES.items():
        table = parquet.read_table(tables / f"{name}.parquet")
        assert table.schema.equals(schema_of(columns))
        for field in table.schema:
            assert field.nullable or table[field.name].null_count == 0, field.name


def test_events_in_the_file_are_not_believed(played: Played, tmp_path: Path) -> None:
    path = played.folder / "brawl" / record_name(0)
    write([path], tmp_path / "before")
    lines = lines_of(path)
    altered = put(tmp_path / record_name(0), lines)
    for line in lines[1:-1]:
        line["events"] = [{"type": "capture", "piece": 4, "seat": 1, "points": 999}]
    put(altered, lines)
    write([altered], tmp_path / "after")
    for before, after in zip(read(tmp_path / "before"), read(tmp_path / "after"), strict=True):
        assert set(after["record"]) == {str(altered)}
        pd.testing.assert_frame_equal(before.drop(columns="record"), after.drop(columns="record"))


def test_a_record_without_turns(tmp_path: Path) -> None:
    Recorder(JOURNEY, LINE_UP, 5).save(tmp_path / "new.jsonl")
    told = write([tmp_path / "new.jsonl"], tmp_path)
    assert (told.match_rows, told.turn_rows, told.in_progress) == (1, 0, 1)
    matches, turns = read(tmp_path)
    assert matches["length"].tolist() == [0]
    assert len(turns) == 0
    assert list(turns.columns) == schema_of(TABLES["turns"]).names


def test_a_finish_without_dice(tmp_path: Path) -> None:
    """All Nobles stand before Home with full stores: no dice, four finishes, shared places."""
    state: dict[str, Any] = {
        **{"position": [[75] * 4 + [74]] * 4, "midpoint": [[1] * 5] * 4},
        **{"checkpoints": [[0] * 5] * 4, "progression": [[0] * 5] * 4, "combat": [0, 100, 0, 0]},
        **{"bonus": [0] * 4, "store": [[12] + [0] * 5] * 4, "credits": [0] * 4},
        **{"turns_taken": [9] * 4, "clock_seconds": 500},
    }
    recorder = Recorder(JOURNEY, LINE_UP, None, state)
    for _ in range(4):
        recorder.roll([])
        turn = empty_turn()
        turn["noble_steps"] = 1
        recorder.play(turn)
    recorder.save(tmp_path / "end.jsonl")
    write([tmp_path / "end.jsonl"], tmp_path)
    matches, turns = read(tmp_path)
    assert turns["rolled"].tolist() == [""] * 4
    assert turns["finished"].all()
    assert turns["points"].tolist() == [500, 400, 300, 250]
    (row,) = matches.to_dict("records")
    assert [row[f"finish_position_{seat}"] for seat in SEATS] == [1, 2, 3, 4]
    assert [row[f"place_{seat}"] for seat in SEATS] == [1, 1, 3, 4]
    assert row["reason"] == "finished"


def test_tables_written_in_parts_are_the_same(
    played: Played, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = find_records([played.folder / "brawl"])
    write(records, tmp_path / "whole")
    monkeypatch.setattr("retinue.evaluation.tables.CELLS_AT_ONCE", 1000)
    write(records, tmp_path / "parts")
    groups = [
        parquet.ParquetFile(tmp_path / part / "turns.parquet").num_row_groups
        for part in ("whole", "parts")
    ]
    assert groups[0] == 1
    assert groups[1] > FEW
    for one, other in zip(read(tmp_path / "whole"), read(tmp_path / "parts"), strict=True):
        pd.testing.assert_frame_equal(one, other)

"""Sessions of matches: their records, what an interruption leaves, and their standings."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from positions import JOURNEY, changed
from retinue.agents.registry import make_agent
from retinue.envs.game import jit
from retinue.envs.game.record import RecordError, verify_record
from retinue.envs.opponents import View
from retinue.evaluation.arena import ArenaError, Matches, play_matches, rotated
from retinue.evaluation.records import prepare_folder, save_records
from retinue.evaluation.report import standings
from retinue.evaluation.session import Session, play_session

SHORT = changed(JOURNEY, clock_seconds=240)
"""Matches of 24 turns."""
LINE_UP = ("racer", "random", "spread", "random")
MATCHES = 40 if jit.ENABLED else 6


def agents(*names: str) -> list[Any]:
    return [make_agent(name, JOURNEY) for name in names]


def same(one: Matches, other: Matches) -> bool:
    names = ("totals", "places", "decisions", "seeds", "seating")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


def session(records: Path | None, **arguments: Any) -> Session:
    chosen: dict[str, Any] = {"rotate": False, "threads": None, "on_progress": lambda *_: None}
    chosen |= arguments
    return play_session(agents(*LINE_UP), SHORT, 8, 3, records=records, **chosen)


def test_records_are_those_matches(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "games"
    progress: list[tuple[int, int]] = []
    played = session(folder, on_progress=lambda *numbers: progress.append(numbers)).matches
    assert played is not None
    files = sorted(folder.iterdir())
    assert [file.name for file in files] == [f"match-{i:06d}.jsonl" for i in range(8)]
    for index, file in enumerate(files):
        replay = verify_record(file)
        assert replay.result is not None
        assert replay.header.seed == 3 + index
        assert replay.header.agents == LINE_UP
        assert list(replay.result.totals) == played.totals[index].tolist()
        assert list(replay.result.places) == played.places[index].tolist()
    assert progress[-1] == (8, 8)
    assert progress == sorted(progress)


def test_recorded_blocks_name_who_sat_where(tmp_path: Path) -> None:
    session(tmp_path, rotate=True)
    replays = [verify_record(file) for file in sorted(tmp_path.iterdir())]
    assert [replay.header.seed for replay in replays] == [3] * 4 + [4] * 4
    assert replays[1].header.agents == ("random", "racer", "random", "spread")


def test_a_session_plays_what_the_arena_plays(tmp_path: Path) -> None:
    plain, recorded = session(None).matches, session(tmp_path).matches
    assert plain is not None
    assert recorded is not None
    assert same(plain, recorded)
    assert same(plain, play_matches(agents(*LINE_UP), SHORT, range(3, 11)))


@pytest.mark.parametrize(("rotate", "kept"), [(False, 6), (True, 4)])
def test_an_interruption_keeps_what_was_finished(tmp_path: Path, rotate: bool, kept: int) -> None:
    def stop(done: int, total: int) -> None:
        if done == 6:
            raise KeyboardInterrupt

    found = session(tmp_path, rotate=rotate, on_progress=stop)
    assert found.interrupted
    assert found.matches is not None
    assert len(found.matches) == kept, "only whole blocks count"
    assert len(list(tmp_path.iterdir())) == 6
    whole = session(None, rotate=rotate).matches
    assert whole is not None
    assert same(found.matches, whole.head(kept))


def test_an_interruption_before_the_first_match(tmp_path: Path) -> None:
    class Impatient:
        name = "impatient"
        compiled = None

        def choose(self, view: View, rng: np.random.Generator) -> Any:
            raise KeyboardInterrupt

    line_up = [Impatient(), *agents("racer", "random", "spread")]
    found = play_session(
        line_up,
        SHORT,
        8,
        0,
        rotate=False,
        records=None,
        threads=None,
        on_progress=lambda *_: None,
    )
    assert found == Session(None, interrupted=True)


def test_records_are_not_mixed_with_others(tmp_path: Path) -> None:
    session(tmp_path)
    with pytest.raises(RecordError, match="holds records already; choose another folder"):
        session(tmp_path)
    with pytest.raises(RecordError, match="no folder for records: File exists"):
        prepare_folder(tmp_path / "match-000000.jsonl")


def test_only_kept_turns_can_be_recorded(tmp_path: Path) -> None:
    played = play_matches(agents(*LINE_UP), SHORT, [0])
    with pytest.raises(ValueError, match="turns were kept"):
        next(save_records(played, SHORT, tmp_path))


def test_a_partial_block_is_refused() -> None:
    with pytest.raises(ArenaError, match="a multiple of 4 matches, not 6"):
        play_session(
            agents(*LINE_UP),
            SHORT,
            6,
            0,
            rotate=True,
            records=None,
            threads=None,
            on_progress=lambda *_: None,
        )


# --- Standings


def test_standings_by_seat_and_by_agent() -> None:
    played = play_matches(agents(*LINE_UP), SHORT, range(MATCHES))
    rows = standings(played)
    assert [(row.seat, row.agent) for row in rows] == list(
        zip(("green", "red", "blue", "yellow"), LINE_UP, strict=True)
    )
    assert [row.total for row in rows] == pytest.approx(played.totals.mean(axis=0))
    for row in rows:
        assert row.total == pytest.approx(row.progression + row.combat + row.bonus)
    assert sum(row.first.value for row in rows) == pytest.approx(1)
    blocks = rotated(agents(*LINE_UP), SHORT, 3)
    rows = standings(blocks, rotated=True)
    assert [(row.seat, row.agent, row.first.samples) for row in rows] == [
        ("all", name, 3) for name in LINE_UP
    ]
    assert [row.place for row in rows] == pytest.approx(blocks.by_agent(blocks.places).mean(axis=0))
    with pytest.raises(ValueError, match="change seats"):
        standings(blocks)

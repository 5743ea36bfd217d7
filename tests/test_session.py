"""Sessions of matches: their records, what an interruption leaves, and their standings."""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from positions import JOURNEY, changed
from retinue import cli
from retinue.agents import registry
from retinue.agents.base import CompiledAgent
from retinue.agents.registry import make_agent
from retinue.agents.scripted import choose_racer
from retinue.envs.game import jit
from retinue.envs.game.record import MatchReplay, RecordError, verify_record
from retinue.envs.opponents import View
from retinue.evaluation.arena import ArenaError, Matches, play_matches, rotated
from retinue.evaluation.records import prepare_folder, save_records, tell
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


def session(records: Path | None, *, count: int = 8, seed: int = 3, **arguments: Any) -> Session:
    chosen: dict[str, Any] = {"rotate": False, "threads": None, "on_progress": lambda *_: None}
    chosen |= arguments
    return play_session(agents(*LINE_UP), SHORT, count, seed, records=records, **chosen)


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
        session(None, count=6, rotate=True)


@pytest.mark.parametrize("rotate", [False, True])
@pytest.mark.parametrize("count", [300_000_000, 100_000_000_000_000_000_000])
def test_too_many_matches_are_refused_at_once(rotate: bool, count: int) -> None:
    begun = time.monotonic()
    with pytest.raises(ArenaError, match=f"at most 10,000,000 matches, not {count:,}"):
        session(None, count=count, rotate=rotate)
    assert time.monotonic() - begun < 1


def test_seeds_end_where_the_dice_do() -> None:
    last = session(None, count=2, seed=2**53 - 2).matches
    assert last is not None
    assert last.seeds.tolist() == [2**53 - 2, 2**53 - 1]
    blocks = session(None, count=4, seed=2**53 - 1, rotate=True).matches
    assert blocks is not None
    assert set(blocks.seeds.tolist()) == {2**53 - 1}
    with pytest.raises(ArenaError, match=r"3 seeds from 9007199254740990 on go beyond 2\*\*53 - 1"):
        session(None, count=3, seed=2**53 - 2)
    with pytest.raises(ArenaError, match="2 seeds from 9007199254740991 on go beyond"):
        session(None, count=8, seed=2**53 - 1, rotate=True)


# --- Records in words


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """A record whose events and names a test may change."""
    session(tmp_path / "games", count=1)
    return tmp_path / "games" / "match-000000.jsonl"


def with_events(record: Path, *events: dict[str, Any]) -> Path:
    """Put other events into the record's first turn."""
    header, turn, *rest = record.read_text(encoding="utf-8").splitlines()
    turn = json.dumps(json.loads(turn) | {"events": events})
    record.write_text("\n".join([header, turn, *rest]), encoding="utf-8")
    return record


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"type": "checkpoint", "piece": 0, "checkpoint": 11}, r"checkpoint: .* less than 11"),
        ({"type": "checkpoint", "piece": 0}, "a checkpoint event needs checkpoint"),
        ({"type": "checkpoint", "checkpoint": 3}, "a checkpoint event needs piece"),
        ({"type": "capture"}, "a capture event needs piece and seat"),
        ({"type": "capture", "piece": 1}, "a capture event needs seat"),
        ({"type": "blocked", "piece": 1}, "a blocked event needs trimmed"),
        ({"type": "exit"}, "an exit event needs piece"),
        ({"type": "exit", "piece": 0, "seat": 1}, "an exit event has no seat"),
        ({"type": "finish", "piece": 0}, "a finish event has no piece"),
    ],
)
def test_an_event_has_what_its_type_has(record: Path, event: dict[str, Any], message: str) -> None:
    with pytest.raises(RecordError, match=rf"line 2: events\[0\].*{message}"):
        verify_record(with_events(record, event))


def test_every_event_is_told(record: Path) -> None:
    checkpoints = [{"type": "checkpoint", "piece": 0, "checkpoint": bit} for bit in range(11)]
    with_events(
        record,
        *checkpoints,
        {"type": "exit", "piece": 1},
        {"type": "midpoint", "piece": 2, "points": 20},
        {"type": "capture", "piece": 4, "seat": 2, "points": 70},
        {"type": "blocked", "piece": 3, "trimmed": 2, "points": -4},
        {"type": "blocked", "piece": 4, "trimmed": 1},
        {"type": "home", "piece": 4},
        {"type": "finish", "points": 200},
    )
    told = " ".join("".join(tell(MatchReplay(record), with_board=False)).split())
    assert told.count("reaches Castle") >= 8
    assert "G2 leaves the Yard; G3 reaches its midpoint (+20)" in told
    assert "green captures blue's Noble (+70); G4 is blocked and loses 2 steps (-4)" in told
    assert "the Noble is blocked and loses 1 step, is Home; green has finished (+200)" in told


def test_control_characters_do_not_reach_the_terminal(record: Path) -> None:
    header, *rest = record.read_text(encoding="utf-8").splitlines()
    named = json.loads(header) | {"agents": ["\x1b[31mred\x07", "a\nb", "Zoë", "\u202eevil"]}
    record.write_text("\n".join([json.dumps(named), *rest]), encoding="utf-8")
    told = list(tell(MatchReplay(record), with_board=False))
    assert "green ?[31mred?, red a?b, blue Zoë, yellow ?evil\n" in told[0]
    assert all(line.isprintable() for line in "\n".join(told).split("\n"))


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


def test_names_are_shown_as_they_are(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def named(argument: str, _: Any) -> Any:
        return CompiledAgent(f"named:{argument}", choose_racer)

    monkeypatch.setitem(registry._KINDS, "named", registry.Kind(named, "[b]bold[/b]", "PATH"))
    monkeypatch.setenv("COLUMNS", "100")
    rules = tmp_path / "short.yaml"
    rules.write_text(json.dumps(SHORT.model_dump(mode="json")))
    odd = ("named:q[/b]", "named:q[best]", "named::smile:", "named:\x1b[31m")
    words = ["play", "--agents", ",".join(odd), "--matches", "1", "--rules", str(rules)]
    assert cli.main(words) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in (*odd[:3], "named:?[31m"))
    assert cli.main(["agents"]) == 0
    assert "[b]bold[/b]" in capsys.readouterr().out

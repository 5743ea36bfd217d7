"""What happened in matches: counted again from their records, in plain Python."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tabling
from positions import BRAWL, JOURNEY, changed
from retinue.agents.registry import make_agent
from retinue.envs.game.board import BACKWARD, FORWARD, LOOP, MIDPOINT, SEAT_NAMES, YARD
from retinue.envs.game.engine import play as play_turn
from retinue.envs.game.engine import roll
from retinue.envs.game.events import SILENT
from retinue.envs.game.movement import next_position
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.state import new_game, totals
from retinue.envs.tally import PATHS, TALLY, tally
from retinue.evaluation.arena import Matches, play_matches
from retinue.evaluation.records import save_records

LINE_UP = ("greedy", "backward", "racer", "switch")


def played(ruleset: Ruleset, line_up: tuple[str, ...] = LINE_UP, count: int = 12) -> Matches:
    agents = [make_agent(name, ruleset) for name in line_up]
    return play_matches(agents, ruleset, range(7, 7 + count), keep_turns=True)


@pytest.mark.parametrize("ruleset", [JOURNEY, BRAWL], ids=["journey", "brawl"])
def test_counts_are_those_of_the_records_tables(ruleset: Ruleset, tmp_path: Path) -> None:
    matches = played(ruleset)
    assert matches.turns is not None
    counted, _ = tally(ruleset, matches.seeds, matches.turns)
    (tmp_path / "games").mkdir()
    list(save_records(matches, ruleset, tmp_path / "games"))
    tabling.write(sorted((tmp_path / "games").iterdir()), tmp_path / "tables")
    table = tabling.read(tmp_path / "tables").matches

    def column(name: str) -> Any:
        return np.stack([table[f"{name}_{seat}"] for seat in SEAT_NAMES], axis=1)

    captures = counted["captured"].sum(axis=2)
    assert (captures == column("captures")).all()
    assert captures.sum() > 100
    assert (counted["captured"][:, :, 1] == column("nobles_captured")).all()
    assert (counted["lost"].sum(axis=2) == column("captured")).all()
    for mine, theirs in {
        "points_lost": "lost", "penalty": "penalty", "wasted": "trimmed", "exits": "exits",
        "midpoints": "midpoints", "homes": "homes", "rolled": "dice", "turns": "turns",
    }.items():  # fmt: skip
        assert (counted[mine] == column(theirs)).all(), mine
        assert counted[mine].any(), mine


def steps_made(start: int, end: int, past: bool, direction: int) -> list[tuple[bool, int]]:
    """Return the loop places on a piece's way to ``end``, each with its flag before that step."""
    step = getattr(next_position, "py_func", next_position)  # compiled for compiled callers alone
    way: list[tuple[bool, int]] = []
    place = start
    while place != end or not way:
        flag, place = past, step(place, past, direction)
        past = past or place == MIDPOINT
        way.append((flag, place))
    return [(flag, place) for flag, place in way if place < LOOP]


def counted_again(matches: Matches, ruleset: Ruleset, index: int) -> list[dict[str, Any]]:
    """Count one match by playing it with the engine and looking at every piece."""
    game = new_game(ruleset)
    found: list[dict[str, Any]] = [
        {"kept": 0, "moved": 0, "forward": 0, "finishing_round": 0, "paths": Counter(),
         "stood": Counter(), "lost_at": Counter(), "captured_at": Counter()}
        for _ in SEAT_NAMES
    ]  # fmt: skip
    lives: dict[tuple[int, int], Counter[Any]] = {}

    def end_life(seat: int, piece: int) -> None:
        life = lives.pop((seat, piece), Counter())
        if life["past", FORWARD] + life["past", BACKWARD]:
            first = life["before", BACKWARD] > life["before", FORWARD]
            then = life["past", BACKWARD] > life["past", FORWARD]
            names = ("forward", "backward")
            path = names[first] if first == then else f"{names[first]} then {names[then]}"
            found[seat]["paths"][piece == 4, path] += 1

    assert matches.turns is not None
    for turn in matches.turns[index]:
        roll(game, ruleset.packed, matches.seeds[index])
        before, seat = game.copy(), int(game["seat"])
        play_turn(game, ruleset.packed, turn, SILENT)
        own, direction = found[seat], int(turn["direction"])
        moves = 0
        for piece in range(5):
            start, end = (int(each["position"][seat, piece]) for each in (before, game))
            if start != end or before["midpoint"][seat, piece] != game["midpoint"][seat, piece]:
                moves += 1
                past = bool(before["midpoint"][seat, piece])
                life = lives.setdefault((seat, piece), Counter())
                for flag, _ in steps_made(start, end, past, direction):
                    life["past" if flag else "before", direction] += 1
            if 0 <= end < LOOP:
                own["stood"][end] += 1
        own["moved"] += moves > 0
        own["forward"] += moves > 0 and direction == FORWARD
        own["kept"] += int(game["store"][seat].sum())
        if (game["position"][seat] == ruleset.home).all() and not own["finishing_round"]:
            own["finishing_round"] = int(game["turns_taken"][seat])
        for other in set(range(4)) - {seat}:
            for piece in range(5):
                place = int(before["position"][other, piece])
                if place != YARD and game["position"][other, piece] == YARD:
                    found[other]["lost_at"][place] += 1
                    own["captured_at"][(place + 17 * (other - seat)) % LOOP] += 1
                    end_life(other, piece)
    for seat in range(4):
        found[seat]["left"] = int(game["store"][seat].sum())
        for piece in range(5):
            end_life(seat, piece)
    return found


@pytest.mark.parametrize("line_up", [LINE_UP, ("switch", "forward", "random", "guardian")])
def test_places_and_paths(line_up: tuple[str, ...]) -> None:
    matches = played(JOURNEY, line_up, 4)
    assert matches.turns is not None
    counted, _ = tally(JOURNEY, matches.seeds, matches.turns)
    for index in range(len(matches)):
        for seat, expected in enumerate(counted_again(matches, JOURNEY, index)):
            row = counted[index, seat]
            for name in ("kept", "moved", "forward", "finishing_round", "left"):
                assert row[name] == expected[name], (index, seat, name)
            for name in ("stood", "lost_at", "captured_at"):
                assert row[name].tolist() == [expected[name][at] for at in range(LOOP)], name
            paths = [[expected["paths"][noble, path] for path in PATHS] for noble in (False, True)]
            assert row["paths"].tolist() == paths, (index, seat)


def test_totals_after_each_round() -> None:
    ruleset = changed(JOURNEY, clock_seconds=310)  # 31 turns: the last round is not whole
    matches = played(ruleset, count=3)
    assert matches.turns is not None
    _, rounds = tally(ruleset, matches.seeds, matches.turns)
    assert rounds.shape == (3, 4, 8)
    for index, turns in enumerate(matches.turns):
        game = new_game(ruleset)
        for number, turn in enumerate(turns):
            roll(game, ruleset.packed, matches.seeds[index])
            play_turn(game, ruleset.packed, turn, SILENT)
            if number % 4 == 3 or number == len(turns) - 1:
                assert rounds[index, :, number // 4].tolist() == totals(game).tolist()


def test_the_number_of_threads_changes_nothing() -> None:
    matches = played(BRAWL, count=9)
    assert matches.turns is not None
    one, rounds = tally(BRAWL, matches.seeds, matches.turns, threads=1)
    two, same_rounds = tally(BRAWL, matches.seeds, matches.turns)
    assert all((one[name] == two[name]).all() for name in TALLY.names or ())
    assert (rounds == same_rounds).all()

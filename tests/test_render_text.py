"""Drawing as text, and turns in words."""

import re

import numpy as np
import pytest

from drawn_positions import JOURNEY, hand, played, yards
from positions import changed
from retinue.envs.game import board, engine
from retinue.envs.game.board import GUARDS, NOBLE, PIECES, SEATS, YARD
from retinue.envs.game.ruleset import Ruleset, load_ruleset
from retinue.envs.game.state import OVER, Record, empty_turn, new_game
from retinue.envs.render_text import LETTERS, PIECE_LETTERS, WIDTH, render_text, turn_in_words


def assert_every_piece_is_told(game: Record, ruleset: Ruleset) -> None:
    text = render_text(game, ruleset)
    _, board_part, rest = re.split(r"\n\n|  seat  ", text, maxsplit=2)  # without the headline
    without_yards = re.sub(r"Yard: ([GN][1-4]? ?)*-?", "", board_part)
    crowded = "\n".join(re.findall(r"^(?:Tile \S+|\w+'s Home path): .*(?:\n  .*)*", rest, re.M))
    shown = {
        (LETTERS.index(group[0]), PIECE_LETTERS.index(piece))
        for group in re.findall(r"[GRBY][1234N]+", without_yards + crowded)
        for piece in group[1:]
    }
    away = {
        (seat, piece)
        for seat, piece in np.ndindex(SEATS, PIECES)
        if game["position"][seat, piece] != YARD
    }
    assert shown == away
    yards = " ".join(re.findall(r"Yard: ((?:(?:G[1-4]|N) ?)*)", board_part)).split()
    assert len(yards) == SEATS * PIECES - len(away)
    assert all(len(line) <= WIDTH and line.isprintable() for line in text.splitlines())


@pytest.mark.parametrize("mode", ["journey", "brawl"])
def test_text_shows_every_piece(mode: str) -> None:
    ruleset = load_ruleset(mode)
    for turns in range(0, 181, 9):
        assert_every_piece_is_told(played(turns, turns, ruleset)[0], ruleset)


def test_text_shows_crowds_in_full() -> None:
    game = hand(position=[[7] * 5, [58] * 5, [41] * 5, [24, 24, 75, 68, 68]])
    assert_every_piece_is_told(game, JOURNEY)
    assert "Tile 8: G1234N, R1234N, B1234N, Y12" in render_text(game, JOURNEY)


def test_text_tells_scores_store_credits_and_places() -> None:
    game = hand(
        position=yards(green0=16, red4=75, blue1=70),
        midpoint=[[1, 0, 0, 0, 0], *[[0] * 5] * 3],
        progression=[[50, 0, 0, 0, 0], [0, 0, 0, 0, 200], *[[0] * 5] * 2],
        combat=[-4, 60, 0, 0],
        store=[[2, 0, 0, 0, 1, 0], *[[0] * 6] * 3],
        clock_seconds=605,
    )
    lines = render_text(game, JOURNEY).splitlines()
    rows = [line.split() for line in lines if re.match(r"[> ] [A-Z][a-z]+ ", line)]
    assert lines[0] == "Turn 1, clock 10:05: Green to roll"
    assert " ".join(rows[0]) == "> Green 46 50 -4 0 2/4 2 0 0 0 1 0 17* Yard Yard Yard Yard"
    assert " ".join(rows[1]) == "Red 260 200 60 0 2/4 0 0 0 0 0 0 Yard Yard Yard Yard Home"
    assert " ".join(rows[2]).endswith("Yard =3 Yard Yard Yard")
    assert len(rows) == SEATS


def test_text_numbers_tiles_for_the_seat_to_move_in_the_drafts_direction() -> None:
    game = rolled(hand(turns_taken=[1, 0, 0, 0]), 1, 2, 3, 4)
    turn = empty_turn()
    forward = render_text(game, JOURNEY, turn)
    turn["direction"] = board.BACKWARD
    backward = render_text(game, JOURNEY, turn)
    assert "Tile numbers are Red's, forward" in forward
    assert "Tile numbers are Red's, backward" in backward
    assert "1/69" in backward
    assert "1/69" not in forward
    assert render_text(hand(), JOURNEY, turn) == render_text(hand(), JOURNEY)  # nothing to draft


def test_text_tells_what_the_seat_to_move_may_choose() -> None:
    position = yards(green0=10, green1=75, green4=75)
    told = "Green holds 6 of 12 rolls, these dice included, and may move "
    game = hand(position=position, store=[[0, 2, 0, 0, 0, 0], *[[0] * 6] * 3], credits=[1, 2, 2, 2])
    assert "holds" not in render_text(game, JOURNEY)  # it is to roll
    lines = render_text(rolled(game, 1, 2, 3, 4), JOURNEY).splitlines()
    assert lines[0] == "Turn 1, clock 30:00: Green to choose, rolled 1 2 3 4"
    assert lines[1] == f"{told}G1, G3."
    game["credits"][0] = 2
    game["position"][0, NOBLE] = YARD
    assert f"{told}G1, G3, G4, Noble." in render_text(game, JOURNEY)


def test_text_tells_blockades() -> None:
    position = [[7, 7, 12, 13, 7], [58, 58, 58, 10, 10], [YARD] * 5, [68, 68, YARD, YARD, YARD]]
    text = render_text(hand(position=position), JOURNEY)
    assert "Blockades: 3 Red on 8, 2 Green on 8\n" in text
    assert "Blockades" not in render_text(hand(), JOURNEY)


def test_text_tells_the_last_move() -> None:
    game, turn, last = played(40, 3)
    assert last is not None
    mover = ("Green", "Red", "Blue", "Yellow")[last.game["seat"]]
    assert f"Last, {mover}: " in render_text(game, JOURNEY, turn, last)
    assert "Last, " not in render_text(game, JOURNEY, turn)


def rolled(game: Record, *dice: int) -> Record:
    engine.set_dice(game, JOURNEY, list(dice))
    return game


def test_a_turn_in_words() -> None:
    position = yards(green0=10, green1=10, green4=0, red0=67, red1=67, blue2=48)
    game = rolled(hand(position=position, store=[[0, 0, 2, 0, 0, 1], *[[0] * 6] * 3]), 5, 1, 4, 4)
    turn = empty_turn()
    turn["rolls"][0, [2, 5]] = 2, 1  # 3+3+6: stopped by Red's two Guards, 6 tiles ahead
    turn["rolls"][1, 3] = 1
    turn["noble_steps"] = 2
    before = "forward: Noble to 3 (2), G1 to 16 (3+3+6, 7 blocked), G2 to 15 (4); "
    assert turn_in_words(game, JOURNEY, turn).startswith(before + "captures Blue G3; ")
    turn["noble_after"] = 1
    assert ", Noble to 3 (2)" in turn_in_words(game, JOURNEY, turn)
    assert "G1 to 67 " in turn_in_words(game, JOURNEY, turn, (1, board.FORWARD))
    assert turn_in_words(game, JOURNEY, empty_turn()) == "forward: nothing moves; +0"
    turn["noble_steps"] = 9
    assert turn_in_words(game, JOURNEY, turn) == "Noble steps must be 0 to 6, not 9"


@pytest.mark.parametrize(("start", "number"), [(YARD, 1), (3, 69)])
def test_the_entering_tile_has_two_numbers_backward(start: int, number: int) -> None:
    game = rolled(hand(position=yards(green0=start)), 1, 2, 3, 4)
    turn = empty_turn()
    turn["direction"] = board.BACKWARD
    turn["rolls"][0, 0 if start == YARD else 2] = 1
    assert f"G1 to {number} " in turn_in_words(game, JOURNEY, turn)


@pytest.mark.parametrize("tiles", [1, 3, 20])
def test_text_shows_every_piece_on_home_paths_of_other_lengths(tiles: int) -> None:
    ruleset = JOURNEY.model_copy(update={"home_path_tiles": tiles})
    game = new_game(ruleset)
    game["position"][:, :GUARDS] = board.HOME_PATH + np.minimum(range(GUARDS), tiles - 1)
    assert_every_piece_is_told(game, ruleset)
    game["position"][:, NOBLE] = ruleset.home
    assert_every_piece_is_told(game, ruleset)


def test_the_end_names_the_winner() -> None:
    game = played(180, 1)[0]
    assert game["phase"] == OVER
    assert re.search(r": (Green|Red|Blue|Yellow) wins with \d+ points", render_text(game, JOURNEY))
    game["combat"][:] = -game["progression"].sum(axis=1) - game["bonus"]
    shared = "Green and Red, Blue, Yellow share the first place with 0 points"
    assert shared in " ".join(render_text(game, JOURNEY).split())


def test_large_numbers_in_the_table_stay_apart() -> None:
    rules = changed(JOURNEY, max_credits=100, start_credits=100)
    game = new_game(rules)
    game["progression"][:, 0] = 12345
    game["combat"], game["bonus"] = -23456, 34567
    row = next(line for line in render_text(game, rules).splitlines() if line.startswith("> Green"))
    assert row.split()[:7] == [">", "Green", "23456", "12345", "-23456", "34567", "100/100"]

"""Drawing as a picture and in a window."""

import itertools
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from drawn_positions import DOCS, DOCS_PICTURES, JOURNEY, docs_picture, hand, played, yards
from retinue.envs.game import board, engine
from retinue.envs.game.board import GUARDS, NOBLE, PIECES, SEATS, YARD
from retinue.envs.game.events import SILENT
from retinue.envs.game.state import OVER, empty_turn, new_game
from retinue.envs.render import BoardPicture, LastMove, Window, render_text
from retinue.envs.render_layout import OVERLAP, SEAT_COLOURS, spread


@pytest.fixture(scope="module")
def picture() -> BoardPicture:
    return BoardPicture(JOURNEY)


def in_a_new_python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# Without pygame, without a display


def test_only_pictures_need_pygame() -> None:
    told = in_a_new_python(
        """
import importlib.abc, sys
class NoPygame(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "pygame":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, NoPygame())
from retinue.envs import render
from retinue.envs.game.ruleset import load_ruleset
from retinue.envs.game.state import new_game
rules = load_ruleset("journey")
assert "GREEN" in render.render_text(new_game(rules), rules)
for kind in (render.BoardPicture, render.Window):
    try:
        kind(rules)
    except ImportError as error:
        print(error)
"""
    )
    assert told.count("pip install retinue[render]") == 2


def test_a_picture_starts_neither_display_nor_sound_and_prints_nothing() -> None:
    told = in_a_new_python(
        """
from retinue.envs.render import BoardPicture
from retinue.envs.game.ruleset import load_ruleset
from retinue.envs.game.state import new_game
import sys
assert "pygame" not in sys.modules
rules = load_ruleset("journey")
BoardPicture(rules).draw(new_game(rules))
import pygame
assert not pygame.display.get_init()
assert "pygame.mixer" not in sys.modules or pygame.mixer.get_init() is None
"""
    )
    assert told == ""


# The picture


@pytest.mark.parametrize(("size", "height"), [(360, 400), (720, 800), (1080, 1200)])
def test_picture_is_an_array_with_a_bar_below_the_board(size: int, height: int) -> None:
    drawn = BoardPicture(JOURNEY, size).draw(new_game(JOURNEY))
    assert drawn.shape == (height, size, 3)
    assert drawn.dtype == np.uint8
    assert drawn.flags.c_contiguous


def test_too_small_a_picture_is_refused() -> None:
    with pytest.raises(ValueError, match="size: 100 is below 360"):
        BoardPicture(JOURNEY, 100)


def test_a_drawing_is_not_changed_by_the_next(picture: BoardPicture) -> None:
    first = picture.draw(new_game(JOURNEY))
    kept = first.copy()
    picture.draw(*played(60, 5))
    assert np.array_equal(first, kept)
    assert np.array_equal(picture.draw(new_game(JOURNEY)), kept)


MIDPOINTS = [[0] * 5, [0, 0, 1, 0, 0], [0] * 5, [0] * 5]
CHANGES: dict[str, Any] = {
    "position": yards(red2=21),
    "midpoint": MIDPOINTS,
    "store": [[0, 1, 0, 0, 0, 0], *[[0] * 6] * 3],
    "credits": [2, 2, 2, 3],
    "combat": [0, -5, 0, 0],
    "bonus": [0, 0, 50, 0],
    "progression": [[10, 0, 0, 0, 0], *[[0] * 5] * 3],
    "clock_seconds": 90,
    "turns_taken": [1, 0, 0, 0],
}


@pytest.mark.parametrize("field", CHANGES)
def test_every_change_of_the_state_is_seen(picture: BoardPicture, field: str) -> None:
    before = {"position": yards(red2=20)}
    plain = picture.draw(hand(**before))
    assert not np.array_equal(plain, picture.draw(hand(**before | {field: CHANGES[field]})))


def test_the_piece_number_draft_and_last_move_are_seen(picture: BoardPicture) -> None:
    game, turn, last = played(60, 5)
    drawn = [picture.draw(game), picture.draw(game, turn), picture.draw(game, None, last)]
    drawn += [
        picture.draw(hand(position=yards(red0=9))),
        picture.draw(hand(position=yards(red1=9))),
    ]
    for one, other in itertools.combinations(drawn, 2):
        assert not np.array_equal(one, other)


SCALING_ERROR = 4
"""How far smooth scaling may be off the colour drawn."""
PLACES = (0, 1, 7, 17, 34, 63, 67, 68, 74)


def count_of(colour: tuple[int, int, int], drawn: Any, box: tuple[int, int, int, int]) -> int:
    x, y, width, height = box
    apart = np.abs(drawn[y : y + height, x : x + width].astype(int) - colour).max(axis=-1)
    return int((apart <= SCALING_ERROR).sum())


@pytest.mark.parametrize("position", PLACES)
@pytest.mark.parametrize("seat", range(SEATS))
def test_a_piece_has_its_seats_colour_at_its_place(
    picture: BoardPicture, seat: int, position: int
) -> None:
    layout = picture.layout
    if position < board.LOOP:
        box = layout.tiles[board.tile(seat, position)]
    else:
        box = layout.path_tile(seat, position - board.HOME_PATH, JOURNEY.home_path_tiles)
    here = picture.draw(hand(position=yards(**{f"{board.SEAT_NAMES[seat]}1": position})))
    empty = picture.draw(new_game(JOURNEY))
    found = [count_of(colour, here, box) for colour in SEAT_COLOURS]
    assert [count > 100 for count in found] == [other == seat for other in range(SEATS)]
    assert sum(count_of(colour, empty, box) for colour in SEAT_COLOURS) == 0


@pytest.mark.parametrize("seat", range(SEATS))
def test_yard_and_home_show_who_is_there(picture: BoardPicture, seat: int) -> None:
    layout, colour = picture.layout, SEAT_COLOURS[seat]
    name = board.SEAT_NAMES[seat]
    out = picture.draw(hand(position=yards(**{f"{name}3": JOURNEY.home})))
    start = picture.draw(new_game(JOURNEY))
    for slot, drawn, other in (
        (layout.yard_slot(seat, 3), start, out),
        (layout.home_slot(seat, 3), out, start),
    ):
        box = (slot[0] - 12, slot[1] - 12, 24, 24)
        assert count_of(colour, drawn, box) > 50
        assert count_of(colour, other, box) == 0


def test_drawing_changes_no_record(picture: BoardPicture) -> None:
    for turns in (1, 40, 80, 179, 180):
        game, turn, last = played(turns, turns)
        assert last is not None
        records = (game, turn, *last)
        before = [record.tobytes() for record in records]
        picture.draw(game, turn, last)
        render_text(game, JOURNEY, turn)
        assert [record.tobytes() for record in records] == before


def test_an_illegal_draft_is_drawn_with_its_reason(picture: BoardPicture) -> None:
    game, turn, _ = played(40, 2)
    turn["rolls"][0, 5] = 100
    assert not np.array_equal(picture.draw(game), picture.draw(game, turn))


@pytest.mark.parametrize("tiles", [1, 3, 20])
def test_home_paths_of_other_lengths_are_drawn(tiles: int) -> None:
    ruleset = JOURNEY.model_copy(update={"home_path_tiles": tiles})
    game = new_game(ruleset)
    game["position"][:, :GUARDS] = board.HOME_PATH + tiles - 1
    game["position"][:, NOBLE] = ruleset.home
    drawn = BoardPicture(ruleset).draw(game)
    assert not np.array_equal(drawn, BoardPicture(ruleset).draw(new_game(ruleset)))


@pytest.mark.parametrize("count", range(1, 21))
@pytest.mark.parametrize("box", [(43.0, 29.0), (29.0, 43.0), (60.0, 29.0)])
def test_pieces_on_one_tile_stay_on_it_and_apart(count: int, box: tuple[float, float]) -> None:
    diameter, middles = spread(count, *box, 25)
    assert len(middles) == count
    for middle in middles:
        assert all(
            abs(m) + diameter / 2 <= side / 2 + 1e-9 for m, side in zip(middle, box, strict=True)
        )
    for one, other in itertools.combinations(middles, 2):
        assert np.hypot(*np.subtract(one, other)) >= OVERLAP * diameter - 1e-9


# Machado, Oliveira and Fernandes (2009), full severity.
EYES = {
    "full colour": np.eye(3),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}


def cielab(linear: Any) -> Any:
    """CIELAB of a linear sRGB colour, white point D65."""
    to_xyz = np.array(
        [
            [0.4124564, 0.3575761, 0.1804375],
            [0.2126729, 0.7151522, 0.0721750],
            [0.0193339, 0.1191920, 0.9503041],
        ]
    )
    xyz = to_xyz @ np.clip(linear, 0, 1) / (0.95047, 1.0, 1.08883)
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("eye", EYES)
def test_seat_colours_are_told_apart_by_every_eye(eye: str) -> None:
    shares = np.array(SEAT_COLOURS) / 255
    linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
    seen = [cielab(EYES[eye] @ colour) for colour in linear]
    for one, other in itertools.combinations(seen, 2):
        assert np.linalg.norm(one - other) > 25  # a difference of 2 is just noticeable


def test_a_captured_piece_is_circled_in_its_yard(picture: BoardPicture) -> None:
    before = hand(position=yards(green0=10, blue2=48, red1=30))
    engine.set_dice(before, JOURNEY, [4, 1, 1, 1])
    turn = empty_turn()
    turn["rolls"][0, 3] = 1
    after = before.copy()
    assert engine.play(after, JOURNEY.packed, turn, SILENT) == engine.LEGAL
    assert after["position"][2, 2] == YARD
    plain, drawn = picture.draw(after), picture.draw(after, None, LastMove(before, turn))
    for seat, piece in np.ndindex(SEATS, PIECES):
        x, y = picture.layout.yard_slot(seat, piece)
        box = (slice(y - 15, y + 15), slice(x - 15, x + 15))
        assert np.array_equal(plain[box], drawn[box]) == ((seat, piece) != (2, 2))


def test_a_long_last_move_takes_two_lines_and_none_is_cut(picture: BoardPicture) -> None:
    words = "rolled 1 1 2 3 6; backward: G1 to 48 (1+3), G2 to 46 (1), G4 to 39 (2+6), Noble to 55"
    lines = picture._wrapped(words, 400, 2)
    assert len(lines) == 2
    assert " ".join(lines) == words
    assert all(picture.art.width(line, 11.5) <= 400 for line in lines)
    assert picture._wrapped(words, 900, 2) == [words]
    assert picture._wrapped(words, 400, 1)[0].endswith("…")


def test_the_end_of_a_match_is_drawn(picture: BoardPicture) -> None:
    game, _, last = played(180, 1)
    assert game["phase"] == OVER
    won = picture.draw(game, None, last)
    game["combat"][:] = -game["progression"].sum(axis=1) - game["bonus"]  # all share the place
    assert not np.array_equal(won, picture.draw(game, None, last))


def fastest(action: Callable[[], object], times: int) -> float:
    spent = []
    for _ in range(times):
        start = time.perf_counter()
        action()
        spent.append(time.perf_counter() - start)
    return min(spent)


def test_the_board_is_drawn_once_and_reused(picture: BoardPicture) -> None:
    game, turn, last = played(60, 5)
    first = fastest(lambda: BoardPicture(JOURNEY).draw(game, turn, last), 2)
    assert first > 5 * fastest(lambda: picture.draw(game, turn, last), 20)


@pytest.mark.parametrize("name", DOCS_PICTURES)
def test_docs_pictures_are_what_is_drawn(name: str) -> None:
    import pygame

    drawn = docs_picture(name).astype(int)
    kept = pygame.surfarray.array3d(pygame.image.load(DOCS / name)).swapaxes(0, 1)
    assert kept.shape == drawn.shape
    assert np.abs(kept - drawn).mean() < 0.3, "run `python tests/drawn_positions.py`"
    assert (DOCS / name).stat().st_size < 150_000


# The window


@pytest.fixture
def window(monkeypatch: pytest.MonkeyPatch) -> Iterator[Window]:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    window = Window(JOURNEY, 360, fps=0)
    yield window
    window.close()


def test_window_opens_at_the_first_drawing_and_shows_the_picture(window: Window) -> None:
    import pygame

    assert not pygame.display.get_init()
    game, turn, last = played(20, 1)
    window.draw(game, turn, last)
    screen = pygame.display.get_surface()
    assert screen is not None
    shown = pygame.surfarray.array3d(screen).swapaxes(0, 1)
    assert np.array_equal(shown, BoardPicture(JOURNEY, 360).draw(game, turn, last))
    window.close()
    assert not pygame.display.get_init()


def test_window_opens_again_when_another_one_has_closed_the_display(window: Window) -> None:
    import pygame

    other, game = Window(JOURNEY, 360, fps=0), new_game(JOURNEY)
    window.draw(game)
    other.draw(game)
    other.close()
    window.pump()
    window.draw(game)
    assert pygame.display.get_surface() is not None
    assert not window.closed


def test_window_that_its_user_closed_ignores_drawing(window: Window) -> None:
    import pygame

    window.pump()  # before it is open
    window.draw(new_game(JOURNEY))
    assert not window.closed
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    window.pump()
    assert window.closed
    window.draw(new_game(JOURNEY))
    assert not pygame.display.get_init()


def test_window_limits_its_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    window, game = Window(JOURNEY, 360, fps=20), new_game(JOURNEY)
    window.draw(game)
    start = time.perf_counter()
    for _ in range(4):
        window.draw(game)
    assert time.perf_counter() - start > 0.9 * 4 / 20
    window.close()

"""Recorded matches as pictures and videos, read back with other programs than wrote them."""

import itertools
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import imageio.v3
import imageio_ffmpeg
import numpy as np
import pytest

from drawn_positions import random_turn
from retinue import cli
from retinue.envs.game.record import MatchReplay, Recorder, RecordError
from retinue.envs.game.ruleset import load_ruleset
from retinue.envs.game.state import OVER
from retinue.envs.render import BoardPicture
from retinue.evaluation import video
from retinue.evaluation.video import VideoError, positions, write_frame, write_video

SIZE = 360
TURNS = 9
KINDS = ("gif", "mp4")
PALETTE_ERROR = 24
"""How far 255 colours may be off in a channel, but for one pixel in a thousand."""
CODEC_ERROR = 5.0
"""How far an MP4 may be off on average; small coloured text suffers from halved chroma."""


def record(path: Path, mode: str = "journey", turns: int = 10**9) -> Path:
    """Record a match of random turns, or its beginning."""
    recorder, chance = Recorder(load_ruleset(mode), ["random"] * 4, seed=7), random.Random(7)
    while recorder.game["phase"] != OVER and recorder.game["turn"] < turns:
        recorder.roll()
        recorder.play(random_turn(recorder.game, recorder.ruleset, chance))
    recorder.save(path)
    return path


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> MatchReplay:
    return MatchReplay(record(tmp_path_factory.mktemp("records") / "short.jsonl", turns=TURNS))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder to write to."""
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def ignore(done: int, total: int) -> None:
    pass


def drawn(replay: MatchReplay, size: int = SIZE) -> list[Any]:
    picture = BoardPicture(replay.ruleset, size)
    return [picture.draw(game, None, last) for game, last in positions(replay)]


def read_mp4(path: Path) -> tuple[str, bytes]:
    """Return what ffmpeg tells of a video, and its frames one after the other."""
    words = [imageio_ffmpeg.get_ffmpeg_exe(), "-i", str(path), "-f", "rawvideo"]
    done = subprocess.run(
        [*words, "-pix_fmt", "rgb24", "-"], capture_output=True, check=True, timeout=60
    )
    return done.stderr.decode(), done.stdout


# --- Positions


def test_positions_are_the_start_and_those_after_each_turn(short: MatchReplay) -> None:
    seen = [(game.copy(), last) for game, last in positions(short)]
    assert [int(game["turn"]) for game, _ in seen] == list(range(TURNS + 1))
    assert seen[0][1] is None
    for (before, _), (_, last) in itertools.pairwise(seen):
        assert last is not None
        assert last.game["turn"] == before["turn"]


def test_the_move_led_from_the_position_before_with_its_dice_rolled(short: MatchReplay) -> None:
    for replayed, (_, last) in zip(short, list(positions(short))[1:], strict=True):
        assert last is not None
        shown = last.game["rolled"][: last.game["dice"]].tolist()
        assert shown == list(replayed.turn.rolled)
        assert last.turn == replayed.turn.to_turn()


# --- Files


def test_gif_has_a_frame_for_each_position(short: MatchReplay, folder: Path) -> None:
    told: list[tuple[int, int]] = []
    out = folder / "match.gif"
    write_video(short, out, 4, SIZE, lambda *done: told.append(done))
    assert told == [(done, TURNS + 1) for done in range(1, TURNS + 2)]
    frames = imageio.v3.imread(out, index=None)
    wanted = drawn(short)
    assert frames.shape == (TURNS + 1, *wanted[0].shape)
    for frame, want in zip(frames, wanted, strict=True):
        off = np.abs(frame.astype(int) - want).max(axis=-1)
        assert off.mean() < 2.0
        assert (off > PALETTE_ERROR).mean() < 0.001
    shown = [imageio.v3.immeta(out, index=index)["duration"] for index in range(TURNS + 1)]
    assert shown == [250] * TURNS + [1000 * video.HOLD]
    assert imageio.v3.immeta(out, index=0)["loop"] == 0
    assert list(folder.iterdir()) == [out]


def test_equal_frames_of_a_gif_are_kept(short: MatchReplay, folder: Path) -> None:
    picture, out = drawn(short)[-1], folder / "still.gif"
    frames = iter([(picture, 0.5), (picture, 0.5), (picture, 0.5)])
    video._write_gif(out, frames, video._palette(iter([picture])))
    assert imageio.v3.improps(out, index=None).n_images == 3
    assert np.ptp(imageio.v3.imread(out, index=None), axis=0).max() == 0


def test_gif_of_a_match_without_turns(folder: Path) -> None:
    start = MatchReplay(record(folder / "start.jsonl", turns=0))
    write_video(start, folder / "start.gif", 3, SIZE, ignore)
    assert imageio.v3.improps(folder / "start.gif", index=None).n_images == 1


def test_mp4_plays_in_browsers_and_shows_the_match(short: MatchReplay, folder: Path) -> None:
    out = folder / "a:match.MP4"  # to ffmpeg a relative name might begin with a protocol
    write_video(short, out, 4, SIZE + 1, ignore)
    wanted = drawn(short, SIZE + 2)
    height, width, _ = wanted[0].shape
    told, shown = read_mp4(out)
    assert "Video: h264" in told
    assert f"yuv420p(tv, bt709, progressive), {width}x{height}" in told
    assert " 4 fps" in told
    frames = np.frombuffer(shown, np.uint8).reshape(-1, height, width, 3)
    assert len(frames) == TURNS + 4 * video.HOLD
    for frame, want in zip(frames, wanted, strict=False):
        assert np.abs(frame.astype(int) - want).mean() < CODEC_ERROR
    assert np.abs(frames[-1].astype(int) - wanted[-1]).mean() < CODEC_ERROR
    head = out.read_bytes()[:4096]
    assert b"moov" in head  # it can be played while it is being loaded
    assert list(folder.iterdir()) == [out]


@pytest.mark.parametrize("turns", [0, 4, TURNS])
def test_a_frame_is_the_picture_of_the_position(
    short: MatchReplay, folder: Path, turns: int
) -> None:
    write_frame(short, turns, folder / "frame.png", SIZE)
    kept = imageio.v3.imread(folder / "frame.png")
    assert np.array_equal(kept, drawn(short)[turns])


@pytest.mark.parametrize("mode", ["journey", "brawl"])
def test_whole_matches_are_shown_and_are_small(folder: Path, mode: str) -> None:
    replay, out = MatchReplay(record(folder / "match.jsonl", mode)), folder / "match.gif"
    write_video(replay, out, 3, SIZE, ignore)
    assert replay.result is not None
    assert imageio.v3.improps(out, index=None).n_images == sum(1 for _ in replay) + 1
    assert out.stat().st_size < 2_000_000


def test_no_display_is_needed(
    short: MatchReplay, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pygame

    for name in ("DISPLAY", "SDL_VIDEODRIVER", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    write_frame(short, 1, folder / "frame.png", SIZE)
    assert not pygame.display.get_init()


# --- What leaves nothing


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_interrupting_leaves_what_was_there(
    short: MatchReplay, folder: Path, kind: str, error: type[BaseException]
) -> None:
    def stop(done: int, total: int) -> None:
        if done == 3:
            raise error

    out = folder / f"match.{kind}"
    with pytest.raises(error):
        write_video(short, out, 3, SIZE, stop)
    assert list(folder.iterdir()) == []
    out.write_text("precious")
    with pytest.raises(error):
        write_video(short, out, 3, SIZE, stop)
    assert list(folder.iterdir()) == [out]
    assert out.read_text() == "precious"


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_record_leaves_nothing(short: MatchReplay, folder: Path, kind: str) -> None:
    lines = short.path.read_text().splitlines(keepends=True)
    damaged = folder.parent / "damaged.jsonl"
    damaged.write_text("".join(lines[:-1]) + lines[-1].replace('"turn": 8', '"turn": 9', 1))
    with pytest.raises(RecordError, match=f"line {TURNS + 1}: "):
        write_video(MatchReplay(damaged), folder / f"match.{kind}", 3, SIZE, ignore)
    with pytest.raises(RecordError, match=f"line {TURNS + 1}: "):
        write_frame(MatchReplay(damaged), TURNS, folder / "frame.png", SIZE)
    assert list(folder.iterdir()) == []
    write_frame(MatchReplay(damaged), TURNS - 1, folder / "frame.png", SIZE)  # fits so far


def unreadable(path: str) -> Any:
    raise RuntimeError("moov atom not found")


@pytest.mark.parametrize("left", [lambda path: (1, 1.0), unreadable], ids=["less", "no video"])
def test_a_video_that_ffmpeg_did_not_finish_leaves_nothing(
    short: MatchReplay, folder: Path, monkeypatch: pytest.MonkeyPatch, left: Any
) -> None:
    monkeypatch.setattr(imageio_ffmpeg, "count_frames_and_secs", left)
    with pytest.raises(VideoError, match="ffmpeg has not written the whole video"):
        write_video(short, folder / "match.mp4", 3, SIZE, ignore)
    assert list(folder.iterdir()) == []


def test_ffmpeg_s_own_error_is_one_short_line(
    short: MatchReplay, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: Any, **options: Any) -> Any:
        yield
        raise OSError("[Errno 32] Broken pipe\n\nFFMPEG COMMAND:\nffmpeg -y ...")

    monkeypatch.setattr(imageio_ffmpeg, "write_frames", full)
    with pytest.raises(VideoError, match=r"^ffmpeg has not written the whole video[^\n]*$"):
        write_video(short, folder / "match.mp4", 3, SIZE, ignore)
    assert list(folder.iterdir()) == []


def test_a_record_is_not_replaced_by_its_video(short: MatchReplay, folder: Path) -> None:
    copy = folder / "match.gif"
    copy.write_bytes(short.path.read_bytes())
    with pytest.raises(VideoError, match=r"match\.gif: is the record itself"):
        write_video(MatchReplay(copy), copy, 3, SIZE, ignore)
    assert copy.read_bytes() == short.path.read_bytes()


Refused = Callable[[MatchReplay, Path], None]
REFUSED: dict[str, tuple[Refused, str]] = {
    "kind of video": (
        lambda replay, out: write_video(replay, out / "a.avi", 3, SIZE, ignore),
        r"a\.avi: the name must end in \.gif or \.mp4",
    ),
    "no kind": (
        lambda replay, out: write_video(replay, out / "gif", 3, SIZE, ignore),
        "the name must end in",
    ),
    "kind of picture": (
        lambda replay, out: write_frame(replay, 0, out / "a.gif", SIZE),
        r"a\.gif: the name must end in \.png",
    ),
    "too late": (
        lambda replay, out: write_frame(replay, TURNS + 1, out / "a.png", SIZE),
        rf"frame {TURNS + 1}: \S+ has {TURNS} turns, so use 0 to {TURNS}",
    ),
    "before the start": (
        lambda replay, out: write_frame(replay, -1, out / "a.png", SIZE),
        "frame -1: ",
    ),
    "no folder": (
        lambda replay, out: write_video(replay, out / "no" / "a.gif", 3, SIZE, ignore),
        "there is no folder .*no",
    ),
    "a folder": (
        lambda replay, out: write_frame(replay, 0, out.with_suffix(".png"), SIZE),
        r"out\.png: is a folder",
    ),
    "too small": (
        lambda replay, out: write_video(replay, out / "a.gif", 3, 100, ignore),
        "size: 100 is not 360 to 2160 pixels",
    ),
    "too large": (
        lambda replay, out: write_frame(replay, 0, out / "a.png", 10**6),
        "size: 1000000 is not",
    ),
    "too slow": (
        lambda replay, out: write_video(replay, out / "a.gif", 0, SIZE, ignore),
        "fps: 0 is not 0.1 to 50",
    ),
    "too fast": (
        lambda replay, out: write_video(replay, out / "a.mp4", 51, SIZE, ignore),
        "fps: 51 is not",
    ),
    "no number": (
        lambda replay, out: write_video(replay, out / "a.mp4", float("nan"), SIZE, ignore),
        "fps: nan is not",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_drawn_is_refused(short: MatchReplay, folder: Path, case: str) -> None:
    draw, message = REFUSED[case]
    folder.with_suffix(".png").mkdir()
    with pytest.raises((VideoError, OSError), match=message):
        draw(short, folder)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("missing", ["pygame", "PIL.GifImagePlugin", "imageio_ffmpeg"])
def test_missing_libraries_are_named_before_any_work(
    short: MatchReplay, folder: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.setattr(MatchReplay, "__iter__", None)
    kind = "mp4" if missing == "imageio_ffmpeg" else "gif"
    with pytest.raises(VideoError, match=r"pip install retinue\[video\]"):
        write_video(short, folder / f"match.{kind}", 3, SIZE, ignore)


# --- The command


def run(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str, str]:
    capsys.readouterr()
    code = cli.main(["replay", *(str(word) for word in words)])
    return code, *capsys.readouterr()


def test_the_command_draws(
    short: MatchReplay, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = folder / "match.gif"
    assert run(capsys, short.path, "--video", made, "--fps", "2", "--size", "360") == (0, "", "")
    assert imageio.v3.improps(made, index=None).shape == (TURNS + 1, 400, 360, 3)
    assert imageio.v3.immeta(made, index=0)["duration"] == 500
    assert run(capsys, short.path, "--frame", "3", folder / "3.png") == (0, "", "")
    assert np.array_equal(imageio.v3.imread(folder / "3.png"), drawn(short, 720)[3])


def test_the_command_says_in_a_line_what_it_cannot_draw(
    short: MatchReplay, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, short.path, "--video", folder / "a.avi")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.endswith("a.avi: the name must end in .gif or .mp4\n")
    code, _, err = run(capsys, short.path, "--frame", "99", folder / "a.png")
    assert (code, err.count("\n")) == (2, 1)
    assert "so use 0 to 9" in err
    code, _, err = run(capsys, short.path, "--verify", "--video", folder / "a.gif")
    assert (code, err.count("\n")) == (2, 1)
    assert "give one of --verify, --video and --frame" in err
    for words in (
        ("--fps", "4"),
        ("--size", "360"),
        ("--frame", "1", folder / "a.png", "--fps", "4"),
    ):
        code, _, err = run(capsys, short.path, *words)
        assert (code, err.count("\n")) == (2, 1)
        assert "--fps goes with --video, --size with --video or --frame" in err
    damaged = folder.parent / "damaged.jsonl"
    damaged.write_text(short.path.read_text()[:-10])
    code, _, err = run(capsys, damaged, "--video", folder / "a.gif")
    assert (code, err.count("\n")) == (1, 1)
    assert list(folder.iterdir()) == []


def test_the_command_shows_its_progress(
    short: MatchReplay,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("retinue.evaluation.progress.MOMENT", 0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    err = run(capsys, short.path, "--video", folder / "a.gif", "--size", "360")[2]
    assert "turns" in err
    assert f"{TURNS + 1}/{TURNS + 1}" in err

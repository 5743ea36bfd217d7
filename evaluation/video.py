"""Recorded matches as pictures: one position as PNG, or all of them as GIF or MP4.

The libraries that write files are imported where they are used, so that the module itself imports
without them. Frames are drawn one by one as they are written; none is kept.
"""

import contextlib
import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from retinue.envs.game import engine
from retinue.envs.game.files import check_writable, replacing
from retinue.envs.game.record import MatchReplay
from retinue.envs.game.state import Record
from retinue.envs.render import BoardPicture, LastMove
from retinue.envs.render_art import load_pygame
from retinue.envs.render_layout import MIN_SIZE

Pixels: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]
"""A picture ``(height, width, 3)``, or one of palette indices ``(height, width)``."""
Frame: TypeAlias = tuple[Pixels, float]
"""A picture and the seconds that it is shown."""

SLOWEST: Final = 0.1
FASTEST: Final = 50.0
"""The shortest time a GIF can show a frame is 2 hundredths of a second."""
HOLD: Final = 3.0
"""Seconds that the last frame is shown at least."""
MAX_SIZE: Final = 2160
SAMPLES: Final = 16
"""About how many frames a GIF's palette is made from."""
CLEAR: Final = 255
"""The palette index that leaves a pixel of a GIF as it is; the others are colours."""
QUALITY: Final = 6
"""Of an MP4, 1 to 10."""
COLOURS: Final = "range=tv:color_primaries=bt709:color_trc=bt709:colorspace=bt709"
"""What an MP4 says of its colours; without it players guess, by the picture's size."""
KEYFRAMES: Final = 30
"""Frames of an MP4 from which playing can start are at most so far apart."""
UNFINISHED: Final = "ffmpeg has not written the whole video: is there room for it?"


class VideoError(ValueError):
    """A picture or video that cannot be made; says why and what would be right."""


def positions(replay: MatchReplay) -> Iterator[tuple[Record, LastMove | None]]:
    """Yield the start of a match and the position after each turn, with the move that led there.

    The records are valid until the next are asked for.

    Raises:
        RecordError: at the first line that does not fit.
    """
    before = replay.start.copy()
    yield before, None
    for replayed in replay:
        engine.set_dice(before, replay.ruleset, list(replayed.turn.rolled))
        yield replayed.game, LastMove(before, replayed.turn.to_turn())
        before = replayed.game.copy()


def write_frame(replay: MatchReplay, turns: int, out: Path, size: int) -> None:
    """Draw one position of a match as a PNG file, whole or not at all.

    Args:
        replay: the match.
        turns: after how many turns; 0 is the start.
        out: the file.
        size: width of the picture in pixels.

    Raises:
        VideoError: there are not so many turns, the name does not end in ``.png`` or is the
            record's, the size is out of range, or a library is missing.
        RecordError: a line up to that turn does not fit.
        OSError: the file cannot be written.
    """
    _check(replay, out, (".png",), size)
    image = _load("PIL.Image")
    number = 0
    for number, (game, last) in enumerate(positions(replay)):
        if number == turns:
            pixels = BoardPicture(replay.ruleset, size).draw(game, None, last)
            with replacing(out) as draft:
                image.fromarray(pixels).save(draft, format="PNG", optimize=True)
            return
    raise VideoError(f"frame {turns}: {replay.path} has {number} turns, so use 0 to {number}")


def write_video(
    replay: MatchReplay,
    out: Path,
    fps: float,
    size: int,
    on_progress: Callable[[int, int], None],
) -> None:
    """Write a match as a video, whole or not at all: its start and the position after each turn.

    Args:
        replay: the match; it is replayed to the end before anything is written.
        out: the file, ``.gif`` or ``.mp4``.
        fps: positions a second.
        size: width in pixels; that of an MP4 is made even.
        on_progress: is told how many positions of how many are written.

    Raises:
        VideoError: the file's name, ``fps`` or ``size`` will not do, a library is missing, or the
            video could not be encoded.
        RecordError: a line does not fit.
        OSError: the file cannot be written.
    """
    suffix = _check(replay, out, (".gif", ".mp4"), size)
    if not SLOWEST <= fps <= FASTEST:
        raise VideoError(f"fps: {fps:g} is not {SLOWEST:g} to {FASTEST:g}")
    _load("PIL.GifImagePlugin" if suffix == ".gif" else "imageio_ffmpeg")
    turns = sum(1 for _ in replay)
    picture = BoardPicture(replay.ruleset, size + size % 2 if suffix == ".mp4" else size)

    def frames() -> Iterator[Frame]:
        for number, (game, last) in enumerate(positions(replay)):
            seconds = 1 / fps if number < turns else max(HOLD, 1 / fps)
            yield picture.draw(game, None, last), seconds
            on_progress(number + 1, turns + 1)

    with replacing(out) as draft:
        if suffix == ".gif":
            step = -(-turns // SAMPLES) or 1
            samples = (p for n, p in enumerate(positions(replay)) if n % step == 0 or n == turns)
            palette = _palette(picture.draw(game, None, last) for game, last in samples)
            _write_gif(draft, frames(), palette)
        else:
            _write_mp4(draft, frames(), picture.layout.width, picture.layout.height, fps)


def _check(replay: MatchReplay, out: Path, suffixes: tuple[str, ...], size: int) -> str:
    """Return the kind of file that is asked for, in small letters."""
    suffix = out.suffix.lower()
    if suffix not in suffixes:
        raise VideoError(f"{out}: the name must end in {' or '.join(suffixes)}")
    if not MIN_SIZE <= size <= MAX_SIZE:
        raise VideoError(f"size: {size} is not {MIN_SIZE} to {MAX_SIZE} pixels")
    if out.exists() and out.samefile(replay.path):
        raise VideoError(f"{out}: is the record itself")
    check_writable(out)
    return suffix


def _load(name: str) -> Any:
    """Return a module that writes files, having made sure that pygame is there too."""
    try:
        load_pygame()
        return importlib.import_module(name)
    except ImportError as error:
        raise VideoError(
            "pictures and videos need libraries that are not installed: pip install retinue[video]"
        ) from error


# --- GIF


def _palette(pictures: Iterator[Pixels]) -> Any:
    """Return a Pillow image whose palette is made for the pictures, its last index left free."""
    image = _load("PIL.Image")
    colours = np.concatenate([_weighted_colours(picture) for picture in pictures])
    # Clusters after the median cut: with its boxes alone, text would be coloured visibly.
    return image.fromarray(colours[None]).quantize(
        CLEAR, image.Quantize.MEDIANCUT, kmeans=1, dither=image.Dither.NONE
    )


def _weighted_colours(picture: Pixels) -> Pixels:
    """Return a picture's colours ``(n, 3)``, each as often as the root of its number of pixels.

    So that the board's large areas do not take all of the palette.
    """
    wide = np.zeros((*picture.shape[:2], 4), np.uint8)
    wide[..., :3] = picture
    packed, counts = np.unique(wide.view(np.uint32), return_counts=True)
    colours = packed.view(np.uint8).reshape(-1, 4)[:, :3]
    return np.repeat(colours, np.sqrt(counts).astype(np.int64), axis=0)


def _write_gif(draft: Path, frames: Iterator[Frame], palette: Any) -> None:
    """Write an endless GIF: one palette for all frames, and of each frame only what changes."""
    image, plugin = _load("PIL.Image"), _load("PIL.GifImagePlugin")

    def indexed(indices: Pixels) -> Any:
        picture = image.fromarray(np.ascontiguousarray(indices))
        picture.putpalette(palette.getpalette())
        return picture

    shown: Pixels | None = None
    with draft.open("xb") as file:
        for pixels, seconds in frames:
            drawn = image.fromarray(pixels).quantize(palette=palette, dither=image.Dither.NONE)
            # In hundredths of a second, but asked for in thousandths and rounded down.
            indices, shown_for = np.asarray(drawn), {"duration": 10 * round(100 * seconds)}
            if shown is None:
                file.writelines(plugin.getheader(indexed(indices), info={"loop": 0})[0])
                file.writelines(plugin.getdata(indexed(indices), **shown_for))
            else:
                part, at = _changed(shown, indices)
                keeping = {"transparency": CLEAR, "disposal": 1}
                file.writelines(plugin.getdata(indexed(part), at, **shown_for, **keeping))
            shown = indices
        file.write(b";")


def _changed(before: Pixels, after: Pixels) -> tuple[Pixels, tuple[int, int]]:
    """Return the part of a frame that differs from the one before, and its left and top.

    Pixels in it that stay are ``CLEAR``. Of equal frames one pixel is left, since none would drop
    the frame and its time.
    """
    differs = before != after
    rows, columns = np.flatnonzero(differs.any(axis=1)), np.flatnonzero(differs.any(axis=0))
    if not len(rows):
        rows = columns = np.zeros(1, np.int64)
    top, left = int(rows[0]), int(columns[0])
    box = (slice(top, rows[-1] + 1), slice(left, columns[-1] + 1))
    return np.where(differs[box], after[box], np.uint8(CLEAR)), (left, top)


# --- MP4


def _write_mp4(draft: Path, frames: Iterator[Frame], width: int, height: int, fps: float) -> None:
    """Write H.264 in the form that browsers play, its colours marked as what they are."""
    ffmpeg = _load("imageio_ffmpeg")
    # Absolute, since to ffmpeg a colon in a relative name would end that of a protocol.
    path = str(draft.absolute())
    writer = ffmpeg.write_frames(
        path,
        (width, height),
        fps=fps,
        quality=QUALITY,
        macro_block_size=1,
        ffmpeg_log_level="quiet",
        output_params=[
            *("-vf", f"scale=out_color_matrix=bt709:out_range=tv,setparams={COLOURS}"),
            *("-g", str(KEYFRAMES), "-movflags", "+faststart", "-f", "mp4"),
        ],
    )
    sent = 0
    with contextlib.closing(writer):
        writer.send(None)
        for pixels, seconds in frames:
            for _ in range(round(seconds * fps)):
                _send(writer, pixels)
                sent += 1
    # The writer does not tell how ffmpeg has ended.
    try:
        written = ffmpeg.count_frames_and_secs(path)[0]
    except RuntimeError:  # what it left is no video at all
        written = 0
    if written != sent:
        raise VideoError(UNFINISHED)


def _send(writer: Any, pixels: Pixels) -> None:
    try:
        writer.send(pixels)
    except OSError as error:  # whose text is ffmpeg's whole command line
        raise VideoError(UNFINISHED) from error

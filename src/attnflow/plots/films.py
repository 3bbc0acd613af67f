"""Pictures in their order into a GIF (Pillow) or a film (FFmpeg, extra `video`)."""

import subprocess
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from attnflow.errors import InvalidInput, RunError
from attnflow.plots.scenes import BODY, PALE, lighter
from attnflow.plots.style import COLOURS, GREY, INK

SHADES = 127
"""Colours of a GIF: one less than a power of two, which leaves one for what does not change."""
SAMPLES = 24
"""Pictures whose colours make the palette."""


def write_gif(stream: BinaryIO, animation: Any, on_picture: Any = None) -> None:
    """A GIF that goes round and round, with one palette for all pictures and no dithering."""
    pictures = list(animation.pictures(on_picture))
    chosen = np.unique(np.linspace(0, len(pictures) - 1, SAMPLES).astype(int))
    palette = _palette(np.stack([pictures[k] for k in chosen]))
    frames = [_indexed(picture, palette) for picture in pictures]
    wait = np.diff(np.round(100 * np.append(0, np.cumsum(animation.ticks.seconds)))) * 10  # in whole hundredths
    frames[0].save(
        stream, format="GIF", save_all=True, append_images=frames[1:], duration=wait.astype(int).tolist(), loop=0,
        optimize=True, disposal=1,
    )  # fmt: skip


def write_mp4(path: Path, animation: Any, on_picture: Any = None) -> None:
    """An H.264 film at a fixed rate; a picture that stands longer is repeated."""
    try:
        from imageio_ffmpeg import get_ffmpeg_exe
    except ImportError:
        raise InvalidInput("mp4 needs `pip install attnflow[video]` (FFmpeg); or write html or gif.") from None
    last = np.round(animation.fps * np.cumsum(animation.ticks.seconds)).astype(int)
    repeats = np.maximum(np.diff(np.append(0, last)), 1)
    width, height = (int(size) for size in animation.figure.bbox.size)
    even = "pad=ceil(iw/2)*2:ceil(ih/2)*2:color=white"  # as H.264 wants it
    command = [
        get_ffmpeg_exe(), "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}",
        "-r", str(animation.fps), "-i", "-", "-vf", even, "-c:v", "libx264", "-crf", "18", "-pix_fmt", "yuv420p",
        "-movflags", "+faststart", "-f", "mp4", str(path),
    ]  # fmt: skip
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE, "process_group": 0}  # Ctrl-C is ours
    with subprocess.Popen(command, **pipes) as film:
        assert film.stdin is not None
        assert film.stderr is not None
        try:
            for picture, count in zip(animation.pictures(on_picture), repeats, strict=True):
                film.stdin.write(picture.tobytes() * int(count))
            film.stdin.close()
            said = film.stderr.read().decode(errors="replace").strip()
        except BaseException:
            film.kill()
            raise
    if film.returncode:
        raise RunError(f"FFmpeg could not write {str(path)!r} ({' '.join(said.split())}); write html or gif.")


def _palette(pictures: np.ndarray) -> np.ndarray:
    """At most SHADES colours: those of the house exactly, the rest from what occurs, rare ones included."""
    from PIL import Image

    own = ["#ffffff", BODY, INK, GREY, *COLOURS, *(lighter(colour, PALE) for colour in COLOURS)]
    flat = np.array([[int(colour[k : k + 2], 16) for k in (1, 3, 5)] for colour in own], np.uint8)
    found, counts = np.unique(pictures.reshape(-1, 3), axis=0, return_counts=True)
    often = np.repeat(found, np.ceil(counts**0.5).astype(int), axis=0)
    rest = Image.fromarray(often[None]).quantize(SHADES - len(flat), method=Image.Quantize.MEDIANCUT)
    return np.concatenate([flat, np.array(rest.getpalette(), np.uint8).reshape(-1, 3)])[:SHADES]


def _indexed(picture: np.ndarray, palette: np.ndarray) -> Any:
    """A picture in the nearest colours of a palette."""
    from PIL import Image
    from scipy.spatial import cKDTree

    packed = picture.astype(np.int32) @ np.array([1 << 16, 1 << 8, 1], np.int32)
    found, where = np.unique(packed, return_inverse=True)
    nearest = cKDTree(palette).query(np.stack([found >> 16, found >> 8 & 255, found & 255], axis=1))[1]
    image = Image.fromarray(nearest[where].reshape(packed.shape).astype(np.uint8), mode="P")
    image.putpalette(palette.ravel().tolist())
    return image

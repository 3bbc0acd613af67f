"""Small pictures for notebooks: SVG of a few kilobytes, from NumPy arrays alone, readable on light and dark pages."""

import base64
import html
import io
from typing import Any, BinaryIO

import numpy as np

SIZE = 110
MARGIN = 8
MOST = 200
"""Discs or points of a curve that are drawn."""
INK = "#3b82c4"


def points(positions: Any, masses: Any, *, unit: bool) -> str:
    """Tokens as discs, whose area grows with their mass; `unit` draws the sphere around them.

    In two dimensions as they are; in three from above, the lower half pale; in more by the two directions in which they
    are spread most.
    """
    x, m = np.asarray(positions, dtype=float), np.asarray(masses, dtype=float)
    here = np.flatnonzero((m > 0) & np.isfinite(x).all(axis=-1))
    if not here.size:
        return ""
    here = here[np.linspace(0, here.size - 1, min(here.size, MOST)).astype(int)]
    x, m = x[here], m[here] / m[here].sum()
    pale = x[:, 2] < 0 if unit and x.shape[1] == 3 else np.zeros(len(x), dtype=bool)
    if x.shape[1] > 3:
        _, _, axes = np.linalg.svd(np.sqrt(m)[:, None] * x, full_matrices=False)
        x = x @ axes[:2].T
    x = np.pad(x, ((0, 0), (0, max(0, 2 - x.shape[1]))))[:, :2]
    reach = 1.0 if unit else max(float(np.abs(x).max()), 1e-300)
    at = SIZE / 2 + (SIZE / 2 - MARGIN) * x * [1, -1] / reach
    spots, which = np.unique(np.column_stack([np.round(at), pale]), axis=0, return_inverse=True)
    radii = np.maximum(10 * np.sqrt(np.bincount(which.ravel(), m)), 1.2)  # tokens that coincide are one disc
    discs = "".join(
        f'<circle cx="{a:.0f}" cy="{b:.0f}" r="{r:.1f}"{shade}/>'
        for (a, b, _), r, shade in zip(spots, radii, np.where(spots[:, 2] > 0, ' opacity=".35"', ""), strict=True)
    )
    middle, around = SIZE / 2, SIZE / 2 - MARGIN
    edge = f'<circle cx="{middle}" cy="{middle}" r="{around}" fill="none" stroke="currentColor" opacity=".3"/>'
    return _svg(f'{edge if unit else ""}<g fill="{INK}" fill-opacity=".75">{discs}</g>')


def curve(x: Any, y: Any, name: str) -> str:
    """One curve in a frame, with its name and the ends of its range; nothing for fewer than two finite points."""
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    sound = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    if sound.size < 2:
        return ""
    sound = sound[np.linspace(0, sound.size - 1, min(sound.size, MOST)).astype(int)]
    x, y = x[sound], y[sound]
    width = max(np.ptp(x), 1e-300), max(np.ptp(y), 1e-300)
    across = MARGIN + (1.6 * SIZE - 2 * MARGIN) * (x - x.min()) / width[0]
    up = SIZE - MARGIN - (SIZE - 3 * MARGIN) * (y - y.min()) / width[1]
    line = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, up, strict=True))
    text = _text(f"{name}: {y.min():.3g} to {y.max():.3g}")
    return _svg(f'{text}<polyline points="{line}" fill="none" stroke="{INK}" stroke-width="1.5"/>', 1.6)


def bars(heights: Any, name: str) -> str:
    """One bar for each number, with the name and the largest; the first `MOST` of them."""
    h = np.asarray(heights, dtype=float).ravel()[:MOST]
    if not h.size or not np.isfinite(h).all() or h.min() < 0:
        return ""
    step, top = (1.6 * SIZE - 2 * MARGIN) / h.size, max(h.max(), 1e-300)
    tall = np.maximum((SIZE - 3 * MARGIN) * h / top, 0.5)
    columns = "".join(
        f'<rect x="{MARGIN + k * step:.1f}" y="{SIZE - MARGIN - up:.1f}" width="{0.8 * step:.1f}" height="{up:.1f}"/>'
        for k, up in enumerate(tall)
    )
    text = _text(f"{name}: to {h.max():.3g}")
    return _svg(f'{text}<g fill="{INK}" fill-opacity=".75">{columns}</g>', 1.6)


def on_grid(values: Any) -> str:
    """A density on its grid: a curve, or where the grid has two axes (S^2) a map, dark where it is large."""
    from PIL import Image

    v = np.asarray(values, dtype=float)
    if v.ndim != 2:
        return curve(np.arange(v.size), v, "density")
    grey = 255 - 215 * (v - v.min()) / max(np.ptp(v), 1e-300)
    return _png(Image.fromarray(grey.astype(np.uint8)).resize((round(1.6 * SIZE), SIZE)))


def file(stream: BinaryIO) -> str:
    """An element with a thumbnail of a PNG file; an empty text if the file cannot be read as a PNG."""
    from PIL import Image

    try:
        with Image.open(stream, formats=["PNG"]) as image:
            image.thumbnail((3 * SIZE, 2 * SIZE))
            return _png(image.convert("RGB").quantize(32))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):  # what Pillow says of damaged files
        return ""


def _text(words: str) -> str:
    return f'<text x="{MARGIN}" y="{1.3 * MARGIN}" font-size="7.5" fill="currentColor">{html.escape(words)}</text>'


def _svg(inside: str, wide: float = 1.0) -> str:
    size = f'width="{round(wide * SIZE)}" height="{SIZE}" viewBox="0 0 {round(wide * SIZE)} {SIZE}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">{inside}</svg>'


def _png(picture: Any) -> str:
    kept = io.BytesIO()
    picture.save(kept, "PNG", optimize=True)
    return f'<img alt="" src="data:image/png;base64,{base64.b64encode(kept.getvalue()).decode()}">'

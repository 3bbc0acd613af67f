"""Counting the modes of a kernel density estimator, without the false ones that round-off makes in empty places."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from attnflow.errors import InvalidInput

_STEP = 0.1  # of the grid, in units of the distance where the kernel stops being concave
_ROWS = 128  # grid points handled at once


class _Sums(NamedTuple):
    """At grid points: the slope f', the curvature f'' (up to one constant) and the size of f' without cancellation."""

    slope: np.ndarray
    curvature: np.ndarray
    scale: np.ndarray


def count_line_modes(points: ArrayLike, beta: float) -> int:
    """Number of local maxima of f(t) = sum_i e^{-beta (t - points_i)^2/2} on the real line, beta > 0.

    A maximum needs a concave kernel, so all lie within beta^{-1/2} of a sample, and only there is the sign of f' looked
    at: the nearest term is then at least e^{-1/2}, so no sign is lost to underflow or round-off of distant terms.
    Between those places f'' > 0 and f' changes sign at most once, from - to +. The grid has step beta^{-1/2}/10;
    cells where f' dips towards 0 and comes back are examined for a pair of critical points (arXiv:2412.09080).
    """
    found = _checked(points, "points", beta)
    y = np.sort((found - np.median(found)) * np.sqrt(beta))
    window = np.sqrt(2 * (40 + np.log(len(y))))  # beyond it all terms together are below round-off

    def kernel(gap: np.ndarray) -> _Sums:
        weight = np.exp(-0.5 * gap**2)
        pull = gap * weight
        total = weight.sum(axis=1)
        return _Sums(pull.sum(axis=1), (gap * pull).sum(axis=1) - total, total)

    def sums(t: np.ndarray) -> _Sums:
        return _windowed(t, y, window, kernel)

    first, last = _groups(y, 1.0)
    return _count(*_grid(first - 1.0, last + 1.0, _STEP), sums)


def count_circle_modes(angles: ArrayLike, beta: float) -> int:
    """Number of local maxima of f(t) = sum_i e^{beta cos(t - angles_i)} on the circle, beta > 0.

    As on the line, with the distance where cos = beta sin^2 in place of beta^{-1/2}. Where f' is below round-off of its
    own terms on the whole circle (equispaced angles at small beta) the modes cannot be counted, and it raises.
    """
    found = np.sort(np.mod(_checked(angles, "angles", beta), 2 * np.pi))
    gaps = np.diff(found, append=found[0] + 2 * np.pi)
    widest = int(np.argmax(gaps))
    y = np.sort(np.mod(found - found[(widest + 1) % len(found)], 2 * np.pi))  # the seam is in the widest gap
    reach = inflection_angle(beta)
    window = float(np.arccos(np.maximum(1 - (40 + np.log(len(y))) / beta, -1)))
    unrolled = np.concatenate([y - 2 * np.pi, y, y + 2 * np.pi])

    def kernel(gap: np.ndarray) -> _Sums:
        half = np.sin(gap / 2)
        sine = np.sin(gap)
        weight = np.exp(-2 * beta * half**2)
        pull = sine * weight
        curvature = beta * (sine * pull).sum(axis=1) - ((1 - 2 * half**2) * weight).sum(axis=1)
        return _Sums(pull.sum(axis=1), curvature, reach * weight.sum(axis=1))

    def sums(t: np.ndarray) -> _Sums:
        return _windowed(t, unrolled, window, kernel, whole=y)

    if gaps[widest] <= 2 * reach:
        start, stop = np.zeros(1), np.full(1, 2 * np.pi)
    else:
        first, last = _groups(y, reach)
        start, stop = first - reach, last + reach
    modes = _count(*_grid(start, stop, _STEP * reach), sums)
    if modes == 0:
        raise InvalidInput(f"beta is {beta!r}; it must be larger, as the density of these angles is flat to round-off.")
    return modes


def inflection_angle(beta: float) -> float:
    """The angle with cos = beta sin^2, where e^{beta cos} stops being concave, by the sine of half of it."""
    root = float(np.hypot(1, 2 * beta))
    return 2 * float(np.arcsin(np.sqrt((1 + 1 / (root + 2 * beta)) / (2 * (1 + root)))))


def _groups(y: np.ndarray, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """First and last samples of the runs whose neighbourhoods of this reach touch."""
    cut = np.flatnonzero(np.diff(y) > 2 * reach)
    return y[np.concatenate([[0], cut + 1])], y[np.concatenate([cut, [len(y) - 1]])]


def _grid(start: np.ndarray, stop: np.ndarray, step: float) -> tuple[np.ndarray, np.ndarray]:
    """Points no further than a step apart over every interval, and the widths of the cells between (0 across gaps)."""
    cells = np.ceil((stop - start) / step).astype(int)
    inner = np.arange(cells.sum() + len(cells)) - np.repeat(np.cumsum(cells + 1) - cells - 1, cells + 1)
    width = np.repeat((stop - start) / cells, cells + 1)
    return np.repeat(start, cells + 1) + inner * width, np.where(np.diff(inner) > 0, width[:-1], 0.0)


def _windowed(
    t: np.ndarray,
    y: np.ndarray,
    window: float,
    kernel: Callable[[np.ndarray], _Sums],
    whole: np.ndarray | None = None,
) -> _Sums:
    """The sums at sorted t over the sorted samples within the window; on a circle y is unrolled and `whole` is not."""
    parts = []
    for at in range(0, len(t), _ROWS):
        rows = t[at : at + _ROWS]
        if whole is not None and rows[-1] - rows[0] + 2 * window >= 2 * np.pi:
            near = whole  # a longer piece of the unrolled circle would count a sample twice
        else:
            near = y[np.searchsorted(y, rows[0] - window) : np.searchsorted(y, rows[-1] + window, "right")]
        parts.append(kernel(near - rows[:, None]))
    return _Sums(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _count(
    t: np.ndarray,
    widths: np.ndarray,
    sums: Callable[[np.ndarray], _Sums],
    level: int = 0,
    ends: tuple[float, float] | None = None,
) -> int:
    """Changes of f' from + to - around the closed sequence t, and those that hide in pairs inside one cell.

    0 when f' is below round-off everywhere. Within a cell (level > 0) the signs at the ends are those of the whole.
    """
    values = sums(t)
    known = np.abs(values.slope) > 1e-13 * values.scale
    if not known.any() and ends is None:
        return 0
    # a sign below round-off is taken from the left: it is that of a place next to a change, or of a flat f
    last_known = np.maximum.accumulate(np.where(known, np.arange(len(t)), np.argmax(known)))
    signs = np.sign(values.slope)[last_known]
    if ends is not None:
        signs = np.where(np.maximum.accumulate(known), signs, ends[0])
        signs[0], signs[-1] = ends
    modes = int(np.sum((signs > 0) & (np.roll(signs, -1) < 0)))
    cells, lowest = _dips(signs, values, widths)
    if level == 2:
        return modes + int(np.sum(lowest < 0))
    # the cubic is off by step^4/384 times a fourth derivative, below 1e-5 in these units on the first grid
    margin = 1e-5 / 32 ** (4 * level)
    modes += int(np.sum(lowest < -margin))
    doubtful = np.concatenate([cells[np.abs(lowest) <= margin], _flat_crossings(signs, values, widths, 10 * margin)])
    for cell in doubtful:
        finer = _grid(t[cell : cell + 1], t[cell + 1 : cell + 2], widths[cell] / 32)
        both = (signs[cell], signs[cell + 1])
        modes += _count(*finer, sums, level + 1, both) - int(both[0] != both[1])
    return modes


def _cubic(signs: np.ndarray, values: _Sums, widths: np.ndarray, cells: np.ndarray) -> tuple[np.ndarray, ...]:
    """Coefficients of the cubic with the values and slopes of f' at both ends, f' > 0 at the left; its end slope."""
    scale = signs[cells] / values.scale[cells]
    f0, f1 = values.slope[cells] * scale, values.slope[cells + 1] * scale
    d0, d1 = values.curvature[cells] * widths[cells] * scale, values.curvature[cells + 1] * widths[cells] * scale
    return f0, d0, 3 * (f1 - f0) - 2 * d0 - d1, d0 + d1 - 2 * (f1 - f0), d1


def _dips(signs: np.ndarray, values: _Sums, widths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cells at whose ends f' has one sign but heads for 0, and the least |f'| inside (negative: it crosses)."""
    cells = np.flatnonzero((signs[:-1] == signs[1:]) & (widths > 0))
    f0, d0, b, c, d1 = _cubic(signs, values, widths, cells)
    found = (d0 < 0) & (d1 > 0)
    f0, d0, b, c = f0[found], d0[found], b[found], c[found]
    s = -d0 / (
        b + np.sqrt(b**2 - 3 * c * d0)
    )  # the root in (0, 1) of the derivative, which is d0 < 0 at 0, d1 > 0 at 1
    return cells[found], f0 + s * (d0 + s * (b + s * c))


def _flat_crossings(signs: np.ndarray, values: _Sums, widths: np.ndarray, margin: float) -> np.ndarray:
    """Cells that f' crosses, but so flatly that it may do so three times (two samples at the brink of two modes)."""
    cells = np.flatnonzero((signs[:-1] != signs[1:]) & (widths > 0))
    _, d0, b, c, d1 = _cubic(signs, values, widths, cells)
    bent = c < 0
    at = -b / np.where(bent, 3 * c, 1.0)
    inside = bent & (at > 0) & (at < 1)
    steepest = np.where(inside, d0 + b * at, np.maximum(d0, d1))
    return cells[steepest > -margin]


def _checked(values: ArrayLike, name: str, beta: float) -> np.ndarray:
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != 1 or found.size == 0 or not np.isfinite(found).all():
        raise InvalidInput(f"{name} is {values!r}; it must be a nonempty list of finite numbers.")
    if not (np.isfinite(beta) and beta > 0):
        raise InvalidInput(f"beta is {beta!r}; it must be finite and positive, as a flat density has no modes.")
    return found

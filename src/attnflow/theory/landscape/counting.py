"""Counting the modes of a kernel density estimator, with every sign of its slope certain."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from attnflow.errors import InvalidInput, NotAccurate
from attnflow.special.formula import Other, Reals, formula
from attnflow.special.numbers import ArrayLike
from attnflow.wording import shown

_STEP = 0.1
"""Length of the first cells, in units of the distance where the kernel stops being concave."""
_PARTS = 8
"""Into so many parts a cell is divided that is not understood."""
_DEEPEST = 8
"""Divisions of a cell; cells are then 6e-9 long, and what they hide is a matter of rounding."""
_ROWS = 128
"""Cells handled at once."""
_BEYOND = 1.001
"""Modes lie within 1 of a sample; the little more covers rounding."""
_LARGEST_ANGLE = 1e6
_TURN = (6.2831853069365025, 2.4308402025215864e-10, 8.089064995183803e-21)
"""2 pi in three parts, the first two of at most 33 bits, so that 2^20 times them is exact."""


class _Sums(NamedTuple):
    """Sums over the samples at centres of cells: derivatives of the density, up to one factor, and bounds."""

    slope: np.ndarray
    curvature: np.ndarray
    third: np.ndarray
    fourth: np.ndarray
    """A bound on the fourth derivative over the cell."""
    scale: np.ndarray
    """What the relative rounding of terms is multiplied with."""


_Kernel = Callable[[np.ndarray, np.ndarray], _Sums]


@formula(points=Other("a list of finite numbers"), beta=Reals(0.0, ends="none", scalar=True))
def count_line_modes(points: ArrayLike, beta: float) -> int:
    """Number of local maxima of f(t) = sum_i e^{-beta (t - points_i)^2/2} on the real line.

    A maximum needs a concave kernel, so all lie within beta^{-1/2} of a sample, and only there is the sign of f' looked
    at: the nearest term is then at least e^{-1/2}, so no sign is lost to underflow or round-off of distant terms.
    Between those places f'' > 0 and f' changes sign at most once, from - to +. The places are cut into cells, until
    Taylor's formula with a bound on its remainder shows that f' has no zero in a cell, or is monotone there.

    Arguments:
        points: the samples, read as exact floats.
        beta: inverse squared width of the kernel.

    Raises:
        NotAccurate: if a maximum is so close to its birth that rounding decides whether it is there.

    Reference: arXiv:2412.09080.
    """
    halves = np.sort(_checked("points", points)) / 2  # the difference of two may leave the range of floats
    window = float(np.sqrt(2 * (40 + np.log(len(halves)))))  # beyond it all terms together are below round-off
    y = _placed(halves, np.zeros_like(halves), 2 * np.sqrt(beta), 3 * window)

    def kernel(gap: np.ndarray, half: np.ndarray) -> _Sums:
        square, size = gap**2, np.abs(gap) + half
        weight = np.exp(-0.5 * square)
        largest = np.exp(-0.5 * np.maximum(np.abs(gap) - half, 0.0) ** 2)
        return _Sums(
            (gap * weight).sum(axis=1),
            ((square - 1) * weight).sum(axis=1),
            (gap * (square - 3) * weight).sum(axis=1),
            ((size**4 + 6 * size**2 + 3) * largest).sum(axis=1),
            ((1 + square) ** 2 * weight).sum(axis=1),
        )

    return _count(*_cells(y), lambda t, half: _windowed(t, half, y, window, kernel), _rounding(y))


@formula(
    angles=Other("a list of numbers in [-1e+06, 1e+06]"),
    beta=Reals(0.0, 1e300, ends="right", scalar=True),
)
def count_circle_modes(angles: ArrayLike, beta: float) -> int:
    """Number of local maxima of f(t) = sum_i e^{beta cos(t - angles_i)} on the circle.

    A maximum needs a concave kernel, so all lie within the angle with cos = beta sin^2 of a sample, and only there is
    the sign of f' looked at. These places are cut into cells, until Taylor's formula with a bound on its remainder
    shows that f' has no zero in a cell, or is monotone there.

    Arguments:
        angles: the samples in radians, read as exact floats.
        beta: inverse temperature.

    Raises:
        NotAccurate: if a maximum is so close to its birth that rounding decides whether it is there, or if the density
            is flat to rounding (equispaced angles at small beta).
    """
    high, low = _reduced(_checked("angles", angles, _LARGEST_ANGLE))
    reach, root = inflection_angle(beta), float(np.sqrt(beta))
    window = float(np.arccos(np.maximum(1 - (40 + np.log(len(high))) / beta, -1))) if beta > 1 else np.pi
    if beta > 1e6:
        window = float(np.sqrt(2.1 * (40 + np.log(len(high))))) / root
    gaps = np.append(np.diff(high), high[0] + 2 * np.pi - high[-1])
    widest = int(np.argmax(gaps))
    # the circle is cut in its widest gap
    high[: widest + 1], error = _sum(high[: widest + 1], 2 * np.pi)
    low[: widest + 1] += error + 2.4492935982947064e-16  # what the float of 2 pi lacks
    order = np.roll(np.arange(len(high)), -(widest + 1))
    is_round, is_covered = gaps[widest] <= 3 * window, bool(gaps[widest] <= 2 * _BEYOND * reach)
    y = unrolled = _placed(high[order], low[order], 1 / reach, np.inf if is_round else 3 * window / reach)
    if is_round:  # samples act across the cut
        turn = 2 * np.pi / reach
        unrolled = np.concatenate([y - turn, y, y + turn])
    left, right = _cells(y)
    if is_covered:
        left, right = _divided(y[:1], y[:1] + turn, np.array([int(np.ceil(turn / _STEP))]))

    def kernel(gap: np.ndarray, half: np.ndarray) -> _Sums:
        """With s = sqrt(beta) sin and r = reach sqrt(beta): derivatives by t in units of `reach`."""
        r, angle = reach * root, reach * gap
        sine, cosine, chord = np.sin(angle), np.cos(angle), root * np.abs(np.sin(angle / 2))
        s = root * sine
        size, weight = np.abs(s) + r * half, np.exp(-2 * chord**2)
        largest = np.exp(-2 * np.maximum(chord - r * half / 2, 0.0) ** 2)
        fourth = reach**2 * (1 + 4 * size**2) + r**2 * (3 + 6 * size**2 + size**4)
        return _Sums(
            (sine / reach * weight).sum(axis=1),
            ((s**2 - cosine) * weight).sum(axis=1),
            ((r * s * (s**2 - 3 * cosine) - reach * sine) * weight).sum(axis=1),
            (fourth * largest).sum(axis=1),
            ((1 + 4 * chord**2) ** 2 * weight).sum(axis=1),
        )

    def sums(t: np.ndarray, half: np.ndarray) -> _Sums:
        return _windowed(t, half, unrolled, window / reach, kernel, whole=y if is_round else None)

    return _count(left, right, sums, _rounding(unrolled), is_covered)


def inflection_angle(beta: float) -> float:
    """The angle with cos = beta sin^2, where e^{beta cos} stops being concave, by the sine of half of it."""
    root = float(np.hypot(1, 2 * beta))
    return 2 * float(np.arcsin(np.sqrt((1 + 1 / (root + 2 * beta)) / (2 * (1 + root)))))


def _sum(x: np.ndarray, y: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
    """The sum as a float and its rounding error, exactly."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def _reduced(angles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Angles modulo 2 pi as sums of two floats, sorted."""
    turns = np.floor(angles / (2 * np.pi))
    high, error = _sum(angles, -turns * _TURN[0])
    high, second = _sum(high, -turns * _TURN[1])
    high, low = _sum(high, error + second - turns * _TURN[2])
    order = np.lexsort([low, high])
    return high[order], low[order]


def _placed(high: np.ndarray, low: np.ndarray, scale: float, longest: float) -> np.ndarray:
    """Sorted samples times `scale`, with gaps above `longest` shortened, as what is so far away has no effect.

    Places count from a sample in the middle of what is not cut, so that they are rounded relative to their distance
    from there.
    """
    gaps = (np.diff(high) + np.diff(low)) * scale
    cuts = np.flatnonzero(gaps > longest)
    first, last = np.append(0, cuts + 1), np.append(cuts, len(high) - 1)
    group = np.repeat(np.arange(len(first)), last - first + 1)
    middle = ((first + last) // 2)[group]
    y = ((high - high[middle]) + (low - low[middle])) * scale
    ends = y[last[:-1]] - y[first[1:]] + longest
    return y + np.append(0.0, np.cumsum(ends))[group]


def _rounding(y: np.ndarray) -> float:
    """Relative error of a sum over these samples, as a share of `_Sums.scale`: of terms, of their sum and of places."""
    return float(1e-15 * (8 + np.log2(len(y)) + np.abs(y).max()))


def _cells(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Left and right ends of cells that cover all places near samples."""
    cut = np.flatnonzero(np.diff(y) > 2 * _BEYOND)
    start, stop = y[np.append(0, cut + 1)] - _BEYOND, y[np.append(cut, len(y) - 1)] + _BEYOND
    return _divided(start, stop, np.ceil((stop - start) / _STEP).astype(int))


def _divided(left: np.ndarray, right: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each interval in equal parts; neighbours share their ends."""
    inner = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    start, stop, parts = (np.repeat(part, counts) for part in (left, right, counts))
    width = (stop - start) / parts
    return start + inner * width, np.where(inner + 1 == parts, stop, start + (inner + 1) * width)


def _windowed(
    t: np.ndarray,
    half: np.ndarray,
    y: np.ndarray,
    window: float,
    kernel: _Kernel,
    whole: np.ndarray | None = None,
) -> _Sums:
    """The sums at sorted t over the sorted samples within the window; on a circle y is unrolled and `whole` is not."""
    parts = []
    for at in range(0, len(t), _ROWS):
        rows = t[at : at + _ROWS]
        if whole is not None and rows[-1] - rows[0] + 2 * window >= y[2 * len(whole)] - y[len(whole)]:
            near = whole  # a longer piece of the unrolled circle would count a sample twice
        else:
            near = y[np.searchsorted(y, rows[0] - window) : np.searchsorted(y, rows[-1] + window, "right")]
        parts.append(kernel(near - rows[:, None], half[at : at + _ROWS, None]))
    return _Sums(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _count(
    left: np.ndarray,
    right: np.ndarray,
    sums: Callable[[np.ndarray, np.ndarray], _Sums],
    rounding: float,
    is_circle: bool = False,
) -> int:
    """Changes of f' from + to - in the cells, which are divided until f' has no zero in each or is monotone."""
    budget = 20_000 + 60 * len(left)
    leaves = []  # left and right end, the sign of f' or 0, and the sign of f'' where that of f' is 0
    for _ in range(_DEEPEST + 1):
        half = (right - left) / 2 * (1 + 1e-9)
        values = sums((left + right) / 2, half)
        error = rounding * values.scale
        bend = np.abs(values.third) * half
        rest = values.fourth * half**2
        has_sign = np.abs(values.slope) > (np.abs(values.curvature) + bend / 2 + rest / 6) * half + error
        is_monotone = np.abs(values.curvature) > bend + rest / 2 + error
        signs = np.where(has_sign, np.sign(values.slope), 0.0)
        done = has_sign | is_monotone
        leaves.append(np.stack([left, right, signs, np.sign(values.curvature)])[:, done])
        left, right = left[~done], right[~done]
        if not len(left):
            break
        left, right = _divided(left, right, np.full(len(left), _PARTS))
        budget -= len(left)
        if budget < 0:
            raise NotAccurate("the density is flat to rounding, so that its modes cannot be counted.")
    else:
        raise NotAccurate("two critical points are so close that rounding decides whether they are there.")
    cells = np.concatenate(leaves, axis=1)
    left, right, signs, bends = cells[:, np.argsort(cells[0])]
    if is_circle:
        if not signs.any():
            raise NotAccurate("the density is flat to rounding, so that its modes cannot be counted.")
        left, right, signs, bends = np.roll([left, right, signs, bends], -int(np.argmax(signs != 0)), axis=1)
    # between cells that bend to different sides, and at the ends of what is covered, the sign of f' itself decides
    monotone = signs == 0
    ends = np.append(left[1:] != right[:-1], True) & (not is_circle)
    starts = np.append(True, ends[:-1]) & (not is_circle)
    turns = np.append(monotone[:-1] & monotone[1:] & (bends[1:] != bends[:-1]), False)
    events = np.zeros((len(left), 3))
    events[:, 1] = signs
    for column, places, selected in ((0, left, monotone & starts), (2, right, (monotone & ends) | turns)):
        nodes = np.flatnonzero(selected)
        if not len(nodes):
            continue
        order = nodes[np.argsort(places[nodes])]
        values = sums(places[order], np.zeros(len(order)))
        if (np.abs(values.slope) <= rounding * values.scale).any():
            raise NotAccurate("a critical point is so flat that rounding decides whether it is a mode.")
        events[order, column] = np.sign(values.slope)
    sequence = events[events != 0]
    following = np.roll(sequence, -1) if is_circle else np.append(sequence[1:], 0.0)
    return int(np.sum((sequence > 0) & (following < 0)))


def _checked(name: str, values: ArrayLike, largest: float = np.inf) -> np.ndarray:
    try:
        numbers = np.asarray(values)
        numbers = numbers.astype(np.float64) if numbers.dtype.kind in "biufO" else np.empty(0)
    except (TypeError, ValueError, OverflowError):
        numbers = np.empty(0)
    if numbers.ndim != 1 or not numbers.size or not (np.isfinite(numbers) & (np.abs(numbers) <= largest)).all():
        bound = "finite numbers" if largest == np.inf else f"numbers in [-{largest:g}, {largest:g}]"
        raise InvalidInput(f"`{name}` is {shown(values)}; give a nonempty list of {bound}.")
    return numbers

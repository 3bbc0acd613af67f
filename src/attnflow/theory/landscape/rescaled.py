"""Exact solutions of attention on R^d without layer norm: two clusters, a token between them, regular polytopes.

Tokens follow dx_i/dt = sum_j A_ij V x_j with A_ij proportional to m_j exp(<x_i, x_j>), and z = e^(-tV) x. On each of
these solutions x is what the linear flow e^(sV) x(0) makes of it, at an earlier time s(t). The delay t - s has a limit,
and so has z. arXiv:2305.05465 has the general limits.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import exp1

from attnflow.errors import InvalidInput, NotAccurate
from attnflow.special.formula import Other, Reals, formula
from attnflow.special.integrals import integral
from attnflow.special.numbers import ArrayLike, Numbers
from attnflow.special.roots import root

DECIDED = 45.0
"""Weights below e^(-45) of the largest are left out."""
TERMS = 18
"""Of the series of e^(sV) for |sV| <= 1/2: the next is below 1e-21."""
LONGEST = 20_000
"""Steps of |sV| = 1/2 within which a start has to grow."""
ROUNDING = 2e-12
"""Largest relative rounding error of e^(sV) x that is accepted."""
TIME = Other("a time of at least 0, or infinity")


@formula(x=Reals(0.02), middle=Other("True or False"), relative="1e-15 * (10 + 2 * (1/x)**2)")
def pair_limit(x: ArrayLike, *, middle: bool = False) -> Numbers:
    """The limit of e^(-t) x(t) for tokens at +-`x` on the line under V = 1, without or with a third token at 0.

    c_2(a) = a exp(-sum_{k>=1} E1(2 k a^2)); with a token of the same mass at 0
    c_3(a) = a exp(-(1/2) sum_{k>=0} [E1((2k+1) a^2) + 2 E1((2k+2) a^2)]). From x' = x F(x) with F = tanh x^2 or
    2 sinh x^2/(1 + 2 cosh x^2), log(a/c) = int_a^infinity (1 - F)/(x F) dx. For a product of point sets softmax
    factorises over the coordinates, so every coordinate with V = 1 of a cube has this limit, whatever V does to the
    others. It is x e^(-`pair_delay`) with middle = 0 or 1/2; for x below 0.02 it is below e^(-1000).

    Arguments:
        x: positions of the tokens at time 0.
        middle: True with a token at 0.
    """

    def exponent(square: float) -> float:
        k = np.arange(1, 2 + int(DECIDED / square)) * square
        terms = exp1(k) * np.where(np.arange(1, len(k) + 1) % 2 == 0, 1.0, 0.5) if middle else exp1(2 * k)
        return float(np.sum(terms[::-1]))

    exponents = [exponent(start**2) for start in np.minimum(x, 40.0).ravel()]
    return x * np.exp(-np.reshape(exponents, x.shape))


@formula(
    value=Other("a matrix (dim, dim)"),
    x=Other("a vector (dim,)"),
    t=TIME,
    middle=Reals(0.0, scalar=True),
    relative=1e-11,
)
def pair_delay(value: ArrayLike, x: ArrayLike, *, t: float = math.inf, middle: float = 0.0) -> float:
    """t - s of clusters of equal masses at x(0) = +-`x`: they are at +-e^(sV) x at time `t`, so z = e^(-(t-s)V) x.

    With u = |e^(sV) x|^2 and kappa = `middle`, dt/ds = (cosh u + kappa)/sinh u. The limit of the delay is
    int_0^infinity (dt/ds - 1) ds.

    Arguments:
        value: V. u must grow for ever: the coordinate of `x` along the leading eigenvector, whose eigenvalue is
            positive, must not vanish. In d = 1 with V > 0 and logits QK x_i x_j give sqrt(QK) x.
        x: position of one of the two clusters.
        t: time, infinity for the limit.
        middle: mass of a token at 0, where it stays, over the mass of the two clusters.

    Raises:
        InvalidInput: if u does not grow for ever.
        NotAccurate: if rounding decides about the part of `x` that grows.
    """
    matrix, start = np.asarray(value, float), np.asarray(x, float)
    if matrix.ndim != 2 or matrix.shape != (start.size, start.size) or not np.isfinite([*matrix.flat, *start]).all():
        raise InvalidInput(
            f"`value` has shape {matrix.shape} and `x` {start.shape}; give a finite matrix (dim, dim) and a vector."
        )
    step, coefficients, log_sizes = _growth(matrix, start)

    def excess(s: np.ndarray) -> np.ndarray:
        k = np.minimum((s / step).astype(int), len(log_sizes) - 1)
        shift, path = (s / step - k)[..., None], coefficients[-1][k]
        for terms in coefficients[-2::-1]:
            path = path * shift + terms[k]
        u = np.exp(np.minimum(np.log(np.sum(path**2, axis=-1)) + 2 * log_sizes[k], 7.0))
        return np.asarray(2 * (np.exp(-2 * u) + middle * np.exp(-u)) / -np.expm1(-2 * u))

    return _delay(excess, step * np.arange(len(log_sizes)), _time(t))


def _growth(matrix: np.ndarray, start: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """A step; coefficients of e^(sV) x in s/step at its multiples, (term, place, dim); logarithms of sizes.

    By power series, which do not ask for a basis of eigenvectors; the sizes are divided out of the coefficients. Ends
    where u has grown beyond its minimum for as long again as that took.
    """
    norm = float(np.linalg.norm(matrix, 2))
    if norm == 0 or not start.any():
        raise InvalidInput(f"`x` is {start!r} and `value` {matrix!r}; neither may be 0.")
    step, path, log_size = 0.5 / norm, start, 0.0
    powers = [np.eye(len(start))]
    for k in range(1, TERMS):
        powers.append(powers[-1] @ matrix * (step / k))
    flow = np.sum(powers[::-1], axis=0)
    coefficients: list[list[np.ndarray]] = []
    log_sizes: list[float] = []
    decided = 0
    while len(log_sizes) <= 2 * decided + 4:
        length = float(np.linalg.norm(path))
        if log_size < -350 or len(log_sizes) > LONGEST:
            raise InvalidInput(
                f"`x` is {start!r}; it does not grow under e^(sV), so give it a part along an eigenvector that grows."
            )
        path, log_size = path / length, log_size + math.log(length)
        coefficients.append([term @ path for term in powers])
        log_sizes.append(log_size)
        path = flow @ path
        if math.exp(min(2 * log_size, 7.0)) < math.exp(2 * min(log_sizes)) + DECIDED:
            decided = len(log_sizes)
    decided += 1
    if min(_rounding(powers, start, decided), _rounding_of_norms(flow, np.array(log_sizes[:decided]))) > ROUNDING:
        raise NotAccurate("rounding decides how much of `x` grows.")
    return step, np.array(coefficients[:decided]).swapaxes(0, 1), np.array(log_sizes[:decided])


def _rounding(powers: list[np.ndarray], start: np.ndarray, count: int) -> float:
    """Largest relative error of e^(sV) x by rounding, entry by entry: sharp for diagonal V."""
    flow, bounds = np.sum(powers[::-1], axis=0), np.sum(np.abs(powers), axis=0)
    path, error, largest = start, np.zeros(len(start)), 0.0
    for _ in range(count):
        length = np.linalg.norm(path)
        path, error = path / length, error / length
        largest = max(largest, float(np.linalg.norm(error)))
        path, error = flow @ path, np.abs(flow) @ error + 1e-15 * len(start) * (bounds @ np.abs(path))
    return largest


def _rounding_of_norms(flow: np.ndarray, log_sizes: np.ndarray) -> float:
    """Largest relative error of e^(sV) x by rounding, by norms of powers of the flow: sharp for rotations."""
    power, log_norms, log_norm = flow, [0.0], 0.0
    for _ in log_sizes[1:]:
        size = np.linalg.norm(power)
        power, log_norm = flow @ (power / size), log_norm + math.log(size)
        log_norms.append(log_norm)
    count = len(log_sizes)
    places = {int(log_sizes.argmin()), *range(0, count, 1 + count // 200), count - 1}
    growths = [log_sizes[: k + 1] + np.array(log_norms[k::-1]) - log_sizes[k] for k in places]
    return 5e-16 * len(flow) * max(float(np.exp(np.minimum(growth, 300.0)).sum()) for growth in growths)


@formula(
    radius=Reals(0.0, ends="none", scalar=True),
    t=Reals(0.0),
    relative=2e-12,
    absolute="1e-13 * (1 + radius * radius)",
)
def pair_departure(radius: float, t: ArrayLike) -> tuple[Numbers, Numbers]:
    """(log of the growth of z of a token of no mass near 0, log X) at times `t`, between clusters at +-X, V = I.

    X(0) = `radius`. At x = eps X/|X| with <x, X> << 1, dx/dt = X^2 x, and dX/dt = X tanh X^2. So x grows by
    (sinh X^2/sinh X(0)^2)^(1/2) and z by e^(-t) of that: a token leaves the middle doubly exponentially fast.

    Arguments:
        radius: distance of the clusters from 0 at time 0.
        t: times.

    Raises:
        InvalidInput: if the growth leaves the range of floats.
    """
    begin = radius * radius

    def delay(s: np.ndarray) -> np.ndarray:
        """t - s at log X = log radius + s."""
        return integral(lambda s: 2 / np.expm1(2 * np.minimum(begin * np.exp(2 * s), 400.0)), 0.0, s)

    if begin == 0 or begin == math.inf:
        raise InvalidInput(f"`radius` is {radius!r}; its square leaves the range of floats.")
    times = np.where(t > 0, t, 1.0)
    slowest = np.maximum(times * math.tanh(begin), 1e-300)
    way = np.where(t > 0, root(lambda s, t: s + delay(s) - t, 0.9 * slowest, times, times, smallest=0.0), 0.0)
    log_square = math.log(begin) + 2 * way
    if np.any(log_square > 700):
        raise InvalidInput(f"`t` is {t!r}; the growth leaves the range of floats, give earlier times.")
    return (_log_sinhc(np.exp(log_square)) - _log_sinhc(np.asarray(begin))) / 2 - delay(way), math.log(radius) + way


def _log_sinhc(u: np.ndarray) -> np.ndarray:
    """log(sinh(u)/u)."""
    near = np.minimum(u, 1.0)
    series = np.zeros_like(near)
    for k in range(9, 0, -1):
        series = near**2 / (2 * k * (2 * k + 1)) * (1 + series)
    late = np.maximum(u, 1.0)
    return np.where(u < 1, np.log1p(series), late + np.log(-np.expm1(-2 * late) / 2) - np.log(late))


@formula(
    corners=Other("an array (corner, dim): the corners of a regular polygon, a Platonic solid, or the like"),
    radius=Reals(0.0, ends="none", scalar=True),
    t=TIME,
    relative="1e-12 * (1 + (1/radius)**2)",
)
def regular_radius(corners: ArrayLike, radius: float, *, t: float = math.inf) -> float:
    """Radius of z at time `t`, V = I, from clusters of equal masses at `radius` times `corners`.

    In x the radius obeys dr/dt = r g(r^2), with g(u) the mean of c = <corner, first corner> over the corners under
    weights proportional to e^(uc). So the limit is r(0) exp(-int_{r(0)^2}^infinity (1 - g)/(2 u g) du).

    Arguments:
        corners: unit vectors that symmetries of the set carry into each other, such that the corners at one distance
            from a corner add up to a multiple of it; with the mean 0.
        radius: radius at time 0.
        t: time, infinity for the limit.
    """
    points = np.asarray(corners, float)
    if points.ndim != 2 or len(points) < 2 or not np.allclose(np.linalg.norm(points, axis=1), 1):
        raise InvalidInput(
            f"`corners` has shape {points.shape}; give at least two unit vectors, an array (corner, dim)."
        )
    if not np.allclose(points.mean(axis=0), 0, atol=1e-9):
        raise InvalidInput(
            f"`corners` has the mean {points.mean(axis=0)!r}, not 0; give the corners of a regular polytope."
        )
    if not _is_regular(points):
        raise InvalidInput("`corners` do not stay similar to themselves; give the corners of a regular polytope.")
    cosines, begin = points @ points[0], radius * radius
    if begin == 0:
        raise InvalidInput(f"`radius` is {radius!r}; its square leaves the range of floats.")
    nearest = 1 - np.sort(cosines)[-2]

    def excess(s: np.ndarray) -> np.ndarray:  # 1/g - 1 at log r = log r(0) + s
        u = np.minimum(begin * np.exp(2 * s), 1e6 / nearest)[..., None]
        weights = np.exp(u * (cosines - 1))
        # the mean of the corners is 0, which leaves e^(uc) - 1 where u is small
        early = np.exp(-u) * np.expm1(np.minimum(u, 1.0) * cosines)
        return np.asarray((weights @ (1 - cosines)) / (np.where(u < 1, early, weights) @ cosines))

    end = max(0.5 * math.log(750.0 / nearest) - math.log(radius), 0.1)
    return float(radius * math.exp(-_delay(excess, np.linspace(0.0, end, 5), _time(t))))


def _is_regular(points: np.ndarray) -> bool:
    """True if every corner has the same cosines to the others, and those of one cosine add up to a multiple of it."""
    cosines = points @ points.T
    order = np.argsort(cosines, axis=1)
    sorted_cosines = np.take_along_axis(cosines, order, axis=1)
    if np.abs(sorted_cosines - sorted_cosines[0]).max() > 1e-7:
        return False
    ends = np.append(np.flatnonzero(np.diff(sorted_cosines[0]) > 1e-6), len(points) - 1)
    for corner, row in zip(points, order, strict=True):
        sums = np.cumsum(points[row], axis=0)[ends]
        if np.abs(sums - np.outer(sums @ corner, corner)).max() > 1e-6:
            return False
    return True


def _time(t: Any) -> float:
    if not (isinstance(t, int | float | np.number) and t >= 0):
        raise InvalidInput(f"`t` is {t!r}; a time must be at least 0.")
    return float(t)


def _delay(excess: Callable[[np.ndarray], np.ndarray], points: np.ndarray, t: float) -> float:
    """int_0^s `excess`, where s + int_0^s `excess` = t; nothing is added beyond the last of the `points`."""
    end = float(points[-1])

    def delay(s: float) -> float:
        return float(integral(excess, 0.0, s, points=points, rtol=2e-13))

    limit = delay(end)
    if t >= end + limit:
        return limit
    if t == 0:
        return 0.0
    low = max(t - limit, 0.0)
    s = float(root(lambda s: s + delay(s) - t, low, min(t, end), smallest=0.0, largest=end))
    return t - s if s < t / 2 else delay(s)

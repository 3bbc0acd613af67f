"""Exact solutions of attention on R^d without layer norm: two clusters, a token between them, regular polytopes.

Tokens follow dx_i/dt = sum_j A_ij V x_j with A_ij proportional to m_j exp(<x_i, x_j>), and z = e^(-tV) x. On each of
these solutions x is what the linear flow e^(sV) x(0) makes of it, at an earlier time s(t). The delay t - s has a limit,
and so has z. arXiv:2305.05465 has the general limits.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import exp1

from attnflow.errors import InvalidInput
from attnflow.special.numbers import Numbers

NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
PANEL = 0.125
"""Longest panel of the integrals over s."""
DECIDED = 40.0
"""Weights below e^(-40) are left out."""
LATEST = 1e4
FASTEST = 350.0
"""The largest s |V| that is tried, so that squares stay in float range: what grows at all has grown by then."""


def pair_limit(x: ArrayLike, *, middle: bool = False) -> np.ndarray:
    """The limit of e^(-t) x(t) for tokens at +-`x` on the line under V = 1, without or with a third token at 0.

    c_2(a) = a exp(-sum_{k>=1} E1(2 k a^2)); with a token of the same mass at 0
    c_3(a) = a exp(-(1/2) sum_{k>=0} [E1((2k+1) a^2) + 2 E1((2k+2) a^2)]). From x' = x F(x) with F = tanh x^2 or
    2 sinh x^2/(1 + 2 cosh x^2), log(a/c) = int_a^infinity (1 - F)/(x F) dx. For a product of point sets softmax
    factorises over the coordinates, so every coordinate with V = 1 of a cube has this limit, whatever V does to the
    others. It is
    x e^(-`pair_delay`) with middle = 0 or 1/2. x > 0, at least 0.02 (for smaller x the limit is below e^(-1000)).
    """
    a = np.asarray(x, dtype=np.float64)
    if not np.all((a >= 0.02) & np.isfinite(a)):
        raise InvalidInput(f"x is {x!r}; it must be finite and at least 0.02.")

    def one(a: float) -> float:
        k = np.arange(1, 2 + int(DECIDED / a**2)) * a**2
        terms = exp1(k) * np.where(np.arange(1, len(k) + 1) % 2 == 0, 1.0, 0.5) if middle else exp1(2 * k)
        return a * float(np.exp(-np.sum(terms[::-1])))

    return np.vectorize(one, otypes=[np.float64])(a)


def pair_delay(value: ArrayLike, x: ArrayLike, *, t: float = np.inf, middle: float = 0.0) -> float:
    """t - s of clusters of equal masses at x(0) = +-`x`: they are at +-e^(sV) x at time `t`, so z = e^(-(t-s)V) x.

    With u = |e^(sV) x|^2 and kappa = `middle`, dt/ds = (cosh u + kappa)/sinh u. kappa is the mass of a token at 0 over
    the mass of the two clusters; that token stays at 0. The limit of the delay is int_0^infinity (dt/ds - 1) ds.

    V = `value` is a matrix (dim, dim). u must grow for ever: the coordinate of `x` along the leading eigenvector, whose
    eigenvalue is positive, must not vanish. In d = 1 with V > 0 and logits QK x_i x_j give sqrt(QK) x.
    """
    matrix, start = np.asarray(value, float), np.asarray(x, float)
    if matrix.ndim != 2 or matrix.shape != (start.size, start.size):
        raise InvalidInput(
            f"value has shape {matrix.shape} and x {start.shape}; give a matrix (dim, dim) and a vector."
        )
    if not (np.isfinite(middle) and middle >= 0):
        raise InvalidInput(f"middle is {middle!r}; a ratio of masses must be finite and at least 0.")
    size = float(np.linalg.norm(matrix, 2))

    def square(s: np.ndarray) -> np.ndarray:
        """|e^(sV) x|^2 by power series over steps |sV| <= 1, which do not ask for a basis of eigenvectors."""
        count = max(1, int(np.ceil(np.max(s) * size)))
        small, path = (s / count)[..., None], np.broadcast_to(start, (*s.shape, start.size))
        with np.errstate(over="ignore"):
            for _ in range(count):
                term = path
                for k in range(1, 20):  # 1/20! is below rounding
                    term = small / k * (term @ matrix.T)
                    path = path + term
            return np.asarray(np.sum(path**2, axis=-1))

    end = min(1.0, 1 / size) if size > 0 else LATEST
    while (square(np.linspace(end, 2 * end, 8)) < DECIDED).any():
        end *= 2
        if end > LATEST or end * size > FASTEST:
            raise InvalidInput(
                f"x is {x!r}; it does not grow under e^(sV), so give it a part along an eigenvector that grows."
            )

    def excess(s: np.ndarray) -> np.ndarray:
        u = np.minimum(square(s), 2 * DECIDED)
        return np.asarray(2 * (np.exp(-2 * u) + middle * np.exp(-u)) / -np.expm1(-2 * u))

    return _delay(excess, end, _time(t))


def pair_departure(radius: float, t: ArrayLike) -> tuple[Numbers, Numbers]:
    """(log of the growth of z of a token of no mass near 0, log X) at times `t`, between clusters at +-X, V = I.

    X(0) = `radius`. At x = eps X/|X| with <x, X> << 1, dx/dt = X^2 x, and dX/dt = X tanh X^2. So x grows by
    (sinh X^2/sinh X(0)^2)^(1/2) and z by e^(-t) of that: a token leaves the middle doubly exponentially fast.
    """
    times = np.asarray(t, float)
    lag = np.array([pair_delay([[1.0]], [radius], t=float(one)) for one in times.ravel()]).reshape(times.shape)
    log_size = np.log(radius) + times - lag
    begin, now = radius**2, np.exp(2 * log_size)
    sinh = [u + np.log(-np.expm1(-2 * u)) for u in (now, begin)]
    return (sinh[0] - sinh[1]) / 2 - times, log_size


def regular_radius(corners: ArrayLike, radius: float, *, t: float = np.inf) -> float:
    """Radius of z at time `t`, V = I, from clusters of equal masses at `radius` times `corners`, (corner, dim).

    The corners are unit vectors that symmetries of the set carry into each other, with the mean 0: a regular polygon, a
    Platonic solid. In x the radius obeys dr/dt = r g(r^2), with g(u) the mean of c = <corner, first corner> over the
    corners under weights proportional to e^(uc). So the limit is r(0) exp(-int_{r(0)^2}^infinity (1 - g)/(2 u g) du).
    """
    points = np.asarray(corners, float)
    if points.ndim != 2 or len(points) < 2 or not np.allclose(np.linalg.norm(points, axis=1), 1):
        raise InvalidInput(f"corners has shape {points.shape}; give at least two unit vectors, an array (corner, dim).")
    if not np.allclose(points.mean(axis=0), 0, atol=1e-9):
        raise InvalidInput(
            f"corners has the mean {points.mean(axis=0)!r}, not 0; give the corners of a regular polytope."
        )
    cosines = points @ points[0]
    nearest = 1 - np.sort(cosines)[-2]

    def excess(s: np.ndarray) -> np.ndarray:  # 1/g - 1 at log r = log r(0) + s
        weights = np.exp(np.multiply.outer(radius**2 * np.exp(2 * s), cosines - 1))
        return np.asarray((weights @ (1 - cosines)) / (weights @ cosines))

    end = max(0.5 * np.log(DECIDED / (nearest * radius**2)), 1.0)
    return float(radius * np.exp(-_delay(excess, end, _time(t))))


def _time(t: float) -> float:
    if not t >= 0:
        raise InvalidInput(f"t is {t!r}; a time must be at least 0.")
    return float(t)


def _delay(excess: Callable[[np.ndarray], np.ndarray], end: float, t: float) -> float:
    """int_0^s `excess`, where s + int_0^s `excess` = t; nothing is added beyond s = `end`."""
    from scipy.optimize import brentq

    edges = np.linspace(0.0, end, int(np.ceil(end / PANEL)) + 1)

    def integral(begin: Any, s: Any) -> Any:
        half = (s - begin) / 2
        at = np.add.outer(begin + half, 0 * NODES) + np.multiply.outer(half, NODES)
        return half * (excess(at) @ WEIGHTS)

    delays = np.concatenate([[0.0], np.cumsum(integral(edges[:-1], edges[1:]))])
    if t >= end + delays[-1]:
        return float(delays[-1])
    k = int(np.searchsorted(edges + delays, t, side="right")) - 1
    begin, known = edges[k], delays[k]
    return t - float(brentq(lambda s: s + known + integral(begin, s) - t, begin, edges[k + 1], xtol=1e-14))

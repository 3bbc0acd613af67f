"""Tokens with one common overlap through random attention layers: how dimension, context and temperature decide.

All pairs of n tokens have the overlap gamma. Time is tau = eta^2 L/H (`canonical_time`), b is the `logit_scale`. With
F_n of `simplex_weights`, f = F_n(s, 1), g = F_n(s, gamma) and s = b sqrt(1-gamma), a layer moves gamma by

    D = ((d-2+gamma^2)/d) (gamma + (1-gamma) g) - ((d-1)/d) gamma (gamma + (1-gamma) f)         per unit of tau.

Conditions of the whole file: Gaussian weights, Q and K with many rows (d_k -> inf), and the mean over layers; the
overlaps of one network scatter around it by O(d^{-1/2}), which moves their mean by O(1/d). Source: arXiv:2604.01978
for d -> inf, gamma' = (1-gamma) (gamma (1-f) + g); the form at finite d and the quadratures are ours.
"""

import functools
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp
from scipy.interpolate import BarycentricInterpolator
from scipy.special import expit, ndtr

from attnflow.errors import InvalidInput
from attnflow.theory.random_layers.gaussian_softmax import REACH, checked_count, common_weight

FINEST = 64
"""The largest degree of the polynomials that stand for f and g."""
STEEPEST = 1e3
"""The largest finite logit scale; hardmax is inf."""


def simplex_drift(overlap: ArrayLike, n: int, b: float, *, d: float = math.inf) -> np.ndarray:
    """The mean speed D(gamma) of the common overlap of n tokens per unit of tau.

    The formula stands at the head of this file. At gamma = 0 it is (d-2)/(d n) for every temperature, and near collapse
    (1-gamma)' = -(1-gamma) (d-3)/d for large d. -1/(n-1) <= overlap <= 1; b >= 0, inf for hardmax; d = inf is the form
    of arXiv:2604.01978.
    """
    n, b, d = _checked(n, b, d)
    gamma = _overlaps(overlap, n)
    return np.asarray((1 - gamma) * _quotient(gamma, *_weights(gamma, n, b), d))


def simplex_growth(n: int, b: float) -> tuple[float, float]:
    """(f(0), rate): how much of itself a query hears among orthogonal tokens, and how fast overlaps grow from there.

    Near gamma = 0 and for d -> inf, gamma' = 1/n + rate gamma with rate = 1 - f(0) - 1/n + b^2 (1-f(0))^2/(n-1). For
    hardmax (b = inf) b (1-f(0)) tends to the mean of the largest of n standard normal numbers. Ours.
    """
    n, b, _ = _checked(n, b, math.inf)
    own = common_weight(n, b, 1.0)
    heard = _largest_normal(n) if b == math.inf else b * (1 - own)
    return own, 1 - own - 1 / n + heard**2 / (n - 1)


def simplex_path(
    n: int, b: float, tau: ArrayLike, *, overlap0: float = 0.0, d: float = math.inf, gap: bool = False
) -> np.ndarray:
    """The common overlap at the times tau, from `overlap0` at tau = 0; with `gap` 1 - overlap, accurate near 1.

    Solves gamma' = D(gamma) for v = log(u/(1-u)), u = (1+(n-1) gamma)/n = |mean token|^2, which is v' = 1 for b = 0 and
    d = inf: gamma = (n u - 1)/(n - 1), u = u_0/(u_0 + (1-u_0) e^{-tau}). f and g are interpolated to 1e-6 or better.
    n >= 2, tau >= 0, -1/(n-1) < overlap0 < 1. Source and conditions: head of the file.
    """
    n, b, d = _checked(n, b, d)
    tau = np.asarray(tau, dtype=np.float64)
    if not (np.isfinite(tau) & (tau >= 0)).all():
        raise InvalidInput(f"tau is {tau!r}; times must be finite and at least 0.")
    start = float(_logit(_start(overlap0, n), n))
    if b == 0 and d == math.inf:
        v = start + tau
    else:
        speed, end = _speed(n, b, d, overlap0), float(np.max(tau, initial=0.0))
        found = solve_ivp(
            lambda _, v: speed(v), (0, end or 1.0), [start], "DOP853", rtol=1e-10, atol=1e-10, dense_output=True
        )
        v = found.sol(tau.ravel())[0].reshape(tau.shape)
    distance = n / (n - 1) * expit(-v)
    return np.asarray(distance if gap else 1 - distance)


def collapse_time(n: int, b: float, overlap: ArrayLike, *, d: float = math.inf, overlap0: float = 0.0) -> np.ndarray:
    """The time tau at which n tokens, from the common overlap `overlap0`, reach the common overlap `overlap`.

    The integral of d gamma/D(gamma); for b = 0 and d = inf it is log(u/(1-u)) - log(u_0/(1-u_0)) with
    u = (1+(n-1) gamma)/n, which is log(n+1) from 0 to 1/2. inf where D vanishes on the way (small d). overlap0 <=
    overlap <= 1. Source and conditions: head of the file.
    """
    n, b, d = _checked(n, b, d)
    levels, begin = _overlaps(overlap, n), _start(overlap0, n)
    if (levels < begin).any():
        raise InvalidInput(f"overlap is {overlap!r}; it must not lie below the start {overlap0!r}.")
    gain = levels - begin  # exact where it is small
    with np.errstate(divide="ignore"):
        ways = np.log1p((n - 1) * gain / (1 + (n - 1) * begin)) - np.log1p(-gain / (1 - begin))
    if b == 0 and d == math.inf:
        return np.asarray(ways)
    start, speed = float(_logit(begin, n)), _speed(n, b, d, overlap0)
    found = [_duration(speed, start, float(way)) for way in ways.ravel()]
    return np.reshape(np.array(found), levels.shape)


def _duration(speed: Callable[[np.ndarray], np.ndarray], start: float, way: float) -> float:
    """The integral of dv/v' from `start`, along `way`, by Gauss-Legendre on pieces of length 1/2 at most."""
    if way == 0 or way == math.inf:
        return way
    nodes, weights = np.polynomial.legendre.leggauss(12)
    edges = np.linspace(0.0, way, math.ceil(2 * way) + 1)
    half = np.diff(edges)[:, None] / 2
    v = start + edges[:-1, None] + half * (1 + nodes)
    rates = speed(v.ravel()).reshape(v.shape)
    return math.inf if (rates <= 0).any() else float(np.sum(half * weights / rates))


def _speed(n: int, b: float, d: float, overlap0: float) -> Callable[[np.ndarray], np.ndarray]:
    """v' = D(gamma)/((1-gamma) u) as a function of v, with f and g interpolated."""
    widest = math.sqrt(1 - min(overlap0, 0.0))
    interpolated = _interpolated(n, b, widest)

    def speed(v: np.ndarray) -> np.ndarray:
        distance = n / (n - 1) * expit(-v)
        logs = interpolated(np.sqrt(distance))
        return _quotient(1 - distance, np.exp(logs[..., 0]), np.exp(logs[..., 1]), d) / expit(v)

    return speed


@functools.lru_cache(maxsize=64)
def _interpolated(n: int, b: float, widest: float) -> Callable[[np.ndarray], np.ndarray]:
    """(log f, log g) as a function of x = sqrt(1-gamma) in [0, widest], each to 1e-6 at least.

    Polynomials on Chebyshev nodes, clustered at both ends, in y with b x = sinh(y asinh(b widest)): f and g turn from
    1/n to hardmax where b x is about 1. Nodes are doubled until the last ones brought no news.
    """

    def values(y: np.ndarray) -> np.ndarray:
        gamma = 1 - place(y) ** 2
        return np.log(np.stack(_weights(gamma, n, b), axis=-1))

    scale = math.asinh(b * widest) if 0 < b < math.inf else 0.0

    def place(y: np.ndarray) -> np.ndarray:
        return np.sinh(scale * y) / b if scale else widest * y

    def inverse(x: np.ndarray) -> np.ndarray:
        return np.arcsinh(b * x) / scale if scale else x / widest

    degree, y = 8, (1 - np.cos(np.pi * np.arange(9) / 8)) / 2
    known = values(y)
    while degree < FINEST:
        middle = (1 - np.cos(np.pi * (np.arange(degree) + 0.5) / degree)) / 2
        fresh = values(middle)
        news = np.max(np.abs(BarycentricInterpolator(y, known)(middle) - fresh))
        y, known = np.insert(y, range(1, degree + 1), middle), np.insert(known, range(1, degree + 1), fresh, axis=0)
        degree *= 2
        if news < 5e-4:  # twice the nodes square the error of an analytic function
            break
    polynomial = BarycentricInterpolator(y, known)
    return lambda x: polynomial(inverse(x))


def _weights(gamma: np.ndarray, n: int, b: float) -> tuple[np.ndarray, np.ndarray]:
    """f(gamma) and g(gamma); at gamma = 1 all tokens are one, and hardmax is taken as the limit from below."""
    flat = np.asarray(gamma, dtype=np.float64).ravel()
    spread = [math.inf if b == math.inf else b * math.sqrt(1 - one) for one in flat]
    own = [common_weight(n, s, 1.0) for s in spread]
    shared = [common_weight(n, s, float(one)) for s, one in zip(spread, flat, strict=True)]
    return np.reshape(own, np.shape(gamma)), np.reshape(shared, np.shape(gamma))


def _quotient(gamma: np.ndarray, f: np.ndarray, g: np.ndarray, d: float) -> np.ndarray:
    """D/(1-gamma), in which the two large terms of D have been subtracted by hand."""
    if d == math.inf:
        return gamma * (1 - f) + g
    return (gamma * (d - 2 - gamma) + (d - 2 + gamma**2) * g - (d - 1) * gamma * f) / d


def _largest_normal(n: int) -> float:
    """E max(z_1, ..., z_n) = n(n-1) int phi^2 Phi^{n-2} for standard normal numbers."""
    z = np.linspace(-REACH, REACH, 2001)
    return float(n * (n - 1) * np.sum(np.exp(-z * z) * ndtr(z) ** (n - 2)) / (2 * np.pi) * (z[1] - z[0]))


def _logit(gamma: np.ndarray, n: int) -> np.ndarray:
    """log(u/(1-u)) for u = (1+(n-1) gamma)/n."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log1p((n - 1) * gamma) - math.log(n - 1) - np.log1p(-gamma))


def _checked(n: int, b: float, d: float) -> tuple[int, float, float]:
    size = checked_count(n, 2)
    if np.ndim(b) or not (0 <= b <= STEEPEST or b == math.inf):
        raise InvalidInput(f"b is {b!r}; a logit scale is one number from 0 to {STEEPEST:g}, or inf (hardmax).")
    if np.ndim(d) or not d >= 2:
        raise InvalidInput(f"d is {d!r}; it must be an integer, at least 2, or inf.")
    return size, float(b), float(d)


def _overlaps(overlap: ArrayLike, n: int) -> np.ndarray:
    found = np.asarray(overlap, dtype=np.float64)
    if not ((found <= 1) & (found >= -1 / (n - 1))).all():
        raise InvalidInput(f"overlap is {overlap!r}; {n} tokens need -1/{n - 1} <= overlap <= 1.")
    return found


def _start(overlap0: float, n: int) -> np.ndarray:
    found = np.asarray(overlap0, dtype=np.float64)
    if found.ndim or not -1 / (n - 1) < found < 1:
        raise InvalidInput(f"overlap0 is {overlap0!r}; {n} tokens start at one overlap between -1/{n - 1} and 1.")
    return found

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
from scipy.interpolate import BarycentricInterpolator
from scipy.special import expit, log_ndtr

from attnflow.errors import InvalidInput, NotAccurate
from attnflow.special.curves import curve
from attnflow.special.formula import Integers, Other, Reals, formula
from attnflow.special.integrals import integral
from attnflow.special.numbers import ArrayLike, Numbers
from attnflow.theory.random_layers._domains import OrInfinite
from attnflow.theory.random_layers.gaussian_softmax import REACH, common_weight

FINEST = 256
"""The largest degree of the polynomials that stand for f and g."""
NEWS = 2e-5
"""The largest difference between log f, log g and the last but one polynomial; the last has the square of its error."""
STEEPEST = 1e3
"""The largest finite logit scale; hardmax is inf."""
SMALLEST_MEAN = 0.01
"""The smallest n |mean token|^2 from which overlaps are followed; it is 1 for orthogonal tokens."""
TOKENS = Integers(2, 10**8, scalar=True)
LOGIT_SCALE = OrInfinite("hardmax", Reals(0.0, STEEPEST, scalar=True))
DIMENSION = OrInfinite("many dimensions", Reals(2.0, 1e15, scalar=True))
LATEST = 1e4
"""The largest time tau to which an overlap is followed."""
START = Reals(-1.0, 1.0, ends="none", scalar=True)


@formula(
    overlap=Reals(-1.0, 1.0),
    n=TOKENS,
    b=LOGIT_SCALE,
    d=DIMENSION,
    relative=1e-11,
    absolute="2e-11 * (1 - overlap) * (np.abs(overlap) + 1 / n)",
)
def simplex_drift(overlap: ArrayLike, n: int, b: float, *, d: float = math.inf) -> Numbers:
    """The mean speed D(gamma) of the common overlap gamma of n tokens per unit of tau.

    With f = F_n(s, 1), g = F_n(s, gamma) of `simplex_weights` and s = b sqrt(1-gamma),

        D = ((d-2+gamma^2)/d) (gamma + (1-gamma) g) - ((d-1)/d) gamma (gamma + (1-gamma) f).

    At gamma = 0 it is (d-2)/(d n) for every temperature, and near collapse (1-gamma)' = -(1-gamma) (d-3)/d for large d.
    Q and K with many rows, mean over layers. d = inf is the form of arXiv:2604.01978, the one at finite d is ours.

    Arguments:
        overlap: gamma, at least -1/(n-1).
        n: number of tokens.
        b: logit scale.
        d: dimension.
    """
    _check_overlaps("overlap", overlap, n)
    return (1 - overlap) * _quotient(overlap, *_weights(overlap, n, b), d)


@formula(n=TOKENS, b=LOGIT_SCALE, absolute="1e-13 * (1 + np.minimum(b, 1e3))")
def simplex_growth(n: int, b: float) -> tuple[float, float]:
    """(f(0), rate): how much of itself a query hears among orthogonal tokens, and how fast overlaps grow from there.

    Near gamma = 0 and for d -> inf, gamma' = 1/n + rate gamma with rate = 1 - f(0) - 1/n + b^2 (1-f(0))^2/(n-1). For
    hardmax (b = inf) b (1-f(0)) tends to the mean of the largest of n standard normal numbers. Ours.

    Arguments:
        n: number of tokens.
        b: logit scale.
    """
    own = common_weight(n, b, 1.0)
    heard = _largest_normal(n) if b == math.inf else b * (1 - own)
    return own, 1 - own - 1 / n + heard**2 / (n - 1)


@formula(
    n=TOKENS,
    b=LOGIT_SCALE,
    tau=Reals(0.0, LATEST),
    overlap0=START,
    d=DIMENSION,
    gap=Other("True or False"),
    relative=1e-8,
    absolute="1e-8 / n * (not gap)",
)
def simplex_path(
    n: int, b: float, tau: ArrayLike, *, overlap0: float = 0.0, d: float = math.inf, gap: bool = False
) -> Numbers:
    """The common overlap at the times tau, from `overlap0` at tau = 0; with `gap` 1 - overlap, accurate near 1.

    Solves gamma' = D(gamma) of `simplex_drift` for v = log(u/(1-u)), u = (1+(n-1) gamma)/n = |mean token|^2, which is
    v' = 1 for b = 0 and d = inf: gamma = (n u - 1)/(n - 1), u = u_0/(u_0 + (1-u_0) e^{-tau}). f and g are polynomials
    through their values. Conditions and source are those of `simplex_drift`.

    Arguments:
        n: number of tokens.
        b: logit scale.
        tau: times.
        overlap0: overlap at tau = 0, above -1/(n-1).
        d: dimension.
        gap: True for 1 - overlap.

    Raises:
        NotAccurate: if 1 + (n-1) overlap0 is below 0.01, if no polynomial of degree 256 agrees with f and g, or if b is
            finite and so large (some 500) that `simplex_weights` refuses.
    """
    start = _logit(_start(overlap0, n), n)
    if b == 0 and d == math.inf:
        way = tau
    else:
        speed = _speed(n, b, d, overlap0)
        times, order = np.unique(tau, return_inverse=True)
        # a way beyond 800 leaves a gap of 0
        way = curve(lambda _, way: speed(start + way) * (way < 800), 0.0, [0.0, *times], rtol=1e-9, atol=1e-11)
        way = way[0, 1:][order].reshape(tau.shape)
    ratio = n / (n - 1)
    if gap:
        return ratio * expit(-start - way)
    # as a rise from the start, whose digits a long context needs
    return np.minimum(overlap0 - ratio * expit(start + way) * expit(-start) * np.expm1(-way), 1.0)


@formula(n=TOKENS, b=LOGIT_SCALE, overlap=Reals(-1.0, 1.0), d=DIMENSION, overlap0=START, relative=1e-8)
def collapse_time(n: int, b: float, overlap: ArrayLike, *, d: float = math.inf, overlap0: float = 0.0) -> Numbers:
    """The time tau at which n tokens, from the common overlap `overlap0`, reach the common overlap `overlap`.

    The integral of d gamma/D(gamma), D of `simplex_drift`; for b = 0 and d = inf it is
    log(u/(1-u)) - log(u_0/(1-u_0)) with u = (1+(n-1) gamma)/n, which is log(n+1) from 0 to 1/2. inf where D vanishes on
    the way (small d), and for overlap 1. Conditions and source are those of `simplex_drift`.

    Arguments:
        n: number of tokens.
        b: logit scale.
        overlap: overlaps to reach, at least `overlap0`.
        d: dimension.
        overlap0: overlap at tau = 0, above -1/(n-1).

    Raises:
        NotAccurate: if 1 + (n-1) overlap0 is below 0.01, if no polynomial of degree 256 agrees with f and g, if D
            nearly vanishes on the way, or if b is finite and so large (some 500) that `simplex_weights` refuses.
    """
    _check_overlaps("overlap", overlap, n)
    begin = _start(overlap0, n)
    if (overlap < begin).any():
        raise InvalidInput(f"`overlap` is {overlap!r}; it must not lie below the start {overlap0!r}.")
    gain = overlap - begin  # exact where it is small
    with np.errstate(divide="ignore"):
        ways = np.log1p((n - 1) * gain / (1 + (n - 1) * begin)) - np.log1p(-np.minimum(gain / (1 - begin), 1.0))
    if b == 0 and d == math.inf:
        return ways
    start, speed = _logit(begin, n), _speed(n, b, d, overlap0)
    reached = np.isfinite(ways)
    grid = np.linspace(0.0, np.max(ways, initial=0.0, where=reached), 2000)
    stops = grid[speed(start + grid) <= 0]
    reached &= ways < np.min(stops, initial=math.inf)
    finite = np.where(reached, ways, 0.0)
    times = integral(lambda way: 1 / speed(start + way), 0.0, finite, rtol=1e-10)
    return np.where(reached, times, math.inf)


def _speed(n: int, b: float, d: float, overlap0: float) -> Callable[[np.ndarray], np.ndarray]:
    """v' = D(gamma)/((1-gamma) u) as a function of v, with f and g interpolated."""
    if 1 + (n - 1) * overlap0 < SMALLEST_MEAN:
        raise NotAccurate(
            f"1 + (n-1) overlap0 is below {SMALLEST_MEAN}: the tokens nearly cancel; start from a larger overlap."
        )
    # D >= 0 at overlap 0: what starts above stays above
    widest = 1.0 if overlap0 >= 0 else n / (n - 1)
    interpolated = _interpolated(n, b, math.sqrt(widest))

    def speed(v: np.ndarray) -> np.ndarray:
        v = np.maximum(v, -700.0)  # a solver tries steps that it does not take
        distance = np.minimum(n / (n - 1) * expit(-v), widest)
        f, g = interpolated(np.sqrt(distance))
        return _quotient(1 - distance, f, g, d) / expit(v)

    return speed


@functools.lru_cache(maxsize=64)
def _interpolated(n: int, b: float, widest: float) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """(f, g) as functions of x = sqrt(1-gamma) in [0, widest].

    Polynomials for log f and log g on Chebyshev nodes, clustered at both ends, in y with
    b x = sinh(y asinh(b widest)): f and g turn from 1/n to hardmax where b x is about 1. Nodes are doubled until the
    polynomial before the last agrees with all new values to `NEWS`; twice the nodes square the error of an analytic
    function.
    """
    scale = math.asinh(b * widest) if 0 < b < math.inf else 0.0

    def place(y: np.ndarray) -> np.ndarray:
        return np.sinh(scale * y) / b if scale else widest * y

    def values(y: np.ndarray) -> np.ndarray:
        return np.log(np.stack(_weights(np.maximum(1 - place(y) ** 2, -1 / (n - 1)), n, b), axis=-1))

    degree, y = 8, (1 - np.cos(np.pi * np.arange(9) / 8)) / 2
    logs, news = values(y), math.inf
    while news > NEWS:
        if degree >= FINEST:
            raise NotAccurate(f"weights of softmax at b = {b!r} are no polynomial of degree {FINEST}.")
        middle = (1 - np.cos(np.pi * (np.arange(degree) + 0.5) / degree)) / 2
        new_logs = values(middle)
        news = np.max(np.abs(BarycentricInterpolator(y, logs)(middle) - new_logs))
        y, logs = np.insert(y, range(1, degree + 1), middle), np.insert(logs, range(1, degree + 1), new_logs, axis=0)
        degree *= 2
    polynomial = BarycentricInterpolator(y, logs)

    def interpolated(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        f, g = np.moveaxis(np.exp(polynomial(np.arcsinh(b * x) / scale if scale else x / widest)), -1, 0)
        return f, g

    return interpolated


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

    def density(z: np.ndarray) -> np.ndarray:
        return np.asarray(n * ((n - 1) / (2 * np.pi)) * np.exp((n - 2) * log_ndtr(z) - z * z))

    return float(integral(density, -REACH, REACH, points=np.arange(-9.0, 10.0)))


def _logit(gamma: float, n: int) -> float:
    """log(u/(1-u)) for u = (1+(n-1) gamma)/n."""
    return math.log1p((n - 1) * gamma) - math.log(n - 1) - math.log1p(-gamma)


def _check_overlaps(name: str, overlap: ArrayLike, n: int) -> None:
    if (np.asarray(overlap) < -1 / (n - 1)).any():
        raise InvalidInput(f"`{name}` is {overlap!r}; {n} tokens need -1/{n - 1} <= overlap <= 1.")


def _start(overlap0: float, n: int) -> float:
    if overlap0 <= -1 / (n - 1):
        raise InvalidInput(f"`overlap0` is {overlap0!r}; {n} tokens start at one overlap between -1/{n - 1} and 1.")
    return overlap0

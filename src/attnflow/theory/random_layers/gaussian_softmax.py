"""Softmax of Gaussian logits: how many tokens a query hears, and how many two queries hear in common.

F_n(s, rho) = E sum_k p_k q_k for p = softmax(s z), q = softmax(s z'), where (z_k, z'_k) are n independent pairs of
standard normal numbers with correlation rho. No sampling: 1/Z = int e^{-uZ} du turns the sums over tokens into powers.
"""

import functools
import math

import numpy as np
from scipy.special import log_ndtr, ndtr, owens_t

from attnflow.errors import NotAccurate
from attnflow.special.formula import Integers, formula
from attnflow.special.numbers import ArrayLike, Numbers
from attnflow.theory.random_layers._domains import OVERLAP, WithInfinite

REACH = 10.5
"""Normal numbers are integrated up to here: what lies beyond has probability 1e-25."""
COUNT = Integers(1, 10**8, scalar=True)
"""Numbers of tokens, up to which the tails of normal numbers that are left out do not count."""
MOST_POINTS = 4000
"""The largest number of points of log t; their pairs take 128 MB."""
LOWEST = -64.0
"""Where e^y is as good as 0."""


@formula(
    n=COUNT,
    s=WithInfinite("hardmax"),
    rho=OVERLAP,
    relative=1e-11,
    absolute=1e-16,
)
def simplex_weights(n: int, s: ArrayLike, rho: ArrayLike) -> Numbers:
    """F_n(s, rho) = E sum_k softmax(s z)_k softmax(s z')_k, with corr(z_k, z'_k) = rho and n independent entries.

    F_n(s, 1) = n int t E[e^{2sz - t e^{sz}}] phi(t)^{n-1} dt with phi(t) = E e^{-t e^{sz}}. For |rho| < 1 it is the
    double integral with E[e^{sz + sz' - t e^{sz} - t' e^{sz'}}], where z and z' are independent given their common
    part. F_n(0, rho) = F_n(s, 0) = 1/n, and F_n = (1 + rho s^2 (1-1/n) + O(s^4))/n. For s = inf (hardmax) it is the
    probability that z and z' have their largest entry at the same place. By trapezoidal rules in logarithms, which are
    exponentially accurate for these analytic functions. Ours; the simplex of arXiv:2604.01978.

    Arguments:
        n: number of tokens.
        s: standard deviation of the logits.
        rho: correlation of the logits of two queries.

    Raises:
        NotAccurate: for finite s above 60 and 0.99 < |rho| < 1, where two scales are too far apart.
    """
    pairs = np.broadcast(s, rho)
    weights = [common_weight(n, float(scale), float(correlation)) for scale, correlation in pairs]
    return np.reshape(np.array(weights), pairs.shape)


@functools.lru_cache(maxsize=4096)
def common_weight(n: int, s: float, rho: float) -> float:
    """`simplex_weights` for one n, s and rho, remembered."""
    if n == 1:
        return 1.0
    if s == 0 or rho == 0:
        return 1.0 / n
    if rho == 1:
        return 1.0 if s == math.inf else _own_weight(n, s)
    if s == math.inf:
        return _hard_weight(n, rho)
    return _shared_weight(n, s, rho)


def _own_weight(n: int, s: float) -> float:
    """F_n(s, 1) by the single integral over log t."""
    step = min(0.25 * max(1.0, s / 6), 0.25 + s)
    t = _window(n, s, step)
    missing = np.minimum(_smoothed(t, s)[0], 1 - 1e-16)
    return float(n * step * np.sum(_squares(t, s) * np.exp((n - 1) * np.log1p(-missing))))


def _shared_weight(n: int, s: float, rho: float) -> float:
    """F_n(s, rho) by the double integral over log t and log t'; given the common part, z and z' are independent."""
    common, own = s * math.sqrt(abs(rho)), s * math.sqrt(1 - abs(rho))
    step = (0.25 if s < 0.5 else 0.33) * max(1.0, own / 6)
    t = _window(n, s, step)
    if len(t) > MOST_POINTS:
        raise NotAccurate(f"a softmax as steep as s = {s!r} with rho = {rho!r} takes too long; give s = inf (hardmax).")
    missing, slope, mass = _given_common(t, step, common, own)
    across = slice(None, None, -1 if rho < 0 else 1)
    alone = missing @ mass
    both = alone[:, None] + alone - (missing * mass) @ missing[:, across].T
    heard = (slope * mass) @ slope[:, across].T
    with np.errstate(divide="ignore"):
        powers = np.exp((n - 1) * np.log1p(-np.minimum(both, 1.0)))
    return float(n * step * step * np.sum(heard * powers))


def _given_common(t: np.ndarray, step: float, common: float, own: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The first two means of `_smoothed` at t + common w for nodes w of a standard normal number, and their masses."""
    if common < 0.15:  # few nodes serve a narrow common part
        nodes, mass = np.polynomial.hermite_e.hermegauss(20)
        missing, slope = _smoothed((t[:, None] + common * nodes).ravel(), own)
        return missing.reshape(len(t), -1), slope.reshape(len(t), -1), mass / math.sqrt(2 * math.pi)
    parts = math.ceil(step / (0.45 * common))  # t + common w runs over one grid, `parts` times finer than t
    gap = step / (parts * common)
    half = math.ceil(REACH / gap)
    w = gap * np.arange(-half, half + 1)
    line = t[0] + step / parts * np.arange(-half, parts * (len(t) - 1) + half + 1)
    place = parts * np.arange(len(t))[:, None] + np.arange(2 * half + 1)
    missing, slope = _smoothed(line, own)
    return missing[place], slope[place], np.exp(-w * w / 2) * gap / math.sqrt(2 * math.pi)


def _hard_weight(n: int, rho: float) -> float:
    """n P(z_1 and z'_1 are the largest): a double integral over (z + z')/2 and (z - z')/2, each in its own units."""
    wide, narrow = math.sqrt((1 + rho) / 2), math.sqrt((1 - rho) / 2)
    fine = 0.3 / math.sqrt(1 + 2 * math.log(n))
    half = math.ceil(REACH / fine)
    m = fine * np.arange(-half, half + 1)[:, None] + fine / math.pi  # z = 0 is a special place of Owen's function
    m = m[(n - 1) * log_ndtr(wide * m[:, 0]) > -80]  # one of z and z' lies below their mean
    apart = fine * (np.arange(half + 1) + 0.5)  # and as much for the opposite sign
    density = np.exp(-(m * m + apart * apart) / 2) * fine * fine / math.pi
    return float(
        n * np.sum(density * np.exp((n - 1) * np.log(np.maximum(_both_below(m, apart, wide, narrow), 1e-300))))
    )


def _both_below(m: np.ndarray, apart: np.ndarray, wide: float, narrow: float) -> np.ndarray:
    """P(z <= x, z' <= y) at x, y = wide m +- narrow apart, z and z' of correlation wide^2 - narrow^2; Owen's function.

    Its slopes (y/x - rho)/sqrt(1 - rho^2) are (narrow m - wide apart)/x, which needs no difference of equal numbers.
    """
    x, y = wide * m + narrow * apart, wide * m - narrow * apart
    first, second = owens_t(x, (narrow * m - wide * apart) / x), owens_t(y, (narrow * m + wide * apart) / y)
    return (ndtr(x) + ndtr(y)) / 2 - first - second - np.where(x * y < 0, 0.5, 0.0)


def _window(n: int, s: float, step: float) -> np.ndarray:
    """The logarithms t, with this step, outside which the integrals have 1e-18/n of their mass.

    The mass below t is 1 - (1-c(t))^n at most, c(t) = E[1 - exp(-e^{t+sz})].
    """
    grid = np.linspace(LOWEST - REACH * s, 6 + REACH * s, 160)
    missing = np.maximum(_smoothed(grid, s)[0], 1e-300)
    small = 41.5 + math.log(n)
    inside = (math.log(n) + np.log(missing) > -small) & (n * -np.log1p(-np.minimum(missing, 1 - 1e-16)) < small)
    inside = np.flatnonzero(inside)
    low, high = grid[max(inside[0] - 1, 0)], grid[min(inside[-1] + 1, len(grid) - 1)]
    return low + step * np.arange(math.ceil((high - low) / step) + 1)


def _smoothed(x: np.ndarray, spread: float) -> tuple[np.ndarray, np.ndarray]:
    """E[1 - exp(-e^y)] and its derivative E[e^{y - e^y}] for y = x + spread z, z standard normal.

    Narrow normals are summed over z; wide ones over y, where the first is E P(y > a Gumbel number).
    """
    if spread < 0.8:
        z, mass = _normal_nodes(spread)
        e = np.exp(np.minimum(x[:, None] + spread * z, 40.0))
        fall = np.exp(-e)
        return -np.expm1(-e) @ mass, (e * fall) @ mass
    y, slope = _gumbel_nodes()
    z = (y - x[:, None]) / spread
    return ndtr(-z) @ slope, np.exp(-z * z / 2) @ slope / (spread * math.sqrt(2 * math.pi))


def _squares(x: np.ndarray, spread: float) -> np.ndarray:
    """E[e^{2y - e^y}] for y = x + spread z, z standard normal."""
    if spread < 0.8:
        z, mass = _normal_nodes(spread)
        e = np.exp(np.minimum(x[:, None] + spread * z, 40.0))
        return (e * e * np.exp(-e)) @ mass
    y, slope = _gumbel_nodes()
    z = (y - x[:, None]) / spread
    return np.exp(-z * z / 2) @ (slope * np.exp(y)) / (spread * math.sqrt(2 * math.pi))


def _normal_nodes(spread: float) -> tuple[np.ndarray, np.ndarray]:
    """Equidistant standard normal numbers and their masses, fine enough for a function of y on the scale 1."""
    gap = min(0.5, 0.3 / max(spread, 1e-9))
    z = gap * np.arange(-math.ceil(REACH / gap), math.ceil(REACH / gap) + 1)
    return z, np.exp(-z * z / 2) * gap / math.sqrt(2 * math.pi)


@functools.cache
def _gumbel_nodes() -> tuple[np.ndarray, np.ndarray]:
    y = np.arange(LOWEST, 4.5, 0.25)
    return y, np.exp(y - np.exp(y)) * 0.25

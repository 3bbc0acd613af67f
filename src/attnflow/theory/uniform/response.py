"""Small deviations from a common overlap: how fast they grow, and how large they are for iid tokens."""

import math

import numpy as np
from numpy.typing import ArrayLike

from attnflow.errors import InvalidInput
from attnflow.theory.checks import checked_beta, checked_integers, checked_model
from attnflow.theory.uniform.spectrum import LARGEST_LOG


def overlap_rates(overlap: ArrayLike, beta: float, n: int, *, model: str = "SA") -> tuple[np.ndarray, np.ndarray]:
    """(gamma', rates): the speed of the common overlap, and the rates of the three parts of a small deviation D_ij.

    The parts are the mean, the row sums without their mean, and the rest; rates has them on a new last axis. With
    e = e^{-beta (1-gamma)}, c = (1-gamma)(1+beta gamma) and the row sums R_i of D, USA0 has
    D_ij' = (e/n) (2 (beta (1-gamma^2) - n gamma - c) D_ij + c (R_i + R_j)), where R_i + R_j is 2 (n-1) D_ij,
    (n-2) D_ij and 0 for the three parts. SA divides by Z = (1+(n-1)e)/n, which changes by e beta R_i/n.
    -1/(n-1) < overlap < 1; "SA" or "USA0".
    """
    gamma, beta, n = np.asarray(overlap, dtype=np.float64)[..., None], float(checked_beta(beta)), _size(n)
    if checked_model(model) == "USA":
        raise InvalidInput("model is 'USA'; use 'USA0', whose rates are smaller by e^beta.")
    e, c = np.exp(-beta * (1 - gamma)), (1 - gamma) * (1 + beta * gamma)
    rows = _rows(n)
    half = e / n * (1 - gamma) * (1 + (n - 1) * gamma)
    rates = e / n * (2 * (beta * (1 - gamma**2) - n * gamma - c) + c * rows)
    if model == "SA":
        total = (1 + (n - 1) * e) / n
        rates, half = rates / total - half * e * beta / n / total**2 * rows, half / total
    return np.asarray(2 * half[..., 0]), np.asarray(rates)


def overlap_growth(overlap: float, beta: float, n: int, *, model: str = "SA") -> np.ndarray:
    """Factors by which the three parts of a small deviation have grown when the common overlap 0 has become `overlap`.

    exp of the integral of rate/gamma' from 0 to `overlap`; the mean grows by gamma'(overlap)/gamma'(0). The integral is
    taken over the log-odds L = log((1+(n-1)gamma)/(1-gamma)): (rate/gamma') dgamma/dL has no singularity at gamma = 1
    or at the simplex, and no factor e^{-beta (1-gamma)}. -1/(n-1) < overlap < 1; beyond float range it is refused.
    """
    end, beta, size = float(overlap), float(checked_beta(beta)), _size(n)
    if not -1 / (size - 1) < end < 1:
        raise InvalidInput(f"overlap is {overlap!r}; it must lie between -1/(n-1) and 1.")
    if checked_model(model) == "USA":
        raise InvalidInput("model is 'USA'; use 'USA0', whose rates are smaller by e^beta.")
    way = math.log1p((size - 1) * end) - math.log1p(-end)
    # panels no wider than 1 in L and 1/2 in beta gamma
    steps = np.linspace(0.0, end, math.ceil(2 * beta * abs(end)) + 1)
    steps = np.log1p((size - 1) * steps) - np.log1p(-steps)
    edges = np.unique(np.concatenate([np.linspace(0.0, way, math.ceil(abs(way)) + 1), steps]))
    nodes, weights = np.polynomial.legendre.leggauss(16)
    half = np.diff(edges)[:, None] / 2
    odds = np.exp(edges[:-1, None] + half * (1 + nodes))[..., None]
    gap, gamma = size / (size - 1 + odds), (odds - 1) / (size - 1 + odds)
    c, rows = gap * (1 + beta * gamma), _rows(size)
    slope = (beta * gap * (1 + gamma) - size * gamma - c + c * rows / 2) / size
    if model == "SA":
        e = np.exp(-beta * gap)
        slope = slope - gap * (1 + (size - 1) * gamma) * e * beta / (1 + (size - 1) * e) * rows / (2 * size)
    logs = math.copysign(1.0, way) * np.sum((half * weights)[..., None] * slope, axis=(0, 1))
    if (logs >= LARGEST_LOG).any():
        raise InvalidInput(f"beta is {beta!r}; the growth leaves float range there, give a smaller beta.")
    return np.asarray(np.exp(logs))


def overlap_spread(overlap: float, beta: float, n: int, *, model: str = "SA") -> float:
    """Limit for d -> infinity of sqrt(d) times the root mean square of <x_i, x_j> - gamma, iid tokens on S^{d-1}.

    The n (n-1)/2 overlaps start uncorrelated with variance 1/d, so that the three parts have the shares 1, n - 1 and
    n (n-3)/2 of the whole, and each grows by its factor of `overlap_growth`.
    """
    pairs = _size(n) * (n - 1) // 2
    shares = np.array([1, n - 1, pairs - n]) / pairs
    return float(np.sqrt(np.sum(shares * overlap_growth(overlap, beta, n, model=model) ** 2)))


def collapse_time_spread(beta: ArrayLike, *, n: ArrayLike, d: ArrayLike) -> np.ndarray:
    """Standard deviation of the time at which the mean overlap of iid tokens passes a level, to first order.

    SA, first order in d^{-1/2}. The mean overlap at the start has the variance 2/(n (n-1) d), and a shift of gamma at 0
    is a shift of time by that over gamma'(0) = 2/(e^beta + n - 1). The spread does not depend on the level. All
    arguments broadcast.
    """
    beta, n = checked_beta(beta), checked_integers("n", n, 2)
    return np.asarray(np.sqrt(2 / (n * (n - 1) * checked_integers("d", d, 2))) * (np.exp(beta) + n - 1) / 2)


def _rows(n: int) -> np.ndarray:
    """R_i + R_j over D_ij of the three parts."""
    return np.array([2.0 * (n - 1), n - 2.0, 0.0])


def _size(n: int) -> int:
    found = checked_integers("n", n, 3)
    if found.ndim:
        raise InvalidInput(f"n is {n!r}; it must be one integer, at least 3.")
    return int(found)

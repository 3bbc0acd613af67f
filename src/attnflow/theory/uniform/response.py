"""Small deviations from a common overlap: how fast they grow, and how large they are for iid tokens."""

import numpy as np
from scipy.special import expit

from attnflow.errors import InvalidInput
from attnflow.special.formula import Integers, Reals, Word, formula
from attnflow.special.numbers import ArrayLike
from attnflow.theory.uniform.equiangular import height
from attnflow.theory.uniform.spectrum import BETA, LARGEST_LOG
from attnflow.wording import shown

PAIR_MODEL = Word(("SA", "USA0"))
TOKENS = Integers(3, scalar=True)


@formula(
    overlap=Reals(-1.0, 1.0),
    beta=Reals(0.0, 1e8, scalar=True),
    n=TOKENS,
    model=PAIR_MODEL,
    relative="1e-14 * (1 + beta * (1 - overlap))",
    absolute="1e-15 * (10 + beta) * (1 + beta * (1 - overlap)) * np.minimum(n * np.exp(-beta * (1 - overlap)), 2)",
)
def overlap_rates(overlap: ArrayLike, beta: float, n: int, *, model: str = "SA") -> tuple[np.ndarray, np.ndarray]:
    """(gamma', rates): the speed of the common overlap, and the rates of the three parts of a small deviation D_ij.

    The parts are the mean, the row sums without their mean, and the rest; rates has them on a new last axis. With
    e = e^{-beta (1-gamma)}, c = (1-gamma)(1+beta gamma) and the row sums R_i of D, USA0 has
    D_ij' = (e/n) (2 (beta (1-gamma^2) - n gamma - c) D_ij + c (R_i + R_j)), where R_i + R_j is 2 (n-1) D_ij,
    (n-2) D_ij and 0 for the three parts. SA divides by Z = (1+(n-1)e)/n, which changes by e beta R_i/n. USA is e^beta
    times as fast as USA0.

    Arguments:
        overlap: the common overlaps, above -1/(n-1).
        beta: inverse temperature.
        n: number of tokens.
        model: "SA" or "USA0".
    """
    gamma = overlap[..., None]
    gap, above, rows = 1 - gamma, _height(gamma, n), _rows(n)
    with np.errstate(under="ignore"):
        e = np.exp(-beta * gap)
        half = gap * above / n
        rates = 2 * beta * gap * (1 + gamma) / n - 2 * gamma + gap * (1 + beta * gamma) * ((rows - 2) / n)
        if model == "SA":
            e = e / ((1 + (n - 1) * e) / n)
            rates = rates - half * e * beta / n * rows
        return np.asarray(2 * (half * e)[..., 0]), np.asarray(rates * e)


@formula(
    overlap=Reals(-1.0, 1.0, ends="left", scalar=True),
    beta=Reals(0.0, 1e8, scalar=True),
    n=TOKENS,
    model=PAIR_MODEL,
    relative="1e-15 * (20 + 20 * beta * np.abs(overlap))",
)
def overlap_growth(overlap: float, beta: float, n: int, *, model: str = "SA") -> np.ndarray:
    """Factors by which the three parts of a small deviation have grown when the common overlap 0 has become `overlap`.

    exp of the integral of rate/gamma' of `overlap_rates` from 0 to gamma. With h = 1+(n-1) gamma and the weights w = 1,
    (n-2)/(2(n-1)) and 0 of the mean, the row sums and the rest it is (1-gamma) h^w e^{beta (w gamma + (1-w)
    log(h)/(n-1))} for USA0; SA divides by (Z(gamma)/Z(0))^w, Z = 1 + (n-1) e^{-beta (1-gamma)}. The mean grows by
    gamma'(overlap)/gamma'(0). Derived here; beyond float range it is refused.

    Arguments:
        overlap: the common overlap at the end, above -1/(n-1).
        beta: inverse temperature.
        n: number of tokens.
        model: "SA" or "USA0".
    """
    above, others = float(_height(np.asarray(overlap), n)), n - 1.0
    log_above = np.log1p(others * overlap) if abs(others * overlap) < 0.5 else np.log(above)
    weight = _rows(n) / (2 * others)
    logs = np.log1p(-overlap) + weight * log_above + beta * (weight * overlap + (1 - weight) * log_above / others)
    if model == "SA":
        start, change = np.log(others) - beta, beta * overlap
        if change < 30:
            logs -= weight * np.log1p(expit(start) * np.expm1(change))
        else:
            logs -= weight * (np.logaddexp(0.0, start + change) - np.logaddexp(0.0, start))
    if (logs >= LARGEST_LOG).any():
        raise InvalidInput(f"`beta` is {beta!r}; the growth leaves float range there, give a smaller beta.")
    with np.errstate(under="ignore"):
        return np.asarray(np.exp(logs))


@formula(
    overlap=Reals(-1.0, 1.0, ends="left", scalar=True),
    beta=Reals(0.0, 1e8, scalar=True),
    n=TOKENS,
    model=PAIR_MODEL,
    relative="1e-15 * (20 + 20 * beta * np.abs(overlap))",
)
def overlap_spread(overlap: float, beta: float, n: int, *, model: str = "SA") -> float:
    """Limit for d -> infinity of sqrt(d) times the root mean square of <x_i, x_j> - gamma, iid tokens on S^{d-1}.

    The n (n-1)/2 overlaps start uncorrelated with variance 1/d, so that the three parts have the shares 1, n - 1 and
    n (n-3)/2 of the whole, and each grows by its factor of `overlap_growth`.

    Arguments:
        overlap: the common overlap at the end, above -1/(n-1).
        beta: inverse temperature.
        n: number of tokens.
        model: "SA" or "USA0".
    """
    pairs = n * (n - 1) // 2
    growth = overlap_growth(overlap, beta, n, model=model)
    largest = growth.max() or 1.0
    return float(largest * np.sqrt(np.sum(np.array([1, n - 1, pairs - n]) / pairs * (growth / largest) ** 2)))


@formula(beta=BETA, n=Integers(2), d=Integers(2), relative=2e-15)
def collapse_time_spread(beta: ArrayLike, *, n: ArrayLike, d: ArrayLike) -> np.ndarray:
    """Standard deviation of the time at which the mean overlap of iid tokens passes a level, to first order.

    sqrt(2/(n (n-1) d)) (e^beta + n - 1)/2 for SA, first order in d^{-1/2}: the mean overlap at the start has the
    variance 2/(n (n-1) d), and a shift of gamma at 0 is a shift of time by that over gamma'(0) = 2/(e^beta + n - 1).
    The spread does not depend on the level. All arguments are broadcast.

    Arguments:
        beta: inverse temperatures.
        n: numbers of tokens.
        d: dimensions of the space around the sphere.
    """
    others = n - 1.0
    scale = np.sqrt(0.5 / (n * others * d))
    with np.errstate(over="ignore"):
        spread = scale * np.exp(beta / 2) * np.exp(beta / 2) + scale * others  # e^beta alone may be out of range
    if np.isinf(spread).any():
        raise InvalidInput(f"`beta` is {shown(beta.tolist())}; the spread, of order e^beta, leaves float range.")
    return np.asarray(spread)


def _rows(n: int) -> np.ndarray:
    """R_i + R_j over D_ij of the three parts."""
    return np.array([2.0 * (n - 1), n - 2.0, 0.0])


def _height(overlap: np.ndarray, n: int) -> np.ndarray:
    """1 + (n-1) overlap, or a refusal where it is not positive."""
    above = height(np.asarray(float(n)), overlap)
    if (above <= 0).any():
        raise InvalidInput(f"`overlap` is {shown(overlap.tolist())}; it must lie between -1/(n-1) and 1.")
    return above

"""Modified Bessel functions in ratios and logarithms, for every order and argument."""

import functools
import math

import numpy as np
from scipy import special as sp

from attnflow.special.formula import Integers, Reals, formula
from attnflow.special.numbers import ArrayLike, Numbers

ORDER = Reals(0.0, 1e15, scalar=True)
LARGE_ORDER = 20.0
"""From here on 12 terms of Debye's expansion leave an error below rounding, for every argument."""
HUGE_ORDER = 1e5
"""From here on so do two terms of the expansion of a ratio with one step of its recurrence."""


@formula(order=ORDER, x=Reals(0.0), count=Integers(1, 10**7, scalar=True), relative=2e-15)
def bessel_ratios(order: float, x: ArrayLike, count: int) -> np.ndarray:
    """Ratios I_{order+j}(x) / I_{order+j-1}(x) for j = 1, ..., count; shape (*x.shape, count).

    The last one by Perron's continued fraction, the others from it by r_q = 1/(2q/x + r_{q+1}), which shrinks errors,
    never overflows, and works where `ive` underflows (order 2047, x = 1).

    Arguments:
        order: order of the denominator of the first ratio.
        x: arguments.
        count: number of ratios.
    """
    ratios = np.empty((*x.shape, count))
    ratio = ratios[..., count - 1] = x / (x + _excess(order + count - 1, x))
    for j in range(count - 1, 0, -1):
        ratio = x / (2 * (order + j) + x * ratio)
        ratios[..., j - 1] = ratio
    return ratios


@formula(order=ORDER, x=Reals(0.0), relative=2e-15)
def bessel_gap(order: float, x: ArrayLike) -> Numbers:
    """1 - I_{order+1}(x)/I_order(x), with all its digits where the ratio is near 1 as well."""
    excess = _excess(order, x)
    return excess / (x + excess)


def _excess(order: float, x: np.ndarray) -> Numbers:
    """x (I_order(x)/I_{order+1}(x) - 1), between order + 1/2 (for large x) and 2 order + 2.

    It is 2 order + 2 - K for Perron's fraction K = (2 order + 3) x/(2 order + 3 + 2 x - (2 order + 5) x/(...)), see
    Gautschi and Slavik (1978), Math. Comp. 32. Quotients of its terms are at most 1/4, near it where x is half the
    order; those from k on count exp(-k^2/(2 order)), hence their number.
    """
    if order < HUGE_ORDER:
        tail = np.zeros_like(x)
        with np.errstate(divide="ignore", over="ignore"):  # 0 where x is 0
            for k in range(60 + math.ceil(9 * math.sqrt(order)), 0, -1):
                tail = (2 * order + 2 * k + 1) / (2 + (2 * order + k + 2 - tail) / x)
        return 2 * order + 2 - tail
    # an error e at order + 1 is one of -share^2 e after the recurrence, so that the two estimates cancel
    estimate, following = _expanded_excess(order, x), _expanded_excess(order + 1, x)
    share = x / (x + estimate)
    return (2 * order + 2 - x * (following / (x + following)) + share**2 * estimate) / (1 + share**2)


def _expanded_excess(order: float, x: np.ndarray) -> Numbers:
    """`_excess` for large orders, by Debye's expansion: the next term is of order 1/root."""
    root = np.hypot(order, x)
    return order + order * (order / (root + x)) + (1 + order / root) ** 2 / 2


@formula(order=ORDER, x=Reals(1e-290), relative=2e-14, absolute=1e-14)
def log_scaled_bessel(order: float, x: ArrayLike) -> Numbers:
    """log(e^{-x} I_order(x)), for every order and argument.

    Orders from 20 on by Debye's uniform expansion; smaller ones by `ive` of SciPy, by Hankel's expansion for x > 1e6,
    and by the first terms of the power series where `ive` underflows.
    """
    if order >= LARGE_ORDER:
        root = np.hypot(order, x)
        corrections = sum(polynomial(order / root) / order**k for k, polynomial in enumerate(_debye()) if k)
        exponent = order * (order / (root + x)) - order * np.arcsinh(order / x)
        return exponent - np.log(2 * np.pi * root) / 2 + np.log1p(corrections)
    with np.errstate(all="ignore"):
        direct = np.log(sp.ive(order, np.minimum(x, 1e6)))
        first = order * np.log(x / 2) - sp.gammaln(order + 1) - x + np.log1p(x * x / (4 * order + 4))
    term = np.ones_like(x)
    hankel = np.zeros_like(x)
    for k in range(1, 6):
        term = term * ((2 * k - 1) ** 2 - 4 * order**2) / (8 * k * np.maximum(x, 1e6))
        hankel = hankel + term
    far = np.log1p(hankel) - np.log(2 * np.pi * x) / 2
    return np.where(x > 1e6, far, np.where(direct > -600, direct, first))[()]


@functools.cache
def _debye() -> list[np.polynomial.Polynomial]:
    """Polynomials u_0, ..., u_12 of Debye's expansion, sqrt(2 pi root) I_v = e^(...) sum_k u_k(v/root)/v^k."""
    t = np.polynomial.Polynomial([0.0, 1.0])
    polynomials = [1 + 0 * t]
    for _ in range(12):
        last = polynomials[-1]
        polynomials.append(t**2 * (1 - t**2) * last.deriv() / 2 + ((1 - 5 * t**2) * last).integ() / 8)
    return polynomials

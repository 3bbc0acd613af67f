"""Modified Bessel functions in ratios and logarithms, for every order and argument."""

import functools
import math

import numpy as np
from scipy import special as sp

from attnflow.special.formula import Integers, Reals, formula
from attnflow.special.numbers import ArrayLike, Numbers

ORDER = Reals(0.0, 1e8, scalar=True)
LARGE_ORDER = 20.0
"""From here on 12 terms of Debye's expansion leave an error below rounding, for every argument."""


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
    top = order + count - 1
    ratio = ratios[..., count - 1] = x / (x + 2 * top + 2 - _perron(top, x))
    for j in range(count - 1, 0, -1):
        ratio = x / (2 * (order + j) + x * ratio)
        ratios[..., j - 1] = ratio
    return ratios


@formula(order=ORDER, x=Reals(0.0), relative=2e-15)
def bessel_gap(order: float, x: ArrayLike) -> Numbers:
    """1 - I_{order+1}(x)/I_order(x), with all its digits where the ratio is near 1 as well.

    By Perron's continued fraction, in which the gap is (2 order + 2 - K)/(x + 2 order + 2 - K) with 0 < K < order + 3/2.
    """
    difference = 2 * order + 2 - _perron(order, x)
    return difference / (x + difference)


def _perron(order: float, x: np.ndarray) -> Numbers:
    """K of I_{order+1}(x)/I_order(x) = x/(x + 2 order + 2 - K), K = (2 order + 3) x/(2 order + 3 + 2 x - ...).

    Gautschi and Slavik (1978), Math. Comp. 32. Quotients of neighbouring terms are below 1/4, near it at worst where
    x is half the order; terms from k on then count exp(-k^2/(2 order)), hence the number of terms.
    """
    tail = np.zeros_like(x)
    with np.errstate(divide="ignore", over="ignore"):  # 0 where x is 0
        for k in range(60 + math.ceil(9 * math.sqrt(order)), 0, -1):
            tail = (2 * order + 2 * k + 1) / (2 + (2 * order + k + 2 - tail) / x)
    return tail


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

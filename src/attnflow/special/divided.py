"""Divided differences that stay accurate where their points meet; on the host."""

import math

import numpy as np
from scipy.special import exprel

from attnflow.special.formula import Reals, formula
from attnflow.special.numbers import ArrayLike, Numbers

ARGUMENT = Reals(-1e300, 700.0)


@formula(x=ARGUMENT, y=ARGUMENT, relative=4e-15)
def divided_exprel(x: ArrayLike, y: ArrayLike) -> Numbers:
    """(phi(x) - phi(y))/(x - y) for phi(z) = (e^z - 1)/z, its derivative where x = y.

    It is the second divided difference of e^z at x, y and 0. At points a <= b <= c it is the quotient of
    (e^c - e^b)/(c - b) - (e^b - e^a)/(b - a) and c - a where c - a > 1; below, e^a times the sum over k of
    h_k/(k + 2)!, whose h_k, the complete symmetric polynomials of b - a and c - a, are positive.
    """
    x, y = np.broadcast_arrays(x, y)
    low, middle, high = np.sort(np.stack([x, y, np.zeros_like(x)]), axis=0)
    wide = high - low > 1
    upper, lower = np.exp(high) * exprel(middle - high), np.exp(middle) * exprel(low - middle)
    quotient = (upper - lower) / np.where(wide, high - low, 1.0)
    first, second = np.where(wide, 0.0, middle - low), np.where(wide, 0.0, high - low)
    symmetric, power, series = np.ones_like(low), np.ones_like(low), np.full_like(low, 0.5)
    for k in range(1, 20):  # the next term is below 1e-18
        power = power * first
        symmetric = symmetric * second + power
        series = series + symmetric / math.factorial(k + 2)
    return np.where(wide, quotient, np.exp(low) * series)[()]

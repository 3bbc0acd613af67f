"""Modified Bessel functions in ratios and logarithms, for every order and argument."""

import numpy as np
from numpy.typing import ArrayLike
from scipy import special as sp

from attnflow.special.numbers import Numbers


def bessel_ratios(order: float, x: ArrayLike, count: int) -> np.ndarray:
    """I_{order+j}(x) / I_{order+j-1}(x) for j = 1, ..., count and x >= 0; shape (*x.shape, count).

    The continued fraction r_q = 1/(2q/x + r_{q+1}) run backwards from far out: it forgets its start, never
    overflows, and works where `ive` underflows (order 2047, x = 1). It starts from a bound that is off by q/x^2, which
    is below rounding for x > 1e9, so that the number of steps does not grow beyond.
    """
    x = np.asarray(x, dtype=np.float64)[..., None]
    top = count + 60 + int(np.ceil(7 * np.sqrt(np.max(x[x <= 1e9], initial=0.0))))
    ratio = x / (order + top + 0.5 + np.hypot(order + top + 1.5, x))
    found = np.empty((*x.shape[:-1], count))
    for j in range(top, 0, -1):
        q = order + j
        ratio = x / (2 * q + x * ratio)
        if j <= count:
            found[..., j - 1] = ratio[..., 0]
    return found


def bessel_gap(order: float, x: ArrayLike) -> np.ndarray:
    """1 - I_{order+1}(x)/I_order(x) for x >= 0 and small orders, to relative accuracy where it is small too.

    For x > 100 (order + 1)^2 by the series r = sum_j c_j x^{-j} that solves r' = 1 - r^2 - (2 order + 1) r/x, c_0 = 1.
    """
    x, size = np.asarray(x, dtype=np.float64), 2 * order + 1
    far = x > 100 * (order + 1) ** 2
    c = [1.0]
    for m in range(1, 13):
        c.append(((m - 1 - size) * c[m - 1] - sum(c[i] * c[m - i] for i in range(1, m))) / 2)
    inverse = 1 / np.where(far, x, 1e300)
    series = np.zeros_like(inverse)
    for one in c[:0:-1]:
        series = (series - one) * inverse
    return np.where(far, series, 1 - bessel_ratios(order, np.where(far, 0.0, x), 1)[..., 0])


def log_scaled_bessel(order: float, x: ArrayLike) -> np.ndarray:
    """log(e^{-x} I_order(x)) for x > 0: by `ive` where it is a normal number, else by its power series, else uniformly.

    The power series has positive terms and serves x^2 <= 400 (order + 1), which is where `ive` underflows for orders up
    to 2,000; beyond, three terms of the uniform expansion leave an error of order^(-3).
    """
    x = np.asarray(x, dtype=np.float64)
    with np.errstate(divide="ignore", under="ignore"):
        direct = np.log(sp.ive(order, x))
    normal = direct > -600
    few = x * x <= 400 * (order + 1)
    return np.where(normal, direct, np.where(few, _by_series(order, np.where(few, x, 1.0)), _uniformly(order, x)))


def _by_series(order: float, x: np.ndarray) -> Numbers:
    total, term = np.ones_like(x), np.ones_like(x)
    for k in range(1, 400):
        term = term * (x * x / 4) / (k * (order + k))
        total = total + term
    return order * np.log(x / 2) - sp.gammaln(order + 1) - x + np.log(total)


def _uniformly(order: float, x: np.ndarray) -> Numbers:
    order = max(order, 1.0)  # only large orders come here
    root = np.hypot(order, x)
    p = order / root
    first = (3 * p - 5 * p**3) / 24
    second = (81 * p**2 - 462 * p**4 + 385 * p**6) / 1152
    eta = root + order * np.log(x / (order + root))
    return eta - x - 0.5 * np.log(2 * np.pi * root) + np.log1p(first / order + second / order**2)

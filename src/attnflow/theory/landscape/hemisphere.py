"""The probability that random tokens lie in one hemisphere, where clustering is certain."""

import math

import numpy as np
from scipy import special as sp

from attnflow.special.formula import Integers, formula
from attnflow.special.numbers import ArrayLike, Numbers

TOKENS, DIMENSION = Integers(1, 10**12), Integers(1)
FEW = 200
"""Tokens up to which the sum is taken in whole numbers."""


@formula(n=TOKENS, d=DIMENSION, relative="1e-15 * (1000 + np.sqrt(n))")
def hemisphere_probability(n: ArrayLike, d: ArrayLike) -> Numbers:
    """Probability that n iid tokens of a symmetric continuous distribution on S^{d-1} lie in one open hemisphere.

    Wendel: 2^{1-n} sum_{k<d} C(n-1, k), the chance of fewer than d heads in n - 1 tosses; 1 for n <= d. In a hemisphere
    SA and USA converge to one point exponentially fast (arXiv:2312.10794). Below 1e-308 it rounds to 0: see
    `log_hemisphere_probability`.

    Arguments:
        n: number of tokens.
        d: dimension of the space around the sphere.
    """
    return np.vectorize(lambda n, d: _probability(int(n), int(d))[0], otypes=[np.float64])(n, d)[()]


@formula(n=TOKENS, d=DIMENSION, relative="1e-15 * (100 + np.sqrt(n))")
def log_hemisphere_probability(n: ArrayLike, d: ArrayLike) -> Numbers:
    """Natural logarithm of `hemisphere_probability`, also where the probability leaves the range of floats.

    Arguments:
        n: number of tokens.
        d: dimension of the space around the sphere.
    """
    return np.vectorize(lambda n, d: _probability(int(n), int(d))[1], otypes=[np.float64])(n, d)[()]


def _probability(n: int, d: int) -> tuple[float, float]:
    """The probability of fewer than d heads in n - 1 tosses, and its logarithm."""
    if d >= n:
        return 1.0, 0.0
    if 2 * d > n:  # all but the probability of fewer than n - d heads
        complement = _probability(n, n - d)[0]
        return 1 - complement, math.log1p(-complement)
    if n <= FEW:
        share = sum(math.comb(n - 1, k) for k in range(d)) / 2 ** (n - 1)
        return share, math.log(share)
    k = np.arange(d - 1, max(0, d - 2 - int(6.5 * math.sqrt(n))), -1.0)  # ratios beyond have a product below e^{-40}
    tail = 1 + np.sum(np.cumprod(k / (n - k)))
    log_share = _log_tosses(n - 1, d - 1) + math.log(tail)
    return math.exp(log_share), log_share


def _log_tosses(n: int, k: int) -> float:
    """log(C(n, k)/2^n), as Loader writes it: what Stirling's formula is off by, and no difference of large numbers."""
    if k == 0:
        return -n * math.log(2)
    e = (n - 2 * k) / n
    if e < 0.5:
        deviance = math.log1p(-e * e) + 2 * e * math.atanh(e)
    else:
        deviance = math.log(4 * (k / n) * ((n - k) / n)) + e * math.log((n - k) / k)
    corrections = _stirling_error(n) - _stirling_error(k) - _stirling_error(n - k)
    return corrections - n * deviance / 2 + math.log(n / (2 * math.pi * k * (n - k))) / 2


def _stirling_error(n: int) -> float:
    """log(n!) less Stirling's formula."""
    if n < 16:
        return float(sp.gammaln(n + 1)) - (n + 0.5) * math.log(n) + n - math.log(2 * math.pi) / 2
    x = 1 / n**2
    return (1 / 12 - x * (1 / 360 - x * (1 / 1260 - x * (1 / 1680 - x * (1 / 1188 - x * 691 / 360360))))) / n

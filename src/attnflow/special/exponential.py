"""Exponential integrals with their exponential factor removed, so that neither over- nor underflows."""

import numpy as np
from numpy.typing import ArrayLike
from scipy import special as sp

from attnflow.special.numbers import Numbers


def scaled_exp1(x: ArrayLike) -> np.ndarray:
    """e^x E_1(x) for x > 0, where E_1(x) is the integral of e^{-t}/t over t > x: near 1/x for large x."""
    x = np.asarray(x, dtype=np.float64)
    small = x < 50
    near = np.where(small, x, 1.0)
    far = np.where(small, 100.0, x)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(small, np.exp(near) * sp.exp1(near), _inverse_series(-far))


def scaled_expi(x: ArrayLike) -> np.ndarray:
    """e^{-x} Ei(x) for x > 0, where Ei(x) is the principal value of the integral of e^t/t over t < x."""
    x = np.asarray(x, dtype=np.float64)
    small = x < 50
    near = np.where(small, x, 1.0)
    far = np.where(small, 100.0, x)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(small, np.exp(-near) * sp.expi(near), _inverse_series(far))


def _inverse_series(x: Numbers) -> Numbers:
    """sum_k k!/x^{k+1}, signed so that both integrals are positive; the 40th term is below 1e-17 for |x| >= 50."""
    total, term = np.zeros_like(x), np.ones_like(x)
    for k in range(1, 41):
        total = total + term
        term = term * k / x
    return total / np.abs(x)

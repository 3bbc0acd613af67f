"""Exponential integrals with their exponential factor removed, so that neither over- nor underflows."""

import numpy as np
from scipy import special as sp

from attnflow.special.formula import Reals, formula
from attnflow.special.numbers import ArrayLike, Numbers

POSITIVE = Reals(0.0, ends="right")
ASYMPTOTIC = 40.0
"""From here on the smallest term of sum_k k!/x^{k+1} is below rounding; the last terms of SciPy's Ei are not."""


@formula(x=POSITIVE, relative=2e-15)
def scaled_exp1(x: ArrayLike) -> Numbers:
    """e^x E_1(x), where E_1(x) is the integral of e^{-t}/t over t > x: near 1/x for large x."""
    near, far = np.minimum(x, ASYMPTOTIC), np.maximum(x, ASYMPTOTIC)
    return np.where(x < ASYMPTOTIC, np.exp(near) * sp.exp1(near), _inverse_series(-far))[()]


@formula(x=POSITIVE, relative=4e-15, absolute=4e-16)
def scaled_expi(x: ArrayLike) -> Numbers:
    """e^{-x} Ei(x), where Ei(x) is the principal value of the integral of e^t/t over t < x; 0 at x = 0.3725."""
    near, far = np.minimum(x, ASYMPTOTIC), np.maximum(x, ASYMPTOTIC)
    return np.where(x < ASYMPTOTIC, np.exp(-near) * sp.expi(near), _inverse_series(far))[()]


def _inverse_series(x: np.ndarray) -> Numbers:
    """sum_k k!/x^{k+1} up to its smallest term at |x| = 40, signed so that both integrals are positive."""
    total, term = np.zeros_like(x), np.ones_like(x)
    for k in range(1, 41):
        total = total + term
        term = term * k / x
    return total / np.abs(x)

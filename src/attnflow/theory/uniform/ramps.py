"""Which mode wins when beta grows linearly with depth from a near-uniform start on the circle."""

import functools

import numpy as np
from scipy.optimize import brentq

from attnflow.errors import InvalidInput
from attnflow.theory.checks import checked_beta, checked_integer
from attnflow.theory.uniform.spectrum import growth_rates

LARGEST = 1e4
"""Largest beta of a ramp: the integral takes eight rates for every unit of beta."""


def ramp_growth(beta: float, k: int) -> float:
    """F_k(beta), the integral of the growth rate lambda_k (SA, circle) from 0 to beta.

    Under beta = r t mode k has grown by e^(F_k(beta)/r) when beta is reached. beta at most 10^4.
    """
    b = float(checked_beta(beta))
    if b > LARGEST:
        raise InvalidInput(f"beta is {beta!r}; the integral over rates is for beta from 0 to {LARGEST:g}.")
    return _growth(b, checked_integer("k", k, 1))


def ramp_switch(k: int) -> tuple[float, float]:
    """(beta, F) at which modes k and k + 1 have grown by the same factor under beta = r t: F = F_k = F_{k+1}.

    1 -> 2: 2.39095886, 1.00815089; 2 -> 3: 6.71251353, 3.32637727. Derived here.
    """
    return _switch(checked_integer("k", k, 1))


def ramp_winner(product: float) -> int:
    """The mode that first reaches the amplitude A from eps under beta = r t, from `product` = r log(A/eps) alone.

    Slow ramps, product < 1.008, give one cluster whatever the last beta is.
    """
    if not (np.isfinite(product) and product > 0):
        raise InvalidInput(f"product is {product!r}; r log(A/eps) must be positive and finite.")
    k = 1
    while ramp_switch(k)[1] < product:
        k += 1
    return k


@functools.cache
def _switch(k: int) -> tuple[float, float]:
    b = float(brentq(lambda b: _growth(b, k) - _growth(b, k + 1), 0.5 * k, 4.0 * (k + 1) ** 2, xtol=1e-11))
    return b, _growth(b, k)


def _growth(beta: float, k: int) -> float:
    """Gauss-Legendre with 16 nodes on panels no wider than 2; lambda_k is analytic within 2.4 of the real line."""
    panels = 1 + int(beta / 2)
    nodes, weights = np.polynomial.legendre.leggauss(16)
    half = beta / panels / 2
    at = (2 * np.arange(panels)[:, None] + 1 + nodes) * half
    return float(half * np.sum(weights * growth_rates(at, 2, k=k)))

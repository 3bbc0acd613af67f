"""The kernel e^(beta (<x, y> - 1)) on S^(d-1) by degrees of spherical harmonics; on the host, one beta at a time."""

import math

import numpy as np

from attnflow.errors import NotAccurate
from attnflow.special.bessel import bessel_ratios
from attnflow.special.formula import Integers, Reals, formula
from attnflow.special.numbers import ArrayLike, Numbers

MOST_DEGREES = 10**7
"""Degrees of one expansion, which take half a minute."""
BETA = Reals(0.0, 1e10, scalar=True)
DIMENSION = Integers(2, 10**6, scalar=True)
LARGEST_LOG = 709.0
"""The logarithm of the largest number of harmonics that is a float."""


@formula(
    beta=BETA,
    d=DIMENSION,
    count=Integers(1, MOST_DEGREES, scalar=True),
    depth=Reals(0.0, 800.0, scalar=True),
    relative="1e-15 * (1000 + np.sqrt(beta))",
)
def degree_weights(beta: float, d: int, count: int = 1, depth: float = 60.0) -> np.ndarray:
    """At least `count` of the weights p_k, and as many as it takes to fall e^(-depth) below the largest.

    p_k = N(k, d) a_k e^(-beta) with N the multiplicity and a_k the Funk-Hecke multiplier: a probability on degrees.
    Computed from quotients of neighbours outwards from the largest weight, and normalised.

    Arguments:
        beta: inverse temperature.
        d: dimension of the space around the sphere.
        count: smallest number of weights.
        depth: logarithm of the quotient of the largest and the last weight, at least.

    Raises:
        NotAccurate: if there are more than 1e7 weights.
    """
    top = max(count, 64 + int(10 * math.sqrt(beta)))
    while top <= MOST_DEGREES:
        with np.errstate(divide="ignore"):
            steps = np.log(multiplicity_ratios(d, top) * bessel_ratios(d / 2 - 1, beta, top))
        # the quotients decrease in k (except for the doubling at the start of the circle): one peak
        peak = int(np.sum(steps > 0))
        logs = np.concatenate([-np.cumsum(steps[:peak][::-1])[::-1], [0.0], np.cumsum(steps[peak:])])
        if logs[-1] < -depth:
            weights = np.exp(logs)
            return np.asarray(weights / np.sum(weights))
        top = 2 * top
    raise NotAccurate(f"its expansion needs more than {MOST_DEGREES:,} degrees.")


def multiplicity_ratios(d: int, count: int) -> np.ndarray:
    """N(k, d)/N(k-1, d) for k = 1, ..., count: the growth of the number of harmonics with the degree."""
    k = np.arange(1.0, count + 1)
    growth = (2 * k + d - 2) * (k + d - 3) / np.maximum((2 * k + d - 4) * k, 1)
    growth[0] = d  # 2 on the circle, where the formula is 0/0
    return np.asarray(growth)


@formula(bounds=Reals(1e-300), beta=BETA, d=DIMENSION)
def truncation_degrees(bounds: ArrayLike, beta: float, d: int) -> Numbers:
    """The smallest K with sum_{k>K} p_k <= bound, the exact error of the kernel cut after degree K, for each bound.

    The weights p_k are those of `degree_weights`; a sum that equals a bound to rounding may count on either side.

    Arguments:
        bounds: errors of the kernel, beside its largest value 1.
        beta: inverse temperature.
        d: dimension of the space around the sphere.
    """
    weights = degree_weights(beta, d, 1, max(60.0 - math.log(np.min(bounds)), 60.0))
    tails = np.cumsum(weights[:0:-1])[::-1]  # what lies beyond 0, 1, 2, ...: summed from the smallest
    return np.sum(tails > bounds[..., None], axis=-1)


@formula(degree=Integers(0, scalar=True), d=Integers(2, scalar=True))
def basis_size(degree: int, d: int) -> int:
    """The number of spherical harmonics up to a degree K on S^(d-1): C(K+d-1, d-1) + C(K+d-2, d-1), an exact integer.

    Raises:
        NotAccurate: if it is above the range of floats, 1.8e308.
    """
    if math.lgamma(degree + d) - math.lgamma(degree + 1) - math.lgamma(d) > LARGEST_LOG:
        raise NotAccurate("the number of harmonics leaves the range of floats.")
    return math.comb(degree + d - 1, d - 1) + math.comb(degree + d - 2, d - 1)

"""The kernel e^(beta (<x, y> - 1)) on S^(d-1) by degrees of spherical harmonics; on the host, one beta at a time."""

import math

import numpy as np

from attnflow.special.bessel import bessel_ratios


def degree_weights(beta: float, d: int, count: int = 1, depth: float = 60.0) -> np.ndarray:
    """At least `count` of the weights p_k, and as many as it takes to fall e^(-depth) below the largest.

    p_k = N(k, d) a_k e^(-beta) with N the multiplicity and a_k the Funk-Hecke multiplier: a probability on degrees.
    Computed from quotients of neighbours outwards from the largest weight, and normalised.
    """
    top = max(count, 64 + int(10 * math.sqrt(beta)))
    while True:
        k = np.arange(1.0, top + 1)
        with np.errstate(divide="ignore"):
            steps = np.log(multiplicity_ratios(d, top) * bessel_ratios(d / 2 - 1, beta, top))
        # the quotients decrease in k (except for the doubling at the start of the circle): one peak
        peak = int(np.sum(steps > 0))
        logs = np.concatenate([-np.cumsum(steps[:peak][::-1])[::-1], [0.0], np.cumsum(steps[peak:])])
        if logs[-1] < -depth:
            weights = np.exp(logs)
            return np.asarray(weights / np.sum(weights))
        top = 2 * len(k)


def multiplicity_ratios(d: int, count: int) -> np.ndarray:
    """N(k, d)/N(k-1, d) for k = 1, ..., count: the growth of the number of harmonics with the degree."""
    k = np.arange(1.0, count + 1)
    growth = (2 * k + d - 2) * (k + d - 3) / np.maximum((2 * k + d - 4) * k, 1)
    growth[0] = d  # 2 on the circle, where the formula is 0/0
    return np.asarray(growth)


def truncation_degrees(bounds: np.ndarray, beta: float, d: int) -> np.ndarray:
    """The smallest K with sum_{k>K} p_k <= bound, the exact error of the kernel cut after degree K, for each bound."""
    weights = degree_weights(beta, d, 1, 60.0 - math.log(np.min(bounds)))
    tails = np.cumsum(weights[:0:-1])[::-1]  # what lies beyond 0, 1, 2, ...: summed from the smallest
    return np.asarray(np.sum(tails > np.asarray(bounds)[..., None], axis=-1))


def basis_size(degree: int, d: int) -> int:
    """The number of spherical harmonics up to a degree on S^(d-1): C(K+d-1, d-1) + C(K+d-2, d-1)."""
    return math.comb(degree + d - 1, d - 1) + math.comb(degree + d - 2, d - 1)

"""Energies that can be written down: the bound, the uniform measure, tight clusters."""

import numpy as np
from numpy.typing import ArrayLike

from attnflow.special import log_scaled_bessel


def largest_energy0(beta: ArrayLike) -> np.ndarray:
    """E0 <= 1/(2 beta), with equality exactly when all tokens coincide (beta > 0)."""
    beta = np.asarray(beta, dtype=np.float64)
    if np.any(~(beta > 0)):
        raise ValueError(f"beta is {beta}; the bound needs beta > 0.")
    return 1 / (2 * beta)


def energy_of_uniform(beta: ArrayLike, d: int) -> np.ndarray:
    """The renormalised energy of the uniform law on S^{d-1}: (a_0 e^{-beta} - 1)/(2 beta).

    a_0 = Gamma(d/2) (2/beta)^(d/2-1) I_{d/2-1}(beta) is the mean of e^{beta <x, y>} (Funk-Hecke); beta > 0, d >= 2.
    """
    beta = np.asarray(beta, dtype=np.float64)
    if d < 2 or np.any(~(beta > 0)):
        raise ValueError(f"d is {d} and beta is {beta}; the formula needs d >= 2 and beta > 0.")
    from scipy.special import gammaln

    nu = d / 2 - 1
    log_mean = gammaln(d / 2) + nu * np.log(2 / beta) + log_scaled_bessel(nu, beta)
    return np.expm1(log_mean) / (2 * beta)


def energy_of_clusters(masses: ArrayLike, beta: ArrayLike) -> np.ndarray:
    """The renormalised energy of tight clusters far apart: (sum_q M_q^2 - 1)/(2 beta), the height of a plateau.

    Exact up to terms e^{-beta u}, u = 1 - cos(angle) of the closest pair (arXiv:2410.06833); clusters on the last axis.
    """
    masses = np.asarray(masses, dtype=np.float64)
    return (np.sum(masses**2, axis=-1) - 1) / (2 * np.asarray(beta, dtype=np.float64))

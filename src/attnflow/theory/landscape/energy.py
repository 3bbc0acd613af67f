"""Energies that can be written down: the bound, the uniform measure, tight clusters; and rates at which they rise."""

import numpy as np
from numpy.typing import ArrayLike

from attnflow.errors import InvalidInput
from attnflow.special import log_scaled_bessel
from attnflow.special.numbers import Numbers
from attnflow.theory.checks import checked_dimension, checked_model

MOST_BY_SERIES = 100.0
"""The largest beta at which the mean of e^{beta <x, y>} is summed as a power series."""


def largest_energy0(beta: ArrayLike) -> Numbers:
    """E0 <= 1/(2 beta), with equality exactly when all tokens coincide (beta > 0)."""
    beta = np.asarray(beta, dtype=np.float64)
    if np.any(~(beta > 0)):
        raise InvalidInput(f"beta is {beta}; the bound needs beta > 0.")
    return 1 / (2 * beta)


def energy_of_uniform(beta: ArrayLike, d: int) -> Numbers:
    """The renormalised energy of the uniform measure on S^{d-1}: (a_0 e^{-beta} - 1)/(2 beta).

    a_0 = Gamma(d/2) (2/beta)^(d/2-1) I_{d/2-1}(beta) is the mean of e^{beta <x, y>} (Funk-Hecke); beta > 0, d >= 2.
    The relative error is below 1e-14 for every beta and d.
    """
    beta, d = np.asarray(beta, dtype=np.float64), checked_dimension(d)
    if not (np.isfinite(beta) & (beta > 0)).all():
        raise InvalidInput(f"beta is {beta}; it must be finite and above 0.")
    small = beta <= MOST_BY_SERIES
    near, far = np.where(small, beta, 1.0), np.where(small, MOST_BY_SERIES, beta)
    log_mean = np.where(small, np.log1p(_mean_minus_one(near, d)) - near, _log_mean(far, d))
    return np.expm1(log_mean) / (2 * beta)


def _mean_minus_one(beta: np.ndarray, d: int) -> Numbers:
    """a_0 - 1 by its series sum_k (beta^2/4)^k / (k! (d/2)_k), k >= 1, for beta <= 100: no term is negative."""
    quarter = beta * beta / 4
    total, term = np.zeros_like(beta), np.ones_like(beta)
    for k in range(1, 200):  # the terms are largest at k <= 50; the 200th is below 1e-100 of the sum
        term = term * quarter / (k * (d / 2 - 1 + k))
        total = total + term
    return total


def _log_mean(beta: np.ndarray, d: int) -> Numbers:
    """log(a_0 e^{-beta}) for beta >= 100, where it is below -3: its absolute error matters, not the relative one."""
    from scipy.special import gammaln

    nu = d / 2 - 1
    return gammaln(d / 2) + nu * np.log(2 / beta) + log_scaled_bessel(nu, beta)


def energy_of_clusters(masses: ArrayLike, beta: ArrayLike) -> Numbers:
    """The renormalised energy of tight clusters far apart: (sum_q M_q^2 - 1)/(2 beta), the height of a plateau.

    Exact up to terms e^{-beta u}, u = 1 - cos(angle) of the closest pair (arXiv:2410.06833); clusters on the last axis.
    """
    masses = np.asarray(masses, dtype=np.float64)
    return (np.sum(masses**2, axis=-1) - 1) / (2 * np.asarray(beta, dtype=np.float64))


def energy_rate_of_tokens(positions: ArrayLike, beta: float, *, model: str = "SA") -> np.ndarray:
    """dE/dt of equal tokens under Q = K = V = I, E = (1/2 beta n^2) sum_ij e^{beta (<x_i, x_j> - 1)}.

    USA0: (1/n) sum_i |v_i|^2; SA: (1/n) sum_i Z_i |v_i|^2 with Z_i = (1/n) sum_j e^{beta (<x_i, x_j> - 1)}
    (arXiv:2312.10794, section 3). Positions (..., n, d) on the sphere.
    """
    x = np.asarray(positions, dtype=np.float64)
    if checked_model(model) == "USA":
        raise InvalidInput("model is 'USA'; use 'USA0', the clock of this energy.")
    weights = np.exp(beta * (x @ np.swapaxes(x, -1, -2) - 1)) / x.shape[-2]
    pull = weights @ x
    pull = pull - np.sum(pull * x, axis=-1, keepdims=True) * x
    squares = np.sum(pull**2, axis=-1)  # |v|^2 of USA0, Z^2 |v|^2 of SA
    return np.asarray(np.mean(squares / weights.sum(axis=-1) if model == "SA" else squares, axis=-1))


def energy_rate_of_heads(
    matrices: ArrayLike, positions: ArrayLike, masses: ArrayLike, *, beta: float, model: str = "SA"
) -> tuple[np.ndarray, np.ndarray]:
    """(dE/dt, rounding error) of heads with V_h = B_h = B_h^T that add up, E = sum_h E_h.

    With g_ih = P_i sum_j m_j w_ij,h B_h x_j and w_ij,h = e^{beta (<x_i, B_h x_j> - 1)} it is
    sum_i m_i <sum_h g_ih/Z_ih, sum_h g_ih>; Z_ih = sum_j m_j w_ij,h for SA and 1 for USA0. So USA0 never descends, SA
    never with one head. Matrices (..., heads, d, d), positions (..., n, d), masses (..., n). The error counts a few
    eps |beta B| of the logits in all products of gradients, added without their signs.
    """
    b, x, m = (np.asarray(v, dtype=np.float64) for v in (matrices, positions, masses))
    if checked_model(model) == "USA":
        raise InvalidInput("model is 'USA'; use 'USA0', the clock of this energy.")
    logits = beta * (np.einsum("...ia,...hab,...jb->...hij", x, b, x) - 1)
    weights = m[..., None, None, :] * np.exp(logits)
    whole = np.einsum("...hij,...hab,...jb->...hia", weights, b, x)
    gradients = whole - np.sum(whole * x[..., None, :, :], axis=-1, keepdims=True) * x[..., None, :, :]
    z = weights.sum(axis=-1) if model == "SA" else np.ones(weights.shape[:-1])
    total = np.sum(gradients / z[..., None], axis=-3)
    rate = np.einsum("...i,...ia,...ia->...", m, total, gradients.sum(axis=-3))
    sizes = np.linalg.norm(whole, axis=-1)
    error = np.finfo(float).eps * (10 + 8 * np.abs(logits).max(axis=(-1, -2, -3)))
    return rate, error * np.einsum("...i,...hi,...gi->...", m, sizes, sizes / z)

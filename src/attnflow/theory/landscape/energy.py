"""Energies that can be written down: the bound, the uniform measure, tight clusters; and rates at which they rise."""

import numpy as np

from attnflow.errors import InvalidInput
from attnflow.special import log_scaled_bessel
from attnflow.special.formula import Integers, Other, Reals, Word, formula
from attnflow.special.numbers import ArrayLike, Numbers

MOST_BY_SERIES = 100.0
"""The largest beta at which the mean of e^{beta <x, y>} is summed as a power series."""
CLOCK = Word(("SA", "USA0"))
"""Clocks of the renormalised energy."""
POSITIONS = Other("unit vectors (..., n, d)")


@formula(beta=Reals(0.0, ends="none"), relative=4e-16)
def largest_energy0(beta: ArrayLike) -> Numbers:
    """E0 <= 1/(2 beta), with equality exactly when all tokens coincide."""
    with np.errstate(over="ignore"):
        return 0.5 / beta


@formula(beta=Reals(0.0, ends="none"), d=Integers(2, scalar=True), relative=1e-14)
def energy_of_uniform(beta: ArrayLike, d: int) -> Numbers:
    """The renormalised energy of the uniform measure on S^{d-1}: (a_0 e^{-beta} - 1)/(2 beta).

    a_0 = Gamma(d/2) (2/beta)^(d/2-1) I_{d/2-1}(beta) is the mean of e^{beta <x, y>} (Funk-Hecke).

    Arguments:
        beta: inverse temperature.
        d: dimension of the space around the sphere.
    """
    small = beta <= MOST_BY_SERIES
    series, asymptotic = np.where(small, beta, 1.0), np.where(small, MOST_BY_SERIES, beta)
    log_mean = np.where(small, np.log1p(_mean_minus_one(series, d)) - series, _log_mean(asymptotic, d))
    return np.expm1(log_mean) / beta / 2


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

    if d > 1000:  # it falls in d, and is below -80 there
        return np.full_like(beta, -np.inf)

    nu = d / 2 - 1
    return gammaln(d / 2) + nu * np.log(2 / beta) + log_scaled_bessel(nu, beta)


@formula(
    masses=Reals(0.0, 1.0),
    beta=Reals(0.0, ends="none"),
    relative=1e-15,
    absolute="1e-15 * np.shape(masses)[-1] / beta",
)
def energy_of_clusters(masses: ArrayLike, beta: ArrayLike) -> Numbers:
    """The renormalised energy of tight clusters far apart: (sum_q M_q^2 - 1)/(2 beta), the height of a plateau.

    Exact up to terms e^{-beta u}, u = 1 - cos(angle) of the closest pair (arXiv:2410.06833).

    Arguments:
        masses: masses of the clusters, on the last axis.
        beta: inverse temperature.
    """
    if not masses.ndim:
        raise InvalidInput(f"`masses` is {masses!r}; give the masses of all clusters.")
    with np.errstate(over="ignore"):
        return (np.sum(masses**2, axis=-1) - 1) / beta / 2


@formula(
    positions=POSITIONS,
    beta=Reals(0.0, 1e8, scalar=True),
    model=CLOCK,
    relative="1e-9 * (1 + 1e-4 * beta)",
    absolute="1e-21 * (1 + beta)**2",
)
def energy_rate_of_tokens(positions: ArrayLike, beta: float, *, model: str = "SA") -> Numbers:
    """dE/dt of equal tokens under Q = K = V = I, E = (1/2 beta n^2) sum_ij e^{beta (<x_i, x_j> - 1)}.

    USA0: (1/n) sum_i |v_i|^2; SA: (1/n) sum_i Z_i |v_i|^2 with Z_i = (1/n) sum_j e^{beta (<x_i, x_j> - 1)}
    (arXiv:2312.10794, section 3). Velocities are right to a few units in the last place of the pulls that add up to
    them, and the rate is their square.

    Arguments:
        positions: tokens on the sphere, (..., n, d).
        beta: inverse temperature.
        model: "SA" or "USA0", the clocks of this energy.
    """
    x = np.asarray(positions, dtype=np.float64)
    if x.ndim < 2:
        raise InvalidInput(f"`positions` has shape {x.shape}; give tokens (..., n, d).")
    rates = np.empty(x.shape[:-1])
    for i in range(x.shape[-2]):
        token = x[..., i : i + 1, :]
        # the pull of x_j is the tangent part of x_j - x_i, or of x_j + x_i: one of the two is short
        opposite = np.sum(x * token, axis=-1, keepdims=True) < 0
        gaps = x - np.where(opposite, -token, token)
        squares = np.sum(gaps**2, axis=-1, keepdims=True)
        weights = np.exp(-beta / 2 * np.where(opposite, 4 - squares, squares)) / x.shape[-2]
        pull = np.sum(weights * gaps, axis=-2)
        pull = pull - np.sum(pull * token[..., 0, :], axis=-1, keepdims=True) * token[..., 0, :]
        total = weights.sum(axis=(-1, -2)) if model == "SA" else 1.0
        rates[..., i] = np.sum(pull**2, axis=-1) / total  # |v|^2 of USA0, Z |v|^2 of SA
    return np.mean(rates, axis=-1)


@formula(
    matrices=Other("symmetric matrices (..., heads, d, d)"),
    positions=POSITIONS,
    masses=Other("masses (..., n)"),
    beta=Reals(0.0, 1e8, scalar=True),
    model=CLOCK,
    absolute="1e-14 * (1 + beta * (1 + np.abs(matrices).sum())) * np.abs(matrices).sum()**2"
    " * np.exp(2 * beta * np.maximum(np.abs(matrices).sum() - 1, 0))",
)
def energy_rate_of_heads(
    matrices: ArrayLike, positions: ArrayLike, masses: ArrayLike, *, beta: float, model: str = "SA"
) -> tuple[Numbers, Numbers]:
    """(dE/dt, rounding error) of heads with V_h = B_h = B_h^T that add up, E = sum_h E_h.

    With g_ih = P_i sum_j m_j w_ij,h B_h x_j and w_ij,h = e^{beta (<x_i, B_h x_j> - 1)} it is
    sum_i m_i <sum_h g_ih/Z_ih, sum_h g_ih>; Z_ih = sum_j m_j w_ij,h for SA and 1 for USA0. So USA0 never descends, SA
    never with one head. The error counts a few eps |beta B| of the logits in all products of gradients, added without
    their signs; it is far below the bound that is stated here.

    Arguments:
        matrices: B_h, symmetric, (..., heads, d, d).
        positions: tokens on the sphere, (..., n, d).
        masses: masses of the tokens, (..., n).
        beta: inverse temperature.
        model: "SA" or "USA0", the clocks of this energy.
    """
    b, x, m = (np.asarray(v, dtype=np.float64) for v in (matrices, positions, masses))
    if x.ndim < 2 or b.shape[-2:] != (x.shape[-1],) * 2 or m.shape[-1:] != x.shape[-2:-1]:
        raise InvalidInput(
            f"`matrices`, `positions`, `masses` have shapes {b.shape}, {x.shape}, {m.shape}; give (..., heads, d, d), "
            "(..., n, d), (..., n)."
        )
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

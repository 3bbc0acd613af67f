"""Gaussian measures under attention on R^d without layer norm, and five points that repel each other on a sphere."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq, minimize_scalar

from attnflow.errors import InvalidInput
from attnflow.theory.checks import checked_beta, checked_reals


class GaussianMoments(NamedTuple):
    """Mean and covariance of a Gaussian measure, coordinate by coordinate."""

    mean: np.ndarray
    covariance: np.ndarray


def gaussian_moments(
    t: float, value: ArrayLike, covariance: ArrayLike, *, mean: ArrayLike = 0.0, logits: ArrayLike = 1.0
) -> GaussianMoments:
    """The measure N(m, C) at time t under softmax attention with diagonal V, Q^T K = B and C, on R^d.

    c_k(t) = c_k/(1 - 2 v_k b_k c_k t) and m_k(t) = m_k e^(v_k t) sqrt(c_k(t)/c_k), v = `value`, b = `logits`. A tilt of
    N(m, C) by e^(<Bx, y>) has the mean m + C B x, so that the field is affine and the measure stays Gaussian:
    m' = V (I + C B^T) m, C' = V C B^T C + (the same)^T (arXiv:2501.18322; derived again). For v b > 0 the
    covariance blows up at t = 1/(2 v b c), while n tokens exist for ever: n -> infinity, t -> infinity do not commute.
    V = -I whitens: t C (B + B^T) -> I. Times at or beyond the blow-up are refused.
    """
    v, c, b = (
        checked_reals(*one)
        for one in (("value", value, -np.inf), ("covariance", covariance, 0.0), ("logits", logits, -np.inf))
    )
    time = float(checked_reals("t", t, 0.0))
    left = 1 - 2 * v * b * c * time
    if np.any(left <= 0):
        raise InvalidInput(f"t is {t!r}; the covariance blows up at 1/(2 v b c), give an earlier time.")
    m = checked_reals("mean", mean, -np.inf)
    return GaussianMoments(m * np.exp(v * time) / np.sqrt(left), c / left)


def five_point_energies(beta: float) -> tuple[float, float]:
    """Sums of e^(beta <x, y>) over the ten pairs of five points on S^2: triangular bipyramid, best square pyramid.

    6 + e^(-beta) + 3 e^(-beta/2), and min_h 4 e^(-beta h) + 4 e^(beta h^2) + 2 e^(beta (2 h^2 - 1)) with the square at
    height -h below the apex. Under V = -I tokens descend the energy. Four and six points on S^2 have one best
    configuration at every beta (universally optimal codes, Cohn and Kumar 2007), five have not: `five_point_flip`.
    """
    b = checked_beta(beta)
    if b.ndim or not 0 < b <= 300:
        raise InvalidInput(f"beta is {beta!r}; it must be one number above 0, at most 300.")
    found = minimize_scalar(
        lambda h: _square(h, float(b)), bounds=(0.0, 0.6), method="bounded", options={"xatol": 1e-12}
    )
    return float(6 + np.exp(-b) + 3 * np.exp(-b / 2)), float(found.fun)


def five_point_flip() -> float:
    """The beta above which the square pyramid has a lower energy than the bipyramid: 6.88616081."""

    def gap(beta: float) -> float:
        two, square = five_point_energies(beta)
        return two - square

    return float(brentq(gap, 6.0, 8.0, xtol=1e-12, rtol=1e-14))


def _square(h: float, beta: float) -> float:
    return float(4 * np.exp(-beta * h) + 4 * np.exp(beta * h**2) + 2 * np.exp(beta * (2 * h**2 - 1)))

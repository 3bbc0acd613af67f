"""Gaussian measures under attention on R^d without layer norm, and five points that repel each other on a sphere."""

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from attnflow.errors import InvalidInput
from attnflow.special.formula import Reals, formula
from attnflow.special.numbers import ArrayLike
from attnflow.special.roots import root


class GaussianMoments(NamedTuple):
    """Mean and covariance of a Gaussian measure, coordinate by coordinate."""

    mean: np.ndarray
    covariance: np.ndarray


@formula(
    t=Reals(0.0, scalar=True),
    value=Reals(),
    covariance=Reals(0.0),
    mean=Reals(),
    logits=Reals(),
    relative=2e-15,
)
def gaussian_moments(
    t: float, value: ArrayLike, covariance: ArrayLike, *, mean: ArrayLike = 0.0, logits: ArrayLike = 1.0
) -> GaussianMoments:
    """The measure N(m, C) at time t under softmax attention with diagonal V, Q^T K = B and C, on R^d.

    c_k(t) = c_k/(1 - 2 v_k b_k c_k t) and m_k(t) = m_k e^(v_k t) sqrt(c_k(t)/c_k), v = `value`, b = `logits`. A tilt of
    N(m, C) by e^(<Bx, y>) has the mean m + C B x, so that the field is affine and the measure stays Gaussian:
    m' = V (I + C B^T) m, C' = V C B^T C + (the same)^T (arXiv:2501.18322; derived again). For v b > 0 the
    covariance blows up at t = 1/(2 v b c), while n tokens exist for ever: n -> infinity, t -> infinity do not commute.
    V = -I whitens: t C (B + B^T) -> I. Times at or beyond the blow-up are refused.

    Arguments:
        t: time.
        value: the diagonal of V.
        covariance: the diagonal of C at time 0.
        mean: m at time 0.
        logits: the diagonal of B.

    Raises:
        InvalidInput: at or beyond the blow-up, or if a moment leaves the range of floats.
    """
    numbers = np.broadcast_arrays(value, covariance, mean, logits)
    moments = np.array([_moments(t, *map(float, row)) for row in zip(*map(np.ravel, numbers), strict=True)])
    means, covariances = moments.reshape(-1, 2).T
    return GaussianMoments(means.reshape(numbers[0].shape), covariances.reshape(numbers[0].shape))


def _moments(t: float, v: float, c: float, m: float, b: float) -> tuple[float, float]:
    """Mean and variance of one coordinate; products of the arguments are exact, for near the blow-up they cancel."""
    left, growth = 1 - 2 * Fraction(v) * Fraction(b) * Fraction(c) * Fraction(t), Fraction(v) * Fraction(t)
    if left <= 0:
        raise InvalidInput(f"`t` is {t!r}; the covariance blows up at 1/(2 v b c), give an earlier time.")
    try:
        covariance = float(Fraction(c) / left)
        if m == 0 or growth < -3000:
            return 0.0, covariance
        if growth > 3000:  # even the smallest m over the largest sqrt(left) grows beyond floats
            raise OverflowError
        # left = 4^k times a number of order 1
        k = (left.numerator.bit_length() - left.denominator.bit_length()) // 2
        whole = round(float(growth) / math.log(2))
        small = float(growth - whole * LOG_2)
        scaled = m * math.exp(small) / math.sqrt(float(left / Fraction(4) ** k))
        return math.ldexp(scaled, whole - k), covariance
    except OverflowError:
        raise InvalidInput(f"`t` is {t!r}; the moments leave the range of floats, give an earlier time.") from None


LOG_2 = Fraction(math.log(2)) + Fraction(2.3190468138462996e-17)
"""To 32 digits."""


@formula(beta=Reals(0.0, ends="none", scalar=True), relative=2e-15)
def five_point_energies(beta: float) -> tuple[float, float]:
    """Sums of e^(beta <x, y>) over the ten pairs of five points on S^2: triangular bipyramid, best square pyramid.

    6 + e^(-beta) + 3 e^(-beta/2), and min_h 4 e^(-beta h) + 4 e^(beta h^2) + 2 e^(beta (2 h^2 - 1)) with the square at
    height -h below the apex. Under V = -I tokens descend the energy. Four and six points on S^2 have one best
    configuration at every beta (universally optimal codes, Cohn and Kumar 2007), five have not: `five_point_flip`.
    """
    return 6 + math.exp(-beta) + 3 * math.exp(-beta / 2), _square_energy(_square_height(beta), beta)


@formula(relative=2e-15)
def five_point_flip() -> float:
    """The beta above which the square pyramid has a lower energy than the bipyramid: 6.88616081."""

    def gap(beta: float) -> float:
        """What the pyramid is below the bipyramid, each less 6."""
        h = _square_height(beta)
        square = 4 * np.expm1(-beta * h) + 4 * np.expm1(beta * h**2) + 2 * math.exp(beta * (2 * h**2 - 1))
        return float(math.exp(-beta) + 3 * math.exp(-beta / 2) - 2 - square)

    return float(root(gap, 6.0, 8.0, smallest=1.0, largest=100.0))


def _square_height(beta: float) -> float:
    """The height below the apex at which the square has the least energy: between 1/4 at beta = 0 and 0."""

    def force(h: float) -> float:
        return float(-beta * h - np.log(2 * h) - np.logaddexp(beta * h**2, beta * (2 * h**2 - 1)))

    largest = 0.25 * (1 + 1e-12)
    return float(root(force, min(1.0, 1 / beta) / 8, largest, smallest=1e-320, largest=1.0))


def _square_energy(h: float, beta: float) -> float:
    return float(4 * np.exp(-beta * h) + 4 * np.exp(beta * h**2) + 2 * np.exp(beta * (2 * h**2 - 1)))

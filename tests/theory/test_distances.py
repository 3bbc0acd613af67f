"""Distances of pairs, against reference numbers of an independent program, to their digits."""

import numpy as np
import pytest
from scipy.integrate import quad

from attnflow.errors import InvalidInput
from attnflow.theory import uniform


@pytest.mark.parametrize(
    ("d", "distance", "near"),
    [
        (2, 1.273239545, 0.159154943),
        (3, 1.333333333, 0.0612087191),
        (4, 1.358122181, 0.0252306764),
        (8, 1.389327786, 0.000935632),
        (64, 1.411410571, 4.362e-22),
    ],
)
def test_iid_tokens(d, distance, near):
    assert uniform.mean_distance(d) == pytest.approx(distance, abs=6e-10)
    # P(angle < 0.5), by symmetry at the other end, where it keeps its digits
    assert float(uniform.overlap_distribution(-np.cos(0.5), d)) == pytest.approx(near, rel=3e-4 if d == 64 else 1e-6)
    assert float(uniform.overlap_distribution(0.0, d)) == pytest.approx(0.5, rel=1e-14)


def test_the_shift_of_ten_bins():
    """S^2, SA, beta = 4, t = 0.5: n times the change of the mass of ten equal bins in s."""
    expected = [0.01366, 0.01714, 0.00960, -0.01512, -0.06360, -0.14026, -0.23777, -0.30527, -0.14839, 0.86999]
    found = np.diff(uniform.overlap_shift(np.linspace(-1, 1, 11), 0.5, 4.0, d=3))
    np.testing.assert_allclose(found, expected, rtol=0, atol=6e-6)


@pytest.mark.parametrize("d", [2, 3, 5])
def test_the_shift_is_the_integral_of_the_series(d):
    """By quadrature over the angle, with P_k from the recurrence."""
    t, beta, end, n = 0.4, 3.0, 0.3, 24
    degrees = np.arange(1, 31)
    factors = [float(uniform.multiplicity(k, d) * uniform.pair_correlation(t, beta, d, k=int(k), n=n)) for k in degrees]
    norm = quad(lambda a: np.sin(a) ** (d - 2), 0, np.pi)[0]

    def density(angle):
        c, below, now, total = np.cos(angle), 1.0, np.cos(angle), 0.0
        for k, factor in zip(degrees, factors, strict=True):
            total += factor * now
            below, now = now, ((2 * k + d - 2) * c * now - k * below) / (k + d - 2)
        return total * np.sin(angle) ** (d - 2) / norm

    expected = quad(density, np.arccos(end), np.pi, epsabs=1e-12)[0]
    found = float(uniform.overlap_shift(end, t, beta, d=d, n=n))
    assert found == pytest.approx(expected, abs=1e-9)
    assert float(uniform.overlap_shift(1.0, t, beta, d=d)) == pytest.approx(0.0, abs=1e-12)


def test_overlaps_lie_between_opposite_and_equal():
    with pytest.raises(InvalidInput, match=r"in \[-1, 1\]"):
        uniform.overlap_distribution(1.5, 3)

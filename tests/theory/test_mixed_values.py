"""V of both signs: printed limits, moments, and the flip of five points; the limit is that of the delay."""

import numpy as np
import pytest

from attnflow.errors import InvalidInput
from attnflow.theory import landscape


def test_limits_of_pairs_and_triples():
    """Ten digits after the point are printed."""
    found = landscape.pair_limit([0.3, 0.5, 1, 1.5])
    np.testing.assert_allclose(found, [0.0052119504, 0.1873767679, 0.9483019579, 1.4968743453], atol=5e-11)
    found = landscape.pair_limit([0.5, 1, 1.5], middle=True)
    np.testing.assert_allclose(found, [0.0811270739, 0.8437176581, 1.4709684537], atol=5e-11)
    for middle in (False, True):
        delay = landscape.pair_delay([[1.0]], [0.8], middle=0.5 * middle)
        np.testing.assert_allclose(landscape.pair_limit(0.8, middle=middle), 0.8 * np.exp(-delay), rtol=1e-12)


def test_moments_of_gaussians():
    """Eight digits after the point are printed, nine of the first means."""
    mean, covariance = landscape.gaussian_moments(2.0, -1.0, [1, 0.25], mean=[0.4, -0.3])
    np.testing.assert_allclose(covariance, [0.2, 0.125], rtol=1e-15)
    np.testing.assert_allclose(mean, [0.024209511, -0.028708949], atol=5e-10)
    mean, covariance = landscape.gaussian_moments(0.3, [0.5, -1], [1, 0.25], mean=[0.4, -0.3])
    np.testing.assert_allclose(covariance, [1.42857143, 0.2173913], atol=5e-9)
    np.testing.assert_allclose(mean, [0.55546301, -0.20724497], atol=5e-9)


def test_five_points():
    np.testing.assert_allclose(landscape.five_point_flip(), 6.88616081, atol=5e-9)
    np.testing.assert_allclose(landscape.five_point_energies(4.0), [6.42432149, 6.54033967], atol=5e-9)
    np.testing.assert_allclose(landscape.five_point_energies(10.0), [6.02025924, 5.82250414], atol=5e-9)


def test_refusals():
    for call in (
        lambda: landscape.pair_limit(0.001),
        lambda: landscape.gaussian_moments(1.0, 0.5, 1.0),
        lambda: landscape.five_point_energies(0.0),
    ):
        with pytest.raises(InvalidInput):
            call()

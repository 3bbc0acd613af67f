"""Orders of convergence: exact powers, and a tolerance that no cancellation of two terms defeats."""

import numpy as np

from attnflow.experiments.kit import left_of_order, orders


def test_orders_of_powers():
    steps = 0.5 ** np.arange(4)
    np.testing.assert_allclose(orders([steps, 3 * steps**4]), [[1, 1, 1], [4, 4, 4]], rtol=1e-12)
    assert np.isnan(orders([0.0, 0.0])).all()


def test_what_is_left_is_never_more_than_the_tolerance():
    """Orders p + a h + b h^2 for all ratios of the two terms, at 4h, 2h and h."""
    for angle in np.linspace(0, np.pi, 2001):
        a, b = np.cos(angle), np.sin(angle)
        found = 4 + np.array([4 * a + 16 * b, 2 * a + 4 * b, a + b])
        assert abs(found[-1] - 4) <= 7 / 9 * left_of_order(found) + 1e-12
    assert left_of_order([3.0, 3.5]) == 1.5

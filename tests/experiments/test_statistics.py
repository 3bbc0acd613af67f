"""Errors of means and levels of tests."""

import numpy as np
import pytest

from attnflow.experiments.kit import averaged, mean_error, student


def test_the_error_of_a_mean():
    values = [3, 5, 4, 4]
    # variance 2/3 of four draws, raised by a quarter
    assert mean_error(values) == pytest.approx((4.0, np.sqrt((2 / 3 + 1 / 4) / 4)))
    assert mean_error([7] * 25) == pytest.approx((7.0, 1 / 25))


def test_the_mean_of_draws():
    """Along the first axis: 1, 2, 3 have the standard deviation 1, and equal draws none."""
    mean, error = averaged([[1, 5], [2, 5], [3, 5]])
    np.testing.assert_allclose(mean, [2, 5])
    np.testing.assert_allclose(error, [1 / np.sqrt(3), 0], atol=1e-15)


def test_printed_quantiles():
    """Tables of Student's distribution."""
    assert student(0.05, 11) == pytest.approx(2.228, abs=5e-4)
    assert student(0.001, 31) == pytest.approx(3.646, abs=5e-4)
    assert student(0.01, 11, tests=10) == pytest.approx(student(0.001, 11))


def test_the_level_is_kept():
    """Means of 20 normal numbers: 5 % of 20,000 tests fail, standard error 0.15 %."""
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((20_000, 20)) * 1000  # so that 1/draws does not matter
    limit = student(0.05, 20)
    failed = [abs(mean) > limit * error for mean, error in map(mean_error, draws)]
    assert np.mean(failed) == pytest.approx(0.05, abs=4 * 0.0016)

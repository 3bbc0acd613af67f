"""Intervals of means over texts: Student's ones for normal values, skewed where the values are."""

import numpy as np
import pytest
from scipy.stats import t

from attnflow.intervals import mean_ends

ENDS = (0.001, 0.025, 0.975)


@pytest.mark.parametrize("n", [6, 50])
def test_few_normal_values_have_student_intervals(n):
    """Means of 2,000 sets of n normal values lie below an end as often as its share says, within five deviations.

    The quantile of 500 resamples is itself random, and that of six values discrete: a relative room of 15 % of the
    share, and for 0.001 of a factor 3.
    """
    values = np.random.default_rng(4).standard_normal((n, 2000))
    below = np.mean(mean_ends(values, ENDS, resamples=4000 if n > 6 else 2000, seed=1) > 0, axis=1)
    for share, found in zip(ENDS, below, strict=True):
        room = 2 * share if share < 0.01 else 0.15 * min(share, 1 - share)
        assert abs(found - share) < room + 5 * np.sqrt(share * (1 - share) / 2000)


def test_the_interval_is_that_of_student_for_symmetric_values():
    """Fifty values at quantiles of a normal distribution; 10^5 resamples leave 1 % at these shares."""
    values = t.ppf((np.arange(50) + 0.5) / 50, 10**6)
    low, high = mean_ends(values, (0.025, 0.975), resamples=100_000, seed=2)
    half = t.ppf(0.975, 49) * values.std(ddof=1) / np.sqrt(50)
    assert (low, high) == pytest.approx((-half, half), rel=0.02)


def test_skewed_values_have_skewed_intervals():
    values = np.array([*np.zeros(19), 20.0])
    low, high = mean_ends(values, (0.025, 0.975), resamples=5000, seed=3)
    assert high - 1 > 1.5 * (1 - low)
    assert np.array_equal(
        mean_ends(values, (0.025,), resamples=50, seed=3), mean_ends(values, (0.025,), resamples=50, seed=3)
    )

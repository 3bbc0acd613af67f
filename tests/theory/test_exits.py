"""The distribution of merge times of random pairs against sampled angles and against angles put in."""

import numpy as np
import pytest

from attnflow import theory


@pytest.mark.parametrize("d", [2, 3, 7])
def test_the_angle_has_the_stated_distribution(d):
    """The area of a cap by quadrature of sin^(d-2)."""
    t = np.linspace(0, np.pi, 200_001)
    area = np.cumsum(np.sin(t) ** (d - 2))
    for k in (10_000, 66_000, 100_000, 170_000):
        assert theory.merging.pair_angle_probability(t[k], d) == pytest.approx(area[k] / area[-1], abs=2e-5)


@pytest.mark.parametrize(("d", "model", "beta"), [(2, "SA", 25.0), (3, "USA0", 25.0), (3, "SA", 1.0), (4, "USA0", 1e4)])
def test_the_probability_of_a_time_is_that_of_its_angle(d, model, beta):
    angle = np.array([0.03, 1.0, 3.1])
    times = theory.merging.log_merge_time(angle, beta, masses=(0.5, 0.5), until=1e-4, model=model)
    found = theory.merging.pair_time_probability(times, beta, d, model=model, until=1e-4)
    np.testing.assert_allclose(found, theory.merging.pair_angle_probability(angle, d), atol=1e-6)
    assert theory.merging.pair_time_probability(-1e9, beta, d, model=model, until=1e-4) < 1e-4

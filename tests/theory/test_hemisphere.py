"""Wendel's probability against printed values, exact rational arithmetic and a simulation of its event."""

from fractions import Fraction
from math import comb, lgamma, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnflow.theory.landscape import hemisphere_probability, log_hemisphere_probability

pytestmark = pytest.mark.filterwarnings("error")


def test_printed_values():
    np.testing.assert_allclose(hemisphere_probability(8, [2, 3, 4, 8, 100]), [0.0625, 0.2265625, 0.5, 1, 1], rtol=1e-15)
    assert hemisphere_probability([[4], [9]], [1, 2, 3]).shape == (2, 3)


@given(n=st.integers(1, 3000), d=st.integers(1, 3000))
@settings(max_examples=30, deadline=None)
def test_exact_sums(n, d):
    exact = Fraction(sum(comb(n - 1, k) for k in range(min(d, n))), 2 ** (n - 1))
    logarithm = log(exact.numerator) - log(exact.denominator)
    # the incomplete beta function has 13 digits here; the logarithm of the sum, near 2000, has 16 of its own
    assert float(log_hemisphere_probability(n, d)) == pytest.approx(logarithm, rel=1e-13, abs=1e-12)
    if logarithm > -700:
        assert float(hemisphere_probability(n, d)) == pytest.approx(float(exact), rel=1e-12)


def test_far_out():
    # d = 2: n 2^{1-n}
    assert log_hemisphere_probability(10**6, 2) == pytest.approx(log(10**6) - (10**6 - 1) * log(2), rel=1e-14)
    assert hemisphere_probability(10**6, 2) == 0
    # symmetry: n = 2 d gives one half
    np.testing.assert_allclose(hemisphere_probability([2, 64, 8192, 2 * 10**6], [1, 32, 4096, 10**6]), 0.5, rtol=1e-9)
    # just where the series takes over: the largest term and the next, C(n-1, d-1) (1 + (d-1)/(n-d+1) + ...)
    n, d = 20_000, 4096
    ratio = (d - 1) / (n - d + 1)
    largest = lgamma(n) - lgamma(d) - lgamma(n - d + 1) - (n - 1) * log(2)
    # the later ratios fall from this one, so the sum lies between one term more and the geometric series
    assert largest + np.log1p(ratio) < log_hemisphere_probability(n, d) < largest - np.log1p(-ratio)


def test_simulated_tokens_on_the_circle():
    rng = np.random.default_rng(0)
    angles = np.sort(rng.uniform(0, 2 * np.pi, (20_000, 5)), axis=1)
    gaps = np.diff(angles, axis=1, append=angles[:, :1] + 2 * np.pi)
    found = np.mean(gaps.max(axis=1) > np.pi)  # all in a half circle
    p = float(hemisphere_probability(5, 2))
    assert abs(found - p) < 4 * np.sqrt(p * (1 - p) / 20_000)


@pytest.mark.parametrize(
    ("n", "d", "name"), [(0, 2, "n"), (2.5, 2, "n"), (3, 0, "d"), (3, np.nan, "d"), (np.inf, 3, "n")]
)
def test_bad_sizes(n, d, name):
    for function in (hemisphere_probability, log_hemisphere_probability):
        with pytest.raises(ValueError, match=f"`{name}` is"):
            function(n, d)

"""One attention layer over a long context: the layer itself, mpmath, the limit of many tokens."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special as sp

from attnflow.theory import uniform

pytestmark = pytest.mark.filterwarnings("error")

EPS = np.finfo(float).eps


@pytest.mark.parametrize(
    ("c", "n", "overlap"), [(0.0, 5, 0.3), (1.0, 6, -0.2), (2.0, 40, 0.5), (3.0, 25, 0.0), (1.0, 4, 1.0)]
)
def test_it_is_the_cosine_of_a_layer(c, n, overlap):
    gram = (1 - overlap) * np.eye(n) + overlap
    values, vectors = np.linalg.eigh(gram)
    x = vectors * np.sqrt(np.maximum(values, 0))  # rows with this Gram matrix
    weights = n ** (c * (x @ x.T))
    outputs = weights @ x
    cosine = outputs[0] @ outputs[1] / np.linalg.norm(outputs[0]) / np.linalg.norm(outputs[1])
    # weights span n^c; the eigendecomposition is good to n units
    assert abs(uniform.long_context_overlap(c, n, overlap) - cosine) < 10 * n * EPS * (1 + c * np.log(n))


def test_printed_values():
    # five (three) decimals; c = 1.8 and 2.2 show how slow the logarithm is
    found = uniform.long_context_overlap([1, 2, 4], 1e8, 0.5)
    np.testing.assert_allclose(found, [1.0, 0.8, 0.5], rtol=0, atol=5.1e-6)
    found = uniform.long_context_overlap([1.8, 2.2], 1e8, 0.5)
    np.testing.assert_allclose(found, [0.982, 0.573], rtol=0, atol=5.1e-4)


@given(
    c=st.floats(0, 6),
    log_n=st.floats(np.log(2), np.log(1e300)),
    overlap=st.one_of(st.floats(0, 1), st.floats(1e-9, 1e-3)),
)
@settings(max_examples=40, deadline=None)
def test_overlaps_agree_with_mpmath(c, log_n, overlap):
    n = float(np.exp(log_n))
    n = np.clip(n, 2.0, 1e300)
    with mp.workdps(700):
        rho, size = mp.mpf(overlap), mp.mpf(n)
        e = size ** (-mp.mpf(c) * (1 - rho))
        s = 1 + (size - 1) * rho
        rest = 2 * (1 - e) * e * s + e**2 * size * s
        exact = float(((1 - e) ** 2 * rho + rest) / ((1 - e) ** 2 + rest))
    # a relative error of X, the exponent c log n (1 - rho) up to 6 * 691 twice, to 2 units each, with log s and log n;
    # the cosine (rho + X)/(1 + X) has relative condition at most 1 in X
    tolerance = 4 * EPS * (4 * c * log_n + 4 * log_n + 10)
    assert abs(uniform.long_context_overlap(c, n, overlap) - exact) <= tolerance * exact


@given(overlap=st.floats(0.01, 0.99), distance=st.floats(0.05, 0.9))
@settings(max_examples=30, deadline=None)
def test_limit_of_many_tokens(overlap, distance):
    threshold = uniform.long_context_threshold(overlap)
    assert threshold == 1 / (1 - overlap)
    n = 1e300
    # X = overlap n^{2 - 2g} + 2 overlap n^{1 - g}, g = c (1 - overlap), up to relative 1/(overlap n): the distance of
    # the cosine from its limit is at most X above the threshold and 1/X below
    for g, limit in ((1 - distance, 1.0), (1 + distance, overlap)):
        c = g * threshold
        assert uniform.long_context_limit(c, overlap) == limit
        bound = 4 * n**-distance / overlap
        assert abs(uniform.long_context_overlap(c, n, overlap) - limit) <= bound + 4 * EPS
    assert uniform.long_context_limit(threshold, overlap) == pytest.approx(4 * overlap / (1 + 3 * overlap), rel=1e-15)
    # at the threshold n^{1-g} is known to 691 * (a few units) only
    found = uniform.long_context_overlap(threshold, n, overlap)
    assert abs(found - 4 * overlap / (1 + 3 * overlap)) < 691 * 16 * EPS


def test_orthogonal_inputs_have_another_threshold():
    # overlap 0: X = 2 n^{-c} + n^{1-2c}, so that 1/2 is critical and the limits are 1, 1/2, 0
    found = uniform.long_context_overlap([0.4, 0.5, 0.6], 1e300, 0.0)
    np.testing.assert_allclose(found, [1, 0.5, 0], atol=1e-12)
    with pytest.raises(ValueError, match="`overlap` is 0.0"):
        uniform.long_context_limit(1.0, 0.0)


def test_edges():
    assert uniform.long_context_overlap(2.0, 3, -0.5) == -0.5  # the simplex: the mean is 0 and nothing mixes
    assert uniform.long_context_overlap(5.0, 3, 1.0) == 1
    assert uniform.long_context_overlap(0.0, 10, 0.2) == 1  # beta = 0 averages
    assert uniform.long_context_overlap(1e4, 10**300, 0.2) == pytest.approx(0.2)
    assert uniform.long_context_overlap(np.ones((3, 1)), [2, 3], 0.1).shape == (3, 2)
    np.testing.assert_array_equal(uniform.long_context_limit([0, 1, 2, 3], 0.5), [1, 1, 0.8, 0.5])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: uniform.long_context_overlap(-1.0, 5, 0.5), "`c` is"),
        (lambda: uniform.long_context_overlap(np.nan, 5, 0.5), "`c` is nan"),
        (lambda: uniform.long_context_overlap(1.0, 1, 0.5), "`n` is"),
        (lambda: uniform.long_context_overlap(1.0, np.inf, 0.5), "`n` is inf"),
        (lambda: uniform.long_context_overlap(1.0, 5, 1.5), "`overlap` is"),
        (lambda: uniform.long_context_overlap(1.0, 5, -0.5), "`overlap` is"),
        (lambda: uniform.long_context_limit(-1.0, 0.5), "`c` is"),
        (lambda: uniform.long_context_limit(1.0, 1.0), "`overlap` is 1.0"),
        (lambda: uniform.long_context_threshold(-0.1), "`overlap` is -0.1"),
    ],
)
def test_out_of_range_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize("d", [2, 3, 64])
@pytest.mark.parametrize("b", [0.3, 5.0, 40.0])
def test_exponential_moments_are_integrals_over_the_overlap(b, d):
    """The overlap t of a uniform unit vector has the density (1 - t^2)^((d-3)/2) over its integral."""
    angle = (np.arange(20_000) + 0.5) * np.pi / 20_000  # t = cos angle; the midpoint rule
    weight = np.sin(angle) ** (d - 2)
    tilted = weight * np.exp(b * (np.cos(angle) - 1))
    log_mean, slope = uniform.exponential_moments(b, d)
    # the midpoint rule with step h misses h^2/24 times the jump of the slope at the ends, 2 for d = 3, over 1/b
    missed = 2e-9 * (1 + b)
    assert log_mean == pytest.approx(np.log(tilted.sum() / weight.sum()) + b, abs=missed)
    assert slope == pytest.approx((tilted * np.cos(angle)).sum() / tilted.sum(), abs=missed)


def test_iid_tokens_in_many_dimensions_have_equal_overlaps():
    """For d -> inf the exact cosine of equal overlaps, except for the queries, whose own overlap is 2 rho - 1."""
    c, n, rho = np.array([1.0, 2.0, 3.0]), 1e8, 0.5
    found = uniform.long_context_iid_overlap(c, n=n, d=np.inf, overlap=rho)
    y = n ** (1 - c * (1 - rho))  # weight of the others; outputs are sqrt(rho) e (1 + y) +- sqrt(1 - rho) u
    ratio = (1 - rho) / (rho * (1 + y) ** 2)
    np.testing.assert_allclose(found, (1 - ratio) / (1 + ratio), atol=1e-6)
    finite = uniform.long_context_iid_overlap(c, n=n, d=1e7, overlap=rho)
    np.testing.assert_allclose(finite, found, atol=1e-3)


def test_iid_tokens_in_three_dimensions():
    """The others lie on a circle: the mean of e^{b cos} is I_0(b), that of its cosine I_1/I_0."""
    c, n, rho = np.array([0.5, 1.0, 2.0]), 50.0, 0.3
    b = c * np.log(n) * (1 - rho)
    others = (n - 2) * sp.ive(0, b)
    across = (1 - np.exp(-2 * b) + (n - 2) * sp.ive(1, b)) / (1 + others + np.exp(-2 * b))
    e, u = np.sqrt(rho), np.sqrt(1 - rho) * across
    want = (e**2 - u**2) / (e**2 + u**2)
    np.testing.assert_allclose(uniform.long_context_iid_overlap(c, n=n, d=3, overlap=rho), want, rtol=1e-13)

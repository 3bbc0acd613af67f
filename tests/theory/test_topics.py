"""Two topics in one causal context: printed values, mpmath, and the sum over all sources."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnflow import theory

pytestmark = pytest.mark.filterwarnings("error")

EPS = np.finfo(float).eps


def panels(low, high, count, order=20):
    """Nodes and weights of Gauss's rule on `count` panels."""
    points, weights = np.polynomial.legendre.leggauss(order)
    half = (high - low) / count / 2
    middles = low + (2 * np.arange(count)[:, None] + 1) * half
    return (middles + half * points).ravel(), np.tile(half * weights, count)


def test_printed_shares_and_takeovers():
    found = theory.causal.early_share([[0.5], [2.0]], [0.9, 0.5, 0.25, 0.1, 0.01])
    printed = [
        [0.36274813, 0.2297746, 0.13328718, 0.06430862, 0.00993434],
        [0.83616386, 0.68126022, 0.51777433, 0.34518313, 0.10697785],
    ]
    np.testing.assert_allclose(found, printed, rtol=0, atol=5.1e-8)
    found = theory.causal.takeover_time([0.5, 0.25, 0.1, 0.05, 0.01])
    np.testing.assert_allclose(found, [1.260758, 1.918939, 2.821351, 3.509982, 5.114343], rtol=0, atol=5.1e-7)


@given(log_c=st.floats(-9, 2), log_y=st.floats(-9, 2))
@settings(max_examples=25, deadline=None)
def test_shares_agree_with_mpmath(log_c, log_y):
    c, y = 10.0**log_c, 10.0**log_y
    share = np.exp(-y)
    y = -np.log(share) if share < 1 else 0.0
    with mp.workdps(
        200
    ):  # sum over N_y of its probability times the tail of N_c, which is a regularised gamma function
        a, b = mp.mpf(c), mp.mpf(-mp.log(mp.mpf(share)))
        late, early, weight, tail, term = mp.mpf(0), mp.mpf(0), mp.exp(-b), mp.exp(-a), mp.exp(-a)
        head = -mp.expm1(-a)  # P(N_c > 0)
        for k in range(int(y + 20 * np.sqrt(y) + 80)):
            late, early = late + weight * tail, early + weight * head
            weight, term = weight * b / (k + 1), term * a / (k + 1)
            tail, head = tail + term, head - term
        early, late = float(early), float(late)
    if share == 1:
        return
    # the exponent (sqrt c - sqrt y)^2 and log share to a unit, sums of positive terms
    tolerance = 100 * EPS * (20 + c + y)
    np.testing.assert_allclose(theory.causal.early_share(c, share), early, rtol=tolerance)
    np.testing.assert_allclose(theory.causal.late_signal(c, share), np.exp(c) * late, rtol=tolerance)
    np.testing.assert_allclose(theory.causal.early_signal(c, share), np.exp(c) * early, rtol=tolerance)


def test_shares_far_out():
    c, share = 1e4, 1e-300
    y = -np.log(share)
    # the late tail by the leading terms of Bessel's functions: a geometric series of ratio sqrt(y/c), corrected
    with mp.workdps(30):
        root, z = mp.sqrt(mp.mpf(y) / c), 2 * mp.sqrt(mp.mpf(y) * c)
        terms = mp.nsum(lambda k: root**k * mp.besseli(int(k), z, derivative=0), [0, 120], method="d")
        exact = float(mp.log(terms) - y)
    np.testing.assert_allclose(theory.causal.log_late_signal(c, share), exact, rtol=1e-12)
    assert theory.causal.early_share(c, share) == 1
    np.testing.assert_allclose(theory.causal.log_early_signal(c, share), c, rtol=1e-15)
    assert theory.causal.early_share(1e-3, 1e-300) < 1e-150
    np.testing.assert_allclose(theory.causal.late_signal(1.0, 1e-300), np.e, rtol=4 * EPS)
    np.testing.assert_allclose(theory.causal.takeover_time(1e-300) - y, 0.5, atol=1e-3)
    np.testing.assert_allclose(theory.causal.takeover_time(1e-5, slope=1e4), 1e4 + 2.2521684610 + 0.5, atol=1e-3)
    with pytest.raises(ValueError, match="use log_early_signal"):
        theory.causal.early_signal(1e4, 0.5)


@pytest.mark.parametrize("slope", [0.0, 2.0])
def test_topics_follow_the_sources(slope):
    # the early signal is what all early sources send, the late one what late sources send, plus the token's own
    c, share = 1.7, 0.3
    x, weights = panels(share, 1.0, 40)
    late = 1 + np.sum(weights * theory.causal.correlation(c, 1.0, x, slope=slope))
    np.testing.assert_allclose(theory.causal.late_signal(c, share, slope=slope), late, rtol=1e-12)
    np.testing.assert_allclose(theory.causal.early_signal(c, share, slope=slope), np.exp(c) - late, rtol=1e-11)
    np.testing.assert_allclose(
        theory.causal.early_signal(c, share, slope=slope, place=0.6)
        + theory.causal.late_signal(c, share, slope=slope, place=0.6),
        np.exp(c),
        rtol=1e-13,
    )
    assert theory.causal.early_share(c, share, slope=slope, place=0.2) == 1
    assert theory.causal.late_signal(c, share, slope=slope, place=share) == 0


@pytest.mark.parametrize(("slope", "q"), [(0.0, 0.0), (3.0, 0.0), (0.0, 0.1), (3.0, 0.05)])
def test_at_the_takeover_both_topics_are_equal(slope, q):
    share, place = 0.2, 0.9
    c = float(theory.causal.takeover_time(share, slope=slope, place=place, relative_dilution=q))
    late = panels(share, place, 40)
    late = 1 + np.sum(late[1] * theory.causal.correlation(c, place, late[0], slope=slope, relative_dilution=q))
    x, weights = panels(0.0, 14.0, 60)
    s = share * np.exp(-(x**2))
    early = np.sum(2 * x * s * weights * theory.causal.correlation(c, place, s, slope=slope, relative_dilution=q))
    np.testing.assert_allclose(early, late, rtol=1e-11)


def test_takeover_at_its_ends():
    np.testing.assert_allclose(theory.causal.takeover_time(1 - 1e-12), np.log(2), rtol=1e-11)
    assert theory.causal.takeover_time(0.5, place=0.4) == 0


def test_refusals():
    for call, word in [
        (lambda: theory.causal.early_share(1.0, 0.0), "`share` is 0.0; give numbers in"),
    ]:
        with pytest.raises(ValueError, match=word):
            call()

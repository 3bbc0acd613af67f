"""Modes of kernel densities: limits, exact small cases, counts by brute force, printed Monte Carlo values."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from attnflow.errors import NotAccurate
from attnflow.theory import landscape
from attnflow.theory.landscape import count_circle_modes, count_line_modes
from tests.marks import graded

pytestmark = pytest.mark.filterwarnings("error")
SEEDS = st.integers(0, 2**32 - 1)


def agree(found, value, error):
    """Within 4 standard errors of both together."""
    return abs(found.value - value) < 4 * np.hypot(found.standard_error, error)


def test_expected_modes_on_the_circle():
    found = landscape.expected_modes([1, 2, 5, 9, 20, 100, 1000, 1e4])
    printed = [1.284403, 1.724570, 2.721468, 3.659448, 5.466463, 12.242402, 38.728222, 122.473977]
    np.testing.assert_allclose(found, printed, rtol=0, atol=6e-7)
    np.testing.assert_array_equal(landscape.expected_modes([[0.0], [1e-300]]), 1)
    assert landscape.expected_modes(1e4) == pytest.approx(np.sqrt(1.5e4), rel=1e-4)


@given(log_beta=st.floats(-3, 3))
@settings(max_examples=30, deadline=None)
def test_expected_modes_agree_with_mpmath(log_beta):
    beta = 10**log_beta
    with mp.workdps(25):
        k = range(1, 20 + int(8 * np.sqrt(beta)))
        squares = [mp.besseli(j, beta) ** 2 for j in k]
        exact = mp.sqrt(
            mp.fsum(j**4 * s for j, s in zip(k, squares, strict=True))
            / mp.fsum(j**2 * s for j, s in zip(k, squares, strict=True))
        )
    # a product of up to 250 ratios, each good to 2 roundings, squared, enters only where the terms matter (70 of them)
    assert landscape.expected_modes(beta) == pytest.approx(float(exact), rel=1e-13)


def test_two_points():
    np.testing.assert_allclose(landscape.two_point_modes([0, 1, 4, 25]), [1, 1.157299, 1.479500, 1.777297], atol=6e-7)
    rng = np.random.default_rng(1)
    for beta in [1.0, 25.0]:
        counts = [count_line_modes(pair, beta) for pair in rng.standard_normal((500, 2))]
        error = np.std(counts) / np.sqrt(len(counts))
        assert abs(np.mean(counts) - landscape.two_point_modes(beta)) < 4 * error
        counts = [count_circle_modes(pair, beta) for pair in rng.uniform(0, 2 * np.pi, (500, 2))]
        error = np.std(counts) / np.sqrt(len(counts))
        assert abs(np.mean(counts) - landscape.circle_modes(2, beta).value) < 4 * error


@pytest.mark.parametrize("beta", [0.01, 1.0, 700.0, 1e4])
@pytest.mark.parametrize("excess", [1e-2, 1e-5, 1e-8])
def test_two_points_at_the_brink_of_two_modes(beta, excess):
    """A pair splits at distance 2 beta^{-1/2} (circle: twice the inflection angle), where three zeros of f' are born."""
    inflection = np.arccos(2 * beta / (1 + np.hypot(1, 2 * beta)))
    for shift in np.random.default_rng(0).uniform(-1, 1, 5):
        for sign, count in [(1, 2), (-1, 1)]:
            apart = 1 + sign * excess
            assert count_line_modes([shift, shift + 2 * apart / np.sqrt(beta)], beta) == count
            assert count_circle_modes([shift, shift + 2 * inflection * (1 + sign * excess / 4)], beta) == count


def test_copies_do_not_make_a_count_more_certain():
    """Each of 2,000 terms is rounded by 1e-16 of itself or more, so their sum is no better than a term of a pair."""
    for excess in (1e-14, -1e-14):
        with pytest.raises(NotAccurate, match="rounding decides"):
            count_line_modes([0.0, 2 * (1 + excess)] * 1000, 1.0)


@given(seed=SEEDS, n=st.integers(1, 15), log_beta=st.floats(-1, 3))
@settings(max_examples=60, deadline=None)
def test_line_counts_against_a_fine_grid(seed, n, log_beta):
    """Critical points closer than a 250th of a bandwidth, which the fine grid misses, come once in about 1e6 draws."""
    points, beta = np.random.default_rng(seed).standard_normal(n), 10**log_beta
    y = np.sort(points) * np.sqrt(beta)
    t = np.arange(y[0] - 0.5, y[-1] + 0.5, 0.004)
    log_weight = -0.5 * (y - t[:, None]) ** 2
    log_weight -= log_weight.max(axis=1, keepdims=True)  # or f' is lost to underflow in the gaps
    rising = np.sum((y - t[:, None]) * np.exp(log_weight), axis=1) > 0
    maxima = np.sum(rising[:-1] & ~rising[1:])
    minima = np.sum(~rising[:-1] & rising[1:])
    assert maxima == minima + 1
    assert count_line_modes(points, beta) == maxima


@given(seed=SEEDS, n=st.integers(1, 25), log_beta=st.floats(-1, 3))
@settings(max_examples=60, deadline=None)
def test_circle_counts_against_a_fine_grid(seed, n, log_beta):
    rng, beta = np.random.default_rng(seed), 10**log_beta
    angles = rng.uniform(-7, 7, n)
    t = np.arange(5000) * (2 * np.pi / 5000)
    log_weight = beta * np.cos(angles - t[:, None])
    log_weight -= log_weight.max(axis=1, keepdims=True)
    rising = np.sum(np.sin(angles - t[:, None]) * np.exp(log_weight), axis=1) > 0
    found = count_circle_modes(angles, beta)
    assert found == np.sum(rising & ~np.roll(rising, -1))
    # a rotation, and samples counted twice, change nothing
    assert count_circle_modes(np.tile(angles + 1.234, 2), beta) == found


def test_isolated_samples_are_one_mode_each():
    rng = np.random.default_rng(0)
    lattice = np.arange(200) * 0.5 + rng.uniform(-0.1, 0.1, 200)
    assert count_line_modes(lattice, 1e4) == 200  # 30 bandwidths apart at least
    assert count_line_modes([0.0, 1e6, 1e6, 1e6 + 1e-9], 1e4) == 2
    assert count_line_modes([5.0], 1e-300) == count_line_modes([1.0] * 9, 1e300) == 1
    assert count_circle_modes(np.arange(20) * (np.pi / 10), 1e4) == 20
    assert count_circle_modes([0.0], 1e-3) == count_circle_modes([7.0], 1e8) == 1


LINE = [
    (10, 10, 2.559, 0.004, 1500),
    (30, 30, 4.849, 0.008, 700),
    (100, 10, 1.656, 0.005, 700),
    (100, 100, 9.941, 0.016, 500),
    (1000, 10, 1.133, 0.006, 100),
    (1000, 100, 8.815, 0.032, 100),
    (1000, 1000, 37.39, 0.08, 100),
    (10_000, 100, 4.15, 0.18, 15),
    (10_000, 1000, 40.2, 0.2, 15),
    (10_000, 10_000, 133.0, 0.9, 10),
]


@graded(("n", "beta", "value", "error", "samples"), LINE)
def test_line_table(n, beta, value, error, samples):
    found = landscape.line_modes(n, beta, samples=samples, seed=3)
    assert agree(found, value, error)
    assert found.method == "Monte Carlo"


@graded(
    ("n", "beta", "value", "error", "samples"),
    [
        (200, 9, 3.65, 0.04, 300),
        (200, 100, 12.23, 0.08, 200),
        (200, 1000, 38.6, 0.14, 150),
        (20, 100, 10.5, 0.05, 500),  # the last two are printed to three digits without an error
        (20, 1000, 16.6, 0.05, 400),
    ],
    slow=2,
)
def test_circle_table_and_limit(n, beta, value, error, samples):
    found = landscape.circle_modes(n, beta, samples=samples, seed=3)
    assert agree(found, value, error)
    if n == 200 and beta <= 100:  # many samples in a bandwidth: the limit n -> infinity is there
        assert agree(found, float(landscape.expected_modes(beta)), 0.0)


@pytest.mark.parametrize(
    ("n", "beta", "gaussian", "simulated", "error"),
    [
        (100, 100, 3.931, 3.914, 0.023),
        (1000, 100, 3.284, 3.308, 0.026),
        (1000, 1000, 12.285, 12.13, 0.07),
        (10_000, 1000, 11.344, 11.27, 0.15),
    ],
)
def test_line_mode_density_in_the_bulk(n, beta, gaussian, simulated, error):
    found = quad(landscape.line_mode_density, -1, 1, (n, beta))[0]
    assert found == pytest.approx(gaussian, abs=6e-4)  # printed to three decimals
    assert abs(found - simulated) < 4 * error


@given(x=st.floats(-2, 2), log_n=st.floats(3, 6), log_beta=st.floats(-6, 3))
@settings(max_examples=30, deadline=None)
def test_line_mode_density_agrees_with_mpmath(x, log_n, log_beta):
    """The moments as they are first written, in 60 digits: at small beta they cancel to the power beta^4."""
    n, beta = int(10**log_n), 10**log_beta
    if x**2 > 2 * np.log(n) - np.log(beta):
        return
    with mp.workdps(60):
        t, b = mp.mpf(x), mp.mpf(beta)
        s2, q2 = 1 + 1 / b, 1 + 1 / (2 * b)
        g = mp.sqrt(2 * mp.pi / b) * mp.npdf(t, 0, mp.sqrt(s2))
        c = mp.sqrt(mp.pi / b) * mp.npdf(t, 0, mp.sqrt(q2))
        mu, v = t / (2 * b + 1), 1 / (2 * b + 1)
        k1, k2, k3, k4 = mu, mu**2 + v, mu**3 + 3 * mu * v, mu**4 + 6 * mu**2 * v + 3 * v**2
        m1, m2 = -t / s2 * g, (t**2 / s2**2 - 1 / s2) * g
        e11, e12, e22 = c * b**2 * k2, -c * b * (b**2 * k3 - b * k1), c * (b**4 * k4 - 2 * b**3 * k2 + b**2)
        s11, s12, s22 = n * (e11 - m1**2), n * (e12 - m1 * m2), n * (e22 - m2**2)
        mc, sc = n * m2 - s12 * n * m1 / s11, mp.sqrt(s22 - s12**2 / s11)
        bracket = sc * mp.npdf(mc / sc) - mc * mp.ncdf(-mc / sc)
        exact = float(mp.npdf(n * m1 / mp.sqrt(s11)) / mp.sqrt(s11) * bracket)
        squares = float((n * m1) ** 2 / s11 + (mc / sc) ** 2)
    # the exponents hold relative errors of about 100 roundings each (variances lose a factor 1 + x^2 <= 5)
    tolerance = 1e-12 + 1e-13 * squares
    assert landscape.line_mode_density(x, n, beta) == pytest.approx(exact, rel=tolerance, abs=1e-300)


def test_line_mode_density_limits():
    # noise dominates for 1e4 >> n/sqrt(beta) >> 1: sqrt(3 beta/2)/(2 pi) up to 1/beta and the signal (n/beta^{3/2})
    assert landscape.line_mode_density(0.3, 10_000, 1e6) == pytest.approx(np.sqrt(1.5e6) / (2 * np.pi), rel=1e-4)
    # a flat kernel has one mode, next to the mean of the samples
    assert quad(landscape.line_mode_density, -4, 4, (50, 1e-9), points=[0])[0] == pytest.approx(1, abs=1e-7)
    assert landscape.line_mode_density([[0.0], [1.0]], [100, 1000], 10.0).shape == (2, 2)


def test_exact_cases_and_repetition():
    assert landscape.line_modes(1, 5.0) == landscape.circle_modes(1, 5.0) == landscape.ModeEstimate(1.0, 0.0, "exact")
    assert landscape.line_modes(2, 4.0) == landscape.ModeEstimate(float(landscape.two_point_modes(4.0)), 0.0, "exact")
    assert landscape.line_modes(50, 0.0) == landscape.circle_modes(50, 0.0) == landscape.ModeEstimate(1.0, 0.0, "exact")
    assert landscape.circle_modes(2, 1e-9).value == pytest.approx(1, abs=1e-8)
    assert landscape.line_modes(5, 9.0, samples=20, seed=4) == landscape.line_modes(5, 9.0, samples=20, seed=4)
    assert landscape.line_modes(5, 9.0, samples=20, seed=4) != landscape.line_modes(5, 9.0, samples=20, seed=5)
    assert landscape.line_modes(10_000, 1.0, samples=2).value == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: landscape.expected_modes(-1.0), "`beta` is"),
        (lambda: landscape.two_point_modes(np.nan), "`beta` is"),
        (lambda: landscape.line_mode_density(0.0, 10, 0.0), "`beta` is"),
        (lambda: landscape.line_mode_density(0.0, 0, 1.0), "`n` is"),
        (lambda: landscape.line_mode_density(3.0, 10, 1.0), "`x` is"),
        (lambda: landscape.line_mode_density(0.0, 10, 1e4), "`x` is"),
        (lambda: landscape.line_mode_density(np.nan, 10, 1.0), "`x` is"),
        (lambda: landscape.line_modes(0, 1.0), "`n` is"),
        (lambda: landscape.line_modes(5, 1.0, samples=1), "`samples` is"),
        (lambda: landscape.circle_modes(2.5, 1.0), "`n` is"),
        (lambda: landscape.circle_modes(5, -1.0), "`beta` is"),
        (lambda: count_line_modes([], 1.0), "`points` is"),
        (lambda: count_line_modes([[1.0]], 1.0), "`points` is"),
        (lambda: count_line_modes([np.nan], 1.0), "`points` is"),
        (lambda: count_line_modes([1.0], 0.0), "`beta` is"),
        (lambda: count_circle_modes([np.inf], 1.0), "`angles` is"),
        (lambda: count_circle_modes([1.0], np.inf), "`beta` is"),
        (lambda: count_circle_modes(np.arange(20) * (np.pi / 10), 1.0), "flat to rounding"),
    ],
)
def test_out_of_range_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("seed", [2, 15, 32, 38, 66])
def test_modes_that_a_coarse_grid_would_miss(seed):
    """Samples with shallow modes, found because a grid of the width of the kernel misses one of them."""
    rng = np.random.default_rng(seed)
    n, beta = int(rng.integers(3, 60)), 10 ** rng.uniform(0, 3)
    points, angles = rng.standard_normal(n), rng.uniform(0, 2 * np.pi, n)
    t = np.arange(points.min() - 1, points.max() + 1, 1e-3 / np.sqrt(beta))
    slope = sum((y - t) * np.exp(-0.5 * beta * (y - t) ** 2) for y in points)
    kept = np.sign(slope[np.abs(slope) > 1e-12 * np.abs(slope).max()])  # without the empty places
    assert count_line_modes(points, beta) == np.sum((kept[:-1] > 0) & (kept[1:] < 0))
    t = np.arange(200_000) * (2 * np.pi / 200_000)
    rising = sum(np.sin(y - t) * np.exp(beta * (np.cos(y - t) - 1)) for y in angles) > 0
    assert count_circle_modes(angles, beta) == np.sum(rising & ~np.roll(rising, -1))

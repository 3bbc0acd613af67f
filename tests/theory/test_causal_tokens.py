"""Causal attention of N tokens: plain matrices, mpmath, the continuum, and the noise of a prefix."""

import mpmath as mp
import numpy as np
import pytest
from scipy.linalg import expm

from attnflow import theory
from tests.marks import graded

pytestmark = pytest.mark.filterwarnings("error")

EPS = np.finfo(float).eps


def panels(low, high, count, order=20):
    """Nodes and weights of Gauss's rule on `count` panels."""
    points, weights = np.polynomial.legendre.leggauss(order)
    half = (high - low) / count / 2
    middles = low + (2 * np.arange(count)[:, None] + 1) * half
    return (middles + half * points).ravel(), np.tile(half * weights, count)


def over_sources(f, slope, place=1.0, top=900.0, count=60):
    """The integral of f(s) over 0 < s < place, in y = Y(place, s), where ds = (1 - e^{-slope s})/slope dy."""
    y, weights = panels(0.0, np.sqrt(top), count)
    y, weights = y**2, 2 * y * weights
    grown = np.expm1(slope * place) * np.exp(-y) if slope else place * np.exp(-y)
    s = np.log1p(grown) / slope if slope else grown
    near = s > 1e-300
    speed = -np.expm1(-slope * s) / slope if slope else s
    return np.sum((weights * speed)[near] * f(s[near]))


def plain_weights(n, slope, dilution=0.0):
    """By e^{slope k/n}, as the papers write it: a second way, for moderate slopes."""
    i = np.arange(1, n + 1)
    v = np.tril(np.exp(-slope * (i[:, None] - i) / n), -1)
    total = v.sum(1) + dilution
    return v / np.where(total > 0, total, 1.0)[:, None]


@pytest.mark.parametrize("slope", [0.0, 1.0, 30.0])
@pytest.mark.parametrize("dilution", [None, 0.0, 2.5])
def test_dense_matrices(slope, dilution):
    n, c = 150, 1.3
    w = plain_weights(n, slope, dilution or 0.0)
    np.testing.assert_allclose(theory.causal.weights(n, slope, dilution=dilution), w, rtol=1e-13, atol=0)
    exact = expm(c * w)
    found = theory.causal.correlation_matrix(c, n, slope, dilution=dilution)
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-14)
    np.testing.assert_allclose(
        theory.causal.last_row_correlations(c, n, slope, dilution=dilution), exact[-1], rtol=0, atol=1e-15
    )
    np.testing.assert_allclose(
        theory.causal.equal_time_correlations(c, n, slope, dilution=dilution), exact @ exact.T, rtol=0, atol=1e-14
    )
    noise = theory.causal.discrete_prefix_noise(c, n, slope=slope, dilution=dilution)
    assert abs(noise - np.sum((exact.T @ np.ones(n)) ** 2) / n) < 1e-12


@pytest.mark.parametrize("slope", [0.0, 3.0, 1e4])
def test_row_sums(slope):
    n, c = 80, 0.8
    w = theory.causal.weights(n, slope)
    np.testing.assert_allclose(w.sum(1), [0.0] + [1.0] * (n - 1), rtol=0, atol=20 * EPS)
    assert np.all(np.triu(w) == 0)
    # if token 1 heard itself every row would sum to e^c; only its column would change
    w[0, 0] = 1.0
    found = theory.causal.correlation_matrix(c, n, slope)
    np.testing.assert_allclose(found[:, 1:].sum(1), np.exp(c) - expm(c * w)[:, 0], rtol=0, atol=1e-13)


def test_small_entries_keep_their_digits():
    # token 1 is heard by token n through the products of weights r^{gap}, far below the rounding of a dense expm
    n, slope, c = 12, 100.0, 0.5
    with mp.workdps(60):
        r = mp.exp(-mp.mpf(slope) / n)
        w = mp.matrix(n, n)
        for i in range(1, n):
            for k in range(i):
                w[i, k] = r ** (i - k) / sum(r ** (i - j) for j in range(i))
        exact = mp.expm(c * w, method="taylor")
        row = np.array([float(exact[n - 1, k]) for k in range(n)])
    np.testing.assert_allclose(theory.causal.last_row_correlations(c, n, slope), row, rtol=1e-13)
    np.testing.assert_allclose(theory.causal.correlation_matrix(c, n, slope)[-1], row, rtol=1e-13)


@pytest.mark.parametrize(
    ("slope", "printed", "limit"),
    [(0.0, [1.24301835, 1.23233473, 1.22968658], 1.22880588), (1.0, [1.33682800, 1.32549429, 1.32267598], 1.32173790)],
)
def test_printed_discrete_values(slope, printed, limit):
    sizes = (64, 256, 1024)
    found = [n * theory.causal.last_row_correlations(0.91, n, slope)[n // 2 - 1] for n in sizes]
    np.testing.assert_allclose(found, printed, rtol=0, atol=5.1e-9)
    np.testing.assert_allclose(theory.causal.correlation(0.91, 1.0, 0.5, slope=slope), limit, rtol=0, atol=5.1e-9)


@graded("slope", [0.0, 2.0, 1e4], fast=1)
def test_a_million_tokens_follow_the_continuum(slope):
    n = 1_000_000
    row = theory.causal.last_row_correlations(1.0, n, slope)
    j = n - np.array([10, 100]) if slope > 100 else np.array([n // 100, n // 3, n - 10])
    # first order in 1/j; with a slope of 0.01 per token in half a unit of that
    np.testing.assert_allclose(
        n * row[j - 1], theory.causal.correlation(1.0, 1.0, j / n, slope=slope), rtol=6e-4 if slope < 100 else 2e-2
    )
    assert row[-1] == 1
    assert abs(row.sum() - np.e) < (1e-3 if slope < 100 else 1e-11)


@pytest.mark.parametrize("slope", [0.0, 2.0])
def test_diluted_tokens_follow_the_diluted_continuum(slope):
    q, c = 0.2, 1.5
    errors = []
    for n in (500, 2000):
        row = n * theory.causal.last_row_correlations(c, n, slope, dilution=q * n)
        j = np.array([n // 500, n // 10, n // 2, n - n // 20])
        errors.append(
            np.abs(row[j - 1] / theory.causal.correlation(c, 1.0, j / n, slope=slope, relative_dilution=q) - 1)
        )
    assert np.all(errors[0] < 0.02)
    # first order in 1/n, where the error is not itself accidentally small
    assert np.all((errors[1] < 0.3 * errors[0]) | (errors[1] < 1e-3))


def test_pairs_at_one_time():
    c, slope = 0.9, 1.0
    direct = theory.causal.correlation(c, 0.8, 0.3, slope=slope)
    direct += over_sources(
        lambda s: theory.causal.correlation(c, 0.8, s, slope=slope) * theory.causal.correlation(c, 0.3, s, slope=slope),
        slope,
        0.3,
    )
    np.testing.assert_allclose(theory.causal.pair_correlation(c, 0.8, 0.3, slope=slope), direct, rtol=1e-11)
    np.testing.assert_allclose(theory.causal.pair_correlation(c, 0.3, 0.8, slope=slope), direct, rtol=1e-11)


@pytest.mark.parametrize("slope", [0.0, 1.0, 30.0])
def test_pairs_of_many_tokens(slope):
    c, source = 0.9, np.array([0.9, 0.995])
    found = theory.causal.pair_correlation(c, 1.0, source, slope=slope)
    errors = []
    for n in (200, 800):
        matrix = theory.causal.equal_time_correlations(c, n, slope)
        errors.append(np.abs(n * matrix[-1, np.round(source * n).astype(int) - 1] / found - 1))
    # the first tokens, which many paths share, leave about n^(-1/2): a factor 2
    assert np.all(errors[1] < 0.6 * errors[0])
    assert np.all(errors[1] < 0.04)


def test_printed_noise():
    found = theory.causal.prefix_noise([0.25, 0.5, 1, 1.5, 2])
    np.testing.assert_allclose(found, [1.753388, 3.441524, 16.843984, 98.033340, 617.064030], rtol=0, atol=5.1e-7)
    np.testing.assert_allclose(
        [theory.causal.prefix_noise(1.0, slope=s) for s in (1, 2)], [15.0845, 13.6493], rtol=0, atol=5.1e-5
    )
    dilution = theory.causal.softmax_dilution(1.0, 2)
    rate = theory.causal.rates(1, 1.0, 2, model="SA")
    found = [theory.causal.discrete_prefix_noise(rate * t, 2048, slope=0.0, dilution=dilution) for t in (1, 2, 3)]
    np.testing.assert_allclose(found, [2.86, 10.02, 36.6], rtol=0, atol=5.1e-2)
    np.testing.assert_allclose(found[:2], [2.86, 10.02], rtol=0, atol=5.1e-3)
    np.testing.assert_allclose(theory.causal.log_prefix_noise(1e4), 4e4 - 0.5 * np.log(4e4 * np.pi), atol=1e-4)


@pytest.mark.parametrize("slope", [0.7, 5.0])
def test_noise_is_the_square_of_all_paths(slope):
    c = 0.8
    x, weights = panels(0.0, 1.0, 30)

    def heard(s):  # by the definition, over places p = s^x
        p = s[:, None] ** x
        g = theory.causal.correlation(c, p, s[:, None], slope=slope)
        return 1 - np.sum(weights * p * np.log(s)[:, None] * g, axis=1)

    total = over_sources(lambda s: heard(s) ** 2, slope, top=200.0, count=20)
    np.testing.assert_allclose(theory.causal.prefix_noise(c, slope=slope), total, rtol=1e-9)


@pytest.mark.slow
def test_limits_of_noise():
    np.testing.assert_allclose(theory.causal.prefix_noise(1.0, slope=1e-7), theory.causal.prefix_noise(1.0), rtol=1e-6)
    # all but a layer of 1/slope has e^{2c}; panels of every kind of slope lie on one curve e^{2c} + b/slope
    steep = np.array([60.0, 130.0, 1000.0])
    layers = [s * (theory.causal.prefix_noise(1.0, slope=s) - np.exp(2)) for s in steep]
    np.testing.assert_allclose(layers, layers[-1], rtol=1e-10)
    np.testing.assert_allclose(theory.causal.prefix_noise(1.0, slope=1e4), np.exp(2), rtol=1e-3)
    np.testing.assert_allclose(
        theory.causal.attended_noise([0.5, 3.0]), theory.causal.prefix_noise([0.5, 3.0]), rtol=1e-14
    )


@pytest.mark.parametrize("slope", [0.0, 1.0, 8.0])
def test_attended_noise(slope):
    c = 0.6
    # at time 0 it is the sum of the squared weights
    squares = over_sources(lambda s: theory.causal.graphon(1.0, s, slope) ** 2, slope)
    np.testing.assert_allclose(theory.causal.attended_noise(0.0, slope=slope), squares, rtol=1e-11)

    def attended(s):  # the last token moves by what it attends to: dg/dc, an error of step^4
        g = [theory.causal.correlation(c + step * 1e-3, 1.0, s, slope=slope) for step in (-2, -1, 1, 2)]
        return (g[0] - 8 * g[1] + 8 * g[2] - g[3]) / 12e-3

    np.testing.assert_allclose(
        theory.causal.attended_noise(c, slope=slope), over_sources(lambda s: attended(s) ** 2, slope), rtol=1e-9
    )


def test_refusals():
    for call, word in [
        (lambda: theory.causal.weights(2001, 1.0), "`n` is 2001; give an integer from 2 to 2000"),
        (lambda: theory.causal.weights(1, 1.0), "`n` is 1; give an integer from 2"),
        (lambda: theory.causal.weights(10, [1.0, 2.0]), "give a number in"),
        (lambda: theory.causal.last_row_correlations(1e3, 10, 1.0), "`c` is 1000.0; give a number in"),
        (lambda: theory.causal.last_row_correlations(1.0, 10**8, 1.0), "from 2 to 10000000"),
        (lambda: theory.causal.correlation_matrix(1.0, 10, 1.0, dilution=-1.0), "`dilution` is -1.0; give a number in"),
        (lambda: theory.causal.prefix_noise(60.0, slope=1.0), "needs c <= 50"),
        (lambda: theory.causal.prefix_noise(1e4), "use log_prefix_noise"),
        (lambda: theory.causal.attended_noise(200.0), "use a smaller time"),
    ]:
        with pytest.raises(ValueError, match=word):
            call()

"""Nearby tokens and random images of angles: tables, Laguerre quadrature, mpmath, samples."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ive, roots_genlaguerre

from attnflow import theory

pytestmark = pytest.mark.filterwarnings("error")

EPS = np.finfo(float).eps

MOMENTS = [
    # d, d_k, b, A, B, Lambda of causal-and-random 9; the digits of (64, 64) and (64, 8) at b = 8, of A at (64, 16) and
    # (64, 8) with b = 128 and of Lambda at (8, 8, .5) are corrected in the last place, by two computations that agree
    (8, 8, 0.5, 0.029065, 0.029090, -0.007250),
    (8, 8, 8, 0.686951, 0.819965, -0.088604),
    (8, 8, 128, 0.976556, 1.315579, -0.032249),
    (8, 4, 0.5, 0.028709, 0.028752, -0.007150),
    (8, 4, 8, 0.663335, 0.863583, -0.040679),
    (8, 4, 128, 0.973578, 1.647564, 0.177846),
    (64, 64, 0.5, 0.003875, 0.003875, -0.000121),
    (64, 64, 8, 0.379828, 0.383419, -0.008448),
    (64, 64, 128, 0.938956, 0.967507, -0.002130),
    (64, 16, 8, 0.372325, 0.381006, -0.003361),
    (64, 16, 128, 0.936782, 1.013737, 0.044074),
    (64, 8, 8, 0.362654, 0.377636, 0.002947),
    (64, 8, 128, 0.933546, 1.090673, 0.120589),
]


@pytest.mark.parametrize(("d", "d_k", "b", "a", "second", "exponent"), MOMENTS)
def test_printed_moments(d, d_k, b, a, second, exponent):
    found = theory.random_layers.attention_moments(b, d=d, d_k=d_k)
    np.testing.assert_allclose(found, [a, second], rtol=0, atol=5.1e-7)
    assert abs(theory.random_layers.pair_exponent(*found, d) - exponent) < 5.1e-7


def by_laguerre(b, d, d_k):
    """A and B with U = 2x, V = 2y in generalised Gauss-Laguerre nodes: good while r is smooth on the scale of U."""
    x, wx = roots_genlaguerre(120, d / 2 - 1)
    y, wy = roots_genlaguerre(120, d_k / 2 - 1)
    u, v = 2 * x[:, None], 2 * y
    mass = wx[:, None] / wx.sum() * wy / wy.sum()
    kappa = b * np.sqrt(u * v / d_k)
    r = ive(d / 2, kappa) / ive(d / 2 - 1, kappa)
    slope = 1 - r * r - (d - 1) * r / kappa
    second = slope**2 * b * b / d_k * (u + d_k - 1) + r * r * (d - 1) * (d_k - 1) / (u * v)
    return float(np.sum(mass * r * r)), float(np.sum(mass * second))


@pytest.mark.parametrize(
    ("b", "d", "d_k"),
    [
        (0.5, 8, 4),
        (2.0, 8, 8),
        (8.0, 64, 64),
        (8.0, 64, 16),
        (8.0, 64, 8),
        (128.0, 64, 16),
        (0.5, 8, 8),
        (128.0, 64, 64),
    ],
)
def test_moments_by_another_quadrature(b, d, d_k):
    # 120 nodes have converged to 1e-9 here: r is a function of sqrt(U V), smooth where the mass is
    np.testing.assert_allclose(
        theory.random_layers.attention_moments(b, d=d, d_k=d_k), by_laguerre(b, d, d_k), rtol=2e-9
    )


def test_first_moment_with_few_keys_by_another_quadrature():
    # eight keys and b = 128: B has a heavy tail, on which Laguerre nodes are good to 1e-6 only; A is good to 1e-8
    assert abs(theory.random_layers.attention_moments(128.0, d=64, d_k=8)[0] - by_laguerre(128.0, 64, 8)[0]) < 1e-8


def test_moments_are_those_of_sampled_matrices():
    d, d_k, b, count, h = 4, 4, 2.0, 200_000, 1e-4
    rng = np.random.default_rng(21)
    q, k = rng.normal(size=(2, count, d_k, d))
    matrix = b / np.sqrt(d_k) * np.einsum("cka,ckb->cab", q, k)

    def mean(angle):
        a = np.cos(angle) * matrix[:, :, 0] + np.sin(angle) * matrix[:, :, 1]
        kappa = np.linalg.norm(a, axis=1)
        return (ive(d / 2, kappa) / ive(d / 2 - 1, kappa) / kappa)[:, None] * a

    a = np.sum(mean(0.0) ** 2, axis=1)
    second = np.sum((mean(h) - mean(-h)) ** 2, axis=1) / (2 * h) ** 2
    for sample, value in zip((a, second), theory.random_layers.attention_moments(b, d=d, d_k=d_k), strict=True):
        assert abs(sample.mean() - value) < 5 * sample.std() / np.sqrt(count) + 1e-6


def test_small_and_large_logit_scales():
    # r = kappa/d: A = B = b^2/d as b -> 0, with relative corrections of b^2
    for d, d_k in ((8, 4), (4096, 128), (2, 1), (4096, None)):
        np.testing.assert_allclose(
            theory.random_layers.attention_moments(1e-5, d=d, d_k=d_k), [1e-10 / d] * 2, rtol=1e-8
        )
    for d, d_k in ((8, 8), (8, 5), (4096, 128), (64, None)):
        found, limit = (
            theory.random_layers.attention_moments(1e9, d=d, d_k=d_k),
            theory.random_layers.attention_moments(np.inf, d=d, d_k=d_k),
        )
        # 1 - r^2 = (d-1)/kappa: the corrections are d/(b sqrt(d))
        np.testing.assert_allclose(found, limit, rtol=1e-6)
    assert theory.random_layers.attention_moments(0.0, d=8, d_k=4) == (0.0, 0.0)
    np.testing.assert_allclose(
        theory.random_layers.attention_moments(3.0, d=16, d_k=None),
        theory.random_layers.attention_moments(3.0, d=16, d_k=10**6),
        rtol=1e-5,
    )


def test_printed_critical_scales():
    printed = {
        (8, 4): 12.6111,
        (64, 16): 10.6634,
        (64, 8): 6.8469,
        (16, 4): 6.3612,
        (16, 8): 13.2274,
        (64, 32): 22.4391,
    }
    for (d, d_k), value in printed.items():
        found = theory.random_layers.critical_logit_scale(d, d_k)
        assert abs(found - value) < 5.1e-5
        assert (
            abs(theory.random_layers.pair_exponent(*theory.random_layers.attention_moments(found, d=d, d_k=d_k), d))
            < 1e-9
        )
    for d, d_k in ((8, 7), (8, 8), (64, 64), (8, None), (3, 1), (2, 1)):
        assert theory.random_layers.critical_logit_scale(d, d_k) is None


def test_zero_temperature():
    printed = [(4, 0.2188), (6, 0.0365), (8, -0.0243), (16, -0.0938), (64, -0.1341), (None, -0.1458)]
    for d_k, value in printed:
        assert abs(theory.random_layers.zero_temperature_exponent(8, d_k) - value) < 5.1e-5
    for d in (4, 8, 64, 4096):
        assert theory.random_layers.zero_temperature_exponent(d, d - 1) == 0
        assert theory.random_layers.zero_temperature_exponent(d, d) < 0
        assert theory.random_layers.zero_temperature_exponent(d, max(1, d - 2)) > 0
    for d, d_k in ((8, 4), (64, 8), (5, None)):
        found = theory.random_layers.pair_exponent(*theory.random_layers.attention_moments(np.inf, d=d, d_k=d_k), d)
        np.testing.assert_allclose(found, theory.random_layers.zero_temperature_exponent(d, d_k), rtol=1e-13)
    assert theory.random_layers.zero_temperature_exponent(6, 2) == np.inf
    assert theory.random_layers.zero_temperature_exponent(2, 4) == -np.inf
    assert theory.random_layers.zero_temperature_exponent(3, 1) == -2 / 3
    # the limits where moments are infinite: the exponent grows with b for d_k <= 2 < d-1
    rising = [
        theory.random_layers.pair_exponent(*theory.random_layers.attention_moments(b, d=6, d_k=1), 6)
        for b in (1e2, 1e4, 1e6)
    ]
    assert rising[0] < rising[1] < rising[2]
    assert (
        abs(theory.random_layers.pair_exponent(*theory.random_layers.attention_moments(1e8, d=3, d_k=1), 3) + 2 / 3)
        < 1e-4
    )


def test_antipodal_pairs():
    found = theory.random_layers.antipodal_exponent([0.3, 0.8, 1.5, 2.5], 8)
    np.testing.assert_allclose(found, [0.5507, 0.2392, -0.0919, -0.2267], atol=5.1e-5)
    for d in (4, 8, 64):
        critical = np.arccosh(d - 2) / 2
        assert abs(theory.random_layers.antipodal_exponent(critical, d)) < 1e-14
    assert theory.random_layers.pair_exponent(1, 0, 8) == -0.875
    assert theory.random_layers.pair_exponent_spread(1, 0, 8) == 0.5


def test_exponents_are_those_of_the_overlap_near_one():
    a, second, d, gap = 0.4, 0.7, 6, 1e-6
    s = a - second * gap  # E <m(0), m(angle)> = A - B angle^2/2, and angle^2/2 = 1 - R
    drift = theory.random_layers.overlap_drift(1 - gap, s, a, a, d=d) / gap
    variation = theory.random_layers.overlap_variation(1 - gap, s, a, a, d=d) / gap**2
    # Ito: d log(1-R) = -dR/(1-R) - d<R>/(2 (1-R)^2); the next order is the gap, rounding is eps/gap
    np.testing.assert_allclose(-drift - variation / 2, theory.random_layers.pair_exponent(a, second, d), rtol=1e-5)
    np.testing.assert_allclose(variation, theory.random_layers.pair_exponent_spread(a, second, d), rtol=1e-5)


@pytest.mark.parametrize("d", [2, 3, 64, 401, 4096])
def test_images_under_one_matrix_agree_with_mpmath(d):
    r = [1e-3, 0.3, -0.7, 0.99, 0.999999, 1.0]
    with mp.workdps(40):
        half = mp.mpf(d) / 2
        constant = (mp.gamma(half + 0.5) / mp.gamma(half)) ** 2 / half
        exact = [float(constant * mp.mpf(x) * mp.hyp2f1(0.5, 0.5, half + 1, mp.mpf(x) ** 2)) for x in r]
    np.testing.assert_allclose(
        theory.random_layers.mean_cosine(r, d), exact, rtol=40 * EPS
    )  # sums of at most 200 positive terms


@pytest.mark.parametrize(("d", "d_k", "r"), [(8, 4, 0.5), (3, 2, 0.9), (2, 3, -0.99), (5, 1, 0.3)])
def test_images_under_a_product_agree_with_samples(d, d_k, r):
    count = 40_000
    rng = np.random.default_rng(4)
    x, noise = rng.normal(size=(2, count, d_k))
    y = r * x + np.sqrt(1 - r * r) * noise
    q = rng.normal(size=(count, d, d_k))
    x, y = (np.einsum("cdk,ck->cd", q, part) for part in (x, y))
    cosine = np.sum(x * y, axis=1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1)
    assert abs(cosine.mean() - theory.random_layers.mean_cosine(r, d, d_k=d_k)) < 5 * cosine.std() / np.sqrt(count)


@pytest.mark.parametrize("d_k", [2, 3, 17, 300])
def test_a_last_matrix_with_many_rows_keeps_angles(d_k):
    r, d = np.array([-0.9, 0.2, 0.7, 0.999]), 2**20
    # the last matrix turns by (r - r^3)/(2d); what is left is the hypergeometric mean of the first, from Fisher's density
    np.testing.assert_allclose(
        theory.random_layers.mean_cosine(r, d, d_k=d_k), theory.random_layers.mean_cosine(r, d_k), rtol=0, atol=0.2 / d
    )


def test_expansions_of_cosines():
    r = np.array([0.2, 0.5, 0.7])
    for d, d_k in ((4096, None), (4096, 4096), (4096, 1024)):
        share = 1 / (2 * d) + (1 / (2 * d_k) if d_k else 0)
        # the next order is the square of the share
        np.testing.assert_allclose(
            theory.random_layers.mean_cosine(r, d, d_k=d_k), r - (r - r**3) * share, atol=4 * share**2
        )
    # printed: Monte Carlo .694478 +- .000093 at d = d_k = 64, R = .7
    assert abs(theory.random_layers.mean_cosine(0.7, 64, d_k=64) - 0.694478) < 3 * 0.000093
    np.testing.assert_allclose(
        theory.random_layers.mean_cosine(0.4, 50, d_k=10**6), theory.random_layers.mean_cosine(0.4, 50), atol=1e-6
    )


def test_the_drift_constant_is_that_of_the_exact_drift():
    d = 4096
    for d_k, kind in ((d, "product"), (1024, "product"), (None, "iid")):
        for r in (0.3, 0.8):
            image = theory.random_layers.mean_cosine(r, d, d_k=d_k if kind == "product" else None)
            found = -d * theory.random_layers.overlap_drift(r, image, 1, 1, d=d) / (r * (1 - r * r))
            # corrections of relative order 1/d_k, with constants below 10
            assert (
                abs(found - theory.random_layers.cosine_drift_constant(d, d_k=d_k, kind=kind))
                < 10 * d / (d_k or d) ** 2
            )
    assert theory.random_layers.cosine_drift_constant(64, d_k=16, kind="product") == 3.5
    assert theory.random_layers.cosine_drift_constant(64) == 2
    assert theory.random_layers.cosine_drift_constant(64, d_k=None, kind="orthogonal") == 1
    assert theory.random_layers.cosine_drift_constant(64, d_k=4, kind="iid") == 1.5


@given(d=st.integers(2, 300), d_k=st.one_of(st.none(), st.integers(1, 300)), r=st.floats(0, 1))
@settings(max_examples=30, deadline=None)
def test_images_turn_away(d, d_k, r):
    found = float(theory.random_layers.mean_cosine(r, d, d_k=d_k))
    assert -1e-14 <= found <= r + 1e-14
    assert abs(found + float(theory.random_layers.mean_cosine(-r, d, d_k=d_k))) < 1e-14


@given(d=st.integers(2, 200), d_k=st.one_of(st.none(), st.integers(1, 200)), log_b=st.floats(-8, 12))
@settings(max_examples=30, deadline=None)
def test_moments_have_their_bounds(d, d_k, log_b):
    a, second = theory.random_layers.attention_moments(float(np.exp(log_b)), d=d, d_k=d_k)
    assert 0 < a < 1
    assert second >= a * (1 - 1e-9)  # m turns with its argument at least as fast as it is long
    assert second <= theory.random_layers.attention_moments(np.inf, d=d, d_k=d_k)[1] * (1 + 1e-9)


@pytest.mark.parametrize(
    "call",
    [
        lambda: theory.random_layers.attention_moments(-1.0, d=8, d_k=8),
        lambda: theory.random_layers.attention_moments(np.nan, d=8, d_k=8),
        lambda: theory.random_layers.attention_moments(1.0, d=1, d_k=8),
        lambda: theory.random_layers.attention_moments(1.0, d=8, d_k=0),
        lambda: theory.random_layers.critical_logit_scale(8.5, 4),
        lambda: theory.random_layers.zero_temperature_exponent(8, [3, 4]),
        lambda: theory.random_layers.mean_cosine(1.1, 8),
        lambda: theory.random_layers.cosine_drift_constant(8, d_k=8, kind="unitary"),
        lambda: theory.random_layers.antipodal_exponent(-1.0, 8),
        lambda: theory.random_layers.pair_exponent(-1.0, 0.0, 8),
    ],
)
def test_refusals(call):
    with pytest.raises(ValueError, match=r" is .*(give|use)"):
        call()

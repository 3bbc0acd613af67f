"""The time of random layers, overlaps, hot tokens: tables, Gaussian quadrature, sampled layers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnflow import theory

pytestmark = pytest.mark.filterwarnings("error")

EPS = np.finfo(float).eps


def test_the_clock_of_the_printed_scalings():
    assert theory.random_layers.canonical_time(64**-0.5, layers=64, heads=1) == 1
    np.testing.assert_allclose(
        theory.random_layers.canonical_time(1 / 64, layers=64, heads=[1, 8]), [1 / 64, 1 / 512], rtol=4 * EPS
    )
    np.testing.assert_allclose(
        theory.random_layers.canonical_time([0.1, 0.3, 1], layers=[100, 44, 64], heads=[1, 4, 64]),
        [1, 0.99, 1],
        rtol=4 * EPS,
    )


@pytest.mark.parametrize(
    ("step", "layers", "heads", "mean", "regime"),
    [
        (1000**-0.5, 1000, 1, 0.0, "diffusive"),
        (1e-3, 1000, 1, 0.0, "frozen"),
        (1.0, 64, 64, 0.0, "diffusive"),
        (1e-3, 1000, 1, 1.0, "ballistic"),
        (0.05, 200, 64, 1.0, "modified"),
        (0.1, 100, 1, 1.0, "diffusive"),
        (1.0, 10, 1, 0.0, "discrete"),
        (0.4, 20, 64, 1.0, "discrete"),
        (1e-3, 10, 1, 1.0, "frozen"),
    ],
)
def test_regimes(step, layers, heads, mean, regime):
    found = theory.random_layers.regime(step, layers=layers, heads=heads, mean_value=mean)
    assert found.regime == regime
    assert found.time == theory.random_layers.canonical_time(step, layers=layers, heads=heads)
    assert found.drift_time == mean * step * layers
    assert found.error > 0


def test_errors_of_the_limits():
    assert theory.random_layers.regime(1.0, layers=64, heads=64).error == 1 / 64
    np.testing.assert_allclose(
        theory.random_layers.regime(1e-3, layers=1000, heads=1, mean_value=1.0).error, 2e-3, rtol=1e-12
    )
    np.testing.assert_allclose(
        theory.random_layers.regime(0.1, layers=100, heads=1, mean_value=1.0).error, 0.1 * 11 * 0.1, rtol=1e-12
    )


def test_initialisation_has_logits_of_deviation_one():
    d, d_k = 96, 12
    # entries of variance 1/d, tokens of norm sqrt(d), logits over sqrt(d_k): beta of unit tokens is d/sqrt(d_k)
    np.testing.assert_allclose(
        theory.random_layers.logit_scale(d / d_k**0.5, d**-0.5, d**-0.5, d_k=d_k), 1.0, rtol=8 * EPS
    )
    rng = np.random.default_rng(5)
    q, k = rng.normal(size=(2, 20000, d_k, 8)) * np.array([0.7, 1.9])[:, None, None, None]
    logits = 0.6 * np.sum(q[..., 0] * k[..., 1], axis=1)
    # the fourth moment of a sum of 12 products is 3 + 6/12: the variance has the relative error sqrt(2.5/20000)
    assert abs(np.var(logits) / theory.random_layers.logit_scale(0.6, 0.7, 1.9, d_k=d_k) ** 2 - 1) < 5 * np.sqrt(
        2.5 / 20000
    )


def test_drift_and_variation_are_those_of_a_layer():
    d, step, count = 5, 0.02, 200_000
    rng = np.random.default_rng(11)
    x = rng.normal(size=(2, d))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    m = rng.normal(size=(2, d)) / 3
    r, s = float(x[0] @ x[1]), m @ m.T
    values = rng.normal(size=(count, d, d)) / np.sqrt(d)
    push = step * np.einsum("cde,ie->cid", values, m)

    def overlaps(moved):
        moved = moved / np.linalg.norm(moved, axis=-1, keepdims=True)
        return np.sum(moved[:, 0] * moved[:, 1], axis=-1)

    plus, minus = overlaps(x + push), overlaps(x - push)
    drift = ((plus + minus) / 2 - r) / step**2
    variation = ((plus - minus) / 2 / step) ** 2
    expected = (
        theory.random_layers.overlap_drift(r, s[0, 1], s[0, 0], s[1, 1], d=d),
        theory.random_layers.overlap_variation(r, s[0, 1], s[0, 0], s[1, 1], d=d),
    )
    for sample, value in zip((drift, variation), expected, strict=True):
        error = sample.std() / np.sqrt(count)
        # five standard errors; the next order of one layer is step^2 = 4e-4 times numbers of order 1
        assert abs(sample.mean() - value) < 5 * error + 2 * step**2


def test_one_token_is_a_brownian_motion():
    d, h, count = 3, 0.02, 200_000
    pushed = np.random.default_rng(2).normal(size=(count, d)) * np.sqrt(h / d)
    along = np.array([1.0, 0, 0])
    both = [along + sign * pushed for sign in (1, -1)]
    cosine = np.mean([moved[:, 0] / np.linalg.norm(moved, axis=1) for moved in both], axis=0)
    # one layer of step sqrt(h): its next order is h^2
    assert (
        abs(cosine.mean() - theory.random_layers.one_token_decay(h, d)) < 5 * cosine.std() / np.sqrt(count) + 2 * h**2
    )
    np.testing.assert_allclose(theory.random_layers.one_token_decay(2.0, 8), np.exp(-7 / 8), rtol=4 * EPS)
    # the drift of <x, x_0> has the same rate: the overlap with a token that does not move
    np.testing.assert_allclose(theory.random_layers.overlap_drift(0.3, 0, 1, 0, d=8) / 0.3, -7 / 16, rtol=4 * EPS)


def test_two_tokens_alone_on_the_circle():
    # text-training-transport E4: b = 2, d = d_k = 2, angle 1: drift -.1097, variation .28754
    count, b = 400_000, 2.0
    rng = np.random.default_rng(3)
    x = np.array([[1.0, 0.0], [np.cos(1.0), np.sin(1.0)]])
    q, k = rng.normal(size=(2, count, 2, 2))
    logits = b / np.sqrt(2) * np.einsum("cad,id,cae,je->cij", q, x, k, x)
    first = 1 / (1 + np.exp(logits[..., 1] - logits[..., 0]))
    m = first[..., None] * x[0] + (1 - first[..., None]) * x[1]
    s = np.einsum("cid,cjd->cij", m, m)
    r = np.cos(1.0)
    for rate, printed in (
        (theory.random_layers.overlap_drift, -0.1097),
        (theory.random_layers.overlap_variation, 0.28754),
    ):
        sample = rate(r, np.clip(s[:, 0, 1], -1, 1), s[:, 0, 0], s[:, 1, 1], d=2)
        assert abs(sample.mean() - printed) < 5 * sample.std() / np.sqrt(count) + 1e-4  # printed to 5e-5 or less


def exact_products(gram, b, i, j):
    """E <m_i, m_j> for three tokens: four differences of logits, by Gauss-Hermite quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(16)
    grid = np.stack(np.meshgrid(*[nodes] * 4), axis=-1).reshape(-1, 4)
    mass = np.prod(np.stack(np.meshgrid(*[weights / weights.sum()] * 4), axis=-1).reshape(-1, 4), axis=1)
    differences = np.array([[1.0, 0, -1], [0, 1, -1]])
    inner = differences @ gram @ differences.T
    queries = gram[np.ix_([i, j], [i, j])]
    values, vectors = np.linalg.eigh(b * b * np.kron(queries, inner))
    logits = (grid * np.sqrt(np.maximum(values, 0))) @ vectors.T
    weighted = []
    for part in (logits[:, :2], logits[:, 2:]):
        full = np.exp(np.column_stack([part, np.zeros(len(part))]))
        weighted.append(full / full.sum(axis=1, keepdims=True))
    return float(mass @ np.sum((weighted[0] @ gram) * weighted[1], axis=1))


def test_small_logits_to_fourth_order():
    x = np.random.default_rng(8).normal(size=(3, 4))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    gram = x @ x.T
    for i, j in ((0, 0), (0, 1), (1, 2)):
        errors = [
            exact_products(gram, b, i, j) - theory.random_layers.small_logit_products(gram, b)[i, j] for b in (0.1, 0.2)
        ]
        assert 14 < errors[1] / errors[0] < 16.5  # b^4, and a share of b^6
        assert abs(errors[1]) < 0.2**4
    opposite = np.outer([1.0, 1, -1], [1.0, 1, -1])
    error = exact_products(opposite, 0.05, 1, 2) - theory.random_layers.small_logit_products(opposite, 0.05)[1, 2]
    assert error == pytest.approx(1.64 * 0.05**4, rel=0.01)  # as the docstring says, and a share of b^2


def test_pairs_at_infinite_temperature():
    r = np.array([-0.5, -0.2, 0.3, 0.9])
    np.testing.assert_allclose(
        theory.random_layers.hot_pair_collapse_probability([0.5, 0, 1, -1, -0.5]),
        [2 / 3, 0.5, 1, 0, 1 / 3],
        rtol=4 * EPS,
    )
    # it is harmonic: drift times slope and half the variation times curvature cancel, with s = |mean|^2 = (1+R)/2
    p = theory.random_layers.hot_pair_collapse_probability
    h, s = 1e-4, (1 + r) / 2
    slope, curvature = (p(r + h) - p(r - h)) / (2 * h), (p(r + h) - 2 * p(r) + p(r - h)) / h**2
    drift, variation = (
        theory.random_layers.overlap_drift(r, s, s, s, d=2),
        theory.random_layers.overlap_variation(r, s, s, s, d=2),
    )
    np.testing.assert_allclose(
        drift * slope + variation * curvature / 2, 0, atol=1e-6
    )  # h^2 times fourth derivatives of 20


def test_hot_tokens_in_many_dimensions():
    u0, tau = 0.1, 1.7
    u = theory.random_layers.hot_mean_square(u0, tau)
    np.testing.assert_allclose(u / (1 - u), u0 / (1 - u0) * np.exp(tau), rtol=8 * EPS)
    n = 10  # orthonormal tokens: u = (1+(n-1) R)/n
    r = theory.random_layers.hot_overlap(0.0, 1 / n, tau)
    np.testing.assert_allclose((1 + (n - 1) * r) / n, theory.random_layers.hot_mean_square(1 / n, tau), rtol=8 * EPS)
    h = 1e-5
    slope = (
        theory.random_layers.hot_overlap(-0.3, u0, tau + h) - theory.random_layers.hot_overlap(-0.3, u0, tau - h)
    ) / (2 * h)
    # the drift for d -> inf; central differences are good to h^2 and eps/h
    np.testing.assert_allclose(slope, u * (1 - theory.random_layers.hot_overlap(-0.3, u0, tau)), rtol=1e-9)
    assert theory.random_layers.hot_mean_square([0, 0.2, 1], 1e4).tolist() == [0, 1, 1]
    np.testing.assert_allclose(theory.random_layers.hot_overlap(0.2, [0, 0.5, 1], 1e4), [0.2, 1, 1], rtol=4 * EPS)


@given(r=st.floats(-1, 1), a=st.floats(0, 1), c=st.floats(0, 1), share=st.floats(-1, 1), d=st.integers(2, 5000))
@settings(max_examples=50, deadline=None)
def test_variation_is_positive_and_symmetric(r, a, c, share, d):
    s = share * np.sqrt(a * c)
    found = theory.random_layers.overlap_variation(r, s, a, c, d=d)
    assert found >= -4 * EPS
    assert found == theory.random_layers.overlap_variation(r, s, c, a, d=d)
    assert theory.random_layers.overlap_drift(-r, -s, a, c, d=d) == -theory.random_layers.overlap_drift(r, s, a, c, d=d)


@pytest.mark.parametrize(
    "call",
    [
        lambda: theory.random_layers.canonical_time(-1, layers=2, heads=1),
        lambda: theory.random_layers.canonical_time("a", layers=2, heads=1),
        lambda: theory.random_layers.canonical_time(0.1, layers=2, heads=0),
        lambda: theory.random_layers.regime(0.1, layers=2, heads=1, mean_value=np.nan),
        lambda: theory.random_layers.logit_scale(1, -1, 1, d_k=4),
        lambda: theory.random_layers.overlap_drift(1.5, 0, 1, 1, d=3),
        lambda: theory.random_layers.overlap_variation(0.5, 0, 1, 1, d=1),
        lambda: theory.random_layers.small_logit_products(np.ones((2, 3)), 0.1),
        lambda: theory.random_layers.small_logit_products(2 * np.eye(2), 0.1),
        lambda: theory.random_layers.hot_pair_collapse_probability(2.0),
        lambda: theory.random_layers.hot_mean_square(1.1, 1.0),
        lambda: theory.random_layers.hot_overlap(0.0, 0.5, -1.0),
        lambda: theory.random_layers.one_token_decay(np.inf, 3),
    ],
)
def test_refusals(call):
    with pytest.raises(ValueError, match=r" is |has .*must be"):
        call()

"""Order parameter, effective rank, spread and speed: against NumPy, and under JAX transformations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InvalidInput
from attnflow.tokens import Measure
from tests.marks import graded

TURN = np.linalg.qr(np.random.default_rng(1).standard_normal((3, 3)))[0]
BASIS = np.vstack([TURN, TURN[:1]])
CASES = {  # all of one shape, so that programs are compiled once
    "generic": af.Tokens(af.uniform(af.Sphere(3), n=4, seed=0).positions, [3, 1, 0, 2]),
    "consensus": af.from_array(np.tile([[0.6, 0.0, 0.8]], (4, 1))),
    "opposite": af.from_array(np.outer([1, -1, 1, -1], [1.0, 0, 0])),  # the mean is 0 and two eigenvalues vanish
    "isotropic": af.Tokens(BASIS, [1, 2, 2, 1]),  # all eigenvalues coincide
    "two equal": af.Tokens(BASIS, [1, 1, 1, 1]),
    "flat": af.Tokens(np.array([[1.0, 0, 0], [0.6, 0.8, 0], [0, 1, 0], [0, -1, 0]]), [2, 1, 1, 2]),  # one vanishes
    "euclidean": af.Tokens(3 * np.random.default_rng(2).standard_normal((4, 3)), space=af.Euclidean(3)),
}
TOKENS = CASES["generic"]


def numpy_order_parameter(x, m):
    return np.linalg.norm(m @ x)


def numpy_effective_rank(x, m):
    values = np.clip(np.linalg.eigvalsh(x.T @ (m[:, None] * x)), 0.0, None)
    shares = values[values > 0] / values.sum()
    return np.exp(-np.sum(shares * np.log(shares)))


def numpy_spread(x, m):
    return np.max(np.linalg.norm(x - m @ x, axis=1)[m > 0])


PAIRS = {
    "order_parameter": (af.observe.order_parameter, numpy_order_parameter),
    "effective_rank": (af.observe.effective_rank, numpy_effective_rank),
    "spread": (af.observe.spread, numpy_spread),
}


def system(function):
    return lambda x, masses: function(af.Measure(x, masses))


TRANSFORMED = {
    name: {
        "reverse": af.in_float64(jax.jit(jax.grad(system(function)))),
        "forward": af.in_float64(jax.jit(jax.jacfwd(system(function)))),
        "batched": af.in_float64(jax.vmap(jax.grad(system(function)), in_axes=(0, None))),
    }
    for name, (function, _) in PAIRS.items()
}


def gradient(name, tokens):
    return TRANSFORMED[name]["reverse"](np.asarray(tokens.positions), np.asarray(tokens.masses))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", PAIRS)
def test_values_are_those_of_numpy(name, case):
    function, plain = PAIRS[name]
    tokens = CASES[case]
    found = function(tokens)
    assert isinstance(found, np.ndarray)
    assert found.dtype == np.float64
    # a vanishing eigenvalue is found as eps, and eps log eps = 1e-14
    np.testing.assert_allclose(found, plain(tokens.positions, tokens.masses), rtol=0, atol=1e-13)
    assert function(tokens.astype(np.float32)).dtype == np.float64


@pytest.mark.parametrize("case", ["generic", "isotropic", "two equal", "flat", "euclidean"])
@pytest.mark.parametrize("name", PAIRS)
def test_derivatives_agree_with_differences(name, case):
    """Central differences in R^d: off by h^2 times third derivatives and eps/h = 2e-11.

    Where an eigenvalue vanishes s log s adds h^2 log h at both ends, which cancels up to h^3 log h. Derivatives of the
    spread exist where one token is the farthest.
    """
    plain, tokens, h = PAIRS[name][1], CASES[case], 1e-5
    if name == "spread":
        tokens = af.Tokens(tokens.positions, [5, 3, 0, 2], space=tokens.space)
    x, m = np.asarray(tokens.positions), np.asarray(tokens.masses)
    slopes = gradient(name, tokens)
    rng = np.random.default_rng(5)
    for _ in range(4):
        v = rng.standard_normal(x.shape)
        numeric = (plain(x + h * v, m) - plain(x - h * v, m)) / (2 * h)
        assert abs(numeric - np.sum(slopes * v)) < 2e-8
    assert np.array_equal(slopes[m == 0], np.zeros((int(np.sum(m == 0)), 3)))


@graded("name", PAIRS, fast=1)
def test_derivatives_are_finite_everywhere(name):
    """Where all tokens coincide, where they balance, where eigenvalues vanish or coincide; compiled and batched too."""
    for tokens in CASES.values():
        x, m = np.asarray(tokens.positions), np.asarray(tokens.masses)
        slopes = gradient(name, tokens)
        assert isinstance(slopes, np.ndarray)
        assert np.isfinite(slopes).all()
        np.testing.assert_allclose(TRANSFORMED[name]["forward"](x, m), slopes, atol=1e-13)
        np.testing.assert_allclose(TRANSFORMED[name]["batched"](np.stack([x, x]), m), [slopes, slopes], atol=1e-13)
    plain = af.in_float64(jax.grad(lambda x: PAIRS[name][0](TOKENS.moved(x))))(np.asarray(TOKENS.positions))
    np.testing.assert_allclose(plain, gradient(name, TOKENS), atol=1e-14)


def test_derivatives_at_kinks():
    """0 at a mean of 0 and for the spread at consensus; the rank does not change to first order at its extremes."""
    assert np.array_equal(gradient("order_parameter", CASES["opposite"]), np.zeros((4, 3)))
    assert np.array_equal(gradient("spread", CASES["consensus"]), np.zeros((4, 3)))
    for case in ("consensus", "opposite", "isotropic"):
        assert np.abs(gradient("effective_rank", CASES[case])).max() < 1e-14


def test_batches_keep_their_dimensions():
    batch = af.uniform(af.Sphere(3), n=10, seed=range(4))
    for function, plain in PAIRS.values():
        found = function(batch)
        each = [plain(batch.positions[k], batch.masses[k]) for k in range(4)]
        np.testing.assert_allclose(found, each, atol=1e-14)
        shared = af.Measure(batch.positions, batch.masses[0])  # one row of masses for all members, as `advance` gives
        np.testing.assert_allclose(function(shared), each, atol=1e-14)
        compiled = af.in_float64(jax.jit(lambda x, f=function: f(batch.moved(x))))(np.asarray(batch.positions))
        np.testing.assert_allclose(compiled, each, atol=1e-14)


def test_the_rank_of_nothing_is_not_a_number():
    tokens = af.Tokens([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0]], [1, 1, 0], space=af.Euclidean(2))
    assert np.isnan(af.observe.effective_rank(tokens))


def test_speed_under_transformations():
    """At the tokens; d|v|/dbeta by differences, off by h^2 and eps/h; 0 at consensus with a derivative of 0."""
    expected = np.linalg.norm(af.Attention(2.0).velocity(TOKENS), axis=1)
    np.testing.assert_allclose(af.observe.speed(af.Attention(2.0), TOKENS), expected, atol=1e-15)
    slope = af.in_float64(jax.jit(jax.jacfwd(lambda beta: af.observe.speed(af.Attention(beta), TOKENS))))(2.0)
    h = 1e-5
    ends = [af.observe.speed(af.Attention(2.0 + s), TOKENS) for s in (h, -h)]
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / (2 * h), atol=1e-9)
    still = CASES["consensus"]
    total = af.in_float64(jax.jit(jax.grad(lambda x: jnp.sum(af.observe.speed(af.Attention(2.0), still.moved(x))))))
    assert np.isfinite(total(np.asarray(still.positions))).all()
    batch = af.uniform(af.Sphere(3), n=4, seed=[0, 1])
    assert af.observe.speed(af.Attention(2.0), batch).shape == (2, 4)
    with pytest.raises(InvalidInput, match="batch dimensions \\('seed',\\)"):
        af.in_float64(jax.grad(lambda beta: jnp.sum(af.observe.speed(af.Attention(beta), batch))))(2.0)


@pytest.mark.parametrize("kind", ["uniform", "coincident", "a test particle"])
def test_the_effective_rank_of_few_tokens_in_many_dimensions(kind):
    """Fewer tokens than dimensions go through the Gram matrix; derivatives are those of the moments."""
    rng = np.random.default_rng(0)
    x, masses = af.Sphere(12).sample(rng, 5), rng.random(5)
    x[1] = x[0] if kind == "coincident" else x[1]
    masses[1] = 0.0 if kind == "a test particle" else masses[1]
    x[1] = (x[0] + x[2]) / np.linalg.norm(x[0] + x[2]) if kind == "a test particle" else x[1]
    masses /= masses.sum()
    rank = lambda m: af.observe.effective_rank(Measure(jnp.asarray(x), m))  # noqa: E731
    assert af.in_float64(jax.jit(rank))(masses) == pytest.approx(numpy_effective_rank(x, masses), rel=1e-12)
    step, at = 1e-6, np.array([0.0, 1.0, 0.0, 0.0, 0.0])
    # one-sided, error O(step): masses are not negative
    slope = (numpy_effective_rank(x, masses + step * at) - numpy_effective_rank(x, masses)) / step
    assert af.in_float64(jax.grad(rank))(masses)[1] == pytest.approx(slope, rel=1e-3)


def test_order_parameter_and_effective_rank():
    assert abs(af.observe.order_parameter(af.from_array([[1.0, 0], [0, 1.0]])) - np.sqrt(0.5)) < 1e-15
    assert abs(af.observe.effective_rank(af.tokens.orthonormal(af.Sphere(5), n=5)) - 5) < 1e-12
    assert abs(af.observe.effective_rank(af.from_array(np.tile([[0.6, 0.8]], (4, 1)))) - 1) < 1e-7
    batch = af.uniform(af.Sphere(3), n=10, seed=range(4))
    ranks = af.observe.effective_rank(batch)
    assert af.observe.order_parameter(batch).shape == ranks.shape == af.observe.spread(batch).shape == (4,)

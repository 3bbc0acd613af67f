import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InvalidInput
from tests.conftest import rotation
from tests.kit import end
from tests.marks import graded

TOKENS = af.uniform(af.Sphere(3), n=12, seed=0)
POINTS = af.uniform(af.Sphere(3), n=5, seed=9).positions


def loss(method, t1=1.0):
    def f(beta, x):
        moved = af.advance(af.Attention(beta), TOKENS.moved(x), 0.0, t1, method).positions
        return jnp.sum(moved[:, 0] * jnp.arange(12.0))

    return f


@graded("method", [af.Fixed(0.1), pytest.param(af.Layers(0.1), marks=pytest.mark.slow), af.Adaptive(1e-9, 1e-11)])
def test_reverse_mode(method):
    both = af.in_float64(jax.jit(jax.value_and_grad(loss(method), argnums=(0, 1))))
    gradient = both(4.0, TOKENS.positions)[1]
    h = 1e-5
    numeric = (both(4.0 + h, TOKENS.positions)[0] - both(4.0 - h, TOKENS.positions)[0]) / (2 * h)
    direction = TOKENS.space.tangent(TOKENS.positions, np.random.default_rng(0).standard_normal((12, 3)))
    there, back = (both(4.0, TOKENS.positions + sign * h * direction)[0] for sign in (1, -1))
    along = (there - back) / (2 * h)
    # central differences err by h^2 times a third derivative, and by eps/h
    assert abs(gradient[0] / numeric - 1) < 1e-6
    assert abs(np.sum(gradient[1] * direction) - along) < 1e-6 * abs(along) + 1e-6


@graded("method", [pytest.param(af.Fixed(0.1), marks=pytest.mark.slow), af.Layers(0.1)])
def test_forward_mode_equals_reverse_mode(method):
    f = loss(method)
    forward, reverse = af.in_float64(jax.jit(lambda *at: (jax.jacfwd(f)(*at), jax.jacrev(f)(*at))))(
        4.0, TOKENS.positions
    )
    assert abs(forward / reverse - 1) < 1e-11


def test_advance_works_under_vmap_and_jit():
    betas = np.array([1.0, 4.0])

    @af.in_float64
    def many(betas):
        return jax.jit(jax.vmap(lambda b: af.advance(af.Attention(b), TOKENS, 0.0, 1.0, af.Fixed(0.1)).positions))(
            betas
        )

    got = many(betas)
    for k, beta in enumerate(betas):
        np.testing.assert_allclose(
            got[k], af.advance(af.Attention(beta), TOKENS, 0.0, 1.0, af.Fixed(0.1)).positions, atol=1e-14
        )


@pytest.mark.slow
def test_there_and_back():
    for method, tolerance in ((af.Adaptive(1e-10, 1e-12), 1e-8), (af.Fixed(0.02), 1e-6)):
        there = af.advance(af.Attention(4.0), TOKENS, 0.0, 2.0, method)
        back = af.advance(af.Attention(4.0), there, 2.0, 0.0, method)
        np.testing.assert_allclose(back.positions, TOKENS.positions, atol=tolerance)
    with pytest.raises(InvalidInput, match="backwards"):
        af.advance(af.Attention(4.0), TOKENS, 1.0, 0.0, af.Layers(0.1))


def test_non_finite_times_are_refused():
    with pytest.raises(InvalidInput, match="`t1` is nan"):
        af.advance(af.Attention(4.0), TOKENS, 0.0, np.nan)


METHODS = [af.Adaptive(1e-9, 1e-11), af.Fixed(0.05)]


@graded("method", [METHODS[0], pytest.param(METHODS[1], marks=pytest.mark.slow), af.Layers(0.25)])
def test_the_map_moves_the_tokens_themselves(method):
    phi = af.flow_map(af.Attention(4.0), TOKENS, 3.0, method=method)
    last = end(af.Attention(4.0), TOKENS, 3.0, save=3, method=method)
    np.testing.assert_allclose(phi(TOKENS).positions, last, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS[:1])
def test_inverse_and_composition(method):
    field = af.Attention(4.0)
    flow = af.solve(field, TOKENS, 3.0, save=6, method=method, keep=["positions"])
    whole, first, second = (af.flows.FlowMap.of(flow, a, b, method=method) for a, b in ((0, -1), (0, 3), (3, 6)))
    last, logdet = whole.push(POINTS)
    np.testing.assert_allclose((second @ first)(POINTS), last, atol=1e-8)
    np.testing.assert_allclose(first.then(second).log_determinant(POINTS), logdet, atol=1e-7)
    # points come back with errors amplified by at most e^(3 * 1.5)
    np.testing.assert_allclose(whole.inverse()(last), POINTS, atol=1e-5)
    np.testing.assert_allclose(whole.inverse().log_determinant(last), -logdet, atol=1e-5)


@graded("method", [pytest.param(af.Adaptive(1e-10, 1e-12), marks=pytest.mark.slow), af.Fixed(0.02), af.Layers(0.25)])
def test_log_determinant_is_that_of_the_jacobian(method):
    """Against central differences of the map along tangent frames."""
    phi = af.flow_map(af.Attention(4.0), TOKENS, 1.0, method=method)
    last, logdet = phi.push(POINTS)
    h = 1e-5

    def frame(x):
        return np.linalg.svd(x[None, :])[2][1:]

    near = np.stack([x + sign * h * e for x in POINTS for e in frame(x) for sign in (1, -1)])
    moved = phi(near / np.linalg.norm(near, axis=1, keepdims=True)).reshape(len(POINTS), 2, 2, 3)
    for k, steps in enumerate(moved):
        columns = [frame(last[k]) @ (pair[0] - pair[1]) / (2 * h) for pair in steps]
        numeric = np.log(abs(np.linalg.det(np.array(columns))))
        # differences err by h^2 = 1e-10 times third derivatives and by tolerance/h = 1e-5, once for each of two columns
        assert abs(numeric - logdet[k]) < 2e-5


@pytest.mark.long
def test_the_map_preserves_total_area():
    """The map is a diffeomorphism of the circle, so |det D Phi| has mean 1 (trapezoidal rule, spectrally accurate)."""
    angle = 2 * np.pi * np.arange(64) / 64
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    phi = af.flow_map(af.Attention(1.0), af.uniform(af.Sphere(2), n=12, seed=1), 1.0)
    assert abs(np.exp(phi.log_determinant(circle)).mean() - 1) < 1e-7


def test_maps_turn_with_the_sphere():
    r = rotation(3, 4)
    phi = af.flow_map(af.Attention(4.0), TOKENS, 1.0, method=af.Fixed(0.1))
    turned = af.flow_map(af.Attention(4.0), af.from_array(TOKENS.positions @ r), 1.0, method=af.Fixed(0.1))
    np.testing.assert_allclose(turned(POINTS @ r), phi(POINTS) @ r, atol=1e-13)


@pytest.mark.slow
def test_euclidean_log_determinant():
    """beta = 0: points feel the mean only, the map is a translation and its determinant 1. A linear perceptron A x has the
    divergence tr A, and the logarithm of the determinant grows by tr(A) t: expansion where it is positive."""
    tokens = af.Tokens(np.random.default_rng(0).standard_normal((12, 3)), space=af.Euclidean(3))
    phi = af.flow_map(af.Attention(0.0), tokens, 1.0, method=af.Fixed(0.1))
    np.testing.assert_allclose(phi.log_determinant(POINTS), 0.0, atol=1e-14)
    matrix = np.array([[0.5, 0.2, 0.0], [0.0, 0.3, -0.1], [0.4, 0.0, -0.1]])
    phi = af.flow_map(af.Perceptron(matrix, activation=lambda x: x), tokens, 1.0, method=af.Fixed(0.1))
    np.testing.assert_allclose(phi.log_determinant(POINTS), np.trace(matrix), atol=1e-12)


def test_bad_maps_are_refused():
    with pytest.raises(InvalidInput, match="batch dimensions"):
        af.flow_map(af.Attention(1.0), af.uniform(af.Sphere(3), n=12, seed=[1, 2]), 1.0)
    phi = af.flow_map(af.Attention(1.0), TOKENS, 1.0, method=af.Fixed(0.5))
    with pytest.raises(InvalidInput, match=r"`points` has shape \(3,\)"):
        phi(np.ones(3))


@pytest.mark.slow
def test_heun_advances_at_order_two():
    """With a traced end and step (known ones are in `test_heun_keeps_order_two_across_jumps`)."""
    field, tokens = af.Attention(3.0), af.uniform(af.Sphere(3), n=12, seed=0)
    exact = end(field, tokens, 1.0, method=af.Fixed(0.02))
    moved = af.in_float64(jax.jit(lambda t1, h: af.advance(field, tokens, 0.0, t1, af.Heun(h)).positions))
    errors = [np.abs(moved(1.0, h) - exact).max() for h in (0.1, 0.05)]
    assert 3.5 < errors[0] / errors[1] < 4.5


def test_times_that_are_traced_need_not_begin_at_zero():
    """The number of steps is that of the time between, whether it is known beforehand or not."""
    field, tokens = af.Attention(1.0), af.uniform(af.Sphere(3), n=4)

    @af.in_float64
    @jax.jit
    def moved(start):
        return af.advance(field, tokens, start, start + 1.0, af.Fixed(1.0)).positions

    want = af.advance(field, tokens, 3.0, 4.0, af.Fixed(1.0)).positions
    np.testing.assert_allclose(moved(3.0), want, atol=1e-12)

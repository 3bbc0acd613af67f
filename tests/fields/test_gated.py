"""Gated perceptrons, and the activations of trained networks."""

import jax
import mpmath as mp
import numpy as np
import pytest
from scipy.special import erf, expit

import attnflow as af
from attnflow.errors import InvalidInput
from attnflow.fields import Biased, GatedPerceptron, GeluTanh, Potential, Relu, Silu
from tests.kit import drive

RNG = np.random.default_rng(0)
EPS = np.finfo(float).eps
SIGMA = {
    "silu": lambda z: z * expit(z),
    "gelu": lambda z: z * (1 + erf(z / np.sqrt(2))) / 2,
    "gelu-tanh": lambda z: z * (1 + np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3))) / 2,
    "relu": lambda z: np.maximum(z, 0),
}


@pytest.mark.parametrize(("name", "d", "width"), [("silu", 3, 5), ("gelu", 2, 1), ("gelu-tanh", 3, 5), ("relu", 2, 1)])
def test_gated_perceptrons_are_their_formula(name, d, width):
    """SwiGLU, GEGLU, ReGLU with all biases and with none, in a small and in the smallest width."""
    tokens = af.uniform(af.Sphere(d), n=12, seed=0)
    g, u, w = RNG.standard_normal((width, d)), RNG.standard_normal((width, d)), RNG.standard_normal((d, width))
    b, c, e = RNG.standard_normal(width), RNG.standard_normal(width), RNG.standard_normal(d)
    x = tokens.positions
    bare = GatedPerceptron(g, u, w, name)
    np.testing.assert_allclose(drive(bare, tokens), (SIGMA[name](x @ g.T) * (x @ u.T)) @ w.T, atol=1e-13)
    full = GatedPerceptron(Biased(g, b), Biased(u, c), Biased(w, e), name)
    want = (SIGMA[name](x @ g.T + b) * (x @ u.T + c)) @ w.T + e
    np.testing.assert_allclose(drive(full, tokens), want, atol=1e-13)


def test_a_shut_gate_leaves_the_bias():
    """sigma(0) = 0 for every one of these; without an outer matrix the width is the dimension."""
    tokens = af.uniform(af.Sphere(2), n=4, seed=0)
    zero, up = np.zeros((2, 2)), Biased(RNG.standard_normal((2, 2)), np.ones(2))
    shut = GatedPerceptron(zero, up, Biased(np.eye(2), [1.0, -2.0]))
    np.testing.assert_array_equal(drive(shut, tokens), np.tile([1.0, -2.0], (4, 1)))
    np.testing.assert_array_equal(drive(GatedPerceptron(zero, up, activation="gelu"), tokens), 0)


def test_activations_of_trained_networks():
    """Values, bounds of slopes, and the antiderivative of silu against mpmath: to rounding of z^2/2, far out too."""
    far = np.array([-1e4, -800.0, 800.0, 1e4])
    z = np.concatenate([np.linspace(-12, 12, 97), far])

    @af.in_float64
    @jax.jit
    def of(z):
        values = {name: (sigma(z), jax.vmap(jax.grad(sigma))(z)) for name, sigma in sigmas.items()}
        return values, Silu().antiderivative(z), jax.vmap(jax.grad(Silu().antiderivative))(z)

    sigmas = {"silu": Silu(), "gelu-tanh": GeluTanh()}
    values, integral, slope = of(z)
    for name, (value, slopes) in values.items():
        np.testing.assert_allclose(value, SIGMA[name](z), rtol=2 * EPS, atol=8 * EPS * 12)
        assert np.abs(slopes).max() <= sigmas[name].slope_bound(z).max() < 1.01 * np.abs(slopes).max()
    assert np.abs(values["gelu-tanh"][0] - SIGMA["gelu"](z)).max() < 5e-4
    exact = [
        float(y * mp.log1p(mp.e**y) + mp.polylog(2, -(mp.e**y)).real) for y in map(mp.mpf, z[: -len(far)].tolist())
    ]
    np.testing.assert_allclose(integral[: -len(far)], exact, rtol=0, atol=8 * EPS * 72)
    np.testing.assert_allclose(integral[-len(far) :], np.maximum(far, 0) ** 2 / 2, rtol=1e-5)  # and pi^2/6
    np.testing.assert_array_equal(slope, values["silu"][0])


EYE = np.eye(3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: GatedPerceptron(EYE, np.ones((2, 3))), r"`up` has shape \(2, 3\) and `gate` \(3, 3\)"),
        (lambda: GatedPerceptron(np.ones((2, 2)), np.ones((2, 2))), "`gate` has shape"),
        (lambda: GatedPerceptron(Biased(EYE, np.ones(2)), EYE), r"the bias of `gate` has shape \(2,\)"),
        (lambda: GatedPerceptron(np.ones((5, 3)), np.ones((5, 3))), "`outer` is not given"),
        (lambda: GatedPerceptron(EYE, EYE, np.ones((3, 2))), r"`outer` has shape \(3, 2\)"),
        (lambda: GatedPerceptron(EYE, EYE, Biased(EYE, np.ones(4))), r"the bias of `outer` has shape \(4,\)"),
        (lambda: GatedPerceptron(None, EYE), "`gate` is None"),
        (lambda: GatedPerceptron(EYE, EYE, activation="swish"), "`activation` is 'swish'"),
        (lambda: GatedPerceptron(EYE, EYE, activation=Relu), "`activation` is the class Relu"),
        (lambda: Potential(EYE, np.ones(3), np.ones(3), "gelu-tanh"), "antiderivative is not known"),
        (lambda: GeluTanh().antiderivative(0.0), "antiderivative is not known"),
        (lambda: af.Composed(GatedPerceptron(EYE, EYE), af.Attention(1.0)), "`outer` is"),
    ],
)
def test_bad_input_is_refused(call, words):
    with pytest.raises(InvalidInput, match=words) as refusal:
        call().check(af.uniform(af.Sphere(3), n=4, seed=0))
    assert str(refusal.value).endswith(".")

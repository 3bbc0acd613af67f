"""Perceptron blocks: activations, the gradient form, the energy with attention, and the reference flow on the circle."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InvalidInput
from attnflow.fields import Custom, Gelu, Interpolated, Perceptron, PerLayer, Potential, Random, Relu, Tanh
from attnflow.observe import total_energy
from attnflow.theory import landscape
from tests.kit import drive
from tests.marks import graded

NAMES = ["relu", "gelu", "tanh"]
USA0 = af.Unnormalised()
EPS = np.finfo(float).eps
RNG = np.random.default_rng(0)
A, B, OMEGA = RNG.standard_normal((5, 3)), RNG.standard_normal(5), RNG.standard_normal(5)
TOKENS = af.Tokens(af.uniform(af.Sphere(3), n=10, seed=0).positions, RNG.random(10) + 0.1)
X = TOKENS.positions


@af.in_float64
@eqx.filter_jit
def drive_of(field):
    """Compiled, which takes less time than the single operations."""
    return field.drive(TOKENS, at=jnp.asarray(X))


def tangent(x, v):
    return v - np.sum(x * v, axis=1, keepdims=True) * x


def activation(name):
    return Perceptron(A, B, A.T, name).activation


@pytest.mark.parametrize("name", NAMES)
def test_activations_against_the_closed_forms(name):
    """Values up to 450 are right to a few units in the last place; s' = sigma by automatic differentiation."""
    z, sigma = np.linspace(-30, 30, 601), activation(name)
    one, zero = np.ones((1, 1)), np.zeros(1)
    np.testing.assert_allclose(sigma(z), landscape.Landscape(one, zero, one[0], name).gradient(z[:, None])[:, 0],
                               rtol=8 * EPS, atol=8 * EPS)  # fmt: skip
    np.testing.assert_allclose(sigma.antiderivative(z), landscape.Landscape(one, zero, one[0], name).potential(z[:, None]),
                               rtol=8 * EPS, atol=8 * EPS)  # fmt: skip
    slope = af.in_float64(jax.jit(jax.vmap(jax.grad(sigma.antiderivative))))(z)
    # the derivative of s sums terms of size up to z^2 times a density, at most 1: a few eps, plus eps |z|
    np.testing.assert_allclose(slope, sigma(z), atol=4 * EPS * 30)


def test_log_cosh_is_finite_far_out_and_smooth_at_zero():
    s = Tanh().antiderivative
    np.testing.assert_allclose(s(np.array([-1e4, 1e4])), 1e4 - np.log(2), rtol=1e-15)
    assert (
        abs(s(np.array([1e-6, 0.0]))[0] / 5e-13 - 1) < 1e-12
    )  # z^2/2 to relative accuracy: log(cosh z) would be off by 1e-4
    assert af.in_float64(jax.jit(jax.grad(jax.grad(s))))(0.0) == 1.0
    for sigma in (Relu(), Gelu(), Tanh()):
        far = af.in_float64(jax.jit(jax.vmap(jax.grad(sigma.antiderivative))))(np.array([-1e4, 1e4]))
        assert np.isfinite(far).all()


def test_as_activation():
    assert activation("gelu") == Gelu()
    sine = activation(jnp.sin)
    np.testing.assert_allclose(sine(np.array([0.3])), np.sin(0.3), rtol=4 * EPS)
    assert activation(sine) is sine
    with pytest.raises(InvalidInput, match="antiderivative is not known"):
        Custom(jnp.sin).antiderivative(0.0)
    for wrong in ("swish", 3.0):
        with pytest.raises(InvalidInput, match="`activation` is"):
            activation(wrong)


def test_perceptron_is_its_formula():
    """Sums of 3 and 5 products of numbers of size 1, with a bias, without, and as a residual block."""
    w = RNG.standard_normal((3, 5))
    full = drive_of(Perceptron(A, B, w, "tanh"))
    np.testing.assert_allclose(full, np.tanh(X @ A.T + B) @ w.T, atol=40 * EPS)
    residual = drive_of(Perceptron(A[:3]))
    np.testing.assert_allclose(residual, np.maximum(X @ A[:3].T, 0), atol=20 * EPS)
    velocity = Perceptron(A[:3]).velocity(TOKENS, at=X)
    np.testing.assert_allclose(velocity, tangent(X, residual), atol=20 * EPS)
    own = drive_of(Perceptron(A[:3], B[:3], activation=jnp.sin))
    np.testing.assert_allclose(own, np.sin(X @ A[:3].T + B[:3]), atol=20 * EPS)


def test_weights_may_change_with_time():
    layers = RNG.standard_normal((4, 5, 3))
    outer = A.T
    jumping = Perceptron(PerLayer(layers, 0.1), lambda t: t * jnp.asarray(B), outer, "tanh")
    for k in range(4):
        t = k * 0.1
        expected = np.tanh(X @ layers[k].T + t * B) @ outer.T
        np.testing.assert_allclose(drive(jumping, TOKENS, X, t), expected, atol=40 * EPS)
    assert not jumping.laws.steady
    assert Perceptron(Interpolated(layers, 0.1), B, outer).laws.steady
    assert not Perceptron(Random((3, 3))).laws.steady
    np.testing.assert_array_equal(af.fields.breaks(jumping, 1.0), [0.1, 0.2, 3 * 0.1])
    # weights of one seed in different roles are independent
    square = Perceptron(Random((3, 3), seed=1), None, Random((3, 3), seed=1))
    assert not np.allclose(square.inner.at(0.0, np.float32), square.outer.at(0.0, np.float32))


def test_random_weights_have_mean_zero():
    """To 4.5 standard errors of 1600 entries of variance 1/40."""
    assert abs(np.mean(Random((40, 40), seed=1).at(0.0, np.float32))) < 4.5 / 40 / np.sqrt(40)


@pytest.mark.parametrize("name", NAMES)
def test_gradient_form(name):
    """grad U three times over: drive, automatic differentiation, closed form; and the perceptron W = A^T diag(omega)."""
    field = Potential(A, B, OMEGA, name)
    found = drive_of(field)
    # 5 terms of size up to |omega| |z| |a|, about 30
    tolerance = {"atol": 1e-13, "rtol": 0}
    np.testing.assert_allclose(found, af.in_float64(jax.jit(jax.vmap(jax.grad(field.potential))))(X), **tolerance)
    np.testing.assert_allclose(found, landscape.Landscape(A, B, OMEGA, name).gradient(X), **tolerance)
    potential = af.in_float64(jax.jit(lambda x: field.potential(x)))(X)
    np.testing.assert_allclose(potential, landscape.Landscape(A, B, OMEGA, name).potential(X), **tolerance)
    np.testing.assert_allclose(found, drive_of(Perceptron(A, B, A.T * OMEGA, name)), **tolerance)


def test_other_outer_matrices_are_no_gradient():
    """The Jacobian W diag(sigma') A is symmetric for W = A^T diag(omega); for a generic W it is not."""

    def antisymmetric(field):
        jacobian = af.in_float64(jax.jit(jax.jacfwd(lambda x: field.map(0.0, x))))(X[0])
        return np.abs(jacobian - jacobian.T).max()

    assert antisymmetric(Perceptron(A, B, A.T * OMEGA, "tanh")) < 1e-14
    assert antisymmetric(Perceptron(A, B, RNG.standard_normal((3, 5)), "tanh")) > 0.1


def test_composed_is_the_perceptron_of_the_attention():
    """Against dense NumPy, for one head and for two; the standard additive form is something else."""
    outer = Perceptron(A, B, A.T, "tanh")
    m = TOKENS.masses
    weights = m * np.exp(2.0 * (X @ X.T))
    mean = (weights / weights.sum(1, keepdims=True)) @ X
    one = af.Composed(outer, af.Attention(2.0))
    np.testing.assert_allclose(drive_of(one), np.tanh(mean @ A.T + B) @ A, atol=1e-14)
    values = RNG.standard_normal((2, 3, 3))
    two = drive_of(af.Composed(outer, af.Attention(2.0, value=values)))
    np.testing.assert_allclose(two, np.tanh(mean @ values.mean(0).T @ A.T + B) @ A, atol=1e-14)
    standard = drive_of(af.Attention(2.0) + outer)
    np.testing.assert_allclose(standard, mean + np.tanh(X @ A.T + B) @ A, atol=1e-14)
    causal = af.Composed(outer, af.Attention(2.0, mask=af.Causal()))
    assert one.laws.exchangeable
    assert not causal.laws.exchangeable
    with pytest.raises(InvalidInput, match="`query` has shape"):
        af.Composed(outer, af.Attention(1.0, query=np.ones((2, 5)))).check(TOKENS)


def test_batches_and_derivatives():
    """One weight per member of a batch, and a derivative with respect to a weight."""
    scales = np.array([0.5, 2.0])
    field = Potential(A, B, af.Along("scale", scales[:, None] * OMEGA))
    both = field.velocity(TOKENS, at=X)
    assert both.shape == (2, 10, 3)
    np.testing.assert_allclose(both[1], 4 * both[0], atol=1e-13)

    def first(omega):
        return Potential(A, B, omega).drive(TOKENS, at=jnp.asarray(X))[0]

    jacobian = af.in_float64(jax.jit(jax.jacrev(first)))(OMEGA)
    np.testing.assert_allclose(jacobian, A.T * np.maximum(A @ X[0] + B, 0), atol=1e-14)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Perceptron(np.ones((2, 4))), r"`inner` has shape \(2, 4\).*dimension 3"),
        (lambda: Perceptron(np.ones((5, 3))), r"`outer` is not given.*\(3, 5\)"),
        (lambda: Perceptron(A, np.ones(4), A.T), r"`bias` has shape \(4,\)"),
        (lambda: Perceptron(A, None, A), r"`outer` has shape \(5, 3\)"),
        (lambda: Perceptron(A, activation="swish"), "'swish'"),
        (lambda: Potential(np.ones((5, 2)), B, OMEGA), r"`directions` has shape \(5, 2\)"),
        (lambda: Potential(A, B[:4], OMEGA), r"`biases` has shape \(4,\)"),
        (lambda: Potential(A, B, OMEGA[:4]), r"`weights` has shape \(4,\)"),
        (lambda: Potential(A, B, np.full(5, np.nan)), "not finite"),
        (lambda: Potential(A, B, OMEGA, jnp.sin), "antiderivative is not known"),
    ],
)
def test_bad_input_is_refused(call, words):
    with pytest.raises(InvalidInput, match=words):
        call().velocity(TOKENS, at=X)


@graded("name", NAMES)
def test_attention_and_potential_are_one_gradient_flow(name):
    """v_i = (1/m_i) P grad_i of the total energy, which is that of the closed form less 1/(2 beta)."""
    beta = 3.0
    field = af.Attention(beta, normaliser=USA0) + Potential(A[:2], B[:2], OMEGA[:2], name) + Potential(
        A[2:], B[2:], OMEGA[2:], name
    )  # fmt: skip
    gradient = af.in_float64(jax.jit(jax.grad(lambda x: total_energy(field, TOKENS.moved(x)))))(X)
    velocity = field.velocity(TOKENS, at=X)
    np.testing.assert_allclose(velocity, tangent(X, gradient / TOKENS.masses[:, None]), atol=1e-13)
    expected = landscape.perceptron_energy(
        X, TOKENS.masses, beta, landscape=landscape.Landscape(A, B, OMEGA, name)
    ) - 1 / (2 * beta)
    assert abs(total_energy(field, TOKENS) - expected) < 1e-13
    rate = np.sum(TOKENS.masses * np.sum(velocity**2, axis=1))
    np.testing.assert_allclose(af.observe.dissipation(field, TOKENS), rate, rtol=1e-13)


def test_fields_without_an_energy():
    potential, plain = Potential(A, B, OMEGA), af.Attention(3.0, normaliser=USA0)
    for field in (
        af.Attention(3.0) + potential,
        af.Attention(3.0, normaliser=af.Unnormalised("USA")) + potential,
        plain + plain + potential,
        plain + Perceptron(A, B, A.T),
        af.Attention(3.0, normaliser=USA0, value=-np.eye(3)) + potential,
        af.Composed(Perceptron(A, B, A.T), plain),
    ):
        with pytest.raises(InvalidInput, match="no energy"):
            total_energy(field, TOKENS)
    flat = af.Tokens(X, space=af.Euclidean(3))
    with pytest.raises(InvalidInput, match="Euclidean"):
        total_energy(plain + potential, flat)
    with pytest.raises(InvalidInput, match="the field of one member"):
        total_energy(af.Attention(af.Along("beta", [1.0, 2.0])), TOKENS)
    assert total_energy(af.Attention(3.0), TOKENS) == af.observe.energy(TOKENS, 3.0)


@pytest.mark.slow
def test_saved_energies_of_a_batch():
    """Each member has its own beta and its own weights, inside the compiled flow too."""
    omega = np.stack([OMEGA, -OMEGA])
    field = af.Attention(af.Along("beta", [1.0, 4.0]), normaliser=USA0) + Potential(A, B, af.Along("beta", omega))
    flow = af.solve(field, TOKENS, 0.4, save=af.saving.Evenly(2), method=af.Fixed(0.1))
    for k, beta in enumerate((1.0, 4.0)):
        alone = af.Attention(beta, normaliser=USA0) + Potential(A, B, omega[k])
        assert abs(flow.energy.values[k, -1] - total_energy(alone, flow.tokens(-1, beta=k))) < 1e-14
    assert (np.diff(flow.energy.values, axis=1) > 0).all()


TOL = 2e-12
REFERENCE = np.array([[1, 0], [-1, 0.2]]), np.array([-0.2, -0.2]), np.array([0.5, 0.4])


@pytest.fixture(scope="module")
def climb():
    """The reference configuration of arXiv:2601.21366 on the circle: beta = 9, clock USA0."""
    field = af.Attention(9.0, normaliser=USA0) + Potential(*REFERENCE)
    tokens = af.uniform(af.Sphere(2), n=32, seed=0)
    return af.solve(field, tokens, 200.0, save=af.saving.Evenly(100), method=af.Adaptive(TOL / 2, TOL / 2))


@pytest.mark.slow
def test_the_energy_climbs_and_respects_the_dirac_bound(climb):
    """Steps err by sqrt(2) tol per token, and the slope of the energy is a velocity, at most 1 + max |grad U|."""
    values = climb.energy.values
    heights = REFERENCE[2] * np.linalg.norm(REFERENCE[0], axis=1)
    slope = 1 + np.sum(heights * (np.linalg.norm(REFERENCE[0], axis=1) + REFERENCE[1]))
    assert np.diff(values).min() > -climb.steps["accepted"] * np.sqrt(2) * TOL * slope
    assert values[-1] > values[0] + 0.05
    angles = np.linspace(0, 2 * np.pi, 100_001)
    top = landscape.Landscape(*REFERENCE).potential(np.stack([np.cos(angles), np.sin(angles)], axis=1)).max()
    bound = float(landscape.dirac_bound(9.0, top)) - 1 / 18  # E0 is 1/(2 beta) more than the energy saved
    assert abs(bound + 1 / 18 - 0.215556) < 5e-7
    assert values.max() <= bound
    last = climb.tokens(-1)
    expected = (
        landscape.perceptron_energy(last.positions, last.masses, 9.0, landscape=landscape.Landscape(*REFERENCE))
        - 1 / 18
    )
    assert abs(values[-1] - expected) < 1e-14


def test_two_atoms_where_the_potential_is_largest(climb):
    """Peaks of U at 0 and pi - atan 0.2, each displaced by the far pull of the other atom over its own stiffness.

    Stiffness of peak j: omega_j sigma(|a_j| + b_j) |a_j| + (attraction of the atom itself, which does not resist).
    """
    last = climb.tokens(-1)
    angles = np.arctan2(last.positions[:, 1], last.positions[:, 0])
    left = np.abs(angles) > np.pi / 2
    size = np.linalg.norm(REFERENCE[0], axis=1)
    stiffness = REFERENCE[2] * (size + REFERENCE[1]) * size
    peaks = np.array([0.0, np.pi - np.arctan(0.2)])
    assert abs(peaks[1] - 2.94420) < 5e-6
    pull = np.exp(9 * (np.cos(peaks[1]) - 1)) * np.sin(peaks[1])
    share = np.array([np.mean(~left), np.mean(left)])
    predicted = peaks + np.array([1, -1]) * share[::-1] * pull / stiffness
    # errors of sqrt(2) TOL per step are forgotten at the rate of the stiffness, above 0.3: steps of 1 leave 4 of them
    for atom, where in ((angles[~left], predicted[0]), (angles[left], predicted[1])):
        assert np.abs(atom - where).max() < 8 * TOL
    assert (
        landscape.critical_residuals(last.positions, last.masses, 9.0, landscape=landscape.Landscape(*REFERENCE)).max()
        < 8 * TOL
    )

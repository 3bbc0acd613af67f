import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InvalidInput
from attnflow.observe.energy import NEAR, frame, renormalised_energy
from attnflow.tokens import Measure
from tests.marks import graded

FRAME = af.in_float64(eqx.filter_jit(frame))
GRADIENT = af.in_float64(jax.jit(jax.grad(renormalised_energy)))


@af.in_float64
@eqx.filter_jit
def rate_along(field, mu, beta):
    """The derivative of the energy along the flow."""
    v = mu.space.tangent(mu.positions, field.drive(mu))
    return jax.jvp(lambda y: renormalised_energy(y, mu.masses, beta), (mu.positions,), (v,))[1]


def weighted(n=14, d=3, seed=0):
    return af.Tokens(af.uniform(af.Sphere(d), n=n, seed=seed).positions, np.random.default_rng(seed).random(n) + 0.1)


def dense_energy(tokens, beta):
    s = np.asarray(tokens.positions) @ np.asarray(tokens.positions).T
    return tokens.masses @ np.exp(beta * (s - 1)) @ tokens.masses / (2 * beta)


def test_oracle(four):
    assert abs(af.observe.energy0(four, 2.0) - 0.1092798917) < 1e-10


@pytest.mark.parametrize("beta", [1e-3, 1.0, 9.0, 1e4, -0.5])
def test_agrees_with_the_definition(beta):
    tokens = weighted()
    expected = dense_energy(tokens, beta)
    np.testing.assert_allclose(af.observe.energy0(tokens, beta), expected, rtol=1e-11 if abs(beta) < 1e-2 else 1e-12)
    np.testing.assert_allclose(af.observe.energy(tokens, beta), expected - 1 / (2 * beta), rtol=1e-9, atol=1e-15)
    if beta > 0:
        np.testing.assert_allclose(af.observe.log_energy(tokens, beta), beta + np.log(expected), rtol=1e-12)


def test_limit_at_beta_zero():
    tokens = weighted()
    mean = tokens.masses @ tokens.positions
    np.testing.assert_allclose(af.observe.energy(tokens, 0.0), (mean @ mean - 1) / 2, rtol=1e-13)
    with pytest.raises(InvalidInput, match="infinite"):
        af.observe.energy0(tokens, 0.0)


@pytest.mark.parametrize("size", [1e-3, 1e-6, 1e-10])
def test_keeps_its_relative_accuracy_near_consensus(size):
    """Two equal tokens at angle a: E = (e^(-2 beta sin^2(a/2)) - 1)/(4 beta)."""
    tokens = af.from_array([[1.0, 0.0], [np.cos(size), np.sin(size)]])
    expected = np.expm1(-2 * 9.0 * np.sin(size / 2) ** 2) / (4 * 9.0)
    assert abs(af.observe.energy(tokens, 9.0) / expected - 1) < 1e-6 * (1e-10 / size) + 1e-12


def test_bound_and_consensus():
    assert af.observe.energy(af.from_array(np.tile([[0.6, 0.8]], (5, 1))), 3.0) == 0.0
    for seed in range(5):
        assert af.observe.energy(weighted(seed=seed), 5.0) < 0


def test_tiles_agree():
    """2,100 tokens take several tiles; the dense formula is one."""
    tokens = af.uniform(af.Sphere(3), n=2100, seed=1)
    np.testing.assert_allclose(af.observe.energy0(tokens, 9.0), dense_energy(tokens, 9.0), rtol=1e-13)


@pytest.mark.parametrize("clock", ["USA0", "USA", "grad"])
def test_unnormalised_attention_is_the_gradient(clock):
    """v_i = (1/m_i) grad_i E0, times the factor of the clock."""
    tokens, beta = weighted(), 3.0
    gradient = GRADIENT(tokens.positions, tokens.masses, beta)
    expected = tokens.space.tangent(tokens.positions, gradient) / tokens.masses[:, None]
    factor = {"USA0": 1.0, "USA": np.exp(beta), "grad": beta * np.exp(beta)}[clock]
    field = af.Attention(beta, normaliser=af.Unnormalised(clock))
    np.testing.assert_allclose(field.velocity(tokens), factor * expected, atol=1e-13 * factor)


@graded("normaliser", [af.Softmax(), af.Unnormalised(), af.Unnormalised("USA")], fast=1)
@pytest.mark.parametrize("beta", [0.5, 5.0])
def test_dissipation_identity(normaliser, beta):
    """The derivative of the energy along the flow is a weighted sum of squared speeds."""
    tokens, field = weighted(), af.Attention(beta, normaliser=normaliser)
    rate = rate_along(field, tokens.measure, np.asarray(beta))
    identity = af.observe.dissipation(field, tokens)
    assert identity > 0
    np.testing.assert_allclose(identity, rate, rtol=1e-12)


def wedge(weights, x, v):
    """sum_i w_i x_i ^ v_i as an antisymmetric matrix."""
    return np.einsum("i,ia,ib->ab", weights, x, v) - np.einsum("i,ib,ia->ab", weights, x, v)


@pytest.mark.parametrize("d", [2, 3, 6])
def test_wedge_invariants(d):
    """USA conserves the plain wedge, SA the one weighted by Z, and not the plain one."""
    tokens, beta = weighted(d=d), 2.0
    x = tokens.positions
    usa = af.Attention(beta, normaliser=af.Unnormalised()).velocity(tokens, at=x)
    sa = af.Attention(beta).velocity(tokens, at=x)
    z = np.exp(beta * (x @ x.T - 1)) @ tokens.masses
    assert np.abs(wedge(tokens.masses, x, usa)).max() < 1e-15
    assert np.abs(wedge(tokens.masses * z, x, sa)).max() < 1e-15
    assert np.abs(wedge(tokens.masses, x, sa)).max() > 1e-4


def test_batches():
    tokens = af.uniform(af.Sphere(3), n=6, seed=range(3))
    values = af.observe.energy(tokens, af.Along("beta", [1.0, 2.0]))
    assert values.shape == (2, 3)
    assert abs(values[1, 2] - af.observe.energy(tokens.member(seed=2), 2.0)) < 1e-15


SUMS = {2: lambda: af.sums.Circle(1e-14, 48), 3: lambda: af.sums.Harmonics(1e-14, 24, 3)}


@pytest.mark.slow
@pytest.mark.parametrize("start", ["uniform", "opposite"])
@pytest.mark.parametrize("d", [2, 3])
def test_energies_by_series_at_every_beta(d, start):
    """Against the energy pair by pair, which is accurate relative to its size.

    Above eps^(1/3) = 6e-6 the error is that of sum m Z, measured to be below 1e-15 (2e-15 here), over 2 beta. Below, it is what the
    expansion to first order leaves, at most 2 beta^2/3 (reached by no measure; half by two opposite points).
    """
    tokens = weighted(n=40, d=d)
    if start == "opposite":
        tokens = af.Tokens(np.outer(np.where(np.arange(40) % 2, 1.0, -1.0), np.eye(d)[0]))
    for beta in (0.0, 1e-9, 1e-7, 1e-6, 5e-6, 1e-5, 3e-5, 1e-4, 1e-3, 0.1, 1.0):
        bound = 2 * beta**2 / 3 + 2e-15 if beta < 6e-6 else 2e-15 / (2 * beta) + 2e-15
        found = af.observe.total_energy(af.Attention(beta, sum=SUMS[d]()), tokens)
        assert abs(found - af.observe.energy(tokens, beta)) < bound, beta


@pytest.mark.slow
def test_energies_by_series_in_single_precision():
    """eps^(1/3) = 5e-3, and errors of a few eps^(2/3) = 2e-5 there."""
    tokens = weighted(n=40, d=2)
    for beta in (0.0, 1e-6, 1e-4, 4e-3, 6e-3, 0.1, 1.0):
        field = af.Attention(beta, sum=af.sums.Circle(1e-5, 32))
        assert abs(af.observe.total_energy(field, tokens.astype(np.float32)) - af.observe.energy(tokens, beta)) < 1e-4


@pytest.mark.slow
def test_energies_by_series_have_derivatives_where_the_expansion_is_used():
    """At beta = 0 the gradient is m_i times the mean, and dE/dbeta is (1/4) sum m m (s - 1)^2."""
    tokens = weighted(n=8, d=2)
    x, m = np.asarray(tokens.positions), np.asarray(tokens.masses)
    v, w = np.random.default_rng(0).standard_normal((8, 2)), np.float64(0.7)

    @af.in_float64
    @jax.jit
    def slope(x, beta):
        def value(x, beta):
            return af.observe.total_energy(af.Attention(beta, sum=af.sums.Circle(1e-14, 16)), tokens.moved(x))

        return jax.jvp(value, (jnp.asarray(x), jnp.asarray(beta)), (jnp.asarray(v), jnp.asarray(w)))[1]

    expected = np.sum(np.outer(m, m @ x) * v) + w * m @ (x @ x.T - 1) ** 2 @ m / 4
    np.testing.assert_allclose(slope(x, 0.0), expected, atol=1e-14)


def test_refusals():
    with pytest.raises(InvalidInput, match="sphere"):
        af.observe.energy(af.Tokens(np.ones((2, 3)), space=af.Euclidean(3)), 1.0)
    with pytest.raises(InvalidInput, match="Q = K = V"):
        af.observe.dissipation(af.Attention(1.0, value=-np.eye(3)), weighted())


@pytest.mark.parametrize("spread", [1e-9, 1e-4, 0.03, 0.1, 1.0])
@pytest.mark.parametrize("beta", [0.0, 1e-9, 1e-3, 2.0, 100.0])
def test_the_energy_of_a_frame_by_one_sum_is_that_of_all_pairs(spread, beta):
    """Near consensus and at small beta relative to its size; elsewhere up to the round-off of the level over NEAR."""
    rng = np.random.default_rng(0)
    x = np.eye(3)[0] + spread * rng.standard_normal((40, 3))
    mu = Measure(x / np.linalg.norm(x, axis=1, keepdims=True), np.arange(1.0, 41.0) / 820)
    field = af.Attention(beta)
    drive, error, found = FRAME(field, 0.0, mu, True)
    assert error == 0.0
    np.testing.assert_allclose(drive, field.drive(mu), rtol=1e-13)
    assert found == pytest.approx(float(af.observe.energy(mu, beta)), rel=20 * np.finfo(float).eps / NEAR, abs=0.0)


@pytest.mark.parametrize(("beta", "radius"), [(1e8, 1e-4), (1e12, 1e-6), (1e4, 1e-2), (3e3, 0.1)])
def test_steep_kernels_of_tight_tokens(beta, radius):
    """The energy of a frame is that of the pairs: round-off of <x, y> is multiplied by beta."""
    tokens = af.tokens.clustered(af.Sphere(3), centres=np.eye(3)[:1], n=40, spread=radius, seed=0)
    mu = Measure(tokens.positions, tokens.masses)
    found = FRAME(af.Attention(beta), 0.0, mu, True)[2]
    assert float(found) == pytest.approx(float(af.observe.energy(mu, beta)), rel=2e-10, abs=0.0)


def test_potentials_add_to_the_energy_of_attention():
    tokens = af.uniform(af.Sphere(2), n=4)
    attention, potential = (
        af.Attention(1.0, normaliser=af.Unnormalised()),
        af.Potential([[1.0, 0.5]], [0.2], [0.7], "tanh"),
    )
    more = np.mean(potential.potential(tokens.positions))
    total = af.observe.total_energy
    assert total(attention + 3.0 * potential, tokens) == pytest.approx(total(attention, tokens) + 3 * more, rel=1e-13)

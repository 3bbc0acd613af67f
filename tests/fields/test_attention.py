"""The attention field: oracles, identities, invariances, extremes, memory."""

import functools
import subprocess
import sys

import equinox as eqx
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

import attnflow as af
from attnflow.errors import InvalidInput
from tests.conftest import rotation
from tests.kit import drive
from tests.marks import graded

SA_ORACLE = [
    [0, 0.2211500686, 0.1033236824],
    [0.1589024137, -0.1191768103, 0.1139234435],
    [-0.0956499085, 0.0557798816, 0],
    [0.2099867005, 0.0296573318, 0.1574900254],
]
MODELS = {
    "SA": af.Softmax(),
    "USA0": af.Unnormalised(),
}


def velocity(field, tokens):
    return field.velocity(tokens)


def reference(x, m, beta, normalise):
    """The formulas of SA and USA0, written out over all pairs."""
    w = m[None, :] * np.exp(beta * (x @ x.T - 1))
    a = w @ x
    if normalise:
        a = a / w.sum(axis=1, keepdims=True)
    return a - np.sum(a * x, axis=1, keepdims=True) * x


def test_oracles(four):
    """Printed to ten digits."""
    np.testing.assert_allclose(velocity(af.Attention(2.0), four), SA_ORACLE, atol=1e-9)
    usa0 = velocity(af.Attention(2.0, normaliser=af.Unnormalised()), four)
    np.testing.assert_allclose(usa0[0], [0, 0.0898657928, 0.0419862616], atol=1e-9)
    causal = velocity(af.Attention(2.0, mask=af.Causal()), four)
    np.testing.assert_allclose(
        causal[:3],
        [[0, 0, 0], [0.1984163321, -0.1488122491, 0], [0.1704111663, 0.0852055831, 0]],
        atol=1e-9,
    )
    weighted = af.Tokens(four.positions, [0.1, 0.2, 0.3, 0.4])
    np.testing.assert_allclose(velocity(af.Attention(2.0), weighted)[0], [0, 0.2913330930, 0.2173854864], atol=1e-9)


@pytest.mark.parametrize("beta", [-0.5, 0.0, 1.0, 9.0, 300.0])
@pytest.mark.parametrize("name", MODELS)
@graded("d", [2, 3, 16], fast=1)
def test_agrees_with_the_dense_formula(beta, name, d):
    tokens = af.Tokens(af.uniform(af.Sphere(d), n=40, seed=1).positions, np.random.default_rng(0).random(40))
    got = velocity(af.Attention(beta, normaliser=MODELS[name]), tokens)
    expected = reference(tokens.positions, tokens.masses, beta, name == "SA")
    # logits carry 2 eps |beta|, sums of 40 terms a few eps
    np.testing.assert_allclose(got, expected, atol=np.finfo(float).eps * (4 * abs(beta) + 40))


@graded(
    ("sizes", "name"),
    [(sizes, "SA") for sizes in ((7, 5), (40, 8), (8, 40), (1, 1), (64, 64))] + [((7, 5), "USA0")],
    fast=1,
)
def test_tiles_do_not_matter(sizes, name):
    tokens = af.uniform(af.Sphere(3), n=40, seed=3)
    one = velocity(af.Attention(9.0, normaliser=MODELS[name]), tokens)
    cut = velocity(af.Attention(9.0, normaliser=MODELS[name], sum=af.sums.Tiled(*sizes)), tokens)
    np.testing.assert_allclose(cut, one, atol=1e-15)


@given(
    seed=st.integers(0, 2**31), beta=st.floats(-1, 50), name=st.sampled_from(list(MODELS)), d=st.sampled_from([2, 3])
)
@settings(max_examples=25, deadline=None)
def test_rotation_permutation_and_tangency(seed, beta, name, d):
    tokens = af.uniform(af.Sphere(d), n=12, seed=seed)
    field = af.Attention(beta, normaliser=MODELS[name])
    v = velocity(field, tokens)
    size = np.abs(v).max()
    tolerance = 1e-15 * (50 + 10 * abs(beta)) * max(1.0, np.exp(-2 * beta))
    r = rotation(d, seed % 1000)
    np.testing.assert_allclose(velocity(field, af.from_array(tokens.positions @ r)), v @ r, atol=tolerance)
    order = np.random.default_rng(seed).permutation(12)
    np.testing.assert_allclose(velocity(field, af.from_array(tokens.positions[order])), v[order], atol=tolerance)
    assert np.max(np.abs(np.sum(v * tokens.positions, axis=1))) < tolerance + 1e-15 * size


def test_token_splitting_changes_nothing():
    """A token of mass m equals two at the same place of masses that sum to m."""
    x = af.uniform(af.Sphere(3), n=5, seed=0).positions
    whole = af.Tokens(x, [0.1, 0.2, 0.3, 0.25, 0.15])
    split = af.Tokens(np.vstack([x, x[:1]]), [0.04, 0.2, 0.3, 0.25, 0.15, 0.06])
    for normaliser in MODELS.values():
        field = af.Attention(5.0, normaliser=normaliser)
        np.testing.assert_allclose(velocity(field, split)[:5], velocity(field, whole), atol=1e-15)


def test_test_particles_feel_and_do_not_act():
    x = af.uniform(af.Sphere(3), n=8, seed=0).positions
    alone = af.from_array(x[:5])
    with_guests = af.Tokens(x, [1, 1, 1, 1, 1, 0, 0, 0])
    field = af.Attention(1e4)  # at beta = 1e4 the guest's own (massless) weight would drown all others
    v = velocity(field, with_guests)
    np.testing.assert_allclose(v[:5], velocity(field, alone), atol=1e-15)
    np.testing.assert_allclose(v[5:], field.velocity(alone, at=x[5:]), atol=1e-15)
    assert np.isfinite(v).all()


def test_queries_anywhere_even_far_from_all_tokens():
    """Logits -2e4 and -2e4 + 10: Z = e^(-2e4) underflows, but the softmax weights are 1 : e^10."""
    mu = af.from_array([[1.0, 0.0, 0.0], [0.999, np.sqrt(1 - 0.999**2), 0.0]])
    x = np.array([[-1.0, 0.0, 0.0]])
    found = drive(af.Attention(1e4), mu, x)
    weight = 1 / (1 + np.exp(10.0))
    # the logits carry an error of 2e4 eps
    np.testing.assert_allclose(found[0], weight * mu.positions[0] + (1 - weight) * mu.positions[1], atol=1e-11)


@functools.cache
def slopes(name):
    """A number made of the velocity, and its derivatives in beta and in the positions."""

    def total(beta, x, tokens):
        field = af.Attention(beta, normaliser=MODELS[name])
        return jnp.sum(jnp.sin(field.velocity(tokens.moved(x))))

    return af.in_float64(eqx.filter_jit(jax.value_and_grad(total, argnums=(0, 1))))


@graded("beta", [0.0, 1e-8, 1e4, -0.5], fast=1)
@pytest.mark.parametrize("name", MODELS)
def test_extreme_beta_is_finite_with_finite_gradients(beta, name):
    tokens = af.uniform(af.Sphere(3), n=12, seed=0)
    value, gradients = slopes(name)(beta, tokens.positions, tokens)
    assert np.isfinite(value)
    for g in gradients:
        assert np.isfinite(g).all()


def test_gradient_through_tiles_equals_gradient_without():
    tokens = af.uniform(af.Sphere(3), n=30, seed=0)

    def grad(tiles):
        def total(beta):
            return jnp.sum(af.Attention(beta, sum=tiles).drive(tokens, at=jnp.asarray(tokens.positions)) ** 3)

        return af.in_float64(jax.jit(jax.grad(total)))(3.0)

    assert abs(grad(af.sums.Tiled(8, 8)) - grad(af.sums.Tiled())) < 1e-13


@pytest.mark.parametrize("beta", [0.5, 9.0, 50.0])
def test_usa_is_an_exact_change_of_clock(beta):
    tokens = af.uniform(af.Sphere(3), n=20, seed=0)
    usa0, usa, grad = (
        drive(af.Attention(beta, normaliser=af.Unnormalised(clock)), tokens) for clock in ("USA0", "USA", "grad")
    )
    np.testing.assert_allclose(usa, np.exp(beta) * usa0, rtol=4e-16, atol=0)
    np.testing.assert_allclose(grad, beta * np.exp(beta) * usa0, rtol=8e-16, atol=0)


def test_matrices_change_of_basis():
    """Q, K, V in rotated coordinates: (Q R, K R, R^T V R) on R^T x gives R^T times the field."""
    rng, r = np.random.default_rng(0), rotation(4, 1)
    q, k, v = rng.standard_normal((2, 4)), rng.standard_normal((2, 4)), rng.standard_normal((4, 4))
    x = af.uniform(af.Sphere(4), n=9).positions
    one = velocity(af.Attention(1.5, query=q, key=k, value=v), af.from_array(x))
    two = velocity(af.Attention(1.5, query=q @ r, key=k @ r, value=r.T @ v @ r), af.from_array(x @ r))
    np.testing.assert_allclose(two, one @ r, atol=1e-14)
    dense = np.exp(1.5 * (x @ q.T) @ (x @ k.T).T)
    a = (dense / dense.sum(1, keepdims=True)) @ (x @ v.T)
    np.testing.assert_allclose(one, a - np.sum(a * x, 1, keepdims=True) * x, atol=1e-14)


def test_softmax_does_not_see_a_shift_of_the_logits():
    """Adding a constant to all keys' logits changes nothing: K -> K + c w w^T with a query that is constant along w."""
    x = af.uniform(af.Sphere(3), n=8).positions
    y = np.hstack([x, np.ones((8, 1))]) / np.sqrt(2)
    shift = np.zeros((4, 4))
    shift[3, 3] = 5.0
    plain = np.diag([2.0, 2.0, 2.0, 0.0])
    tokens = af.from_array(y)
    np.testing.assert_allclose(
        velocity(af.Attention(3.0, key=plain + shift), tokens),
        velocity(af.Attention(3.0, key=plain), tokens),
        atol=1e-14,
    )


def test_fields_add_as_drives(four):
    a, b = af.Attention(2.0), af.Attention(5.0, value=-np.eye(3))
    total = velocity(a + b, four)
    np.testing.assert_allclose(total, velocity(a, four) + velocity(b, four), atol=1e-15)


def test_batches_are_outer_products():
    betas = [1.0, 4.0, 9.0]
    tokens = af.uniform(af.Sphere(3), n=12, seed=range(2))
    both = af.Attention(af.Along("beta", betas)).velocity(tokens)
    assert both.shape == (3, 2, 12, 3)
    for i, beta in enumerate(betas):
        for j in range(2):
            np.testing.assert_allclose(both[i, j], velocity(af.Attention(beta), tokens.member(seed=j)), atol=1e-15)
    shared = af.Attention(4.0).velocity(tokens, at=np.eye(3))
    assert shared.shape == (2, 3, 3)


def test_one_name_is_matched_not_multiplied():
    tokens = af.uniform(af.Sphere(3), n=12, seed=range(3))
    field = af.Attention(af.Along("seed", [1.0, 2.0, 3.0], labels=range(3)))
    assert field.velocity(tokens).shape == (3, 12, 3)
    with pytest.raises(InvalidInput, match="2 members in one place and 3"):
        af.Attention(af.Along("seed", [1.0, 2.0])).velocity(tokens)


def test_float64_whatever_the_configuration(four):
    assert not jax.config.jax_enable_x64
    v = velocity(af.Attention(2.0), four)
    assert isinstance(v, np.ndarray)
    assert v.dtype == np.float64
    found = af.Perceptron(np.eye(3)).drive(four)
    assert isinstance(found, np.ndarray)
    assert found.dtype == np.float64
    assert not jax.config.jax_enable_x64


def test_float32_on_request(four):
    v = velocity(af.Attention(2.0), four.astype(np.float32))
    assert v.dtype == np.float32
    np.testing.assert_allclose(v, SA_ORACLE, atol=2e-6)


def test_tracing_in_32_bit_mode_is_refused_with_the_mend(four):
    with pytest.raises(InvalidInput, match=r"attnflow\.in_float64"):
        jax.grad(lambda b: jnp.sum(af.Attention(b).velocity(four)))(1.0)


def in_float32(beta, clock, t):
    """A series of too few degrees would advise tiles, if the normaliser did not refuse before."""
    field = af.Attention(beta, normaliser=af.Unnormalised(clock), sum=af.sums.Harmonics(1e-3, 8, t.dim))
    return field.velocity(t.astype(np.float32))


def test_the_largest_beta_of_a_clock_is_finite_in_float32(four):
    for clock in ("USA", "grad"):
        field = af.Attention(79.0, normaliser=af.Unnormalised(clock))
        assert np.isfinite(field.velocity(four.astype(np.float32))).all()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda t: af.Attention(np.nan), "`beta` is nan"),
        (lambda t: af.Attention(np.inf), "`beta` is inf"),
        (lambda t: af.Attention("hot"), "`beta` is 'hot'"),
        (lambda t: af.Attention([1.0, 2.0]), "Along"),
        (lambda t: af.Attention(af.Along("beta", [1.0, np.nan])), "`beta` is nan"),
        (lambda t: af.Attention(800.0, normaliser=af.Unnormalised("USA")), "overflows"),
        (lambda t: af.Attention(-400.0, normaliser=af.Unnormalised()), "-400.*float64.*above -350"),
        (lambda t: in_float32(100.0, "USA", t), "float32 .above 79.*'USA0'"),
        (lambda t: in_float32(80.0, "grad", t), "'grad' overflows in float32"),
        (lambda t: in_float32(-50.0, "USA0", t), "float32.*above -39.5"),
        (lambda t: af.Unnormalised("USA1"), "'USA1'"),
        (lambda t: velocity(af.Attention(1.0, query=np.ones(3)), t), r"`query` has shape \(3,\)"),
        (lambda t: velocity(af.Attention(1.0, query=np.ones((2, 5))), t), r"`query` has shape \(2, 5\)"),
        (lambda t: af.Attention(1.0).velocity(t, at=np.ones((3, 2))), r"`at` has shape \(3, 2\)"),
        (lambda t: af.Attention(1.0, mask=af.Causal()).velocity(t, at=t.positions), "place"),
        (lambda t: af.Attention(1.0).velocity(t, at=t.positions, place=[1]), "place"),
        (lambda t: af.Attention(1.0).velocity(t, place=t.place), "places of their own"),
        (lambda t: af.Attention(1.0).velocity(0.0, at=t.positions), r"`mu` is 0.0; give the tokens first"),
        (lambda t: af.Attention(1.0).drive(0.0, t), r"`mu` is 0.0; give the tokens first"),
        (lambda t: af.Along("time", [1.0]), "identifier"),
        (lambda t: af.Along("beta", []), "at least one"),
    ],
)
def test_bad_input_is_refused(call, words, four):
    with pytest.raises(InvalidInput, match=words):
        call(four)


@pytest.mark.long
def test_memory_of_a_large_field_is_bounded():
    """A thousand queries against 1e5 tokens: a dense array would be 0.8 GiB by itself."""
    code = (
        "import attnflow as af\n"
        "from attnflow.runs.lifecycle import peak_memory\n"
        "mu = af.uniform(af.Sphere(3), n=100_000)\n"
        "af.Attention(9.0).velocity(mu, at=mu.positions[:1000])\n"
        "print(peak_memory())\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout
    assert int(out) < 2**30

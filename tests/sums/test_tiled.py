import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnflow.kernels import Exponential
from attnflow.masks import Causal, Everyone
from attnflow.sums import Columns, Dense, Fused, Moments, Tiled, Weights
from tests.marks import graded


def dense(x, y, masses, charges, beta):
    return (masses * np.exp(beta * (x @ y.T - 1))) @ charges


def unit(rng, n, d):
    x = rng.standard_normal((n, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def call(sum_, beta, x, y, masses, charges, mask=Everyone(), at_tokens=False):
    with jax.enable_x64(True):
        charges = Moments() if charges is None else Columns(charges)
        return np.asarray(_call(sum_, Weights(Exponential(float(beta)), mask, at_tokens), x, y, masses, charges))


@eqx.filter_jit
def _call(sum_, weights, x, y, masses, charges):
    query, key = ((points, jnp.arange(len(points))) for points in (x, y))
    scale, sums = sum_(weights, query, key, jnp.log(masses), charges)
    return jnp.exp(scale)[:, None] * sums


@pytest.mark.parametrize("sum_", [Tiled(), Tiled(4, 6), Tiled(100, 3), Tiled(3, 100), Dense()])
@pytest.mark.parametrize("beta", [0.0, 5.0, 400.0])
def test_any_charges_any_tiles(sum_, beta):
    """The linear map S(x; y, charges), zero masses and incomplete tiles included."""
    rng = np.random.default_rng(0)
    x, y = unit(rng, 11, 3), unit(rng, 17, 3)
    masses, charges = rng.random(17), rng.standard_normal((17, 4))
    masses[[2, 16]] = 0.0
    with np.errstate(divide="ignore"):
        got = call(sum_, beta, x, y, masses, charges)
    terms = dense(x, y, masses, np.abs(charges), beta)
    # each logit is off by 2 eps beta, each sum by a few eps of its terms
    assert np.all(np.abs(got - dense(x, y, masses, charges, beta)) <= 2.3e-16 * (8 * beta + 40) * terms + 1e-300)


@pytest.mark.parametrize("mask", [Everyone(), Causal(0.3)])
def test_without_a_maximum_and_with_the_charges_left_out(mask):
    rng = np.random.default_rng(1)
    x, masses = unit(rng, 17, 3), rng.random(17) + 0.1
    charges = np.concatenate([np.ones((17, 1)), x], axis=1)
    want = call(Tiled(), 30.0, x, x, masses, charges, mask, True)
    for sizes in ((None, None), (4, 6)):
        got = call(Tiled(*sizes, bounded=True), 30.0, x, x, masses, None, mask, True)
        # 2 eps beta of a logit, twice, relative to the sum of absolute terms, here the first column
        assert np.all(np.abs(got - want) <= 2.3e-16 * (16 * 30 + 40) * want[:, :1])


@graded("sum_", [Tiled(), Tiled(2, 3)], ids=["one", "tiles"], fast=1)
def test_a_query_far_from_all_tokens_keeps_its_mean(sum_):
    """At the antipode of e_1 weights are e^(-2 beta), below float range: the largest is the scale, ratios are left."""
    angle = np.array([0.0, 0.02, -0.05, 0.1])
    y, masses = np.stack([np.cos(angle), np.sin(angle)], axis=1), np.array([1.0, 2.0, 3.0, 4.0])
    with jax.enable_x64(True):
        sides = [(jnp.asarray(v), jnp.arange(len(v))) for v in (np.array([[-1.0, 0.0]]), y)]
        scale, sums = sum_(
            Weights(Exponential(jnp.asarray(500.0)), Everyone()), *sides, jnp.log(masses), Columns(jnp.asarray(y))
        )
        _, total = sum_(
            Weights(Exponential(jnp.asarray(500.0)), Everyone()), *sides, jnp.log(masses), Columns(jnp.ones((4, 1)))
        )
    logits = np.log(masses) - 500 * (np.cos(angle) + 1)
    weights = np.exp(logits - logits.max())
    # logits of size 1000 are rounded by 2e-13
    assert float(scale[0]) == pytest.approx(logits.max(), abs=1e-12)
    np.testing.assert_allclose(sums[0] / total[0], weights @ y / weights.sum(), rtol=2e-12)


@pytest.mark.parametrize(("backend", "entries", "widest"), [("cpu", 1 << 18, 2048), ("gpu", 1 << 26, 16384)])
def test_a_tile_fits_the_cache_whatever_the_sizes(backend, entries, widest, faults):
    """At most `entries` pairs, unless one row of keys is more: on every backend, whichever the test runs on."""
    faults.replace("backend of a computation", lambda: backend)
    for n_query, n_key in ((1, 1), (32, 32), (1000, 100_000), (100_000, 7), (10**6, 10**6)):
        q, k = Tiled().sizes(n_query, n_key)
        assert k == min(n_key, widest)
        assert 1 <= q <= n_query
        assert q * k <= entries
        shared, _ = Tiled().shared(64).sizes(n_query, n_key)
        assert shared == 1 or shared * k * 64 <= entries
        assert Tiled(4, 6).sizes(n_query, n_key) == (4, 6)
    assert Tiled().sizes(10**6, 10**6) == (entries // widest, widest)


def test_dense_says_what_would_fit():
    x = jax.ShapeDtypeStruct((40_000, 2), np.float64)
    with jax.enable_x64(True), pytest.raises(ValueError, match=r"23\.8 GiB .* use Tiled\(\)"):
        jax.eval_shape(
            lambda x: Dense()(
                Weights(Exponential(jnp.asarray(1.0)), Everyone()),
                (x, jnp.arange(40_000)),
                (x, jnp.arange(40_000)),
                jnp.zeros(40_000),
                Moments(),
            ),
            x,
        )


def test_an_interpreted_kernel_multiplies_in_float32_on_every_backend():
    """A GPU takes TF32 unless told otherwise, and would be off by 3e-4. 70 queries are two blocks of 64, and no more."""
    x, place = jnp.ones((70, 6), jnp.float32), jnp.arange(70)

    def run(x):
        weights = Weights(Exponential(jnp.asarray(9.0, jnp.float32)), Everyone(), True)
        return Fused(interpret=True)(weights, (x, place), (x, place), jnp.zeros(70, jnp.float32), Moments())

    text = str(jax.make_jaxpr(run)(x))
    assert text.count("dot_general[") == 2 == text.count("precision=(Precision.HIGHEST, Precision.HIGHEST)")
    assert "grid=(2,)" in text

import ducc0  # noqa: F401  the extra `fast` is part of the test environment
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InvalidInput, MissingExtra
from attnflow.kernels import Exponential
from attnflow.masks import Causal, Everyone
from attnflow.special import truncation_degrees
from attnflow.sums import FastSphere, Moments, Tiled, Use, Weights
from attnflow.sums.sht import _cut, _kernels, _sums, roundoff
from tests.conftest import rotation
from tests.marks import graded
from tests.sums.pairs import clouds, dense, derivatives_agree, evaluate, numbers, on_host, unit

BETAS = [0.0, 1e-3, 1.0, 30.0, 1e3, 1e4]


def fast(tol, beta, masses, **options):
    eps = tol * np.min(masses[masses > 0]) / np.sum(masses) / 4
    return FastSphere(tol, max(1, int(truncation_degrees(np.array(eps), beta, 3))), exact=Tiled(), threads=1, **options)


@graded(
    ("beta", "kind"),
    [(beta, kind) for beta in BETAS[:-1] for kind in ("uniform", "clusters", "coincident")] + [(1e4, "clusters")],
    fast=3,
    slow=12,
)
def test_within_the_stated_bound_of_a_dense_sum(beta, kind):
    """Truncation eps = tol min mass/4, as much for the transforms, and round-off, relative to sum_j m_j |charge_j|."""
    rng = np.random.default_rng(int(beta) + len(kind))
    y = clouds(kind, 300, 3, beta, rng)
    x = np.concatenate([y[:40], clouds("uniform", 40, 3, beta, rng), [[0, 0, 1.0], [0, 0, -1.0]]])
    masses = rng.random(300) + 0.01
    masses[7] = 0.0
    ones = np.ones((300, 1))
    for tol in (1e-4, 1e-13) if beta < 1e4 else (1e-13,):
        total = fast(tol, beta, masses)
        bound = tol * np.min(masses[masses > 0]) / 2 / np.sum(masses) + roundoff(total.degree, 300)
        for given, charges in ((Moments(), np.concatenate([ones, y], axis=1)), 2 * [rng.standard_normal((300, 1))]):
            got = on_host(total, x, y, masses, given, beta)
            sizes = np.sum(masses[:, None] * np.abs(charges), axis=0)
            assert np.all(np.abs(got - dense(x, y, masses, charges, beta)) <= bound * np.maximum(sizes, sizes[0]))


def test_one_transform_of_the_masses_gives_what_four_give():
    rng = np.random.default_rng(3)
    y, masses = clouds("clusters", 200, 3, 20.0, rng), np.full(200, 1 / 200)
    charges = np.concatenate([np.ones((200, 1)), y], axis=1)
    total = fast(1e-12, 20.0, masses)
    once = on_host(total, y, y, masses, Moments(), 20.0)
    each = on_host(total, y, y, masses, charges, 20.0)
    np.testing.assert_allclose(once, each, atol=2 * roundoff(total.degree, 200) + 1e-12 / 400, rtol=0)


def test_the_same_threads_give_the_same_bits_and_others_the_same_numbers():
    y = clouds("uniform", 20_000, 3, 9.0, np.random.default_rng(2))
    with jax.enable_x64(True):
        numbers = jax.tree.map(np.asarray, FastSphere(1e-12, 50)._numbers(Exponential(9.0))[1])
    one, two, three, again = (
        _sums(numbers, 1e-12, y, y, np.ones(20_000), Moments(), degree=50, threads=threads) for threads in (1, 2, 3, 2)
    )
    assert np.array_equal(two, again)
    for other in (two, three):  # sums in another order: sqrt(n) units in the last place of the mass
        assert np.abs(other - one).max() <= np.sqrt(20_000) * 2.3e-16 * 20_000


def test_rotations_turn_the_moments():
    rng = np.random.default_rng(4)
    y, masses, turn = clouds("uniform", 500, 3, 50.0, rng), rng.random(500) + 0.5, rotation(3)
    total = fast(1e-10, 50.0, masses)
    first, second = (
        on_host(total, z, z, masses, np.concatenate([np.ones((500, 1)), z], axis=1), 50.0) for z in (y, y @ turn.T)
    )
    bound = 2 * np.sum(masses) * (1e-10 / 500 + roundoff(total.degree, 500))
    np.testing.assert_allclose(second[:, 0], first[:, 0], atol=bound)
    np.testing.assert_allclose(second[:, 1:], first[:, 1:] @ turn.T, atol=bound)


@pytest.mark.long
def test_the_degree_is_the_one_of_the_tail_and_one_or_two_more_for_the_moments():
    for beta in (*BETAS, 0.3, 200.0):
        for eps in (1e-3, 1e-8, 1e-15):
            plain = max(1, int(truncation_degrees(np.array(eps), beta, 3)))
            with jax.enable_x64(True):
                p, rest, _ = jax.tree.map(np.asarray, numbers(FastSphere(1e-12, plain), beta))
            kernels = _kernels(p)
            assert _cut(kernels[:1], eps, float(rest)) == plain
            assert plain <= _cut(kernels, eps, float(rest)) <= plain + 2


def test_the_tail_of_the_gradient_counts_its_growth_with_the_degree():
    degrees = np.arange(60)
    for eps in (1e-2, 1e-6):
        tail = [np.sum((0.5**degrees * np.sqrt(degrees * (degrees + 1) / 2))[k + 1 :]) for k in degrees]
        want = np.flatnonzero(np.array(tail) <= eps)[0]
        assert _cut(np.stack([0 * degrees, 0 * degrees, 0.5**degrees]), eps, 0.0) == want


def test_the_largest_system_counts_the_tokens_that_are_present(faults):
    roundings = faults.calls("bound of round-off")
    four = af.uniform(af.Sphere(3), n=4)
    three = af.Tokens(four.positions, present=[True, False, True, True])
    batch = af.stack("prompt", ["a", "b"], [af.uniform(af.Sphere(3), n=n) for n in (3, 1)])
    for tokens in (three, batch, four):
        FastSphere(1e-6, 40).refusal(Use(tokens.space, Exponential(1.0), Everyone(), True, True), tokens)
    assert [count for (_, count), _ in roundings] == [3, 3, 4]


def test_derivatives_are_those_of_the_other_sum():
    rng = np.random.default_rng(5)
    y, masses = clouds("clusters", 12, 3, 5.0, rng), rng.random(12) + 0.5
    with jax.enable_x64(True):  # values enter the rule through 2 sums_i; derivatives are at most beta^2 times them
        derivatives_agree(fast(1e-13, 5.0, masses), y, masses, lambda z: Moments(), rng, 1e-10)


@pytest.mark.slow
def test_batches_of_beta_and_floats_of_32_bits():
    rng = np.random.default_rng(6)
    y, masses = clouds("uniform", 100, 3, 9.0, rng), np.full(100, 0.01)
    charges = Moments()
    total = fast(1e-9, 9.0, masses)
    with jax.enable_x64(True):
        together = jax.vmap(lambda beta: evaluate(total, y, y, masses, charges, beta, True))(jnp.asarray([1.0, 9.0]))
        for beta, got in zip((1.0, 9.0), together, strict=True):
            # the mass 0.01 goes through its logarithm, of size 5
            np.testing.assert_allclose(
                got, 0.01 * on_host(total, y, y, np.ones(100), charges, beta), rtol=1e-14, atol=1e-16
            )
        small = [a.astype(np.float32) for a in (y, y, masses)]
        got = evaluate(fast(1e-4, 9.0, masses), *small, charges, 9.0, True)
    assert got.dtype == jnp.float32
    # tokens are rounded to 6e-8, which the kernel magnifies by at most sqrt(beta)
    np.testing.assert_allclose(got, together[1], atol=1e-4 / 200 + 1e-6)


def test_what_it_cannot_do():
    rng = np.random.default_rng(7)
    y, masses = clouds("uniform", 10, 3, 1.0, rng), np.full(10, 0.1)
    ones = np.ones((10, 1))
    with jax.enable_x64(True):
        low = FastSphere(1e-10, 20)
        assert np.all(np.isnan(on_host(low, y, y, masses, ones, 1e4)))  # needs degree 700
        broken = np.where(np.arange(10)[:, None] == 3, np.nan, y)
        assert np.all(np.isnan(on_host(low, broken, broken, masses, ones, 1.0)))
        assert np.all(evaluate(low, y, y, 0 * masses, ones, 1.0, True) == 0)
        side = (jnp.asarray(y), jnp.arange(10))
        with pytest.raises(InvalidInput, match="does not support the mask Causal; use sum=Tiled"):
            low(Weights(Exponential(jnp.asarray(1.0)), Causal(), True), side, side, jnp.zeros(10), Moments())


@pytest.mark.slow
def test_trust_ends_where_a_query_sees_too_little():
    rng = np.random.default_rng(8)
    y, masses = unit([0, 0, 1.0] + 0.1 * rng.standard_normal((50, 3))), np.full(50, 0.02)
    total = fast(1e-6, 30.0, masses)
    with jax.enable_x64(True):
        weights = Weights(Exponential(jnp.asarray(30.0)), Everyone())
        for x, answer in ((y[:1], True), (-y[:1], False)):
            seen = jnp.asarray(on_host(total, x, y, masses, np.ones((50, 1)), 30.0)[:, 0])
            query, key = ((jnp.asarray(points), jnp.arange(len(points))) for points in (x, y))
            arguments = (weights, query, key, jnp.log(jnp.asarray(masses)), Moments())
            assert bool(total.trusted(arguments, jnp.zeros(1), seen)) is answer


def test_trust_at_the_tokens_is_relative_to_the_largest_sum():
    """4 round-off/tol of the largest sum that a token sees."""
    total = FastSphere(1e-12, 20, exact=Tiled(), threads=1)
    least = 4 * roundoff(20, 3) / 1e-12  # 0.08: a token of mass 0.01 may see as much
    with jax.enable_x64(True):
        side = (jnp.eye(3), jnp.arange(3))
        arguments = (
            Weights(Exponential(jnp.asarray(1.0)), Everyone(), True),
            side,
            side,
            jnp.log(jnp.full(3, 0.01)),
            Moments(),
        )
        for share, answer in ((1.01, True), (0.99, False)):
            seen = jnp.asarray([0.5, 0.5 * least * share, 0.2])
            assert bool(total.trusted(arguments, jnp.zeros(3), seen)) is answer


def test_trust_without_a_guard_is_a_matter_of_rounding():
    """4 round-off(60, 12) = 5e-14 against tol/12: the exponential has closed coefficients, without noise."""
    tokens = af.uniform(af.Sphere(3), n=12, seed=0)
    af.Attention(3.0, sum=FastSphere(1e-6, 60, guarded=False)).check(tokens)
    with pytest.raises(InvalidInput, match="guarded=False and tol = 1.0e-14"):
        af.Attention(3.0, sum=FastSphere(1e-14, 60, guarded=False)).check(tokens)


def test_without_ducc0_the_extra_is_named(faults):
    faults.module("ducc0")
    with pytest.raises(MissingExtra, match=r"attnflow\[fast\]"):
        FastSphere(1e-10, 20)

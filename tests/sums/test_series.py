"""Circle and Harmonics against the sum over all pairs, and against what a series promises."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import attnflow as af
from attnflow.errors import InvalidInput
from attnflow.kernels import Exponential, Gaussian
from attnflow.masks import Causal, Everyone, Table
from attnflow.special import basis_size, degree_weights
from attnflow.sums import Circle, Columns, Harmonics, Moments, Tiled, Weights, needed_degree
from attnflow.sums.harmonics import _lower_degrees, _solid
from attnflow.sums.series import round_off
from attnflow.tokens import Measure
from tests.marks import graded

N = 96
TOP = {2: 832, 3: 56, 4: 24}


def made(d, tol=1e-10, degree=None):
    degree = TOP[d] if degree is None else degree
    return Circle(tol, degree, chunk=64) if d == 2 else Harmonics(tol, degree, d, chunk=64)


@jax.jit
def _call(sum_, weights, x, y, masses, charges, place):
    scale, sums = sum_(weights, (x, place[: len(x)]), (y, place), jnp.log(masses), Columns(charges))
    return jnp.exp(scale)[:, None] * sums


def call(sum_, beta, x, masses, charges, mask=Everyone(), place=None, y=None):
    with jax.enable_x64(True):
        place = np.arange(len(masses)) if place is None else place
        weights = Weights(Exponential(jnp.asarray(float(beta))), mask, y is None)
        return np.asarray(
            _call(sum_, weights, jnp.asarray(x), jnp.asarray(x if y is None else y), masses, charges, place)
        )


def tokens(d, kind, seed):
    """Positions, unequal masses, charges 1 and x."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((N, d))
    if kind == "clustered":
        x = x[rng.integers(0, 3, N)] + 1e-3 * rng.standard_normal((N, d))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    masses = rng.random(N) + 0.05
    return x, masses / masses.sum(), np.concatenate([np.ones((N, 1)), x], axis=1)


def pairs(x, masses, charges, beta, mask=Everyone(), place=None):
    """The sum over all pairs through |x - y|^2, whose logits are off by eps beta |x - y|^2 only."""
    place = jnp.arange(len(masses)) if place is None else place
    square = np.sum((x[:, None] - x[None]) ** 2, axis=2)
    with jax.enable_x64(True):
        bias = np.asarray(mask.bias(place, place))
    return (masses * np.exp(-beta * square / 2 + bias)) @ charges


def mean(sums):
    return sums[:, 1:] / sums[:, :1]


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    d=st.sampled_from([2, 3, 4]),
    log_beta=st.floats(-3.0, 4.0),
    log_tol=st.floats(-11.0, -4.0),
    kind=st.sampled_from(["uniform", "clustered"]),
    seed=st.integers(0, 5),
    zero=st.booleans(),
)
def test_the_softmax_mean_is_within_the_tolerance(d, log_beta, log_tol, kind, seed, zero):
    """Every beta and tolerance in one compiled function; and sums themselves are within eps = tol min mass/4."""
    tol, beta = 10.0**log_tol, 0.0 if zero else 10.0 ** min(log_beta, {2: 4.0, 3: 1.5, 4: 0.5}[d])
    x, masses, charges = tokens(d, kind, seed)
    assert needed_degree([Exponential(beta)], d, Measure(x, masses), tol)[0] <= TOP[d]
    sum_ = made(d, tol)
    got, want = call(sum_, beta, x, masses, charges), pairs(x, masses, charges, beta)
    eps = tol * masses.min() / 4
    # the reference: logits off by 2 eps beta |x - y|^2/2 e^(-beta |x - y|^2/2) <= 2 eps/e, and its own sum
    rounding = round_off(sum_.degree, np.float64) + 1e-15
    assert np.abs(got - want).max() <= eps + rounding
    assert np.linalg.norm(mean(got) - mean(want), axis=1).max() <= tol / 2 + 2 * rounding / want[:, 0].min()


@functools.partial(jax.jit, static_argnums=(1, 2))
def _expansion(beta, d, degree):
    return Exponential(beta).expansion(d, degree)


@pytest.mark.parametrize("d", [2, 3, 4, 7])
@graded(("beta", "degree"), [(0.0, 64), (1e-6, 64), (0.7, 64), (30.0, 64), (1e4, 928)])
def test_traced_weights_are_those_of_the_host(d, beta, degree):
    with jax.enable_x64(True):
        found = _expansion(beta, d, degree)
    p, beyond = np.asarray(found.p), float(found.rest)
    want = degree_weights(beta, d, degree + 1)
    # absolute errors count: a product of k quotients, each off by a few units in the last place
    assert np.all(np.abs(p - want[: degree + 1]) <= 4 * 2.3e-16 * (degree + 1) * want.max())
    assert beyond <= 1e-14


@graded("d", [2, 3, 4, 5], fast=2)
def test_harmonics_are_orthonormal_polynomials(d):
    """Their kernel sum_b Y_b(x) Y_b(y) over one degree is N(k) P_k(<x, y>): here sum_k p_k/N_k of it is e^(...)."""
    x, _, _ = tokens(d, "uniform", 3)
    with jax.enable_x64(True):
        rows = np.asarray(jax.jit(_solid, static_argnums=1)(jnp.asarray(x), 6))
    degrees = _lower_degrees(d, 6)
    assert rows.shape == (len(degrees), N)
    s = np.clip(x @ x.T, -1, 1)
    legendre = [np.ones_like(s), s]  # P_k(1) = 1: (k + d - 2) P_{k+1} = (2k + d - 2) s P_k - k P_{k-1}
    for k in range(1, 6):
        legendre.append(((2 * k + d - 2) * s * legendre[k] - k * legendre[k - 1]) / (k + d - 2))
    for k in range(7):
        block = rows[degrees == k]
        assert np.abs(block.T @ block - len(block) * legendre[k]).max() <= 1e-13 * len(block) * (k + 1)


def test_dropped_rows_are_of_no_harmonic():
    """Every Y' of degree l meets every p_k with l + k up to the degree: as many as there are harmonics."""
    for d, degree in ((3, 8), (3, 56), (4, 24)):
        lower = _lower_degrees(d - 1, degree)
        parts = made(d, degree=degree)._segments(lower)
        kept = sum(np.sum(lower[:rows] <= degree - k) for first, last, rows in parts for k in range(first, last))
        assert kept == basis_size(degree, d)


@pytest.mark.slow
def test_rotations_and_scales():
    x, masses, charges = tokens(3, "uniform", 1)
    turn = np.linalg.qr(np.random.default_rng(2).standard_normal((3, 3)))[0]
    sum_ = made(3)
    base = call(sum_, 9.0, x, masses, charges[:, :1])
    assert np.abs(call(sum_, 9.0, x @ turn.T, masses, charges[:, :1]) - base).max() <= 2 * round_off(56, np.float64)
    assert np.abs(call(sum_, 9.0, x, 1e-200 * masses, charges[:, :1]) * 1e200 - base).max() <= 1e-14


@graded("d", [2, 3])
@pytest.mark.parametrize("slope", [0.0, 0.05])
def test_causal_sums_are_those_of_the_mask(d, slope):
    """In chunks of 128, for places in any order, against all pairs and the mask."""
    rng = np.random.default_rng(4)
    n = 300
    x = rng.standard_normal((n, d))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    masses = np.full(n, 1 / n)
    charges = np.concatenate([np.ones((n, 1)), x], axis=1)
    place = rng.permutation(2 * n)[:n]
    mask = Causal(slope)
    sum_ = made(d, degree=32)
    got, want = (
        call(sum_, 9.0, x, masses, charges, mask, place),
        pairs(x, masses, charges, 9.0, mask, jnp.asarray(place)),
    )
    assert np.abs(got - want).max() <= 1e-10 / n / 4 + round_off(32, np.float64)
    assert np.linalg.norm(mean(got) - mean(want), axis=1).max() <= 1e-10
    # the prefix alone gives the same: what comes later has no influence at all
    first = np.sort(np.argsort(place)[:150])
    alone = call(sum_, 9.0, x[first], masses[first], charges[first], mask, place[first])
    assert np.abs(alone - got[first]).max() <= 1e-15


def test_causal_sums_elsewhere_than_at_the_tokens_are_tiled():
    """Queries with places of their own, as in a compiled velocity, where nobody knows that they are the tokens."""
    x, masses, _ = tokens(2, "uniform", 8)
    place = np.random.default_rng(9).permutation(N)
    system = af.Tokens(x, masses, place=place)
    field, plain = (af.Attention(9.0, mask=Causal(0.05), sum=sum_) for sum_ in (made(2, degree=48), Tiled()))
    with jax.enable_x64(True):
        look = jax.jit(lambda field, x: field.velocity(system, at=x, place=place))
        np.testing.assert_array_equal(look(field, jnp.asarray(x)), look(plain, jnp.asarray(x)))
    other = af.Tokens(x, masses, place=np.where(place == 0, 1, place))
    with pytest.raises(
        InvalidInput, match="holds a number twice, which the sum Circle does not support under a causal"
    ):
        field.check(other)
    plain.check(other)


@graded("d", [2, pytest.param(3, marks=pytest.mark.slow)], slow=1)
def test_derivatives_are_those_of_the_sum_over_pairs(d):
    """Along the sphere: jvp, vjp, forward over reverse, vmap, and in beta."""
    x, masses, _ = tokens(d, "uniform", 5)
    rng = np.random.default_rng(6)
    weight = rng.standard_normal((N, d + 1))
    sum_ = made(d, 1e-12, 32)
    with jax.enable_x64(True):

        def value(sum_, x, beta):
            x = x / jnp.linalg.norm(x, axis=1, keepdims=True)
            place = jnp.arange(N)
            scale, sums = sum_(
                Weights(Exponential(beta), Everyone(), True), (x, place), (x, place), jnp.log(masses), Moments()
            )
            return jnp.sum(weight * jnp.exp(scale)[:, None] * sums)

        arrow = jnp.asarray(rng.standard_normal((N, d)))

        @jax.jit
        def everything(sum_, x, beta):
            gradient = jax.grad(value, argnums=(1, 2))
            first, second = jax.jvp(lambda x: gradient(sum_, x, beta), (x,), (arrow,))
            many = jax.vmap(lambda b: value(sum_, x, b))(jnp.stack([beta, beta / 2]))
            return first, second, many

        ours, theirs = (everything(s, jnp.asarray(x), jnp.asarray(7.0)) for s in (sum_, Tiled()))
    # every derivative multiplies the neglected terms by at most the degree, 32
    for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert np.abs(one - other).max() <= 32**2 * (1e-12 + 1e-14) * np.abs(other).max()


def test_trust_counts_the_mass_that_is_seen():
    """What a token sees is compared with the mass up to its place, times 4 round-off/tol; places in any order."""
    # so accurate a series that round-off counts, and not the least mass
    sum_, place, masses = made(2, 1e-14, 16), np.array([2, 0, 3, 1]), np.array([0.4, 0.1, 0.3, 0.2])
    least = 4 * round_off(16, np.float64) / 1e-14
    before = np.array([0.7, 0.1, 1.0, 0.3])  # mass at places up to one's own
    for mask, seen in ((Causal(), least * before), (Everyone(), least * np.ones(4))):
        for i in range(4):
            little = np.where(np.arange(4) == i, 0.99, 1.01) * seen
            assert is_trusted(sum_, mask, True, place, masses, 1.01 * seen)
            assert not is_trusted(sum_, mask, True, place, masses, little)


@af.in_float64
@eqx.filter_jit
def is_trusted(sum_, mask, at_tokens, place, masses, total):
    side = (jnp.ones((4, 2)), place)
    arguments = (Weights(Exponential(jnp.asarray(1.0)), mask, at_tokens), side, side, jnp.log(masses), Moments())
    return sum_.trusted(arguments, jnp.zeros(4), total)


def test_trust_ends_below_the_least_mass():
    """Truncation is tol/4 of the least mass: a query that sees less has a mean that is off by more."""
    sum_, masses = made(2, 1e-4, 16), np.array([0.4, 0.1, 0.3, 0.2])
    for at_tokens, mask in ((False, Everyone()), (True, Everyone()), (True, Causal())):
        for least, answer in ((0.1, True), (0.098, False)):
            total = np.array([0.5, least, 0.4, 0.4])
            assert bool(is_trusted(sum_, mask, at_tokens, np.arange(4), masses, total)) is answer


def test_a_degree_that_does_not_suffice_gives_nan_and_is_refused_beforehand():
    x, masses, charges = tokens(2, "uniform", 0)
    assert np.isnan(call(made(2, degree=16), 500.0, x, masses, charges)).all()
    # the degree found in compiled code is that of the host: 16 is enough up to where 17 are needed
    betas = np.linspace(1, 8, 141)
    needed = np.array([needed_degree([Exponential(beta)], 2, Measure(x, masses), 1e-10)[0] for beta in betas])
    for degree, lost in ((16, False), (17, True)):
        sums = call(made(2, degree=16), np.mean(betas[needed == degree]), x, masses, charges)
        assert np.isnan(sums).all() == np.isnan(sums).any() == lost
    field = af.Attention(500.0, sum=made(2, degree=16))
    with pytest.raises(InvalidInput, match="degrees up to 16; beta = 500 and these masses need"):
        field.check(af.Tokens(x, masses))


@pytest.mark.parametrize(
    ("field", "words"),
    [
        (af.Attention(1.0, mask=af.Window(3), sum=Circle(1e-8, 32)), "does not support the mask Window; use sum=Tiled"),
        (af.Attention(1.0, mask=Table(np.ones((N, N), bool)), sum=Circle(1e-8, 32)), "does not support the mask Table"),
        (af.Attention(1.0, query=2 * np.eye(2), sum=Circle(1e-8, 32)), "with Q = K = I"),
        (af.Attention(-1.0, sum=Circle(1e-8, 32)), "needs beta >= 0"),
        (
            af.Attention(kernel=Gaussian(-1.0), sum=Circle(1e-8, 32)),
            "`beta` is negative; the sum Circle needs beta >= 0",
        ),
        (
            af.Attention(kernel=Gaussian(1e11), sum=Circle(1e-8, 32)),
            r"`beta` is above 1e\+10, where the sum Circle needs",
        ),
        (af.Attention(1.0, sum=Harmonics(1e-8, 32, 3)), r"points in R\^3, not in R\^2"),
    ],
)
def test_what_a_series_cannot_honour_is_refused(field, words):
    x, _, _ = tokens(2, "uniform", 0)
    with pytest.raises(InvalidInput, match=words):
        field.velocity(af.from_array(x), at=x, place=np.arange(N))


def test_the_cut_of_a_sum_is_that_of_the_lightest_token():
    """A quarter of the tolerance, times the share of the lightest token; what rounding adds does not depend on it."""
    masses = jnp.asarray([1.0, 2.0, 5.0])
    with jax.enable_x64(True):
        fine, coarse = (float(Circle(tol, 20).error(Exponential(1.0), masses)) for tol in (1e-3, 2e-3))
    assert coarse - fine == pytest.approx(0.25 * 1e-3 / 8, rel=1e-6)

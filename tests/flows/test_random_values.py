"""Random values: the matrix-valued common noise that layers with random V converge to (arXiv:2604.01978)."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.flows import RandomValues
from tests.marks import graded

BETA, D = 1.5, 4
STILL = af.Perceptron(np.eye(D), outer=np.zeros((D, D)))
TOKENS = af.uniform(af.Sphere(D), n=5, seed=1)


def softmax_means(x, beta=BETA, masses=None):
    """m_i = sum_j A_ij x_j in NumPy; x is (..., token, dim)."""
    logits = beta * np.einsum("...id,...jd->...ij", x, x)
    weights = np.exp(logits) * (np.ones(x.shape[-2]) if masses is None else masses)
    return weights / weights.sum(axis=-1, keepdims=True) @ x


def solved(field, tokens, until, method, noise=None, save=1):
    return af.solve(field, tokens, until, save=save, method=method, noise=noise, keep=["positions"]).positions.values


def near(sample, expected, slack=0.0):
    """Within four standard errors of independent samples (one miss in 16,000), and `slack` for the step."""
    error = sample.std() / np.sqrt(sample.size)
    assert abs(sample.mean() - expected) < 4 * error + slack, (sample.mean(), expected, error, slack)


@pytest.mark.parametrize("space", [af.Sphere(D), af.Euclidean(D)])
def test_the_covariance_of_an_increment(space):
    """E dX_i dX_j^T = (2 kappa / d) <m_i, m_j> P_i P_j dt: the sum over a basis of matrices is exact."""
    rng, kappa = np.random.default_rng(0), 0.3
    masses = rng.uniform(0.5, 1.0, 5)
    mu = af.Tokens(TOKENS.positions, masses / masses.sum(), space=space).measure
    noise = RandomValues(af.Attention(BETA), kappa)

    @af.in_float64
    @eqx.filter_jit
    def moved(basis):
        return eqx.filter_vmap(lambda w: noise.displacement(0.0, mu, w))(basis)

    v = moved(np.eye(D * D).reshape(-1, D, D))
    x = mu.positions
    m = softmax_means(x, masses=mu.masses)
    project = np.eye(D) - isinstance(space, af.Sphere) * x[:, :, None] * x[:, None, :]
    want = 2 * kappa / D * np.einsum("id,jd->ij", m, m)[:, :, None, None] * np.einsum("iab,jbc->ijac", project, project)
    np.testing.assert_allclose(np.einsum("kia,kjb->ijab", v, v), want, atol=1e-15)


@af.in_float64
def draws(noise, mu, count, step):
    return eqx.filter_jit(eqx.filter_vmap(lambda k: noise.draw(k[None], mu, step)))(jnp.arange(count))


def test_increments_are_independent_gaussians_of_variance_h():
    w = draws(RandomValues(af.Attention(BETA), seed=3), TOKENS.measure, 4096, 0.25).reshape(4096, -1)
    near(w, 0.0)
    assert np.abs(w.var(axis=0) / 0.25 - 1).max() < 4.5 * np.sqrt(2 / 4096)
    assert np.abs(np.corrcoef(w.T) - np.eye(D * D)).max() < 4.5 / np.sqrt(4096)


@pytest.mark.slow
def test_one_token_is_brownian_motion_on_the_clock_of_the_paper():
    """m = x: E <x(tau), x(0)> = e^(-(d-1) tau / (2 d)); steps cost rate^2 tau h."""
    noise = RandomValues(af.Attention(BETA), seed=af.Along("seed", range(8192)))
    x = solved(STILL, af.from_array(np.eye(D)[:1]), 1.0, af.Layers(0.05), noise)
    rate = (D - 1) / (2 * D)
    near(x[:, -1, 0, 0], np.exp(-rate), rate**2 * 0.05)


@pytest.mark.slow
def test_the_overlap_has_the_drift_and_the_variance_of_its_generator():
    """With s_ij = <m_i, m_j>: dR/dt has mean D = [(d-2+R^2) s_12 - (d-1) R (s_11+s_22)/2]/d, and
    d<R> = (1-R^2)(s_11+s_22-2R s_12)/d dt. R - R(0) - sum D h is a martingale up to O(h); its variance is that of <R>.
    """
    h, until, seeds = 0.02, 1.0, 4096
    noise = RandomValues(af.Attention(BETA), seed=af.Along("seed", range(seeds)))
    start = af.from_array(np.eye(D)[:2])
    x = solved(
        STILL, start, until, af.Layers(h, af.layer_updates.ProjectRenormalise()), noise, save=af.saving.EveryLayer()
    )
    overlap = np.sum(x[:, :, 0] * x[:, :, 1], axis=-1)
    m = softmax_means(x[:, :-1])
    s = np.einsum("stid,stjd->stij", m, m)
    r = overlap[:, :-1]
    both = s[..., 0, 0] + s[..., 1, 1]
    drift = ((D - 2 + r**2) * s[..., 0, 1] - (D - 1) * r * both / 2) / D
    spread = (1 - r**2) * (both - 2 * r * s[..., 0, 1]) / D
    left = overlap[:, -1] - overlap[:, 0] - h * drift.sum(axis=1)
    assert abs(drift).mean() * until > 10 * left.std() / np.sqrt(seeds)
    near(left, 0.0, h * until * spread.mean())
    near(left**2, h * spread.sum(axis=1).mean(), h * until * spread.mean())


@graded("size", [pytest.param((2.0, 8, 2048), marks=pytest.mark.slow), (1.0, 4, 1024)])
def test_layers_with_random_values_converge_to_it_in_law(size):
    """Mean and variance of an overlap at tau = 1.

    The network x <- N(x + h V m) with V of entries N(0, 1/(d h)), against fixed steps of the equation. Weak order 1 in
    steps of 0.02 and 0.04 (rates of overlaps are at most 1): 0.06 of the mean and of the variance.
    """
    beta, n, seeds = size
    d, h = 8, 0.02
    seed = af.Along("seed", range(seeds))
    start = af.tokens.equiangular(af.Sphere(d), n=n, overlap=0.2)
    network = af.Attention(beta, value=af.weights.Random((d, d), seed=seed, step=h, scale=(d * h) ** -0.5))
    layers = solved(network, start, 1.0, af.Layers(h))
    still = af.Perceptron(np.eye(d), outer=np.zeros((d, d)))
    sde = solved(still, start, 1.0, af.Fixed(2 * h), RandomValues(af.Attention(beta), seed=seed))
    one, other = (np.sum(x[:, -1, 0] * x[:, -1, 1], axis=-1) for x in (layers, sde))
    error = np.sqrt((one.var() + other.var()) / seeds)
    assert abs(one.mean() - other.mean()) < 4 * error + 0.06 * one.mean()
    assert abs(one.var() / other.var() - 1) < 4 * np.sqrt(2 * 2 / seeds) + 0.06
    assert one.mean() - 0.2 > 10 * error


@pytest.mark.long
def test_in_a_specification_with_random_queries_and_keys_and_in_a_batch():
    """Q and K are drawn afresh for every layer, so the noise of a layer sees its own; a member is itself alone."""
    from attnflow.runs import parse_spec

    text = """
    [tokens]
    name = "uniform"
    n = 4
    seed = 1
    space = { name = "sphere", dim = 4 }
    [field]
    name = "perceptron"
    inner = { name = "random", shape = [4, 4], step = 0.1 }
    [solve]
    until = 0.5
    method = { name = "fixed", step = 0.06 }
    save = { name = "evenly", count = 1 }
    [solve.noise]
    name = "random-values"
    seed = [3, 5]
    [solve.noise.field]
    name = "attention"
    beta = 2.0
    query = { name = "random", shape = [2, 4], seed = 1, step = 0.1 }
    key = { name = "random", shape = [2, 4], seed = 1, step = 0.1 }
    """
    given = parse_spec(text).work
    both = af.flows.Drive(given.checked()).run().positions.values
    assert both.shape == (2, 2, 4, 4)
    noise = eqx.tree_at(lambda noise: noise.seed, given.noise, np.asarray(5.0))
    field, tokens, method = given.field, given.tokens, given.method
    np.testing.assert_allclose(
        af.advance(field, tokens, 0.0, 0.5, method, noise=noise).positions, both[1, -1], atol=1e-13
    )
    steady = RandomValues(af.Attention(2.0), seed=5)
    assert np.abs(af.advance(field, tokens, 0.0, 0.5, method, noise=steady).positions - both[1, -1]).max() > 1e-3

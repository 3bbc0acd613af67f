"""RandomValues(low_rank=True): n d numbers instead of d^2, with the same distribution."""

import equinox as eqx
import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InvalidInput
from attnflow.fields import AtPoints
from attnflow.flows import RandomValues

D = 6
STILL = af.Perceptron(np.eye(D), outer=np.zeros((D, D)))
TOKENS = af.uniform(af.Sphere(D), n=3, seed=1)


def noise(low_rank=True, beta=1.5, seed=0, kappa=0.5):
    return RandomValues(af.Attention(beta), kappa, seed, low_rank)


def displacements(given, mu, basis):
    """The displacements by every matrix of `basis`, in one program."""
    moved = eqx.filter_jit(lambda basis: eqx.filter_vmap(lambda w: given.displacement(0.0, mu, w))(basis))
    return np.asarray(af.in_float64(moved)(basis))


def end(given, tokens=TOKENS, until=0.5, step=0.05):
    if not tokens.dims and not isinstance(given.seed, af.Along):
        return np.asarray(af.advance(STILL, tokens, 0.0, until, af.Fixed(step), noise=given).positions)
    flow = af.solve(STILL, tokens, until, save=1, method=af.Fixed(step), noise=given, keep=["positions"])
    return flow.positions.values[..., -1, :, :]


@pytest.mark.parametrize("beta", [1.5, 0.0])
def test_one_increment_has_exactly_the_same_covariance(beta):
    """Displacements are linear in Gaussian numbers, so equal covariances are equal distributions.

    A sum over a basis of W is the covariance: n d directions against d^2. At beta = 0 the drives are equal: rank 1.
    """
    masses = np.array([0.2, 0.5, 0.3])
    mu = af.Tokens(TOKENS.positions, masses, space=af.Sphere(D)).measure
    low, full = noise(beta=beta, kappa=0.3), noise(False, beta, kappa=0.3)
    assert low.driver(mu).shape == (3, D)
    assert full.driver(mu).shape == (D, D)
    found, want = (
        np.einsum("kia,kjb->ijab", v, v)
        for v in (
            displacements(low, mu, np.eye(3 * D).reshape(-1, 3, D)),
            displacements(full, mu, np.eye(D * D).reshape(-1, D, D)),
        )
    )
    assert np.abs(want).max() > 0.01
    np.testing.assert_allclose(found, want, atol=1e-16)


@pytest.mark.slow
def test_paths_have_the_same_moments():
    """4096 paths of each kind to tau = 0.5: all first and second moments of positions and of R_12 at 5 standard errors."""
    count = 4096
    seed = af.Along("seed", range(count))
    low, full = end(noise(seed=seed)), end(noise(False, seed=seed))
    assert np.abs(low - full).max() > 0.5, "they are not the same paths"
    for one, other in zip(*(_moments(x) for x in (low, full)), strict=True):
        error = np.sqrt((one.var(axis=0) + other.var(axis=0)) / count)
        assert (np.abs(one.mean(axis=0) - other.mean(axis=0)) < 5 * error).all()
    overlap = np.sum(low[:, 0] * low[:, 1], axis=-1)
    start = float(TOKENS.positions[0] @ TOKENS.positions[1])
    assert abs(overlap.mean() - start) > 5 * overlap.std() / np.sqrt(count), "and they have moved"


def _moments(x):
    gram = np.einsum("sia,sja->sij", x, x)
    return (
        x.reshape(len(x), -1),
        np.einsum("sia,sjb->siajb", x, x).reshape(len(x), -1),
        gram[:, 0, 1:],
        gram[:, 0, 1:] ** 2,
    )


@pytest.mark.slow
def test_tokens_at_one_point_stay_together_and_rank_one_is_one_vector():
    """Nothing is added to the diagonal of S: with 10^-10 I these would drift apart by 10^-5."""
    x = np.asarray(TOKENS.positions)
    found = end(noise(), af.from_array(x[[0, 1, 0, 2, 1]]))
    assert np.abs(found[0] - found[2]).max() < 1e-14
    assert np.abs(found[1] - found[4]).max() < 1e-14
    assert np.abs(found[0] - x[0]).max() > 0.05
    w = np.random.default_rng(0).standard_normal((1, 3, D))
    moved = displacements(
        RandomValues(af.Attention(0.0), low_rank=True), af.Tokens(x, space=af.Euclidean(D)).measure, w
    )
    assert np.abs(np.diff(moved[0], axis=0)).max() < 1e-15


@pytest.mark.slow
def test_absent_rows_batches_and_float32():
    """Absent rows stay and change nothing: they stand after the others, whose factor is triangular."""
    x = np.asarray(TOKENS.positions)
    systems = af.stack("size", [3, 2], [TOKENS, af.from_array(x[:2])])
    found = end(noise(), systems)
    np.testing.assert_allclose(found[0], end(noise()), atol=1e-13)
    np.testing.assert_allclose(found[1, :2], end(noise(), af.from_array(x[:2])), atol=1e-13)
    single = end(noise(), TOKENS.astype(np.float32))
    assert single.dtype == np.float32
    assert np.abs(np.linalg.norm(single, axis=-1) - 1).max() < 4e-7
    assert np.linalg.norm(single - x, axis=-1).min() > 1e-2


def test_as_many_rows_as_dimensions_have_the_matrix_itself():
    mu = af.uniform(af.Sphere(D), n=D, seed=2).measure
    w = np.random.default_rng(0).standard_normal((1, D, D))
    assert noise().driver(mu).shape == (D, D)
    assert np.array_equal(displacements(noise(), mu, w), displacements(noise(False), mu, w))


def test_refusals():
    with pytest.raises(InvalidInput, match="`low_rank` is 1; give True or False"):
        noise(1)
    mu = TOKENS.measure
    with pytest.raises(InvalidInput, match="at the tokens alone; use low_rank=False"):
        noise().push(0.0, AtPoints(np.eye(D)), mu, np.zeros((3, D)))

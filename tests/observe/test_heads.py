"""The energy of attention with matrices: who climbs it. One head and several USA heads do, several softmax heads need not.

Random configurations: 300 of three tokens on the circle, beta = 2, B_h = 3 times a symmetrised Gaussian matrix,
V_h = B_h. How many of them fail depends much on this distribution (about 12 in 100 here, none in 100 with six tokens in R^3
and B_h a third as large), so only their existence is a fact of the theory.
"""

import equinox as eqx
import jax
import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InvalidInput
from attnflow.fields import Attention
from attnflow.observe import energy_rate, interaction_energy

BETA, COUNT = 2.0, 300
USA0 = af.Unnormalised()
RNG = np.random.default_rng(0)
GAUSSIAN = 3 * RNG.standard_normal((COUNT, 2, 2, 2))
MATRICES = (GAUSSIAN + GAUSSIAN.swapaxes(-1, -2)) / 2
MASSES = RNG.random((COUNT, 3)) + 0.5
MASSES /= MASSES.sum(axis=1, keepdims=True)
X = RNG.standard_normal((COUNT, 3, 2))
X /= np.linalg.norm(X, axis=-1, keepdims=True)
EPS = np.finfo(float).eps


def rates(normaliser, heads):
    """dE/dt of every configuration, by the library."""

    def one(b, x, m):
        field = Attention(BETA, query=b, value=b, average="sum", normaliser=normaliser)
        return energy_rate(field, af.Measure(x, m))

    return af.in_float64(jax.jit(jax.vmap(one)))(MATRICES[:, :heads], X, MASSES)


def tangent(v):
    return v - np.sum(v * X, axis=-1, keepdims=True) * X


def dense(heads, softmax):
    """Gradients (1/m_i) P grad_i E_h, partition functions Z_ih, and the rounding error of a rate, in NumPy."""
    b = MATRICES[:, :heads]
    logits = BETA * (np.einsum("nia,nhab,njb->nhij", X, b, X) - 1)
    weights = MASSES[:, None, None, :] * np.exp(logits)
    gradients = np.einsum("nhij,nhab,njb->nhia", weights, b, X)
    z = weights.sum(axis=-1)[..., None]
    # logits carry a few eps |beta B|, and so do all terms g_ih g_ik / Z, which the error adds without their signs
    sizes = np.linalg.norm(gradients, axis=-1)
    speeds = sizes / z[..., 0] if softmax else sizes
    error = EPS * (10 + 8 * np.abs(logits).max(axis=(1, 2, 3))) * np.einsum("ni,nhi,ngi->n", MASSES, sizes, speeds)
    return np.stack([tangent(gradients[:, h]) for h in range(heads)], axis=1), z, error


def test_several_softmax_heads_may_go_down():
    """Found by themselves, against the dense formula sum_i m_i <sum_h g_ih / Z_ih, sum_h g_ih>."""
    got = rates(af.Softmax(), 2)
    gradients, z, error = dense(2, True)
    expected = np.einsum("ni,nia,nia->n", MASSES, (gradients / z).sum(axis=1), gradients.sum(axis=1))
    assert (np.abs(got - expected) < error).all()
    down = np.flatnonzero(got < -error)
    assert len(down) >= 10
    assert (got > error).sum() > COUNT / 2
    # the worst one, seen on the flow itself: a step of h lowers the energy by h times the rate
    k = down[np.argmin(got[down] / interaction_of(down))]
    tokens = af.Tokens(X[k], MASSES[k])
    field = Attention(BETA, query=MATRICES[k], value=MATRICES[k], average="sum")
    h = 1e-4
    later = af.advance(field, tokens, 0.0, h, af.Fixed(h))
    earlier = af.advance(field, tokens, 0.0, -h, af.Fixed(h))
    change = interaction_energy(field, later) - interaction_energy(field, earlier)
    assert change < 0
    # central differences: h^2 times a third derivative, (beta |B| speed)^2 < 1e4 relative
    np.testing.assert_allclose(change / (2 * h), got[k], rtol=1e-3)


def interaction_of(which):
    """E of these configurations with two heads, in NumPy."""
    logits = BETA * (np.einsum("nia,nhab,njb->nhij", X, MATRICES, X) - 1)[which]
    return np.einsum("ni,nhij,nj->n", MASSES[which], np.exp(logits), MASSES[which]) / (2 * BETA)


def test_one_softmax_head_never_goes_down():
    """DE/dt = sum_i m_i |g_i|^2 / Z_i."""
    got = rates(af.Softmax(), 1)
    gradients, z, error = dense(1, True)
    expected = np.sum(MASSES * np.sum(gradients[:, 0] ** 2, axis=-1) / z[:, 0, :, 0], axis=1)
    assert (np.abs(got - expected) < error).all()
    assert (got > -error).all()
    assert (expected > 0).all()


@pytest.mark.parametrize("heads", [1, 2])
def test_unnormalised_heads_never_go_down(heads):
    """DE/dt = sum_i m_i |v_i|^2: the sum of heads is a gradient flow."""
    got = rates(USA0, heads)
    gradients, _, error = dense(heads, False)
    expected = np.sum(MASSES * np.sum(gradients.sum(axis=1) ** 2, axis=-1), axis=1)
    assert (np.abs(got - expected) < error).all()
    assert (got > -error).all()
    assert (expected > 0).all()


TOKENS = af.Tokens(af.uniform(af.Sphere(3), n=12, seed=0).positions, RNG.random(12) + 0.1)


@af.in_float64
@eqx.filter_jit
def slope(field, x):
    return jax.grad(lambda x: interaction_energy(field, TOKENS.moved(x)))(x)


def misfit(field):
    """Largest difference of the velocities and (1/m_i) P grad_i E, relative to the largest velocity."""
    expected = TOKENS.space.tangent(TOKENS.positions, slope(field, TOKENS.positions) / TOKENS.masses[:, None])
    velocity = field.velocity(TOKENS)
    return np.abs(velocity - expected).max() / np.abs(velocity).max()


def test_gradient_structure():
    """USA with V = B = B^T is the gradient; a matrix that is not symmetric, another V or softmax is not."""
    b = RNG.standard_normal((2, 3, 3))
    symmetric = (b + b.mT) / 2
    assert misfit(af.Attention(1.5, query=symmetric[0], value=symmetric[0], normaliser=USA0)) < 1e-13
    assert misfit(Attention(1.5, query=symmetric, value=symmetric, average="sum", normaliser=USA0)) < 1e-13
    assert misfit(af.Attention(1.5, query=b[0], value=b[0], normaliser=USA0)) > 0.1
    assert misfit(af.Attention(1.5, query=symmetric[0], normaliser=USA0)) > 0.1
    assert misfit(af.Attention(1.5, query=symmetric[0], value=symmetric[0])) > 0.1


def test_energy_against_the_dense_formula():
    """Keys of rank 2, one shared by both heads; tiles of 2,100 tokens; Q = K = I is the plain energy."""
    q, k = RNG.standard_normal((2, 2, 3)), RNG.standard_normal((2, 3))
    x, m = TOKENS.positions, TOKENS.masses
    logits = np.einsum("hra,ia,rb,jb->hij", q, x, k, x)
    expected = np.einsum("i,hij,j->", m, np.exp(1.5 * (logits - 1)), m) / 3
    got = interaction_energy(Attention(1.5, query=q, key=k), TOKENS)
    np.testing.assert_allclose(got, expected, rtol=1e-13)
    moving = Attention(1.5, query=lambda t: t * jax.numpy.asarray(q, t.dtype), key=k)
    np.testing.assert_allclose(interaction_energy(moving, TOKENS, 1.0), expected, rtol=1e-13)
    np.testing.assert_allclose(
        interaction_energy(af.Attention(3.0), TOKENS), af.observe.energy0(TOKENS, 3.0), rtol=1e-13
    )
    many = af.uniform(af.Sphere(3), n=2100, seed=1)
    np.testing.assert_allclose(interaction_energy(af.Attention(3.0), many), af.observe.energy0(many, 3.0), rtol=1e-13)


def test_rate_of_plain_attention_is_its_dissipation():
    for field in (af.Attention(3.0), af.Attention(3.0, normaliser=USA0)):
        np.testing.assert_allclose(energy_rate(field, TOKENS), af.observe.dissipation(field, TOKENS), rtol=1e-12)
    assert energy_rate(af.Attention(3.0, value=-np.eye(3)), TOKENS) < 0


def test_refusals():
    with pytest.raises(InvalidInput, match="belongs to Attention"):
        energy_rate(af.Attention(1.0) + af.Attention(2.0), TOKENS)
    with pytest.raises(InvalidInput, match="`beta` is 0"):
        interaction_energy(af.Attention(0.0), TOKENS)
    with pytest.raises(InvalidInput, match="the field of one member"):
        interaction_energy(af.Attention(af.Along("beta", [1.0, 2.0])), TOKENS)
    with pytest.raises(InvalidInput, match="`query` has shape"):
        interaction_energy(af.Attention(1.0, query=np.ones((2, 5))), TOKENS)

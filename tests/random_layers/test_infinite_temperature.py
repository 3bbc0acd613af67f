"""Infinite temperature, where the density given the heads is a Poisson kernel that boosts move."""

import itertools

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.random_layers import PoissonKernel, boost, conditional_density, conditional_mean, random_attention
from tests.marks import graded


def setting(h, tau):
    """(step, until) of H = 1: eta = sqrt(h), L = tau/h layers."""
    step = np.sqrt(h)
    return step, step * round(tau / h)


def seeds(count):
    return af.Along("seed", range(count))


@af.in_float64
@eqx.filter_jit
def values(field, times, count):
    """V of every layer for the seeds 0, ..., count - 1: (seed, layer, 2, 2)."""
    weight = field.value.weight

    def one(seed):
        own = eqx.tree_at(lambda w: w.seed, weight, seed, is_leaf=lambda node: isinstance(node, af.Along))
        return eqx.filter_vmap(lambda t: own.at(t, float))(times)

    return eqx.filter_vmap(one)(jnp.arange(count))


def against_boosts(h, count=32, tau=0.5):
    """rms distance of c_1 to the boosts by the same V, and rms |c_2 - c_1^2|, at beta = 0 from a Poisson kernel."""
    step, until = setting(h, tau)
    field = random_attention(2, 0.0, step=step, seed=seeds(count))
    found = conditional_density(field, PoissonKernel([0.5, 0.0]), until, step=step, labels=64).fourier(2)[:, -1]
    layers = round(until / step)
    v = np.asarray(values(field, step * np.arange(layers) * (1 + 1e-15), count))
    w = np.tile([0.5, 0.0], (count, 1))
    for k in range(layers):
        w = np.asarray(boost(w, step * np.einsum("sab,sb->sa", v[:, k], w)))
    apart = np.abs(found[:, 1] - w @ [1, 1j])
    return np.sqrt(np.mean(apart**2)), np.sqrt(np.mean(np.abs(found[:, 2] - found[:, 1] ** 2) ** 2)), np.abs(w).max()


@graded("steps", [(0.04, 0.01), pytest.param((0.04, 0.01, 0.0025), marks=pytest.mark.slow)])
def test_without_temperature_layers_approach_boosts_and_leave_the_family_at_order_one_half(steps):
    """Layers N(x + b) and boosts by the same b differ by <x, b> P_x b/2, of mean 0: O(sqrt h) along one path.

    So do c_2 and c_1^2, which are equal for Poisson kernels: .0136, .0069, .0032 at h = .04, .01, .0025 in the theory.
    A ratio of 2 for a quarter of the step; 32 paths of fixed seeds give it to a third.
    """
    found = [against_boosts(h) for h in steps]
    for (far, off, _), (near, on, moved) in itertools.pairwise(found):
        assert 1.4 < far / near < 3.0
        assert 1.4 < off / on < 3.0
        assert moved > 0.55
    assert 0.003 < found[0][1] < 0.03


@pytest.mark.slow
def test_two_levels():
    """E |mean|^2 of a Poisson kernel with u = 1/4 at tau = 1 is .283285, at beta = 0; 4 standard errors of the replicas.

    Layers h = .04 give .28321 in the theory. 48 labels with their masses stand for the density.
    """
    step, until = setting(0.04, 1.0)
    angles = 2 * np.pi * np.arange(48) / 48
    x = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    tokens = af.Tokens(x, PoissonKernel([0.5, 0.0]).density(x), space=af.Sphere(2))
    field = random_attention(2, 0.0, step=step, seed=seeds(500))
    found = conditional_mean(field, tokens, until, lambda t, mu: jnp.sum((mu.masses @ mu.positions) ** 2), step=step)
    assert found.values.dims == ("seed", "time")
    assert found.mean.dims == found.error.dims == ("time",)
    np.testing.assert_allclose(found.mean[0], 0.25, atol=1e-12)
    assert float(found.error[0]) < 1e-15
    u = found.values.values[:, -1]
    np.testing.assert_allclose(found.error[-1], u.std(ddof=1) / np.sqrt(500), rtol=1e-12)
    assert abs(float(found.mean[-1]) - 0.283285) < 4 * float(found.error[-1])
    assert float(found.error[-1]) < 0.008

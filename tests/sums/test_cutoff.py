import gc
import os
import signal
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnflow.errors import InvalidInput
from attnflow.interrupts import interruptible, raise_if_interrupted
from attnflow.kernels import Exponential
from attnflow.masks import Causal, Everyone
from attnflow.spaces import Sphere
from attnflow.sums import Cutoff, Moments, Tiled, Use, Weights
from attnflow.sums.cutoff import _Blocks, neighbours
from tests.conftest import rotation
from tests.marks import graded
from tests.sums.pairs import clouds, dense, derivatives_agree, evaluate, on_host, step_by_step

EPS = np.finfo(float).eps


@pytest.mark.parametrize("kind", ["uniform", "clusters", "coincident"])
@graded("beta", [0.0, 1e-3, 1.0, 30.0, 1e3, 1e4], fast=1)
def test_within_the_stated_bound_of_a_dense_sum(beta, kind):
    """What is left out is eps = tol min mass/4 for each unit of mass and charge."""
    for d in (2, 3, 6):
        rng = np.random.default_rng(int(beta) + d)
        y = clouds(kind, 700, d, beta, rng)
        x = np.concatenate([y[:100], clouds("uniform", 33, d, beta, rng)])
        masses, charges = rng.random(700) + 0.01, rng.standard_normal((700, 3))
        masses[7] = 0.0
        loads = np.sum(masses[:, None] * np.abs(charges), axis=0)
        for tol in (1e-3, 1e-12):
            got = on_host(Cutoff(tol), x, y, masses, charges, beta)
            eps = tol * np.min(masses[masses > 0]) / np.sum(masses) / 4
            # a logit is the sum of products of at most beta ball^2, where ball is the block of queries and the reach
            # around it, and is rounded a few times; the sum of 700 terms some more
            ball = np.max(_Blocks(x).radii) + min(Cutoff(tol).radius(beta, 4 * eps / tol), 2.0)
            rounding = EPS * (8 * beta * ball**2 + 40) * dense(x, y, masses, np.abs(charges), beta)
            assert np.all(np.abs(got - dense(x, y, masses, charges, beta)) <= eps * loads + rounding + 1e-15 * eps)


def test_it_leaves_out_what_is_far_and_nothing_else():
    """Two tokens: one just inside and one just outside of the radius, seen from the first."""
    total, beta = Cutoff(1e-2), 400.0
    radius = total.radius(beta, 0.5)
    assert np.exp(-beta * radius**2 / 2) == pytest.approx(1e-2 * 0.5 / 4)
    for factor, seen in ((0.99, 2), (1.05, 1)):
        angle = 2 * np.arcsin(factor * radius / 2)
        y = np.array([[1.0, 0.0], [np.cos(angle), np.sin(angle)]])
        assert neighbours(y, radius) == seen
    # far blocks are not looked at: their charges may be anything
    y = np.repeat(np.eye(3), 100, axis=0)
    charges = np.ones((300, 1))
    charges[100:] = 1e300
    got = on_host(Cutoff(1e-6), y[:1], y, np.ones(300), charges, 1e3)
    np.testing.assert_allclose(got, 100.0)


def test_small_tiles_give_the_same(faults):
    """Many tokens in one place go through several tiles."""
    rng = np.random.default_rng(1)
    y, masses = clouds("clusters", 1000, 3, 50.0, rng), rng.random(1000) + 0.1
    charges = rng.standard_normal((1000, 2))
    want = on_host(Cutoff(1e-12), y, y, masses, charges, 50.0)
    faults.replace("tile of neighbours", 128)
    faults.replace("products of a tile of neighbours", 1)
    got = on_host(Cutoff(1e-12, threads=1), y, y, masses, charges, 50.0)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-12 * np.sum(masses))


def test_rotations_and_the_number_of_neighbours():
    rng = np.random.default_rng(2)
    y, masses, turn = clouds("uniform", 600, 3, 0, rng), rng.random(600) + 0.5, rotation(3)
    first, second = (on_host(Cutoff(1e-9), z, z, masses, z, 300.0) for z in (y, y @ turn.T))
    np.testing.assert_allclose(second, first @ turn.T, atol=2 * 1e-9 * 1.5 / 4)
    cap = 5000
    many = clouds("uniform", cap, 3, 0, rng)
    # a cap of chord r has the part r^2/4 of S^2; the sample of 256 sees about 200 each
    assert neighbours(many, 0.4) == pytest.approx(cap * 0.04 * 1.0, rel=0.05)
    assert neighbours(many[:10], 2.0) == 10


@pytest.mark.slow
def test_derivatives_are_those_of_the_other_sum():
    rng = np.random.default_rng(5)
    y, masses = clouds("clusters", 12, 4, 5.0, rng), rng.random(12) + 0.5
    with jax.enable_x64(True):  # second derivatives of order 1e3, tol 1e-13
        derivatives_agree(Cutoff(1e-13, exact=Tiled(4, 4)), y, masses, lambda z: z, rng, 1e-10)


def test_batches_of_beta_and_floats_of_32_bits():
    rng = np.random.default_rng(6)
    y, masses = clouds("uniform", 200, 3, 0, rng), np.full(200, 1 / 200)
    total = Cutoff(1e-9)
    with jax.enable_x64(True):
        together = jax.vmap(lambda beta: evaluate(total, y, y, masses, y, beta, True))(jnp.asarray([1.0, 90.0]))
        for beta, got in zip((1.0, 90.0), together, strict=True):
            # the mass 1/200 goes through its logarithm, of size 5
            np.testing.assert_allclose(got, on_host(total, y, y, np.ones(200), y, beta) / 200, rtol=1e-14, atol=1e-16)
        got = evaluate(Cutoff(1e-5), *(a.astype(np.float32) for a in (y, y, masses, y)), 90.0, True)
    assert got.dtype == jnp.float32
    # rounded tokens are off by 6e-8, which the kernel magnifies by at most sqrt(beta)
    np.testing.assert_allclose(got, together[1], atol=1e-5 / 800 + 1e-6)


def test_what_it_cannot_do():
    y = np.eye(3)
    with jax.enable_x64(True):
        side = (jnp.asarray(y), jnp.arange(3))
        with pytest.raises(InvalidInput, match="does not support the mask Causal; use sum=Tiled"):
            Cutoff(1e-9)(Weights(Exponential(jnp.asarray(1.0)), Causal(), True), side, side, jnp.zeros(3), Moments())
        assert np.all(np.isnan(on_host(Cutoff(1e-9), y, y, np.ones(3), y, -1.0)))
        # a query that sees less than the least mass is not trusted
        total, weights = Cutoff(1e-9), Weights(Exponential(jnp.asarray(30.0)), Everyone())
        for x, answer in ((y[:1], True), (-y[:1], False)):
            seen = jnp.asarray(on_host(total, x, y, np.ones(3), np.ones((3, 1)), 30.0)[:, 0])
            arguments = (weights, (jnp.asarray(x), jnp.arange(1)), side, jnp.zeros(3), Moments())
            assert bool(total.trusted(arguments, jnp.zeros(1), seen)) is answer


def test_errors_and_interrupts_come_through(faults):
    def run():
        with jax.enable_x64(True), interruptible():
            step_by_step(Cutoff(1e-9), np.eye(3), np.eye(3), np.ones(3), np.eye(3), 1.0, True).block_until_ready()

    faults.fail("sums over neighbours", InvalidInput("a message of ours"))
    with pytest.raises(jax.errors.JaxRuntimeError, match="a message of ours"):
        run()
    faults.replace("sums over neighbours", lambda *args, **options: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        run()


def test_an_interrupt_that_the_garbage_collector_drops_is_heard():
    hits = []

    def collecting(phase, info):
        if not hits:
            hits.append(phase)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)  # here it is raised, and dropped

    def run():
        with interruptible():
            gc.collect()
            assert hits  # nothing was raised here
            raise_if_interrupted()

    gc.callbacks.append(collecting)
    try:
        with pytest.raises(KeyboardInterrupt):
            run()
    finally:
        gc.callbacks.remove(collecting)
    assert hits


def test_what_it_states():
    """What is left out is tol/4 of the least mass; a mask is refused before anything is computed."""
    masses = jnp.asarray([0.5, 0.3, 0.2])
    assert float(Cutoff(1e-6).error(Exponential(1.0), masses)) == pytest.approx(0.25e-6 * 0.2, rel=1e-6)
    assert "Causal" in Cutoff(1e-6).refusal(Use(Sphere(3), Exponential(1.0), Causal(), True, True), None)
    assert not Cutoff(1e-6).refusal(Use(Sphere(3), Exponential(1.0), Everyone(), True, True), None)

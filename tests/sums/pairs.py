"""What the tests of sums on the host have in common: clouds of tokens, the sum over all pairs, and derivatives."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow.kernels import Exponential
from attnflow.masks import Everyone
from attnflow.sums import Columns, Moments, Tiled, Weights
from attnflow.sums.host import _answer


def unit(v):
    return v / np.linalg.norm(v, axis=-1, keepdims=True)


def dense(x, y, masses, charges, beta):
    return (masses * np.exp(-0.5 * beta * np.sum((x[:, None] - y) ** 2, axis=2))) @ charges


def clouds(kind, n, d, beta, rng):
    """Uniform, in clusters of the size of the kernel, or coincident at the last basis vector and elsewhere."""
    if kind == "uniform":
        return unit(rng.standard_normal((n, d)))
    centres = unit(rng.standard_normal((3, d)))
    centres[0] = np.eye(d)[-1]
    chosen = centres[rng.integers(3, size=n)]
    return chosen if kind == "coincident" else unit(chosen + rng.standard_normal((n, d)) / np.sqrt(3 + beta))


def as_charges(charges, convert):
    """Charges as sums take them: `Moments()`, or the columns of an array."""
    return charges if isinstance(charges, Columns | Moments) else Columns(convert(charges))


@eqx.filter_jit
def numbers(total, beta):
    """What a sum on the host reads of the kernel e^(beta (<x, y> - 1)); one program for all beta."""
    return total._numbers(Exponential(beta))[1]


def on_host(total, x, y, masses, charges, beta):
    """The sum without JAX around it."""
    with jax.enable_x64(True):
        kernel = jax.tree.map(np.asarray, numbers(total, beta))
    with np.errstate(divide="ignore"):
        return _answer(total._work(), x is y, kernel, total.tol, x, y, np.log(masses), as_charges(charges, np.asarray))


def step_by_step(total, x, y, masses, charges, beta, at_tokens=False):
    """The sum inside of JAX."""
    side = [(jnp.asarray(points), jnp.zeros(len(points), jnp.int32)) for points in (x, y)]
    weights = Weights(Exponential(jnp.asarray(beta, x.dtype)), Everyone(), at_tokens)
    log_mass = jnp.where(masses > 0, jnp.log(jnp.where(masses > 0, masses, 1)), -jnp.inf)
    scale, sums = total(weights, *side, log_mass, as_charges(charges, jnp.asarray))
    return jnp.exp(scale)[:, None] * sums


evaluate = eqx.filter_jit(step_by_step)


def derivatives_agree(total, y, masses, charged, rng, atol):
    """First and second derivatives of a square of the sums, in tokens and beta, are those of tiles."""
    n = len(y)
    step = jnp.asarray(rng.standard_normal(y.shape))

    def energy(total, z, beta):
        side = (z, jnp.zeros(n, jnp.int32))
        scale, sums = total(
            Weights(Exponential(beta), Everyone(), True),
            side,
            side,
            jnp.log(jnp.asarray(masses)),
            as_charges(charged(z), jnp.asarray),
        )
        return jnp.sum((jnp.exp(scale)[:, None] * sums) ** 2)

    @jax.jit
    def all_orders(total):
        both = jax.grad(jax.jit(lambda z, b, t: energy(t, z, b)), argnums=(0, 1))  # the sum itself is traced
        at = (jnp.asarray(y), jnp.asarray(5.0))
        first, second = jax.jvp(lambda z: both(z, at[1], total), (at[0],), (step,))
        forward = jax.jvp(lambda b: energy(total, at[0], b), (at[1],), (jnp.ones_like(at[1]),))[1]
        return *first, *second, forward

    for got, want in zip(all_orders(total), all_orders(Tiled()), strict=True):
        np.testing.assert_allclose(got, want, atol=atol)

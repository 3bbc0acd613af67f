"""A noise in one file: common, matrix-valued, depending on position and measure. Load it with `--plugin noise.py`."""

import jax
import jax.numpy as jnp

import attnflow as af
from attnflow.flows import AbstractIto, AbstractStratonovich


@af.register("noise", "tumble")
class Tumble(AbstractIto, AbstractStratonovich):
    """dX = sqrt(2 kappa) |m| A X with the mean m of all tokens and A = (dW - dW^T)/sqrt(2), W a matrix.

    A turns all tokens together, so that overlaps and |m| stay, and each token alone is Brownian motion on the sphere with
    kappa |m|^2. A rotation does not change |m|, and its generator has no drift: Ito and Stratonovich are the same.
    """

    kappa: float = 0.5
    seed: int = 0

    def driver(self, mu):
        return jax.ShapeDtypeStruct((mu.dim, mu.dim), mu.positions.dtype)

    def push(self, t, query, mu, w):
        size = jnp.linalg.norm(jnp.asarray(mu.masses) @ mu.positions)
        return size * (query.points(mu) @ (w.T - w)) / jnp.sqrt(jnp.asarray(2, w.dtype))

    def check(self, tokens):
        pass

"""Rotations: the space SO(3), in one file. Use it with `attnflow run FILE.toml --plugin space.py`."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import attnflow as af
from attnflow.spaces import AbstractSpace, Picture

HALF = 0.5**0.5
SKEW = HALF * np.array([[[0, 1, 0], [-1, 0, 0], [0, 0, 0]], [[0, 0, 1], [0, 0, 0], [-1, 0, 0]], [[0, 0, 0], [0, 0, 1], [0, -1, 0]]])  # fmt: skip
SYMMETRIC = np.concatenate([np.abs(SKEW), np.eye(3)[:, :, None] * np.eye(3)[:, None, :]])
LONGEST = 2 * 2**0.5


@af.register("space", "rotations")
class Rotations(AbstractSpace):
    """SO(3) in R^9: a matrix, row by row. Attention has the weights e^(beta (tr X^T Y - 1))."""

    dim: int = eqx.field(static=True, default=9)

    @property
    def dimension(self):
        return 3

    @property
    def is_riemannian(self):
        return True

    @property
    def volume(self):
        """8 pi^2 where distances are angles; here they are sqrt(2) times the angle."""
        return 8 * math.pi**2 * 2**1.5

    def tangent_basis(self, x):
        """X S for an orthonormal basis of skew matrices S."""
        return np.einsum("...ij,kjl->...kil", _matrix(np.asarray(x, float)), SKEW).reshape(*x.shape[:-1], 3, 9)

    @af.in_float64
    def normals(self, x):
        """X S for an orthonormal basis of symmetric matrices S."""
        x = jnp.asarray(x)
        return jnp.einsum("...ij,kjl->...kil", _matrix(x), jnp.asarray(SYMMETRIC, x.dtype)).reshape(*x.shape[:-1], 6, 9)

    @af.in_float64
    def tangent(self, x, v):
        """X (A - A^T)/2 with A = X^T V: the orthogonal projection."""
        x, v = map(_matrix, jnp.broadcast_arrays(x, v))
        a = jnp.swapaxes(x, -1, -2) @ v
        return (x @ (a - jnp.swapaxes(a, -1, -2)) / 2).reshape(*x.shape[:-2], 9)

    @af.in_float64
    def retract(self, x):
        """The nearest rotation to X, or to -X if det X < 0, by Newton's iteration X <- (X + X^-T)/2."""
        m = _matrix(jnp.asarray(x))
        m = jnp.sign(jnp.linalg.det(m))[..., None, None] * m

        def step(_, m):
            cofactors = jnp.cross(jnp.roll(m, -1, -2), jnp.roll(m, -2, -2))
            return (m + cofactors / jnp.sum(m * cofactors, axis=(-2, -1), keepdims=True) * 3) / 2

        return jax.lax.fori_loop(0, 12, step, m).reshape(*m.shape[:-2], 9)

    @af.in_float64
    def distance(self, x, y):
        """The length of the geodesic, sqrt(2) times the angle: |X - Y| = 2 sqrt(2) sin(angle/2)."""
        x, y = jnp.broadcast_arrays(x, y)
        return LONGEST * jnp.arcsin(jnp.minimum(jnp.linalg.norm(x - y, axis=-1) / LONGEST, 1.0))

    def chords(self, scale):
        if scale >= LONGEST * math.pi / 2:
            return (2 * scale / math.pi * (1 + 1e-12),) * 2
        return (LONGEST * math.sin(scale / LONGEST),) * 2

    def sample(self, rng, n):
        """The Haar law."""
        q, r = np.linalg.qr(rng.standard_normal((n, 3, 3)))
        q = q * np.sign(np.diagonal(r, axis1=1, axis2=2))[:, None, :]
        q[:, :, 0] *= np.linalg.det(q)[:, None]
        return q.reshape(n, 9)

    def defect(self, x):
        m = _matrix(x)
        off = np.linalg.norm(np.swapaxes(m, -1, -2) @ m - np.eye(3), axis=(-2, -1))
        return np.where(np.linalg.det(m) > 0, off, 1.0 + off)

    def pictures(self, x):
        """Where the three axes point."""
        return tuple(Picture(_matrix(np.asarray(x, float))[..., k], unit=True) for k in range(3))


def _matrix(x):
    return x.reshape(*x.shape[:-1], 3, 3)

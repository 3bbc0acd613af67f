"""R^d."""

import math

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow.precision import in_float64
from attnflow.spaces.base import AbstractSpace, Broadcast, Picture, Point, size


class Euclidean(AbstractSpace):
    """R^dim: tokens without layer norm."""

    dim: int = eqx.field(static=True)

    def __init__(self, dim: int):
        self.dim = size("Euclidean", "dim", dim, least=1)

    @property
    def dimension(self) -> int:
        """The number dim."""
        return self.dim

    @property
    def is_riemannian(self) -> bool:
        return True

    @property
    def volume(self) -> float:
        """Infinite; the reference measure is that of Lebesgue."""
        return math.inf

    def tangent_basis(self, x: Point) -> Float[np.ndarray, "*batch dimension dim"]:
        """The standard basis."""
        return np.broadcast_to(np.eye(self.dim), (*np.shape(x)[:-1], self.dim, self.dim)).copy()

    @in_float64
    def normals(self, x: Point) -> Float[Array | np.ndarray, "*batch codimension dim"]:
        """None."""
        x = jnp.asarray(x)
        return jnp.zeros((*x.shape[:-1], 0, self.dim), x.dtype)

    def tangent(self, x: Broadcast, v: Broadcast) -> Broadcast:
        """Every vector is tangent."""
        return v

    def retract(self, x: Point) -> Point:
        """Every point is on the space."""
        return x

    @in_float64
    def distance(self, x: Broadcast, y: Broadcast) -> Float[Array | np.ndarray, "*batch"]:
        """|x - y|."""
        x, y = jnp.broadcast_arrays(x, y)
        return jnp.linalg.norm(x - y, axis=-1)

    def chords(self, scale: float) -> tuple[float, float]:
        """The distance is the chord."""
        return scale, scale

    def sample(self, rng: np.random.Generator, n: int) -> Float[np.ndarray, "n dim"]:
        """Standard Gaussian (R^d has no uniform distribution)."""
        return rng.standard_normal((n, self.dim))

    def defect(self, x: Float[np.ndarray, "*batch dim"]) -> Float[np.ndarray, "*batch"]:
        """Zero."""
        return np.zeros(x.shape[:-1])

    def pictures(self, x: Float[np.ndarray, "*batch dim"]) -> tuple[Picture, ...]:
        """The points themselves."""
        return (Picture(np.asarray(x, dtype=np.float64), tuple(f"$x_{{{k + 1}}}$" for k in range(self.dim))),)

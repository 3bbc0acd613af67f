"""Where tokens live: the unit sphere of layer-normalised tokens, and R^d without layer norm."""

import abc

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow.errors import InvalidInput
from attnflow.precision import double

Point = Float[Array | np.ndarray, "*batch dim"]


class AbstractSpace(eqx.Module):
    """A submanifold of R^dim. Methods act on the last axis and broadcast over the others."""

    dim: eqx.AbstractVar[int]

    @abc.abstractmethod
    def tangent(self, x: Point, v: Point) -> Point:
        """The component of `v` tangent to the space at `x`."""

    @abc.abstractmethod
    def retract(self, x: Point) -> Point:
        """The point of the space nearest to `x`."""

    @abc.abstractmethod
    def distance(self, x: Point, y: Point) -> Float[Array | np.ndarray, "*batch"]:
        """Geodesic distance."""

    @abc.abstractmethod
    def sample(self, rng: np.random.Generator, n: int) -> Float[np.ndarray, "n dim"]:
        """`n` independent points of the reference law of the space."""

    @abc.abstractmethod
    def defect(self, x: Float[np.ndarray, "*batch dim"]) -> Float[np.ndarray, "*batch"]:
        """How far `x` is from lying on the space."""


class Sphere(AbstractSpace):
    """Unit sphere S^(dim-1) in R^dim, dim >= 2."""

    dim: int = eqx.field(static=True)

    def __init__(self, dim: int):
        self.dim = _dimension("Sphere", dim, least=2)

    @double
    def tangent(self, x: Point, v: Point) -> Point:
        """P_x v = v - <x, v> x."""
        x, v = jnp.broadcast_arrays(x, v)
        return v - jnp.sum(x * v, axis=-1, keepdims=True) * x

    @double
    def retract(self, x: Point) -> Point:
        """X / |x|. The zero vector has no nearest point: it gives NaN."""
        x = jnp.asarray(x)
        return x / jnp.linalg.norm(x, axis=-1, keepdims=True)

    @double
    def distance(self, x: Point, y: Point) -> Float[Array | np.ndarray, "*batch"]:
        """The angle 2 atan2(|x - y|, |x + y|), accurate for nearly equal and for nearly antipodal points.

        (arccos <x, y> loses half the digits at both ends.)
        """
        x, y = jnp.broadcast_arrays(x, y)
        return 2.0 * jnp.arctan2(jnp.linalg.norm(x - y, axis=-1), jnp.linalg.norm(x + y, axis=-1))

    def sample(self, rng: np.random.Generator, n: int) -> Float[np.ndarray, "n dim"]:
        """Uniform on the sphere."""
        gaussian = rng.standard_normal((n, self.dim))
        return gaussian / np.linalg.norm(gaussian, axis=-1, keepdims=True)

    def defect(self, x: Float[np.ndarray, "*batch dim"]) -> Float[np.ndarray, "*batch"]:
        """| |x| - 1 |."""
        return np.abs(np.linalg.norm(x, axis=-1) - 1.0)


class Euclidean(AbstractSpace):
    """R^dim: tokens without layer norm."""

    dim: int = eqx.field(static=True)

    def __init__(self, dim: int):
        self.dim = _dimension("Euclidean", dim, least=1)

    def tangent(self, x: Point, v: Point) -> Point:
        """Every vector is tangent."""
        return v

    def retract(self, x: Point) -> Point:
        """Every point is on the space."""
        return x

    @double
    def distance(self, x: Point, y: Point) -> Float[Array | np.ndarray, "*batch"]:
        """|x - y|."""
        x, y = jnp.broadcast_arrays(x, y)
        return jnp.linalg.norm(x - y, axis=-1)

    def sample(self, rng: np.random.Generator, n: int) -> Float[np.ndarray, "n dim"]:
        """Standard Gaussian (R^d has no uniform law)."""
        return rng.standard_normal((n, self.dim))

    def defect(self, x: Float[np.ndarray, "*batch dim"]) -> Float[np.ndarray, "*batch"]:
        """Zero."""
        return np.zeros(x.shape[:-1])


def _dimension(name: str, dim: int, least: int) -> int:
    if isinstance(dim, bool) or not isinstance(dim, int | np.integer) or dim < least:
        raise InvalidInput(f"`dim` of {name} is {dim!r}; give an integer of at least {least}.")
    return int(dim)

"""Products of spaces: points side by side, distances added as squares. The flat torus is the product of circles."""

import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow.checks import shown
from attnflow.errors import InvalidInput
from attnflow.precision import in_float64
from attnflow.spaces.base import AbstractSpace, Broadcast, Picture, Point, size
from attnflow.spaces.spheres import Sphere

CIRCLE = Sphere(2)


class Torus(AbstractSpace):
    """The flat torus (S^1)^circles in R^(2 circles): points (cos a_1, sin a_1, cos a_2, sin a_2, ...).

    Attention with the exponential kernel has the weights e^(beta (sum_i cos(a_i - b_i) - 1)) there.
    """

    circles: int = eqx.field(static=True)
    dim: int = eqx.field(static=True, repr=False)

    def __init__(self, circles: int):
        self.circles = size("Torus", "circles", circles, least=1)
        self.dim = 2 * self.circles

    @property
    def dimension(self) -> int:
        """The number of circles."""
        return self.circles

    @property
    def is_riemannian(self) -> bool:
        return True

    @property
    def volume(self) -> float:
        """(2 pi)^circles."""
        return CIRCLE.volume**self.circles

    def at(self, angles: Any) -> Float[np.ndarray, "*batch dim"]:
        """The points with these angles, an array whose last axis has one angle for each circle."""
        a = np.asarray(angles, dtype=np.float64)
        if a.shape[-1:] != (self.circles,):
            raise InvalidInput(f"`angles` has shape {a.shape}; give a last axis of length {self.circles}.")
        return self._joined(np.stack([np.cos(a), np.sin(a)], axis=-1))

    def angles(self, x: Point) -> Float[np.ndarray, "*batch circles"]:
        """The angles of points, in (-pi, pi]."""
        pairs = self._pairs(np.asarray(x, dtype=np.float64))
        return np.arctan2(pairs[..., 1] + 0.0, pairs[..., 0])  # + 0.0: no angle -pi from a coordinate -0.0

    def tangent_basis(self, x: Point) -> Float[np.ndarray, "*batch dimension dim"]:
        """The unit vector (-sin a_i, cos a_i) in the plane of each circle."""
        pairs = self._pairs(np.asarray(x, dtype=np.float64))
        return self._joined(np.eye(self.circles)[..., None] * CIRCLE.tangent_basis(pairs)[..., None, :, 0, :])

    @in_float64
    def normals(self, x: Point) -> Float[Array | np.ndarray, "*batch codimension dim"]:
        """The unit vector (cos a_i, sin a_i) in the plane of each circle."""
        x = jnp.asarray(x)
        return _blocks(jnp, [self._pairs(x)[..., k : k + 1, :] for k in range(self.circles)])

    @in_float64
    def tangent(self, x: Broadcast, v: Broadcast) -> Point:
        """P_x v, circle by circle."""
        x, v = jnp.broadcast_arrays(x, v)
        return self._joined(CIRCLE.tangent(self._pairs(x), self._pairs(v)))

    @in_float64
    def retract(self, x: Point) -> Point:
        """Each pair of coordinates over its norm. A pair (0, 0) has no angle: it gives NaN."""
        return self._joined(CIRCLE.retract(self._pairs(jnp.asarray(x))))

    @in_float64
    def distance(self, x: Broadcast, y: Broadcast) -> Float[Array | np.ndarray, "*batch"]:
        """The root of the sum of the squared differences of the angles, each at most pi."""
        x, y = jnp.broadcast_arrays(x, y)
        return jnp.linalg.norm(CIRCLE.distance(self._pairs(x), self._pairs(y)), axis=-1)

    def chords(self, scale: float) -> tuple[float, float]:
        """Chords at one distance are shortest along one circle, and longest where all angles change alike."""
        even = math.sqrt(self.circles)
        return CIRCLE.chords(scale)[0], even * CIRCLE.chords(scale / even)[1]

    def sample(self, rng: np.random.Generator, n: int) -> Float[np.ndarray, "n dim"]:
        """Independent uniform angles."""
        return CIRCLE.sample(rng, n * self.circles).reshape(n, self.dim)

    def defect(self, x: Float[np.ndarray, "*batch dim"]) -> Float[np.ndarray, "*batch"]:
        """The root of the sum of the squared defects of the circles."""
        return np.linalg.norm(CIRCLE.defect(self._pairs(x)), axis=-1)

    def pictures(self, x: Float[np.ndarray, "*batch dim"]) -> tuple[Picture, ...]:
        """The circle itself; of more circles the squares (a_1, a_2), (a_3, a_4), ... of angles."""
        if self.circles == 1:
            return CIRCLE.pictures(x)
        angles = self.angles(x)
        firsts = sorted({min(k, self.circles - 2) for k in range(0, self.circles, 2)})
        return tuple(
            Picture(angles[..., k : k + 2], (f"$a_{{{k + 1}}}$", f"$a_{{{k + 2}}}$"), (-math.pi, math.pi))
            for k in firsts
        )

    def _pairs(self, x: Any) -> Any:
        return x.reshape(*x.shape[:-1], self.circles, 2)

    def _joined(self, pairs: Any) -> Any:
        return pairs.reshape(*pairs.shape[:-2], self.dim)


class Product(AbstractSpace):
    """The product of spaces: a point is the points of the factors, one after the other in R^(sum of their dim).

    Everything is done factor by factor; distance(x, y)^2 is the sum of the squared distances. The factors of a factor
    that is a product are factors themselves.
    """

    factors: tuple[AbstractSpace, ...]
    dim: int = eqx.field(static=True, repr=False)

    def __init__(self, *factors: AbstractSpace):
        for k, factor in enumerate(factors):
            if not isinstance(factor, AbstractSpace):
                raise InvalidInput(
                    f"factor {k} of Product is {shown(factor)}; give spaces, as in Product(Sphere(3), Torus(1))."
                )
        if not factors:
            raise InvalidInput("Product has no factors; give at least one space.")
        self.factors = tuple(f for one in factors for f in (one.factors if isinstance(one, Product) else (one,)))
        self.dim = sum(factor.dim for factor in self.factors)

    @property
    def dimension(self) -> int:
        """The sum of those of the factors."""
        return sum(factor.dimension for factor in self.factors)

    @property
    def is_riemannian(self) -> bool:
        return all(factor.is_riemannian for factor in self.factors)

    @property
    def volume(self) -> float:
        """The product of those of the factors."""
        return math.prod(factor.volume for factor in self.factors)

    def parts(self, x: Any) -> list[Any]:
        """The coordinates of the points `x`, factor by factor."""
        ends = np.cumsum([factor.dim for factor in self.factors])
        return [x[..., end - factor.dim : end] for factor, end in zip(self.factors, ends, strict=True)]

    def tangent_basis(self, x: Point) -> Float[np.ndarray, "*batch dimension dim"]:
        """The frames of the factors, with zeros for the coordinates of the others."""
        frames = [factor.tangent_basis(part) for factor, part in self._each(np.asarray(x, dtype=np.float64))]
        return _blocks(np, frames)

    @in_float64
    def normals(self, x: Point) -> Float[Array | np.ndarray, "*batch codimension dim"]:
        """The normals of the factors, with zeros for the coordinates of the others."""
        return _blocks(jnp, [factor.normals(part) for factor, part in self._each(jnp.asarray(x))])

    @in_float64
    def tangent(self, x: Broadcast, v: Broadcast) -> Point:
        """Factor by factor."""
        x, v = jnp.broadcast_arrays(x, v)
        triples = zip(self.factors, self.parts(x), self.parts(v), strict=True)
        return jnp.concatenate([factor.tangent(point, vector) for factor, point, vector in triples], axis=-1)

    @in_float64
    def retract(self, x: Point) -> Point:
        """Factor by factor."""
        return jnp.concatenate([factor.retract(part) for factor, part in self._each(jnp.asarray(x))], axis=-1)

    @in_float64
    def distance(self, x: Broadcast, y: Broadcast) -> Float[Array | np.ndarray, "*batch"]:
        """The root of the sum of the squared distances."""
        x, y = jnp.broadcast_arrays(x, y)
        triples = zip(self.factors, self.parts(x), self.parts(y), strict=True)
        return jnp.linalg.norm(jnp.stack([factor.distance(a, b) for factor, a, b in triples], axis=-1), axis=-1)

    def chords(self, scale: float) -> tuple[float, float]:
        """The least sure chord; `scale` times the largest ratio of chord and distance, which near points have."""
        small = 1e-6 * scale
        return (
            min(factor.chords(scale)[0] for factor in self.factors),
            scale * max(factor.chords(small)[1] / small for factor in self.factors),
        )

    def sample(self, rng: np.random.Generator, n: int) -> Float[np.ndarray, "n dim"]:
        """Independent points of the factors."""
        return np.concatenate([factor.sample(rng, n) for factor in self.factors], axis=-1)

    def defect(self, x: Float[np.ndarray, "*batch dim"]) -> Float[np.ndarray, "*batch"]:
        """The root of the sum of the squared defects."""
        return np.linalg.norm([factor.defect(part) for factor, part in self._each(x)], axis=0)

    def pictures(self, x: Float[np.ndarray, "*batch dim"]) -> tuple[Picture, ...]:
        """The pictures of the factors."""
        return tuple(picture for factor, part in self._each(x) for picture in factor.pictures(part))

    def _each(self, x: Any) -> Any:
        return zip(self.factors, self.parts(x), strict=True)


def _blocks(xp: Any, rows: list[Any]) -> Any:
    """Matrices (..., rows, columns) along a diagonal, with zeros elsewhere."""
    total, before, wide = sum(block.shape[-1] for block in rows), 0, []
    for block in rows:
        after = total - before - block.shape[-1]
        wide.append(xp.pad(block, [*[(0, 0)] * (block.ndim - 1), (before, after)]))
        before += block.shape[-1]
    return xp.concatenate(wide, axis=-2)

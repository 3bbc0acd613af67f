"""The images of layer norms: spheres, ellipsoids, centred spheres."""

import math
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow.checks import reals, shown
from attnflow.errors import InvalidInput
from attnflow.precision import in_float64
from attnflow.spaces.base import AbstractSpace, Broadcast, Picture, Point, size


class Sphere(AbstractSpace):
    """Unit sphere S^(dim-1) in R^dim, dim >= 2."""

    dim: int = eqx.field(static=True)

    def __init__(self, dim: int):
        self.dim = size("Sphere", "dim", dim, least=2)

    @property
    def dimension(self) -> int:
        """The number dim - 1."""
        return self.dim - 1

    @property
    def is_riemannian(self) -> bool:
        return True

    @property
    def volume(self) -> float:
        """2 pi^(dim/2) / Gamma(dim/2)."""
        return 2 * math.exp(self.dim / 2 * math.log(math.pi) - math.lgamma(self.dim / 2))

    def tangent_basis(self, x: Point) -> Float[np.ndarray, "*batch dimension dim"]:
        """The rows of the reflection that carries the last basis vector to x or -x, except for the last row."""
        x = np.asarray(x, dtype=np.float64)
        return _complement(x, np.full(x.shape[:-1], self.dim - 1))

    @in_float64
    def normals(self, x: Point) -> Float[Array | np.ndarray, "*batch codimension dim"]:
        """The point x itself."""
        return jnp.asarray(x)[..., None, :]

    @in_float64
    def tangent(self, x: Broadcast, v: Broadcast) -> Point:
        """P_x v = v - <x, v> x."""
        x, v = jnp.broadcast_arrays(x, v)
        return v - jnp.sum(x * v, axis=-1, keepdims=True) * x

    @in_float64
    def retract(self, x: Point) -> Point:
        """x / |x|. The zero vector has no nearest point: it gives NaN."""
        x = jnp.asarray(x)
        return x / jnp.linalg.norm(x, axis=-1, keepdims=True)

    @in_float64
    def distance(self, x: Broadcast, y: Broadcast) -> Float[Array | np.ndarray, "*batch"]:
        """The angle 2 atan2(|x - y|, |x + y|), accurate for nearly equal and for nearly antipodal points.

        (arccos <x, y> loses half the digits at both ends.)
        """
        x, y = jnp.broadcast_arrays(x, y)
        return 2.0 * jnp.arctan2(jnp.linalg.norm(x - y, axis=-1), jnp.linalg.norm(x + y, axis=-1))

    def chords(self, scale: float) -> tuple[float, float]:
        """2 sin(scale/2), both; from scale = pi on, more than the diameter 2."""
        chord = 2 * math.sin(scale / 2) if scale < math.pi else 2 * scale / math.pi * (1 + 1e-12)
        return chord, chord

    def sample(self, rng: np.random.Generator, n: int) -> Float[np.ndarray, "n dim"]:
        """Uniform on the sphere."""
        gaussian = rng.standard_normal((n, self.dim))
        return gaussian / np.linalg.norm(gaussian, axis=-1, keepdims=True)

    def defect(self, x: Float[np.ndarray, "*batch dim"]) -> Float[np.ndarray, "*batch"]:
        """| |x| - 1 |."""
        return np.abs(np.linalg.norm(x, axis=-1) - 1.0)

    def pictures(self, x: Float[np.ndarray, "*batch dim"]) -> tuple[Picture, ...]:
        """The points themselves."""
        return (Picture(np.asarray(x, dtype=np.float64), unit=True),)


class Ellipsoid(AbstractSpace):
    """Points radius gain * theta, |theta| = 1: the image of RMS norm with a gain per coordinate (arXiv:2510.22026).

    Points move onto it along rays from the origin: dividing by the gain makes it a round sphere, on which everything
    is as on `Sphere`. In a network radius = sqrt(dim). A layer x <- retract(x + h A) converges to
    dx/dt = tangent(x, A) at order 1. (The rule x <- radius gain * N(x + h A), which does not divide by the gain, is
    not the identity at h = 0 and has no flow.) `gain` is compiled in: another gain is another space.
    """

    dim: int = eqx.field(static=True)
    gain: tuple[float, ...] = eqx.field(static=True)
    radius: float = eqx.field(static=True)

    def __init__(self, gain: Sequence[float] | np.ndarray, radius: float = 1.0):
        self.gain = _gains("Ellipsoid", gain)
        self.dim = size("Ellipsoid", "dim", len(self.gain), least=2)
        self.radius = _radius("Ellipsoid", radius)

    @property
    def dimension(self) -> int:
        """The number dim - 1."""
        return self.dim - 1

    @property
    def is_riemannian(self) -> bool:
        return len(set(self.gain)) == 1

    @property
    def volume(self) -> float:
        """The volume of the round sphere of this radius: radius^(dim-1) |S^(dim-1)|."""
        return self.radius**self.dimension * Sphere(self.dim).volume

    def tangent_basis(self, x: Point) -> Float[np.ndarray, "*batch dimension dim"]:
        """A basis of the vectors gain * w with <w, theta> = 0: those orthogonal to theta / gain."""
        normal = _unit(_theta(self, x) * _shrunk(self.gain))
        return _complement(normal, np.argmax(np.abs(normal), axis=-1))

    @in_float64
    def normals(self, x: Point) -> Float[Array | np.ndarray, "*batch codimension dim"]:
        """The ray of x."""
        return jnp.asarray(x)[..., None, :]

    @in_float64
    def tangent(self, x: Broadcast, v: Broadcast) -> Point:
        """The vector gain * P_theta(v / gain): the part of `v` along the ray of `x` is removed."""
        x, v = jnp.broadcast_arrays(x, v)
        theta, v = self._round(x) / self.radius, self._round(v)
        return self._stretched(v - jnp.sum(theta * v, axis=-1, keepdims=True) * theta)

    @in_float64
    def retract(self, x: Point) -> Point:
        """The point radius gain * N(x / gain), on the ray of `x`. The zero vector has no ray: it gives NaN."""
        x = self._round(jnp.asarray(x))
        return self._stretched(self.radius * (x / jnp.linalg.norm(x, axis=-1, keepdims=True)))

    @in_float64
    def distance(self, x: Broadcast, y: Broadcast) -> Float[Array | np.ndarray, "*batch"]:
        """The radius times the angle of the two theta: the geodesic distance after division by the gain.

        (Not the length of a path on the ellipsoid, which has no closed form.)
        """
        x, y = jnp.broadcast_arrays(x, y)
        x, y = self._round(x), self._round(y)
        angle = 2.0 * jnp.arctan2(jnp.linalg.norm(x - y, axis=-1), jnp.linalg.norm(x + y, axis=-1))
        return self.radius * angle

    def chords(self, scale: float) -> tuple[float, float]:
        """The chords of the round sphere, stretched by the least and by the largest gain."""
        chord = self.radius * Sphere(self.dim).chords(scale / self.radius)[0]
        return min(self.gain) * chord, max(self.gain) * chord

    def sample(self, rng: np.random.Generator, n: int) -> Float[np.ndarray, "n dim"]:
        """Uniform theta on the unit sphere."""
        return self.radius * np.asarray(self.gain) * Sphere(self.dim).sample(rng, n)

    def defect(self, x: Float[np.ndarray, "*batch dim"]) -> Float[np.ndarray, "*batch"]:
        """| |theta| - 1 | for theta = x / (radius gain)."""
        return np.abs(np.linalg.norm(x / np.asarray(self.gain), axis=-1) / self.radius - 1.0)

    def pictures(self, x: Float[np.ndarray, "*batch dim"]) -> tuple[Picture, ...]:
        """The unit vectors theta."""
        return (Picture(_theta(self, x), unit=True),)

    def _round(self, x: Any) -> Any:
        return x / jnp.broadcast_to(jnp.asarray(self.gain, x.dtype), x.shape)

    def _stretched(self, x: Any) -> Any:
        return x * jnp.broadcast_to(jnp.asarray(self.gain, x.dtype), x.shape)


class CentredSphere(AbstractSpace):
    """Points radius gain * theta with sum theta = 0 and |theta| = 1, dim >= 3: the image of LayerNorm, mean subtracted.

    A sphere S^(dim-2) in a hyperplane, stretched by the gain. LayerNorm in a network has radius = sqrt(dim). Without
    `gain`, retract is LayerNorm itself; with it, `x` is divided by the gain first, as on `Ellipsoid`.
    """

    dim: int = eqx.field(static=True)
    gain: tuple[float, ...] = eqx.field(static=True)
    radius: float = eqx.field(static=True)

    def __init__(self, dim: int, gain: Sequence[float] | np.ndarray | None = None, radius: float = 1.0):
        self.dim = size("CentredSphere", "dim", dim, least=3)
        self.gain = _gains("CentredSphere", np.ones(self.dim) if gain is None else gain)
        if len(self.gain) != self.dim:
            raise InvalidInput(
                f"`gain` of CentredSphere has length {len(self.gain)}; give {self.dim}, one per coordinate."
            )
        self.radius = _radius("CentredSphere", radius)

    @property
    def dimension(self) -> int:
        """The number dim - 2."""
        return self.dim - 2

    @property
    def is_riemannian(self) -> bool:
        return len(set(self.gain)) == 1

    @property
    def volume(self) -> float:
        """The volume of the round sphere of this radius: radius^(dim-2) |S^(dim-2)|."""
        return self.radius**self.dimension * Sphere(self.dim - 1).volume

    def tangent_basis(self, x: Point) -> Float[np.ndarray, "*batch dimension dim"]:
        """A basis of the vectors gain * w with sum w = 0 and <w, theta> = 0.

        They are orthogonal to 1 / gain and theta / gain. The first has the larger entries, so it is removed first; no
        entry of the second then loses more than rounding, however unequal the gains are.
        """
        weight = _shrunk(self.gain)
        hyperplane = _complement(_unit(weight), np.argmax(weight))
        normal = _unit((_theta(self, x) * weight) @ hyperplane.T)
        return _complement(normal, np.argmax(np.abs(normal), axis=-1)) @ hyperplane

    @in_float64
    def normals(self, x: Point) -> Float[Array | np.ndarray, "*batch codimension dim"]:
        """The ray of x, and the gain: what subtracting the mean removes."""
        x = jnp.asarray(x)
        return jnp.stack([x, jnp.broadcast_to(jnp.asarray(self.gain, x.dtype), x.shape)], axis=-2)

    @in_float64
    def tangent(self, x: Broadcast, v: Broadcast) -> Point:
        """The vector gain * P_theta C(v / gain), where C subtracts the mean."""
        return self._ellipsoid.tangent(x, self._centred(jnp.asarray(v)))

    @in_float64
    def retract(self, x: Point) -> Point:
        """The point radius gain * N(C(x / gain)), where C subtracts the mean. NaN if C(x / gain) = 0."""
        return self._ellipsoid.retract(self._centred(jnp.asarray(x)))

    def distance(self, x: Broadcast, y: Broadcast) -> Float[Array | np.ndarray, "*batch"]:
        """The radius times the angle of the two theta, as on `Ellipsoid`."""
        return self._ellipsoid.distance(x, y)

    def chords(self, scale: float) -> tuple[float, float]:
        """As on `Ellipsoid`."""
        return self._ellipsoid.chords(scale)

    def sample(self, rng: np.random.Generator, n: int) -> Float[np.ndarray, "n dim"]:
        """Uniform theta on the centred unit sphere."""
        gaussian = rng.standard_normal((n, self.dim))
        theta = gaussian - gaussian.mean(axis=-1, keepdims=True)
        return self.radius * np.asarray(self.gain) * (theta / np.linalg.norm(theta, axis=-1, keepdims=True))

    def defect(self, x: Float[np.ndarray, "*batch dim"]) -> Float[np.ndarray, "*batch"]:
        """The distance of theta = x / (radius gain) from the centred unit sphere."""
        theta = x / (self.radius * np.asarray(self.gain))
        mean = theta.mean(axis=-1, keepdims=True)
        return np.hypot(np.linalg.norm(theta - mean, axis=-1) - 1.0, np.sqrt(self.dim) * mean[..., 0])

    def pictures(self, x: Float[np.ndarray, "*batch dim"]) -> tuple[Picture, ...]:
        """The unit vectors theta, in an orthonormal basis of the hyperplane sum theta = 0."""
        return (Picture(_theta(self, x) @ _complement(np.full(self.dim, self.dim**-0.5), 0).T, unit=True),)

    @property
    def _ellipsoid(self) -> Ellipsoid:
        return Ellipsoid(self.gain, self.radius)

    def _centred(self, x: Any) -> Any:
        gain = jnp.broadcast_to(jnp.asarray(self.gain, x.dtype), x.shape)
        return x - gain * jnp.mean(x / gain, axis=-1, keepdims=True)


def _theta(space: "Ellipsoid | CentredSphere", x: Point) -> Float[np.ndarray, "*batch dim"]:
    return np.asarray(x, dtype=np.float64) / (space.radius * np.asarray(space.gain))


def _shrunk(gain: tuple[float, ...]) -> Float[np.ndarray, " dim"]:
    """1 / gain, relative to its largest entry."""
    return np.min(gain) / np.asarray(gain)


def _unit(x: Float[np.ndarray, "*batch dim"]) -> Float[np.ndarray, "*batch dim"]:
    x = x / np.max(np.abs(x), axis=-1, keepdims=True)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def _complement(normal: Float[np.ndarray, "*batch dim"], pivot: Any) -> Float[np.ndarray, "*batch rest dim"]:
    """An orthonormal basis of the vectors orthogonal to a unit vector, without cancellation.

    The reflection that carries the basis vector e_pivot to -normal or +normal, whichever is farther, is symmetric: its
    row `pivot` is the normal up to sign, and the other rows are the basis. With `pivot` at the largest entry each entry
    of the basis is accurate relative to its own size.
    """
    d = normal.shape[-1]
    at = np.arange(d) == np.asarray(pivot)[..., None]
    w = normal + np.where(at, np.where(normal >= 0, 1.0, -1.0), 0.0)
    reflection = np.eye(d) - 2 * w[..., :, None] * w[..., None, :] / np.sum(w**2, axis=-1)[..., None, None]
    return reflection[~at].reshape(*normal.shape[:-1], d - 1, d)


def _gains(name: str, gain: Sequence[float] | np.ndarray) -> tuple[float, ...]:
    try:
        values = np.asarray(gain, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"`gain` of {name} is {shown(gain)}; give one positive number per coordinate.") from None
    if values.ndim != 1:
        raise InvalidInput(f"`gain` of {name} has shape {values.shape}; give one positive number per coordinate.")
    bad = ~(np.isfinite(values) & (values > 0))
    if bad.any():
        where = int(np.argmax(bad))
        raise InvalidInput(f"`gain[{where}]` of {name} is {values[where]}; every gain must be finite and above 0.")
    return tuple(values.tolist())


def _radius(name: str, radius: float) -> float:
    found = reals(radius)
    if found is None or found.ndim or not 0 < found < np.inf:
        raise InvalidInput(f"`radius` of {name} is {shown(radius)}; give a positive finite number.")
    return float(found)

"""What every space knows of itself."""

import abc
import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from attnflow.checks import shown
from attnflow.errors import InvalidInput, TooLarge
from attnflow.feasible import LARGEST_DIM, limited

Point = Float[Array | np.ndarray, "*batch dim"]
Broadcast = Float[Array | np.ndarray, "*#batch dim"]
"""One of two points or vectors whose batch axes broadcast against each other."""


class Picture(NamedTuple):
    """Coordinates in which points of a space, or of one part of it, are drawn."""

    points: Float[np.ndarray, "*batch shown"]
    """Of more than three coordinates figures show principal components."""
    labels: tuple[str, ...] = ()
    """A name for each axis; without names no axes are drawn."""
    limits: tuple[float, float] | None = None
    """The range of every coordinate; None: the range of the points."""
    unit: bool = False
    """Whether the points lie on the unit circle or the unit sphere, which is then drawn."""


class AbstractSpace(eqx.Module):
    """A submanifold of R^dim. Methods act on the last axis and broadcast over the others.

    `tangent`, `retract`, `distance` and `normals` are used inside compiled code: they are written in JAX and keep the
    dtype of their arguments. The others work on the host, in float64.
    """

    dim: eqx.AbstractVar[int]
    """The dimension of R^dim."""

    def __str__(self) -> str:
        """On one line, as messages need it."""
        leaves, structure = jax.tree.flatten(self)
        return eqx.tree_pformat(self, width=10_000) if leaves else _on_one_line(structure)

    @property
    @abc.abstractmethod
    def dimension(self) -> int:
        """The dimension of the space itself: the number of directions in which a point can move."""

    @property
    @abc.abstractmethod
    def is_riemannian(self) -> bool:
        """Whether `tangent` is the orthogonal projection, so that P_X o dW is Brownian motion on the space.

        Then x -> retract(x + sqrt(2 kappa h) P_x xi), xi standard Gaussian, is a step of weak order 1 of Brownian
        motion with the generator kappa times the Laplacian.
        """

    @property
    @abc.abstractmethod
    def volume(self) -> float:
        """The total volume of the reference measure, which is that of `distance`; inf for R^d."""

    @abc.abstractmethod
    def tangent_basis(self, x: Point) -> Float[np.ndarray, "*batch dimension dim"]:
        """An orthonormal basis (in R^dim) of the tangent space at each point `x` of the space; on the host, float64."""

    @abc.abstractmethod
    def normals(self, x: Point) -> Float[Array | np.ndarray, "*batch codimension dim"]:
        """Vectors n_1, n_2, ... that `tangent` maps to 0 and that complete a tangent basis at `x` to one of R^dim.

        Up to a constant factor |det(v_1, v_2, ..., n_1, n_2, ...)| is the reference volume of tangent vectors v, and
        along the space the derivatives of the n have no part along the n (in the sense of the trace). Both hold for
        orthonormal vectors where `tangent` is the orthogonal projection. They make log-determinants of flow maps:
        div X is then the trace in R^dim of the derivative of X(retract(x)).
        """

    @abc.abstractmethod
    def tangent(self, x: Broadcast, v: Broadcast) -> Point:
        """The derivative of `retract` at the point `x` of the space, applied to `v`: the tangent part of `v`."""

    @abc.abstractmethod
    def retract(self, x: Point) -> Point:
        """The point of the space that `x` is moved to; points of the space stay where they are."""

    @abc.abstractmethod
    def distance(self, x: Broadcast, y: Broadcast) -> Float[Array | np.ndarray, "*batch"]:
        """Geodesic distance."""

    @abc.abstractmethod
    def chords(self, scale: float) -> tuple[float, float]:
        """(sure, possible), lengths in R^dim that say which points are within the distance `scale`.

        For points of the space, |x - y| <= r implies distance(x, y) <= scale r / sure wherever r <= sure, and
        distance(x, y) <= scale implies |x - y| <= possible; possible/scale does not grow with `scale`. Searches for
        neighbours use both; (0, inf) is always true and leaves every pair to `distance`.
        """

    @abc.abstractmethod
    def sample(self, rng: np.random.Generator, n: int) -> Float[np.ndarray, "n dim"]:
        """`n` independent points of the reference measure, divided by `volume` where that is finite."""

    @abc.abstractmethod
    def defect(self, x: Float[np.ndarray, "*batch dim"]) -> Float[np.ndarray, "*batch"]:
        """How far `x` is from lying on the space."""

    @abc.abstractmethod
    def pictures(self, x: Float[np.ndarray, "*batch dim"]) -> tuple[Picture, ...]:
        """How points `x` of the space are drawn: one picture, or one for each part of the space."""


def size(space: str, name: str, value: int, least: int) -> int:
    """The argument `name` of a space: an integer."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InvalidInput(f"`{name}` of {space} is {shown(value)}; give an integer of at least {least}.")
    if value > LARGEST_DIM and limited():
        raise TooLarge(f"`{name}` of {space} is {shown(value)}; give at most {LARGEST_DIM}.")
    return int(value)


@functools.lru_cache(maxsize=64)
def _on_one_line(structure: Any) -> str:
    """A space without arrays, in words."""
    return eqx.tree_pformat(jax.tree.unflatten(structure, []), width=10_000)

"""Fields whose flow is known exactly."""

import abc
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow import describe
from attnflow.axes import Along
from attnflow.errors import InvalidInput
from attnflow.fields.base import AbstractField, Laws
from attnflow.fields.queries import AbstractQuery, AtPoints, Points
from attnflow.fields.weights import AbstractWeight, Constant
from attnflow.spaces import AbstractSpace, Euclidean, Sphere
from attnflow.tokens import Measure, Tokens


class AbstractExact(AbstractField):
    """A field that knows its own flow between two jumps; the method `Exact` asks for it.

    `carry` and `stretching` are for one system and in JAX. No part of the field jumps between t0 and t1, but parts may
    jump at either of them, so weights are read in between, at (t0 + t1)/2. t1 < t0 is the inverse map.
    `check_parameters` refuses spaces and weights for which the flow is not known.

    `is_free`, `lipschitz` and `times` are what a schedule (`attnflow.control`) asks of its elements, on the host. There
    elements of one kind are one field whose arrays have a row for each of them in front, so both act on the last axes.
    """

    @abc.abstractmethod
    def carry(self, t0: Any, t1: Any, query: AbstractQuery, mu: Measure) -> Points:
        """The positions at time t1 of the points of `query` in the flow of the measure that is `mu` at time t0."""

    @abc.abstractmethod
    def stretching(self, t0: Any, t1: Any, query: AbstractQuery, mu: Measure) -> Float[Array, " query"]:
        """log|det D carry| at the points of `query`: of the map on the space, in the measure `mu`.

        `carry_stretching(self, t0, t1, query, mu)` finds it by automatic differentiation, with a determinant for every
        point; a closed form is faster.
        """

    @property
    @abc.abstractmethod
    def is_free(self) -> bool:
        """Whether no token feels another: the flow does not read the measure."""

    @abc.abstractmethod
    def lipschitz(self, space: AbstractSpace) -> Any:
        """A bound of the Lipschitz constant of the field on the space, for constant weights; nan if none is known.

        A number, or one for each row.
        """

    @abc.abstractmethod
    def times(self, factor: float) -> "AbstractExact":
        """The element whose field is `factor` times this one, for constant weights; -1 runs it backwards."""

    def flow(self, t0: Any, t1: Any, query: AbstractQuery, mu: Measure) -> tuple[Points, Float[Array, " query"]]:
        """(`carry`, `stretching`); an `AbstractJoint` field finds both at once."""
        return self.carry(t0, t1, query, mu), self.stretching(t0, t1, query, mu)


class AbstractJoint(AbstractExact):
    """A field that knows its own flow and finds the map and its log-determinant at once: it writes `flow` alone."""

    @abc.abstractmethod
    def flow(self, t0: Any, t1: Any, query: AbstractQuery, mu: Measure) -> tuple[Points, Float[Array, " query"]]:
        """(positions at time t1, log|det D|) of the points of `query`, as for `AbstractExact`."""

    def carry(self, t0: Any, t1: Any, query: AbstractQuery, mu: Measure) -> Points:
        return self.flow(t0, t1, query, mu)[0]

    def stretching(self, t0: Any, t1: Any, query: AbstractQuery, mu: Measure) -> Float[Array, " query"]:
        return self.flow(t0, t1, query, mu)[1]


def as_exact(field: AbstractField) -> AbstractExact:
    """The field, if it knows its own flow."""
    if not isinstance(field, AbstractExact):
        raise InvalidInput(
            f"`Exact` needs a field that knows its own flow, and {type(field).__name__} does not; use Adaptive()."
        )
    return field


def check_constant(field: AbstractExact, tokens: Tokens | Measure, **shapes: tuple[int, ...]) -> None:
    """Refuse spaces but R^d and the sphere, and weights of another shape or that change between their jumps."""
    name = type(field).__name__
    if not isinstance(tokens.space, Sphere | Euclidean):
        raise InvalidInput(f"`{name}` is for tokens on Sphere or Euclidean, not on {tokens.space}; use Perceptron.")
    for role, shape in shapes.items():
        weight = getattr(field, role)
        if weight is None:
            continue
        if weight.shape != shape:
            raise InvalidInput(f"`{role}` of {name} has shape {weight.shape}; give shape {shape}.")
        if not weight.is_piecewise:
            raise InvalidInput(
                f"`{role}` of {name} is {type(weight).__name__}, which changes between its jumps, so that the flow is "
                "not known; use Pieces or PerLayer, or the field Perceptron."
            )


def constant(weight: AbstractWeight) -> np.ndarray:
    """The numbers of a weight that is the same at all times and for all members."""
    if not isinstance(weight, Constant) or isinstance(weight.value, Along):
        raise InvalidInput(
            f"a weight is {describe.brief(weight)}, which changes with time or along a batch; give a plain array."
        )
    return np.asarray(weight.value, float)


def constant_laws(*weights: AbstractWeight | None, rotation: bool = False) -> Laws:
    """What fields promise in which no token's place matters: Lipschitz, and steady if no weight jumps."""
    steady = all(weight.is_continuous for weight in weights if weight is not None)
    return Laws(rotation=rotation, exchangeable=True, lipschitz=True, steady=steady)


def carry_stretching(field: AbstractExact, t0: Any, t1: Any, query: AbstractQuery, mu: Measure) -> Any:
    """log|det D carry| at the points of `query`, by automatic differentiation of `carry`."""

    def one(p: Any, place: Any) -> Any:
        there = None if place is None else place[None]
        return stretching(mu.space, lambda x: field.carry(t0, t1, AtPoints(x[None], there), mu)[0], p)

    return jax.vmap(one)(query.points(mu), query.place(mu))


def stretching(space: AbstractSpace, move: Callable[[Any], Any], p: Any) -> Any:
    """log|det D move| at the point `p`, for a map of `space` into itself, relative to its reference measure."""

    def at(x: Any) -> Any:
        return move(space.retract(x[None])[0])

    jacobian = jax.jacfwd(at)(p)
    if space.dimension == space.dim:
        return jnp.linalg.slogdet(jacobian)[1]
    # the normals at p go to those at the end: the determinant is that of the tangent map times det(n n^T)
    normals = space.normals(p)
    gram = jnp.linalg.slogdet(normals @ normals.T)[1]
    return jnp.linalg.slogdet(jacobian + space.normals(at(p)).T @ normals)[1] - gram

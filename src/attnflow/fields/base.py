"""What every field has in common. A new field writes `formula` and what it is made of; the rest follows."""

import abc
import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from attnflow.axes import members, over_members
from attnflow.errors import InvalidInput
from attnflow.fields import structure
from attnflow.fields.structure import Inner, Part
from attnflow.precision import double, full_precision, is_traced
from attnflow.spaces import AbstractSpace
from attnflow.tokens import Tokens, onto

Points = Float[Array | np.ndarray, "query dim"]
Queries = Float[Array | np.ndarray, "*own query dim"]
"""Points that all members of a batch share, or points of each member's own."""
Velocities = Float[Array | np.ndarray, "*batch query dim"]
"""A vector at each of the points, for each member of a batch."""
Places = Int[Array | np.ndarray, " query"]
F = TypeVar("F", bound="AbstractField")


class Laws(NamedTuple):
    """What a field promises; the conformance test holds it to it."""

    rotation: bool
    """drive(Rx, R mu) = R drive(x, mu) for every orthogonal R."""
    exchangeable: bool
    """Places do not matter: permuting the tokens permutes the drives."""
    lipschitz: bool
    """Lipschitz in the positions: the flow exists, and derivatives do almost everywhere."""
    steady: bool
    """Continuous in time, so that `Layers` converge to the flow at order 1."""

    def and_(self, other: "Laws") -> "Laws":
        """What two fields promise together."""
        return Laws(*(a and b for a, b in zip(self, other, strict=True)))


class AbstractField(eqx.Module):
    """X_t[mu](x), as an ambient vector (`drive`) and as a tangent one (`velocity`). Fields add as drives.

    A new field writes the four abstract members; everything else follows from them and is not overridden.
    """

    @abc.abstractmethod
    def formula(self, t: Any, x: Points, mu: Tokens, place: Places | None) -> Points:
        """The vector felt at the points `x` before projection, for one system (no batch dimensions), in JAX.

        `place` are the places of the query points; only masks and encodings read them.
        """

    @abc.abstractmethod
    def children(self, space: AbstractSpace) -> tuple[Part, ...]:
        """The fields inside this one and the sums that it needs, when it is evaluated on `space`; () if none.

        What can be said of a field as a whole (sums that do not apply, the error of sums) follows from these parts.
        """

    @abc.abstractmethod
    def check_parameters(self, tokens: Tokens) -> None:
        """Refuse, in one sentence, parameters of this field alone that do not fit these tokens."""

    @property
    @abc.abstractmethod
    def laws(self) -> Laws:
        """What this field promises."""

    def drive(self, t: Any, x: Points, mu: Tokens, place: Places | None = None) -> Points:
        """The vector felt at the points `x` before projection, for one system (no batch dimensions)."""
        if is_traced((self, t, x, mu, place)):
            return _formula(self, t, x, mu, place)
        if mu.dims:
            raise InvalidInput(f"`mu` has batch dimensions {mu.dims}; use `velocity`, or pick one with `member`.")
        self.check(mu)
        return _formula(self, t, x if x is mu.positions else _queries(x, mu), mu, place)

    def velocity(self, t: Any, x: Queries, mu: Tokens, place: Places | None = None) -> Velocities:
        """P_x drive(t, x, mu): the velocity of a particle at each of the points `x` in the measure `mu`.

        Batch dimensions of the field and of `mu` come first in the result; `x` is shared by all members, or
        has the batch dimensions of `mu` in front.
        """
        if is_traced((self, t, x, mu, place)):
            return tangent_drive(self, t, x, mu, place)
        self.check(mu)
        if x is mu.positions and (place is None or place is mu.place):
            return _velocity(self, t, None, mu, place)
        x = _queries(x, mu)
        if place is not None and np.shape(place) != x.shape[-2:-1]:
            raise InvalidInput(
                f"`place` has shape {np.shape(place)}; give one place for each of the {x.shape[-2]} query points."
            )
        return _velocity(self, t, x, mu, place)

    def check(self, tokens: Tokens, on: AbstractSpace | None = None) -> None:
        """Refuse, in one sentence, parameters and sums that do not fit these tokens, here and in all fields inside.

        `on` is where tokens are evaluated, if not on their own space: `Layers(update=Project())` leaves it.
        """
        with full_precision():  # functions of time are traced for their shapes
            structure.check(self, tokens, tokens.space if on is None else on)

    def prepare(
        self: F, tokens: Tokens, tol: float | None = None, *, flowing: bool = False, on: AbstractSpace | None = None
    ) -> F:
        """The field with sums chosen for these tokens, here and in all fields inside.

        Each is the cheapest whose attention output, V included, is off by at most `tol`; left out, `tol` is what
        `sums.choose` says. `flowing`: the tokens will move. `on`: as for `check`. `solve` calls this; a sum that was
        given to a field stays.
        """
        return structure.prepare(self, tokens, tol, flowing, tokens.space if on is None else on)

    def error(self, t: Any, x: Points, mu: Tokens, place: Places | None = None) -> Any:
        """A bound, for each query, of the error of the drive that sums cut at a tolerance leave; 0.0 if none are."""
        return _stated_error(self, t, None if x is mu.positions else x, mu, place)

    def __add__(self, other: "AbstractField") -> "AbstractField":
        if not isinstance(other, AbstractField):
            return NotImplemented
        mine, theirs = (f.parts if isinstance(f, Total) else (f,) for f in (self, other))
        return Total(mine + theirs)


class Total(AbstractField):
    """The sum of several fields, added as drives before projection."""

    parts: tuple[AbstractField, ...] = eqx.field(converter=tuple)

    def __check_init__(self) -> None:
        if not self.parts:
            raise InvalidInput("`parts` of Total is empty; give at least one field.")

    def formula(self, t: Any, x: Points, mu: Tokens, place: Places | None) -> Points:
        total = self.parts[0].formula(t, x, mu, place)
        for part in self.parts[1:]:
            total = total + part.formula(t, x, mu, place)
        return total

    def children(self, space: AbstractSpace) -> tuple[Part, ...]:
        return tuple(Inner(_part(k), space) for k in range(len(self.parts)))

    def check_parameters(self, tokens: Tokens) -> None:
        for part in self.parts:
            if isinstance(part, AbstractLayered):
                raise InvalidInput(
                    f"{type(part).__name__} has layers of its own, which a sum would lose; wrap the sum in it instead."
                )

    @property
    def laws(self) -> Laws:
        return functools.reduce(Laws.and_, (part.laws for part in self.parts))


def _part(k: int) -> Callable[[Any], AbstractField]:
    return lambda field: field.parts[k]


class AbstractLayered(AbstractField):
    """A field whose discrete layer is not `update(space, x, drive, step)` but a rule of its own."""

    @abc.abstractmethod
    def layer(self, t: Any, step: Any, x: Points, mu: Tokens, place: Places | None = None) -> Points:
        """The positions after the layer that runs at time t."""


@double
def _formula(field: AbstractField, t: Any, x: Points, mu: Tokens, place: Places | None) -> Points:
    return field.formula(t, x, mu, place)


@double
@eqx.filter_jit
def _stated_error(field: AbstractField, t: Any, x: Points | None, mu: Tokens, place: Places | None) -> Any:
    return structure.stated_error(field, t, mu.positions if x is None else x, mu, place)


def _queries(x: Any, mu: Tokens) -> np.ndarray:
    """Query points, moved onto the space of `mu` if they are nearly there, as tokens are; farther ones are refused."""
    points = np.asarray(x, dtype=mu.positions.dtype)
    if points.ndim not in (2, 2 + len(mu.dims)) or points.shape[-1] != mu.dim:
        raise InvalidInput(f"`x` has shape {points.shape}; give query points of shape (points, {mu.dim}).")
    return onto("x", mu.space, points)


@double
def tangent_drive(field: AbstractField, t: Any, x: Points, mu: Tokens, place: Places | None = None) -> Points:
    """The pure form of `velocity`, for one system."""
    return mu.space.tangent(x, field.drive(t, x, mu, place))


@double
def _velocity(field: AbstractField, t: Any, x: Queries | None, mu: Tokens, place: Places | None) -> Velocities:
    """`x` is None for the tokens themselves."""
    systems = members(field, mu)
    axis = None
    if x is not None and mu.dims and x.ndim > 2:
        axis, x = 0, members(field, mu.moved(x)).positions
    result = _velocities(
        systems.field, systems.field_axes, jnp.asarray(t, float), x, axis, mu.system(None, None), systems.positions,
        systems.masses, place,
    )  # fmt: skip
    return systems.unflatten(result)


@eqx.filter_jit
def _velocities(
    field: Any, axes: Any, t: Any, x: Any, x_axis: int | None, bare: Tokens, positions: Any, masses: Any, place: Any
) -> Any:
    def one(field: Any, x: Any, positions: Any, masses: Any) -> Any:
        mu = bare.system(positions, masses)
        if x is None:
            return tangent_drive(field, t, mu.positions, mu, None if place is None else mu.place)
        return tangent_drive(field, t, x, mu, place)

    if positions.ndim == 2:
        return one(field, x, positions, masses)
    queries = positions.shape[-2] if x is None else x.shape[-2]
    return over_members(one, (axes, x_axis, 0, 0), (field, x, positions, masses), queries * positions.shape[-2])

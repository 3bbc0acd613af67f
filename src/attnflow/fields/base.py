"""What every field has in common. A new field writes `drive`; the rest follows."""

import abc
import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from attnflow.axes import members, over_members
from attnflow.errors import InvalidInput
from attnflow.precision import double, is_traced
from attnflow.tokens import Tokens

Points = Float[Array | np.ndarray, "query dim"]
Places = Int[Array | np.ndarray, " query"]


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
    """X_t[mu](x), as an ambient vector (`drive`) and as a tangent one (`velocity`). Fields add as drives."""

    @abc.abstractmethod
    def drive(self, t: Any, x: Points, mu: Tokens, place: Places | None = None) -> Points:
        """The vector felt at the points `x` before projection, for one system (no batch dimensions).

        `place` are the places of the query points; only masks read them. Mark implementations `@double`.
        """

    @abc.abstractmethod
    def check(self, tokens: Tokens) -> None:
        """Refuse, in one sentence, parameters that do not fit these tokens."""

    @property
    @abc.abstractmethod
    def laws(self) -> Laws:
        """What this field promises."""

    def prepare(self, tokens: Tokens, tol: float | None = None, *, flowing: bool = False) -> "AbstractField":
        """The field with sums chosen for these tokens: the cheapest whose softmax mean is off by at most `tol`.

        Left out, `tol` is what `sums.choose` says. `flowing`: the tokens will move. `solve` calls this; a sum that was
        given to a field stays.
        """
        return self

    def error(self, dtype: Any) -> Any:
        """A bound of the error of the drive at the tokens that sums cut at a tolerance leave; 0 where all are exact."""
        return 0.0

    def velocity(self, t: Any, x: Points, mu: Tokens, place: Places | None = None) -> Points:
        """P_x drive(t, x, mu): the velocity of a particle at each of the points `x` in the measure `mu`.

        Batch dimensions of the field and of `mu` come first in the result; `x` is shared by all members, or
        has the batch dimensions of `mu` in front.
        """
        if is_traced((self, t, x, mu)):
            return tangent_drive(self, t, x, mu, place)
        self.check(mu)
        x = np.asarray(x, dtype=mu.positions.dtype)
        if x.shape[-1] != mu.dim or x.ndim not in (2, 2 + len(mu.dims)):
            raise InvalidInput(f"`x` has shape {x.shape}; give query points of shape (points, {mu.dim}).")
        if place is not None and np.shape(place) != x.shape[-2:-1]:
            raise InvalidInput(
                f"`place` has shape {np.shape(place)}; give one place for each of the {x.shape[-2]} query points."
            )
        return _velocity(self, t, x, mu, place)

    def __add__(self, other: "AbstractField") -> "AbstractField":
        if not isinstance(other, AbstractField):
            return NotImplemented
        mine, theirs = (f.parts if isinstance(f, Total) else (f,) for f in (self, other))
        return Total(mine + theirs)


class Total(AbstractField):
    """The sum of several fields, added as drives before projection."""

    parts: tuple[AbstractField, ...] = eqx.field(converter=tuple)

    @double
    def drive(self, t: Any, x: Points, mu: Tokens, place: Places | None = None) -> Points:
        total = self.parts[0].drive(t, x, mu, place)
        for part in self.parts[1:]:
            total = total + part.drive(t, x, mu, place)
        return total

    def check(self, tokens: Tokens) -> None:
        if not self.parts:
            raise InvalidInput("`parts` of Total is empty; give at least one field.")
        for part in self.parts:
            if isinstance(part, AbstractLayered):
                raise InvalidInput(
                    f"{type(part).__name__} has layers of its own, which a sum would lose; wrap the sum in it instead."
                )
            part.check(tokens)

    def error(self, dtype: Any) -> Any:
        return sum(part.error(dtype) for part in self.parts)

    def prepare(self, tokens: Tokens, tol: float | None = None, *, flowing: bool = False) -> "Total":
        return Total(tuple(part.prepare(tokens, tol, flowing=flowing) for part in self.parts))

    @property
    def laws(self) -> Laws:
        return functools.reduce(Laws.and_, (part.laws for part in self.parts))


class AbstractLayered(AbstractField):
    """A field whose discrete layer is not `update(space, x, drive, step)` but a rule of its own."""

    @abc.abstractmethod
    def layer(self, t: Any, step: Any, x: Points, mu: Tokens, place: Places | None = None) -> Points:
        """The positions after the layer that runs at time t."""


@double
def tangent_drive(field: AbstractField, t: Any, x: Points, mu: Tokens, place: Places | None = None) -> Points:
    """The pure form of `velocity`, for one system."""
    return mu.space.tangent(x, field.drive(t, x, mu, place))


@double
def _velocity(field: AbstractField, t: Any, x: Points, mu: Tokens, place: Places | None) -> Points:
    systems = members(field, mu)
    axis = None
    if mu.dims and x.ndim > 2:
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
        return tangent_drive(field, t, x, bare.system(positions, masses), place)

    if positions.ndim == 2:
        return one(field, x, positions, masses)
    return over_members(one, (axes, x_axis, 0, 0), (field, x, positions, masses), x.shape[-2] * positions.shape[-2])

"""What every field has in common. A new field writes `formula` and what it is made of; the rest follows."""

import abc
import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Real

from attnflow.axes import Along, Batched, finite_array, members, over_members, scalar
from attnflow.checks import number, shown
from attnflow.describe import brief, html_table
from attnflow.errors import InvalidInput, NotFinite
from attnflow.fields import structure
from attnflow.fields.queries import AbstractQuery, AtPoints, AtTokens, Points, as_query
from attnflow.fields.structure import Inner, Part
from attnflow.precision import full_precision, in_float64, is_concrete, is_traced
from attnflow.spaces import AbstractSpace
from attnflow.tokens import Measure, Tokens, onto

Queries = Float[Array | np.ndarray, "*own query dim"]
"""Points that all members of a batch share, or points of each member's own."""
Velocities = Float[Array | np.ndarray, "*batch query dim"]
"""A vector at each of the points, for each member of a batch."""
Places = Real[Array | np.ndarray, "*own query"]
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
    """X_t[mu](x), as an ambient vector (`drive`) and as a tangent one (`velocity`).

    Fields form a vector space, as drives: `f + g`, `f - g`, `-f`, `2 * f`, `f / 2`, `sum([f, g])`.

    A new field writes the four abstract members; everything else follows from them and is not overridden.
    """

    def __repr__(self) -> str:
        return brief(self)

    def _repr_html_(self) -> str:
        return html_table(brief(self), {"laws": ", ".join(name for name, held in self.laws._asdict().items() if held)})

    def plot(self, tokens: Tokens, t: float = 0.0) -> Any:
        """Tokens and their velocities in one Matplotlib Figure: `attnflow.plots.draw_velocities`."""
        import attnflow

        return attnflow.plots.draw_velocities(self, tokens, t)

    @abc.abstractmethod
    def formula(self, t: Any, query: AbstractQuery, mu: Measure) -> Points:
        """The vector felt at the points of `query` before projection, for one system, in JAX.

        `query.points(mu)` are the points; `query.place(mu)` are their places, which only masks and encodings read. A
        wrapper that hands on another measure hands on a query at the tokens as it is.
        """

    @abc.abstractmethod
    def children(self, space: AbstractSpace) -> tuple[Part, ...]:
        """The fields inside this one and the sums that it needs, when it is evaluated on `space`; () if none.

        What can be said of a field as a whole (sums that do not apply, the error of sums) follows from these parts.
        """

    @abc.abstractmethod
    def check_parameters(self, tokens: Tokens | Measure) -> None:
        """Refuse, in one sentence, parameters of this field alone that do not fit these tokens."""

    @property
    @abc.abstractmethod
    def laws(self) -> Laws:
        """What this field promises."""

    def drive(
        self,
        mu: Tokens | Measure,
        t: Any = 0.0,
        *,
        at: Points | AbstractQuery | None = None,
        place: Places | None = None,
    ) -> Points:
        """The vector felt in the measure `mu` at the points `at` before projection, for one system; see `velocity`.

        At the absent rows of `mu` it is 0.
        """
        mu, query = _measure(mu), _query(at, place)
        _moment(t)
        if is_traced((self, t, query, mu)):
            return _drive(self, t, query, mu.measure)
        if mu.dims:
            raise InvalidInput(f"`mu` has batch dimensions {mu.dims}; use `velocity`, or pick one with `member`.")
        self.check(mu)
        return _finite(self, "drive", _drive(self, t, _checked(query, mu), mu.measure))

    def velocity(
        self,
        mu: Tokens | Measure,
        t: Any = 0.0,
        *,
        at: Queries | AbstractQuery | None = None,
        place: Places | None = None,
    ) -> Velocities:
        """P_x drive: the velocity in the measure `mu` at time `t` of its tokens, or of particles at the points `at`.

        `velocity(tokens)` is cheaper than `velocity(tokens, at=tokens.positions)`, and more accurate where sums are cut
        at a tolerance; tokens have places of their own, points may be given a `place`.

        Batch dimensions of the field and of `mu` come first in the result; `at` is shared by all members, or
        has the batch dimensions of `mu` in front, and so may `place` then.
        """
        mu, query = _measure(mu), _query(at, place)
        _moment(t)
        if is_traced((self, t, query, mu)):
            return tangent_drive(self, t, query, mu.measure)
        self.check(mu)
        return _finite(self, "velocity", _velocity(self, t, _checked(query, mu), mu))

    def check(self, tokens: Tokens | Measure, on: AbstractSpace | None = None) -> None:
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

    def error(
        self,
        mu: Tokens | Measure,
        t: Any = 0.0,
        *,
        at: Points | AbstractQuery | None = None,
        place: Places | None = None,
    ) -> Any:
        """A bound, for each query, of the error of the drive that sums cut at a tolerance leave; 0.0 if none are.

        Arguments as for `velocity`; one system.
        """
        return _stated_error(self, t, _query(at, place), _measure(mu).measure)

    def __add__(self, other: "AbstractField") -> "AbstractField":
        """The sum of two fields, as drives."""
        if not isinstance(other, AbstractField):
            return NotImplemented
        mine, theirs = (f.parts if isinstance(f, Total) else (f,) for f in (self, other))
        return Total(mine + theirs)

    def __radd__(self, other: Any) -> "AbstractField":
        """0 + f, with which `sum` begins."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __mul__(self, factor: Any) -> "AbstractField":
        """The field times a number, which may be traced or an `Along`."""
        if isinstance(self, Total):
            return Total(tuple(part * factor for part in self.parts))
        inner, factor = self, scalar("factor")(factor)
        if isinstance(self, Multiple) and not (isinstance(self.factor, Along) and isinstance(factor, Along)):
            inner, factor = self.field, _product(self.factor, factor)
        is_one = not isinstance(factor, Along) and is_concrete(factor) and factor == 1
        return inner if is_one else Multiple(inner, factor)

    __rmul__ = __mul__
    __array_ufunc__ = None
    """NumPy's numbers leave `number * field` to `__rmul__`."""

    def __truediv__(self, divisor: Any) -> "AbstractField":
        """The field times 1/divisor."""
        divisor = scalar("divisor")(divisor)
        with np.errstate(divide="ignore"):
            return self * (divisor.map(lambda v: 1 / v) if isinstance(divisor, Along) else 1 / divisor)

    def __neg__(self) -> "AbstractField":
        """The field times -1."""
        return self * -1.0

    def __sub__(self, other: "AbstractField") -> "AbstractField":
        """The difference of two fields, as drives."""
        return self + -other if isinstance(other, AbstractField) else NotImplemented


class Total(AbstractField):
    """The sum of several fields, added as drives before projection."""

    parts: tuple[AbstractField, ...] = eqx.field(converter=tuple)

    def __check_init__(self) -> None:
        if not self.parts:
            raise InvalidInput("`parts` of Total is empty; give at least one field.")

    def formula(self, t: Any, query: AbstractQuery, mu: Measure) -> Points:
        total = self.parts[0].formula(t, query, mu)
        for part in self.parts[1:]:
            total = total + part.formula(t, query, mu)
        return total

    def children(self, space: AbstractSpace) -> tuple[Part, ...]:
        return tuple(Inner(_part(k), space) for k in range(len(self.parts)))

    def check_parameters(self, tokens: Tokens | Measure) -> None:
        for part in self.parts:
            if isinstance(part, AbstractLayered):
                raise InvalidInput(
                    f"{type(part).__name__} has layers of its own, which a sum would lose; wrap the sum in it instead."
                )

    @property
    def laws(self) -> Laws:
        return functools.reduce(Laws.and_, (part.laws for part in self.parts))


class Multiple(AbstractField):
    """`factor` times the drive of `field`: what `factor * field` makes."""

    field: AbstractField
    factor: Batched = eqx.field(converter=scalar("factor"))

    def formula(self, t: Any, query: AbstractQuery, mu: Measure) -> Points:
        drive = jnp.asarray(self.field.formula(t, query, mu))
        return jnp.asarray(self.factor, drive.dtype) * drive

    def children(self, space: AbstractSpace) -> tuple[Part, ...]:
        def amplify(t: Any, drive: Any, error: Any) -> Any:
            return jnp.abs(jnp.asarray(self.factor, error.dtype)) * error

        return (Inner(lambda field: field.field, space, amplify=amplify),)

    def check_parameters(self, tokens: Tokens | Measure) -> None:
        if isinstance(self.field, AbstractLayered):
            raise InvalidInput(
                f"{type(self.field).__name__} has layers of its own, which a multiple would lose; multiply the field "
                "inside it instead."
            )

    @property
    def laws(self) -> Laws:
        return self.field.laws


def terms(field: AbstractField) -> list[tuple[tuple[Any, ...], AbstractField]]:
    """The field as a linear combination of fields that are neither a `Total` nor a `Multiple`: (factors, field)."""
    if isinstance(field, Total):
        return [term for part in field.parts for term in terms(part)]
    if isinstance(field, Multiple):
        return [((field.factor, *factors), inner) for factors, inner in terms(field.field)]
    return [((), field)]


def _product(a: Any, b: Any) -> Any:
    """The product of two factors, at most one of them an `Along`, whose labels it keeps."""
    if isinstance(a, Along):
        return a.map(lambda values: values * b)
    return b.map(lambda values: a * values) if isinstance(b, Along) else a * b


def _part(k: int) -> Callable[[Any], AbstractField]:
    return lambda field: field.parts[k]


class AbstractLayered(AbstractField):
    """A field whose discrete layer is not `update(space, x, drive, step)` but a rule of its own."""

    @abc.abstractmethod
    def layer(self, t: Any, step: Any, query: AbstractQuery, mu: Measure) -> Points:
        """Where the layer that runs at time t puts the points of `query`."""


@in_float64
def _drive(field: AbstractField, t: Any, query: AbstractQuery, mu: Measure) -> Points:
    return query.kept(mu, field.formula(t, query, mu))


@in_float64
def tangent_drive(field: AbstractField, t: Any, query: AbstractQuery, mu: Measure) -> Points:
    """The pure form of `velocity`, for one system."""
    return query.kept(mu, mu.space.tangent(query.points(mu), field.formula(t, query, mu)))


@in_float64
@eqx.filter_jit
def _stated_error(field: AbstractField, t: Any, query: AbstractQuery, mu: Measure) -> Any:
    return structure.stated_error(field, t, query, mu)


def _query(at: Any, place: Any) -> AbstractQuery:
    if place is not None and (at is None or isinstance(at, AbstractQuery)):
        raise InvalidInput("`place` is given, but `at` is not; the tokens have places of their own, leave `place` out.")
    if at is not None and not isinstance(at, AbstractQuery):
        finite_array("`at`", at)
    return as_query(at, place)


def _moment(t: Any) -> None:
    if is_concrete(t):
        number("t", t)


def _measure(mu: Any) -> Any:
    if not isinstance(mu, Tokens | Measure):
        raise InvalidInput(f"`mu` is {shown(mu)}; give the tokens first, as in `velocity(tokens, t)`.")
    return mu


def _checked(query: AbstractQuery, mu: Tokens | Measure) -> AbstractQuery:
    """Query points, moved onto the space of `mu` if they are nearly there, as tokens are; farther ones are refused."""
    if not isinstance(query, AtPoints):
        return query
    points = np.asarray(query.x, dtype=mu.positions.dtype)
    if points.ndim not in (2, 2 + len(mu.dims)) or points.shape[-1] != mu.dim:
        raise InvalidInput(f"`at` has shape {points.shape}; give query points of shape (points, {mu.dim}).")
    place = query.places
    if place is not None and np.shape(place) not in (points.shape[-2:-1], points.shape[:-1]):
        raise InvalidInput(
            f"`place` has shape {np.shape(place)}; give one place for each of the {points.shape[-2]} query points."
        )
    return AtPoints(onto("at", mu.space, points), None if place is None else np.asarray(place))


def _finite(field: AbstractField, name: str, vectors: Any) -> Any:
    """Refuse vectors that are not finite, with what the parts of the field allow one to do; traced ones pass."""
    from attnflow.fields.normalisers import Sinkhorn
    from attnflow.sums.series import AbstractSeries

    if is_traced(vectors):
        return vectors
    points = ~np.isfinite(np.asarray(vectors)).all(axis=-1)
    if not points.any():
        return vectors
    parts = jax.tree.leaves(field, is_leaf=lambda node: isinstance(node, Sinkhorn | AbstractSeries))
    if any(isinstance(part, Sinkhorn) for part in parts):
        advice = "the iteration of Sinkhorn does not converge; use more iterations, a larger tol, or a smaller beta"
    elif any(isinstance(part, AbstractSeries) for part in parts):
        advice = "the kernel needs more degrees than its series has; call `prepare` again, or use sum=Tiled()"
    else:
        advice = "exponentials overflow; use a smaller beta"
    raise NotFinite(f"the {name} is not finite at {points.sum()} of {points.size} points: {advice}.")


@in_float64
def _velocity(field: AbstractField, t: Any, query: AbstractQuery, mu: Tokens | Measure) -> Velocities:
    systems = members(field, mu)
    axes: Any = None
    if isinstance(query, AtPoints) and query.x.ndim > 2:
        there = np.zeros(query.x.shape[:-1], int) if query.places is None else query.places
        moved = eqx.tree_at(lambda tokens: (tokens.positions, tokens.place), mu, (query.x, there))
        picked = members(field, moved).measure
        query = AtPoints(picked.positions, None if query.places is None else picked.place)
        axes = _first_axes(query)
    at = np.asarray(t, float) if is_concrete(t) else jnp.asarray(t, float)
    found = _velocities(systems.field, systems.field_axes, at, query, axes, systems.measure, systems.measure_axes)
    return systems.unflatten(found)


def _first_axes(query: AtPoints) -> Any:
    """The members come first in all arrays of the query."""
    marks = (0, None if query.places is None else 0)
    return eqx.tree_at(lambda q: (q.x, q.places), query, marks, is_leaf=lambda node: node is None)


@eqx.filter_jit
def _velocities(field: Any, axes: Any, t: Any, query: Any, query_axes: Any, mu: Measure, mu_axes: Any) -> Any:
    def one(field: Any, query: Any, mu: Measure) -> Any:
        return tangent_drive(field, t, query, mu)

    if mu_axes is None:
        return one(field, query, mu)
    queries = mu.n if isinstance(query, AtTokens) else query.x.shape[-2]
    return over_members(one, (axes, query_axes, mu_axes), (field, query, mu), queries * mu.n)

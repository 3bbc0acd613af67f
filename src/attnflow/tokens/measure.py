"""A measure as compiled code sees it: a pure pytree that fields receive, without checks and without names."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Real

from attnflow.errors import InvalidInput
from attnflow.precision import is_concrete
from attnflow.spaces import AbstractSpace, Sphere


class Measure(eqx.Module):
    """The measure mu = sum_i masses_i delta(positions_i) of one system; nothing is checked, so it can be made anywhere.

    Inside `jit`, `grad` and `vmap` write `Measure(positions)`; `Tokens` are the checked and labelled form for users,
    and `tokens.measure` is their measure. Masses are taken as they are and should sum to 1.

    Arguments:
        masses: left out, equal masses 1/n on the rows that are present.
        present: which rows are tokens; None is all. An absent row fills up a batch of systems of unequal size: it has
            mass 0, is not moved, and nothing depends on it. It stands at the position and place of a present one.
        place: whole or real numbers; left out, 0, 1, 2, ...
        space: left out, the unit sphere of R^dim.
    """

    positions: Float[Array | np.ndarray, "*batch token dim"]
    masses: Float[Array | np.ndarray, "*batch token"]
    present: Bool[Array | np.ndarray, "*batch token"] | None
    place: Real[Array | np.ndarray, "*batch token"]
    space: AbstractSpace

    def __init__(
        self,
        positions: Any,
        masses: Any = None,
        *,
        present: Any = None,
        place: Any = None,
        space: AbstractSpace | None = None,
    ):
        if masses is None:
            if present is None:
                masses = np.full(positions.shape[:-1], 1.0 / positions.shape[-2], positions.dtype)
            else:
                there = present.astype(positions.dtype)
                masses = there / there.sum(axis=-1, keepdims=True)
        self.positions, self.masses, self.present = positions, masses, present
        self.place = np.arange(positions.shape[-2]) if place is None else place
        self.space = Sphere(positions.shape[-1]) if space is None else space

    @property
    def n(self) -> int:
        """Number of rows of one system, absent ones included."""
        return self.positions.shape[-2]

    @property
    def dim(self) -> int:
        """Dimension of the ambient R^dim."""
        return self.space.dim

    @property
    def count(self) -> Any:
        """Number of tokens that are present."""
        return self.n if self.present is None else jnp.sum(self.present, axis=-1)

    @property
    def dims(self) -> tuple[str, ...]:
        """A measure is one system: it has no batch dimensions."""
        return ()

    @property
    def coordinates(self) -> tuple[()]:
        """A measure has no batch dimensions to label."""
        return ()

    @property
    def measure(self) -> "Measure":
        """Itself, so that a function may take `Tokens` or a `Measure`."""
        return self

    def single(self, name: str = "tokens") -> "Measure":
        """Itself: a measure is one system."""
        return self

    def member(self) -> "Measure":
        """The measure without its absent rows; not under tracing, where their number is not known."""
        if self.present is None:
            return self
        rows = np.asarray(self.present)
        return Measure(self.positions[rows], self.masses[rows], place=self.place[rows], space=self.space)

    def moved(self, positions: Any) -> "Measure":
        """The same measure at other positions."""
        return _at(self, self.space, positions)

    def on(self, space: AbstractSpace, positions: Any) -> "Measure":
        """The same measure at other positions on another space."""
        return _at(self, space, positions)

    @property
    def member_axes(self) -> "Measure":
        """Where the leaves of a measure with the members first have their members, as for `equinox.filter_vmap`."""
        axes: Measure = jax.tree.map(lambda _: 0, self)
        none = jax.tree.map(lambda _: None, self.space)
        return eqx.tree_at(lambda mu: mu.space, axes, none, is_leaf=lambda node: isinstance(node, AbstractSpace))

    def for_members(self, index: dict[str, np.ndarray], size: int) -> "Measure":
        """The measure repeated for each of `size` members (`Tokens` pick those of their own by `index`)."""
        return members_of(self, (), size)


def _at(mu: Measure, space: AbstractSpace, positions: Any) -> Measure:
    if mu.masses is None or mu.place is None:
        return eqx.tree_at(
            lambda mu: (mu.positions, mu.space),
            mu,
            (positions, space),
            is_leaf=lambda node: node is None or isinstance(node, AbstractSpace),
        )
    return Measure(positions, mu.masses, present=mu.present, place=mu.place, space=space)


def members_of(mu: Any, pick: tuple[np.ndarray, ...], size: int) -> Measure:
    """The measures of the members `pick` of tokens, member first; without batch dimensions one measure, repeated."""

    def leaf(array: Any, own: int) -> Any:
        if array is None:
            return None
        if pick and array.ndim > own:
            return array[pick]
        repeat = np.broadcast_to if is_concrete(array) and not isinstance(array, jax.Array) else jnp.broadcast_to
        return repeat(array, (size, *array.shape))

    return Measure(
        leaf(mu.positions, 2), leaf(mu.masses, 1), present=leaf(mu.present, 1), place=leaf(mu.place, 1), space=mu.space
    )


def all_present(mu: Any, what: str) -> None:
    """Refuse absent rows, in one sentence that names `what` cannot take them."""
    if mu.present is not None:
        fix = "pick one system with `member`, which leaves them out." if mu.dims else "leave them out by `member()`."
        raise InvalidInput(f"`tokens` has absent rows, which {what} does not take; {fix}")

"""Where a field is asked: at the tokens themselves, or at points of their own.

Which of the two decides what a sum may rely on (a token sees its own mass) and what it need not compute twice, so it is
said by a type and not found out by comparing arrays.
"""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Real

from attnflow.tokens import Measure

Points = Float[Array | np.ndarray, "query dim"]
Places = Real[Array | np.ndarray, " query"]


class AbstractQuery(eqx.Module):
    """The points at which a field is evaluated."""

    @property
    @abc.abstractmethod
    def at_tokens(self) -> bool:
        """Whether the points are the tokens of the measure, in their order."""

    @abc.abstractmethod
    def points(self, mu: Measure) -> Any:
        """The points, (query, dim)."""

    @abc.abstractmethod
    def place(self, mu: Measure) -> Any:
        """Their places, which masks and encodings read; None if they have none."""

    @abc.abstractmethod
    def moved(self, move: Callable[[Any], Any]) -> "AbstractQuery":
        """The query when `move` is applied to the points and to the positions of the measure alike."""

    @abc.abstractmethod
    def kept(self, mu: Measure, values: Any, other: Any = 0.0) -> Any:
        """`values`, one row for each point, with `other` at the absent rows of the measure."""


class AtTokens(AbstractQuery):
    """At the tokens of the measure, with their places."""

    @property
    def at_tokens(self) -> bool:
        return True

    def points(self, mu: Measure) -> Any:
        return mu.positions

    def place(self, mu: Measure) -> Any:
        return mu.place

    def moved(self, move: Callable[[Any], Any]) -> "AtTokens":
        return self

    def kept(self, mu: Measure, values: Any, other: Any = 0.0) -> Any:
        if mu.present is None:
            return values
        there = jnp.asarray(mu.present)
        return jnp.where(there.reshape(-1, *[1] * (values.ndim - 1)), values, other)


class AtPoints(AbstractQuery):
    """At any points, perhaps with places."""

    x: Points
    places: Places | None = None

    @property
    def at_tokens(self) -> bool:
        return False

    def points(self, mu: Measure) -> Any:
        return self.x

    def place(self, mu: Measure) -> Any:
        return self.places

    def moved(self, move: Callable[[Any], Any]) -> "AtPoints":
        return AtPoints(move(self.x), self.places)

    def kept(self, mu: Measure, values: Any, other: Any = 0.0) -> Any:
        return values


def as_query(x: Any, place: Any = None) -> AbstractQuery:
    """The query that a user means by `x`: None is at the tokens."""
    if isinstance(x, AbstractQuery):
        return x
    return AtTokens() if x is None else AtPoints(x, place)

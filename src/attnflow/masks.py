"""Who sees whom. A mask reads only the places of query and key."""

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Real

from attnflow import describe
from attnflow.axes import Batched, scalar
from attnflow.checks import ABOVE_ZERO, flag, number, shown, whole
from attnflow.errors import InvalidInput
from attnflow.feasible import LARGEST_TABLE
from attnflow.lazy import listing

__all__ = ["AbstractMask", "AbstractPrefix", "Causal", "Everyone", "Table", "Window"]
__dir__ = listing(__all__)

Queries = Real[Array, " query"]
Keys = Real[Array, " key"]
Bias = Float[Array, "query key"] | Float[Array, ""]


class AbstractMask(eqx.Module):
    """A bias added to the log weight of a pair: 0 means seen, -inf unseen, in between seen less."""

    sees_everyone: eqx.AbstractClassVar[bool]
    """Whether the bias is 0 for all pairs, so that places do not matter."""

    @property
    @abc.abstractmethod
    def sees_itself(self) -> bool:
        """Whether the bias is 0 for two equal places and at most 0 elsewhere: a token sees its own mass in full."""

    @abc.abstractmethod
    def bias(self, query: Queries, key: Keys) -> Bias:
        """Bias of every pair, broadcastable to (query, key)."""

    @abc.abstractmethod
    def check(self, place: np.ndarray) -> None:
        """Refuse places that the mask does not know."""


class AbstractPrefix(AbstractMask):
    """A mask under which a token sees all earlier places and, unless `strict`, its own; perhaps fading with distance.

    Series sum it by moments of prefixes, in O(n) steps for each function of the basis.
    """

    sees_everyone = False

    @property
    @abc.abstractmethod
    def strict(self) -> bool:
        """Whether a token does not see its own place. A subclass has it as a field, or as a constant."""

    @abc.abstractmethod
    def decay(self, later: Real[Array, "..."], earlier: Real[Array, "..."]) -> Float[Array, "..."]:
        """The bias of a key at the place `earlier` for a query at the place `later`: at most 0, and 0 for equal places.

        It adds up along places: decay(c, a) = decay(c, b) + decay(b, a) for a <= b <= c. Acts on arrays that broadcast;
        values for later < earlier are not used, but must be finite.
        """

    @property
    def sees_itself(self) -> bool:
        return not self.strict

    def bias(self, query: Queries, key: Keys) -> Bias:
        later, earlier = _outer(query, key)
        seen = later > earlier if self.strict else later >= earlier
        return jnp.where(seen, self.decay(later, earlier), -jnp.inf)

    def check(self, place: np.ndarray) -> None:
        """Any place will do."""


class Everyone(AbstractMask, describe.LeftOut):
    """Every token sees every token."""

    sees_everyone = True

    @property
    def sees_itself(self) -> bool:
        return True

    def bias(self, query: Queries, key: Keys) -> Bias:
        return jnp.zeros(())

    def check(self, place: np.ndarray) -> None:
        """Any place will do."""


class Causal(AbstractPrefix):
    """A token sees the tokens before it and, unless `strict`, those at its own place.

    Places are whole or real numbers. `slope` is the ALiBi slope per place: the log weight falls by `slope` times the
    distance of the places (0 is plain causal; the parameter lambda of arXiv:2605.09213 is slope * N for N tokens). A
    strictly causal first token sees nobody and does not move.
    """

    slope: Batched = eqx.field(converter=scalar("slope", low=0.0), default=0.0)
    strict: bool = eqx.field(static=True, default=False)

    def __check_init__(self) -> None:
        flag("strict", self.strict)

    def decay(self, later: Real[Array, "..."], earlier: Real[Array, "..."]) -> Float[Array, "..."]:
        distance = (later - earlier).astype(float)
        return -jnp.asarray(self.slope, distance.dtype) * distance


class Window(AbstractMask):
    """A token sees the places less than `width` away: before it and its own, or (`causal=False`) on both sides.

    `width` is a whole number of places, or a float for real places: Window(0.1) for places in [0, 1]. A fraction of a
    place is refused for tokens whose places are whole numbers.
    """

    width: float = eqx.field(static=True, converter=lambda width: _width(width))
    slope: Batched = eqx.field(converter=scalar("slope", low=0.0), default=0.0)
    causal: bool = eqx.field(static=True, default=True)
    sees_everyone = False

    def __check_init__(self) -> None:
        flag("causal", self.causal)

    @property
    def sees_itself(self) -> bool:
        return True

    def bias(self, query: Queries, key: Keys) -> Bias:
        later, earlier = _outer(query, key)
        back = later - earlier
        near = jnp.abs(back) < self.width
        distance = jnp.abs(back).astype(float)
        bias = -jnp.asarray(self.slope, distance.dtype) * distance
        return jnp.where(near & (back >= 0) if self.causal else near, bias, -jnp.inf)

    def check(self, place: np.ndarray) -> None:
        if self.width != int(self.width) and np.issubdtype(place.dtype, np.integer):
            raise InvalidInput(
                f"`width` of Window is {self.width}, but the places of the tokens are whole numbers; give an integer, "
                "or real places."
            )


class Table(AbstractMask):
    """An arbitrary matrix of shape (places, places): booleans (seen or not) or biases; row: query, column: key."""

    values: Float[Array | np.ndarray, "place place"]
    sees_everyone = False

    def __init__(self, values: Any):
        try:
            table = np.asarray(values)
        except (TypeError, ValueError):  # traced, or rows of unequal length
            raise InvalidInput(f"`values` of Table is {shown(values)}; give a square matrix of numbers.") from None
        if table.ndim != 2 or table.shape[0] != table.shape[1] or table.dtype.kind not in "biuf":
            raise InvalidInput(
                f"`values` of Table has shape {table.shape}; give a square matrix of booleans or biases."
            )
        if table.shape[0] > LARGEST_TABLE:
            raise InvalidInput(
                f"`values` of Table has {table.shape[0]} places; above {LARGEST_TABLE} use Causal or Window, which "
                "are never stored."
            )
        if table.dtype.kind == "b":
            table = np.where(table, 0.0, -np.inf)
        table = table.astype(np.float64)
        if np.isnan(table).any() or (table == np.inf).any():
            raise InvalidInput("`values` of Table has NaN or +inf; a bias is finite, or -inf for a pair not seen.")
        self.values = table

    @property
    def sees_itself(self) -> bool:
        return False

    def bias(self, query: Queries, key: Keys) -> Bias:
        for place in (query, key):
            _whole_places(place)
        return jnp.asarray(self.values)[query][:, key]

    def check(self, place: np.ndarray) -> None:
        _whole_places(place)
        size = self.values.shape[0]
        if place.min() < 0 or place.max() >= size:
            raise InvalidInput(
                f"the tokens have places {place.min()} to {place.max()}, but the Table knows 0 to {size - 1} only."
            )


def _width(width: Any) -> float:
    """A whole number from 1 on, or a positive float."""
    if isinstance(width, float | np.floating):
        return number("width", width, low=ABOVE_ZERO)
    return whole("width", width, 1)


def _whole_places(place: Any) -> None:
    if not np.issubdtype(place.dtype, np.integer):
        raise InvalidInput(
            f"the tokens have places of type {place.dtype}, but a Table is indexed by whole numbers; use Causal or "
            "Window, which compare real places."
        )


def _outer(query: Queries, key: Keys) -> tuple[Real[Array, "query 1"], Real[Array, "1 key"]]:
    """The places of queries and keys, ready to be compared pair by pair; whole and real places may meet."""
    if query.dtype != key.dtype:
        query, key = query.astype(float), key.astype(float)
    return query[:, None], key[None, :]

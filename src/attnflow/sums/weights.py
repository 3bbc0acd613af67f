"""The weight of a pair, and what is summed with it."""

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Real

from attnflow.kernels import AbstractKernel
from attnflow.masks import AbstractMask

QuerySide = tuple[Float[Array, "query feature"], Real[Array, " query"]]
"""The points that listen: their features and their places."""
KeySide = tuple[Float[Array, "key feature"], Real[Array, " key"]]
"""The points that are listened to."""
Sums = tuple[Float[Array, " query"], Float[Array, "query charge"]]


class AbstractCharges(eqx.Module):
    """What is summed, a column for each."""

    @abc.abstractmethod
    def array(self, y: Any) -> Any:
        """The columns as an array, for keys with the features `y`."""


class Moments(AbstractCharges):
    """1 and the features of the keys: all that V = I needs, and nothing that has to be handed over."""

    def array(self, y: Any) -> Any:
        ones = (np if isinstance(y, np.ndarray) else jnp).ones((y.shape[0], 1), y.dtype)
        return (np if isinstance(y, np.ndarray) else jnp).concatenate([ones, y], axis=1)


class Columns(AbstractCharges):
    """The columns of an array, one row for each key."""

    values: Float[Array | np.ndarray, "key charge"]

    def array(self, y: Any) -> Any:
        return self.values


Charges = Moments | Columns


class Weights(eqx.Module):
    """The weight of a pair: K(features of query and key) e^(bias of their places)."""

    kernel: AbstractKernel
    mask: AbstractMask
    at_tokens: bool = eqx.field(static=True, default=False)
    """Whether the queries are the tokens themselves in the order of the keys, so that each sees its own mass."""
    present: Bool[Array, " query"] | None = None
    """At the tokens: which queries matter; None is all. What absent ones see must decide nothing."""

    def log(self, query: QuerySide, key: KeySide) -> Float[Array, "query key"]:
        """Log weights of all pairs of two blocks, for a kernel that does not change sign."""
        value = self.kernel.block(query[0], key[0])
        return value if self.mask.sees_everyone else value + self.bias(query, key)

    def values(self, query: QuerySide, key: KeySide) -> Float[Array, "query key"]:
        """Weights of all pairs of two blocks."""
        if not self.kernel.is_signed:
            return jnp.exp(self.log(query, key))
        value = self.kernel.block(query[0], key[0])
        return value if self.mask.sees_everyone else value * jnp.exp(self.bias(query, key))

    def bias(self, query: QuerySide, key: KeySide) -> Float[Array, "query key"]:
        """What the mask adds to the log weights."""
        bias = self.mask.bias(query[1], key[1]).astype(query[0].dtype)
        return jnp.broadcast_to(bias, (query[1].shape[0], key[1].shape[0]))


Arguments = tuple[Weights, QuerySide, KeySide, Float[Array, " key"], Charges]
"""What a sum is called with."""


def seen_by_present(weights: Weights, seen: Any, other: Any) -> Any:
    """What each query sees, with `other` for absent ones."""
    return seen if weights.present is None else jnp.where(weights.present, seen, other)

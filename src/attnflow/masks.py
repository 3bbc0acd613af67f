"""Who sees whom. A mask reads only the places of query and key."""

import abc

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int


class AbstractMask(eqx.Module):
    """A bias added to the log weight of a pair: 0 means seen, -inf unseen."""

    needs_place: eqx.AbstractClassVar[bool]

    @abc.abstractmethod
    def bias(
        self, query: Int[Array, " query"], key: Int[Array, " key"]
    ) -> Float[Array, "query key"] | Float[Array, ""]:
        """Bias of every pair, broadcastable to (query, key)."""


class Everyone(AbstractMask):
    """Every token sees every token."""

    needs_place = False

    def bias(
        self, query: Int[Array, " query"], key: Int[Array, " key"]
    ) -> Float[Array, "query key"] | Float[Array, ""]:
        return jnp.zeros(())


class Causal(AbstractMask):
    """A token sees the tokens at its own place and before it."""

    needs_place = True

    def bias(
        self, query: Int[Array, " query"], key: Int[Array, " key"]
    ) -> Float[Array, "query key"] | Float[Array, ""]:
        return jnp.where(key[None, :] <= query[:, None], 0.0, -jnp.inf)

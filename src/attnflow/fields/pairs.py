"""The pairs of one attention head: who listens to whom and how much, ready to be summed."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attnflow.fields.kernels import Exponential
from attnflow.masks import AbstractMask
from attnflow.sums import Tiled, over_pairs

Column = Float[Array, " query"]


class Pairs(eqx.Module):
    """Queries, keys and masses of one head.

    Masses are stored relative to the largest, `unit`: equal masses are then exactly 1, whatever the number of tokens,
    so that the first tokens of a causal system get the same numbers, bit by bit, when they are alone.
    """

    kernel: Exponential
    mask: AbstractMask
    sum: Tiled
    query: Float[Array, "query feature"]
    query_place: Int[Array, " query"]
    key: Float[Array, "key feature"]
    key_place: Int[Array, " key"]
    masses: Float[Array, " key"]
    unit: Float[Array, ""]
    own: Float[Array, "key feature"]
    """Features of the keys as queries, for normalisers that look at the measure as a whole."""

    @property
    def beta(self) -> Any:
        """Inverse temperature."""
        return jnp.asarray(self.kernel.beta, self.query.dtype)

    def sums(
        self, charges: Float[Array, "key charge"], offset: Any = None
    ) -> tuple[Column, Float[Array, "query charge"]]:
        """(scale, sums) with sum_j m_j w_ij e^(offset_j) charge_j = unit e^(scale_i) sums_i."""
        return self._total(self._log_weight, charges, 0.0 if offset is None else offset)

    def seen(self) -> tuple[Column, Column]:
        """(scale, sum) with sum_j m_j e^(bias_ij) = unit e^scale sum: the mass that a query sees."""
        ones = jnp.ones((self.key.shape[0], 1), self.key.dtype)
        scale, total = self._total(self._bias, ones, 0.0)
        return scale, total[:, 0]

    def top(self) -> Column:
        """The largest log weight of each query among visible keys of positive mass; finfo.min where there is none."""
        low = jnp.finfo(self.query.dtype).min
        closed = jnp.where(self.masses > 0, 0.0, -jnp.inf).astype(self.query.dtype)

        def tile(query: Any, key: Any) -> Any:
            block, closed = key
            return jnp.max(jnp.maximum(self._log_weight(query, block) + closed[None, :], low), axis=1)

        return over_pairs(
            tile, jnp.maximum, lambda size: jnp.full((size,), low, self.query.dtype), (self.query, self.query_place),
            ((self.key, self.key_place), closed), self.query.shape[0], self.key.shape[0],
            key_padding=(None, -jnp.inf), tiles=self.sum,
        )  # fmt: skip

    def tied(self, top: Column, charges: Float[Array, "key charge"], tolerance: Any) -> Float[Array, "query charge"]:
        """Sums of m_j charge_j over the visible keys with a log weight of at least top - tolerance."""

        def tile(query: Any, key: Any) -> Any:
            (features, limit), (block, mass, charge) = query, key
            chosen = self._log_weight(features, block) >= limit[:, None]
            return jnp.where(chosen, mass[None, :], 0.0).astype(charge.dtype) @ charge

        limit = jax.lax.stop_gradient(top - tolerance)
        return over_pairs(
            tile, jnp.add, lambda size: jnp.zeros((size, charges.shape[1]), charges.dtype),
            ((self.query, self.query_place), limit), ((self.key, self.key_place), self.masses, charges),
            self.query.shape[0], self.key.shape[0], key_padding=(None, 0.0, 0.0), tiles=self.sum,
        )  # fmt: skip

    def among_keys(self) -> "Pairs":
        """The same attention with the tokens themselves as queries."""
        return eqx.tree_at(lambda p: (p.query, p.query_place), self, (self.own, self.key_place))

    def transposed(self) -> "Pairs":
        """Keys listening to keys with the roles of query and key exchanged (for masks that see everyone)."""
        return eqx.tree_at(lambda p: (p.query, p.query_place, p.key), self, (self.key, self.key_place, self.own))

    def _bias(self, query: Any, key: Any) -> Any:
        bias = self.mask.bias(query[1], key[1]).astype(self.query.dtype)
        return jnp.broadcast_to(bias, (query[1].shape[0], key[1].shape[0]))

    def _log_weight(self, query: Any, key: Any) -> Any:
        weight = self.kernel.log_weight(query[0], key[0])
        return weight if self.mask.sees_everyone else weight + self._bias(query, key)

    def _total(self, log_weight: Any, charges: Any, offset: Any) -> Any:
        query, key = (self.query, self.query_place), (self.key, self.key_place)
        log_mass = jnp.where(self.masses > 0, jnp.log(jnp.where(self.masses > 0, self.masses, 1.0)), -jnp.inf) + offset
        return self.sum(log_weight, query, key, log_mass, charges)

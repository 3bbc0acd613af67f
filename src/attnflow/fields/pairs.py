"""The pairs of one attention head: who listens to whom and how much, ready to be summed."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Real

from attnflow.kernels import AbstractKernel, Exponential
from attnflow.masks import AbstractMask
from attnflow.sums import AbstractSum, Arguments, Charges, Columns, Moments, Tiled, Weights, over_pairs

Column = Float[Array, " query"]


class Keys(eqx.Module):
    """The values are the features of the keys: V = K = I and no encoding."""


Values = Float[Array, "... key value"] | Keys
"""What is averaged: one row for each key, or the keys themselves."""


def values_of(values: Values, key: Float[Array, "... key feature"]) -> Float[Array, "... key value"]:
    """The values as an array."""
    return key if isinstance(values, Keys) else values


class Pairs(eqx.Module):
    """Queries, keys and masses of one head; while several are prepared, features have the head as first axis.

    Masses are stored relative to the largest, `unit`: equal masses are then exactly 1, whatever the number of tokens,
    so that the first tokens of a causal system are summed with the same weights when they are alone.
    """

    kernel: AbstractKernel
    """With parameters of the type of the features."""
    mask: AbstractMask
    sum: AbstractSum
    query: Float[Array, "... query feature"]
    query_place: Real[Array, " query"]
    key: Float[Array, "... key feature"]
    key_place: Real[Array, " key"]
    masses: Float[Array, " key"]
    unit: Float[Array, ""]
    own: Float[Array, "... key feature"]
    """Features of the keys as queries, for normalisers that look at the measure as a whole."""
    present: Bool[Array, " key"] | None = None
    """Which keys are tokens; None is all. Others have mass 0, and what is found for them as queries is not used."""
    at_tokens: bool = eqx.field(static=True, default=False)
    """Whether the queries are the tokens themselves."""

    def sums(
        self, charges: Float[Array, "key charge"], offset: Any = None
    ) -> tuple[Column, Float[Array, "query charge"]]:
        """(scale, sums) with sum_j m_j w_ij e^(offset_j) charge_j = unit e^(scale_i) sums_i; errors are absolute."""
        return self.sum(*self._arguments(Columns(charges), offset))

    def totals(
        self, values: Values, offset: Any = None
    ) -> tuple[Column, Float[Array, "query 1"], Float[Array, "query value"]]:
        """(scale, sum of weights, sum of weighted values), good for ratios; a query that sees nobody gets 1 and 0.

        Where a query sees too little for the absolute error of the sum, all are summed again in tiles.
        """
        charges = Moments() if isinstance(values, Keys) else Columns(Moments().array(values))
        arguments = self._arguments(charges, offset)
        scale, sums = self.sum(*arguments)
        trusted = self.sum.trusted(arguments, scale, sums[:, 0])
        if trusted is not None:
            scale, sums = jax.lax.cond(trusted, lambda: (scale, sums), lambda: self.tiles(*arguments))
        return scale, jnp.where(sums[:, :1] > 0, sums[:, :1], 1.0), sums[:, 1:]

    def seen(self) -> tuple[Column, Column]:
        """(scale, sum) with sum_j m_j e^(bias_ij) = unit e^scale sum: the mass that a query sees."""
        ones = Columns(jnp.ones((self.key.shape[0], 1), self.key.dtype))
        weights, query, key, log_mass, _ = self._arguments(ones, None)
        flat = dataclasses.replace(weights, kernel=Exponential(jnp.zeros((), self.key.dtype)))
        scale, total = self.sum(flat, query, key, log_mass, ones)
        return scale, total[:, 0]

    @property
    def tiles(self) -> Tiled:
        """Tiles for maxima and ties, and for sums that the chosen way cannot deliver."""
        return self.sum if isinstance(self.sum, Tiled) else Tiled()

    def top(self) -> Column:
        """The largest log weight of each query among visible keys of positive mass; finfo.min where there is none."""
        low = jnp.finfo(self.query.dtype).min
        closed = jnp.where(self.masses > 0, 0.0, -jnp.inf).astype(self.query.dtype)

        def tile(query: Any, key: Any) -> Any:
            block, closed = key
            return jnp.max(jnp.maximum(self._weights(False).log(query, block) + closed[None, :], low), axis=1)

        return over_pairs(
            tile, jnp.maximum, lambda size: jnp.full((size,), low, self.query.dtype), (self.query, self.query_place),
            ((self.key, self.key_place), closed), self.query.shape[0], self.key.shape[0],
            key_padding=(None, -jnp.inf), tiles=self.tiles,
        )  # fmt: skip

    def tied(self, top: Column, charges: Float[Array, "key charge"], tolerance: Any) -> Float[Array, "query charge"]:
        """Sums of m_j charge_j over the visible keys with a log weight of at least top - tolerance, up to rounding.

        The same log weight may be rounded otherwise here than in `top`, in a tile of another shape: without room for
        that a query could lose its only winner.
        """
        sizes = jnp.linalg.norm(self.key, axis=1)
        sizes = sizes if self.present is None else jnp.where(self.present, sizes, 0.0)
        norms = jnp.linalg.norm(self.query, axis=1), jnp.max(sizes)
        largest = self.kernel.magnitude(*norms) + jnp.maximum(jnp.abs(top), 1.0)
        blind = jnp.where(top > jnp.finfo(top.dtype).min, largest, 1.0)  # a query that sees nobody has no winner
        tolerance = tolerance + 8 * jnp.finfo(top.dtype).eps * blind

        def tile(query: Any, key: Any) -> Any:
            (features, limit), (block, mass, charge) = query, key
            chosen = self._weights(False).log(features, block) >= limit[:, None]
            return jnp.where(chosen, mass[None, :], 0.0).astype(charge.dtype) @ charge

        limit = jax.lax.stop_gradient(top - tolerance)
        return over_pairs(
            tile, jnp.add, lambda size: jnp.zeros((size, charges.shape[1]), charges.dtype),
            ((self.query, self.query_place), limit), ((self.key, self.key_place), self.masses, charges),
            self.query.shape[0], self.key.shape[0], key_padding=(None, 0.0, 0.0), tiles=self.tiles,
        )  # fmt: skip

    def among_keys(self) -> "Pairs":
        """The same attention with the tokens themselves as queries."""
        return self._with(self.own, self.key)

    def transposed(self) -> "Pairs":
        """Keys listening to keys with the roles of query and key exchanged (for masks that see everyone)."""
        return self._with(self.key, self.own)

    def _with(self, query: Any, key: Any) -> "Pairs":
        new = eqx.tree_at(lambda p: (p.query, p.query_place, p.key), self, (query, self.key_place, key))
        return dataclasses.replace(new, at_tokens=True)

    def _weights(self, at_tokens: bool) -> Weights:
        return Weights(self.kernel, self.mask, at_tokens, self.present if at_tokens else None)

    def _arguments(self, charges: Charges, offset: Any) -> Arguments:
        query, key = (self.query, self.query_place), (self.key, self.key_place)
        log_mass = jnp.where(self.masses > 0, jnp.log(jnp.where(self.masses > 0, self.masses, 1.0)), -jnp.inf)
        weights = self._weights(self.at_tokens and offset is None)
        return weights, query, key, log_mass if offset is None else log_mass + offset, charges

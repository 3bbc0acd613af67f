"""Streaming sums over tiles of pairs: O(block^2 + queries * charges) memory for any number of tokens.

Every tile keeps the running maximum of the log weights of its queries, so nothing overflows and a query
far from all tokens still gets a sum with full relative accuracy.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

TILE = 1 << 18  # entries of one tile: 2 MiB in float64, the size of a second-level cache


class Tiled(eqx.Module):
    """Exact sums in tiles of `queries` by `keys` pairs (chosen from the sizes when not given).

    Round-off is absolute, about (4 + sqrt(n)) units in the last place of the largest term.
    """

    queries: int | None = eqx.field(static=True, default=None)
    keys: int | None = eqx.field(static=True, default=None)

    def __call__(
        self,
        log_weight: Callable[[Any, Any], Float[Array, "query key"]],
        query: Any,
        key: Any,
        masses: Float[Array, " key"],
        charges: Float[Array, "key charge"],
    ) -> tuple[Float[Array, " query"], Float[Array, "query charge"]]:
        """Pairs (scale, sums) with S(x_i; y, charges) = e^(scale_i) sums_i.

        `log_weight(query block, key block)` gives one tile; `query` and `key` are pytrees whose leaves have
        the query or the key as first axis.
        """
        n_query, n_key = _length(query), charges.shape[0]
        log_mass = jnp.where(masses > 0, jnp.log(jnp.where(masses > 0, masses, 1.0)), -jnp.inf)

        def begin(size: int) -> Any:
            return (
                jnp.full((size,), jnp.finfo(charges.dtype).min / 4, charges.dtype),  # finite: no -inf minus -inf
                jnp.zeros((size, charges.shape[1]), charges.dtype),
            )

        def absorb(carry: Any, query_block: Any, key_block: Any) -> Any:
            top, total = carry
            block, log_mass_block, charge_block = key_block
            logits = log_weight(query_block, block) + log_mass_block[None, :]
            new = jax.lax.stop_gradient(jnp.maximum(top, jnp.max(logits, axis=1)))
            weights = jnp.exp(logits - new[:, None])
            return new, total * jnp.exp(top - new)[:, None] + weights @ charge_block

        keys = (key, log_mass, charges)
        padding = (None, -jnp.inf, 0.0)
        return over_pairs(
            begin, absorb, query, keys, n_query, n_key, key_padding=padding, queries=self.queries, keys=self.keys
        )


def over_pairs(
    begin: Callable[[int], Any],
    absorb: Callable[[Any, Any, Any], Any],
    query: Any,
    key: Any,
    n_query: int,
    n_key: int,
    *,
    key_padding: Any,
    queries: int | None = None,
    keys: int | None = None,
) -> Any:
    """Fold `absorb(carry, query block, key block)` over all key blocks, for each block of queries.

    `begin(size)` makes the carry of a block of `size` queries; its leaves come back with all queries as first
    axis. `key_padding` holds, for each entry of the tuple `key`, the value that fills an incomplete block
    (None repeats the last row). Reverse-mode derivatives recompute tiles instead of storing them.
    """
    q, k = block_sizes(n_query, n_key, queries, keys)
    if q >= n_query and k >= n_key:
        return absorb(begin(n_query), query, key)

    key_blocks = tuple(
        jax.tree.map(lambda a, fill=fill: _blocked(a, k, fill), part)
        for part, fill in zip(key, key_padding, strict=True)
    )

    def one(query_block: Any) -> Any:
        size = _length(query_block)
        if k >= n_key:
            return absorb(begin(size), query_block, key)

        @jax.checkpoint
        def body(carry: Any, block: Any) -> Any:
            return absorb(carry, query_block, block), None

        return jax.lax.scan(body, begin(size), key_blocks)[0]

    if q >= n_query:
        return one(query)
    query_blocks = jax.tree.map(lambda a: _blocked(a, q, None), query)
    result = jax.lax.map(one, query_blocks)
    return jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:])[:n_query], result)


def block_sizes(n_query: int, n_key: int, queries: int | None = None, keys: int | None = None) -> tuple[int, int]:
    """Tile shape for these numbers: at most TILE pairs, whole rows of keys when they are few."""
    k = keys or min(n_key, 2048)
    q = queries or max(1, min(n_query, TILE // k))
    return q, k


def _length(tree: Any) -> int:
    return jax.tree.leaves(tree)[0].shape[0]


def _blocked(array: Array, size: int, fill: float | None) -> Array:
    """Cut the first axis into blocks of `size`, filling up the last one."""
    missing = -array.shape[0] % size
    if missing:
        shape = (missing, *array.shape[1:])
        tail = jnp.broadcast_to(array[-1:], shape) if fill is None else jnp.full(shape, fill, array.dtype)
        array = jnp.concatenate([array, tail])
    return array.reshape(-1, size, *array.shape[1:])

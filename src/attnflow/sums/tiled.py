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

    Round-off is absolute, about (4 + sqrt(n)) units in the last place of the largest term. With `queries` and `keys`
    given, everything is padded to whole tiles, so that a row of the result depends, bit by bit, only on the keys that
    it sees and not on how many others there are. `copies` is the number of sums that run side by side (heads, members
    of a batch) and share the memory of one tile.
    """

    queries: int | None = eqx.field(static=True, default=None)
    keys: int | None = eqx.field(static=True, default=None)
    copies: int = eqx.field(static=True, default=1)

    def __call__(
        self,
        log_weight: Callable[[Any, Any], Float[Array, "query key"]],
        query: Any,
        key: Any,
        log_mass: Float[Array, " key"],
        charges: Float[Array, "key charge"],
    ) -> tuple[Float[Array, " query"], Float[Array, "query charge"]]:
        """Pairs (scale, sums) with sum_j e^(log_mass_j + log weight of (x_i, y_j)) charge_j = e^(scale_i) sums_i.

        `log_weight(query block, key block)` gives one tile; `query` and `key` are pytrees whose leaves have
        the query or the key as first axis.
        """
        low = jnp.finfo(charges.dtype).min / 4  # finite: no -inf minus -inf for a query that sees nothing

        def tile(query_block: Any, key_block: Any) -> Any:
            block, log_mass_block, charge_block = key_block
            logits = log_weight(query_block, block) + log_mass_block[None, :]
            # the bound inside the maximum: outside it the compiler would not fuse the row into one pass
            top = jax.lax.stop_gradient(jnp.max(jnp.maximum(logits, low), axis=1))
            return top, jnp.exp(logits - top[:, None]) @ charge_block

        def merge(one: Any, other: Any) -> Any:
            top = jnp.maximum(one[0], other[0])
            return top, sum(total * jnp.exp(level - top)[:, None] for level, total in (one, other))

        def begin(size: int) -> Any:
            return jnp.full((size,), low, charges.dtype), jnp.zeros((size, charges.shape[1]), charges.dtype)

        return over_pairs(
            tile, merge, begin, query, (key, log_mass, charges), _length(query), charges.shape[0],
            key_padding=(None, -jnp.inf, 0.0), tiles=self,
        )  # fmt: skip

    def shared(self, copies: int) -> "Tiled":
        """The same tiles shared by `copies` sums that run side by side."""
        return Tiled(self.queries, self.keys, self.copies * copies)

    def sizes(self, n_query: int, n_key: int) -> tuple[int, int]:
        """Tile shape for these numbers: at most TILE pairs, whole rows of keys when they are few."""
        k = self.keys or min(n_key, 2048)
        q = self.queries or max(1, min(n_query, TILE // (k * self.copies)))
        return q, k


def over_pairs(
    tile: Callable[[Any, Any], Any],
    merge: Callable[[Any, Any], Any],
    begin: Callable[[int], Any],
    query: Any,
    key: Any,
    n_query: int,
    n_key: int,
    *,
    key_padding: Any,
    tiles: Tiled = Tiled(),
) -> Any:
    """Compute `tile(query block, key block)` for all pairs of blocks and `merge` the results of each block of queries.

    Leaves of a result have the query as first axis; `begin(size)` is the result of no keys at all for `size` queries.
    `key_padding` holds, for each entry of the tuple `key`, the value that fills an incomplete block (None repeats the
    last row). Reverse-mode derivatives recompute tiles instead of storing them.
    """
    q, k = tiles.sizes(n_query, n_key)
    one_query, one_key = q >= n_query and tiles.queries is None, k >= n_key and tiles.keys is None
    if one_query and one_key:
        return tile(query, key)

    key_blocks = tuple(
        jax.tree.map(lambda a, fill=fill: _blocked(a, k, fill), part)
        for part, fill in zip(key, key_padding, strict=True)
    )

    def one(query_block: Any) -> Any:
        if one_key:
            return tile(query_block, key)

        @jax.checkpoint
        def body(carry: Any, block: Any) -> Any:
            return merge(carry, tile(query_block, block)), None

        return jax.lax.scan(body, begin(_length(query_block)), key_blocks)[0]

    if one_query:
        return one(query)
    query_blocks = jax.tree.map(lambda a: _blocked(a, q, None), query)
    result = jax.lax.map(one, query_blocks)
    return jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:])[:n_query], result)


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

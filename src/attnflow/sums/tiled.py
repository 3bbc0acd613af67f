"""Streaming sums over tiles of pairs: O(block^2 + queries * charges) memory for any number of tokens.

Every tile keeps the running maximum of the log weights of its queries, so nothing overflows and a query
far from all tokens still gets a sum with full relative accuracy.
"""

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attnflow.checks import flag, whole
from attnflow.kernels import AbstractKernel, first_member
from attnflow.precision import is_concrete
from attnflow.sums.base import AbstractSum, Case, Offer, Use, least_mass, named
from attnflow.sums.blocks import blocked, length, side_by_side
from attnflow.sums.costs import SETUP
from attnflow.sums.weights import Arguments, Charges, KeySide, QuerySide, Sums, Weights
from attnflow.tokens import Measure, Tokens

TILE = 1 << 18  # entries of one tile: 2 MiB in float64, the size of a second-level cache
GROUPS = 4  # loops over tiles that run at the same time
DEVICE_TILE = 1 << 26  # on a GPU: enough to keep it busy
LIGHTEST = 1e-30  # the least mass that a bounded sum takes


class Tiled(AbstractSum):
    """Exact sums in tiles of `queries` by `keys` pairs (chosen from the sizes when not given); any kernel and mask.

    Round-off is absolute, about (4 + sqrt(n)) units in the last place of the largest term. With `queries` and `keys`
    given, everything is padded to whole tiles, so that a row of the result depends, bit by bit, only on the keys that
    it sees and not on how many others there are. `copies` is the number of sums that run side by side (heads, members
    of a batch) and share the memory of one tile. `bounded` promises weights of at most 1, and 1 for equal features
    (unit vectors and beta >= 0): where each query sees its own mass, no maximum is needed.
    """

    queries: int | None = eqx.field(static=True, default=None)
    keys: int | None = eqx.field(static=True, default=None)
    copies: int = eqx.field(static=True, default=1)
    bounded: bool = eqx.field(static=True, default=False)

    def __check_init__(self) -> None:
        for name in ("queries", "keys"):
            if getattr(self, name) is not None:
                whole(name, getattr(self, name), 1)
        whole("copies", self.copies, 1)
        flag("bounded", self.bounded)

    def __call__(
        self,
        weights: Weights,
        query: QuerySide,
        key: KeySide,
        log_mass: Float[Array, " key"],
        charges: Charges,
    ) -> Sums:
        columns = charges.array(key[0])
        run = functools.partial(over_pairs, n_query=length(query), n_key=columns.shape[0], tiles=self)
        if weights.kernel.is_signed or (self.bounded and weights.at_tokens):
            top = jnp.max(log_mass)
            columns = jnp.exp(log_mass - top)[:, None] * columns

            def plain(query_block: Any, key_block: Any) -> Any:
                return weights.values(query_block, key_block[0]) @ key_block[1]

            def nothing(size: int) -> Any:
                return jnp.zeros((size, columns.shape[1]), columns.dtype)

            sums = run(plain, jnp.add, nothing, query, (key, columns), key_padding=(None, 0.0))
            return jnp.full(sums.shape[:1], top), sums
        low = jnp.finfo(columns.dtype).min / 4  # finite: no -inf minus -inf for a query that sees nothing

        def tile(query_block: Any, key_block: Any) -> Any:
            block, log_mass_block, charge_block = key_block
            logits = weights.log(query_block, block) + log_mass_block[None, :]
            # the bound inside the maximum: outside it the compiler would not fuse the row into one pass
            top = jax.lax.stop_gradient(jnp.max(jnp.maximum(logits, low), axis=1))
            return top, jnp.exp(logits - top[:, None]) @ charge_block

        def merge(one: Any, other: Any) -> Any:
            top = jnp.maximum(one[0], other[0])
            return top, sum(total * jnp.exp(level - top)[:, None] for level, total in (one, other))

        def begin(size: int) -> Any:
            return jnp.full((size,), low, columns.dtype), jnp.zeros((size, columns.shape[1]), columns.dtype)

        parts, padding = (key, log_mass, columns), (None, -jnp.inf, 0.0)
        result: Sums = run(tile, merge, begin, query, parts, key_padding=padding)
        return result

    def shared(self, copies: int) -> "Tiled":
        return Tiled(self.queries, self.keys, self.copies * copies, self.bounded)

    def trusted(self, arguments: Arguments, scale: Any, total: Any) -> Any:
        return None

    def error(self, kernel: AbstractKernel, masses: Float[Array, " key"]) -> Any:
        return 0.0

    def refusal(self, use: Use, tokens: Tokens | Measure | None) -> str:
        return _unbounded(use, tokens) if self.bounded else ""

    @classmethod
    def offers(cls, case: Case) -> tuple[Offer, ...]:
        bounded = not _unbounded(case.use, case.tokens)
        seconds = case.costs.tiles(case.n, case.d, bounded)
        return (Offer("Tiled", cls(bounded=bounded), seconds, case.floor, setup=SETUP["Tiled"]),)

    def sizes(self, n_query: int, n_key: int) -> tuple[int, int]:
        """Tile shape for these numbers: at most TILE pairs, whole rows of keys when they are few."""
        entries, widest = (TILE, 2048) if jax.default_backend() == "cpu" else (DEVICE_TILE, 16384)
        k = self.keys or min(n_key, widest)
        q = self.queries or max(1, min(n_query, entries // (k * self.copies)))
        return q, k


def _unbounded(use: Use, tokens: Tokens | Measure | None) -> str:
    """Why weights may exceed 1, or what a token sees be lost; empty if neither."""
    if not use.mask.sees_itself:
        return (
            f"the sum Tiled(bounded=True) needs tokens that see themselves, but the mask {type(use.mask).__name__} "
            "may hide them; use sum=Tiled()."
        )
    kernels = use.kernels or [first_member(use.kernel)]
    # a token sees itself in full where queries and keys have the same features
    bounds = [use.plain and kernel.is_bounded(use.unit) for kernel in kernels]
    if not all(bound for bound in bounds if is_concrete(bound)):
        where = f"on {use.space}" if use.plain else "after Q, K or an encoding"
        return (
            f"the sum Tiled(bounded=True) needs weights of at most 1, and {named(kernels)} {where} may have larger "
            "ones; use sum=Tiled()."
        )
    return _too_light(tokens)


def _too_light(tokens: Tokens | Measure | None) -> str:
    """A token that hardly sees itself needs the maximum of its row: what it sees may be below the smallest number."""
    lightest = 1.0 if tokens is None else least_mass(tokens)
    if lightest > LIGHTEST:
        return ""
    return f"`masses` holds {lightest:g}; the sum Tiled(bounded=True) needs masses above {LIGHTEST:g}, use sum=Tiled()."


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
        jax.tree.map(lambda a, fill=fill: blocked(a, k, fill), part)
        for part, fill in zip(key, key_padding, strict=True)
    )

    def one(query_block: Any) -> Any:
        if one_key:
            return tile(query_block, key)

        @jax.checkpoint
        def body(carry: Any, block: Any) -> Any:
            return merge(carry, tile(query_block, block)), None

        return jax.lax.scan(body, begin(length(query_block)), key_blocks)[0]

    if one_query:
        return one(query)
    query_blocks = jax.tree.map(lambda a: blocked(a, q, None), query)
    results = side_by_side(lambda blocks: jax.lax.map(one, blocks), query_blocks, GROUPS)
    return jax.tree.map(lambda *a: jnp.concatenate(a).reshape(-1, *a[0].shape[2:])[:n_query], *results)

"""Points in blocks, loops side by side, and derivatives from another route."""

import itertools
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array


def length(tree: Any) -> int:
    """The number of points of a pytree whose leaves have the point as first axis."""
    return jax.tree.leaves(tree)[0].shape[0]


def blocked(array: Array, size: int, fill: float | None) -> Array:
    """Cut the first axis into blocks of `size`, filling up the last one (None repeats the last row)."""
    missing = -array.shape[0] % size
    if missing:
        shape = (missing, *array.shape[1:])
        tail = jnp.broadcast_to(array[-1:], shape) if fill is None else jnp.full(shape, fill, array.dtype)
        array = jnp.concatenate([array, tail])
    return array.reshape(-1, size, *array.shape[1:])


def side_by_side(function: Any, blocks: Any, groups: int) -> list[Any]:
    """`function` of consecutive groups of blocks, as loops that do not wait for each other.

    On the CPU the compiler works through a loop in one thread but through independent loops at the same time. Few
    blocks, and devices, get a single loop. The grouping depends on the shapes alone, so that results repeat.
    """
    count = length(blocks)
    if count < 32 or jax.default_backend() != "cpu":
        return [function(blocks)]
    edges = [count * k // groups for k in range(groups + 1)]
    return [function(jax.tree.map(lambda a, i=i, j=j: a[i:j], blocks)) for i, j in itertools.pairwise(edges)]


def derived_from(exact: Any, fast: Any) -> Any:
    """`fast` with the derivatives of `exact`, a differentiable function that gives the same values."""

    @jax.custom_jvp
    def function(*args: Any) -> Any:
        return fast(*args)

    @function.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        return function(*primals), jax.jvp(exact, primals, tangents)[1]

    return function

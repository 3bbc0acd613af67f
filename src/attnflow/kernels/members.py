"""A kernel inside of sums: in another floating type, by degrees, and member by member of a batch."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attnflow.axes import batches, is_along
from attnflow.kernels.base import AbstractKernel, Expansion
from attnflow.precision import is_traced


def cast(kernel: AbstractKernel, dtype: Any) -> AbstractKernel:
    """The kernel with parameters of another floating type."""

    def one(leaf: Any) -> Any:
        inexact = hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jnp.floating)
        return jnp.asarray(leaf, dtype) if inexact or isinstance(leaf, float) else leaf

    return jax.tree.map(one, kernel)


def expanded(kernel: AbstractKernel, d: int, degree: int, dtype: Any) -> Expansion:
    """The expansion of a kernel that has one, in numbers of this type."""
    found = kernel.expansion(d, degree)
    assert found is not None  # or the sum would have been refused
    return Expansion(*(jnp.asarray(number, dtype) for number in found))


def first_member(kernel: AbstractKernel) -> AbstractKernel:
    """The kernel of the first member of a batch; parameters may be traced."""
    return jax.tree.map(lambda a: a.values[0] if is_along(a) else a, kernel, is_leaf=is_along)


def members_of(kernel: AbstractKernel) -> list[AbstractKernel] | None:
    """The kernels of a batch, equal ones once; None where their parameters are traced."""
    if is_traced(kernel):
        return None
    along = batches(kernel)
    if not along:
        return [kernel]
    # members of one batch may differ in several parameters along several dimensions: take every combination
    dims = {leaf.dim: np.asarray(leaf.values).shape[0] for leaf in along}
    found: dict[Any, AbstractKernel] = {}
    for index in np.ndindex(*dims.values()):
        at = dict(zip(dims, index, strict=True))
        picked = {id(leaf): np.asarray(leaf.values)[at[leaf.dim]] for leaf in along}
        one = jax.tree.map(lambda a, picked=picked: picked.get(id(a), a), kernel, is_leaf=is_along)
        found.setdefault(tuple(value.tobytes() for value in picked.values()), one)
    return list(found.values())

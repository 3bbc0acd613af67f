"""Named batch dimensions: one call evaluates or integrates a whole ensemble.

A parameter becomes a batch by `Along("beta", [1, 4, 9])`; tokens become one by `seed=range(8)` or `stack`.
Every function that takes a field and tokens works on the outer product of the names it finds, so
`Attention(Along("beta", betas))` with tokens of dimension `seed` gives results of shape (beta, seed, ...).
A name that occurs twice is matched, not multiplied.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow.errors import InvalidInput
from attnflow.precision import is_concrete

GROUP = {True: 1 << 16, False: 1 << 28}
"""Pairs of a group of members: on the CPU (True) what a second-level cache holds, else what keeps a device busy."""
RESERVED = ("time", "token", "dim", "cluster")


class Along(eqx.Module):
    """A parameter with one value per member of the batch dimension `dim`."""

    dim: str = eqx.field(static=True)
    values: Float[Array | np.ndarray, "member *shape"]

    def __init__(self, dim: str, values: Sequence[float] | np.ndarray):
        if not dim.isidentifier() or dim in RESERVED:
            raise InvalidInput(f"`dim` of Along is {dim!r}; use an identifier other than {', '.join(RESERVED)}.")
        self.dim = dim
        self.values = np.asarray(values, dtype=np.float64)
        if self.values.ndim < 1 or self.values.shape[0] == 0:
            raise InvalidInput(f"Along({dim!r}) needs at least one value, got {values!r}.")

    @property
    def coordinates(self) -> np.ndarray:
        """Labels of the members: the values themselves when they are numbers, else 0, 1, 2, ..."""
        return np.asarray(self.values) if self.values.ndim == 1 else np.arange(len(self.values))


def scalar(name: str, *, low: float = -np.inf, high: float = np.inf) -> Any:
    """A converter for a number that may be traced or batched; refuses NaN, infinities and values out of range."""

    def convert(value: Any) -> Any:
        if not is_concrete(value):
            return value
        batched = isinstance(value, Along)
        try:
            numbers = np.asarray(value.values if batched else value, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidInput(f"`{name}` is {value!r}; give a real number.") from None
        if numbers.ndim != (1 if batched else 0):
            raise InvalidInput(
                f"`{name}` has shape {numbers.shape}; give one number, or Along('{name}', values) for a batch."
            )
        bad = ~(np.isfinite(numbers) & (numbers >= low) & (numbers <= high))
        if bad.any():
            where = "finite" if np.isinf([low, high]).all() else f"finite and in [{low:g}, {high:g}]"
            raise InvalidInput(f"`{name}` is {numbers[bad].flat[0]}; give a number that is {where}.")
        return value if batched else numbers

    return convert


def positive(name: str) -> Any:
    """A converter for a number that must be above zero."""
    return scalar(name, low=float(np.finfo(np.float64).tiny))


def finite_array(name: str, value: Any) -> Any:
    """`value` as an array of finite float64 numbers; traced values pass."""
    if not is_concrete(value):
        return value
    try:
        numbers = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"{name} is {value!r}; give an array of real numbers.") from None
    if not np.isfinite(numbers).all():
        raise InvalidInput(f"{name} of shape {numbers.shape} has an entry that is not finite; mend or remove it.")
    return numbers


def as_seed(value: Any) -> Any:
    """A converter for the seed of random numbers that are drawn inside compiled code; may be traced or batched."""
    value = scalar("seed", low=0, high=2**53)(value)
    numbers = value.values if isinstance(value, Along) else value
    if is_concrete(numbers) and (np.rint(numbers) != numbers).any():
        raise InvalidInput(f"`seed` is {numbers}; give whole numbers.")
    return value


class Members(NamedTuple):
    """A field and tokens with their batch dimensions flattened into one leading axis."""

    dims: dict[str, np.ndarray]
    field: Any
    field_axes: Any
    positions: np.ndarray
    masses: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(c) for c in self.dims.values())

    def unflatten(self, array: Any) -> Any:
        """Put the batch dimensions back in front of `array`."""
        return array.reshape(*self.shape, *array.shape[1:]) if self.dims else array

    def flatten(self, array: Any) -> Any:
        """The inverse of `unflatten`."""
        depth = len(self.dims)
        return array.reshape(-1, *array.shape[depth:]) if self.dims else array


def _is_along(node: Any) -> bool:
    return isinstance(node, Along)


def _merge(dims: dict[str, np.ndarray], name: str, coordinates: np.ndarray) -> None:
    known = dims.setdefault(name, coordinates)
    if len(known) != len(coordinates):
        raise InvalidInput(
            f"batch dimension {name!r} has {len(known)} members in one place and {len(coordinates)} "
            "in another; use the same values, or two names."
        )


def members(field: Any, tokens: Any) -> Members:
    """Collect the batch dimensions of `field` and `tokens` and flatten them to one axis."""
    dims: dict[str, np.ndarray] = {}
    for node in jax.tree.leaves(field, is_leaf=_is_along):
        if _is_along(node):
            _merge(dims, node.dim, node.coordinates)
    for name, coordinates in zip(tokens.dims, tokens.coordinates, strict=True):
        _merge(dims, name, np.asarray(coordinates))
    if not dims:
        return Members({}, field, None, tokens.positions, tokens.masses)

    shape = tuple(len(c) for c in dims.values())
    index = {name: np.arange(np.prod(shape)) // int(np.prod(shape[k + 1 :])) % shape[k] for k, name in enumerate(dims)}
    flat = jax.tree.map(
        lambda node: node.values[index[node.dim]] if _is_along(node) else node, field, is_leaf=_is_along
    )
    axes = jax.tree.map(lambda node: 0 if _is_along(node) else None, field, is_leaf=_is_along)
    pick = tuple(index[name] for name in tokens.dims)
    size = int(np.prod(shape))

    def spread(array: Any) -> Any:
        return array[pick] if tokens.dims else np.broadcast_to(array, (size, *array.shape))

    return Members(dims, flat, axes, spread(tokens.positions), spread(tokens.masses))


def over_members(function: Any, axes: tuple[Any, ...], args: tuple[Any, ...], pairs: int) -> Any:
    """`function(*args)` for each member of a batch; `axes` as for `equinox.filter_vmap`.

    Members are worked through in groups whose tiles (`pairs` entries per member) fit a cache together, so that a large
    ensemble of small systems needs neither the memory nor the memory traffic of all its pairs at once; and the members
    of an adaptive flow wait only for the slowest of their group.
    """
    size = next(leaf.shape[0] for axis, arg in zip(axes, args, strict=True) for leaf in _batched_leaves(axis, arg))
    group = max(1, GROUP[jax.default_backend() == "cpu"] // max(pairs, 1))
    vectorised = eqx.filter_vmap(function, in_axes=axes)
    if size <= group:
        return vectorised(*args)

    def some(first: Any) -> Any:
        index = jnp.minimum(first + jnp.arange(group), size - 1)
        return vectorised(*(_pick(axis, arg, index) for axis, arg in zip(axes, args, strict=True)))

    found = jax.lax.map(some, jnp.arange(0, size, group))
    return jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:])[:size], found)


def _batched_leaves(axis: Any, arg: Any) -> list[Any]:
    if axis is None or isinstance(axis, int):
        return [] if axis is None else jax.tree.leaves(arg)
    marks = jax.tree.leaves(axis, is_leaf=lambda node: node is None)
    leaves = jax.tree.leaves(arg, is_leaf=lambda node: node is None)
    return [leaf for mark, leaf in zip(marks, leaves, strict=True) if mark == 0]


def _pick(axis: Any, arg: Any, index: Any) -> Any:
    if axis is None:
        return arg
    if isinstance(axis, int):
        return jax.tree.map(lambda leaf: leaf[index], arg)
    return jax.tree.map(
        lambda mark, leaf: leaf[index] if mark == 0 else leaf, axis, arg, is_leaf=lambda node: node is None
    )

"""Named batch dimensions: one call evaluates or integrates a whole ensemble.

A parameter becomes a batch by `Along("beta", [1, 4, 9])`; tokens become one by `seed=range(8)` or `stack`.
Every function that takes a field and tokens works on the outer product of the names it finds, so
`Attention(Along("beta", betas))` with tokens of dimension `seed` gives results of shape (beta, seed, ...).
A name that occurs twice is matched, not multiplied; the labels of its members must then agree.
"""

from collections.abc import Callable, Iterable, Sequence, Sized
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow.checks import ABOVE_ZERO, in_range, instance, not_real, reals, shown
from attnflow.errors import InvalidInput
from attnflow.lazy import listing
from attnflow.precision import is_concrete, is_traced

__all__ = [
    "Along",
    "Batched",
    "Label",
    "Members",
    "Number",
    "as_labels",
    "as_seed",
    "batches",
    "dimensions",
    "finite_array",
    "is_along",
    "members",
    "one_system",
    "over_members",
    "positive",
    "random_key",
    "scalar",
]
__dir__ = listing(__all__)

GROUP = {True: 1 << 16, False: 1 << 28}
"""Pairs of a group of members: on the CPU (True) what a second-level cache holds, else what keeps a device busy."""
RESERVED = ("time", "token", "dim", "cluster", "token_label")
Label: TypeAlias = float | str


class Along(eqx.Module):
    """A parameter with one value per member of the batch dimension `dim`.

    `labels` name the members. Left out, they are the values where these are numbers. Arrays have no labels: they take
    those that others give to the dimension, else 0, 1, 2, ..., and so do numbers with `labels=()`. All labels that one
    dimension is given must agree, so two parameters that vary together are written
    `Attention(Along("beta", betas), encoding=Sinusoidal(Along("beta", sizes, labels=betas)))`.
    """

    dim: str = eqx.field(static=True)
    values: Float[Array | np.ndarray, "member *shape"]
    labels: tuple[Label, ...] | None = eqx.field(static=True)
    """As given; None stands for the values, where they are numbers."""

    def __init__(self, dim: str, values: Any, labels: Sequence[Label] | np.ndarray | None = None):
        instance("dim", dim, str, "the name of the batch dimension, as in Along('beta', [1, 4, 9])")
        if not dim.isidentifier() or dim in RESERVED:
            raise InvalidInput(f"`dim` of Along is {shown(dim)}; use an identifier other than {', '.join(RESERVED)}.")
        numbers = jnp.asarray(values) if is_traced(values) else reals(values)
        if numbers is None:
            raise InvalidInput(
                f"`values` of Along({dim!r}) is {shown(values)}; give real numbers, or arrays of one shape."
            )
        if numbers.ndim < 1 or numbers.shape[0] == 0:
            raise InvalidInput(f"Along({dim!r}) needs at least one value, got {shown(values)}.")
        self.dim, self.values, self.labels = dim, numbers, None
        count = len(numbers)
        if labels is not None:
            none = isinstance(labels, Sized) and len(labels) == 0
            self.labels = () if none else as_labels(f"`labels` of Along({dim!r})", labels, count)
        elif (own := self.coordinates) is not None and (twice := _repeated(own.tolist())) is not None:
            raise InvalidInput(
                f"`values` of Along({dim!r}) has {twice} more than once, and values are labels; "
                f"give distinct ones, or `labels=range({count})`."
            )

    @property
    def coordinates(self) -> np.ndarray | None:
        """Labels of the members; None where it has none of its own."""
        if self.labels is not None:
            return np.asarray(self.labels) if self.labels else None
        return np.asarray(self.values) if self.values.ndim == 1 and is_concrete(self.values) else None

    def map(self, function: Callable[[Any], Any]) -> "Along":
        """The same members, with the same labels, and the values `function(values)`."""
        own = self.coordinates
        return Along(self.dim, function(self.values), labels=() if own is None else own)


Number: TypeAlias = float | np.integer | np.floating | np.ndarray | jax.Array
"""What a parameter that is one number may be given as; arrays have no axes. It is stored as an array."""
Batched: TypeAlias = Number | Along
"""The same, or one number per member of a batch."""


def scalar(name: str, *, low: float = -np.inf, high: float = np.inf, batch: bool = True) -> Any:
    """A converter for a number that may be traced or, with `batch`, batched; refuses NaN, infinities, other ranges."""

    def convert(value: Any) -> Any:
        batched = isinstance(value, Along)
        if batched and not batch:
            raise InvalidInput(f"`{name}` is a batch along {value.dim!r}; all members share it, give one number.")
        given = value.values if batched else value
        if not is_concrete(given):
            return value
        numbers = reals(given)
        if numbers is None:
            raise not_real(name, given)
        if numbers.ndim != (1 if batched else 0):
            raise InvalidInput(
                f"`{name}` has shape {numbers.shape}; give one number, or Along('{name}', values) for a batch."
            )
        in_range(name, numbers, low, high)
        return value if batched else numbers

    convert.takes_batches = batch  # type: ignore[attr-defined]  # lists in a specification make a batch
    return convert


def positive(name: str, *, batch: bool = True) -> Any:
    """A converter for a number that must be above zero."""
    return scalar(name, low=ABOVE_ZERO, batch=batch)


def finite_array(name: str, value: Any) -> Any:
    """`value` as an array of finite float64 numbers; traced values pass."""
    if not is_concrete(value):
        return value
    numbers = reals(value)
    if numbers is None:
        raise InvalidInput(f"{name} is {shown(value)}; give an array of real numbers, with rows of one length.")
    if not np.isfinite(numbers).all():
        raise InvalidInput(f"{name} of shape {numbers.shape} has an entry that is not finite; correct or remove it.")
    return numbers


def unit_rows(rows: np.ndarray) -> np.ndarray:
    """Divide the rows along the last axis by their Euclidean lengths, in their own precision; rows of zeros stay zeros.

    Rows are first multiplied by a power of two, so that their squares stay in float range and no other bit changes.
    """
    scaled = np.ldexp(rows, -np.frexp(np.abs(rows).max(axis=-1, keepdims=True))[1])
    lengths = np.linalg.norm(scaled, axis=-1, keepdims=True)
    return np.asarray(scaled / np.where(lengths > 0, lengths, 1))


def row_lengths(rows: np.ndarray) -> np.ndarray:
    """Euclidean lengths of the rows along the last axis, also where the squares of entries leave float range."""
    exponents = np.frexp(np.abs(rows).max(axis=-1, keepdims=True))[1]
    return np.asarray(np.ldexp(np.linalg.norm(np.ldexp(rows, -exponents), axis=-1), exponents[..., 0]))


def as_seed(value: Any) -> Any:
    """A converter for the seed of random numbers that are drawn inside compiled code; may be traced or batched.

    A `jax.random.key` stays as it is.
    """
    if _is_key(value):
        if value.ndim:
            raise InvalidInput(f"`seed` is an array of keys of shape {value.shape}; give one key, or use `jax.vmap`.")
        return value
    value = scalar("seed", low=0, high=2**53)(value)
    numbers = value.values if isinstance(value, Along) else value
    if is_concrete(numbers) and (np.rint(numbers) != numbers).any():
        raise InvalidInput(f"`seed` is {shown(numbers.tolist())}; give whole numbers.")
    return value


def random_key(seed: Any) -> Any:
    """The random key of a seed for one member of a batch; a key is its own."""
    # the generator is named so that numbers do not depend on the user's configuration of JAX
    return seed if _is_key(seed) else jax.random.key(jnp.asarray(seed).astype(int), impl="threefry2x32")


def _is_key(value: Any) -> bool:
    return isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key)


def as_labels(name: str, labels: Any, count: int) -> tuple[Label, ...]:
    """`labels` as distinct labels of `count` members, numbers or texts; `name` is what a message calls them."""
    try:
        found = np.asarray(labels)
    except (TypeError, ValueError):  # traced, or lists of unequal length
        found = np.asarray(None)
    if found.ndim != 1 or found.dtype.kind not in "iufU":
        raise InvalidInput(f"{name} is {shown(labels)}; give one number or text per member.")
    made: tuple[Label, ...] = tuple(found.tolist())
    if len(made) != count:
        raise InvalidInput(f"{name} has {len(made)} entries for {count} members; give one for each.")
    if found.dtype.kind == "f" and np.isnan(found).any():
        raise InvalidInput(f"{name} is {shown(list(made))}; NaN is no label, give numbers or texts.")
    if (twice := _repeated(made)) is not None:
        raise InvalidInput(f"{name} has {twice!r} more than once; give each member a label of its own.")
    return made


def _repeated(labels: Iterable[Label]) -> Label | None:
    seen: set[Label] = set()
    for label in labels:
        if label in seen:
            return label
        seen.add(label)
    return None


class Members(NamedTuple):
    """A field and tokens with their batch dimensions flattened into one leading axis."""

    dims: dict[str, np.ndarray]
    field: Any
    field_axes: Any
    measure: Any
    """A `Measure`; with batch dimensions, every leaf but those of its space has the flattened member axis first."""

    @property
    def measure_axes(self) -> Any:
        """The axes of the members in `measure`, as `field_axes` are those in `field`; None without batch dimensions."""
        return self.measure.member_axes if self.dims else None

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


def is_along(node: Any) -> bool:
    """Whether a node of a pytree is a batch of parameters."""
    return isinstance(node, Along)


def batches(tree: Any) -> list[Along]:
    """The batches of parameters in a pytree."""
    return [node for node in jax.tree.leaves(tree, is_leaf=is_along) if is_along(node)]


def _dimensions(found: Iterable[tuple[str, int, Any]]) -> dict[str, np.ndarray]:
    """The labels of every batch dimension, in the order of appearance, from (name, members, labels or None)."""
    counts: dict[str, int] = {}
    labels: dict[str, np.ndarray] = {}
    for name, count, own in found:
        if counts.setdefault(name, count) != count:
            raise InvalidInput(
                f"batch dimension {name!r} has {counts[name]} members in one place and {count} "
                "in another; use the same values, or two names."
            )
        if own is not None:
            _must_agree(name, labels.setdefault(name, np.asarray(own)).tolist(), np.asarray(own).tolist())
    return {name: labels.get(name, np.arange(count)) for name, count in counts.items()}


def _must_agree(name: str, first: list[Label], second: list[Label]) -> None:
    if first == second:
        return
    where = next(k for k, (a, b) in enumerate(zip(first, second, strict=True)) if a != b)
    shift = max(0, where - 2)
    one, other = (", ".join(map(repr, many[shift : shift + 6])) for many in (first, second))
    some = "" if len(first) <= 6 else f" from member {shift} on"
    raise InvalidInput(
        f"batch dimension {name!r} has the labels [{one}] in one place and [{other}] in another{some}; use the same "
        f"values, two names, or `Along({name!r}, values, labels=...)` with the labels of the other place."
    )


def dimensions(field: Any, tokens: Any) -> dict[str, np.ndarray]:
    """The labels of the batch dimensions of `field` and `tokens` (or a measure)."""
    return _dimensions(
        [(node.dim, len(node.values), node.coordinates) for node in batches(field)]
        + list(zip(tokens.dims, tokens.positions.shape, tokens.coordinates, strict=False))
    )


def members(field: Any, tokens: Any) -> Members:
    """Collect the batch dimensions of `field` and `tokens` (or a measure) and flatten them to one axis."""
    dims = dimensions(field, tokens)
    if not dims:
        return Members({}, field, None, tokens.measure)

    shape = tuple(len(c) for c in dims.values())
    index = {name: np.arange(np.prod(shape)) // int(np.prod(shape[k + 1 :])) % shape[k] for k, name in enumerate(dims)}
    flat = jax.tree.map(lambda node: node.values[index[node.dim]] if is_along(node) else node, field, is_leaf=is_along)
    axes = jax.tree.map(lambda node: 0 if is_along(node) else None, field, is_leaf=is_along)
    return Members(dims, flat, axes, tokens.for_members(index, int(np.prod(shape))))


def one_system(field: Any, tokens: Any) -> None:
    """Refuse a batch, of tokens or of parameters of the field."""
    tokens.single()
    if batch := {node.dim: None for node in batches(field)}:
        raise InvalidInput(f"`field` has batch dimensions {tuple(batch)}; give the field of one member.")


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

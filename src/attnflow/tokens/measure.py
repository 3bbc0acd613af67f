"""An atomic measure: positions, masses, places, and the space they live on."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float, Int
from numpy.typing import ArrayLike, DTypeLike

from attnflow.axes import RESERVED, Label, as_labels
from attnflow.checks import instance, shown
from attnflow.errors import InvalidInput, InvalidTokens
from attnflow.precision import is_traced
from attnflow.spaces import AbstractSpace, Euclidean, Sphere

NEARLY_ON_SPACE = 1e-6


class Tokens(eqx.Module):
    """The measure mu = sum_i masses_i delta(positions_i).

    Masses are rescaled to sum to 1; zero is legal and makes a test particle, which is moved and exerts
    nothing. Positions within 1e-6 of the space (say, float32 data) are moved onto it; farther ones are
    refused. Leading axes of `positions` are batch dimensions, named by `dims`; `coordinates` are the labels of their
    members, where None takes those of the field, else 0, 1, 2, ...
    """

    positions: Float[Array | np.ndarray, "*batch token dim"]
    masses: Float[Array | np.ndarray, "*batch token"]
    place: Int[Array | np.ndarray, " token"]
    space: AbstractSpace
    dims: tuple[str, ...] = eqx.field(static=True)
    coordinates: tuple[tuple[Label, ...] | None, ...] = eqx.field(static=True)

    def __init__(
        self,
        positions: ArrayLike,
        masses: ArrayLike | None = None,
        *,
        space: AbstractSpace | None = None,
        place: ArrayLike | None = None,
        dims: Sequence[str] = (),
        coordinates: Sequence[Sequence[Label] | np.ndarray | None] | None = None,
        dtype: DTypeLike = np.float64,
    ):
        values = _numbers("positions", positions, dtype)
        if values.ndim != 2 + len(dims):
            raise InvalidTokens(
                f"`positions` has shape {values.shape}; give (tokens, dim)"
                + (f" behind the batch dimensions {tuple(dims)}." if dims else ", or name the leading axes in `dims`.")
            )
        if space is None:
            space = Sphere(values.shape[-1])
        instance("space", space, AbstractSpace, "a space such as Sphere(3)")
        if values.shape[-1] != space.dim:
            raise InvalidTokens(
                f"`positions` has shape {values.shape}, but {space} needs a last axis of length {space.dim}."
            )
        n = values.shape[-2]
        if n == 0:
            raise InvalidTokens("`positions` holds no token; give at least one row.")
        self.positions = onto("tokens", space, values)
        self.masses = _rescaled(masses, values.shape[:-1], values.dtype)
        self.place = _places(place, n)
        self.space = space
        self.dims, self.coordinates = _labels(dims, coordinates, values.shape)

    @property
    def n(self) -> int:
        """Number of tokens of one system."""
        return self.positions.shape[-2]

    @property
    def dim(self) -> int:
        """Dimension of the ambient R^dim."""
        return self.space.dim

    def moved(self, positions: Any) -> "Tokens":
        """The same tokens at other positions, unchecked: for use inside compiled code."""
        return eqx.tree_at(lambda tokens: tokens.positions, self, positions)

    def on(self, space: AbstractSpace, positions: Any) -> "Tokens":
        """The same tokens at other positions on another space, unchecked: for use inside compiled code."""
        return eqx.tree_at(
            lambda tokens: (tokens.positions, tokens.space), self, (positions, space),
            is_leaf=lambda node: isinstance(node, AbstractSpace),
        )  # fmt: skip

    def system(self, positions: Any, masses: Any) -> "Tokens":
        """One system without batch dimensions, with these places and space; unchecked, for use inside compiled code."""
        bare = Tokens(np.eye(1, self.dim), space=Euclidean(self.dim), place=[0])  # a row that is legal there
        return eqx.tree_at(
            lambda t: (t.positions, t.masses, t.place, t.space), bare, (positions, masses, self.place, self.space),
            is_leaf=lambda node: isinstance(node, AbstractSpace),
        )  # fmt: skip

    def member(self, **index: int) -> "Tokens":
        """One system of a batch, by integer index: `tokens.member(seed=3)`; all names must be given."""
        if set(index) != set(self.dims):
            raise InvalidInput(f"`member` got {sorted(index)}; name each of the batch dimensions {self.dims}.")
        pick = tuple(index[name] for name in self.dims)
        return Tokens(
            self.positions[pick],
            self.masses[pick],
            space=self.space,
            place=self.place,
            dtype=np.asarray(self.positions).dtype,
        )

    def astype(self, dtype: DTypeLike) -> "Tokens":
        """The same tokens in another precision (float32 only where its accuracy is enough)."""
        return Tokens(
            self.positions,
            self.masses,
            space=self.space,
            place=self.place,
            dims=self.dims,
            coordinates=self.coordinates,
            dtype=dtype,
        )


def from_array(
    positions: ArrayLike,
    *,
    masses: ArrayLike | None = None,
    space: AbstractSpace | None = None,
    normalise: bool = False,
) -> Tokens:
    """Tokens from an array of shape (tokens, dim), on the sphere of R^dim unless `space` says otherwise.

    `normalise=True` first divides every row by its norm.
    """
    values = _numbers("positions", positions, np.float64)
    if normalise:
        norms = np.linalg.norm(values, axis=-1, keepdims=True)
        if (norms == 0).any():
            raise InvalidTokens(
                f"positions[{np.argmin(norms.reshape(-1))}] is the zero vector, which has no direction; remove it."
            )
        values = values / norms
    return Tokens(values, masses, space=space)


def stack(dim: str, values: Sequence[Label] | np.ndarray, systems: Sequence[Tokens]) -> Tokens:
    """Several systems of one shape as a batch along the new dimension `dim`, labelled by `values`."""
    systems = list(systems)
    if not systems:
        raise InvalidInput("`systems` is empty; give at least one system.")
    if len(systems) != len(values):
        raise InvalidInput(f"`systems` has {len(systems)} entries and `values` {len(values)}; give as many of each.")
    labels = as_labels("`values`", values, len(systems))
    first = systems[0]
    for k, other in enumerate(systems):
        instance(f"systems[{k}]", other, Tokens, "tokens, as in stack('seed', [0, 1], [tokens, other])")
        if other.positions.shape != first.positions.shape or other.space != first.space:
            raise InvalidTokens(
                f"systems[{k}] has shape {other.positions.shape} on {other.space}, but systems[0] has "
                f"{first.positions.shape} on {first.space}; a batch needs one shape and one space."
            )
        if other.dims != first.dims or other.coordinates != first.coordinates:
            raise InvalidTokens(f"systems[{k}] has batch dimensions {other.dims}, systems[0] has {first.dims}.")
        if not np.array_equal(other.place, first.place):
            raise InvalidTokens(f"systems[{k}] has other places than systems[0]; a batch shares its places.")
    return Tokens(
        np.stack([s.positions for s in systems]),
        np.stack([s.masses for s in systems]),
        space=first.space,
        place=first.place,
        dims=(dim, *first.dims),
        coordinates=(labels, *first.coordinates),
    )


def _numbers(name: str, values: Any, dtype: DTypeLike) -> np.ndarray:
    if is_traced(values):
        raise InvalidTokens(
            f"`{name}` is being traced by a JAX transformation; make the tokens outside of it, and inside use "
            "`tokens.moved(positions)` or `tokens.system(positions, masses)`."
        )
    try:
        raw = np.asarray(values)
    except (TypeError, ValueError):
        raise InvalidTokens(f"`{name}` is {shown(values)}; give an array, with rows of one length.") from None
    if raw.dtype.kind not in "iuf":
        raise InvalidTokens(f"`{name}` has dtype {raw.dtype}; give real numbers.")
    array = np.array(raw, dtype=dtype)
    if array.dtype not in (np.float64, np.float32):
        raise InvalidTokens(f"`dtype` is {array.dtype}; use float64, or float32 on request.")
    if not np.isfinite(array).all():
        where = tuple(int(k) for k in np.argwhere(~np.isfinite(array))[0])
        raise InvalidTokens(f"{name}{list(where)} is {array[where]}; every entry must be a finite number.")
    return array


def onto(name: str, space: AbstractSpace, values: np.ndarray) -> np.ndarray:
    """Points that are on `space` to 1e-6, moved onto it; points farther away are refused."""
    defect = space.defect(np.asarray(values, dtype=np.float64))
    if (defect > NEARLY_ON_SPACE).any():
        where = tuple(int(k) for k in np.unravel_index(np.argmax(defect), defect.shape))
        raise InvalidTokens(
            f"{name}{list(where)} is {defect[where]:.3g} away from {space} (its norm is "
            f"{np.linalg.norm(values[where]):.6g}). Pass `space.retract(positions)`, `from_array(positions, "
            "normalise=True)` for unit vectors, or check the initial condition."
        )
    if (defect > 4 * np.finfo(values.dtype).eps).any():
        return np.asarray(space.retract(np.asarray(values, dtype=np.float64)), dtype=values.dtype)
    return values


def _rescaled(masses: Any, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    if masses is None:
        return np.full(shape, 1.0 / shape[-1], dtype=dtype)
    values = _numbers("masses", masses, dtype)
    if values.shape not in (shape, shape[-1:]):
        raise InvalidTokens(f"`masses` has shape {values.shape}; give one mass per token, shape {shape[-1:]}.")
    if (values < 0).any():
        where = tuple(int(k) for k in np.argwhere(values < 0)[0])
        raise InvalidTokens(f"masses{list(where)} is {values[where]:g}; masses must not be negative.")
    total = values.sum(axis=-1, keepdims=True)
    if (total <= 0).any():
        raise InvalidTokens("`masses` sum to zero; at least one token needs a positive mass.")
    return np.array(np.broadcast_to(values / total, shape))


def _places(place: Any, n: int) -> np.ndarray:
    if place is None:
        return np.arange(n)
    values = np.asarray(place)
    if values.shape != (n,) or values.dtype.kind not in "iu":
        raise InvalidTokens(
            f"`place` has shape {values.shape} and dtype {values.dtype}; give one integer for each of the {n} tokens."
        )
    return values.astype(np.int64)


def _labels(
    dims: Sequence[str], coordinates: Any, shape: tuple[int, ...]
) -> tuple[tuple[str, ...], tuple[tuple[Label, ...] | None, ...]]:
    names = tuple(dims)
    for name in names:
        instance("dims", name, str, "the names of the batch dimensions, as in dims=('seed',)")
        if not name.isidentifier() or name in RESERVED or names.count(name) > 1:
            raise InvalidTokens(f"`dims` is {names}; use distinct identifiers other than {', '.join(RESERVED)}.")
    given = [None] * len(names) if coordinates is None else list(coordinates)
    if len(given) != len(names):
        raise InvalidTokens(f"`coordinates` has {len(given)} entries for the batch dimensions {names}; give one each.")
    return names, tuple(
        None if own is None else as_labels(f"`coordinates` of {name!r}", own, size)
        for name, own, size in zip(names, given, shape, strict=False)
    )

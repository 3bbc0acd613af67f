"""Tokens: the checked, labelled, batched ensembles of measures that users make and get."""

import sys
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Real
from numpy.typing import ArrayLike, DTypeLike

from attnflow import sketches
from attnflow.axes import RESERVED, Label, as_labels, unit_rows
from attnflow.checks import flag, instance, shown, whole
from attnflow.describe import html_table, listed
from attnflow.errors import InvalidInput, InvalidTokens, NoSuchItem
from attnflow.precision import is_traced
from attnflow.spaces import AbstractSpace, Sphere
from attnflow.tokens.labels import Nested, as_token_labels, label_array
from attnflow.tokens.measure import Measure, members_of

NEARLY_ON_SPACE = 1e-6


class Tokens(eqx.Module):
    """The measure mu = sum_i masses_i delta(positions_i).

    Masses are rescaled to sum to 1; zero is legal and makes a test particle, which is moved and exerts
    nothing. Positions within 1e-6 of the space (say, float32 data) are moved onto it; farther ones are
    refused. Leading axes of `positions` are batch dimensions, named by `dims`; `coordinates` are the labels of their
    members, where None takes those of the field, else 0, 1, 2, ...

    `place` says where in the prompt a token stands, a whole or a real number; one for each token, shared by all members
    or (*batch, token). `present` says which rows are tokens, so that systems of unequal size make one batch (`stack`).
    An absent row gets mass 0 and the position and place of the last present row of its system, whatever was given for
    it. It is not a test particle: it is not moved, and nothing depends on it.

    `labels` are texts, one for each token, shared by all members or (*batch, token); figures, tables and clusters name
    tokens by them. No number depends on a label.
    """

    positions: Float[Array | np.ndarray, "*batch token dim"]
    masses: Float[Array | np.ndarray, "*batch token"]
    present: Bool[Array | np.ndarray, "*batch token"] | None
    place: Real[Array | np.ndarray, " token"] | Real[Array | np.ndarray, "*batch token"]
    space: AbstractSpace
    dims: tuple[str, ...] = eqx.field(static=True)
    coordinates: tuple[tuple[Label, ...] | None, ...] = eqx.field(static=True)
    labels: Nested | None = eqx.field(static=True)

    def __init__(
        self,
        positions: ArrayLike,
        masses: ArrayLike | None = None,
        *,
        space: AbstractSpace | None = None,
        place: ArrayLike | None = None,
        present: ArrayLike | None = None,
        dims: Sequence[str] = (),
        coordinates: Sequence[Sequence[Label] | np.ndarray | None] | None = None,
        labels: Sequence[Any] | np.ndarray | None = None,
        dtype: DTypeLike = np.float64,
    ):
        if isinstance(dims, str) or not isinstance(dims, Sequence):
            raise InvalidTokens(f"`dims` is {shown(dims)}; give the names of the leading axes, as in dims=('seed',).")
        values, there = _present(positions, present, dtype)
        if values.ndim != 2 + len(dims):
            raise InvalidTokens(
                f"`positions` has shape {values.shape}; give (tokens, dim)"
                + (f" after the batch dimensions {tuple(dims)}." if dims else ", or name the leading axes in `dims`.")
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
        self.masses = _rescaled(masses, values.shape[:-1], values.dtype, there)
        self.place = _places(place, values.shape[:-1], there)
        self.present = there
        self.space = space
        self.dims, self.coordinates = _labels(dims, coordinates, values.shape)
        self.labels = as_token_labels(labels, values.shape[:-1], there)

    def __repr__(self) -> str:
        if not isinstance(self.masses, np.ndarray | jax.Array) or not self.masses.size:  # a tree of something else
            return eqx.tree_pformat(self)
        return f"Tokens({', '.join(f'{key}: {value}' for key, value in self._facts().items())})"

    def _repr_html_(self) -> str:
        if is_traced((self.positions, self.masses)):
            return html_table("Tokens", self._facts())
        first = (0,) * len(self.dims)  # of a batch its first member is drawn
        unit = isinstance(self.space, Sphere)
        return html_table(
            "Tokens", self._facts(), sketches.points(self.positions[first], self.masses[first], unit=unit)
        )

    def _facts(self) -> dict[str, str]:
        """What the tokens are, in a few words."""
        if is_traced((self.positions, self.masses)):
            return {"positions": f"traced {self.positions.shape}", "space": str(self.space)}
        here = np.asarray(self.masses)
        equal = self.present is None and bool(np.all(here == here.flat[0]))
        batch = {
            d: listed(list(range(size)) if labels is None else list(labels))
            for d, labels, size in zip(self.dims, self.coordinates, self.positions.shape, strict=False)
        }
        rest = {} if self.present is None else {"present": f"{int(np.sum(self.present))} of {self.present.size} rows"}
        mass = {"masses": "equal" if equal else f"{here[here > 0].min():.3g} to {here.max():.3g}"}
        kind = {} if self.positions.dtype == np.float64 else {"precision": str(self.positions.dtype)}
        words = {} if (own := label_array(self.labels)) is None else {"labels": listed(own.ravel().tolist())}
        return {"n": str(self.n), "space": str(self.space)} | batch | mass | rest | kind | words

    def __bool__(self) -> bool:
        return True

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise InvalidTokens("tokens are not an array: they have masses and a space; use tokens.positions.")

    def __len__(self) -> int:
        """Number of rows, absent ones among them; of a batch the size of its first dimension."""
        return int(self.positions.shape[0])

    def __getitem__(self, at: int) -> Any:
        """The position of row number `at`; of a batch along one dimension the tokens of member number `at`."""
        number = whole("at", at, -sys.maxsize)
        if not -len(self) <= number < len(self):
            raise NoSuchItem(f"number {at} was asked for; there are {len(self)}, counted from 0.")
        if not self.dims:
            return self.positions[number]
        if len(self.dims) > 1:
            raise InvalidInput(f"the tokens are a batch along {self.dims}; use member({self.dims[0]}={at}, ...).")
        return self.member(**{self.dims[0]: number})

    def plot(self, *, figsize: tuple[float, float] | None = None, style: Any = None) -> Any:
        """The tokens in one Matplotlib Figure: `attnflow.plot(tokens)`."""
        import attnflow

        return attnflow.plot(self, figsize=figsize, style=style)

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
            lambda tokens: (tokens.positions, tokens.space),
            self,
            (positions, space),
            is_leaf=lambda node: isinstance(node, AbstractSpace),
        )

    @property
    def measure(self) -> Measure:
        """The measure of one system, without names: what fields receive."""
        if self.dims:
            self.single()
        return Measure(self.positions, self.masses, present=self.present, place=self.place, space=self.space)

    def single(self, name: str = "tokens") -> "Tokens":
        """These tokens, if they are one system; `name` is what the refusal of a batch calls them."""
        if self.dims:
            raise InvalidInput(f"`{name}` has batch dimensions {self.dims}; pick one system with `member`.")
        return self

    def for_members(self, index: dict[str, np.ndarray], size: int) -> Measure:
        """The measures of `size` members, member first; `index` has those of each batch dimension."""
        return members_of(self, tuple(index[name] for name in self.dims), size)

    def member(self, **index: int) -> "Tokens":
        """One system of a batch, by integer index: `tokens.member(seed=3)`; all names must be given.

        Absent rows are left out.
        """
        if set(index) != set(self.dims):
            raise InvalidInput(f"`member` got {sorted(index)}; name each of the batch dimensions {self.dims}.")
        if not self.dims and self.present is None:
            return self
        sizes = dict(zip(self.dims, self.positions.shape, strict=False))
        pick = tuple(whole(name, index[name], -sizes[name], sizes[name] - 1) for name in self.dims)
        rows = slice(None) if self.present is None else np.asarray(self.present)[pick]
        place = np.asarray(self.place)
        masses = np.asarray(self.masses)[pick][rows]
        labels = label_array(self.labels)
        one = Tokens(
            np.asarray(self.positions)[pick][rows],
            masses,
            space=self.space,
            place=(place if place.ndim == 1 else place[pick])[rows],
            labels=None if labels is None else (labels if labels.ndim == 1 else labels[pick])[rows],
            dtype=np.asarray(self.positions).dtype,
        )
        return eqx.tree_at(lambda tokens: tokens.masses, one, masses)  # rescaled already, and so to the last bit

    def astype(self, dtype: DTypeLike) -> "Tokens":
        """The same tokens in another precision (float32 only where its accuracy is enough)."""
        return Tokens(
            self.positions,
            self.masses,
            space=self.space,
            place=self.place,
            present=self.present,
            dims=self.dims,
            coordinates=self.coordinates,
            labels=self.labels,
            dtype=dtype,
        )


def from_array(
    positions: ArrayLike,
    *,
    masses: ArrayLike | None = None,
    labels: Sequence[Any] | np.ndarray | None = None,
    space: AbstractSpace | None = None,
    normalise: bool = False,
) -> Tokens:
    """Tokens from an array of shape (tokens, dim), on the sphere of R^dim unless `space` says otherwise.

    `normalise=True` first divides every row by its norm. Rows that are masked (`numpy.ma`) are absent. `labels` are
    texts, one for each token, by which figures, tables and clusters name it.
    """
    values, there = _present(positions, None, np.float64)
    if flag("normalise", normalise) and values.size and values.ndim:
        if not values.any(axis=-1).all():
            row = np.argmin(values.any(axis=-1).reshape(-1))
            raise InvalidTokens(f"positions[{row}] is the zero vector, which has no direction; remove it.")
        values = unit_rows(values)
    return Tokens(values, masses, space=space, present=there, labels=labels)


def _present(positions: Any, present: Any, dtype: DTypeLike) -> tuple[np.ndarray, np.ndarray | None]:
    """Positions whose absent rows are filled, and which rows are present, None for all; masked rows are absent."""
    if np.ma.is_masked(positions):
        if present is not None:
            raise InvalidTokens("`positions` is a masked array and `present` is given; say one of them.")
        positions, present = _unmasked(positions)
    if present is None:
        return _numbers("positions", positions, dtype), None
    if is_traced(present):
        raise InvalidTokens("`present` is being traced by a JAX transformation; inside it use `attnflow.Measure`.")
    there = _array("present", present)
    raw = np.zeros(0) if is_traced(positions) else _array("positions", positions)
    if there.dtype.kind != "b" or (raw.ndim >= 2 and there.shape not in (raw.shape[:-1], raw.shape[-2:-1])):
        raise InvalidTokens(
            f"`present` has shape {there.shape} and dtype {there.dtype}; give True or False for each token, shape "
            f"{raw.shape[:-1]}."
        )
    if raw.ndim < 2 or raw.dtype.kind not in "iuf":
        return _numbers("positions", positions, dtype), None  # which refuses them
    there = np.array(np.broadcast_to(there, raw.shape[:-1]))
    if not there.any(axis=-1).all():
        where = np.argwhere(~there.any(axis=-1))[0].tolist()
        raise InvalidTokens(f"`present` has no token in the system {where}; give each at least one.")
    if there.all():
        return _numbers("positions", positions, dtype), None
    return _numbers("positions", _copied(raw, there), dtype), there


def _unmasked(positions: np.ma.MaskedArray) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of a masked array, and which of its rows are not masked."""
    mask = np.ma.getmaskarray(positions)
    rows = mask.all(axis=-1)
    if (parts := mask.any(axis=-1) & ~rows).any():
        raise InvalidTokens(
            f"positions{np.argwhere(parts)[0].tolist()} is masked in part; mask the whole row, which makes it absent."
        )
    return np.ma.getdata(positions), np.asarray(~rows)


def _copied(values: np.ndarray, present: np.ndarray) -> np.ndarray:
    """Absent rows replaced by the last present row of their system; `values` may have an axis more than `present`."""
    last = present.shape[-1] - 1 - np.argmax(present[..., ::-1], axis=-1)[..., None]
    rows = np.where(present, np.arange(present.shape[-1]), last)
    if values.ndim > present.ndim:
        rows = rows[..., None]
    return np.take_along_axis(values, np.broadcast_to(rows, values.shape), axis=present.ndim - 1)


def _array(name: str, values: Any) -> np.ndarray:
    if np.ma.is_masked(values):
        raise InvalidTokens(f"`{name}` is a masked array; give plain numbers, and mask rows of `positions` alone.")
    try:
        return np.asarray(values)
    except (TypeError, ValueError):
        raise InvalidTokens(f"`{name}` is {shown(values)}; give an array, with rows of one length.") from None


def _numbers(name: str, values: Any, dtype: DTypeLike) -> np.ndarray:
    if is_traced(values):
        raise InvalidTokens(
            f"`{name}` is being traced by a JAX transformation; make the tokens outside of it, and inside use "
            "`tokens.moved(positions)` or `attnflow.Measure(positions, masses)`."
        )
    raw = _array(name, values)
    if raw.dtype.kind not in "iuf":
        raise InvalidTokens(f"`{name}` has dtype {raw.dtype}; give real numbers.")
    try:
        array = np.array(raw, dtype=dtype)
    except TypeError:
        raise InvalidTokens(f"`dtype` is {shown(dtype)}; use float64, or float32 on request.") from None
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


def _rescaled(masses: Any, shape: tuple[int, ...], dtype: Any, present: np.ndarray | None) -> np.ndarray:
    if masses is None and present is None:
        return np.full(shape, 1.0 / shape[-1], dtype=dtype)
    values = np.ones(shape, dtype=dtype) if masses is None else _numbers("masses", masses, dtype)
    if values.shape not in (shape, shape[-1:]):
        raise InvalidTokens(f"`masses` has shape {values.shape}; give one mass per token, shape {shape[-1:]}.")
    if (values < 0).any():
        where = tuple(int(k) for k in np.argwhere(values < 0)[0])
        raise InvalidTokens(f"masses{list(where)} is {values[where]:g}; masses must not be negative.")
    if present is not None:
        values = np.where(present, values, 0.0).astype(dtype)
    total = values.sum(axis=-1, keepdims=True)
    if (total <= 0).any():
        raise InvalidTokens("`masses` sum to zero; at least one token needs a positive mass.")
    return np.array(np.broadcast_to(values / total, shape))


def _places(place: Any, shape: tuple[int, ...], present: np.ndarray | None) -> np.ndarray:
    if place is None:
        values = np.arange(shape[-1])
    else:
        values = _array("place", place)
        if values.shape not in (shape, shape[-1:]) or values.dtype.kind not in "iuf":
            each = f"shape {shape[-1:]}" + (f" or {shape}" if len(shape) > 1 else "")
            raise InvalidTokens(
                f"`place` has shape {values.shape} and dtype {values.dtype}; give one whole or real number for each of "
                f"the {shape[-1]} tokens, {each}."
            )
        values = values.astype(np.float64 if values.dtype.kind == "f" else np.int64)
    if present is not None:
        values = _copied(np.broadcast_to(values, shape), present)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        where = np.argwhere(~np.isfinite(values))[0].tolist()
        raise InvalidTokens(f"place{where} is {values[tuple(where)]}; every place must be a finite number.")
    return values


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

"""Observables in the loop: they are evaluated on saved rows while a flow runs."""

import dataclasses
import enum
import functools
import hashlib
import inspect
import pickle
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow.axes import RESERVED, over_members
from attnflow.checks import instance
from attnflow.errors import AttnflowError, InvalidInput
from attnflow.flows.compiled import compiled, shapes, wait
from attnflow.interrupts import raise_if_interrupted
from attnflow.observe.observable import Observable
from attnflow.precision import to_numpy

NUMERIC = "biuf"
"""Types of numbers that an observable may give."""


Observe = Mapping[str, Callable[..., Any]]
"""By name: an `Observable`, or a plain function that becomes one."""


class Views(NamedTuple):
    """Rows to look at. The object of row k of member m is `view(row[m, k], fixed[m])`."""

    times: np.ndarray
    """(member, row)"""
    rows: Any
    """A pytree of arrays (member, row, ...)."""
    fixed: Any
    """A pytree of arrays (member, ...), the same for all rows."""
    view: Callable[[Any, Any], Any]
    """Pure, and the same object on every call, so that programs are compiled once."""

    def first(self, rows: int) -> "Views":
        """The first rows alone."""
        cut = jax.tree.map(lambda a: a[:, :rows], self.rows)
        return self._replace(times=self.times[:, :rows], rows=cut)

    def at(self, member: int, row: int) -> tuple[float, Any]:
        """The time and the object of one row, in NumPy."""
        pick = jax.tree.map(lambda a: np.asarray(a[member, row]), self.rows)
        fixed = jax.tree.map(lambda a: np.asarray(a[member]), self.fixed)
        return float(self.times[member, row]), to_numpy(self.view(pick, fixed))


class Broken(Exception):
    """An observable cannot be evaluated on row number `row`."""

    def __init__(self, message: str, row: int):
        super().__init__(message)
        self.row = row


class Watched(NamedTuple):
    """One observable as it is evaluated."""

    observable: Observable
    traced: bool
    shape: tuple[int, ...]
    dtype: np.dtype
    dims: tuple[str, ...]


class Observers:
    """The observables of one flow, tried out on its start."""

    def __init__(self, observe: Observe | None, start: Views, taken: set[str], pairs: int):
        self.pairs = pairs
        instance("observe", {} if observe is None else observe, Mapping, "a dictionary of names and functions")
        self.watched: dict[str, Watched] = {}
        for name, function in (observe or {}).items():
            if not isinstance(name, str) or not name.isidentifier() or name in taken or name in RESERVED:
                raise InvalidInput(
                    f"`observe` has the name {name!r}; use an identifier other than {', '.join(sorted(taken))}."
                )
            one = function if isinstance(function, Observable) else Observable(function)
            self.watched[name] = _tried(name, one, start)

    def identity(self) -> dict[str, str]:
        """A fingerprint of every observable; a resumed flow must have the same."""
        found = {}
        for name, one in self.watched.items():
            try:
                found[name] = fingerprint(one.observable)
            except jax.errors.TracerArrayConversionError as error:
                raise _holds_tracer(name) from error
        return found

    def evaluate(self, views: Views) -> dict[str, np.ndarray]:
        """(member, row, ...) for every observable; `Broken` where one cannot be evaluated."""
        found = {name: self._rows(one, views) for name, one in self.watched.items()}
        for name, one in self.watched.items():
            if one.dtype.kind != "f" or one.observable.allow_nan:
                continue
            bad = np.isnan(found[name]).reshape(*found[name].shape[:2], -1).any(axis=(0, 2))
            if bad.any():
                row = int(np.argmax(bad))
                t = float(np.max(views.times[:, row]))
                raise Broken(
                    f"the observable {name!r} is NaN at t = {t:g}; correct it, or give Observable(f, allow_nan=True).",
                    row,
                )
        return found

    def _rows(self, one: Watched, views: Views) -> np.ndarray:
        name = next(key for key, value in self.watched.items() if value is one)
        if one.traced:
            args = (views.times, views.rows, views.fixed)
            try:
                made = wait(_evaluate(one.observable, views.view, self.pairs, *args))
                return np.asarray(made).astype(one.dtype)
            except jax.errors.UnexpectedTracerError as error:  # which shapes do not show
                raise _holds_tracer(name) from error
        members, rows = views.times.shape
        found = np.empty((members, rows, *one.shape), one.dtype)
        for row in range(rows):
            for member in range(members):
                raise_if_interrupted()
                t, seen = views.at(member, row)
                try:
                    found[member, row] = _checked(one, one.observable(t, seen))
                except Exception as error:
                    why = str(error) if isinstance(error, _Changed) else f"raised {type(error).__name__}: {error}"
                    message = f"the observable {name!r} {why} at t = {t:g}; correct the function."
                    raise Broken(message, row) from error
        return found


class _Changed(ValueError):
    pass


def _checked(one: Watched, value: Any) -> np.ndarray:
    array = np.asarray(value)
    if array.shape != one.shape:
        raise _Changed(f"has the shape {array.shape}, and had {one.shape} at the start,")
    return array.astype(one.dtype)


def _tried(name: str, one: Observable, start: Views) -> Watched:
    """How `one` is to be evaluated, from its value at the start."""
    t, seen = start.at(0, 0)
    failure: Exception | None = None
    traced, value = True, None
    try:
        shape = shapes(_call, one, np.asarray(t), seen)
    except jax.errors.UnexpectedTracerError as error:
        raise _holds_tracer(name) from error
    except Exception as error:  # host code fails under tracing in many ways; it gets a second chance on numbers
        traced, failure = False, error
    if traced:
        if not isinstance(shape, jax.ShapeDtypeStruct | np.ndarray | float | int | bool):
            raise InvalidInput(f"the observable {name!r} returns a {type(shape).__name__}; return one number or array.")
        made = np.zeros(np.shape(shape), getattr(shape, "dtype", np.float64))
    else:
        try:
            value = one(t, seen)
            made = np.asarray(value)
        except jax.errors.UnexpectedTracerError as error:
            raise _holds_tracer(name) from error
        except AttnflowError as error:
            raise InvalidInput(f"the observable {name!r} is refused: {error}") from failure
        except Exception as error:
            raise InvalidInput(
                f"the observable {name!r} raised {type(error).__name__} at the start: {error}; correct the function "
                "of (t, measure)."
            ) from failure
    if made.dtype.kind not in NUMERIC:
        kind = f"a {type(value).__name__}" if made.dtype.kind == "O" else f"{made.dtype} values"
        raise InvalidInput(f"the observable {name!r} returns {kind}; return one number or array.")
    dtype = made.dtype if made.dtype.kind == "b" else np.dtype(np.int64 if made.dtype.kind in "iu" else np.float64)
    dims = one.dims if one.dims is not None else tuple(f"{name}_{k}" for k in range(made.ndim))
    if len(dims) != made.ndim:
        raise InvalidInput(f"the observable {name!r} has shape {made.shape} and dims {dims}; name each axis.")
    return Watched(one, traced, made.shape, dtype, dims)


def _holds_tracer(name: str) -> InvalidInput:
    return InvalidInput(
        f"the observable {name!r} holds a value that is being traced by a JAX transformation; pass plain numbers to it."
    )


def _call(one: Observable, t: Any, mu: Any) -> Any:
    return one(t, mu)


@compiled
def _evaluate(function: Any, view: Any, pairs: int, times: Any, rows: Any, fixed: Any) -> Any:
    def member(times: Any, rows: Any, fixed: Any) -> Any:
        return jax.lax.map(lambda row: jnp.asarray(function(row[0], view(row[1], fixed))), (times, rows))

    return over_members(member, (0, 0, 0), (times, rows, fixed), pairs)


def fingerprint(observable: Observable) -> str:
    """A hash of the function and of the names of its axes.

    The function counts with its code, its constants, the values it closes over, and the functions and numbers of its
    module that it names; not with what those modules import. A function of the package counts with its name alone. What
    `of` filled in counts too.
    """
    seen: dict[int, Any] = {}
    words = [word for part in _parts(observable) or () for word in _words(part, seen)]
    return _digest([repr((observable.dims, observable.allow_nan)).encode(), *words])


def content_of(value: Any) -> str:
    """A hash of what a value is made of, as observables have one; the same in every process.

    What cannot be looked into counts by its pickle, so that different values never have one hash.
    """
    return _digest(_words(value, {}, pickled=True))


def _digest(words: Iterable[bytes]) -> str:
    """One hash of many words, each with its length, so that (1, 23) is not (12, 3)."""
    total = hashlib.sha256()
    for word in words:
        total.update(len(word).to_bytes(8, "little") + word)
    return total.hexdigest()


def _words(value: Any, seen: dict[int, Any], pickled: bool = False) -> Iterator[bytes]:
    """What makes up a value, as bytes that are the same in every process; `seen` are the objects it went through."""
    value = inspect.unwrap(value, stop=lambda f: isinstance(f, Observable)) if callable(value) else value
    if isinstance(value, int | float | str | bytes | bool | type(None)):
        yield repr(value).encode()
    elif isinstance(value, np.ndarray | jax.Array | np.generic):
        array = np.asarray(value)
        yield f"{array.dtype}{array.shape}".encode() + array.tobytes()
    elif id(value) in seen:
        yield f"again {list(seen).index(id(value))}".encode()
    else:
        seen[id(value)] = value
        parts = _parts(value)
        yield f"{type(value).__qualname__} {len(parts or ())}".encode()
        if parts is None:
            parts = [getattr(value, "__module__", ""), getattr(value, "__qualname__", "")]
            parts += [pickle.dumps(value)] if pickled else []
        for part in parts:
            yield from _words(part, seen, pickled)


def _parts(value: Any) -> list[Any] | None:
    """The values that a function, a method, a container or an object is made of; None if it cannot be looked into."""
    if isinstance(value, Observable):
        named = [value.function.__module__, value.name] if value.whole else [value.function]
        return [*named, *([value.arguments] if value.arguments else [])]
    if isinstance(value, types.MethodType):
        return [value.__self__, value.__func__]
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, enum.Enum):
        return [type(value).__module__, value.name]
    if isinstance(value, np.dtype):
        return [value.str]
    if isinstance(value, types.FunctionType):
        known = value.__globals__
        named = [known[name] for name in sorted(_names(value.__code__)) if name in known]
        used = [one for one in named if isinstance(one, _COUNTED)]
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        return [value.__code__, *cells, *(value.__defaults__ or ()), value.__kwdefaults__, *used]
    if isinstance(value, types.CodeType):
        return [value.co_code, value.co_names, *value.co_consts]
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    if isinstance(value, dict):
        return [*value, *value.values()]
    if isinstance(value, tuple | list):
        return list(value)
    if isinstance(value, eqx.Module) or (dataclasses.is_dataclass(value) and not isinstance(value, type)):
        return [type(value).__module__, *(getattr(value, field.name) for field in dataclasses.fields(value))]
    return None


_COUNTED = (
    types.FunctionType | int | float | str | bytes | tuple | list | np.ndarray | jax.Array | eqx.Module | Observable
)
"""Values of a module that count where a function of it names them."""


def _names(code: types.CodeType) -> set[str]:
    inner = [one for one in code.co_consts if isinstance(one, types.CodeType)]
    return set(code.co_names).union(*(_names(one) for one in inner))

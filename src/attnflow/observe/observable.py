"""Observables: one object for what is read off tokens outside of a flow and off every frame inside of one.

`order_parameter(tokens)` takes tokens, and `order_parameter(t, measure)` is how a flow calls it, so that
`solve(..., observe={"r": order_parameter})` needs no second function. What an observable needs besides is filled in by
`of`: `energy.of(2.0)` and `speed.of(field)` are observables again, in both forms.
"""

import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any, Generic, ParamSpec, TypeVar, overload

import jax
import jax.numpy as jnp
import numpy as np

from attnflow.axes import batches, members
from attnflow.checks import flag, instance, shown
from attnflow.errors import InvalidInput
from attnflow.precision import in_float64, is_traced
from attnflow.tokens import Measure, Tokens

P = ParamSpec("P")
R = TypeVar("R")

MEASURE = ("tokens", "mu")
"""What the functions of this room call the measure."""


@jax.tree_util.register_pytree_node_class
class Observable(Generic[P, R]):
    """A number, or an array, read off a measure: outside of a flow and on every frame of one.

    `f` is a function of (t, measure), or of (measure) alone if exactly one argument is required. `Observable(f)` may be
    called in two forms. `Observable(f)(tokens)` is its value at tokens, an array over the members of a batch, at t = 0
    unless `t` is given. `Observable(f)(t, measure)` is what a flow calls: `solve(..., observe={"name": f})` makes an
    Observable of a plain function. It also decorates a function:

    ```python
    @af.Observable
    def height(mu, axis: int = 0):
        return mu.masses @ mu.positions[:, axis]


    height(tokens), height.of(axis=1)(tokens), af.solve(field, tokens, 1.0, observe={"h": height.of(axis=1)})
    ```

    In a flow the function gives a number or an array of the same shape on every frame. A function written in JAX is
    compiled; any other runs on the host.

    Arguments:
        function: a function, or an Observable whose names are to change.
        dims: names of the axes of what the function returns in a flow (default: NAME_0, NAME_1, ...).
        allow_nan: accept NaN, which otherwise ends the flow.
    """

    function: Callable[..., Any]
    dims: tuple[str, ...] | None
    allow_nan: bool
    arguments: dict[str, Any]
    """What `of` has filled in."""
    whole: bool
    """Whether the function belongs to the package: it checks its arguments and takes batches itself."""

    def __init__(self, function: Callable[P, R], dims: Sequence[str] | None = None, allow_nan: bool = False):
        instance("function", function, Callable, "a function of (t, measure)")
        names = () if dims is None else dims
        if isinstance(names, str) or not all(isinstance(name, str) and name.isidentifier() for name in names):
            raise InvalidInput(f"`dims` is {shown(dims)}; give the names of the axes, as in dims=('mode',).")
        self.dims, self.allow_nan = None if dims is None else tuple(dims), flag("allow_nan", allow_nan)
        self.arguments, self.whole = {}, False
        self.function = function
        if isinstance(function, Observable):
            self.function, self.arguments, self.whole = function.function, function.arguments, function.whole
        functools.update_wrapper(self, self.function, updated=())

    @overload
    def __call__(self, t: float | np.ndarray | jax.Array, measure: Any, /) -> Any: ...
    @overload
    def __call__(self, tokens: Tokens | Measure, /) -> Any: ...
    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The value at (t, measure), or at tokens; arguments that are not filled in may follow."""
        if len(args) == 2 and not kwargs and _is_time(args[0]):
            if self.whole or not isinstance(args[1], Tokens):
                return self._in_flow(*args)
            return self._at(args[1], t=args[0])
        if not self.whole:
            return self._at(*args, **kwargs)
        if not self.arguments:
            return self.function(*args, **kwargs)
        free = [name for name in _parameters(self.function) if name not in self.arguments]
        if len(args) > len(free):
            raise TypeError(f"{self!r} takes at most {len(free)} arguments, and {len(args)} were given")
        return self.function(**self.arguments | dict(zip(free, args, strict=False)) | kwargs)

    def of(self, *args: Any, **options: Any) -> "Observable[..., Any]":
        """The same observable with some of its arguments filled in: `energy.of(2.0)`, `cluster_count.of(scale=0.3)`.

        The measure and the time are not among them; other arguments come in their order or by name. A field is one
        of them: `speed.of(field)`.
        """
        known = {} if (own := self.options()) is None else own
        free = [name for name in known if name not in self.arguments and name != "t"]
        if len(args) > len(free) or (own is not None and set(options) - set(known)):
            given = next((repr(name) for name in options if name not in known), f"{len(args)} values")
            has = ", ".join(f"`{name}`" for name in free) or "none"
            raise InvalidInput(f"`{self.name}.of` is given {given}; the arguments to fill in are: {has}.")
        made: Observable[..., Any] = Observable(self, self.dims, self.allow_nan)
        made.arguments = self.arguments | dict(zip(free, args, strict=False)) | options
        return made

    @property
    def domain(self) -> dict[str, Any]:
        """What the arguments may be, of an observable that is a `formula`."""
        declared: dict[str, Any] = self.function.domain  # type: ignore[attr-defined]
        return declared

    @property
    def accuracy(self) -> Any:
        """The accuracy that a `formula` states."""
        return self.function.accuracy  # type: ignore[attr-defined]

    @property
    def name(self) -> str:
        """What the function is called."""
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def options(self) -> dict[str, inspect.Parameter] | None:
        """The arguments besides time and measure; None if the function does not say them."""
        known = _parameters(self.function)
        if not known or any(p.kind is p.VAR_KEYWORD for p in known.values()):
            return None
        if self.whole:
            return {name: p for name, p in known.items() if name != _measure(known)}
        return dict(list(known.items())[1 + _begins_with_time(known) :])

    def __repr__(self) -> str:
        inner = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return f"<observable {self.name}{f' of {inner}' if inner else ''}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        module = getattr(self.function, "__module__", "")
        known = getattr(sys.modules.get(module), self.name, None)
        if isinstance(known, Observable) and known.function is self.function:  # a decorated function, found by its name
            return _found, (module, self.name, self.arguments, self.dims, self.allow_nan)
        return super().__reduce_ex__(protocol)

    def tree_flatten(self) -> tuple[Any, Any]:
        """The function and the arguments that are filled in; the rest is static."""
        return (self.function, self.arguments), (self.dims, self.allow_nan, self.whole)

    @classmethod
    def tree_unflatten(cls, fixed: Any, children: Any) -> "Observable[..., Any]":
        """The inverse of `tree_flatten`."""
        made = object.__new__(cls)
        made.function, made.arguments = children
        made.dims, made.allow_nan, made.whole = fixed
        return made

    def _in_flow(self, t: Any, mu: Any) -> Any:
        """The value at one frame."""
        missing = [
            name
            for name, p in (self.options() or {}).items()
            if p.default is p.empty and p.kind is not p.VAR_POSITIONAL and name not in self.arguments
        ]
        if missing:
            filled = ", ".join(f"{name}=..." for name in missing)
            raise InvalidInput(f"`{self.name}` needs {missing[0]!r}; in a flow fill it in by `of({filled})`.")
        if along := batches(self.arguments):
            raise InvalidInput(
                f"`{self.name}` is given a batch along {along[0].dim!r}; in a flow fill in the values of one system."
            )
        return self._value(t, mu)

    def _value(self, t: Any, mu: Any) -> Any:
        """The function at one measure."""
        known = _parameters(self.function)
        if not self.whole and _begins_with_time(known):
            return self.function(t, mu, **self.arguments)
        clock = {"t": t} if "t" in known and "t" not in self.arguments else {}
        if self.whole:
            return self.function(**self.arguments, **{_measure(known): mu}, **clock)
        return self.function(mu, **self.arguments, **clock)

    def _at(self, tokens: Any, *args: Any, t: Any = 0.0, **options: Any) -> Any:
        """The value at tokens, member by member."""
        one = self.of(*args, **options) if args or options else self

        def value(t: Any, tokens: Any) -> Any:
            if not isinstance(tokens, Tokens):
                return one._in_flow(t, tokens)
            if not tokens.dims:
                return one._in_flow(t, tokens.measure)
            systems = members(None, tokens)
            mu = systems.measure
            found = [
                one._in_flow(
                    t,
                    Measure(
                        mu.positions[k],
                        mu.masses[k],
                        present=None if mu.present is None else mu.present[k],
                        place=mu.place[k],
                        space=mu.space,
                    ),
                )
                for k in range(len(mu.positions))
            ]
            return systems.unflatten((jnp if is_traced(found) else np).stack(found))

        value.__name__ = self.name
        return in_float64(value)(t, tokens)


def observable(function: Callable[P, R]) -> Observable[P, R]:
    """An observable of the package: `function` has an argument `tokens` or `mu`, and takes batches itself."""
    made = Observable(function)
    made.whole = True
    return made


def along(*dims: str) -> Callable[[Observable[P, R]], Observable[P, R]]:
    """Name the axes of an observable of the package."""
    return lambda one: Observable(one, dims)


def maker(one: Observable[..., Any]) -> Callable[..., Observable[..., Any]]:
    """What makes `one` from the keys of a table: its arguments but time."""

    def make(*args: Any, **options: Any) -> Observable[..., Any]:
        return one.of(*args, **options)

    own = [p for name, p in (one.options() or {}).items() if name != "t"]
    vars(make).update(__name__=one.name, __doc__=one.__doc__, __signature__=inspect.Signature(own))
    return make


def _is_time(value: Any) -> bool:
    is_array = isinstance(value, np.ndarray | np.generic | jax.Array)
    return value.ndim == 0 if is_array else isinstance(value, int | float)


def _parameters(function: Any) -> dict[str, inspect.Parameter]:
    """The arguments of a function; none where they cannot be read."""
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return {}


def _measure(known: dict[str, inspect.Parameter]) -> str:
    return next(name for name in known if name in MEASURE)


def _begins_with_time(known: dict[str, inspect.Parameter]) -> bool:
    """Whether a function is one of (t, measure): it is, unless exactly one argument is required, not called t."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [p.name for p in known.values() if p.kind in kinds and p.default is p.empty]
    several = any(p.kind is p.VAR_POSITIONAL for p in known.values())
    return several or len(needed) != 1 or needed[0] == "t"


def _found(module: str, name: str, arguments: dict[str, Any], dims: Any, allow_nan: bool) -> Observable[..., Any]:
    """An observable of a module, by its name."""
    one = getattr(importlib.import_module(module), name)
    if (arguments, dims, allow_nan) == ({}, one.dims, one.allow_nan):
        return one
    again: Observable[..., Any] = Observable(one, dims, allow_nan)
    return again.of(**arguments)

"""The kinds of work that a specification can name: which tables and which keys each of them has."""

import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attnflow.errors import InvalidInput
from attnflow.flows import AbstractWork
from attnflow.runs.registry import ARGUMENTS, NEEDED, REGISTRY

TOP = {"name": "run", "about": "", "precision": "float64"}
"""What every specification has, with the defaults."""
MANY = {"stop": "stop", "observe": "observable"}
"""Keys of every kind that hold several parts: a list of stop conditions, observables by name."""


@functools.lru_cache(maxsize=4096)
def parts_of(maker: Callable[..., Any], key: str) -> tuple[str, ...]:
    """The parts of a specification that a table for the argument `key` of `maker` may name.

    Some arguments are known by their name (`query`, `mask`, `inner`; fields of work are called like their parts); of
    others the annotation decides, so that a plugin may call a field `left`.
    """
    if key in ARGUMENTS:
        return ARGUMENTS[key]
    if inspect.isclass(maker) and issubclass(maker, AbstractWork) and key in REGISTRY:
        return (key,)
    classes = [one for one in _classes(_annotation(maker, key)) if isinstance(one, type)]
    return tuple(part for part, needed in NEEDED.items() if any(issubclass(one, needed) for one in classes))


@functools.lru_cache(maxsize=4096)
def takes_several(maker: Callable[..., Any], key: str) -> bool:
    """Whether the argument `key` of `maker` is declared as a sequence of parts: a list of tables describes it."""
    needed = tuple(NEEDED[part] for part in parts_of(maker, key) if part in NEEDED)
    inside = [one for hint in _items(_annotation(maker, key)) for one in _classes(hint)]
    return any(isinstance(one, type) and issubclass(one, needed) for one in inside)


@functools.lru_cache(maxsize=1024)
def arguments_of(maker: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """The arguments of a maker, which are the keys of its table."""
    return inspect.signature(maker).parameters


def is_whole(kind: type[AbstractWork], key: str) -> bool:
    """Whether a field of a kind is declared as a whole number."""
    return _annotation(kind, key) is int


def is_integer(maker: Callable[..., Any], key: str) -> bool:
    """Whether numbers for the argument `key` of `maker` are integers: its annotation names int, and no other number."""
    numbers = {one for one in _classes(_annotation(maker, key)) if isinstance(one, type)}
    return int in numbers and not any(issubclass(one, float | complex) for one in numbers)


def is_count_or_time(kind: type[AbstractWork], key: str) -> bool:
    """Whether a field of a kind is declared as a number; the end of work may be a list, to which more is added."""
    return any(one in (int, float) for one in _classes(_annotation(kind, key)))


def _annotation(maker: Callable[..., Any], key: str) -> Any:
    """The annotation of an argument; None where there is none that can be read."""
    return _annotations(maker).get(key)


@functools.lru_cache(maxsize=1024)
def _annotations(maker: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of all arguments; none where they cannot be read. A sweep asks for them at every point."""
    try:
        hints = typing.get_type_hints(maker.__init__ if inspect.isclass(maker) else maker)
        return (typing.get_type_hints(maker) if inspect.isclass(maker) else {}) | hints
    except (NameError, TypeError, AttributeError):
        return {}


def _classes(hint: Any) -> list[Any]:
    """The classes that an annotation names, inside unions and sequences too."""
    inside = typing.get_args(hint)
    return [hint] if not inside else [one for arg in inside for one in _classes(arg)]


def _items(hint: Any) -> list[Any]:
    """The annotations of what the sequences in an annotation hold."""
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return list(inside)
    return [one for arg in inside for one in _items(arg)]


def tables_of(kind: type[AbstractWork]) -> dict[str, str]:
    """The tables that a kind needs beside its own, field -> part: its fields that are parts without a default.

    A field that is declared as a sequence of parts has a list of tables, as in [[inputs]].
    """
    found = {}
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        given = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
        if not given and (parts := parts_of(kind, field.name)):
            found[field.name] = parts[0]
    return found


def keys_of(kind: type[AbstractWork]) -> list[str]:
    """The keys of the table of a kind."""
    tables = tables_of(kind)
    return [field.name for field in dataclasses.fields(kind) if field.name not in tables]  # type: ignore[arg-type]


def written(part: str, value: Any) -> Any:
    """A default as a specification writes it: the table of an object of the package, plain values as they are."""
    if value is None or isinstance(value, bool | int | float | str | dict):
        return value
    if isinstance(value, tuple | list):
        return [written(part, item) for item in value]
    names = [name for name, maker in REGISTRY.get(part, {}).items() if maker is type(value)]
    if not names:
        raise InvalidInput(f"the default {value!r} is no {part} that a specification can name; use a plain value.")
    table: dict[str, Any] = {"name": names[0]}
    for key, parameter in inspect.signature(type(value)).parameters.items():
        own = getattr(value, key)
        if own is None:
            continue
        kind: Callable[..., Any] = type(value)
        inner = parts_of(kind, key)
        if inner and not isinstance(own, bool | int | float | str):
            table[key] = written(inner[0], own)
        elif own != parameter.default:
            table[key] = own
    return table


def check_kind(part: str, name: str, kind: Any) -> None:
    """Refuse what cannot be a kind of work."""
    if not (inspect.isclass(kind) and issubclass(kind, AbstractWork)):
        raise InvalidInput(f"the kind {name!r} is {kind!r}; give a class that derives from AbstractWork.")
    if not dataclasses.is_dataclass(kind) or not kind.__dataclass_params__.frozen:
        raise InvalidInput(f"the kind {name!r} is not frozen; write @dataclasses.dataclass(frozen=True) above it.")
    if inspect.isabstract(kind):
        missing = ", ".join(sorted(kind.__abstractmethods__))
        raise InvalidInput(f"the kind {name!r} has no {missing}; define what AbstractWork asks for.")
    names = [field.name for field in dataclasses.fields(kind)]
    if taken := [one for one in names if one in TOP or one == name]:
        raise InvalidInput(f"the kind {name!r} has a field {taken[0]!r}, which specifications use; rename it.")
    if kind.end is not None and kind.end not in names:
        raise InvalidInput(f"the kind {name!r} ends at {kind.end!r}, which is none of its fields; set `end`.")
    for key in keys_of(kind):
        default = kind.defaults(()).get(key)
        written(MANY.get(key) or (parts_of(kind, key) or ("value",))[0], default)


@dataclasses.dataclass(frozen=True)
class Entry:
    """One field of a kind of work, as a form or a list of keys shows it."""

    name: str
    part: str
    """The part of a specification that it is; empty for a plain value."""
    apart: bool
    """Whether it is a table of its own."""
    needed: bool
    default: Any
    """As a specification writes it."""


def entries(kind: type[AbstractWork]) -> list[Entry]:
    """The fields of a kind of work in their order."""
    tables, defaults, found = tables_of(kind), kind.defaults(()), []
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        part = MANY.get(field.name) or next(iter(parts_of(kind, field.name)), "")
        needed = field.name not in defaults
        default = None if needed else written(part, defaults[field.name])
        found.append(Entry(field.name, part, field.name in tables, needed, default))
    return found

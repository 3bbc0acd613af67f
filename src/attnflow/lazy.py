"""Names that a package loads when they are first used, so that a command that needs few modules imports few."""

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attnflow.renamed import DIVIDED, RENAMED


def loader(
    package: str, home: Mapping[str, Sequence[str]], rooms: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of `package`: names by the module that has them, and modules by their names.

    No name may be that of a module of the package, which Python would put in its place when that module is imported.
    An old name of `RENAMED` is refused with the path that it has now. `dir` shows what `__all__` of the package lists.
    """
    where = {name: module for module, names in home.items() for name in names}

    def get(name: str) -> Any:
        if name in where:
            value = getattr(importlib.import_module(where[name]), name)
        elif rooms is not None and name in rooms:
            value = importlib.import_module(rooms[name])
        else:
            raise AttributeError(missing(package, name, rooms or {}))
        setattr(sys.modules[package], name, value)
        return value

    return get, listing([*where, *(rooms or {})])


def missing(package: str, name: str, rooms: Mapping[str, str]) -> str:
    """The sentence that refuses a name which a package does not have: where it is now, if it was renamed."""
    now = RENAMED.get(package, {}).get(name)
    if now is None and package in DIVIDED and not name.startswith("_"):
        inside = (room for room in rooms.values() if name in importlib.import_module(room).__all__)
        now = next((f"{room}.{name}" for room in inside), None)
    return f"module {package!r} has no attribute {name!r}" if now is None else f"{package}.{name} is now {now}."


def refusing(package: str) -> Callable[[str], Any]:
    """`__getattr__` of a room that has all its names: an old one of `RENAMED` is refused with its new path."""

    def get(name: str) -> Any:
        raise AttributeError(missing(package, name, {}))

    return get


def listing(names: Sequence[str]) -> Callable[[], list[str]]:
    """What `dir` shows of a room: its public names, and not what it imports.

    A room has the line `__dir__ = listing(__all__)`.
    """
    return lambda: list(names)

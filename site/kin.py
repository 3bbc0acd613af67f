"""Classes that users do not write themselves: which function makes one, and which public classes derive from it."""

import functools
import inspect
import re
from collections import defaultdict
from typing import Any

import reference


@functools.cache
def public() -> dict[str, Any]:
    """Every public function, class and value by the path of its definition."""
    found = {}
    for room in reference.rooms():
        found |= {path: value for _, path, value in reference.values(room)}
    return found


@functools.cache
def makers() -> dict[str, dict[str, Any]]:
    """Name of a class -> public functions, or classes with a method, that return it, with what their file calls so."""
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    for path, value in public().items():
        if inspect.isclass(value):
            parts = [getattr(one, "fget", None) or getattr(one, "__func__", one) for one in vars(value).values()]
        else:
            parts = [value]
        for part in parts:
            said = getattr(part, "__annotations__", {}).get("return", "")
            around = getattr(inspect.unwrap(part), "__globals__", {}) if callable(part) else {}
            for name in set(
                re.findall(r"\w+", said if isinstance(said, str) else getattr(said, "__name__", str(said)))
            ):
                if path.rpartition(".")[2] != name:
                    found[name][path] = around.get(name)
    return found


def made_by(path: str) -> list[str]:
    """Paths of what returns a class; functions come first."""
    value = public().get(path)
    some = makers().get(value.__name__, {}) if inspect.isclass(value) else {}
    mine = [one for one, meant in some.items() if meant in (value, None)]
    return sorted(mine, key=lambda one: (inspect.isclass(public()[one]), one))


def derived(path: str) -> list[str]:
    """Paths of the public classes that derive from an abstract one."""
    value = public().get(path)
    if not inspect.isclass(value):
        return []
    return sorted(one for one, other in public().items() if inspect.isclass(other) and value in other.__mro__[1:])

"""Checkers made from the source of attnflow.certify.checking with text replaced, in modules that replace nothing."""

import ast
import contextlib
import itertools
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from mpmath import iv
from mpmath.libmp import libmpf

from attnflow import certify

CHECKER = "attnflow.certify.checking"
FOLDER = Path(certify.__file__).parent / "checking"
ORDER = ("integers", "words", "reading", "forms", "flows", "lists", "orbits")
LEAVES = ("forms", "flows", "lists", "orbits")
"""Modules from which no other takes a name as it is made: a function with other text can be put into them afterwards."""
PACKAGE = "mutated_checking"
OPERATIONS = [f"__{side}{name}__" for name in ("add", "sub", "mul", "truediv", "pow") for side in ("", "r")]
"""Operations of intervals that mutants ask for again and again."""
SOURCES = {name: (FOLDER / f"{name}.py").read_text(encoding="utf-8") for name in (*ORDER, "__init__")}
MADE: dict[tuple[str, str, str], ModuleType] = {}
"""Modules that are as their text, by their name, their text and that of integers.py, from which they take names."""


@cache
def _code(name: str, source: str) -> Any:
    return compile(source.replace(CHECKER, PACKAGE), f"{PACKAGE}/{name}.py", "exec")


@cache
def _definitions(source: str) -> tuple[tuple[int, int], ...]:
    """Where the functions and classes of a module begin and end."""
    starts = [0, *itertools.accumulate(map(len, source.splitlines(keepends=True)))]
    nodes = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return tuple((starts[node.lineno - 1], starts[node.end_lineno]) for node in nodes)


class Remembered:
    """A function of one interval that keeps its values: mutants ask for the same ones."""

    def __init__(self, function: Any):
        self.function, self.values = function, {}

    def __call__(self, x: Any) -> Any:
        key = (getattr(x, "_mpi_", x), iv.prec)
        if key not in self.values:
            self.values[key] = self.function(x)
        return self.values[key]


class Converted:
    """The intervals of plain numbers, kept: every product with a whole number asks for one."""

    def __init__(self, function: Any):
        self.function, self.values = function, {}

    def __call__(self, x: Any) -> Any:
        if type(x) is not int and type(x) is not float:
            return self.function(x)
        key = type(x), x, iv.prec
        if key not in self.values:
            self.values[key] = self.function(x)
        return self.values[key]


def remembered_operation(name: str) -> Any:
    """An operation of intervals that keeps its values."""
    original, values = getattr(iv.mpf, name), {}

    def operation(left: Any, right: Any) -> Any:
        if type(right) is int or type(right) is float:
            right = iv.convert(right)
        if type(right) is not iv.mpf:
            return original(left, right)
        key = left._mpi_, right._mpi_, iv.prec
        if key not in values:
            values[key] = original(left, right)
        return values[key]

    return operation


@contextlib.contextmanager
def remembering() -> Iterator[None]:
    """Intervals keep the values of what was done with them, and mpmath leaves out what it asserts of every number."""
    originals = {name: getattr(iv, name) for name in ("exp", "sin", "cos", "log", "sqrt")}
    asserting = libmpf.normalize
    vars(iv).update({name: Remembered(function) for name, function in originals.items()}, convert=Converted(iv.convert))
    libmpf.normalize = libmpf._normalize
    for name, operation in [(name, remembered_operation(name)) for name in OPERATIONS]:
        setattr(iv.mpf, name, operation)
    try:
        yield
    finally:
        libmpf.normalize = asserting
        vars(iv).update(originals)
        del iv.convert
        for name in OPERATIONS:
            delattr(iv.mpf, name)


class Checker:
    """A checker whose source has replacements (file, old text, new text); old texts stand once in their file.

    To compile a file takes 10 ms, so that the last replacement makes one function or class again, where it is in one.
    """

    def __init__(self, replacements: Iterable[tuple[str, str, str]] = ()):
        replacements, sources, replaced = list(replacements), dict(SOURCES), None
        for number, (name, old, new) in enumerate(replacements, 1):
            source = sources[name]
            assert source.count(old) == 1, (name, old, source.count(old))
            first, last = source.index(old), source.index(old) + len(old)
            definitions = [(a, b) for a, b in _definitions(source) if a <= first and last <= b]
            if number == len(replacements) and definitions and name in LEAVES:
                ((start, end),) = definitions
                replaced = name, source[start:first] + new + source[last:end]
            else:
                sources[name] = source[:first] + new + source[last:]
        self.modules: dict[str, ModuleType] = {}
        key = PACKAGE, sources["__init__"], ""
        package = self.modules[PACKAGE] = MADE.setdefault(key, ModuleType(PACKAGE))
        package.__path__ = []
        with self._imported():
            for name in ORDER:
                path = f"{PACKAGE}.{name}"
                key = name, sources[name], sources["integers"]
                changed = replaced is not None and replaced[0] == name
                module = ModuleType(path) if changed else MADE.setdefault(key, ModuleType(path))
                self.modules[path] = sys.modules[path] = module
                if "__builtins__" not in vars(module):
                    exec(_code(name, sources[name]), vars(module))
                if changed:
                    exec(_code(*replaced), vars(module))
            if "__builtins__" not in vars(package):
                exec(_code("__init__", sources["__init__"]), vars(package))

    @contextlib.contextmanager
    def _imported(self) -> Iterator[None]:
        sys.modules.update(self.modules)
        for path, module in self.modules.items():
            if path != PACKAGE:
                setattr(self.modules[PACKAGE], path.rpartition(".")[2], module)
        try:
            yield
        finally:
            for name in (PACKAGE, *(f"{PACKAGE}.{name}" for name in ORDER)):
                sys.modules.pop(name, None)

    def check(self, certificate: dict[str, Any]) -> Any:
        """The verdict of this checker."""
        with self._imported():
            return self.modules[PACKAGE].check(certificate)

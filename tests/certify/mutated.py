"""Checkers made from the source of attnflow.certify.checking with text replaced, in modules that replace nothing."""

import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from attnflow.certify import checking

FOLDER = Path(checking.__file__).parent
ORDER = ("integers", "words", "reading", "forms", "flows", "lists", "orbits", "__init__")
PACKAGE = "mutated_checking"
SOURCES = {name: (FOLDER / f"{name}.py").read_text(encoding="utf-8") for name in ORDER}


@cache
def _code(name: str, source: str) -> Any:
    return compile(source.replace(checking.__name__, PACKAGE), f"{PACKAGE}/{name}.py", "exec")


class Checker:
    """A checker whose source has replacements (file, old text, new text); old texts stand once in their file."""

    def __init__(self, replacements: Iterable[tuple[str, str, str]] = ()):
        sources = dict(SOURCES)
        for name, old, new in replacements:
            assert sources[name].count(old) == 1, (name, old, sources[name].count(old))
            sources[name] = sources[name].replace(old, new)
        self.modules: dict[str, ModuleType] = {}
        for name in ORDER:
            path = PACKAGE if name == "__init__" else f"{PACKAGE}.{name}"
            module = self.modules[path] = ModuleType(path)
            if name == "__init__":
                module.__path__ = []
            sys.modules[path] = module
            if name != "__init__" and PACKAGE not in self.modules:
                sys.modules.setdefault(PACKAGE, ModuleType(PACKAGE))
            exec(_code(name, sources[name]), module.__dict__)
        for path, module in self.modules.items():
            if path != PACKAGE:
                setattr(self.modules[PACKAGE], path.split(".")[1], module)

    def check(self, certificate: dict[str, Any]) -> Any:
        """The verdict of this checker."""
        sys.modules.update(self.modules)
        try:
            return self.modules[PACKAGE].check(certificate)
        finally:
            for path in self.modules:
                sys.modules.pop(path, None)

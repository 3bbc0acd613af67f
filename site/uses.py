"""Who uses a public name: statements of pages and scripts that the suite runs, and experiments of the gallery."""

import ast
import functools
import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from typing import Any

import attnflow

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```python\n(.*?)^```", re.S | re.M)
LONGEST = 12
"""Lines of a statement that is shown as an example."""


@dataclass
class Uses:
    """Where one name is used: page -> the shortest statement there, experiment -> the shortest statement there."""

    statements: dict[str, str] = field(default_factory=dict)
    experiments: dict[str, str] = field(default_factory=dict)

    def example(self) -> tuple[str, str] | None:
        """(where, statement): the shortest one; pages come before scripts, scripts before experiments."""
        for some in (self.statements, self.experiments):
            short = {where: text for where, text in some.items() if text and text.count("\n") < LONGEST}
            if short:
                return min(short.items(), key=lambda one: (one[0].endswith(".py"), len(one[1])))
        return None


def path(found: object, public: str) -> str:
    """Where a function or class is defined, else where it is public: a module may have the name of a function in it."""
    name, module = getattr(found, "__qualname__", ""), getattr(found, "__module__", "") or ""
    return f"{module}.{name}" if name.isidentifier() and module.startswith("attnflow.") else public


@functools.cache
def everywhere() -> dict[str, Uses]:
    """Uses of all names, by the path of their definition."""
    found: dict[str, Uses] = {}
    for page, block in _blocks():
        tree, names = ast.parse(block), _imported(ast.parse(block))
        for statement in tree.body:
            if isinstance(statement, ast.Import | ast.ImportFrom):
                continue
            text = ast.get_source_segment(block, statement) or ""
            for one in _named(statement, names):
                own = found.setdefault(one, Uses()).statements
                if page not in own or len(text) < len(own[page]):
                    own[page] = text
    gallery = ROOT / "src" / "attnflow_gallery"
    for file in sorted(gallery.glob("*/*.py")):
        text, name = file.read_text(encoding="utf-8"), file.parent.name.replace("_", "-")
        tree, lines = ast.parse(text), text.splitlines()
        known = _imported(tree)
        for one in _named(tree, known):
            found.setdefault(one, Uses()).experiments.setdefault(name, "")
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign | ast.Return | ast.Expr):
                segment = dedent("\n".join(lines[node.lineno - 1 : node.end_lineno]))
                for one in _named(node, known):
                    own = found[one].experiments
                    if not own[name] or len(segment) < len(own[name]):
                        own[name] = segment
    return found


def _blocks() -> Iterator[tuple[str, str]]:
    """(page below docs/, code): what earlier blocks of a page import stays known, as the suite runs them in turn."""
    for file in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        before = ""
        name = "index.md" if file.name == "README.md" else file.relative_to(ROOT / "docs").as_posix()
        for block in BLOCK.findall(file.read_text(encoding="utf-8")):
            lines = [line for line in block.splitlines() if re.match(r"import |from ", line)]
            yield name, before + block
            before += "".join(f"{line}\n" for line in lines)
    for file in sorted((ROOT / "examples").glob("*.py")):
        yield f"tutorials/{file.name}", file.read_text(encoding="utf-8")


def _imported(tree: ast.AST) -> dict[str, Any]:
    """Local names that stand for attnflow, its rooms and its names."""
    known: dict[str, Any] = {"af": attnflow}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "attnflow":
            home = importlib.import_module(node.module or "")  # a room may be one that nothing has imported yet
            for alias in node.names:
                known[alias.asname or alias.name] = getattr(home, alias.name, None)
    return {name: value for name, value in known.items() if value is not None}


def _named(tree: ast.AST, known: dict[str, Any]) -> set[str]:
    """Paths of the public names in a piece of code."""
    found = set()
    for node in ast.walk(tree):
        chain, inner = [], node
        while isinstance(inner, ast.Attribute):
            chain.insert(0, inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name) and inner.id in known:
            value, public = known[inner.id], getattr(known[inner.id], "__name__", "")
            for name in chain:
                if type(value).__name__ != "module":
                    break
                value, public = getattr(value, name, None), f"{public}.{name}"
            if value is not None and type(value).__name__ != "module":
                found.add(path(value, public))
    return found

"""Which experiments are installed, read without importing them.

A package offers experiments by an entry point in the group `attnflow.experiments`; in its pyproject.toml

    [project.entry-points."attnflow.experiments"]
    mine = "my_package.experiments"

Every module of `my_package.experiments` is then an experiment, called like the module with - for _. An entry point may
also name a single module, which is an experiment called like the entry point. The gallery of attnflow is found so too.
"""

import ast
import dataclasses
import functools
import hashlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import pkgutil
from pathlib import Path
from typing import Any

from attnflow.errors import InvalidInput
from attnflow.runs.nearest import did_you_mean
from attnflow.runs.plugins import Plugins

GROUP = "attnflow.experiments"


@dataclasses.dataclass(frozen=True)
class Experiment:
    """One published result."""

    name: str
    statement: str
    """The first line of the module's docstring."""
    about: str
    """The rest of it: what is shown and what is not."""
    papers: tuple[str, ...]
    plugins: Plugins = Plugins()
    """The file that it comes from, when that is not an installed package."""
    home: str = ""
    """The module that it is."""
    package: str = ""
    """The name and version of the distribution that brings it, as pip spells them."""

    def module(self) -> Any:
        """The module, imported: `Parameters`, `QUICK`, `run`, `claims`, `draw`, `MUTATIONS`."""
        return self.plugins.loaded[0].module if self.plugins.loaded else importlib.import_module(self.home)


def sources_hash(module: Any) -> str:
    """A hash of the sources of an experiment, 12 digits: its Python files as parsed, and its derivation.

    Comments and the layout of lines do not count; docstrings do, because pages print them. Every Python gives the same
    hash, so fields of the syntax tree that are empty, and new in some Python, do not count either.
    """
    file = Path(str(module.__file__))
    files = sorted(file.parent.glob("*.py")) if file.name == "__init__.py" else [file]
    words = [f"{one.name}\n{_shape(ast.parse(one.read_text(encoding='utf-8')))}" for one in files]
    if (derivation := file.parent / "derivation.md").exists():
        words.append(derivation.read_text(encoding="utf-8"))
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:12]


def _shape(node: Any) -> str:
    """A syntax tree in words; unlike those of `ast.dump` they do not depend on the version of Python."""
    if isinstance(node, ast.AST):
        fields = ((name, value) for name, value in ast.iter_fields(node) if value is not None and value != [])
        return f"{type(node).__name__}({', '.join(f'{name}={_shape(value)}' for name, value in fields)})"
    return f"[{', '.join(map(_shape, node))}]" if isinstance(node, list) else repr(node)


@dataclasses.dataclass(frozen=True)
class _Source:
    home: str
    path: Path
    package: str


def names() -> list[str]:
    """Names of the experiments, as the command line spells them; modules whose name begins with _ are left out."""
    return sorted(_sources())


def find(name: str) -> Experiment:
    """The experiment of this name; its module is read, not imported."""
    sources = _sources()
    if name not in sources:
        raise InvalidInput(f"there is no experiment {name!r}{did_you_mean(name, sources)}")
    source, *others = sources[name]
    if others:
        packages = " and ".join(one.package for one in sources[name])
        raise InvalidInput(f"the experiment {name!r} is in {packages}; uninstall one of them.")
    tree = ast.parse(source.path.read_text(encoding="utf-8"))
    return Experiment(
        name, *statement_and_rest(ast.get_docstring(tree)), papers_of(tree), home=source.home, package=source.package
    )


def statement_and_rest(docstring: str | None) -> tuple[str, str]:
    """The first line of a module's docstring, and what follows it."""
    first, _, rest = inspect.cleandoc(docstring or "").partition("\n")
    return first, rest.strip()


def _sources() -> dict[str, list[_Source]]:
    """Where every experiment is; an entry point whose module is not there brings none."""
    found: dict[str, list[_Source]] = {}
    for entry, package in _entry_points():
        try:
            spec = importlib.util.find_spec(entry.value)
        except ImportError:
            spec = None
        if spec is None:
            continue
        if spec.submodule_search_locations is None:
            modules = [(entry.name, spec)]
        else:
            places = importlib.import_module(entry.value).__path__
            inside = ((one.name, one.module_finder.find_spec(one.name, None)) for one in pkgutil.iter_modules(places))
            modules = [(name, spec) for name, spec in inside if spec is not None and not name.startswith("_")]
        for name, module in modules:
            home = entry.value if module is spec else f"{entry.value}.{name}"
            source = _Source(home, Path(str(module.origin)), package)
            found.setdefault(name.replace("_", "-"), []).append(source)
    return found


@functools.cache
def _entry_points() -> list[tuple[importlib.metadata.EntryPoint, str]]:
    """The entry points of the group, with the distributions that they belong to."""
    found = importlib.metadata.entry_points(group=GROUP)
    return [(one, f"{one.dist.name} {one.dist.version}" if one.dist else one.value) for one in found]


def papers_of(tree: ast.Module) -> tuple[str, ...]:
    """`PAPERS` of a module that is read, not executed."""
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None)
        if value is not None and any(isinstance(t, ast.Name) and t.id == "PAPERS" for t in targets):
            return tuple(ast.literal_eval(value))
    return ()

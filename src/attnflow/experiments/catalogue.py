"""What is in the gallery, read without importing it."""

import ast
import dataclasses
import importlib
import inspect
import pkgutil
from pathlib import Path
from typing import Any

from attnflow.errors import InvalidInput
from attnflow.experiments import gallery
from attnflow.runs.nearest import did_you_mean
from attnflow.runs.plugins import Plugins


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
    """The file that it comes from, when that is not the package."""

    def module(self) -> Any:
        """The module, imported: `Parameters`, `QUICK`, `run`, `claims`, `draw`, `MUTATIONS`."""
        if self.plugins.loaded:
            return self.plugins.loaded[0].module
        return importlib.import_module(f"{gallery.__name__}.{self.name.replace('-', '_')}")


def names() -> list[str]:
    """Names of the experiments, as the command line spells them; modules whose name begins with _ are left out."""
    return sorted(_sources())


def find(name: str) -> Experiment:
    """The experiment of this name; its module is read, not imported."""
    sources = _sources()
    if name not in sources:
        raise InvalidInput(f"there is no experiment {name!r}{did_you_mean(name, sources)}")
    tree = ast.parse(sources[name].read_text(encoding="utf-8"))
    return Experiment(name, *statement_and_rest(ast.get_docstring(tree)), papers_of(tree))


def statement_and_rest(docstring: str | None) -> tuple[str, str]:
    """The first line of a module's docstring, and what follows it."""
    first, _, rest = inspect.cleandoc(docstring or "").partition("\n")
    return first, rest.strip()


def _sources() -> dict[str, Path]:
    found = {}
    for module in pkgutil.iter_modules(gallery.__path__):
        spec = module.module_finder.find_spec(module.name, None)
        if spec and spec.origin and not module.name.startswith("_"):
            found[module.name.replace("_", "-")] = Path(spec.origin)
    return found


def papers_of(tree: ast.Module) -> tuple[str, ...]:
    """`PAPERS` of a module that is read, not executed."""
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None)
        if value is not None and any(isinstance(t, ast.Name) and t.id == "PAPERS" for t in targets):
            return tuple(ast.literal_eval(value))
    return ()

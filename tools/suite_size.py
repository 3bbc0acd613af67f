"""Size of the suite: `python tools/suite_size.py` counts code and what tests reach past the doors of rooms.

Lines of code leave out blank lines, comments and docstrings. An import is below a door when its module lies deeper than
the public room that exports the name (`attnflow.flows.particles`, whose door is `attnflow.flows`). Faults and settings
that tests change go through `tests/faults.py`; lines with `monkeypatch` elsewhere are counted. `--list` names them all.
"""

import argparse
import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "attnflow"
MACHINERY = ("compiler.py", "marks.py", "measured.py")


def code_lines(path: Path) -> int:
    """Count the lines of a Python file that are neither blank, comment nor docstring."""
    text = path.read_text(encoding="utf-8")
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            docstrings.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(1 for number, line in lines if line.strip() and line.strip()[0] != "#" and number not in docstrings)


def imported_modules(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield (line, module) for every import of the package, imports inside functions included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "attnflow":
            parts = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from {(node.lineno, part if _is_module(part) else str(node.module)) for part in parts}
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names if alias.name.startswith("attnflow."))


def _is_module(name: str) -> bool:
    parent, _, last = name.rpartition(".")
    if last in getattr(importlib.import_module(parent), "__all__", ()):  # a public name that a file behind it has, too
        return False
    path = PACKAGE.parent.joinpath(*name.split("."))
    return path.with_suffix(".py").exists() or path.is_dir()


def doors() -> set[str]:
    """Return the modules that a user imports from: rooms, files at the top, and the public rooms inside them."""
    import attnflow

    inner = {f"attnflow.theory.{room}" for room in attnflow.theory._ROOMS}
    top = {f"attnflow.{path.stem}" for path in PACKAGE.iterdir() if not path.name.startswith("_")}
    return {"attnflow", "attnflow.probe.networks", *attnflow._ROOMS.values(), *inner, *top}


def below_doors(folder: Path) -> list[tuple[str, str]]:
    """Return (place, module) for every import below a door in the Python files of a folder."""
    public, places = doors(), []
    for path in sorted(folder.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        name = path.relative_to(ROOT).as_posix()
        places += [(f"{name}:{line}", module) for line, module in imported_modules(tree) if module not in public]
    return places


def patches(folder: Path) -> list[str]:
    """Return the lines that name `monkeypatch`, outside the documented seam for faults."""
    files = (path for path in sorted(folder.rglob("*.py")) if path.name != "faults.py")
    return [
        f"{path.relative_to(ROOT).as_posix()}:{number}"
        for path in files
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if "monkeypatch" in line.lower()
    ]


def main() -> None:
    """Print the counts; with `--list` the places too."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="name every import below a door and every patch")
    options = parser.parse_args()
    for name in ("src", "tests", "campaigns", "benchmarks", "site", "tools"):
        print(f"{sum(map(code_lines, (ROOT / name).rglob('*.py'))):6d} lines of code in {name}/")
    tests = ROOT / "tests"
    print(f"{sum(code_lines(tests / name) for name in MACHINERY if (tests / name).exists()):6d} of them machinery")
    imports, patched = below_doors(tests), patches(tests)
    print(f"{len(imports):6d} imports below a door in tests/, {len(patched)} lines with monkeypatch")
    if options.list:
        print(*(f"{place} {module}" for place, module in imports), *patched, sep="\n")


if __name__ == "__main__":
    main()

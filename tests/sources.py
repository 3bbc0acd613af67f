"""What a module of the package is made of: the files that it imports, and which of them have changed."""

import ast
import functools
import io
import subprocess
import tarfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "attnflow"
GALLERY = ROOT / "src" / "attnflow_gallery"


def experiments():
    """The folder of every experiment by its name."""
    folders = (path.parent for path in GALLERY.glob("*/__init__.py"))
    return {path.name.replace("_", "-"): path for path in folders}


def experiment_changed(name, commit):
    """Whether a file that an experiment is made of differs from `commit`."""
    different = changed(commit)
    if different is None:
        return True
    folder = experiments()[name]
    inside = {path for path in different if folder in path.parents}
    return bool(inside or different & closure(tuple(sorted(folder.glob("*.py")))))


@functools.cache
def changed(commit):
    """Files of the package that do something else than at `commit` in the working tree; None if git cannot tell."""
    if not commit:
        return None
    try:
        differing = _git("diff", "--name-only", "--no-renames", commit, "--", "src").decode().splitlines()
        new = _git("ls-files", "--others", "--exclude-standard", "src").decode().splitlines()
        archived = io.BytesIO(_git("archive", "--format=tar", commit, "src"))
    except (OSError, subprocess.CalledProcessError):
        return None
    with tarfile.open(fileobj=archived) as then:
        both = set(then.getnames()) & {name for name in differing if name.endswith(".py")}
        old = {name: then.extractfile(name).read() for name in both}
    return {ROOT / name for name in (*differing, *new) if name not in old or not same_program(ROOT / name, old[name])}


def _git(*words):
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=True).stdout


def same_program(path, old):
    """Whether a file of Python does the same as its `old` text: they differ in comments, layout or docstrings alone."""
    return path.exists() and _program(path.read_bytes()) == _program(old)


def _program(text):
    """What a text of Python does: its syntax tree, without docstrings and the texts below attributes."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        for name, lines in ast.iter_fields(node):
            if isinstance(lines, list) and lines and isinstance(lines[0], ast.stmt):
                setattr(node, name, [line for line in lines if not _is_text(line)])
    return ast.dump(tree)


def _is_text(line):
    """Whether a statement is a text that nothing reads."""
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant) and isinstance(line.value.value, str)


@functools.cache
def closure(paths):
    """All files of the package that these use, directly or not.

    A module counts with all that it imports, a package with the names that are asked of it: what hands names on
    (`from attnflow.experiments.kit import Rows`, `theory.uniform.growth_rate`) leads to the modules that have them.
    """
    found, left = set(), list(paths)
    while left:
        path = left.pop()
        if path not in found:
            found.add(path)
            left += imported(path)
    return found


@functools.cache
def imported(path):
    """Files of the package with what a file imports, anywhere in it."""
    statements, chains = _read(ast.parse(path.read_text(encoding="utf-8")))
    modules, names = {}, set()
    for node in statements:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    modules[alias.asname] = alias.name
                elif _ours(alias.name):
                    names.add((alias.name, None))
        elif _ours(node.module):
            for alias in node.names:
                module, name = origin(node.module, alias.name)
                if name is None:
                    modules[alias.asname or alias.name] = module
                else:
                    names.add((module, name))
    modules = {alias: module for alias, module in modules.items() if _ours(module)}
    names |= {_along(modules[first], rest) for first, *rest in chains if first in modules}
    return sorted(set().union(*(_files(module, name) for module, name in names)))


def _ours(module):
    return (module or "").split(".")[0] in ("attnflow", "attnflow_gallery")


def _read(tree):
    """(imports, chains): `a.b.c` makes the chain (a, b, c), a name by itself (a,)."""
    imports, chains, left = [], set(), [tree]
    while left:
        node = left.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports.append(node)
            continue
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if isinstance(node, ast.Name):
            chains.add((node.id, *reversed(parts)))
        else:
            left += ast.iter_child_nodes(node)
    return imports, chains


def _along(module, names):
    """The module and name at the end of a chain of attributes of a module; None for a module that is used whole."""
    for name in names:
        module, name = origin(module, name)
        if name is not None:
            return module, name
    return module, None


@functools.cache
def origin(module, name):
    """The module that has a name which another module hands on, and the name there: None for a module."""
    if _file(f"{module}.{name}") is not None:
        return f"{module}.{name}", None
    handed = _handed_on(module)
    return origin(*handed[name]) if name in handed else (module, name)


@functools.cache
def _handed_on(module):
    """What a package imports to hand it on: names, with the module and the name there."""
    path = _file(module)
    if path is None or path.name not in ("__init__.py", "__init__.pyi"):
        return {}
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    froms = (node for node in nodes if isinstance(node, ast.ImportFrom) and _ours(node.module))
    return {
        alias.asname or alias.name: (node.module, alias.name)
        for node in froms
        for alias in node.names
        if (node.module, alias.name) != (module, alias.asname or alias.name)
    }


def _files(module, name):
    """The files of a name of a module; of all that a module has, if the name is None."""
    path = _file(module)
    if path is None or path.suffix == ".pyi":
        return set()
    if name is None and path.name == "__init__.py":
        inside = (origin(module, one) for one in _handed_on(module))
        return {path}.union(*(_files(*one) for one in inside if one != (module, None)))
    return {path}


def _file(name):
    """The file of a module, None for a name that is no module; of the package itself what editors read."""
    at = PACKAGE.parent.joinpath(*name.split("."))
    if at == PACKAGE:
        return at / "__init__.pyi"
    return next((one for one in (at.with_suffix(".py"), at / "__init__.py") if one.exists()), None)

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
    """All files of the package that these import, directly or not."""
    found, left = set(), list(paths)
    while left:
        path = left.pop()
        if path not in found:
            found.add(path)
            left += imported(path)
    return found


@functools.cache
def imported(path):
    """Files of the package that a file imports, anywhere in it; a module brings the packages that it is in."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    parents = {name.rsplit(".", k)[0] for name in names for k in range(name.count(".") + 1)}
    found = (_file(name) for name in names | parents if name.split(".")[0] in ("attnflow", "attnflow_gallery"))
    return sorted(one for one in found if one is not None)


def _file(name):
    """The file of a module, None for a name that is no module."""
    at = PACKAGE.parent.joinpath(*name.split("."))
    return next((one for one in (at.with_suffix(".py"), at / "__init__.py") if at != PACKAGE and one.exists()), None)

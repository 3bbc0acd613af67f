"""A hash of what an experiment computes, which rewording, renaming and moving its code keep.

The hash covers what `run`, `claims`, `QUICK` and `MUTATIONS` of a folder reach. A definition stands for its syntax tree
without docstrings and annotations; variables are numbered, names of the folder stand for what they define, and imported
names for where they come from. Texts for people are left out: strings given to what makes claims, labels and titles,
and elsewhere strings with a blank that select nothing. So `sin` for `cos`, a number, an operator, an argument or `"SA"`
for `"USA"` changes the hash.
"""

import ast
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOTS = ("run", "claims", "QUICK", "MUTATIONS")
"""Names of an experiment that decide what its claims say of a simulation, broken or not."""
TEXTUAL = {
    "equal", "at_most", "at_least", "true", "above", "below", "add", "published", "reported", "consequence", "observed",
    "set_title", "set_xlabel", "set_ylabel", "text", "annotate",
}  # fmt: skip
"""Functions whose strings are for people."""
SPOKEN = {"statement", "reason", "detail", "label", "labels", "title", "origin", "xlabel", "ylabel"}
"""Arguments whose strings are for people."""
SELECTING = {"einsum", "sel", "split", "get"}
"""Functions whose strings decide what they do, although they may have blanks."""
SILENT = {"annotation", "returns", "ctx", "type_comment", "kind", "type_params", "decorator_list"}
"""Fields of nodes that are left out, or are looked at elsewhere."""
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FUNCTIONS = (ast.FunctionDef, ast.Lambda)
Scope = dict[str, int | None]
"""Variables of a function, with their numbers once they are met."""


def program_hash(paths: Iterable[Path]) -> str:
    """The hash of an experiment, 16 digits, from the Python files of its folder."""
    return _Program({path.stem: path.read_text(encoding="utf-8") for path in paths}, next(iter(paths)).parent.name).hash


class _Program:
    """The definitions of one folder."""

    def __init__(self, sources: dict[str, str], folder: str):
        self.folder, self.files = folder, {stem: ast.parse(text) for stem, text in sorted(sources.items())}
        self.definitions: dict[tuple[str, str], list[ast.stmt]] = {}
        self.imports: dict[tuple[str, str], tuple[str, str]] = {}
        self.digests: dict[tuple[str, str], str] = {}
        for stem, tree in self.files.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.Import | ast.ImportFrom):
                    module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
                    for alias in node.names:
                        bound = alias.asname or alias.name.split(".")[0]
                        self.imports[stem, bound] = (module, alias.name if module or alias.asname else bound)
            for statement in tree.body:
                for name in _bound([statement]):
                    self.definitions.setdefault((stem, name), []).append(statement)
        roots = [key for name in ROOTS for key in sorted(self.definitions) if key[1] == name]
        self.hash = _digest(" ".join(self.meaning(*key) for key in roots))

    def meaning(self, stem: str, name: str) -> str:
        """The digest of a definition, the place that a name is imported from, or the name of a builtin."""
        key = stem, name
        if key in self.definitions:
            if key not in self.digests:
                self.digests[key] = "recursion"
                shapes = [self.shape(statement, stem, []) for statement in self.definitions[key]]
                self.digests[key] = _digest("\n".join(shapes))
            return self.digests[key]
        if key not in self.imports:
            return name
        module, imported = self.imports[key]
        *_, parent, last = ["", "", *module.split(".")]
        if parent == self.folder and last in self.files:
            return self.meaning(last, imported)
        return f"file {imported}" if last == self.folder and imported in self.files else f"{module}.{imported}"

    def name(self, name: str, stem: str, scopes: list[Scope]) -> str:
        """The number of a variable, or the meaning of a name of the file."""
        for depth, scope in enumerate(scopes):
            if all(name not in inner for inner in scopes[depth + 1 :]) and name in scope:
                if scope[name] is None:
                    scope[name] = sum(number is not None for number in scope.values())
                return f"variable {depth}.{scope[name]}"
        return self.meaning(stem, name)

    def shape(self, node: object, stem: str, scopes: list[Scope], mode: str = "") -> str:
        """A syntax tree in words; strings in it are texts if `mode` is "spoken", and are kept if it is "kept"."""
        if isinstance(node, list):
            return "[" + ", ".join(self.shape(item, stem, scopes, mode) for item in node if not _is_idle(item)) + "]"
        if isinstance(node, ast.JoinedStr | ast.Constant) and _is_spoken(node, mode):
            return "text"
        if isinstance(node, ast.Name):
            return self.name(node.id, stem, scopes)
        if isinstance(node, ast.arg):
            return self.name(node.arg, stem, scopes)
        if not isinstance(node, ast.AST):
            return repr(node)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            whole = self.name(node.value.id, stem, scopes)
            if whole.startswith("file "):
                return self.meaning(whole.removeprefix("file "), node.attr)
        outer = [self.shape(getattr(node, "decorator_list", []), stem, scopes)]
        if isinstance(node, ast.FunctionDef) and scopes:
            outer.append(self.name(node.name, stem, scopes))
        if isinstance(node, ast.ClassDef):
            outer += [method.name for method in node.body if isinstance(method, ast.FunctionDef)]
        if isinstance(node, FUNCTIONS):
            outer.append(self.shape([*node.args.defaults, *node.args.kw_defaults], stem, scopes))
            arguments = [arg.arg for arg in ast.walk(node.args) if isinstance(arg, ast.arg)]
            body = node.body if isinstance(node.body, list) else [node.body]
            scopes = [*scopes, dict.fromkeys([*arguments, *_bound(body)])]
        elif isinstance(node, COMPREHENSIONS):
            scopes = [*scopes, dict.fromkeys(_bound([part.target for part in node.generators]))]
            outer.append(self.shape(node.generators, stem, scopes))
        fields = [
            f"{field}={self.shape(value, stem, scopes, _mode(node, field, mode))}"
            for field, value in self._fields(node, stem)
        ]
        return f"{type(node).__name__}({', '.join([*outer, *fields])})"

    def _fields(self, node: ast.AST, stem: str) -> Iterator[tuple[str, object]]:
        """The fields of a node that count; of a `Mutation`, the attribute that it breaks instead of its name."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Mutation":
            match node.args:
                case [_, ast.Name(id=module), ast.Constant(value=str(attribute)), *others]:
                    where = self.meaning(stem, module)
                    yield "broken", self.meaning(where.removeprefix("file "), attribute)
                    yield "args", others
                    yield "keywords", node.keywords
                    return
        left_out = SILENT | {"name"} if isinstance(node, ast.FunctionDef | ast.ExceptHandler) else SILENT
        for field, value in ast.iter_fields(node):
            if isinstance(node, ast.arguments) and field in ("defaults", "kw_defaults"):
                continue
            if isinstance(node, ast.ClassDef) and field == "name":
                continue
            if field not in left_out and value is not None and value != []:
                yield field, value


def _mode(node: ast.AST, field: str, mode: str) -> str:
    """How strings in a field of a node are read: as texts (spoken), as they are (kept), or by their blanks."""
    if isinstance(node, ast.Call):
        function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if field == "func":
            return "kept"
        return "spoken" if function in TEXTUAL else "kept" if function in SELECTING else ""
    if isinstance(node, ast.keyword):
        return "spoken" if node.arg in SPOKEN else mode
    if isinstance(node, ast.Compare) or (isinstance(node, ast.Subscript) and field == "slice"):
        return "kept"
    if isinstance(node, ast.Attribute) or (isinstance(node, ast.Dict) and field == "keys"):
        return "kept"
    passes_on = (ast.IfExp, ast.BinOp, ast.List, ast.Tuple, ast.Starred, ast.JoinedStr, *COMPREHENSIONS)
    parts = ("body", "orelse", "left", "right", "elts", "elt", "value", "values")
    return mode if isinstance(node, passes_on) and field in parts else ""


def _is_spoken(node: ast.JoinedStr | ast.Constant, mode: str) -> bool:
    """True if a string is a text for people; numbers are none."""
    parts = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    if isinstance(node, ast.Constant) and not parts:
        return False
    return mode == "spoken" or (mode != "kept" and any(" " in part for part in parts))


def _is_idle(node: object) -> bool:
    """True for a docstring, and for an import, which the names that it binds stand for."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return True
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _bound(nodes: Iterable[ast.AST]) -> list[str]:
    """The names that statements bind, in order, without those inside of functions, classes and comprehensions."""
    names, waiting = list[str](), list(nodes)[::-1]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.ExceptHandler) and node.name:
            names.append(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.append(node.id)
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef, *COMPREHENSIONS)):
            waiting += list(ast.iter_child_nodes(node))[::-1]
    return names


def _digest(words: str) -> str:
    return hashlib.sha256(words.encode()).hexdigest()[:16]

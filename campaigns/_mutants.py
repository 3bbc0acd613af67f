"""Where the package can be changed in one line, and a choice of such changes by a seed.

A mutant is one small change of one line of one file: + for -, <= for <, 2 c for a number c, cos for sin, a factor or a
call left out. It changes what the code computes, never a text, an annotation, an error, a decorator, a list of exports
or a setting that only decides how fast things go.
"""

import ast
import dataclasses
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

MATHEMATICS = ("fields", "sums", "flows", "observe", "meanfield", "theory")
TOP = "attnflow"
"""The room of the files that lie in no folder of the package."""
LEFT_OUT = {"sums/costs.py"}
"""Files that hold measured times alone."""
SPEED = re.compile(
    r"^_*(seconds|costs?|worth|tile|device_tile|groups?|rows|columns|warps|run|slots|entries|chunk|circle_chunk|block"
    r"|product|copies|threads|parts|segments|slice|direct|limit|memory|largest_(block|table|matrix|plan)|began|elapsed)$",
    re.IGNORECASE,
)
"""Names that stand for a cost, or for a size that changes the speed and not the result."""
IDLE = {"strict", "static", "frozen", "repr", "copy", "check_finite", "sharex", "sharey", "num_warps", "num_stages"}
"""Keyword arguments without an effect on a correct program's numbers."""
UNREACHED = {"__repr__", "__str__", "explain", "_emit"}
"""Functions that write texts for people, and the one that runs on a GPU alone."""
SWAPS = (
    "min max|minimum maximum|argmin argmax|amin amax|nanmin nanmax|floor ceil|any all|sin cos|exp expm1|log log1p"
    "|cumsum cumprod|sum mean|logical_and logical_or"
)
NAMES: dict[str, str] = {}
for _pair in SWAPS.split("|"):
    _one, _other = _pair.split()
    NAMES |= {_one: _other, _other: _one}
BINARY: dict[type, tuple[str, str]] = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"), ast.Pow: ("**", "*"),
    ast.FloorDiv: ("//", "*"), ast.Mod: ("%", "*"),
}  # fmt: skip
COMPARE: dict[type, tuple[str, tuple[str, ...]]] = {
    ast.Lt: ("<", ("<=", ">")), ast.LtE: ("<=", ("<", ">=")), ast.Gt: (">", (">=", "<")), ast.GtE: (">=", (">", "<=")),
    ast.Eq: ("==", ("!=",)), ast.NotEq: ("!=", ("==",)), ast.In: ("in", ("not in",)), ast.NotIn: ("not in", ("in",)),
    ast.Is: ("is", ("is not",)), ast.IsNot: ("is not", ("is",)),
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One changed line; `file` is relative to the package, `line` counts from 1."""

    file: str
    line: int
    kind: str
    before: str
    after: str

    @property
    def room(self) -> str:
        """The folder of the package that its file is in, or `TOP`."""
        return room_of(self.file)

    def key(self) -> tuple[str, int, str, str]:
        """What tells it from all others."""
        return self.file, self.line, self.before.strip(), self.after.strip()

    def diff(self) -> str:
        """As a person reads it."""
        return f"{self.file}:{self.line}  ({self.kind})\n- {self.before.strip()}\n+ {self.after.strip()}\n"

    def apply(self, package: Path) -> None:
        """Change the line in this copy of the package."""
        path = package / self.file
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        if lines[self.line - 1].rstrip("\n") != self.before:
            raise SystemExit(f"{self.file}:{self.line} is not the line that was chosen; begin a new record.")
        lines[self.line - 1] = self.after + "\n"
        path.write_text("".join(lines), encoding="utf-8")


def room_of(file: str) -> str:
    """The room of a file whose path is relative to the package."""
    return file.split("/")[0] if "/" in file else TOP


def rooms(package: Path) -> list[str]:
    """All rooms of the package: `TOP`, and every folder with a file that can be changed."""
    folders = sorted({path.relative_to(package).parts[0] for path in package.glob("*/**/*.py")})
    return [TOP, *(folder for folder in folders if _files(package, folder))]


def draw(package: Path, count: int, seed: int, only: str | None = None) -> list[Mutant]:
    """Draw `count` mutants in different lines: half in the rooms that hold mathematics, half in all others.

    Within each half every room has the same share; the second half is drawn by the next seed. With `only`, all
    mutants are of one file.
    """
    if only:
        return choose(package, count, seed, rooms(package), only)
    others = [room for room in rooms(package) if room not in MATHEMATICS]
    return choose(package, (count + 1) // 2, seed, MATHEMATICS) + choose(package, count // 2, seed + 1, others)


def _files(package: Path, room: str) -> list[Path]:
    """The files of a room that can be changed."""
    paths = package.glob("*.py") if room == TOP else (package / room).rglob("*.py")
    left_out = {package / name for name in LEFT_OUT}
    return [path for path in sorted(paths) if path.name != "__init__.py" and path not in left_out]


def choose(package: Path, count: int, seed: int, rooms: Sequence[str], only: str | None = None) -> list[Mutant]:
    """`count` mutants in different lines: rooms in turn, then a random line of the room, then a change of it."""
    rng = random.Random(seed)
    sources: dict[str, str] = {}
    found: dict[str, list[list[Mutant]]] = {}
    for room in rooms:
        found[room] = []
        for path in _files(package, room):
            name = path.relative_to(package).as_posix()
            if only and not name.endswith(only):
                continue
            sources[name] = path.read_text(encoding="utf-8")
            at: dict[int, list[Mutant]] = {}
            for mutant in mutants(name, sources[name]):
                at.setdefault(mutant.line, []).append(mutant)
            found[room] += [at[line] for line in sorted(at)]
        rng.shuffle(found[room])
    chosen: list[Mutant] = []
    while len(chosen) < count and any(found.values()):
        for room in rooms:
            if found[room] and len(chosen) < count:
                chosen += _drawn(found[room].pop(), rng, sources)
    return chosen


def find(package: Path, entry: dict[str, Any]) -> Mutant | None:
    """The mutant of a record in the package of today, by its text; None if the line is gone.

    Of equal lines it is one in the same definition, if there is one, and the nearest to the old place.
    """
    path = package / entry["file"]
    if not path.exists():
        return None
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines()
    same = [k + 1 for k, line in enumerate(lines) if line.strip() == entry["before"]]
    inside = [line for line in same if place(source, line) == entry.get("place")]
    if not same:
        return None
    line = min(inside or same, key=lambda one: abs(one - entry["line"]))
    before = lines[line - 1]
    after = before[: len(before) - len(before.lstrip())] + entry["after"]
    return Mutant(entry["file"], line, entry["kind"], before, after)


def place(source: str, line: int) -> str:
    """The definition that a line is in, such as `Solver.step`; empty outside of all."""
    names: list[str] = []
    nodes: list[ast.stmt] = ast.parse(source).body
    while nodes:
        inner = [node for node in nodes if node.lineno <= line <= (node.end_lineno or 0)]
        names += [node.name for node in inner if isinstance(node, ast.FunctionDef | ast.ClassDef)]
        nodes = [child for node in inner for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
    return ".".join(names)


def _drawn(line: list[Mutant], rng: random.Random, sources: dict[str, str]) -> list[Mutant]:
    """One change of a line that is another program, kinds first; none if there is none."""
    kinds: dict[str, list[Mutant]] = {}
    for mutant in line:
        kinds.setdefault(mutant.kind, []).append(mutant)
    names = sorted(kinds)
    rng.shuffle(names)
    for name in names:
        rng.shuffle(kinds[name])
        for mutant in kinds[name]:
            if differs(mutant, sources[mutant.file]):
                return [mutant]
    return []


def mutants(name: str, source: str) -> list[Mutant]:
    """All changes of one file."""
    lines = source.splitlines()
    found: dict[tuple[int, str], Mutant] = {}
    for node in _reached(ast.parse(source)):
        for kind, line, first, last, text in _changes(node, lines):
            row = lines[line - 1].encode()
            after = (row[:first] + text.encode() + row[last:]).decode()
            found.setdefault((line, after), Mutant(name, line, kind, lines[line - 1], after))
    return list(found.values())


def differs(mutant: Mutant, source: str) -> bool:
    """Whether it is still Python, and another program."""
    lines = source.splitlines()
    lines[mutant.line - 1] = mutant.after
    try:
        return ast.dump(ast.parse("\n".join(lines))) != ast.dump(ast.parse(source))
    except SyntaxError:
        return False


def _reached(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that may be changed, from this one down."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom | ast.Delete):
        return
    if isinstance(node, ast.FunctionDef) and (node.name in UNREACHED or SPEED.match(node.name) or _abstract(node)):
        return
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)]
        if any(SPEED.match(n) or n == "__all__" for n in names) or _alias(node, names):
            return
    if isinstance(node, ast.BinOp | ast.Compare | ast.Call) and _about_speed(node):
        return
    if isinstance(node, ast.IfExp | ast.BoolOp) and any(_text(child) for child in ast.iter_child_nodes(node)):
        return
    if isinstance(node, ast.keyword) and node.arg and (SPEED.match(node.arg) or node.arg in IDLE):
        return
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("eqx.field", "dataclasses.field", "TypeVar", "cast"):
        return
    yield node
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "bases", "type_params", "targets", "target"):
            continue
        if isinstance(node, ast.arguments) and field in ("defaults", "kw_defaults"):
            value = [v for v, arg in _defaults(node, field) if v is not None and not SPEED.match(arg)]
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _reached(child)


def _about_speed(node: ast.expr) -> bool:
    """A sum or a bound that is made of a setting such as TILE."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) not in ("int", "min", "max", "range", "np.clip"):
        return False
    names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]
    return any(SPEED.match(n) and n.isupper() for n in names)


def _abstract(node: ast.FunctionDef) -> bool:
    return any(ast.unparse(mark).endswith(("abstractmethod", "overload")) for mark in node.decorator_list)


def _alias(node: ast.AST, names: list[str]) -> bool:
    """A name for a type, such as `Point = Float[Array, "dim"]`."""
    value = getattr(node, "value", None)
    return isinstance(value, ast.Subscript) and isinstance(node, ast.Assign) and all(n[:1].isupper() for n in names)


def _defaults(node: ast.arguments, field: str) -> list[tuple[ast.expr | None, str]]:
    if field == "kw_defaults":
        return list(zip(node.kw_defaults, (arg.arg for arg in node.kwonlyargs), strict=True))
    arguments = [*node.posonlyargs, *node.args]
    tail = arguments[len(arguments) - len(node.defaults) :]
    return list(zip(node.defaults, (arg.arg for arg in tail), strict=True))


Change = tuple[str, int, int, int, str]
"""Kind, line, first and last byte in the line, and what stands there instead."""


def _changes(node: ast.AST, lines: list[str]) -> Iterator[Change]:
    """The changes at this node alone."""
    if isinstance(node, ast.BinOp) and type(node.op) in BINARY:
        old, new = BINARY[type(node.op)]
        if not any(isinstance(side, ast.List | ast.Tuple) or _text(side) for side in (node.left, node.right)):
            yield from _between("arithmetic", node.left, node.right, old, (new,), lines)
            if isinstance(node.op, ast.Mult) and _one_line(node):
                yield "factor", node.lineno, node.col_offset, node.end_col_offset or 0, _kept(node.left, lines)
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARE:
        old, new_ones = COMPARE[type(node.ops[0])]
        yield from _between("comparison", node.left, node.comparators[0], old, new_ones, lines)
    elif isinstance(node, ast.BoolOp):
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        yield from _between("and/or", node.values[0], node.values[1], old, (new,), lines)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not) and _one_line(node):
        kind = "not" if isinstance(node.op, ast.Not) else "sign"
        yield kind, node.lineno, node.col_offset, node.end_col_offset or 0, _kept(node.operand, lines)
    elif isinstance(node, ast.AugAssign) and type(node.op) in BINARY:
        old, new = BINARY[type(node.op)]
        yield from _between("arithmetic", node.target, node.value, old + "=", (new + "=",), lines)
    elif isinstance(node, ast.Constant):
        for text in _other_values(node.value):
            yield "constant", node.lineno, node.col_offset, node.end_col_offset or 0, text
    elif isinstance(node, ast.keyword) and node.arg == "axis" and isinstance(node.value, ast.Constant | ast.UnaryOp):
        other = {"0": "1", "1": "0", "-1": "0", "2": "1", "-2": "-1"}.get(ast.unparse(node.value))
        if other and _one_line(node.value):
            yield "axis", node.value.lineno, node.value.col_offset, node.value.end_col_offset or 0, other
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
        name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
        own = isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) == "self"
        if name in NAMES and not own and node.func.end_col_offset and node.func.end_lineno:
            last = node.func.end_col_offset
            yield "function", node.func.end_lineno, last - len(name), last, NAMES[name]
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _one_line(node):
        yield "statement", node.lineno, node.col_offset, node.end_col_offset or 0, "pass"


def _other_values(value: object) -> Iterator[str]:
    if isinstance(value, bool):
        yield str(not value)
    elif isinstance(value, int | float):
        for other in (2 * value, value + 1, type(value)(0)):
            if other != value:
                yield repr(other)


def _between(
    kind: str, left: ast.expr, right: ast.expr, old: str, new: tuple[str, ...], lines: list[str]
) -> Iterator[Change]:
    """The operator between two expressions, if all of it is in one line."""
    if left.end_lineno is None or left.end_col_offset is None or left.end_lineno != right.lineno:
        return
    gap = lines[right.lineno - 1].encode()[left.end_col_offset : right.col_offset].decode()
    if gap.count(old) == 1:
        first = left.end_col_offset + len(gap[: gap.index(old)].encode())
        for text in new:
            yield kind, right.lineno, first, first + len(old), text


def _kept(node: ast.expr, lines: list[str]) -> str:
    text = lines[node.lineno - 1].encode()[node.col_offset : node.end_col_offset].decode()
    return text if isinstance(node, ast.Name | ast.Constant | ast.Call | ast.Attribute | ast.Subscript) else f"({text})"


def _one_line(node: ast.AST) -> bool:
    return getattr(node, "lineno", 0) == getattr(node, "end_lineno", -1)


def _text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))

"""Examples of the reference: one file a room in site/examples, one heading a name, lines after `>>>` and their results.

`python site/examples.py [ROOM ...]` runs the lines of these rooms (default: all) and writes the results anew; the suite
runs the same lines and compares (tests/site/test_examples.py). Every example starts from the lines under `## Setup` of
its file. Numbers are shown with five digits, arrays with four decimals, and an error as its type and message.
"""

import ast
import contextlib
import dataclasses
import doctest
import functools
import importlib
import io
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import attnflow
import uses

FOLDER = Path(__file__).resolve().parent / "examples"
SETUP = "Setup"
HEADING = re.compile(r"^## (.+)$", re.M)
NUMBER = re.compile(r"(?<![\w.])-?(?:\d+\.?\d*(?:e[+-]?\d+)?|inf|nan)(?![\w])")


def files() -> dict[str, Path]:
    """Room, as `theory.uniform`, and its file."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.md"))}


def sections(path: Path) -> tuple[str, dict[str, str]]:
    """What stands before the headings, and the lines under each heading."""
    head, *rest = HEADING.split(path.read_text(encoding="utf-8"))
    texts = (re.sub(r"^```.*\n?", "", text, flags=re.M).strip() for text in rest[1::2])
    return head, dict(zip(rest[::2], texts, strict=True))


def run(text: str, names: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(source, result as written, result now) of the lines of one example; `names` is what they know and change."""
    for example in doctest.DocTestParser().get_examples(f"{text}\n"):
        printed = io.StringIO()

        def display(value: Any, printed: io.StringIO = printed) -> None:
            if value is not None:
                print(shown(value), file=printed)

        before, sys.displayhook = sys.displayhook, display
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile(example.source, "<example>", "single"), names)
        except Exception as error:
            print(f"{type(error).__name__}: {error}", file=printed)
        finally:
            sys.displayhook = before
        yield example.source, example.want.rstrip("\n"), printed.getvalue().rstrip("\n")


def shown(value: Any) -> str:
    """A value as the reference shows it."""
    if isinstance(value, float | np.floating):
        digits = f"{float(value):.5g}"
        return f"{digits}.0" if digits.lstrip("-").isdigit() else digits
    if isinstance(value, complex | np.complexfloating):
        return f"{complex(value):.5g}"
    if isinstance(value, np.integer | np.bool_):
        return repr(value.item())
    if isinstance(value, np.ndarray) or type(value).__module__.startswith("jax"):
        value = np.asarray(value)
        if not value.ndim:
            return shown(value[()])
        large = value.dtype.kind != "f" or np.abs(value, where=np.isfinite(value), out=np.ones_like(value)).max() > 0.1
        return np.array_repr(value, precision=4, suppress_small=bool(large))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return f"{type(value).__name__}({', '.join(f'{k}={shown(v)}' for k, v in value._asdict().items())})"
    if type(value) in (list, tuple, set):
        inside = ", ".join(map(shown, value)) + ("," if type(value) is tuple and len(value) == 1 else "")
        return {list: f"[{inside}]", tuple: f"({inside})", set: f"{{{inside}}}"}[type(value)]
    if type(value) is dict:
        return "{" + ", ".join(f"{shown(k)}: {shown(v)}" for k, v in value.items()) + "}"
    if dataclasses.is_dataclass(value) and type(value).__dataclass_params__.repr:  # type: ignore[attr-defined]
        rows = ((one.name, getattr(value, one.name)) for one in dataclasses.fields(value))
        return f"{type(value).__name__}({', '.join(f'{k}={shown(v)}' for k, v in rows)})"
    return repr(value)


def same(written: str, now: str) -> bool:
    """Whether two results agree: words are equal, whole numbers too, others to the digits that are shown."""
    words = [re.sub(r"\s+", "", NUMBER.sub("#", text)) for text in (written, now)]
    pairs = zip(NUMBER.findall(written), NUMBER.findall(now), strict=False)
    return words[0] == words[1] and all(_near(one, other) for one, other in pairs)


def _near(one: str, other: str) -> bool:
    if one == other:
        return True
    a, b = float(one), float(other)
    whole = one.lstrip("-").isdigit() and other.lstrip("-").isdigit()
    small = 0.0 if "e" in one or "e" in other else 1e-4
    return not whole and abs(a - b) <= small + 2e-4 * max(abs(a), abs(b))


@functools.cache
def known() -> dict[str, str]:
    """The example of every name that has one, by the path of its definition, with the lines of the setup it needs."""
    found = {}
    for room, path in files().items():
        home, texts = module(room), sections(path)[1]
        for name, text in texts.items():
            if name != SETUP:
                found[uses.path(getattr(home, name), f"{home.__name__}.{name}")] = whole(texts.get(SETUP, ""), text)
    return found


def whole(setup: str, text: str) -> str:
    """An example after those lines of the setup whose names it uses, directly or not."""
    needed = set().union(*(_names(one.source, ast.Load) for one in doctest.DocTestParser().get_examples(f"{text}\n")))
    kept: list[str] = []
    for one in reversed(doctest.DocTestParser().get_examples(f"{setup}\n")):
        if _names(one.source, ast.Store) & needed:
            needed |= _names(one.source, ast.Load)
            kept.insert(0, _prompted(one.source))
    return "\n".join([*kept, text])


def _names(source: str, context: type[ast.expr_context]) -> set[str]:
    """Names that a line reads, or those that it binds."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, context):
            found.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom) and context is ast.Store:
            found |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
    return found


def _prompted(source: str) -> str:
    first, *more = source.rstrip("\n").split("\n")
    return "\n".join([f">>> {first}", *(f"... {line}".rstrip() for line in more)])


def module(room: str) -> Any:
    """The module of a room, or of a room within one; `attnflow` holds what stands at the top alone."""
    first, _, inner = room.partition(".")
    home = {"attnflow": "attnflow", **attnflow._ROOMS}[first]
    return importlib.import_module(f"{home}.{inner}" if inner else home)


def begin(text: str) -> dict[str, Any]:
    """The names that the lines under `## Setup` make."""
    names: dict[str, Any] = {}
    for source, _, now in run(text, names):
        if now:
            raise AssertionError(f"a line of the setup prints {now}: {source}")
    return names


def main() -> None:
    """Write the results of these rooms anew."""
    for room in sys.argv[1:] or files():
        head, found = sections(files()[room])
        names = begin(found.get(SETUP, ""))
        parts = [head.strip()]
        for name, text in found.items():
            lines = []
            for source, _, now in run(text, dict(names)) if name != SETUP else ():
                lines += [_prompted(source), *([now] if now else [])]
            parts.append(f"## {name}\n\n```pycon\n{chr(10).join(lines) or text}\n```")
        files()[room].write_text("\n\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as here, contextlib.chdir(here):
        main()

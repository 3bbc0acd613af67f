"""Habits of language that make sentences hard to read do not come back: in docstrings, comments, messages, documents."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HABITS = {
    r"\bbut for\b": "except for",
    r"(?<!lag )(?<!lags )(?<!lagged )\bbehind\b": "after",
    r"(?:^|[.] )[Tt]hat of\b": "the noun in place of `that`",
    r"^[Tt]hose of\b": "the noun in place of `those`",
}
"""What is not written, and what to write."""


def texts(path):
    """(line, text) of every docstring, comment and paragraph of a document."""
    content = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        for paragraph in re.finditer(r"(?:.+\n?)+", content):
            yield content.count("\n", 0, paragraph.start()) + 1, " ".join(paragraph[0].split())
        return
    for token in tokenize.generate_tokens(io.StringIO(content).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# ")
    for node in ast.walk(ast.parse(content)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield from ((node.lineno, sentence) for sentence in [" ".join(node.value.value.split())])


@pytest.mark.long
def test_plain_english():
    folders = [path for folder in ("src", "docs", "tests") for path in (ROOT / folder).rglob("*")]
    pages = [
        path for path in (*folders, *ROOT.glob("*.md")) if path.suffix in (".py", ".md") and path != Path(__file__)
    ]
    offenders = [
        f"{path.relative_to(ROOT)}:{line}: {found[0]!r}; write {instead}"
        for path in pages
        for line, text in texts(path)
        for habit, instead in HABITS.items()
        if (found := re.search(habit, text))
    ]
    assert not offenders, "\n" + "\n".join(offenders)

"""Every line of the checker on which soundness rests: some change of it confirms an adversary, which it rejects."""

import ast
from functools import cache

import pytest

from tests.certify.adversaries import ADVERSARIES
from tests.certify.mutants import MUTANTS, Replacement
from tests.certify.mutated import SOURCES, Checker, remembering
from tests.certify.without import WITHOUT


@pytest.fixture(autouse=True, scope="module")
def _fast():
    with remembering():
        yield


@cache
def rejects(coarse: tuple[Replacement, ...], name: str) -> bool:
    """Whether the checker, made coarser or not, rejects an adversary."""
    return not Checker(coarse).check(ADVERSARIES[name]).confirmed


def test_every_mutant_confirms_an_adversary_that_the_checker_rejects():
    assert {mutant.adversary for mutant in MUTANTS} == set(ADVERSARIES)
    survivors = []
    for mutant in MUTANTS:
        assert rejects(mutant.coarse, mutant.adversary), mutant
        verdict = Checker([*mutant.coarse, mutant[:3]]).check(ADVERSARIES[mutant.adversary])
        if not verdict.confirmed:
            survivors.append((mutant.file, mutant.old, mutant.new, mutant.adversary, verdict.reason))
    assert survivors == []


@pytest.mark.slow
def test_the_checker_as_it_is_confirms_no_adversary():
    """Mutants of slow parts are made from a checker with fewer pieces and digits; here is the one that users call."""
    assert [name for name in ADVERSARIES if not rejects((), name)] == []


def statements(source: str) -> list[tuple[int, int, str]]:
    """(begin, end, text) of all that a file does; of a block its first line only."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    texts = []
    passive = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef | ast.Try | ast.Nonlocal
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.stmt) or isinstance(node, passive):
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        body = getattr(node, "body", None)
        first, last = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
        if body:
            last = starts[body[0].lineno - 1] + body[0].col_offset
        texts.append((first, last, source[first:last].strip()))
    return texts


def test_every_line_has_a_mutant_or_a_reason_to_have_none():
    """A new line of the checker needs a mutant here, with an adversary that it confirms."""
    for name, source in SOURCES.items():
        assert source.isascii()  # places in the syntax tree count bytes
        spans = [(source.index(m.old), source.index(m.old) + len(m.old)) for m in MUTANTS if m.file == name]
        bare = [text for a, b, text in statements(source) if not any(first < b and last > a for first, last in spans)]
        excused = [start for starts in WITHOUT.get(name, {}).values() for start in starts]
        assert [text for text in bare if not any(text.startswith(start) for start in excused)] == [], name
        assert [start for start in excused if not any(text.startswith(start) for text in bare)] == [], name

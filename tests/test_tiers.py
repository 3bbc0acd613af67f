"""Every case belongs to one tier, and every tier is run by something."""

import re
import subprocess
import sys
import types

import jax
import pytest

from tests import sources, tiers
from tests.conftest import EVERY_CASE
from tests.history import ROOT, in_history


@pytest.fixture(scope="module")
def collected(request):
    """Name and tier of all cases that pytest found, before it left those of other tiers out."""
    return request.config.stash[EVERY_CASE]


def test_every_case_has_a_tier(collected):
    assert collected
    assert set(collected.values()) <= set(tiers.TIERS)


def test_every_tier_is_run_by_a_command():
    makefile, run = (ROOT / "Makefile").read_text(), (ROOT / ".ci" / "run").read_text()
    commands = set(re.findall(r"--tiers (\w+)", makefile)) | set(re.findall(r"TIERS=(\w+)", run))
    assert {tier for choice in commands for tier in tiers.CHOICES[choice]} == set(tiers.TIERS)
    assert set(tiers.CHOICES[re.search(r"TIERS=(\w+)", run).group(1)]) == set(tiers.TIERS) - {"long"}


def test_listed_names_exist_and_stand_on_one_list(collected, request):
    studies, rotating = tiers.listed(tiers.STUDIES), tiers.listed(tiers.ROTATING)
    assert not studies.keys() & rotating.keys()
    assert len(rotating) <= tiers.MOST
    files = {name.split("::")[0] for name in collected}  # all of them, where pytest was given no file
    partly = {argument.split("::")[0] for argument in request.config.args if "::" in argument}
    known = [name for name in [*studies, *rotating] if name.split("::")[0] in files - partly]
    stale = [name for name in known if name not in collected]
    if jax.default_backend() != "cpu":  # the lists are those of a CPU, where runs of two processes are the same
        stale = [name for name in stale if "tests/runs/test_survival.py::" not in name]
    assert stale == [], "these cases are gone: run `make tiers`, or remove them from the lists by hand"


def case(node, *marks, **params):
    found = [types.SimpleNamespace(name=mark, kwargs={}) for mark in marks]
    closest = {mark.name: mark for mark in found}
    return types.SimpleNamespace(
        nodeid=node, iter_markers=lambda: found, get_closest_marker=closest.get, callspec=types.SimpleNamespace(params=params)
    )  # fmt: skip


def test_each_rotating_case_runs_once_in_four_commits_and_always_without_a_history():
    for name in tiers.listed(tiers.ROTATING):
        one = case(name)
        assert [tiers.runs(one, "all", n) for n in range(70, 74)].count(True) == 1
        assert tiers.runs(one, "all", None)
        assert tiers.runs(one, "everything", 70)
        assert not tiers.runs(one, "test", None)


def test_quick_versions_run_where_a_source_changed_and_in_turn(monkeypatch):
    name = sorted(sources.experiments())[3]
    one = case("quick", "quick", name=name)
    for change, runs in ((set(), 1), (None, 5), ({sources.PACKAGE / "fields" / "attention.py"}, 5),
                         ({sources.experiments()[name] / "mutations.py"}, 5),
                         ({sources.PACKAGE / "cli" / "main.py"}, 1)):  # fmt: skip
        monkeypatch.setattr(sources, "changed", lambda commit, change=change: change)
        assert [tiers.runs(one, "all", n) for n in range(5)].count(True) == runs, change


@pytest.mark.parametrize(
    ("new", "same"),
    [
        (
            '"""Other words."""\n\n# a comment\nx = 1\n"""What x is."""\n\n\ndef f():\n    """Text."""\n    return  x\n',
            True,
        ),
        ('"""A module."""\n\nx = 2\n\n\ndef f():\n    return x\n', False),
        ('"""A module."""\n\nx = 1\n\n\ndef f():\n    return "x"\n', False),
        ('"""A module."""\n\nx = 1\n', False),
    ],
)
def test_words_alone_do_not_make_a_file_another_program(new, same, tmp_path):
    (tmp_path / "a.py").write_text(new)
    old = '"""A module."""\n\nx = 1\n\n\ndef f():\n    return x\n'
    assert sources.same_program(tmp_path / "a.py", old) is same
    assert not sources.same_program(tmp_path / "absent.py", old)


def test_the_closure_of_imports_is_what_python_imports():
    """What an experiment really imports is in it; it may hold more, as imports inside of functions count."""
    code = (
        "import sys, importlib; importlib.import_module('attnflow_gallery.staircase');"
        "print('\\n'.join(m.__file__ for n, m in sys.modules.items() if n.startswith('attnflow.') and m.__file__))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    folder = sources.experiments()["staircase"]
    found = {path.relative_to(sources.ROOT) for path in sources.closure(tuple(sorted(folder.glob("*.py"))))}
    real = {line.split("src/", 1)[1] for line in done.stdout.split()}
    lazy = {"attnflow/experiments/__init__.py"}  # a parent package of the module itself
    assert real - {path.as_posix().split("src/", 1)[1] for path in found} <= lazy


def test_the_commit_of_everything_is_one_of_this_history():
    assert re.fullmatch(r"[0-9a-f]{40}", tiers.since()), "run `make everything` at a commit"
    assert in_history(tiers.since())


ROWS = [
    {"id": "a.py::t[1]", "cpu": 0.1, "marks": []},
    {"id": "a.py::t[2]", "cpu": 0.9, "marks": []},
    {"id": "a.py::t[3]", "cpu": 5.0, "marks": []},
    {"id": "a.py::t[4]", "cpu": 6.0, "marks": ["slow"]},
    {"id": "a.py::alone", "cpu": 2.0, "marks": []},
    {"id": "a.py::heavy", "cpu": 9.0, "marks": []},
    {"id": "a.py::marked", "cpu": 2.0, "marks": ["slow"]},
    {"id": "a.py::hours", "cpu": 99.0, "marks": ["long"]},
    {"id": "tests/cli/a.py::t", "cpu": 9.0, "marks": []},
]


def test_cases_are_sorted_out_by_what_they_cost(monkeypatch):
    """The cheapest case of a test stays in `make test`, the cheapest study of a test stays in every CI."""
    assert tiers.sorted_out(ROWS) == (["a.py::alone", "a.py::t[2]"], ["a.py::heavy", "a.py::t[4]", "a.py::t[3]"])
    kept = {"a.py::alone", "a.py::t[3]", "a.py::heavy"}
    assert tiers.sorted_out(ROWS, kept) == (["a.py::t[2]"], ["a.py::t[4]"])
    monkeypatch.setattr(tiers, "MOST", 2)
    assert tiers.sorted_out(ROWS) == (["a.py::alone", "a.py::t[2]", "a.py::t[3]"], ["a.py::heavy", "a.py::t[4]"])

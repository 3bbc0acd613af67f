"""The table of runs: filters, and a cache that follows the disk."""

import shutil
import sqlite3

import pytest

from attnflow.errors import InvalidInput
from attnflow.runs import Run, execute, list_runs, parse_spec
from attnflow.runs.listing import CACHE

SPEC = """
[field]
name = "attention"
beta = {beta}
[tokens]
name = "uniform"
n = 4
space = {{ name = "sphere", dim = 2 }}
[solve]
until = 0.01
save = {{ name = "at", times = [0.01] }}
"""


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    root = tmp_path_factory.mktemp("listing")
    for beta in (1.0, 4.0, 9.0):
        execute(parse_spec(SPEC.format(beta=beta)), root / f"beta{beta:g}")
    return root


def names(root, *where):
    return [run.path.name for run in list_runs(root, where)]


def test_filters_look_at_the_specification_and_the_manifest(three):
    assert names(three) == ["beta1", "beta4", "beta9"]
    assert names(three, "field.beta>=4") == ["beta4", "beta9"]
    assert names(three, "field.beta>1", "field.beta < 9.0") == ["beta4"]
    assert names(three, "field.beta!=4", "status=finished", "field.name=attention") == ["beta1", "beta9"]
    assert names(three, "field.beta=finished") == []
    assert names(three, "status=interrupted") == []
    with pytest.raises(InvalidInput, match=r"has the key 'field.bta'.*field.beta"):
        names(three, "field.bta=4")
    with pytest.raises(InvalidInput, match="cannot be read; write it as"):
        names(three, "field.beta")


def test_the_cache_follows_the_disk(three, tmp_path):
    root = tmp_path / "runs"
    shutil.copytree(three, root)
    assert names(root, "status=finished") == ["beta1", "beta4", "beta9"]
    shutil.rmtree(root / "beta1")
    Run(root / "beta4").update(status="failed")
    assert names(root, "status=finished") == ["beta9"]
    (root / "beta9" / "manifest.json").write_text("{", encoding="utf-8")
    assert names(root, "status=damaged") == ["beta9"]
    with sqlite3.connect(root / CACHE) as base:
        base.execute("update runs set facts = 'no json'")
    base.close()
    assert names(root, "field.beta=4") == ["beta4"]
    (root / CACHE).write_bytes(b"no database, " * 99)
    assert names(root, "field.beta=4") == ["beta4"]
    (root / CACHE).unlink()
    (root / CACHE).mkdir()  # a cache that cannot be made
    assert names(root, "field.beta=4") == ["beta4"]

"""The table of runs: filters, and a cache that follows the disk."""

import shutil

import pytest

from attnflow.errors import InvalidInput
from attnflow.runs import Run, execute, list_runs, parse_spec
from tests.faults import environment

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


@pytest.fixture(autouse=True)
def cache(tmp_path):
    """The user's cache folder of a test."""
    with environment(XDG_CACHE_HOME=str(tmp_path / "cache")):
        yield tmp_path / "cache"


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    root = tmp_path_factory.mktemp("listing")
    for beta in (1.0, 4.0, 9.0):
        execute(parse_spec(SPEC.format(beta=beta)), root / f"beta{beta:g}")
    return root


def contents(root):
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def names(root, *where):
    return [run.path.name for run in list_runs(root, where)]


@pytest.mark.slow
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


def test_the_cache_follows_the_disk(three, tmp_path, cache):
    """It lies in the cache folder of the user, and one that is damaged or cannot be made is left out."""
    root = tmp_path / "runs"
    shutil.copytree(three, root)
    before = contents(root)
    assert names(root, "status=finished") == ["beta1", "beta4", "beta9"]
    assert contents(root) == before, "nothing is written beside runs, which may come from somebody else"
    (root / "beta4" / "spec.toml").rename(tmp_path / "aside")
    assert names(root, "field.beta=4") == ["beta4"], "a specification is not read again where its manifest is the same"
    (tmp_path / "aside").rename(root / "beta4" / "spec.toml")
    shutil.rmtree(root / "beta1")
    Run(root / "beta4").update(status="failed")
    assert names(root, "status=finished") == ["beta9"]
    (root / "beta9" / "manifest.json").write_text("{", encoding="utf-8")
    assert names(root, "status=damaged") == ["beta9"]
    (kept,) = (cache / "attnflow" / "listings").iterdir()
    for content in (b"no JSON, " * 99, b'{"beta4": 4}', b"[" * 100_000):
        kept.write_bytes(content)
        assert names(root, "field.beta=4") == ["beta4"]
    kept.unlink()
    kept.mkdir()  # a file that cannot be made
    assert names(root, "field.beta=4") == ["beta4"]

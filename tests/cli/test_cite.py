"""`attnflow cite` prints BibTeX of what an experiment or a run used."""

import json

import pytest

from attnflow import references, runs
from tests.cli.commands import attnflow


def keys(text):
    return [entry.key for entry in references.parse(text)]


@pytest.fixture
def run(tmp_path):
    changes = ["field.mask.name=causal", 'field.normaliser={ name = "unnormalised" }']
    with runs.Run.creating(tmp_path / "runs" / "one", runs.load_spec("metastability", changes)) as run:
        return run


def test_an_experiment(tmp_path):
    out = attnflow("cite", "layer-norms", cwd=tmp_path, check=0).stdout
    assert "karagodin2025normalization" in keys(out)
    assert keys(out)[-1] == "attnflow"
    found = json.loads(attnflow("cite", "layer-norms", "--json", cwd=tmp_path, check=0).stdout)
    assert found["bibtex"] == out
    assert found["papers"][0]["url"] == "https://arxiv.org/abs/2510.22026"
    assert found["software"][0]["version"]


def test_a_run(run, tmp_path):
    out = attnflow("cite", "runs/one", cwd=tmp_path, check=0).stdout
    papers = ["vaswani2017attention", "geshkovski2025perspective", "karagodin2024causal", "geshkovski2024metastability"]
    assert set(papers) < set(keys(out))
    assert "% for: mask causal\n@inproceedings{karagodin2024causal," in out
    versions = run.manifest()["versions"]
    software = {e.key: e.fields["version"] for e in references.parse(out) if e.is_software}
    assert software == {name: version for name, version in versions.items() if name not in ("python", "jaxlib")}
    found = json.loads(attnflow("cite", "runs/one", "--json", cwd=tmp_path, check=0).stdout)
    assert {row["key"]: row["for"] for row in found["papers"]}["karagodin2024causal"] == ["mask causal"]
    assert found["unknown"] == []


def test_refusals_are_one_sentence(run, tmp_path):
    done = attnflow("cite", "stairs", cwd=tmp_path, check=2)
    assert "there is no experiment 'stairs'; did you mean 'staircase'?" in done.stderr
    done = attnflow("cite", "runs", cwd=tmp_path, check=6)
    assert "'runs' is not a run folder" in done.stderr
    (run.path / "spec.toml").write_text("x = [")
    done = attnflow("cite", "runs/one", cwd=tmp_path, check=5)
    assert "spec.toml of 'runs/one' cannot be read" in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Example: attnflow cite staircase" in attnflow("cite", "--help", cwd=tmp_path, check=0).stdout

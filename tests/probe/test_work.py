"""Comparisons as work: what is refused, what a report shows, and the command."""

import dataclasses
import json

import numpy as np
import pytest

import attnflow as af
from attnflow import runs
from attnflow.errors import InvalidInput
from attnflow.probe.networks import random_network
from tests.cli.test_cli import attnflow
from tests.probe.flow_network import FlowNetwork

TEXT = "to be or not to be, that is the question"
OPTIONS = ["--no-figures", "--shuffles", "1", "--nulls", "init", "--longest", "32"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run of two texts, and one more that was added; its closing JSON."""
    where = tmp_path_factory.mktemp("probe")
    (where / "two.txt").write_text(f"{TEXT}\n\nwhether it is nobler in the mind to suffer\n")
    (where / "three.txt").write_text("the slings and arrows of outrageous fortune")
    one = called(
        [
            "probe",
            "run",
            "random-bert",
            "--text",
            where / "two.txt",
            "--by",
            "paragraph",
            *OPTIONS,
            "--out",
            where / "run",
        ]
    )
    assert one["frames"] == 2
    return where / "run", called(["probe", "extend", where / "run", "--text", where / "three.txt"])


def called(arguments):
    return json.loads(attnflow(*map(str, arguments), "--json", cwd=".", check=0).stdout)


def refused(folder, *arguments):
    """Return what the command line says of a mistake, on one line."""
    done = attnflow("probe", *map(str, arguments), cwd=folder)
    assert done.returncode
    return " ".join(done.stderr.split())


@pytest.mark.long
def test_a_run_goes_on_with_more_texts_as_one_run_of_all(folder):
    path, said = folder
    assert said["summary"]["texts"] == 3
    assert said["steps"] == {"forward_passes": 9}
    found = runs.open_run(path)
    assert found.dataset.sizes["text"] == 3
    texts = [TEXT, "whether it is nobler in the mind to suffer", "the slings and arrows of outrageous fortune"]
    whole = af.probe.compare("random-bert", texts, nulls=["init"], shuffles=1, longest=32)
    for name in ("overlap", "beta", "alignment", "energy", "ode_r2", "cluster", "word"):
        np.testing.assert_array_equal(found.dataset[name].values, whole.dataset[name].values, err_msg=name)
    assert str(found) == str(whole)


@pytest.mark.long
def test_the_report_shows_nulls_figures_and_words(folder):
    path, said = folder
    page = (path / "report.html").read_text()
    for words in (
        "<th>shuffled tokens</th><th>init</th><th>iid tokens</th><th>equiangular</th>",
        "Clusters and their words",
        "R² of one ODE",
    ):
        assert words in page
    assert {one.stem for one in (path / "figures").glob("*.pdf")} == {
        "summary",
        "overlap",
        "beta",
        "alignment",
        "sinks",
        "clusters",
    }
    assert "init" in said["summary"]["overlap at state 4"]  # no number without its null, here neither


def test_clusters_have_their_words():
    """At state 0 of a decoder equal tokens coincide."""
    net = random_network("llama", layers=1, heads=2, width=8, seed=1)
    found = af.probe.compare(net, [np.array([65, 66, 66, 67, 66])], nulls=(), shuffles=1, families=["clusters"])
    assert found.words(0) == ("A", "B", "B", "C", "B")
    first = found.clusters(0, 0)
    assert ["B", "B", "B"] in first
    assert sorted(len(one) for one in first) == [1, 3]  # A is first, hence a sink


def test_long_texts_are_cut_in_front_of_a_special_token():
    net = random_network("bert", layers=1, heads=2, width=8, seed=1)
    ids = np.arange(40)
    work = af.probe.Compare(net, [ids], nulls=(), shuffles=1, longest=10, families=["norms"])
    assert work.stepper().ids[0].tolist() == list(range(10))
    ended = dataclasses.replace(work, special=(0, -1))
    assert ended.stepper().ids[0].tolist() == [*range(9), 39]


@pytest.mark.slow
def test_refusals(tmp_path):
    for texts, words in (
        ([], "`texts` is"),
        ("a text", "`texts` is"),
        (["  "], r"texts\[0\] is empty"),
        (["a"], "has 1 tokens"),
    ):
        with pytest.raises(InvalidInput, match=words):
            af.probe.compare("random-bert", texts)
    with pytest.raises(InvalidInput, match="give them: attnflow probe extend"):
        af.probe.Compare("random-bert", [TEXT]).longer(3)
    with pytest.raises(InvalidInput, match="but flow reads ids"):
        af.probe.compare(FlowNetwork(), ["a text"])
    empty = tmp_path / "empty.txt"
    empty.write_text(" \n")
    latin = tmp_path / "latin.txt"
    latin.write_bytes(b"caf\xe9")
    wide = tmp_path / "wide.txt"
    wide.write_bytes(TEXT.encode("utf-16-le"))
    for arguments, words in (
        ([], "`--text` is missing"),
        (["--text", empty], "is empty"),
        (["--text", latin], "is not text in UTF-8"),
        (["--text", tmp_path / "none.txt"], "cannot read"),
        (["--text", wide], "has bytes that are 0"),
    ):
        assert words in refused(tmp_path, "run", "random-bert", *arguments)
    text = str(tmp_path / "text.txt")
    (tmp_path / "text.txt").write_text(TEXT)
    said = refused(tmp_path, "run", "gpt-9", "--text", text, "--out", "x")
    assert "neither a file nor one of the networks" in said
    assert not (tmp_path / "x").exists()
    spec = runs.parse_spec(
        '[solve]\nuntil = 1.0\n[field]\nname = "attention"\nbeta = 1.0\n[tokens]\nname = "uniform"\nspace = { name = "sphere", dim = 2 }\nn = 3\n'
    )
    runs.execute(spec, tmp_path / "flow")
    assert "not a probe" in refused(tmp_path, "extend", "flow", "--text", text)

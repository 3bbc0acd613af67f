"""Folders and files that attnflow at 4bf48d24 wrote (`write.py`): this version opens, verifies, resumes and extends them.

Killed runs end where the finished ones did, and extended ones where the extended ones did. Another machine, another
version of JAX, and the suite itself (which compiles without optimisation) round differently: 1e-16 per operation, amplified
by at most e^{(1 + β) t} < 1e9 along these flows and by some 60 steps of a classifier; networks of `probe` compute in
float32, 1e-7 per operation, and ratios of small numbers are taken of what they give.
"""

import json
import shutil
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InvalidInput, RunError
from tests.kept import write
from tests.marks import graded
from tests.runs.kinds import KINDS, LATER

ARCHIVE = Path(__file__).with_name("4bf48d24.tar.xz")
TOLERANCE = {"probe": 1e-4}
OTHERWISE = 1e-6
"""Of the largest value of a variable, or of 1."""
SAME_BYTECODE = sys.version_info[:2] == (3, 11)
"""The archive was written by Python 3.11; functions of users are known by their code."""


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """The archive, unpacked once; tests that write work on copies."""
    folder = tmp_path_factory.mktemp("kept")
    with tarfile.open(ARCHIVE) as tar:
        tar.extractall(folder, filter="data")
    return folder


@pytest.fixture
def copied(archive, tmp_path):
    """A function that copies a kept folder to where a test may change it."""

    def copy(name):
        return Path(shutil.copytree(archive / name, tmp_path / "copy"))

    return copy


def assert_close(dataset, expected, tolerance=OTHERWISE):
    """The same variables with the same dimensions; numbers agree to `tolerance`, everything else is equal."""
    assert set(dataset.variables) == set(expected.variables)
    for name, variable in expected.variables.items():
        values, reference = dataset[name].values, variable.values
        assert dataset[name].dims == variable.dims, name
        assert values.shape == reference.shape, name
        if reference.dtype.kind == "f":
            scale = np.abs(reference[np.isfinite(reference)]).max(initial=1.0)
            np.testing.assert_allclose(values, reference, rtol=0, atol=tolerance * scale, err_msg=name)
        elif name != "evaluations":  # a step that one rounding accepts and another rejects changes their number
            np.testing.assert_array_equal(values, reference, err_msg=name)


def opened(path):
    """The dataset of a finished run, after its files were compared with their checksums."""
    run = af.runs.Run.open(path)
    assert run.manifest()["status"] == "finished"
    run.verify()
    return af.open_run(path).dataset.load()


def all_or_slow(kinds):
    """All kinds, of which `make test` takes the first."""
    return [kind if kind == kinds[0] else pytest.param(kind, marks=pytest.mark.slow) for kind in kinds]


@graded("kind", KINDS)
def test_finished_and_extended_runs_open_and_verify(archive, kind):
    states = ["finished", "extended"] if kind in LATER else ["finished"]
    rows = [opened(archive / "runs" / kind / state).sizes for state in states]
    if kind in LATER:
        assert max(rows[1].values()) >= max(rows[0].values())


@graded("kind", all_or_slow(KINDS))
def test_killed_runs_resume(archive, copied, kind):
    path = copied(f"runs/{kind}/killed")
    af.runs.resume(path)
    assert_close(opened(path), opened(archive / "runs" / kind / "finished"), TOLERANCE.get(kind, OTHERWISE))


@graded("kind", all_or_slow([kind for kind in KINDS if kind in LATER]), fast=1)
def test_finished_runs_extend(archive, copied, kind):
    path = copied(f"runs/{kind}/finished")
    af.runs.extend(path, LATER[kind])
    assert_close(opened(path), opened(archive / "runs" / kind / "extended"), TOLERANCE.get(kind, OTHERWISE))


@pytest.mark.parametrize(
    ("state", "expected"), [("killed-before-first-checkpoint", "finished"), ("killed-while-extending", "extended")]
)
def test_runs_killed_at_the_borders_of_their_work_resume(archive, copied, state, expected):
    path = copied(f"runs/solve/{state}")
    af.runs.resume(path)
    assert_close(opened(path), opened(archive / "runs" / "solve" / expected))


@pytest.mark.slow
def test_a_run_with_a_plugin_resumes_only_with_it(archive, copied):
    path, plugin = copied("runs/plugin"), archive / "specifications" / "neighbours.py"
    assert opened(path)["height"].dims == ("time",)
    with pytest.raises(RunError, match=r"neighbours\.py"):
        af.runs.extend(path, 6.0)
    af.runs.extend(path, 6.0, plugins=[plugin])
    dataset = opened(path)
    assert dataset["time"].values[-1] == 6.0
    assert dataset["height"].shape == dataset["time"].shape


def test_a_run_with_figures_and_a_report_verifies(archive):
    path = archive / "runs" / "reported"
    opened(path)
    assert (path / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.slow
def test_work_made_in_python_is_found_and_resumed(archive, tmp_path):
    for name in ("python", "python-killed"):
        shutil.copytree(archive / name, tmp_path / name)
    work = write.made_in_python()
    finished, flow = af.runs.ensure(work, tmp_path / "python")
    resumed, same_flow = af.runs.ensure(work, tmp_path / "python-killed")
    assert [path.name for path in (tmp_path / "python").iterdir()] == [finished.path.name] == [resumed.path.name]
    assert_close(same_flow.dataset.load(), flow.dataset.load())


@pytest.mark.parametrize("source", ["specification", "function"])
def test_half_done_sweeps_end_as_finished_ones(archive, copied, source):
    path = copied(f"sweeps/{source}-half")
    finished = af.open_sweep(archive / "sweeps" / f"{source}-finished")
    assert finished.dataset["done"].all()
    if source == "specification":
        file, axes = archive / "specifications" / "swept.toml", {"field.beta": [1.0, 4.0, 9.0], "tokens.seed": range(4)}
        sweep = af.sweep(file, axes, path, width=2)
    elif SAME_BYTECODE:
        sweep = af.sweep(write.order, {"beta": [1.0, 4.0], "seed": range(4)}, path)
    else:
        with pytest.raises((InvalidInput, RunError)):
            af.sweep(write.order, {"beta": [1.0, 4.0], "seed": range(4)}, path)
        return
    assert_close(sweep.dataset.load(), finished.dataset.load())


@pytest.mark.long
def test_clustered_tokens_keep_their_number(tmp_path):
    """Up to this version `n = 6` around three centres were 18 tokens; runs stay what they are, sweeps say what to do."""
    with tarfile.open(ARCHIVE.with_name("clustered.tar.xz")) as tar:
        tar.extractall(tmp_path, filter="data")
    finished, killed = tmp_path / "clustered" / "finished", tmp_path / "clustered" / "killed"
    before = opened(finished)
    assert before.sizes["token"] == 18
    af.runs.resume(killed)
    assert_close(opened(killed), before)
    af.runs.extend(finished, 6.0)
    after = opened(finished)
    assert (after.sizes["token"], after["time"].values[-1]) == (18, 6.0)
    np.testing.assert_allclose(after["positions"][: before.sizes["time"]], before["positions"], rtol=0, atol=OTHERWISE)

    specification, axes, sweep = tmp_path / "clustered" / "specification.toml", {"tokens.seed": [0]}, tmp_path / "sweep"
    af.sweep(specification, axes, sweep)
    plan = json.loads((sweep / "sweep.json").read_text(encoding="utf-8"))
    del plan["digest"]  # that version wrote none
    (sweep / "sweep.json").write_text(json.dumps(plan | {"format": 1}), encoding="utf-8")
    assert af.open_sweep(sweep).dataset["done"].all()
    with pytest.raises(RunError, match="counted those of each centre; its results can be read, and new points need"):
        af.sweep(specification, axes, sweep)


@pytest.mark.slow
def test_a_finished_sweep_is_extended(archive, copied):
    path, file = copied("sweeps/specification-finished"), archive / "specifications" / "swept.toml"
    sweep = af.sweep(file, {"field.beta": [1.0, 4.0, 9.0], "tokens.seed": range(5)}, path, width=2)
    assert sweep.dataset["done"].all()
    former = af.open_sweep(archive / "sweeps" / "specification-finished").dataset.load()
    assert_close(sweep.dataset.load().sel({"tokens.seed": range(4)}), former)


@pytest.mark.parametrize("name", ["own-finished", "two-clusters"])
def test_finished_experiments_open_with_their_claims(archive, name):
    run = af.runs.Run.open(archive / "experiments" / name)
    run.verify()
    claims = json.loads((run.path / "claims.json").read_text(encoding="utf-8"))
    _, read = af.experiments.resume(run.path, plugins=[archive / "specifications" / "normal_means.py"][: "own" in name])
    assert [claim.holds for claim in read] == [True] * len(claims)


def test_a_killed_experiment_resumes(archive, copied):
    path = copied("experiments/own-killed")
    run, claims = af.experiments.resume(path, plugins=[archive / "specifications" / "normal_means.py"])
    run.verify()
    finished = json.loads((archive / "experiments" / "own-finished" / "claims.json").read_text(encoding="utf-8"))
    assert json.loads((path / "claims.json").read_text(encoding="utf-8")) == finished
    assert all(claim.holds for claim in claims)


@pytest.mark.parametrize("name", ["stream.npz", "stream.safetensors"])
def test_streams_open(archive, name):
    stream = af.probe.open_stream(archive / "streams" / name)
    assert (stream.name, stream.lengths, stream.layers, stream.heads, stream.width) == ("kept", (5, 4), 2, 2, 4)
    assert stream.labels[1][0] == f"word{stream.ids[1][0]}"
    expected = np.random.default_rng(0).standard_normal((3, 5, 4)).astype(np.float32)
    np.testing.assert_array_equal(stream.hidden[0], expected)


CERTIFICATES = ["plateau", "unstable-modes", "dominant-degree", "circle-modes", "circle-consensus", "consensus", "flow"]
STUDIES = ["cube", "dodecahedron", "branch", "circle-5"]
HOURS = ["circle-3", "circle-4", "circle-6"]


@graded(
    "name",
    [
        *CERTIFICATES,
        *(pytest.param(name, marks=pytest.mark.slow) for name in STUDIES),
        *(pytest.param(name, marks=pytest.mark.long) for name in HOURS),
    ],
    fast=5,
    slow=10,
)
def test_certificates_are_confirmed(archive, name):
    path = archive / "certificates" / f"{name}.json"
    assert af.certify.check(af.certify.Certificate.load(path)).confirmed


def test_no_kept_certificate_is_left_out(archive):
    assert {path.stem for path in (archive / "certificates").iterdir()} == {*CERTIFICATES, *STUDIES, *HOURS}

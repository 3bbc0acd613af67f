"""An experiment in its folder: what it leaves, what it survives, what it refuses."""

import json
import os
import signal
import subprocess
import sys

import pytest

from attnflow import runs
from attnflow.errors import InvalidInput, RunCorrupted, RunError, RunExists, RunLocked
from attnflow.experiments import find, open_part, read_claims, reproduce, resume
from attnflow.runs import Run
from tests.experiments.tiny import BARE, command, dying
from tests.marks import graded


def results(path):
    """Everything that must come out bit for bit."""
    files = [*sorted((path / "parts").iterdir()), path / "claims.json", path / "spec.toml", *path.glob("figures/*")]
    return {str(file.relative_to(path)): file.read_bytes() for file in files}


def test_a_folder_holds_everything(log, tmp_path):
    seen = []
    run, claims = reproduce("tiny-mean", tmp_path / "run", quick=True, on_progress=seen.append)
    assert [claim.holds for claim in claims] == [True, True]
    assert set(results(run.path)) == {
        "parts/a.npz", "parts/b.npz", "parts/c.npz", "claims.json", "spec.toml", "figures/tiny-mean.pdf",
        "figures/tiny-mean.png",
    }  # fmt: skip
    manifest = run.manifest()
    assert manifest["status"] == "finished"
    assert manifest["experiment"] == manifest["name"] == "tiny-mean"
    assert manifest["quick"] is True
    assert manifest["seed"] == 3
    assert manifest["summary"] == {"claims": 2, "failed": 0}
    assert manifest["versions"]["jax"]
    Run.open(run.path).verify()
    assert read_claims(run) == claims
    page = run.report.read_text()
    assert page.index("<figure>") < page.index("<h2>Claims</h2>")
    for words in (
        "The mean of a few numbers is what it is.",
        "five standard errors",
        "holds",
        "size = 100",
        "numpy",
        "a &lt; b",
    ):
        assert words in page
    assert "<script" not in page
    assert (seen[-1].time, seen[-1].until) == (1.0, 1.0)
    assert [at.time for at in seen] == sorted(at.time for at in seen)
    assert open_part(run.path / "parts" / "b.npz").attrs["name"] == "b"


def test_parameters_of_ones_own(log, tmp_path):
    maker = find("tiny-mean").module().Parameters
    run, claims = reproduce("tiny-mean", tmp_path / "run", parameters=maker(size=50, shift=3.0))
    assert not claims[0].holds
    assert claims[1].holds
    assert run.manifest()["summary"] == {"claims": 2, "failed": 1}
    assert "1 of 2 claims fail" in run.report.read_text()
    with pytest.raises(InvalidInput, match="Parameters of the experiment"):
        reproduce("tiny-mean", tmp_path / "other", parameters=3)
    with pytest.raises(InvalidInput, match="not quick=True"):
        reproduce("tiny-mean", tmp_path / "other", parameters=maker(), quick=True)
    assert not (tmp_path / "other").exists()


@pytest.mark.long
def test_kill_minus_nine_between_parts(log, tmp_path):
    whole, _ = reproduce("tiny-mean", tmp_path / "whole")
    log.write_text("")
    code = command(
        log.parent, f"from attnflow.experiments import reproduce; reproduce('tiny-mean', {str(tmp_path / 'run')!r})"
    )
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | {"TINY": "kill"})
    assert done.returncode == -signal.SIGKILL
    assert log.read_text() == "abc"
    assert sorted(f.name for f in (tmp_path / "run" / "parts").iterdir()) == [".c.claim", "a.npz", "b.npz"]
    assert Run.open(tmp_path / "run").manifest()["status"] == "running"
    (tmp_path / "run" / "parts" / "c.npz.tmp").write_bytes(b"half a file")
    resume(tmp_path / "run")
    assert log.read_text() == "abcc", "parts that were there are not made again"
    assert results(tmp_path / "run") == results(whole.path)
    Run.open(tmp_path / "run").verify()


@graded("way", ["swallow", "stumble"])
def test_an_interruption_that_a_flow_swallows_is_not_lost(way, log, tmp_path):
    """What was cut short must not be stored as if it were whole, nor taken for a failure of the experiment."""
    before = signal.getsignal(signal.SIGINT)
    with dying(way), pytest.raises(KeyboardInterrupt):
        reproduce("tiny-mean", tmp_path / "run")
    assert signal.getsignal(signal.SIGINT) is before
    assert Run.open(tmp_path / "run").manifest()["status"] == "interrupted"
    assert not (tmp_path / "run" / "parts" / "c.npz").exists()
    resume(tmp_path / "run")
    whole, _ = reproduce("tiny-mean", tmp_path / "whole")
    assert results(tmp_path / "run") == results(whole.path)


def test_a_failure_is_recorded_and_can_be_mended(log, tmp_path):
    with dying("break"), pytest.raises(ZeroDivisionError):
        reproduce("tiny-mean", tmp_path / "run")
    manifest = Run.open(tmp_path / "run").manifest()
    assert manifest["status"] == "failed"
    assert manifest["message"] == "ZeroDivisionError: broken"
    assert read_claims(Run.open(tmp_path / "run")) == []
    run, _ = resume(tmp_path / "run")
    assert run.manifest()["status"] == "finished"
    assert run.manifest()["message"] is None


def test_a_finished_experiment_is_only_opened(log, tmp_path):
    run, claims = reproduce("tiny-mean", tmp_path / "run", quick=True)
    before = (run.path / "manifest.json").stat().st_mtime_ns
    assert resume(run.path)[1] == claims
    assert log.read_text() == "abc"
    assert (run.path / "manifest.json").stat().st_mtime_ns == before
    with pytest.raises(RunExists):
        reproduce("tiny-mean", run.path)
    with pytest.raises(RunError, match="holds the experiment 'tiny-mean', not a flow"):
        runs.resume(run.path)
    (run.path / "claims.json").write_text("[{}]")
    with pytest.raises(RunCorrupted, match=r"claims\.json"):
        resume(run.path)


def test_flows_and_changed_or_locked_folders_are_refused(log, tmp_path):
    with dying("break"), pytest.raises(ZeroDivisionError):
        reproduce("tiny-mean", tmp_path / "run")
    with Run(tmp_path / "run").lock(), pytest.raises(RunLocked):
        resume(tmp_path / "run")
    text = (tmp_path / "run" / "spec.toml").read_text()
    (tmp_path / "run" / "spec.toml").write_text(text.replace("size = 1000", "size = 999"))
    with pytest.raises(RunCorrupted, match="changed after the run began"):
        resume(tmp_path / "run")
    (tmp_path / "run" / "spec.toml").write_text(text[:20])
    with pytest.raises(RunCorrupted, match="cannot be read"):
        resume(tmp_path / "run")
    (tmp_path / "flow").mkdir()
    (tmp_path / "flow" / "manifest.json").write_text(json.dumps(BARE | {"status": "finished"}))
    with pytest.raises(RunError, match="holds a flow"):
        resume(tmp_path / "flow")

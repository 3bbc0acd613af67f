"""Run folders: what they hold, what they survive, what they refuse."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import jax
import numpy as np
import pytest
import xarray as xr

from attnflow.errors import FlowFailed, RunCorrupted, RunError, RunExists, RunLocked
from attnflow.flows import Adaptive
from attnflow.runs import Run, execute, list_runs, open_run, parse_spec, resume, spec_of
from tests.marks import graded
from tests.runs.failing import Stop, is_checkpoint, stopping_after, writes_failing

TEXT = """
name = "small"
[tokens]
name = "uniform"
n = 12
seed = [0, 1]
space = { name = "sphere", dim = 3 }
[field]
name = "attention"
beta = 4.0
[solve]
until = 4.0
chunk = 8
save = { name = "evenly", count = 40 }
"""


def arrays(path):
    with xr.open_zarr(path / "arrays.zarr", chunks=None, consolidated=False) as data:
        return data.load()


def identical(a, b):
    for name in b.variables:
        np.testing.assert_array_equal(a[name].values, b[name].values, err_msg=name)
    assert set(a.variables) == set(b.variables)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "whole"
    execute(parse_spec(TEXT), path)
    return path


def test_a_folder_holds_everything(whole):
    run = Run.open(whole)
    manifest = run.manifest()
    assert manifest["status"] == "finished"
    assert manifest["frames"] == 41
    assert manifest["dtype"] == "float64"
    assert manifest["seed"] == [0, 1]
    assert manifest["versions"]["jax"]
    assert manifest["device"].startswith(jax.default_backend())
    assert manifest["peak_memory"] > 2**20
    assert manifest["wall_time"] > 0
    assert manifest["spec_hash"] == spec_of(run).hash
    run.verify()
    data = arrays(whole)
    assert data["positions"].dims == ("seed", "time", "token", "dim")
    assert data.attrs["outcome"] == "finished"
    assert (whole / "checkpoint").exists()  # to be extended


def test_streamed_arrays_equal_the_library(whole):
    import attnflow as af

    flow = af.solve(
        af.Attention(4.0),
        af.uniform(af.Sphere(3), n=12, seed=[0, 1]),
        4.0,
        save=af.saving.Evenly(40),
        chunk=8,
        method=Adaptive(),
    )
    identical(arrays(whole), flow.dataset)


@graded("chunks", [1, 2, 5, 0.5, 1.5], fast=1)
def test_a_run_that_died_resumes_bit_for_bit(chunks, whole, tmp_path):
    with stopping_after(chunks), pytest.raises(Stop):
        execute(parse_spec(TEXT), tmp_path / "run")
    assert Run.open(tmp_path / "run").manifest()["status"] != "finished"
    resume(tmp_path / "run")
    identical(arrays(tmp_path / "run"), arrays(whole))
    Run.open(tmp_path / "run").verify()


def test_ctrl_c_then_resume(whole, tmp_path):
    with stopping_after(2, KeyboardInterrupt):
        _, flow = execute(parse_spec(TEXT), tmp_path / "run")
    assert flow.outcome.ending.value == "interrupted"
    assert Run.open(tmp_path / "run").manifest()["status"] == "interrupted"
    resume(tmp_path / "run")
    identical(arrays(tmp_path / "run"), arrays(whole))


@pytest.mark.slow
def test_a_stop_condition_survives_resumption(tmp_path):
    text = TEXT.replace("seed = [0, 1]", "seed = 0") + 'stop = [{ name = "still", speed = 0.2 }]\n'
    execute(parse_spec(text), tmp_path / "whole")
    frames = arrays(tmp_path / "whole").sizes["time"]
    assert frames < 41
    with stopping_after((frames + 7) // 8), pytest.raises(Stop):  # dies between the last commit and the end
        execute(parse_spec(text), tmp_path / "run")
    _, flow = resume(tmp_path / "run")
    assert flow.outcome.ending.value == "stopped"
    identical(arrays(tmp_path / "run"), arrays(tmp_path / "whole"))


SCRIPT = """
import sys
from attnflow.runs import execute, parse_spec
execute(parse_spec(open(sys.argv[1]).read()), sys.argv[2])
"""


def test_kill_minus_nine(tmp_path):
    """A run that a real process was carrying out when it was killed ends with the same arrays."""
    text = TEXT.replace("until = 4.0", "until = 30.0").replace("count = 40", "count = 75")
    text += 'method = { name = "fixed", step = 0.002 }\n'
    (tmp_path / "spec.toml").write_text(text)
    execute(parse_spec(text), tmp_path / "whole")
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(tmp_path / "spec.toml"), str(tmp_path / "run")])
    checkpoint = tmp_path / "run" / "checkpoint"
    for _ in range(6000):
        if checkpoint.exists():
            break
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGSTOP)  # its end does not come before that of this test
    with pytest.raises(RunLocked, match="another process"):
        resume(tmp_path / "run")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert Run.open(tmp_path / "run").manifest()["status"] == "running"
    resume(tmp_path / "run")
    if jax.default_backend() == "cpu":
        identical(arrays(tmp_path / "run"), arrays(tmp_path / "whole"))
    else:  # kernels are tuned afresh in every process, so that two of them may round otherwise (docs/runs.md)
        run, whole = arrays(tmp_path / "run"), arrays(tmp_path / "whole")
        np.testing.assert_allclose(run["positions"].values, whole["positions"].values, atol=1e-9)


def test_an_existing_folder_is_refused_and_untouched(whole):
    before = (whole / "manifest.json").read_text()
    with pytest.raises(RunExists, match="attnflow resume"):
        execute(parse_spec(TEXT), whole)
    assert (whole / "manifest.json").read_text() == before


def test_a_finished_run_is_only_opened(whole):
    before = (whole / "manifest.json").stat().st_mtime_ns
    _, flow = resume(whole)
    assert flow.positions.sizes["time"] == 41
    assert (whole / "manifest.json").stat().st_mtime_ns == before


def test_an_unwritable_place_is_refused_before_work(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot write"):
        execute(parse_spec(TEXT), tmp_path / "file" / "run")


def test_too_small_a_disk_is_refused_before_work(tmp_path, faults):
    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    faults.replace("space on a disk", lambda path: usage)
    with pytest.raises(RunError, match="1 kB free"):
        execute(parse_spec(TEXT), tmp_path / "run")


def test_a_disk_that_fills_up_loses_nothing(whole, tmp_path):
    full = OSError(errno.ENOSPC, "No space left on device")
    with (
        writes_failing(full, is_checkpoint, call=3),
        pytest.raises(RunError, match="No space left on device.*intact"),
    ):
        execute(parse_spec(TEXT), tmp_path / "run")
    assert Run.open(tmp_path / "run").manifest()["status"] == "failed"
    resume(tmp_path / "run")
    identical(arrays(tmp_path / "run"), arrays(whole))


def unfinished(path):
    with stopping_after(3), pytest.raises(Stop):
        execute(parse_spec(TEXT), path)


def some_chunk(path):
    return next(f for f in sorted((path / "arrays.zarr" / "positions" / "c").rglob("*")) if f.is_file())


@pytest.mark.parametrize("harm", ["checkpoint", "arrays", "metadata", "spec", "manifest"])
def test_damage_to_an_unfinished_run_is_noticed(harm, tmp_path):
    path = tmp_path / "run"
    unfinished(path)
    victim = {
        "checkpoint": path / "checkpoint",
        "arrays": some_chunk(path),
        "metadata": path / "arrays.zarr" / "positions" / "zarr.json",
        "spec": path / "spec.toml",
        "manifest": path / "manifest.json",
    }[harm]
    victim.write_bytes(victim.read_bytes()[: victim.stat().st_size // 2])
    with pytest.raises(RunCorrupted) as caught:
        resume(path)
    assert len(str(caught.value)) < 800


def test_a_changed_spec_is_noticed(tmp_path):
    path = tmp_path / "run"
    unfinished(path)
    text = (path / "spec.toml").read_text()
    (path / "spec.toml").write_text(text.replace("beta = 4.0", "beta = 5.0"))
    with pytest.raises(RunCorrupted, match="changed after the run began"):
        resume(path)


@pytest.mark.parametrize("harm", ["truncate", "remove"])
def test_damage_to_a_finished_run_is_noticed(harm, whole, tmp_path):
    shutil.copytree(whole, tmp_path / "run")
    victim = some_chunk(tmp_path / "run")
    if harm == "remove":
        victim.unlink()
    else:
        victim.write_bytes(victim.read_bytes()[:-1])
    with pytest.raises(RunCorrupted, match="missing" if harm == "remove" else "altered"):
        Run.open(tmp_path / "run").verify()


def test_folders_that_are_no_runs(tmp_path):
    with pytest.raises(RunError, match="not a run folder"):
        Run.open(tmp_path)
    (tmp_path / "manifest.json").write_text(json.dumps({"format": 99}))
    with pytest.raises(RunError, match="format 99"):
        Run.open(tmp_path)


def test_listing(whole):
    assert [run.path for run in list_runs(whole.parent)] == [whole]
    assert list_runs(whole.parent / "nothing") == []


def test_a_failed_flow_is_recorded(tmp_path):
    text = TEXT.replace("beta = 4.0", "beta = 700.0\nnormaliser = { name = 'unnormalised', clock = 'grad' }")
    text += 'method = { name = "fixed", step = 0.1 }\n'
    spec = parse_spec(text.replace('name = "attention"', 'name = "attention"\nquery = [[2,0,0],[0,2,0],[0,0,2]]'))
    with pytest.raises(FlowFailed, match="not finite"):
        execute(spec, tmp_path / "run")
    manifest = Run.open(tmp_path / "run").manifest()
    assert manifest["status"] == manifest["outcome"]["ending"] == "failed"
    assert "not finite" in manifest["outcome"]["message"]


LONG = """
name = "long"
[tokens]
name = "uniform"
n = 8
seed = 4
space = { name = "sphere", dim = 3 }
[field]
name = "attention"
beta = 40.0
[solve_long]
"""


@pytest.mark.slow
def test_a_flow_to_consensus_is_a_run_like_others(tmp_path):
    spec = parse_spec(LONG)

    def draw(run, flow):
        raise KeyboardInterrupt  # after the frames were committed

    with pytest.raises(KeyboardInterrupt):
        execute(spec, tmp_path / "cut", draw=draw)
    run, flow = resume(tmp_path / "cut")
    assert flow.outcome.ending.value == "stopped"
    run.verify()
    whole, again = execute(spec, tmp_path / "whole")
    xr.testing.assert_identical(arrays(tmp_path / "cut"), arrays(tmp_path / "whole"))
    loaded = open_run(whole.path)
    np.testing.assert_array_equal(loaded.merges["log_time"], again.merges["log_time"])
    np.testing.assert_array_equal(loaded.tree.linkage(), again.tree.linkage())


@pytest.mark.slow
def test_an_interrupted_flow_to_consensus_goes_on(tmp_path):
    def stop(progress):
        if progress.steps > 64:
            raise KeyboardInterrupt

    run, part = execute(parse_spec(LONG), tmp_path / "run", on_progress=stop)
    assert part.outcome.ending.value == "interrupted"
    assert run.manifest()["status"] == "interrupted"
    assert part.dataset.sizes["step"] > 64
    _, flow = resume(tmp_path / "run")
    assert flow.outcome.ending.value == "stopped"
    execute(parse_spec(LONG), tmp_path / "whole")
    xr.testing.assert_identical(arrays(tmp_path / "run"), arrays(tmp_path / "whole"))

"""Sweeps on a real cluster: a scheduler and workers as processes on loopback, some of which are killed."""

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, chdir, contextmanager, suppress
from pathlib import Path

import pytest

import attnflow as af
from attnflow.errors import InvalidInput, MissingExtra, RunError
from attnflow.experiments import open_part, read_claims
from attnflow.runs import Run
from tests.cli.commands import attnflow
from tests.faults import environment
from tests.sweeps.tasks import SHARED, SPEC, events, fatal, same, slow

ROOT = Path(__file__).parent.parent.parent


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def process(*command, cwd):
    """A process of Dask that is killed at the end, with its children."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path, "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = subprocess.Popen(
        [sys.executable, "-m", *command], cwd=cwd, env=environment, start_new_session=True, **silent
    )
    try:
        yield started
    finally:
        with_children(started, signal.SIGKILL)
        started.wait()


def with_children(started, number):
    with suppress(ProcessLookupError):
        os.killpg(started.pid, number)


def scheduler(port, cwd):
    options = ["--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]
    return process("distributed.cli.dask_scheduler", *options, cwd=cwd)


def workers(port, cwd):
    options = ["--nworkers", "2", "--nthreads", "1", "--host", "127.0.0.1", "--no-dashboard"]
    options += ["--local-directory", str(cwd), "--preload", "attnflow.sweeps.preload"]
    return process("distributed.cli.dask_worker", f"tcp://127.0.0.1:{port}", *options, cwd=cwd)


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    """A scheduler and two workers; the scheduler is replaced once while a sweep runs."""
    cwd, number = tmp_path_factory.mktemp("dask"), free_port()
    with ExitStack() as stack:
        first = stack.enter_context(scheduler(number, cwd))
        stack.enter_context(workers(number, cwd))
        number_of = {"port": number, "scheduler": first, "cwd": cwd, "stack": stack}
        yield number_of


@pytest.mark.slow
def test_a_worker_that_dies_is_replaced(port, tmp_path, faults):
    """The task that kills its process once is done again; one that always does is a row with the reason."""
    faults.replace("deaths of a worker", 2)
    mark = tmp_path / "mark"
    over = {"k": "range(6)", "marks": [str(mark), "always"]}
    sweep = af.sweep(fatal, over, tmp_path / "s", on=f"tcp://127.0.0.1:{port['port']}", workers=6)
    assert mark.exists()
    assert [point for point, _ in sweep.errors] == [{"k": 3, "marks": "always"}]
    assert "died" in sweep.errors[0][1]
    assert sweep.dataset["k"].size == 6
    assert sweep.dataset["done"].values.sum() == 11


@pytest.mark.slow
def test_workers_make_parts_of_an_experiment(port, tmp_path):
    file = tmp_path / "shared_parts.py"
    (tmp_path / "marks").mkdir()
    file.write_text(SHARED.replace("FOLDER", str(tmp_path / "marks")), encoding="utf-8")
    on = ["--on", f"tcp://127.0.0.1:{port['port']}"]
    attnflow("reproduce", str(file), *on, "--out", "run", "--json", cwd=tmp_path, check=0)
    parts = [open_part(path) for path in (tmp_path / "run" / "parts").glob("*.npz")]
    assert len({int(part["pid"]) for part in parts}) == 3, "this process and two workers"
    assert len(parts) == 12
    (claim,) = read_claims(Run.open(tmp_path / "run"))
    assert claim.holds


@pytest.mark.slow
def test_a_scheduler_that_is_replaced_loses_nothing(port, tmp_path):
    folder, over = tmp_path / "s", {"k": "range(60)", "seconds": [0.1]}

    def replace():
        while len(list((folder / "shards").glob("*.npz"))) < 5:
            time.sleep(0.05)
        with_children(port["scheduler"], signal.SIGKILL)
        port["scheduler"].wait()
        port["scheduler"] = port["stack"].enter_context(scheduler(port["port"], port["cwd"]))
        port["stack"].enter_context(workers(port["port"], port["cwd"]))

    thread = threading.Thread(target=replace)
    thread.start()
    told = []
    sweep = af.sweep(
        slow, over, folder, on=f"tcp://127.0.0.1:{port['port']}", workers=6, on_progress=lambda at: told.append(at.note)
    )
    thread.join()
    assert any("scheduler is gone" in note for note in told)
    assert sweep.status.done == 60
    assert same(sweep.dataset, af.sweep(slow, over | {"seconds": [0.1]}, tmp_path / "alone", workers=6).dataset)
    done = [event["unit"] for event in events(folder) if event["event"] == "done"]
    assert len(done) - len(set(done)) <= 2  # one for each worker that was cut off


DYING = """
import os, sys

if "--multiprocessing-fork" in getattr(sys, "orig_argv", []):
    with open({file!r}, "a") as deaths:
        deaths.write("x")
        count = deaths.tell()
    if count <= {most}:
        os.kill(os.getpid(), 9)

    def die(event, arguments):
        if event == "open" and "preload" in str(arguments[0]) and "sweeps" in str(arguments[0]):
            os.kill(os.getpid(), 9)

    if count <= {most} + {later}:
        sys.addaudithook(die)
"""


@contextmanager
def workers_dying_at_start(folder, most, later=0):
    """Processes that Python starts for others are killed: `most` before they do anything, `later` when Dask is up."""
    file = folder / "deaths"
    (folder / "dying").mkdir()
    (folder / "dying" / "sitecustomize.py").write_text(DYING.format(file=str(file), most=most, later=later))
    with environment(PYTHONPATH=f"{folder / 'dying'}:{ROOT}:{ROOT / 'src'}:{os.environ.get('PYTHONPATH', '')}"):
        yield file


def test_workers_that_always_die_at_their_start_end_the_sweep_with_one_sentence(tmp_path, caplog):
    words = "a worker died 5 times while it started, .* use fewer workers, or 'here'"
    with workers_dying_at_start(tmp_path, 1000) as deaths, pytest.raises(RunError, match=words) as error:
        af.sweep(slow, {"k": [1]}, tmp_path / "s", on="local", workers=1)
    assert error.value.__suppress_context__
    assert deaths.stat().st_size == 5
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.slow
def test_a_local_cluster_gives_the_same_bits(tmp_path):
    """Groups side by side in other processes, from the text of the specification; the first two die at their start."""
    (tmp_path / "small.toml").write_text(SPEC)
    over = {"field.beta": [1.0, 2.0, 4.0], "tokens.seed": "range(3)"}
    here = af.sweep(tmp_path / "small.toml", over, tmp_path / "here", width=4, workers=1)
    with workers_dying_at_start(tmp_path, 1, later=1) as deaths:
        there = af.sweep(tmp_path / "small.toml", over, tmp_path / "there", width=4, on="local", workers=1)
    assert deaths.stat().st_size >= 3
    assert same(here.dataset, there.dataset)
    assert (here.folder / "sweep.json").read_bytes() == (there.folder / "sweep.json").read_bytes()


SBATCH = """#!/bin/sh
# what SLURM does, on this machine: the job runs later, in a session of its own
cp "$1" "$SPOOL/job.sh"
setsid sh "$SPOOL/job.sh" > "$SPOOL/out" 2>&1 &
echo $! >> "$SPOOL/jobs"
echo "Submitted batch job $!"
"""
SCANCEL = """#!/bin/sh
kill -9 -- "-$1" 2> /dev/null
exit 0
"""


@pytest.mark.slow
def test_slurm_with_a_stand_in_for_sbatch(tmp_path):
    for name, text in (("sbatch", SBATCH), ("scancel", SCANCEL)):
        file = tmp_path / "bin" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)
    (tmp_path / "jobs.toml").write_text('[slurm]\nhost = "127.0.0.1"\nmemory = "1GB"\nqueue = "short"\n')
    paths = {
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}:{os.environ.get('PYTHONPATH', '')}",
    }
    before = signal.getsignal(signal.SIGINT)
    with chdir(tmp_path), environment(SPOOL=str(tmp_path), **paths):
        sweep = af.sweep(
            slow, {"k": "range(8)"}, tmp_path / "s", on="slurm", workers=1, configuration=tmp_path / "jobs.toml"
        )
    assert signal.getsignal(signal.SIGINT) is before, "Ctrl-C is the business of the program that sweeps"
    assert sweep.dataset["square"].values.tolist() == [float(k * k) for k in range(8)]
    script = (tmp_path / "job.sh").read_text()
    assert "#SBATCH -p short" in script
    assert "--preload attnflow.sweeps.preload" in script
    assert (tmp_path / "jobs").read_text().count("\n") == 1


def unpicklable():
    lock = threading.Lock()

    def inner(k):
        return k + lock.locked()

    return inner


@pytest.mark.long
def test_refusals_start_nothing(tmp_path, faults):
    def refused(words, kind, what=slow, **how):
        with pytest.raises(kind, match=words):
            af.sweep(what, {"k": "range(2)"}, tmp_path / "s", **how)
        assert not (tmp_path / "s").exists()

    faults.replace("seconds until a scheduler answers", 0.5)
    refused("no scheduler answers", RunError, on=f"tcp://127.0.0.1:{free_port()}")
    refused("use 'here', 'local'", InvalidInput, on="moon")
    refused("needs `configuration`", InvalidInput, on="slurm")
    refused("is for 'slurm'", InvalidInput, on="local", configuration="x.toml")
    (tmp_path / "bad.toml").write_text('memory = "1GB"\n')
    refused("names no `interface`", InvalidInput, on="slurm", configuration=tmp_path / "bad.toml")
    (tmp_path / "bad.toml").write_text("colour = 1\n")
    refused("has the key 'colour'", InvalidInput, on="slurm", configuration=tmp_path / "bad.toml")
    faults.replace("find a package", lambda name: None)
    refused("install attnflow", MissingExtra, on="local")


@pytest.mark.long
def test_a_function_that_cannot_be_sent(tmp_path):
    with pytest.raises(InvalidInput, match="cannot be sent to another process"):
        af.sweep(unpicklable(), {"k": [1]}, tmp_path / "s", on="local", workers=1)

"""Several processes make the parts of one experiment: none twice, and none is lost with a process that dies."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import xarray as xr

from attnflow.errors import RunError
from attnflow.experiments import Study, assist, open_part, reproduce

MOST = 12


def made_by(folder, who, log, gate):
    """A study of `MOST` parts; each waits until both threads have begun."""
    study = Study(folder)

    def make(k):
        log.append((who, k))
        gate.wait(30)
        return xr.Dataset({"k": float(k)})

    return study.parts({f"part{k}": (make, k) for k in range(MOST)})


def test_no_part_is_made_twice_and_both_get_all(tmp_path):
    log, found, gate = [], {}, threading.Barrier(2)
    threads = [
        threading.Thread(target=lambda who=who: found.update({who: made_by(tmp_path, who, log, gate)})) for who in "ab"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(k for _, k in log) == list(range(MOST))
    assert {who for who, _ in log} == {"a", "b"}
    for who in "ab":
        assert list(found[who]) == [f"part{k}" for k in range(MOST)]
        assert [float(part["k"]) for part in found[who].values()] == list(range(MOST))


@pytest.mark.slow
def test_the_part_of_a_process_that_died_is_made_by_another(tmp_path):
    claim = tmp_path / "parts" / ".one.claim"
    code = "import os, sys; from attnflow.experiments import Study; "
    code += "Study(sys.argv[1]).part('one', lambda: os._exit(9))"
    assert subprocess.run([sys.executable, "-c", code, str(claim.parent)]).returncode == 9
    assert claim.exists()
    part = Study(tmp_path / "parts").part("one", lambda: xr.Dataset({"x": 1.0}))
    assert float(part["x"]) == 1.0
    assert [path.name for path in claim.parent.iterdir()] == ["one.npz"]


def test_what_is_being_made_is_waited_for(tmp_path):
    is_begun, is_waited_for, notes = threading.Event(), threading.Event(), []

    def make():
        is_begun.set()
        assert is_waited_for.wait(30)
        return xr.Dataset({"x": 2.0})

    def hear(progress):
        notes.append(progress.note)
        is_waited_for.set()

    with ThreadPoolExecutor(1) as executor:
        first = executor.submit(Study(tmp_path).part, "one", make)
        assert is_begun.wait(30)
        part = Study(tmp_path, hear).part("one", lambda: pytest.fail("made twice"))
    assert part.identical(first.result())
    assert all("another process" in note for note in notes)


def test_assisting_an_experiment_makes_its_parts(mine, tmp_path):
    run, _ = reproduce(mine, tmp_path / "run")
    before = {path.name: open_part(path) for path in (run.path / "parts").glob("*.npz")}
    assert before
    assist(run.path, plugins=[mine])  # finished: nothing to do
    for name in before:
        (run.path / "parts" / name).unlink()
    run.update(status="interrupted")
    assist(run.path, plugins=[mine])
    for name, part in before.items():
        again = open_part(run.path / "parts" / name)
        assert all(np.array_equal(part[key], again[key]) for key in part.variables)
    with pytest.raises(RunError, match="plugin"):
        assist(run.path)

"""What survives the death of the process at any moment, for every kind of run."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time

import jax
import pytest

from attnflow.runs import Run, execute, extend, resume
from tests.marks import graded
from tests.runs import boundaries as boundaries_module
from tests.runs.boundaries import boundaries, remains, some
from tests.runs.failing import carried_on
from tests.runs.kinds import KINDS, LATER, TEXTS, arrays, is_the_run, of, same

# Death at every boundary: between any two changes to the file system, what is on disk is copied, and each copy is what
# a death at that moment leaves; of kinds that take long, some of them. A few real deaths at boundaries confirm it below.


@graded("kind", KINDS, slow=1)
def test_a_run_that_died_at_any_boundary_resumes_bit_for_bit(kind, uninterrupted, tmp_path):
    copy, found = remains(tmp_path / "run", tmp_path / "left", halves=kind == "merge_times")
    with boundaries(tmp_path / "run", copy) as count:
        execute(of(kind), tmp_path / "run")
    is_the_run(tmp_path / "run", uninterrupted(kind))
    print(f"{kind}: {count[0]} boundaries, {len(found)} states")
    assert len(found) > 50
    for k, path in some(found, kind):
        carried_on(path, kind)
        try:
            is_the_run(path, uninterrupted(kind))
        except Exception as error:
            raise AssertionError(f"{kind}, death at boundary {k}") from error
        shutil.rmtree(path)


@graded("kind", LATER, slow=1)
def test_an_extension_that_died_at_any_boundary_is_finished_or_not_begun(kind, uninterrupted, tmp_path):
    shutil.copytree(uninterrupted(kind), tmp_path / "run")
    copy, found = remains(tmp_path / "run", tmp_path / "left")
    with boundaries(tmp_path / "run", copy) as count:
        extend(tmp_path / "run", LATER[kind])
    whole = uninterrupted(kind, longer=True)
    is_the_run(tmp_path / "run", whole)
    print(f"{kind}: {count[0]} boundaries, {len(found)} states")
    untouched = 0
    for k, path in some(found, kind):
        try:
            if Run.open(path).manifest()["status"] == "finished":
                untouched += 1
                resume(path)  # only opens it
                Run.open(path).verify()
                same(arrays(path), arrays(uninterrupted(kind)))
                extend(path, LATER[kind])
            else:
                resume(path)
            is_the_run(path, whole)
        except Exception as error:
            raise AssertionError(f"{kind}, death at boundary {k} of the extension") from error
        shutil.rmtree(path)
    assert 0 < untouched < 6  # the first change of the manifest decides


@graded("kind", KINDS, slow=1)
def test_a_resumption_that_died_at_any_boundary_resumes(kind, uninterrupted, tmp_path):
    copy, found = remains(tmp_path / "run", tmp_path / "left")
    with boundaries(tmp_path / "run", copy):
        execute(of(kind), tmp_path / "run")
    states = [path for path in found.values() if (path / "checkpoint").exists()]
    for number, part in enumerate((0.3, 0.98)):  # within the work, and at its end
        begun = states[int(part * len(states))]
        copy, again = remains(begun, tmp_path / f"again{number}")
        with boundaries(begun, copy) as count:
            resume(begun)
        print(f"{kind}: {count[0]} boundaries, {len(again)} states")
        for k, path in some(again, kind):
            try:
                resume(path)
                is_the_run(path, uninterrupted(kind))
            except Exception as error:
                raise AssertionError(f"{kind}, death at boundary {k} of the resumption") from error
            shutil.rmtree(path)


# Real processes


@pytest.fixture(scope="module")
def process(tmp_path_factory):
    """Start a process that executes, resumes or extends a run; programs are compiled once for all of them."""
    cache = tmp_path_factory.mktemp("compiled")
    env = os.environ | {
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }

    def start(what, kind, path, die_at=-1):
        spec = path.parent / f"{kind}.toml"
        spec.write_text(TEXTS[kind])
        command = [sys.executable, boundaries_module.__file__, what, spec, path, LATER.get(kind, 0), die_at]
        child = subprocess.Popen([str(word) for word in command], env=env, stdout=subprocess.PIPE, text=True)
        assert child.stdout.readline() == "ready\n"
        return child

    return start


def ended(child):
    said = child.communicate()[0]
    return child.returncode, said


REPEATED = KINDS if jax.default_backend() == "cpu" else ()
"""On a GPU kernels are tuned afresh in every process, and two may round differently (docs/runs.md)."""
OFTEN = ("merge_times",)
"""Kinds that die in a real process at several boundaries; the others die at one. A real process takes seconds to start."""


@graded("kind", REPEATED, slow=1)
def test_a_run_that_really_died_at_a_boundary_resumes(kind, process, uninterrupted, tmp_path):
    with boundaries(tmp_path / "run", lambda k: None) as count:
        execute(of(kind), tmp_path / "run")
    for part in (0.2, 0.6, 0.97) if kind in OFTEN else (0.6,):
        # (which state that is may differ: Zarr writes from several threads)
        path = tmp_path / f"dead{part}"
        assert ended(process("execute", kind, path, die_at=int(part * count[0]))) == (9, "")
        carried_on(path, kind)
        is_the_run(path, uninterrupted(kind))
    if kind not in OFTEN:
        return
    shutil.copytree(uninterrupted(kind), tmp_path / "longer")
    assert ended(process("extend", kind, tmp_path / "longer", die_at=30))[0] == 9
    resume(tmp_path / "longer")
    is_the_run(tmp_path / "longer", uninterrupted(kind, longer=True))


INSTANTS = 50


@graded("kind", [one if one in OFTEN else pytest.param(one, marks=pytest.mark.long) for one in REPEATED], slow=2)
def test_a_process_killed_at_random_instants_ends_bit_for_bit(kind, process, uninterrupted, tmp_path):
    began = time.perf_counter()
    child = process("execute", kind, tmp_path / "first")
    ready = time.perf_counter()
    assert ended(child)[0] == 0  # fills the cache of compiled programs
    is_the_run(tmp_path / "first", uninterrupted(kind))
    child = process("execute", kind, tmp_path / "second")
    ready = time.perf_counter()
    assert ended(child)[0] == 0
    lasts = time.perf_counter() - ready
    chance = random.Random(f"survival of {kind}")
    survived, number = 0, KINDS.index(kind)
    for trial in range(INSTANTS // len(KINDS) + (number < INSTANTS % len(KINDS))):
        path = tmp_path / f"run{trial}"
        for what in ("execute", "resume", "resume")[: chance.choice((1, 1, 1, 1, 2, 3))]:
            if what == "resume" and not (path / "manifest.json").exists():
                what = "execute"
            child = process(what, kind, path)
            time.sleep(chance.uniform(0, 1.1 * lasts))
            os.kill(child.pid, signal.SIGKILL)
            code, _ = ended(child)
            survived += code == 0
        carried_on(path, kind)
        is_the_run(path, uninterrupted(kind))
    print(f"{kind}: a run lasts {lasts:.2f} s, {survived} came too late, {time.perf_counter() - began:.0f} s")

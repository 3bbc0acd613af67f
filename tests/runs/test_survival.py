"""What survives: Ctrl-C, cancellation and death of the process at any moment, for every kind of run."""

import functools
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import attnflow as af
from attnflow.errors import FlowFailed, InvalidInput, InvalidSpec, RunCorrupted, RunError
from attnflow.flows.sink import InMemory
from attnflow.runs import Run, ZarrSink, execute, extend, open_run, parse_spec, resume
from tests.runs import boundaries as boundaries_module
from tests.runs.boundaries import boundaries, remains

TOKENS = """
[field]
name = "attention"
beta = {beta}
[tokens]
name = "uniform"
space = {{ name = "sphere", dim = 3 }}
n = 6
seed = 0
"""
DENSITY = """
[field]
name = "attention"
beta = 4.0
[density]
name = "perturbed"
basis = { name = "circle", degree = 16 }
degree = 1
amplitude = 0.3
"""
TEXTS = {
    "solve": TOKENS.format(beta="[1.0, 9.0]")
    + """
[solve]
until = 7.0
chunk = 3
save = { name = "evenly", count = 7 }
stop = [{ name = "consensus", spread = 0.7 }]
[solve.observe]
order = { name = "order-parameter" }
clusters = { name = "clusters", scale = 0.3 }
""",
    "solve_long": TOKENS.format(beta=9.0) + "[solve_long]\nuntil = 20.0\nmethod = { frames = 8 }\n",
    "merge_times": TOKENS.format(beta=9.0).replace("n = 6", "n = 12") + "[merge_times]\nuntil = 50.0\n",
    "evolve": DENSITY + '[evolve]\nuntil = 0.5\nsave = { name = "evenly", count = 3 }\nkappa = 0.05\n',
    "evolve_cells": DENSITY
    + """
[evolve_cells]
until = 0.5
save = { name = "evenly", count = 3 }
kappa = 0.05
[cells]
name = "circle"
count = 32
""",
    "fit": """
[classifier]
name = "residual"
dim = 2
width = 3
layers = 2
[data]
name = "interleaved"
n = 20
[fit]
steps = 60
batch = 8
""",
}
LATER = {"solve": 10.0, "solve_long": 50.0, "merge_times": 5000.0, "evolve": 0.9, "evolve_cells": 0.9, "fit": 110}
"""To where runs are extended."""
KINDS = tuple(TEXTS)
CONTINUED = tuple(kind for kind in KINDS if kind != "merge_times")
"""Kinds whose results go on by `from_`; merge_times returns a table."""


def of(kind):
    return parse_spec(TEXTS[kind])


def arrays(path):
    with xr.open_zarr(path / "arrays.zarr", chunks=None, consolidated=False) as data:
        return data.load()


def same(found, expected):
    """The same variables with the same types, dimensions and bits, NaN included."""
    assert set(found.variables) == set(expected.variables)
    for name in expected.variables:
        a, b = found[name], expected[name]
        assert (a.dims, a.dtype, a.shape) == (b.dims, b.dtype, b.shape), name
        np.testing.assert_array_equal(a.values, b.values, err_msg=name)


def is_the_run(path, expected):
    """`path` is finished and whole, and holds bit by bit what `expected` holds."""
    run, whole = Run.open(path), Run.open(expected).manifest()
    found = run.manifest()
    assert found["status"] == "finished"
    run.verify()
    for key in ("spec_hash", "outcome", "frames", "steps"):
        assert found[key] == whole[key], key
    same(arrays(path), arrays(expected))
    assert arrays(path).attrs == arrays(expected).attrs
    left = {str(f.relative_to(path)) for f in path.rglob("*") if f.suffix in (".tmp", ".partial")}
    assert not left
    assert set(found["checksums"]) == set(whole["checksums"])


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """Finished runs, made once: of a kind, and longer ones."""

    @functools.cache
    def make(kind, longer=False):
        path = tmp_path_factory.mktemp(kind) / "whole"
        execute(of(kind).extended(LATER[kind]) if longer else of(kind), path)
        return path

    return make


def data(result):
    return result if isinstance(result, xr.Dataset) else result.dataset


# Death at every boundary: between any two changes to the file system, what is on disk is copied, and each copy is what
# a death at that moment leaves. A few real deaths at boundaries confirm it below.


def carried_on(path, kind):
    """Go on with what a death left; before there is a manifest, that is nothing yet."""
    if (path / "manifest.json").exists():
        resume(path)
    else:
        execute(of(kind), path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_died_at_any_boundary_resumes_bit_for_bit(kind, uninterrupted, tmp_path):
    copy, found = remains(tmp_path / "run", tmp_path / "left", halves=kind == "merge_times")
    with boundaries(tmp_path / "run", copy) as count:
        execute(of(kind), tmp_path / "run")
    is_the_run(tmp_path / "run", uninterrupted(kind))
    print(f"{kind}: {count[0]} boundaries, {len(found)} states")
    assert len(found) > 50
    for k, path in found.items():
        carried_on(path, kind)
        try:
            is_the_run(path, uninterrupted(kind))
        except Exception as error:
            raise AssertionError(f"{kind}, death at boundary {k}") from error
        shutil.rmtree(path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_an_extension_that_died_at_any_boundary_is_finished_or_not_begun(kind, uninterrupted, tmp_path):
    shutil.copytree(uninterrupted(kind), tmp_path / "run")
    copy, found = remains(tmp_path / "run", tmp_path / "left")
    with boundaries(tmp_path / "run", copy) as count:
        extend(tmp_path / "run", LATER[kind])
    whole = uninterrupted(kind, longer=True)
    is_the_run(tmp_path / "run", whole)
    print(f"{kind}: {count[0]} boundaries, {len(found)} states")
    untouched = 0
    for k, path in found.items():
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


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
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
        for k, path in again.items():
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
        command = [sys.executable, boundaries_module.__file__, what, spec, path, LATER[kind], die_at]
        child = subprocess.Popen([str(word) for word in command], env=env, stdout=subprocess.PIPE, text=True)
        assert child.stdout.readline() == "ready\n"
        return child

    return start


def ended(child):
    said = child.communicate()[0]
    return child.returncode, said


REPEATED = KINDS if jax.default_backend() == "cpu" else ()
"""On a GPU kernels are tuned afresh in every process, and two may round differently (docs/runs.md)."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", REPEATED)
def test_a_run_that_really_died_at_a_boundary_resumes(kind, process, uninterrupted, tmp_path):
    with boundaries(tmp_path / "run", lambda k: None) as count:
        execute(of(kind), tmp_path / "run")
    for part in (0.2, 0.6, 0.97):  # (which state that is may differ: Zarr writes from several threads)
        path = tmp_path / f"dead{part}"
        assert ended(process("execute", kind, path, die_at=int(part * count[0]))) == (9, "")
        carried_on(path, kind)
        is_the_run(path, uninterrupted(kind))
    shutil.copytree(uninterrupted(kind), tmp_path / "longer")
    assert ended(process("extend", kind, tmp_path / "longer", die_at=30))[0] == 9
    resume(tmp_path / "longer")
    is_the_run(tmp_path / "longer", uninterrupted(kind, longer=True))


INSTANTS = 50


@pytest.mark.slow
@pytest.mark.parametrize("kind", REPEATED)
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


# Ctrl-C, cancellation and errors in one process


def function(kind):
    return of(kind).kind.function


@functools.cache
def in_memory(kind):
    return function(kind)(**of(kind).build())


def gone_on(kind, part):
    """What the interrupted flow `part` becomes when it goes on to its end."""
    end = {"solve_long": {"until": 20.0}, "fit": {"steps": 60}}.get(kind, {})
    return function(kind)(from_=part, **end)


def after(calls, do):
    """A function that does `do` from its call number `calls` on."""
    count = []

    def called(*_):
        count.append(None)
        return do() if len(count) >= calls else False

    return called


def press():
    raise KeyboardInterrupt


WAYS = {
    "Ctrl-C": lambda calls: {"on_progress": after(calls, press)},
    "cancel": lambda calls: {"cancel": after(calls, lambda: True)},
}


def is_interrupted(kind, part):
    assert of(kind).kind.outcome(part).ending.value == "interrupted"
    whole = data(in_memory(kind))
    rows = of(kind).kind.rows
    if rows != "merge":
        assert data(part).sizes[rows] <= whole.sizes[rows]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", CONTINUED)
def test_an_interrupted_flow_keeps_what_was_done_and_goes_on_bit_for_bit(kind, way):
    part = function(kind)(**of(kind).build(), **WAYS[way](2))
    is_interrupted(kind, part)
    whole = gone_on(kind, part)
    same(whole.dataset, in_memory(kind).dataset)
    assert whole.outcome == in_memory(kind).outcome


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupted_run_keeps_what_was_done_and_resumes_bit_for_bit(kind, way, uninterrupted, tmp_path):
    run, part = execute(of(kind), tmp_path / "run", **WAYS[way](2))
    is_interrupted(kind, part)
    assert run.manifest()["status"] == "interrupted"
    open_run(run.path)
    resume(run.path)
    is_the_run(run.path, uninterrupted(kind))


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")], ids=["Ctrl-C", "full"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_error_in_the_middle_of_a_commit_loses_no_run(kind, error, uninterrupted, tmp_path, monkeypatch):
    with monkeypatch.context() as patched:  # rows are written, the checkpoint behind them is not
        original, count = ZarrSink._pack, []

        def pack(self, checkpoint):
            count.append(None)
            if len(count) == 2:
                raise error
            return original(self, checkpoint)

        patched.setattr(ZarrSink, "_pack", pack)
        if isinstance(error, OSError):
            with pytest.raises(RunError, match="No space left"):
                execute(of(kind), tmp_path / "run")
        else:
            run, part = execute(of(kind), tmp_path / "run")
            is_interrupted(kind, part)
            if of(kind).kind.rows != "merge":  # as many rows as are committed, not those of which some are missing
                assert data(part).sizes == data(open_run(run.path)).sizes
    resume(tmp_path / "run")
    is_the_run(tmp_path / "run", uninterrupted(kind))


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("kind", CONTINUED)
def test_ctrl_c_in_the_middle_of_a_commit_in_memory_goes_on_bit_for_bit(kind, kept, monkeypatch):
    with monkeypatch.context() as patched:
        commit, count = InMemory.commit, []

        def cut(self, start, rows, checkpoint):
            count.append(None)
            if kept or len(count) != 2:
                commit(self, start, rows, checkpoint)
            if len(count) == 2:
                raise KeyboardInterrupt

        patched.setattr(InMemory, "commit", cut)
        part = function(kind)(**of(kind).build())
    is_interrupted(kind, part)
    same(gone_on(kind, part).dataset, in_memory(kind).dataset)


@pytest.mark.parametrize("kind", KINDS)
def test_ctrl_c_after_the_last_step_comes_too_late(kind, uninterrupted, tmp_path):
    """A flow that has ended stays ended: it is not continued from behind its stop."""
    calls = []
    function(kind)(**of(kind).build(), on_progress=calls.append)
    run, _ = execute(of(kind), tmp_path / "run", on_progress=after(len(calls), press))
    resume(run.path)
    is_the_run(run.path, uninterrupted(kind))


def test_ctrl_c_at_the_stop_of_a_flow_does_not_undo_it(tmp_path):
    text = TEXTS["solve"].replace("[1.0, 9.0]", "1.0").replace("chunk = 3", "chunk = 6")
    _, whole = execute(parse_spec(text), tmp_path / "whole")
    assert whole.outcome.ending.value == "stopped"

    def late(progress):
        if progress.frames:
            raise KeyboardInterrupt

    run, flow = execute(parse_spec(text), tmp_path / "run", on_progress=late)
    assert flow.outcome.ending.value in ("stopped", "interrupted")
    resume(run.path)
    is_the_run(run.path, tmp_path / "whole")


def test_cancel_works_in_another_thread():
    found = []
    build = of("solve").build()
    worker = threading.Thread(target=lambda: found.append(af.solve(**build, cancel=after(2, lambda: True))))
    worker.start()
    worker.join()
    assert found[0].outcome.ending.value == "interrupted"
    same(af.solve(from_=found[0]).dataset, in_memory("solve").dataset)


# Going on is the same as having gone


def six(seed=0, dtype=np.float64):
    return af.uniform(af.Sphere(3), n=6, seed=seed).astype(np.dtype(dtype))


UNEQUAL = af.Along("beta", [0.5, 20.0])


def jumping():
    rng = np.random.default_rng(0)
    return af.Attention(2.0, value=af.fields.PerLayer(np.eye(3) + 0.3 * rng.standard_normal((6, 3, 3)), 0.7))


CASES = {
    "adaptive, chunk 1": lambda: {"field": af.Attention(UNEQUAL), "chunk": 1},
    "adaptive, chunk 100": lambda: {"field": af.Attention(UNEQUAL), "chunk": 100},
    "fixed": lambda: {"field": af.Attention(UNEQUAL), "method": af.Fixed(0.07), "chunk": 4},
    "layers": lambda: {"field": af.Attention(UNEQUAL), "method": af.Layers(0.1), "chunk": 100},
    "noise": lambda: {"field": af.Attention(2.0), "noise": af.Brownian(0.05), "method": af.Layers(0.1, af.updates.ProjectRenormalise())},
    "stop": lambda: {"field": af.Attention(UNEQUAL), "stop": af.stop.Consensus(0.8), "chunk": 3},
    "observed": lambda: {
        "field": af.Attention(UNEQUAL),
        "observe": {"order": lambda t, mu: jnp.linalg.norm(mu.masses @ mu.positions), "host": lambda t, mu: float(np.asarray(mu.positions)[0, 0])},
    },
    "float32": lambda: {"field": af.Attention(UNEQUAL), "tokens": six(dtype=np.float32), "method": af.Fixed(0.07)},
    "float32, layers": lambda: {"field": af.Attention(UNEQUAL), "tokens": six(dtype=np.float32), "method": af.Layers(0.1)},
    "jumps": lambda: {"field": jumping(), "chunk": 3},
    "jumps, fixed": lambda: {"field": jumping(), "method": af.Fixed(0.06)},
}  # fmt: skip


AT_ONCE = ("stop", "layers", "jumps")
"""Cases that `make test` looks at; `make study` looks at all others."""


@pytest.mark.parametrize("case", [c if c in AT_ONCE else pytest.param(c, marks=pytest.mark.slow) for c in CASES])
def test_a_flow_that_goes_on_is_the_flow_of_one_call(case):
    given = {"tokens": six()} | CASES[case]()
    times = np.array([0.6, 1.0, 2.0, 2.4, 4.0, 4.4, 6.0])
    whole = af.solve(**given, until=6.0, save=times)
    first = af.solve(**given, until=2.0, save=times[:3])
    middle = af.solve(from_=first, until=4.0, save=times[3:5])
    same(af.solve(from_=middle, until=6.0, save=times[5:]).dataset, whole.dataset)
    for calls in (2, 8):  # before the first step, and on the way
        cut = af.solve(**given, until=6.0, save=times, cancel=after(calls, lambda: True))
        assert cut.outcome.ending.value == "interrupted"
        same(af.solve(from_=cut).dataset, whole.dataset)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "merge_times"])
def test_other_flows_that_go_on_are_those_of_one_call(kind):
    key = of(kind).kind.end
    longer = of(kind).extended(LATER[kind])
    whole = function(kind)(**longer.build())
    same(function(kind)(from_=in_memory(kind), **{key: LATER[kind]}).dataset, whole.dataset)


# Refusals


@pytest.mark.parametrize("kind", KINDS)
def test_an_earlier_end_is_refused(kind, uninterrupted):
    before = (uninterrupted(kind) / "manifest.json").read_bytes()
    with pytest.raises(InvalidSpec, match="goes to .* already"):
        extend(uninterrupted(kind), 0.1 if kind != "fit" else 10)
    assert (uninterrupted(kind) / "manifest.json").read_bytes() == before
    if kind != "merge_times":
        with pytest.raises(InvalidInput, match="goes to .* already"):
            function(kind)(from_=in_memory(kind), **{of(kind).kind.end: 10 if kind == "fit" else 0.1})


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        ("solve", "tol", 1e-6),
        ("solve", "keep", ("spread",)),
        ("evolve", "kappa", 0.1),
        ("evolve", "rtol", 1e-6),
        ("evolve_cells", "kappa", 0.1),
        ("evolve_cells", "masses", np.ones(32) / 32),
        ("fit", "rate", 0.1),
        ("fit", "points", np.zeros((4, 2))),
    ],
)
def test_arguments_of_the_beginning_are_refused_when_a_flow_goes_on(kind, name, value):
    with pytest.raises(InvalidInput, match=f"`{name}` is given with `from_`"):
        function(kind)(from_=in_memory(kind), **{of(kind).kind.end: LATER[kind], name: value})


def test_a_flow_that_has_stopped_does_not_go_on(tmp_path):
    text = TEXTS["solve"].replace("[1.0, 9.0]", "1.0")
    run, flow = execute(parse_spec(text), tmp_path / "run")
    assert flow.outcome.ending.value == "stopped"
    with pytest.raises(RunError, match="has ended: stopped at .*does not go on"):
        extend(run.path, 9.0)
    stopped = af.solve(**parse_spec(text).build())
    with pytest.raises(InvalidInput, match="has ended: stopped at .*does not go on"):
        af.solve(from_=stopped, until=9.0)


def test_a_run_goes_on_with_its_own_observables_only(tmp_path):
    given = {"field": af.Attention(2.0), "tokens": six(), "until": 2.0, "save": 8, "chunk": 2}

    def go(power, **more):
        sink = ZarrSink(tmp_path / "arrays.zarr", tmp_path / "checkpoint")
        return af.solve(**given, observe={"seen": lambda t, mu: jnp.sum(mu.positions**power)}, sink=sink, **more)

    go(2, on_progress=lambda progress: press() if progress.frames else None)
    with pytest.raises(RunError, match="'observe.seen' differs: a run goes on with the observables it began with"):
        go(3)
    sink = ZarrSink(tmp_path / "arrays.zarr", tmp_path / "checkpoint")
    with pytest.raises(RunError, match="'observe.seen' is missing"):
        af.solve(**given, sink=sink)
    whole = af.solve(**given, observe={"seen": lambda t, mu: jnp.sum(mu.positions**2)})
    same(go(2).dataset.load(), whole.dataset)


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_checkpoint_is_refused(kind, tmp_path):
    run, _ = execute(of(kind), tmp_path / "run", **WAYS["Ctrl-C"](2))
    content = bytearray(run.checkpoint.read_bytes())
    content[len(content) // 2] ^= 1
    run.checkpoint.write_bytes(content)
    with pytest.raises(RunCorrupted, match="truncated or altered"):
        resume(run.path)


@pytest.mark.parametrize(
    ("late", "words"),
    [
        (lambda: 1 / 0, "raised ZeroDivisionError"),
        (lambda: np.zeros(2), "has the shape"),
        (lambda: np.nan, "is NaN"),
    ],
    ids=["raises", "changes its shape", "is NaN"],
)
def test_an_observable_that_fails_on_the_way_leaves_the_rows_before_it(late, words, tmp_path):
    given = {"field": af.Attention(2.0), "tokens": six(), "until": 2.0, "save": 8, "chunk": 3}
    whole = af.solve(**given)

    def seen(t, mu):
        return late() if float(t) > 1.1 else float(np.asarray(mu.positions)[0, 0])

    sink = ZarrSink(tmp_path / "arrays.zarr", tmp_path / "checkpoint")
    for where in (None, sink):
        with pytest.raises(FlowFailed, match=words) as caught:
            af.solve(**given, observe={"seen": seen}, sink=where)
        kept = caught.value.trajectory.dataset.load()
        assert kept.sizes["time"] == 5
        np.testing.assert_array_equal(kept["positions"], whole.dataset["positions"][:5])

"""Going on is the same as having gone, and what cannot go on is refused."""

import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.errors import FlowFailed, InvalidInput, RunCorrupted, RunError
from attnflow.runs import ZarrSink, execute, extend, parse_spec, resume
from tests.marks import graded
from tests.runs.kinds import KINDS, LATER, TEXTS, after, carried_out, in_memory, of, press, same


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
    "noise": lambda: {"field": af.Attention(2.0), "noise": af.Brownian(0.05), "method": af.Layers(0.1, af.layer_updates.ProjectRenormalise())},
    "stop": lambda: {"field": af.Attention(UNEQUAL), "stop": af.stopping.Consensus(0.8), "chunk": 3},
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
"""Cases that are not slow."""
MEASURED = ("stop", "adaptive, chunk 100", "float32")
"""Cases of which speeds and energies are compared too."""


@graded("case", [c if c in AT_ONCE else pytest.param(c, marks=pytest.mark.slow) for c in CASES], slow=1)
def test_a_flow_that_goes_on_is_the_flow_of_one_call(case, faults):
    given = {"tokens": six()} | ({} if case in MEASURED else {"keep": ["positions"]}) | CASES[case]()
    times = np.array([0.6, 1.0, 2.0, 2.4, 4.0, 4.4, 6.0])
    whole = af.solve(**given, until=6.0, save=times)
    first = af.solve(**given, until=2.0, save=times[:3])
    middle = first.continued(4.0, save=times[3:5])
    same(middle.continued(6.0, save=times[5:]).dataset, whole.dataset)
    # one step a slice: a compiled flow may end in its first slice, before anybody asks again
    faults.replace("first slice", 1)
    faults.replace("seconds of a slice", 0.0)
    for calls in (2, 8):  # before the first step, and on the way
        cut = af.solve(**given, until=6.0, save=times, cancel=after(calls, lambda: True))
        assert cut.outcome.ending.value == "interrupted"
        same(cut.continued().dataset, whole.dataset)


@graded("kind", LATER, slow=1)
def test_other_flows_that_go_on_are_those_of_one_call(kind):
    longer = in_memory(kind).continued(LATER[kind])
    same(longer.dataset, carried_out(of(kind).extended(LATER[kind]).work).dataset)


# Refusals


QUICK = [
    kind if kind not in ("merge_times", "fit", "train") else pytest.param(kind, marks=pytest.mark.slow)
    for kind in KINDS
]
"""All kinds; those that take long to compile are slow."""


@graded("kind", [kind for kind in QUICK if kind not in ("match_measures", "probe")], fast=1)
def test_an_earlier_end_is_refused(kind, uninterrupted):
    before, earlier = (uninterrupted(kind) / "manifest.json").read_bytes(), 1 if isinstance(LATER[kind], int) else 0.1
    with pytest.raises(InvalidInput, match="goes to .* already"):
        extend(uninterrupted(kind), earlier)
    assert (uninterrupted(kind) / "manifest.json").read_bytes() == before
    with pytest.raises(InvalidInput, match="goes to .* already"):
        in_memory(kind).continued(earlier)


def test_work_without_an_end_does_not_go_on():
    spec = of("match_measures")
    for longer in (spec.extended, spec.work.longer):
        with pytest.raises(InvalidInput, match="MatchMeasures has no end that could be later; start new work"):
            longer(9)


def test_a_flow_that_has_stopped_does_not_go_on(tmp_path):
    text = TEXTS["solve"].replace("[1.0, 9.0]", "[1.0, 1.1]")
    run, flow = execute(parse_spec(text), tmp_path / "run")
    assert flow.outcome.ending.value == "stopped"
    with pytest.raises(RunError, match="has ended: stopped at .*does not go on"):
        extend(run.path, 9.0)
    stopped = carried_out(parse_spec(text).work)
    with pytest.raises(InvalidInput, match="has ended: stopped at .*does not go on"):
        stopped.continued(9.0)


GIVEN = {
    "field": af.Attention(2.0), "tokens": six(), "until": 2.0, "save": 8, "chunk": 3, "method": af.Fixed(0.125),
    "keep": ["positions"],
}  # fmt: skip


def test_a_run_goes_on_with_its_own_observables_only(tmp_path):
    given = GIVEN | {"chunk": 2}

    def go(power, **more):
        sink = ZarrSink(tmp_path)
        return af.solve(**given, observe={"seen": lambda t, mu: jnp.sum(mu.positions**power)}, sink=sink, **more)

    go(2, on_progress=lambda progress: press() if progress.frames else None)
    with pytest.raises(RunError, match="'observe.seen' differs: a run goes on with the observables it began with"):
        go(3)
    sink = ZarrSink(tmp_path)
    with pytest.raises(RunError, match="'observe.seen' is missing"):
        af.solve(**given, sink=sink)
    whole = af.solve(**given, observe={"seen": lambda t, mu: jnp.sum(mu.positions**2)})
    same(go(2).dataset.load(), whole.dataset)


@graded("kind", QUICK, fast=2)
def test_a_damaged_checkpoint_is_refused(kind, tmp_path):
    run, _ = execute(of(kind), tmp_path / "run", on_progress=after(2, press))
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
    whole = af.solve(**GIVEN)

    def seen(t, mu):
        return late() if float(t) > 1.1 else float(np.asarray(mu.positions)[0, 0])

    sink = ZarrSink(tmp_path)
    for where in (None, sink):
        with pytest.raises(FlowFailed, match=words) as caught:
            af.solve(**GIVEN, observe={"seen": seen}, sink=where)
        kept = caught.value.trajectory.dataset.load()
        assert kept.sizes["time"] == 5
        np.testing.assert_array_equal(kept["positions"], whole.dataset["positions"][:5])

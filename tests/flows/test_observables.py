"""Observables in the loop: what they see, what is saved, and what is refused."""

import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.errors import FlowFailed, InvalidInput
from attnflow.flows import Ending
from attnflow.runs import ZarrSink
from tests.flows.fields import fingerprint
from tests.marks import graded

TOKENS = af.uniform(af.Sphere(3), n=10, seed=0)
BATCH = af.uniform(af.Sphere(3), n=10, seed=range(3))
FIELD = af.Attention(4.0)
STEPS = af.Fixed(0.1)


def mean(t, mu):
    return mu.masses @ mu.positions


def height(t, mu):
    """Host code: float() of a tracer fails."""
    return float(np.asarray(mu.positions)[:, 2].max())


def clock(t, mu):
    return 2 * t


@graded("method", [af.Adaptive(), STEPS, af.Layers(0.1)])
def test_observables_are_those_of_the_saved_frames(method):
    watch = {"mean": af.Observable(mean, dims=("dim",)), "height": height, "clock": clock}
    flow = af.solve(FIELD, BATCH, 2.0, save=20, method=method, observe=watch, chunk=8)
    plain = af.solve(FIELD, BATCH, 2.0, save=20, method=method, chunk=8)
    for name in plain.dataset:
        assert np.array_equal(flow.dataset[name], plain.dataset[name]), name  # watching changes nothing
    assert flow.dataset["mean"].dims == ("seed", "time", "dim")
    assert flow.dataset["height"].dims == ("seed", "time")
    np.testing.assert_allclose(flow.dataset["mean"], flow.positions.values.mean(axis=2), atol=1e-16 * 10)
    np.testing.assert_array_equal(flow.dataset["height"], flow.positions.values[..., 2].max(axis=2))
    np.testing.assert_array_equal(flow.dataset["clock"], np.broadcast_to(2 * flow.time.values, (3, 21)))


@pytest.mark.slow
def test_only_what_is_asked_for_is_kept():
    flow = af.solve(FIELD, BATCH, 2.0, save=20, observe={"mean": mean}, keep=(), method=STEPS)
    assert set(flow.dataset.data_vars) == {"mean", "masses", "place"}
    assert flow.dataset["mean"].dims == ("seed", "time", "mean_0")
    assert flow.dims == ("seed",)
    whole = af.solve(FIELD, BATCH, 2.0, save=20, observe={"mean": mean}, method=STEPS)
    assert np.array_equal(flow.dataset["mean"], whole.dataset["mean"])
    for act in (lambda: flow.positions, lambda: flow.tokens(-1), lambda: flow.clusters(scale=0.1)):
        with pytest.raises(InvalidInput, match="kept no positions"):
            act()
    with pytest.raises(InvalidInput, match="kept no energy"):
        _ = flow.energy
    few = af.solve(FIELD, TOKENS, 2.0, save=4, keep=("spread", "positions"), method=STEPS)
    assert set(few.dataset.data_vars) == {"positions", "spread", "masses", "place"}


@pytest.mark.slow
def test_stop_conditions_look_at_what_is_not_kept():
    watch = {"order": lambda t, mu: jnp.linalg.norm(mean(t, mu))}
    run = {"field": af.Attention(1.0), "tokens": TOKENS, "until": 8.0, "save": 40, "method": STEPS}
    free = af.solve(**run, observe=watch)
    at = int(np.argmax(free.dataset["order"].values > 0.5))
    assert 0 < at < 40
    by_own = af.solve(**run, observe=watch, keep=(), stop=af.stopping.When(lambda frame: frame.order > 0.5))
    assert float(by_own.stopped_at) == by_own.time.values[-1] == free.time.values[at]
    speed = free.dataset["speed"].values
    slow = float(speed[20])
    built_in = af.solve(**run, keep=(), stop=af.stopping.Still(slow))
    assert built_in.time.values[-1] == free.time.values[np.argmax(speed <= slow)]
    with pytest.raises(InvalidInput, match="asks for 'speed'.*Name what else it needs in `needs`"):
        af.solve(**run, keep=(), stop=af.stopping.When(lambda frame: frame.speed < slow))
    needy = af.stopping.When(lambda frame: frame.speed <= slow, "slow", needs=("speed",))
    named = af.solve(**run, keep=(), stop=needy)
    assert named.time.values[-1] == built_in.time.values[-1]


def test_a_bad_observable_is_one_sentence_before_any_work():
    def wrong(t, mu):
        raise ValueError("no such thing")

    for observed, words in (
        ({"a": wrong}, "the observable 'a' raised ValueError at the start: no such thing; correct the function"),
        ({"a": lambda t, mu: {"b": 1.0}}, "the observable 'a' returns a dict; return one number or array"),
        ({"a": lambda t, mu: "text"}, "the observable 'a' returns <U4 values; return one number or array"),
        ({"positions": mean}, "`observe` has the name 'positions'"),
        ({"not a name": mean}, "`observe` has the name 'not a name'"),
        ({"a": 3.0}, "`function` is 3.0; give a function of \\(t, measure\\)"),
        ({"a": af.Observable(mean, dims=("x", "y"))}, "has shape \\(3,\\) and dims \\('x', 'y'\\); name each axis"),
        ({"a": af.Observable(lambda t, mu: mu.masses, dims=("dim",))}, "10 entries along 'dim', which has 3"),
        ([mean], "`observe` is .*; give a dictionary of names and functions"),
    ):
        with pytest.raises(InvalidInput, match=words):
            af.solve(FIELD, TOKENS, 1.0, save=2, observe=observed)


def test_an_observable_that_holds_a_tracer_is_refused():
    held = []

    @jax.jit
    def leak(x):
        held.append(x)
        return x

    leak(1.0)
    with pytest.raises(InvalidInput, match="'a' holds a value that is being traced"):
        af.solve(FIELD, TOKENS, 1.0, save=2, observe={"a": lambda t, mu: held[0] + t})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("late", "words"),
    [
        (lambda t, mu: 1 / float(t < 1.0), "'a' raised ZeroDivisionError"),
        (lambda t, mu: np.zeros(3 if float(t) < 1.0 else 2), r"'a' has the shape \(2,\), and had \(3,\) at the start"),
        (lambda t, mu: jnp.where(t < 1.0, t, jnp.nan), "'a' is NaN at t = 1; correct it, or give Observable"),
        (lambda t, mu: float("nan") if float(t) >= 1.0 else 0.0, "'a' is NaN at t = 1"),
    ],
)
def test_an_observable_that_fails_on_the_way_keeps_what_was_done(late, words):
    with pytest.raises(FlowFailed, match=words) as caught:
        af.solve(
            FIELD, BATCH, 2.0, save=20, observe={"a": late, "b": clock}, chunk=4, method=STEPS, keep=["positions"]
        )  # fmt: skip
    kept = caught.value.trajectory
    assert kept.outcome.ending is Ending.FAILED
    np.testing.assert_allclose(kept.time, np.arange(10) / 10, atol=1e-15)
    assert np.isfinite(kept.positions.values).all()
    assert kept.dataset["a"].sizes["time"] == kept.dataset["b"].sizes["time"] == 10


def test_nan_may_be_allowed():
    late = af.Observable(lambda t, mu: jnp.where(t < 1.0, t, jnp.nan), allow_nan=True)
    flow = af.solve(FIELD, TOKENS, 2.0, save=4, observe={"a": late}, method=STEPS)
    np.testing.assert_array_equal(flow.dataset["a"], [0.0, 0.5, np.nan, np.nan, np.nan])


def test_fingerprints_tell_functions_apart():
    def made(k):
        return lambda t, mu: k * t

    prints = [fingerprint(af.Observable(f)) for f in (mean, height, clock, made(1), made(2), made(np.ones(2)))]
    assert len(set(prints)) == len(prints)
    assert fingerprint(af.Observable(made(1))) == prints[3]
    assert fingerprint(af.Observable(mean, dims=("dim",))) != prints[0]


SCALE = 2.0


def scaled(t, mu):
    return SCALE * helped(t)


def helped(t):
    return t


def test_fingerprints_count_settings_and_what_a_function_names():
    by_scale = [fingerprint(af.Observable(af.observe.cluster_count.of(scale=scale))) for scale in (0.1, 0.2, 0.1)]
    assert by_scale[0] == by_scale[2] != by_scale[1]
    before = fingerprint(af.Observable(scaled))
    for names, is_same in (({}, True), ({"SCALE": 3.0}, False), ({"helped": lambda t: t + 1}, False)):
        renamed = types.FunctionType(scaled.__code__, {**globals(), **names}, "scaled")
        assert (fingerprint(af.Observable(renamed)) == before) == is_same


def test_float32_observables_are_stored_and_resumed_as_float64(tmp_path):
    """The tokens are float32, what is observed is saved as float64: in memory as on disk, or no digest would agree."""
    tokens, calls = TOKENS.astype(np.float32), []

    def cancel():
        calls.append(None)
        return len(calls) > 30

    def run(**more):
        sink = ZarrSink(tmp_path / "kept")
        return af.solve(FIELD, tokens, 2.0, sink=sink, **arguments, **more)

    arguments = {"save": 20, "chunk": 3, "method": STEPS, "observe": {"mean": mean}, "keep": ["positions"]}

    assert run(cancel=cancel).outcome.ending is Ending.INTERRUPTED
    assert (tmp_path / "kept" / "checkpoint").exists()
    resumed = run()
    whole = af.solve(FIELD, tokens, 2.0, **arguments)
    assert resumed.dataset["mean"].dtype == whole.dataset["mean"].dtype == np.float64
    assert np.array_equal(resumed.dataset["mean"], whole.dataset["mean"])


@pytest.mark.slow
def test_a_frozen_flow_may_keep_no_floor():
    pair = af.from_array([[1.0, 0, 0], [-1.0, 0, 0]])
    run = {"field": af.Attention(30.0), "tokens": pair, "until": 4.0, "save": 40, "method": STEPS}
    flow = af.solve(**run, keep=("resolved", "spread"))
    assert flow.outcome.ending is Ending.FROZEN
    assert "floor" not in flow.dataset
    assert af.solve(**run, keep=("spread",)).outcome.ending is Ending.FINISHED


@pytest.mark.slow
def test_absent_rows_are_in_the_measure_and_say_so():
    prompts = af.stack("prompt", ["a", "b"], [af.uniform(af.Sphere(3), n=n, seed=0) for n in (4, 7)])
    watch = {
        "count": lambda t, mu: jnp.sum(mu.present),
        "order": lambda t, mu: af.observe.order_parameter(mu),
        "clusters": lambda t, mu: np.int64(af.observe.clusters(mu, scale=0.3).count),
    }
    run = {"save": 4, "method": STEPS, "keep": ["positions"]}
    flow = af.solve(FIELD, prompts, 1.0, **run, observe=watch)
    assert flow.dataset["count"].values.tolist() == [[4] * 5, [7] * 5]
    for name in ("a", "b"):
        own = prompts.member(prompt=("a", "b").index(name))
        alone = af.solve(FIELD, own, 1.0, **run, observe={k: watch[k] for k in ("order", "clusters")})
        np.testing.assert_allclose(flow.dataset["order"].sel(prompt=name), alone.dataset["order"], atol=1e-13)
        np.testing.assert_array_equal(flow.dataset["clusters"].sel(prompt=name), alone.dataset["clusters"])


@pytest.mark.slow
def test_long_flows_densities_and_cells_are_observed_too():
    mf = af.meanfield
    flow = af.solve_long(af.Attention(9.0), TOKENS, observe={"mean": mean})
    np.testing.assert_allclose(flow.dataset["mean"], flow.positions.values.mean(axis=1), atol=1e-15)
    start = mf.perturbed(mf.CircleBasis(16), 1, 0.3)
    grown = mf.evolve(af.Attention(2.0), start, 1.0, save=5, observe={"top": lambda t, rho: rho.values.max()})
    np.testing.assert_allclose(grown.dataset["top"], grown.values.max(axis=1), rtol=1e-14)
    cells = mf.circle_cells(32)
    masses = mf.evolve_cells(
        af.Attention(2.0), cells, mf.cells_from_density(cells, start), 1.0, save=5, observe={"top": lambda t, m: m.max()},
        stop=af.stopping.When(lambda frame: frame.top > 0.0435, "peaked"),
    )  # fmt: skip
    np.testing.assert_array_equal(masses.dataset["top"], masses.masses.values.max(axis=1))
    assert masses.outcome.ending is Ending.STOPPED
    assert masses.dataset["top"].values[-2] <= 0.0435 < masses.dataset["top"].values[-1]

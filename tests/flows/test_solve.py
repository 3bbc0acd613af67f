"""What `solve` promises beyond accuracy."""

import _thread
import contextlib
import itertools
import signal
import threading

import jax
import numpy as np
import pytest

import attnflow as af
from attnflow.errors import FlowFailed, InvalidInput
from attnflow.flows import Ending
from tests.flows.fields import TRACES, Breaking, Counting, Slow
from tests.kit import end, frames
from tests.marks import graded

TOKENS = af.uniform(af.Sphere(3), n=12, seed=0)


def test_the_result_is_labelled_and_double():
    flow = af.solve(af.Attention(4.0), TOKENS, 2.0, save=af.saving.Evenly(5))
    assert flow.positions.dims == ("time", "token", "dim")
    assert flow.positions.dtype == np.float64
    np.testing.assert_allclose(flow.time.values, np.linspace(0, 2, 6), rtol=1e-15)
    assert np.array_equal(flow.positions.values[0], TOKENS.positions)
    assert flow.outcome.ending is Ending.FINISHED
    assert flow.steps["accepted"] > 0
    assert not jax.config.jax_enable_x64
    np.testing.assert_allclose(flow.energy.values[3], af.observe.energy(flow.tokens(3), 4.0), rtol=1e-12)


def test_recorded_speed_and_spread():
    flow = af.solve(af.Attention(4.0), TOKENS, 2.0, save=af.saving.Evenly(3))
    for k in range(4):
        tokens = flow.tokens(k)
        assert abs(flow.dataset["speed"].values[k] - af.observe.speed(af.Attention(4.0), tokens).max()) < 1e-15
        assert abs(flow.dataset["spread"].values[k] - af.observe.spread(tokens)) < 1e-15


@graded("method", [af.Adaptive(), pytest.param(af.Fixed(0.05), marks=pytest.mark.slow), af.Layers(0.05)])
def test_chunks_and_schedules_do_not_move_frames(method):
    """The same times, saved in chunks of 2 or at once: equal bit by bit."""
    large, small = (
        af.solve(af.Attention(4.0), TOKENS, 3.0, save=6, chunk=chunk, method=method, keep=["positions"])
        for chunk in (None, 2)
    )
    assert np.array_equal(small.positions.values, large.positions.values)
    assert small.steps == large.steps


def test_fixed_equals_advance():
    np.testing.assert_allclose(
        end(af.Attention(4.0), TOKENS, 1.0, method=af.Fixed(0.1)),
        af.advance(af.Attention(4.0), TOKENS, 0.0, 1.0, af.Fixed(0.1)).positions,
        atol=1e-15,
    )


@pytest.mark.slow
def test_a_batch_equals_its_members():
    tokens = af.uniform(af.Sphere(3), n=12, seed=range(2))
    field = af.Attention(af.Along("beta", [1.0, 6.0]))
    flow = af.solve(field, tokens, 3.0, save=af.saving.Evenly(4))
    assert flow.positions.dims == ("beta", "seed", "time", "token", "dim")
    assert flow.dataset["beta"].values.tolist() == [1.0, 6.0]
    for i, beta in enumerate((1.0, 6.0)):
        for j in range(2):
            alone = af.solve(af.Attention(beta), tokens.member(seed=j), 3.0, save=af.saving.Evenly(4))
            np.testing.assert_allclose(flow.positions.values[i, j], alone.positions.values, atol=1e-7)
            np.testing.assert_allclose(flow.energy.values[i, j], alone.energy.values, atol=1e-7)
    one = flow.member(beta=1, seed=0)
    assert float(one.field.beta) == 6.0
    assert one.positions.dims == ("time", "token", "dim")
    assert flow.clusters()["count"].dims == ("beta", "seed", "time")


@graded("method", [af.Adaptive(), pytest.param(af.Fixed(0.1), marks=pytest.mark.slow), af.Layers(0.1)], fast=1)
def test_slices_of_single_steps(method, faults):
    """Members of a batch reach the end of a chunk after different numbers of slices; where they are cut is no matter."""
    tokens, field = af.uniform(af.Sphere(3), n=12, seed=range(2)), af.Attention(af.Along("beta", [0.5, 20.0]))
    options = {} if isinstance(method, af.Adaptive) else {"keep": ["positions"]}
    whole = af.solve(field, tokens, 10.0, save=af.saving.Evenly(5), method=method, **options)
    faults.replace("first slice", 1.0)
    faults.replace("seconds of a slice", 0.0)
    cut = af.solve(field, tokens, 10.0, save=af.saving.Evenly(5), method=method, **options)
    assert cut.outcome.ending is Ending.FINISHED
    assert np.array_equal(cut.positions.values, whole.positions.values)
    assert cut.steps == whole.steps


def test_permuting_tokens_permutes_the_flow():
    order = np.random.default_rng(0).permutation(12)
    a, b = (
        frames(af.Attention(4.0), tokens, 2.0, save=2, method=af.Fixed(0.1))
        for tokens in (TOKENS, af.from_array(TOKENS.positions[order]))
    )
    np.testing.assert_allclose(b, a[:, order], atol=1e-13)


def test_no_surprise_compiles():
    """One plan: beta, masses, seeds, until, tolerances and steps are traced values."""

    def count(**changes):
        arguments = {
            "beta": 4.0, "seed": 0, "masses": None, "until": 2.0, "method": af.Adaptive(1e-6, 1e-8), "first": 0.1,
            "keep": ("positions", "speed"),
        } | changes  # fmt: skip
        tokens = af.Tokens(af.uniform(af.Sphere(3), n=12, seed=arguments["seed"]).positions, arguments["masses"])
        before = TRACES["count"]
        af.solve(
            Counting(af.Attention(arguments["beta"])), tokens, arguments["until"], method=arguments["method"],
            save=af.saving.LogSpaced(20, arguments["first"]), keep=arguments["keep"],
        )  # fmt: skip
        return TRACES["count"] - before

    assert count() > 0
    for changes in (
        {"beta": 9.0},
        {"seed": 3},
        {"masses": np.arange(1, 13)},
        {"until": 7.5},
        {"method": af.Adaptive(1e-4, 1e-5)},
        {"first": 0.2},
    ):
        assert count(**changes) == 0, changes
    for method in (af.Fixed, af.Layers):
        assert count(method=method(0.1), keep=()) > 0
        assert count(method=method(0.05), until=3.0, beta=1.0, keep=()) == 0


def test_velocity_compiles_once():
    field = Counting(af.Attention(1.0))
    field.velocity(TOKENS)
    field.velocity(TOKENS, at=TOKENS.positions[::-1])  # elsewhere than at the tokens is a program of its own
    before = TRACES["count"]
    for beta in (2.0, 3.0):
        Counting(af.Attention(beta)).velocity(TOKENS, beta)
        Counting(af.Attention(beta)).velocity(TOKENS, beta, at=TOKENS.positions[1:][::-1].repeat(2, axis=0)[: TOKENS.n])
    assert TRACES["count"] == before


def test_schedules():
    assert af.saving.EveryLayer().times(1.0, 0.1).tolist() == (np.arange(11) * 0.1).tolist()
    assert len(af.saving.EveryLayer(4).times(1.0, 0.1)) == 4
    times = af.saving.LogSpaced(50, 0.1).times(1000.0, None)
    assert times[0] == 0
    assert times[1] == pytest.approx(0.1)
    assert times[-1] == 1000.0
    np.testing.assert_allclose(np.diff(np.log(times[1:])), np.log(1e4) / 49, rtol=1e-9)
    # on layers: whole multiples, none twice
    layers = af.saving.LogSpaced(50, 0.01).times(10.0, 0.1) / 0.1
    np.testing.assert_allclose(layers, np.unique(np.rint(layers)), rtol=1e-15)


def test_layers_are_counted_by_integers():
    """floor(t/h) is wrong for 47 of 1,000 layers at h = 0.1; rounding is not."""
    layers = np.arange(1000)
    lost = np.flatnonzero(np.floor(layers * 0.1 / 0.1) != layers)
    assert len(lost) == 47
    first = af.advance(af.Attention(1.0), TOKENS, 0.0, 0.1, af.Layers(0.1)).positions
    for k in lost:  # the layers before and after
        for before in (k - 1, k):
            moved = af.advance(af.Attention(1.0), TOKENS, before * 0.1, (before + 1) * 0.1, af.Layers(0.1))
            np.testing.assert_array_equal(moved.positions, first)
    flow = af.solve(af.Attention(1.0), TOKENS, 100.0, method=af.Layers(0.1), save=100, keep=["positions"])
    assert flow.steps["accepted"] == 1000


def test_stop_at_consensus():
    flow = af.solve(af.Attention(1.0), TOKENS, 100.0, save=af.saving.Evenly(100), stop=af.stopping.Consensus(1e-2))
    assert flow.outcome.ending is Ending.STOPPED
    assert "consensus" in flow.outcome.message
    spreads = flow.dataset["spread"].values
    assert spreads[-1] <= 1e-2 < spreads[-2]
    assert flow.dataset.sizes["time"] < 101


def test_stop_when_still_and_by_own_condition():
    flow = af.solve(af.Attention(1.0), TOKENS, 100.0, save=af.saving.Evenly(100), stop=[af.stopping.Still(1e-3)])
    assert flow.dataset["speed"].values[-1] <= 1e-3 < flow.dataset["speed"].values[-2]
    own = af.stopping.When(lambda frame: frame.positions[:, 0, 2] > 2, "never")
    late = af.stopping.When(lambda frame: np.array(frame.time > 3), "late")
    flow = af.solve(af.Attention(1.0), TOKENS, 10.0, save=af.saving.Evenly(10), stop=[own, late])
    assert flow.time.values[-1] == 4.0
    assert "late" in flow.outcome.message


def test_members_of_a_batch_stop_on_their_own():
    tokens = af.uniform(af.Sphere(3), n=12, seed=range(2))
    field = af.Attention(af.Along("beta", [1.0, 1.5]))
    flow = af.solve(field, tokens, 100.0, save=af.saving.Evenly(100), stop=af.stopping.Consensus(1e-2))
    free = af.solve(field, tokens, 100.0, save=af.saving.Evenly(100))
    assert flow.outcome.ending is Ending.STOPPED
    stopped, last = flow.stopped_at.values, flow.time.values[-1]
    assert stopped.shape == (2, 2)
    assert last == stopped.max() > stopped.min()
    for k, at in np.ndenumerate(stopped):
        # the first frame where the condition holds, as if the member were alone; then that frame again and again
        frame = int(np.argmax(free.dataset["spread"].values[k] <= 1e-2))
        assert at == free.time.values[frame]
        assert np.array_equal(flow.positions.values[k][:frame], free.positions.values[k][:frame])
        for name in ("positions", "speed", "spread", "energy"):
            held = flow.dataset[name].values[k][frame:]
            assert np.array_equal(held, np.broadcast_to(free.dataset[name].values[k][frame], held.shape)), name


@pytest.mark.slow
def test_standing_still_apart_is_frozen():
    """Two antipodal crowds: stationary, not at consensus."""
    flow = af.solve(af.Attention(30.0), af.from_array([[1.0, 0, 0], [-1.0, 0, 0]] * 6), 50.0)
    assert flow.outcome.ending is Ending.FROZEN
    assert not flow.resolved.values.any()
    assert "round-off floor" in flow.outcome.message
    moving = af.solve(af.Attention(1.0), TOKENS, 1.0, save=af.saving.Evenly(3))
    assert moving.resolved.values.all()


@pytest.mark.slow
def test_failure_is_an_outcome():
    with pytest.raises(FlowFailed, match="near t = ") as caught:
        af.solve(Breaking(), TOKENS, 3.0, save=30, chunk=4, keep=["positions"])
    kept = caught.value.trajectory
    assert kept.outcome.ending is Ending.FAILED
    assert 0.5 < kept.time.values[-1] <= 1.0
    assert np.isfinite(kept.positions.values).all()
    flow = af.solve(Breaking(), TOKENS, 3.0, save=30, method=af.Fixed(0.1), check=False, keep=["positions"])
    assert flow.outcome.ending is Ending.FAILED


def test_progress_is_reported():
    seen = []
    af.solve(af.Attention(4.0), TOKENS, 20.0, save=200, chunk=64, on_progress=seen.append)
    assert len(seen) >= 3
    assert seen[-1].time == 20.0
    assert seen[-1].remaining == 0.0
    assert all(a.time <= b.time for a, b in itertools.pairwise(seen))
    assert seen[-1].rate > 0


def test_ctrl_c_keeps_what_was_computed():
    """The interrupt arrives while compiled code is running, and is heard before the flow ends by itself."""
    begun = threading.Event()

    def interrupt():
        if begun.wait(60):
            _thread.interrupt_main()

    thread = threading.Thread(target=interrupt, daemon=True)
    thread.start()
    flow = af.solve(
        Slow(), TOKENS, 100.0, method=af.Layers(1e-6), save=100_000, chunk=4, keep=["positions"],
        on_progress=lambda p: begun.set() if p.frames > 8 else None,
    )  # fmt: skip
    thread.join()
    assert flow.outcome.ending is Ending.INTERRUPTED
    assert 8 < flow.dataset.sizes["time"] < 100_000
    assert np.isfinite(flow.positions.values).all()


def test_ctrl_c_that_other_code_takes_for_itself():
    def swallow(progress):
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)

    flow = af.solve(
        Slow(), TOKENS, 100.0, method=af.Layers(1e-6), save=100_000, chunk=4, keep=["positions"], on_progress=swallow
    )  # fmt: skip
    assert flow.outcome.ending is Ending.INTERRUPTED
    assert flow.dataset.sizes["time"] < 100


def test_ctrl_c_before_the_first_chunk(faults):
    faults.fail("beginning of a flow", KeyboardInterrupt())
    flow = af.solve(af.Attention(1.0), TOKENS, 1.0)
    assert flow.outcome.ending is Ending.INTERRUPTED
    assert flow.dataset.sizes["time"] == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"until": 0.0}, "`until` is 0.0"),
        ({"until": np.inf}, "`until` is inf"),
        ({"until": np.nan}, "`until` is nan"),
        ({"until": "long"}, "`until` is 'long'"),
        ({"until": 1.0, "chunk": 0}, "`chunk` is 0"),
        ({"until": 1.0, "save": af.saving.EveryLayer()}, "EveryLayer"),
        ({"until": 1.0, "save": af.saving.LogSpaced(10, 2.0)}, "before `until`"),
        ({"until": 1.0, "save": af.saving.At([0.5])}, "make them equal"),
        ({"until": 1.05, "method": af.Layers(0.1)}, "whole number"),
        ({"stop": af.stopping.Consensus}, "^`stop` is the class Consensus; write Consensus\\(\\)\\.$"),
        (
            {"stop": [af.stopping.Consensus(), 1e-3]},
            "^`stop` is 0.001; give a condition such as Consensus\\(\\), or a list\\.$",
        ),
        ({"stop": "consensus"}, "^`stop` is 'consensus'; give a condition"),
        ({"method": af.Adaptive}, "^`method` is the class Adaptive; write Adaptive\\(\\)\\.$"),
        ({"method": "adaptive"}, "^`method` is 'adaptive'; give a method such as Adaptive\\(\\)\\.$"),
        ({"noise": 0.1}, "^`noise` is 0.1; give noise such as Brownian\\(0.1\\)\\.$"),
        ({"noise": af.Brownian}, "^`noise` is the class Brownian; give noise such as Brownian\\(0.1\\)\\.$"),
        ({"tokens": TOKENS.positions}, "^`tokens` is array.*; give tokens, such as from_array\\(positions\\)\\.$"),
        ({"field": af.Attention}, "^`field` is the class Attention; give a field such as Attention\\(2.0\\)\\.$"),
        ({"field": TOKENS, "tokens": af.Attention(1.0)}, "^`field` is Tokens.*; give a field"),
    ],
)
def test_bad_requests_are_refused(arguments, words):
    with pytest.raises(InvalidInput, match=words):
        af.solve(**{"field": af.Attention(1.0), "tokens": TOKENS, "until": 1.0} | arguments)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: af.Adaptive(rtol=0.0), "rtol"),
        (lambda: af.Adaptive(rtol=np.nan), "rtol"),
        (lambda: af.Fixed(-1.0), "step"),
        (lambda: af.Layers(np.inf), "step"),
        (lambda: af.saving.Evenly(0), "count"),
        (lambda: af.saving.At([2.0, 1.0]), "increasing"),
        (lambda: af.stopping.Consensus(0.0), "spread"),
    ],
)
def test_bad_methods_are_refused(make, words):
    with pytest.raises(InvalidInput, match=words):
        make()


@pytest.mark.slow
def test_euclidean_flow_is_a_linear_average():
    """beta = 0 on R^d: x' = mean, so the mean grows like e^t and differences stay."""
    tokens = af.Tokens(np.random.default_rng(0).standard_normal((12, 3)), space=af.Euclidean(3))
    flow = af.solve(af.Attention(0.0), tokens, 1.0, save=af.saving.Evenly(2))
    mean = tokens.positions.mean(axis=0)
    expected = tokens.positions + (np.e - 1) * mean
    np.testing.assert_allclose(flow.positions.values[-1], expected, atol=1e-7)
    with pytest.raises(InvalidInput, match="no energy"):
        flow.energy  # noqa: B018


def test_float32_on_request():
    single, double = (
        frames(af.Attention(4.0), tokens, 1.0, save=2, method=af.Fixed(0.1))
        for tokens in (TOKENS.astype(np.float32), TOKENS)
    )
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, double, atol=1e-5)
    with pytest.raises(InvalidInput, match="float32, and Adaptive works in float64; use Fixed"):
        af.solve(af.Attention(4.0), TOKENS.astype(np.float32), 1.0)


def test_frames_may_be_given_as_a_number_or_as_times():
    for save, times in ((2, [0.0, 0.5, 1.0]), ([0.2, 1.0], [0.0, 0.2, 1.0]), (np.array([0.0, 1.0]), [0.0, 1.0])):
        np.testing.assert_array_equal(af.solve(af.Attention(1.0), TOKENS, 1.0, save=save).time, times)
    for save in (True, "often", [[0.5, 1.0]]):
        with pytest.raises(
            InvalidInput,
            match="`save` is .*; give Evenly\\(50\\) or the like, a number of intervals, or increasing times",
        ):
            af.solve(af.Attention(1.0), TOKENS, 1.0, save=save)


def test_histograms_of_overlaps_are_labelled_by_the_middles_of_their_bins():
    flow = af.solve(af.Attention(1.0), TOKENS, 0.2, save=1, method=af.Layers(0.1), keep=["positions"])
    found = flow.overlap_histogram(bins=8)
    np.testing.assert_allclose(found["overlap"], np.arange(-0.875, 1, 0.25))
    density, edges = af.observe.overlap_histogram(flow.tokens(1), bins=8)
    np.testing.assert_allclose(found.values[1], density)
    np.testing.assert_allclose(edges, np.arange(-1, 1.01, 0.25))

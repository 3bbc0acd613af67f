"""Rules of `Fixed`: their orders, also with steps that change and fields that jump; their memory leaves no trace."""

import functools
import itertools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import attnflow as af
from attnflow.errors import InvalidInput
from attnflow.fields import Pieces
from attnflow.flows import AdamsBashforth, Ending, Euler, Rk4
from attnflow.runs import execute, load_spec, parse_spec, resume
from tests.kit import end, frames
from tests.marks import graded
from tests.outside.method import Midpoint, Smoothed

TOKENS = af.uniform(af.Sphere(3), n=6, seed=0)
VALUES = np.random.default_rng(1).standard_normal((3, 3, 3))
TIMES = [0.0, 0.25, 0.65]
JUMPING = af.Attention(2.0, value=Pieces(TIMES, VALUES))
OUTSIDE = Path(__file__).parent.parent / "outside" / "method.py"
OUR = {"rk4": (Rk4(), 4), "euler": (Euler(), 1), "adams-bashforth": (AdamsBashforth(), 2)}


RULES = {**OUR, "midpoint": (Midpoint(), 2), "smoothed": (Smoothed(), 1)}


def velocity(x, k):
    """The same field in plain NumPy: softmax attention with the value of piece k."""
    weight = np.exp(2.0 * x @ x.T)
    drive = weight @ x @ VALUES[k].T / weight.sum(axis=1, keepdims=True)
    return drive - np.sum(drive * x, axis=1, keepdims=True) * x


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def pieces_of(stops):
    """(start, end, piece) of the legs between stops."""
    return [(a, b, int(np.searchsorted(TIMES, a, side="right")) - 1) for a, b in itertools.pairwise(stops)]


@functools.cache
def exact():
    """The positions at time 1, by SciPy's DOP853 afresh in every piece."""
    x = TOKENS.positions.ravel()
    for a, b, k in pieces_of([*TIMES, 1.0]):
        rate = lambda _, y, k=k: velocity(unit(y.reshape(-1, 3)), k).ravel()  # noqa: E731
        x = solve_ivp(rate, (a, b), x, "DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    return unit(x.reshape(-1, 3))


@graded("name", RULES)
def test_orders(name):
    """Halving the step divides the error by 2^order: across jumps, with stops that no step divides.

    The next term of the error changes the observed order by about h times rates of 3, so 0.3 at most.
    """
    rule, order = RULES[name]

    def error(h):
        return np.abs(end(JUMPING, TOKENS, 1.0, save=[0.1, 0.47, 1.0], method=af.Fixed(h, rule)) - exact()).max()

    coarse, fine = (error(h) for h in ((0.04, 0.02) if order > 2 else (0.01, 0.005)))
    assert abs(np.log2(coarse / fine) - order) < 0.35, (coarse, fine)


@pytest.mark.parametrize("name", ["euler", "adams-bashforth"])
def test_against_plain_numpy(name):
    """The formulas written again: unequal steps, one start for the flow and one for every jump, none at saved times."""
    x, h, last, before = TOKENS.positions, 0.06, np.inf, np.zeros((6, 3))
    stops = np.array([0.0, 0.1, 0.25, 0.47, 0.65, 1.0])
    for start, stop, k in pieces_of(stops):
        if start in TIMES:
            last = np.inf
        count = int(np.ceil((stop - start) / h - 1e-9))
        for _ in range(count):
            step, now = (stop - start) / count, velocity(x, k)
            bend = step / last / 2 if name == "adams-bashforth" else 0.0
            x, before, last = unit(x + step * (now + bend * (now - before))), now, step
    found = end(JUMPING, TOKENS, 1.0, save=[0.1, 0.47, 1.0], method=af.Fixed(h, OUR[name][0]))
    np.testing.assert_allclose(found, x, atol=1e-14)


@graded("name", ["adams-bashforth", "smoothed"])
def test_memory_leaves_no_trace(name, faults):
    """Chunks, slices of single steps, continuing and cancelling: equal bit by bit, in a batch."""
    method, batch = af.Fixed(0.04, RULES[name][0]), af.uniform(af.Sphere(3), n=6, seed=range(2))
    run = {"save": af.saving.Evenly(6), "method": method, "keep": ["positions"], "chunk": 2}
    whole = af.solve(JUMPING, batch, 1.5, **run)
    first = af.solve(JUMPING, batch, 0.75, **(run | {"save": 3}))
    assert np.array_equal(first.continued(1.5, save=3).positions.values, whole.positions.values)
    faults.replace("first slice", 1.0)
    faults.replace("seconds of a slice", 0.0)
    sliced = af.solve(JUMPING, batch, 1.5, **(run | {"chunk": 16}))
    assert np.array_equal(sliced.positions.values, whole.positions.values)
    seen = []
    cut = af.solve(JUMPING, batch, 1.5, **run, on_progress=seen.append, cancel=lambda: len(seen) > 5)
    assert cut.outcome.ending is Ending.INTERRUPTED
    assert np.array_equal(cut.continued().positions.values, whole.positions.values)
    alone = af.solve(JUMPING, batch.member(seed=1), 1.5, **run)
    np.testing.assert_allclose(alone.positions.values, whole.positions.values[1], atol=1e-13)


@pytest.mark.slow
def test_backwards_stops_and_float32():
    there = af.advance(JUMPING, TOKENS, 0.0, 1.0, af.Fixed(0.002, AdamsBashforth()))
    back = af.advance(JUMPING, there, 1.0, 0.0, af.Fixed(0.002, AdamsBashforth()))
    # of order h^2 with rates of about 3, as far back again; a stage on the wrong side of a jump costs h
    assert np.abs(back.positions - TOKENS.positions).max() < 1e-4
    method = af.Fixed(0.02, AdamsBashforth())
    single, twice = (
        frames(JUMPING, tokens, 1.0, save=2, method=method) for tokens in (TOKENS.astype(np.float32), TOKENS)
    )
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, twice, atol=2e-5)
    # a member that is held in one place leaves the memory of the other one alone
    batch = af.uniform(af.Sphere(3), n=6, seed=range(2))
    calm, run = af.Attention(1.0), {"save": 24, "method": method, "keep": ["positions", "spread"]}
    stopped = af.solve(calm, batch, 12.0, **run, stop=af.stopping.Consensus(0.1))
    free = af.solve(calm, batch, 12.0, **run)
    assert len(set(stopped.stopped_at.values)) == 2
    for k, at in enumerate(stopped.stopped_at.values):
        frame = int(np.argmax(free.time.values == at))
        assert np.array_equal(stopped.positions.values[k, : frame + 1], free.positions.values[k, : frame + 1])


@pytest.mark.slow
def test_derivatives_pass_the_memory():
    """Forward mode, reverse mode and central differences (h^2 times a third derivative, eps/h)."""

    def loss(values):
        field = af.Attention(2.0, value=Pieces(TIMES, values))
        moved = af.advance(field, TOKENS, 0.0, 1.0, af.Fixed(0.1, AdamsBashforth())).positions
        return jnp.sum(jnp.sin(jnp.asarray(moved)))

    shift = np.zeros_like(VALUES)
    shift[1, 0, 2] = 1.0

    @af.in_float64
    @jax.jit
    def both(values):
        return (*jax.jvp(loss, (values,), (shift,)), jax.grad(loss)(values)[1, 0, 2])

    slope = (both(VALUES + 1e-5 * shift)[0] - both(VALUES - 1e-5 * shift)[0]) / 2e-5
    _, forward, reverse = both(VALUES)
    assert abs(reverse - slope) < 1e-8
    assert abs(reverse - forward) < 1e-13


@pytest.mark.slow
def test_noise_with_memory():
    """kappa = 0 is the flow without noise, bit by bit, and a seed fixes the path."""
    method = af.Fixed(0.05, AdamsBashforth())
    quiet, loud, again, none = (
        frames(af.Attention(2.0), TOKENS, 1.0, save=4, method=method, noise=noise)
        for noise in (af.Brownian(0.0), af.Brownian(0.1), af.Brownian(0.1), None)
    )
    assert np.array_equal(quiet, none)
    assert np.array_equal(loud, again)
    assert np.abs(loud - none).max() > 0.1


SPEC = """
name = "rule"
[tokens]
name = "uniform"
n = 6
space = { name = "sphere", dim = 3 }
[field]
name = "attention"
beta = 2.0
[solve]
until = 1.0
save = { name = "evenly", count = 8 }
method = { name = "fixed", step = 0.02, rule = { name = "NAME" } }
"""


@pytest.mark.slow
def test_a_rule_of_a_file_survives_a_crash(tmp_path, faults):
    """A run of the user's file that died after a chunk goes on to the same numbers; the memory is in the checkpoint."""
    (tmp_path / "run.toml").write_text(SPEC.replace("NAME", "smoothed"))
    spec = load_spec(tmp_path / "run.toml", plugins=[OUTSIDE])
    assert spec.table["solve"]["method"]["rule"] == {"name": "smoothed", "share": 0.5}
    faults.replace("frames of a chunk", 4)
    _, whole = execute(spec, tmp_path / "whole")
    chunks = []

    def dying(self, *arguments):
        commit(self, *arguments)
        chunks.append(1)
        raise KeyboardInterrupt

    commit = faults.replace("commit to a folder", dying)
    execute(spec, tmp_path / "cut")
    faults.replace("commit to a folder", commit)
    assert chunks
    _, flow = resume(tmp_path / "cut", plugins=[OUTSIDE])
    assert np.array_equal(flow.positions.values, whole.positions.values)


def test_specifications_and_refusals():
    made = parse_spec(SPEC.replace("NAME", "adams-bashforth")).work.method
    assert isinstance(made.rule, AdamsBashforth)
    plain = parse_spec(SPEC.replace(', rule = { name = "NAME" }', ""))
    assert plain.table["solve"]["method"]["rule"] == {"name": "rk4"}
    with pytest.raises(InvalidInput, match="'smoothed'.*plugin"):
        parse_spec(SPEC.replace("NAME", "smoothed"))
    with pytest.raises(InvalidInput, match="`rule` is the class Euler; write Euler()"):
        af.Fixed(0.1, Euler)

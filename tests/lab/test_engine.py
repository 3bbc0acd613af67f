"""The engine of the page against the library and against exact laws."""

import functools
import itertools
import math

import numpy as np
import pytest

import attnflow as af
from attnflow import theory
from tests import kit
from tests.lab import v8
from tests.marks import graded

N, UNTIL = 24, 5.0
MATRIX = np.array([[1.0, 0.5, -0.2], [-0.3, 0.8, 0.1], [0.2, 0.0, -0.6]])
CASES = (  # d, beta, V, exponent of the masses, seed, sum
    (2, 4.0, np.eye(2), 0.0, 1, "circle"),
    (2, 30.0, -np.eye(2), 1.0, 2, "circle"),
    (3, 9.0, np.eye(3), 0.0, 3, "harmonics"),
    (3, 1.0, MATRIX, 0.5, 4, "harmonics"),
    (3, 100.0, np.eye(3), 0.0, 5, "pairs"),
)
FLOW = """(setting, t) => {
  const engine = new modules.engine.Engine(setting);
  while (!engine.towards(t));
  const { energy, count } = engine.frame(t);
  return { x: engine.stepper.at(t), energy, count };
}"""


def setting(**given):
    plain = {
        "d": 3,
        "n": N,
        "seed": 0,
        "start": "uniform",
        "jitter": 0,
        "zipf": 0,
        "beta": 4.0,
        "model": "SA",
        "causal": False,
        "value": None,
        "kappa": 0,
        "tol": 1e-9,
    }
    return plain | given


@functools.cache
def reference(model, causal):
    """Positions (case, token, 3), energies and counts by the library: all cases are one batch on S^2.

    A circle in S^2 stays what it is as long as V maps its plane to itself, so both dimensions share a program.
    """
    starts = [af.uniform(af.Sphere(d), n=N, seed=seed).positions for d, _, _, _, seed, _ in CASES]
    positions = np.stack([np.pad(x, ((0, 0), (0, 3 - x.shape[1]))) for x in starts])
    masses = np.stack([np.arange(1, N + 1) ** -zipf for *_, zipf, _, _ in CASES])
    values = np.stack([np.pad(v, ((0, 3 - len(v)), (0, 3 - len(v)))) for _, _, v, *_ in CASES])
    betas = af.Along("case", [beta for _, beta, *_ in CASES])
    tokens = af.Tokens(positions, masses, dims=("case",))
    mask = af.Causal() if causal else None
    field = af.Attention(betas, value=af.Along("case", values), normaliser=model, mask=mask)
    end = kit.end(field, tokens, UNTIL, method=af.Adaptive(rtol=1e-11, atol=1e-12))
    energies = af.observe.energy(af.Tokens(end, masses, dims=("case",)), betas)
    counts = [
        af.observe.clusters(af.Tokens(x, m), scale=af.observe.cluster_scale(beta)).count
        for x, m, (_, beta, *_) in zip(end, masses, CASES, strict=True)
    ]
    return end, np.asarray(energies), counts


@pytest.mark.parametrize("causal", [False, True])
@graded("model", ["SA", "USA0"])
def test_flows_are_those_of_the_library(model, causal):
    """Twenty settings at t = 5.

    With an error of 1e-9 a step and a few hundred steps, which the flow multiplies by up to e^(5 lambda), lambda < 1,
    positions agree to 1e-7. The energy has a gradient of size m_i at token i, of which most cancels: 1e-9.
    """
    ends, energies, counts = reference(model, causal)
    for (d, beta, value, zipf, seed, name), end, energy, count in zip(CASES, ends, energies, counts, strict=True):
        matrix = None if np.array_equal(value, np.eye(d)) else value.ravel().tolist()
        dynamics = {"beta": beta, "model": model, "causal": causal, "value": matrix, "sum": name}
        got = v8.call(FLOW, setting(d=d, zipf=zipf, seed=seed, **dynamics), UNTIL)
        assert np.abs(np.reshape(got["x"], (N, d)) - end[:, :d]).max() < 1e-7
        assert abs(got["energy"] - energy) < 1e-9
        assert got["count"] == count


@pytest.mark.parametrize("seed", [0, 7, 2**31 + 11])
@pytest.mark.parametrize("d", [2, 3])
def test_starts_are_those_of_the_library(d, seed):
    """About 1 % of normal numbers leave the fast path of the ziggurat, so 6,000 of them try every branch."""
    got = v8.call("modules.starts.positions", setting(d=d, n=3000, seed=seed))
    np.testing.assert_allclose(
        np.reshape(got, (-1, d)), af.uniform(af.Sphere(d), n=3000, seed=seed).positions, atol=1e-14
    )
    ring = v8.call("modules.starts.positions", setting(d=d, start="ring", jitter=0.1, seed=seed))
    expected = af.tokens.ring(af.Sphere(d), n=N, jitter=0.1, seed=seed).positions
    np.testing.assert_allclose(np.reshape(ring, (-1, d)), expected, atol=1e-14)


STEPS = """(angle, until, count) => {
  const setting = { d: 2, beta: 4, model: "SA", causal: false, value: null, tol: 1e-10 };
  const field = new modules.field.Field(2, Float64Array.of(0.5, 0.5), setting);
  const x = Float64Array.of(1, 0, Math.cos(angle), Math.sin(angle));
  const stepper = new modules.steps.Stepper(field, x, 2, { t: 0, tol: Infinity, kappa: 0, random: null });
  for (let k = 0; k < count; k++) {
    stepper.h = until / count;
    stepper.step(until);
  }
  return modules.clusters.angleBetween(stepper.x, 0, stepper.x, 1, 2);
}"""


def test_steps_have_order_three():
    """Two tokens, whose angle theory knows: half the step leaves an eighth of the error, to the next order in h."""
    start, end = 2.0, 1.2
    until = float(theory.merging.merge_time(start, 4.0, until=end))
    errors = [abs(v8.call(STEPS, start, until, count) - end) for count in (80, 160, 320)]
    ratios = [math.log2(a / b) for a, b in itertools.pairwise(errors)]
    assert errors[-1] < 2e-6
    assert all(2.8 < ratio < 3.2 for ratio in ratios)


VELOCITY = """(setting) => {
  const [x, m] = [modules.starts.positions(setting), modules.starts.masses(setting)];
  const field = new modules.field.Field(setting.d, m, setting);
  const v = new Float64Array(x.length);
  field.velocity(x, v);
  return { x, v, m };
}"""


@pytest.mark.parametrize("name", ["pairs", "harmonics"])
def test_unnormalised_attention_has_no_angular_momentum(name):
    """sum_i m_i x_i x v_i is a sum of m_i m_j K x_i x x_j over pairs, which cancel: 0 to the accuracy 1e-11 of sums."""
    got = v8.call(VELOCITY, setting(model="USA0", beta=9.0, zipf=0.7, sum=name))
    x, v = (np.reshape(got[key], (N, 3)) for key in "xv")
    assert np.abs(np.asarray(got["m"]) @ np.cross(x, v)).max() < 1e-11
    assert np.abs(np.sum(x * v, axis=1)).max() < 1e-15


def test_frames_stay_on_the_sphere_and_energy_rises():
    """Norms are those of float32, in which frames travel; the energy of SA never falls by more than its error."""
    frames = v8.call(
        """(setting) => {
          const engine = new modules.engine.Engine(setting);
          return [0, 0.5, 1, 2, 4, 8, 16, 32].map((t) => {
            while (!engine.towards(t));
            return engine.frame(t);
          });
        }""",
        setting(n=60, beta=9.0, tol=1e-4),
    )
    for frame in frames:
        norms = np.linalg.norm(np.reshape(frame["positions"], (60, 3)), axis=1)
        assert np.abs(norms - 1).max() < 3e-7
        assert sum(frame["overlaps"]) * 2 / len(frame["overlaps"]) == pytest.approx(1)
    energies = [frame["energy"] for frame in frames]
    assert all(b > a for a, b in itertools.pairwise(energies))
    assert frames[-1]["condensed"]


MOMENT = """(setting, paths, t) => {
  const found = [];
  for (let path = 0; path < paths; path++) {
    const engine = new modules.engine.Engine({ ...setting, seed: setting.seed + path });
    const start = engine.stepper.x.slice();
    while (!engine.towards(t));
    const x = engine.stepper.at(t);
    let sum = 0;
    for (let k = 0; k < x.length; k++) sum += x[k] * start[k];
    found.push(sum / setting.n);
  }
  return found;
}"""


def test_noise_is_brownian_motion():
    """Without attention, V = 0, E <x_t, x_0> = e^(-2 kappa t) on S^2.

    Five standard errors: the test fails by chance once in 10^6. The steps change it by about kappa^2 h t = 10^-3.
    """
    kappa, t = 0.3, 0.5
    got = v8.call(MOMENT, setting(n=60, kappa=kappa, value=[0] * 9, seed=100, tol=1e-3), 30, t)
    error = np.std(got, ddof=1) / math.sqrt(len(got))
    assert abs(np.mean(got) - math.exp(-2 * kappa * t)) < 5 * error + 1e-3


@pytest.mark.slow
def test_noise_with_attention_has_the_moments_of_the_library():
    """E <x_t, x_0> of iid starts, by 60 paths here and 60 there, to five standard errors and 5e-3 for the steps."""
    paths, kappa, t = 60, 0.1, 1.0
    got = v8.call(MOMENT, setting(kappa=kappa, seed=200, tol=1e-3), paths, t)
    tokens = af.uniform(af.Sphere(3), n=N, seed=range(300, 300 + paths))
    noise = af.Brownian(kappa=kappa, seed=af.Along("seed", range(300, 300 + paths)))
    end = kit.end(af.Attention(4.0), tokens, t, noise=noise, method=af.Layers(0.02))
    expected = np.mean(np.sum(end * tokens.positions, axis=-1), axis=-1)
    error = math.hypot(np.std(got, ddof=1), np.std(expected, ddof=1)) / math.sqrt(paths)
    assert abs(np.mean(got) - np.mean(expected)) < 5 * error + 5e-3

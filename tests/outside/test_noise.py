"""A noise from outside the package (`tests/outside/noise.py`): its law, and all that a noise of the package can do."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.runs import execute, load_spec, resume
from tests.marks import graded
from tests.outside.noise import Tumble

FILE = Path(__file__).parent / "noise.py"
FIVE = af.uniform(af.Sphere(3), n=5, seed=2)
PUSHED = af.Attention(2.0) + af.Perceptron(np.diag([1.0, 0.5, -0.5]))
"""A field that is not in the way of a test of resumption, of batches and of precision."""
SPEC = """
[tokens]
name = "uniform"
n = 5
seed = 2
space = { name = "sphere", dim = 3 }
[field]
name = "attention"
beta = 2.0
[solve]
until = 2.0
chunk = 3
save = { name = "evenly", count = 8 }
method = { name = "layers", step = 0.05 }
noise = { name = "tumble", kappa = 0.3, seed = [4, 9] }
"""


def still(d):
    return af.Perceptron(np.eye(d), outer=np.zeros((d, d)))


@graded("method", [af.Fixed(0.01), pytest.param(af.Heun(0.02), marks=pytest.mark.slow)])
def test_it_turns_all_tokens_together_and_each_is_brownian_motion(method):
    """E <x(T), x(0)> = e^(-(d-1) kappa |m|^2 T), and overlaps are kept: with r = 2 kappa |m|^2, r T h on average.

    One step changes an overlap by r h times a number of size 1, so all of them by r sqrt(T h) at random. The sample has
    one independent mean of cosines per seed (tokens turn together).
    """
    kappa, until, seeds = 0.5, 0.8, 800
    size = float(np.sum(FIVE.positions.mean(axis=0) ** 2))
    noise = Tumble(kappa, af.Along("seed", range(seeds)))
    x = af.solve(still(3), FIVE, until, save=1, method=method, noise=noise, keep=["positions"]).positions.values
    kept = np.einsum("sid,sjd->sij", x[:, -1], x[:, -1]) - FIVE.positions @ FIVE.positions.T
    cosine = np.einsum("snd,snd->sn", x[:, 0], x[:, -1]).mean(axis=1)
    rate = 2 * kappa * size
    h = float(method.step)
    assert np.abs(kept.mean(axis=0)).max() < 4 * kept.std(axis=0).max() / np.sqrt(seeds) + rate * until * h
    assert kept.std() < rate * np.sqrt(until * h)
    error = 4 * cosine.std() / np.sqrt(seeds)
    assert abs(cosine.mean() - np.exp(-rate * until)) < error + rate * until * h
    assert abs(np.exp(-2 * kappa * until) - np.exp(-rate * until)) > 2 * error  # the factor |m|^2 is seen


@pytest.mark.slow
def test_it_is_a_word_of_specifications_and_its_runs_resume_bit_by_bit(tmp_path):
    (tmp_path / "spec.toml").write_text(SPEC)
    spec = load_spec(tmp_path / "spec.toml", plugins=[FILE])

    def dying(progress):
        raise KeyboardInterrupt

    whole = execute(spec, tmp_path / "whole")[1].dataset.load()
    part = execute(spec, tmp_path / "cut", on_progress=dying)[1]
    assert part.outcome.ending.value == "interrupted"
    assert (part.dataset.sizes["time"], whole.sizes["time"]) == (3, 9)  # one chunk is on disk
    again = resume(tmp_path / "cut", plugins=[FILE])[1].dataset.load()
    assert whole["positions"].dims == ("seed", "time", "token", "dim")
    for name in whole:
        assert np.array_equal(again[name].values, whole[name].values), name
    noise = Tumble(0.3, af.Along("seed", [4, 9]))
    mine = af.solve(af.Attention(2.0), FIVE, 2.0, method=af.Layers(0.05), save=8, chunk=3, noise=noise)
    assert np.array_equal(mine.positions.values, whole["positions"].values)


@graded("method", [af.Layers(0.1), af.Fixed(0.07), af.Alternate(0.1)], ids=lambda m: type(m).__name__)
def test_a_flow_that_goes_on_is_that_of_one_call(method):
    given = {"field": PUSHED, "tokens": FIVE, "method": method, "noise": Tumble(0.3, 1)}
    times = np.array([0.3, 0.8, 1.0])
    whole = af.solve(**given, until=1.0, save=times).positions.values
    first = af.solve(**given, until=0.3, save=times[:1])
    assert np.array_equal(first.continued(1.0, save=times[1:]).positions.values, whole)
    pure = af.advance(PUSHED, FIVE, 0.0, 0.3, method, noise=Tumble(0.3, 1)).positions
    np.testing.assert_allclose(pure, first.positions.values[-1], atol=1e-13)


@pytest.mark.long
def test_prompts_of_unequal_length_seeds_and_float32_in_one_batch():
    """A member of the batch is the prompt alone with its seed, and absent rows stay."""
    short = af.Tokens(FIVE.positions[:3], space=FIVE.space)
    both = af.stack("prompt", [0, 1], [short, FIVE])
    noise = Tumble(0.3, af.Along("seed", range(64)))
    x = af.solve(PUSHED, both, 0.5, method=af.Layers(0.1), noise=noise, save=1).positions.transpose(
        "seed", "prompt", "time", "token", "dim"
    ).values  # fmt: skip
    assert x.shape == (64, 2, 2, 5, 3)
    assert len(np.unique(np.round(x[:, 1, 1, 0, 0], 12))) == 64
    for prompt, alone in enumerate((short, FIVE)):
        one = af.solve(PUSHED, alone, 0.5, method=af.Layers(0.1), noise=Tumble(0.3, 7), save=1).positions.values
        np.testing.assert_allclose(x[7, prompt][:, : alone.n], one, atol=1e-13)
    assert np.array_equal(x[:, 0, 0, 3:], x[:, 0, 1, 3:])
    fine = af.solve(PUSHED, FIVE, 0.5, method=af.Layers(0.1), noise=Tumble(0.3, 7), save=1, keep=["positions"])
    low = af.solve(
        PUSHED, FIVE.astype(np.float32), 0.5, method=af.Layers(0.1), noise=Tumble(0.3, 7), save=1, keep=["positions"]
    )
    assert low.positions.dtype == np.float32
    assert np.abs(np.linalg.norm(low.positions.values, axis=-1) - 1).max() < 4e-7
    # other Gaussian numbers, which are drawn in float32, so another path of the same size
    size = [np.linalg.norm(flow.positions.values[1] - flow.positions.values[0]) for flow in (low, fine)]
    assert 0.2 < size[0] / size[1] < 5


@pytest.mark.slow
def test_derivatives_with_respect_to_kappa():
    """Of a mean over 32 seeds, in both modes, against central differences: h^2 and eps/h."""

    def mean(kappa):
        def one(seed):
            moved = af.advance(PUSHED, FIVE, 0.0, 0.5, af.Layers(0.1), noise=Tumble(kappa, seed))
            return jnp.sum(moved.positions[:, 0])

        return jnp.mean(jax.vmap(one)(jnp.arange(32)))

    reverse, forward = af.in_float64(jax.jit(lambda k: (jax.grad(mean)(k), jax.jacfwd(mean)(k))))(0.3)
    value, h = af.in_float64(jax.jit(mean)), 1e-5
    np.testing.assert_allclose(reverse, forward, rtol=1e-11)
    np.testing.assert_allclose(reverse, (value(0.3 + h) - value(0.3 - h)) / (2 * h), rtol=1e-7)

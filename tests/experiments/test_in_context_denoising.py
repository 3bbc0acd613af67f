"""Denoising in context: losses of isotropic layers by hand, the mirror image, and what claims say of made-up weights."""

import dataclasses

import jax
import numpy as np
import xarray as xr

import attnflow as af
from attnflow_gallery import in_context_denoising as experiment
from attnflow_gallery.in_context_denoising import compare, simulate
from tests.experiments.mutants import mutation

CORE = dataclasses.replace(experiment.QUICK, dim=3, contexts=(6, 8), test=64, betas=(1.0, 1.1), values=(0.9, 1.0))
RNG = np.random.default_rng(0)


def part(beta, v, loss):
    """Weights of two seeds: random, then Q^T K = beta I, V = v I."""
    start, end = RNG.standard_normal((3, 2, 3, 3)), np.zeros((3, 2, 3, 3))
    end[0], end[1], end[2] = beta * np.eye(3), np.eye(3), v * np.eye(3)
    names, dims = ("weight_features_query", "weight_features_key", "weight_value"), ("mark", "seed", "a", "b")
    rows = {name: (dims, np.stack([a, b])) for name, a, b in zip(names, start, end, strict=True)}
    return xr.Dataset(rows | {"test_loss": (("mark", "seed"), np.full((2, 2), loss))}, {"seed": [0, 1]})


def made_up():
    grids = {f"grid-{name}": simulate.grid(name, CORE) for name in simulate.TASKS}
    best = [float(grids[f"grid-{name}"]["loss"].min()) for name in simulate.TASKS]
    betas = [1.1 / sigma**2 for sigma in CORE.noises]
    return grids | {
        "train-centres": part(betas[0], 0.98, best[0]),
        "train-great-sphere": part(-betas[1], -0.98, 1.01 * best[1]),  # the mirror image
    }


def test_claims_can_hold_and_fail():
    data = made_up()
    found = compare.claims(CORE, data)
    assert [claim.holds for claim in found[:5]] == [True] * 5
    best = float(data["grid-centres"]["loss"].min())
    for wrong, lost in (
        (part(8.0, 1.0, best), 0),
        (part(-4.0, -1.0, best), 1),
        (part(np.diag([2.4, 4.4, 6.2]), 1.0, best), 2),
        (part(4.0, 1.0, 2 * best), 4),  # two of four seeds are left
    ):
        verdicts = [claim.holds for claim in compare.claims(CORE, data | {"train-centres": wrong})]
        assert [k for k in range(5) if not verdicts[k]] == [lost]


def test_contexts_that_are_turned_around_are_found_out():
    """The answer points away from the target: then the mirror image is the better layer, by more than a factor of 2."""
    with mutation(experiment, "contexts turned around").applied():
        wrong = simulate.grid("centres", CORE)
    assert (wrong["loss"] > 2 * wrong["mirror"]).all()
    verdicts = [claim.holds for claim in compare.claims(CORE, made_up() | {"grid-centres": wrong})]
    assert not verdicts[-1]


def test_the_bound_of_the_anisotropy():
    """diag(1/9, 1, 1, 1): the mean is 7/9, the rest has the norm sqrt(3 (2/9)^2 + (2/3)^2)."""
    hand = np.sqrt(3 * (2 / 9) ** 2 + (2 / 3) ** 2) / np.sqrt(3 + 1 / 81) / 2
    np.testing.assert_allclose(compare.flat(4), hand, rtol=1e-14)


def test_the_grid_is_the_loss_of_isotropic_layers():
    few = dataclasses.replace(CORE, test=4)
    grid, (task, prompts) = simulate.grid("great-sphere", few), simulate.tested("great-sphere", few)

    def losses(beta, v):
        field = af.Attention(beta, value=v * np.eye(3))
        every = [task.loss(field, jax.tree.map(lambda a, k=k: a[k], prompts)) for k in range(4)]
        return np.array([float(one) for one in every])

    beta = float(grid["beta"][1])
    mine, mirror = (af.in_float64(losses)(sign * beta, sign * 0.9) for sign in (1.0, -1.0))
    np.testing.assert_allclose(grid["loss"].values[1, 0], mine.mean(), rtol=1e-12)
    np.testing.assert_allclose(grid["difference"].values[1, 0], (mirror - mine).mean(), atol=1e-12)

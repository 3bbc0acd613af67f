"""Energy ascent: the core holds, a slightly wrong beta is found out, and NumPy finds the same energy."""

import dataclasses

import numpy as np
import pytest

from attnflow.experiments import Study
from attnflow.spaces import Sphere
from attnflow.tokens import uniform
from attnflow_gallery import energy_ascent
from attnflow_gallery.energy_ascent import compare, simulate
from tests.experiments.mutants import noticed

FEW = dataclasses.replace(energy_ascent.QUICK, betas=(4.0,), draws=1, frames=32, states=100, descent=4)


@pytest.mark.long
def test_few_states_hold_and_a_slightly_wrong_beta_is_found_out():
    """One part in a thousand: the integral along flows and the rates of heads notice."""
    killed = noticed(energy_ascent, FEW, "beta 0.1 % larger", "SA-beta*", "SA-2", "USA0-2")
    assert any(claim.startswith("dE/dt of heads") for claim in killed)


@pytest.mark.slow
def test_the_energy_is_what_numpy_makes_of_it(tmp_path):
    """At the start: (1/2 beta) sum_ij (e^(beta (<x_i, x_j> - 1)) - 1)/n^2."""
    x = np.asarray(uniform(Sphere(FEW.d), n=FEW.n, seed=0).positions)
    expected = np.mean(np.expm1(4.0 * (x @ x.T - 1))) / 8.0
    part = Study(tmp_path / "parts").part("SA", simulate._flow(dataclasses.replace(FEW, frames=4), "SA", 4.0))
    assert float(part["level"][0, 0]) == pytest.approx(expected, rel=1e-12)


def test_simpsons_rule_is_exact_for_cubics():
    t = np.linspace(0, 2, 9)
    np.testing.assert_allclose(compare.simpson(4 * t**3, 0.25), t[::2] ** 4, atol=1e-12)


@pytest.mark.long
def test_a_descending_state_descends_in_numpy(tmp_path):
    """Euler's method in NumPy from the stored start: the energy of two softmax heads falls at first."""
    data = energy_ascent.run(FEW, Study(tmp_path / "parts"))
    part = data["descent-SA"]
    states = simulate.states(FEW, 2, FEW.sizes[0], (2, 0))
    x = part["positions"].values[0]
    (k,) = np.flatnonzero(np.abs(states[1] - x).max(axis=(1, 2)) < 1e-12)
    matrices, masses = states[0][k], states[2][k]

    def step(x, h):
        velocity = 0
        for matrix in matrices:
            weights = masses * np.exp(simulate.BETA * (x @ matrix @ x.T - 1))
            velocity = velocity + weights @ x @ matrix / weights.sum(axis=1, keepdims=True)
        x = x + h * (velocity - np.sum(velocity * x, axis=1, keepdims=True) * x)
        return x / np.linalg.norm(x, axis=1, keepdims=True)

    for _ in range(1000):
        x = step(x, float(part["time"][1]) / 1000)
    np.testing.assert_allclose(x, part["positions"].values[1], atol=0.02)
    assert part["level"].values[1] < part["level"].values[0]

"""Hyperplanes: the quick version holds, the example is that of an independent program, wrong physics is found out."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from attnflow.experiments import Study
from attnflow.experiments.gallery import hyperplanes
from attnflow.fields import Attention


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return hyperplanes.run(hyperplanes.QUICK, Study(tmp_path_factory.mktemp("hyperplanes")))


def failures(data):
    return [claim.statement for claim in hyperplanes.claims(hyperplanes.QUICK, data) if not claim.holds]


def test_the_quick_version_holds(data):
    assert len(hyperplanes.claims(hyperplanes.QUICK, data)) == 7
    assert failures(data) == []


def test_the_example_is_that_of_an_independent_program(data):
    """LSODA to t = 12 has -1.992221 and 2.307841 for a left eigenvector of norm 1; the extremes stand still by t = 7."""
    y = data["R2"]["coordinate"].values[-1, 0] / math.hypot(1, 0.3 / 1.4)
    np.testing.assert_allclose([y.min(), y.max()], [-1.992221, 2.307841], atol=2e-6)


def test_the_exact_solutions_solve_their_equations():
    """SciPy, rtol 1e-11: two clusters in R^3 and a token of no mass between them, as one system of x."""
    value = hyperplanes.draw_values(3, 3, np.random.default_rng(0))[2]
    phi = hyperplanes.leading(value)
    np.testing.assert_allclose(value @ phi, phi, atol=1e-13)

    def pair(t, x):
        return value @ x * math.tanh(x @ x)

    start, until = 0.8 * phi + np.array([0.1, -0.3, 0.2]), 3.0
    end = solve_ivp(pair, (0, until), start, rtol=1e-11, atol=1e-13).y[:, -1]
    lag = hyperplanes.delay(value, start, until)
    np.testing.assert_allclose(expm((until - lag) * value) @ start, end, rtol=1e-8)

    def three(t, state):  # positions along phi, and the log of that of the token in the middle
        return [state[0] * math.tanh(state[0] ** 2), state[0] ** 2]

    state = solve_ivp(three, (0, 2.5), [0.6, 0.0], rtol=1e-11, atol=1e-13).y[:, -1]
    growth, size = hyperplanes.departure(0.6, np.array([2.5]))
    np.testing.assert_allclose([size[0], growth[0] + 2.5], [math.log(state[0]), state[1]], rtol=1e-8)


def test_a_slightly_wrong_beta_is_found_out(data, tmp_path, monkeypatch):
    monkeypatch.setattr(hyperplanes, "Attention", lambda beta, **rest: Attention(beta * 1.001, **rest))
    found = failures(hyperplanes.run(hyperplanes.QUICK, Study(tmp_path)))
    assert ["two clusters" in found[0], "middle plane" in found[1]] == [True, True]


@pytest.mark.slow
def test_an_eigenvalue_that_is_not_simple_is_found_out(data, tmp_path, monkeypatch):
    """V = I in place of all random V but that of the example: more than three values of a coordinate."""

    def same(count, dim, rng):
        return np.stack([hyperplanes.EXAMPLE, *[np.eye(dim)] * (count - 1)])

    monkeypatch.setattr(hyperplanes, "draw_values", same)
    found = failures(hyperplanes.run(hyperplanes.QUICK, Study(tmp_path)))
    assert ["number of hyperplanes" in found[0], "neither the first nor the last" in found[1]] == [True, True]

"""Euler limit: the core holds, a slightly wrong beta is found out, and layers written out in NumPy agree."""

import dataclasses

import numpy as np
import pytest

import attnflow as af
from attnflow.experiments import Study, kill_matrix
from attnflow_gallery import euler_limit
from attnflow_gallery.euler_limit import reference, simulate
from tests.experiments.mutants import changed, mutation
from tests.kit import end

SMALL = dataclasses.replace(
    euler_limit.QUICK, layers=(25, 50, 100), steps=(8, 16, 32), random_layers=(25, 50), networks=40
)


@pytest.mark.long
def test_small_networks_hold_and_a_wrong_beta_is_found_out():
    """It leaves an error that no number of layers or steps removes."""
    found = kill_matrix(euler_limit, SMALL, [mutation(euler_limit, "beta 10 % larger")])
    assert [row == (True,) for row in found.killed] == [True, True, False, False, True]


def test_the_layers_are_what_numpy_makes_of_them(tmp_path):
    """An attention network of 25 layers, written out: N(x + h A)."""
    small = dataclasses.replace(SMALL, layers=(25,))
    limit = simulate._limits(small)
    with changed(simulate, "NAMES", ("N(x + hA)",)):
        error = simulate._layers(small, limit, Study(tmp_path))["error"].values[0, 0]
    x = np.asarray(simulate.start(small).positions)
    for k in range(25):
        kernel = np.exp(small.beta * x @ x.T)
        x = x + small.until / 25 * kernel @ x / kernel.sum(axis=1, keepdims=True)
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        assert error[k + 1] == pytest.approx(np.linalg.norm(x - limit["x_attention"].values[k + 1]), rel=1e-9)


def test_the_first_error_of_a_linear_equation_is_known():
    """x' = a x: (1 + ah)^(t/h) = e^(at) (1 - a^2 t h/2 + ...)."""
    times, a = np.linspace(0.0, 2.0, 5), 0.7
    path, first = reference.first_error(lambda t, x: a * x, np.zeros_like, np.ones((1, 1)), times)
    np.testing.assert_allclose(path[:, 0, 0], np.exp(a * times), rtol=1e-11)
    np.testing.assert_allclose(first[:, 0, 0], -(a**2) * times / 2 * np.exp(a * times), rtol=1e-10)


@pytest.mark.parametrize("rule", ["N(x + hA)", "N(x + hPA)"])
def test_layers_of_unnormalised_attention_have_the_same_first_error(rule):
    """USA: error/h for h to 0 is E_1 of its own variational equation, A = mean of e^(beta <x, y>) y.

    Extrapolated from 32, 64 and 128 layers; three times the last change bounds what is left of order h^2.
    """
    x, beta = np.asarray(simulate.start(SMALL).positions), 1.0

    def mean(x):
        return np.exp(beta * x @ x.T) @ x / len(x)

    def speed(t, x):
        pull = mean(x)
        return pull - np.sum(x * pull, axis=1, keepdims=True) * x

    def bend(x):
        pull, v = mean(x), speed(0.0, x)
        inward = np.sum(x * pull, axis=1, keepdims=True) * v if rule == "N(x + hA)" else 0.0
        return -inward - np.sum(v**2, axis=1, keepdims=True) * x / 2

    path, first = reference.first_error(speed, bend, x, np.array([0.0, 0.5]))
    field, found = af.Attention(beta, normaliser="USA"), []
    for count in (32, 64, 128):
        layers = af.Layers(0.5 / count, simulate.RULES[rule]())
        found.append((end(field, af.Tokens(x), 0.5, method=layers) - path[-1]) * count / 0.5)
    before, last = 2 * found[1] - found[0], 2 * found[2] - found[1]
    np.testing.assert_allclose(last, first[-1], rtol=0, atol=3 * np.abs(last - before).max())
    assert np.abs(last - before).max() < 0.02 * np.abs(first[-1]).max()

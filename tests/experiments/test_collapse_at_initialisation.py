"""Collapse at initialisation: the first layer and one path hold on a small version, a wrong start is found out."""

import dataclasses
import math

import numpy as np
import pytest

from attnflow import theory
from attnflow_gallery import collapse_at_initialisation as collapse
from attnflow_gallery.collapse_at_initialisation import compare, simulate
from tests.experiments.mutants import mutation

QUICK = collapse.QUICK
CORE = dataclasses.replace(QUICK, cases=((8, 1.0),), replicas=((8, 64),), layers=8, until=5, firsts=1000)


def core():
    """Claims about one path with its depth of collapse, and about the first layer."""
    data = {simulate.name(8, 1.0): simulate.path(CORE, 8, 1.0)}
    return [compare._paths(CORE, data), compare._times(CORE, data)[0], compare._first(CORE, simulate.first(CORE))]


def test_the_core_holds_and_tokens_that_are_not_orthogonal_are_found_out():
    assert [(claim.statement, claim.found) for claim in core() if not claim.holds] == []
    with mutation(collapse, "tokens start with the overlap 0.05").applied():
        wrong = core()
    assert not any(claim.holds for claim in wrong)


def test_when_an_overlap_passes_one_half():
    """The closed form at b = 0 is straight in the coordinate of the spline; what never passes has no depth."""
    tau = np.arange(8.0)
    u = np.asarray(theory.random_layers.hot_mean_square(1 / 16, tau))
    assert compare.passing(tau, (16 * u - 1) / 15, 16) == pytest.approx(math.log(17), abs=1e-12)
    assert math.isnan(compare.passing(tau, np.full(8, 0.1), 16))


def test_the_spread_of_networks_by_linear_noise_in_small_steps():
    """d Var by the integral, against the recursion of the variance with the derivative of u(1-u) in small steps."""
    n, steps = 16, 20_000
    h, u, variance = 3 / steps, 1 / 16, 0.0
    for _ in range(steps):
        gamma = (n * u - 1) / (n - 1)
        x = (np.eye(n) * (1 - gamma) + gamma).astype(float)
        # <w_i, w_k> = n^2 (u - 2 u^2 + u^2 R_ik), s_ik = u
        total = n * n * (n * n * (u - 2 * u * u) + u * u * x.sum()) * u
        variance += h * (2 * (1 - 2 * u) * variance + 4 / (n * (n - 1)) ** 2 * total)
        u += h * u * (1 - u)
    # both are off by the step, h times a number of order 10
    assert compare.spread(QUICK, 3.0) == pytest.approx(math.sqrt(variance), rel=2e-3)


@pytest.mark.slow
def test_halving_the_steps_takes_off_the_first_order():
    """The straightened path is nearer to the ODE than the finer of the two, where steps matter most."""
    part = simulate.path(QUICK, 16, 4.0)
    mean, error, change = compare.straightened(part)
    exact = theory.random_layers.simplex_path(16, 4.0, part["tau"].values, d=QUICK.d)
    assert np.all(np.abs(mean - exact)[1:] < 5 * error[1:] + 4 * change[1:] / QUICK.layers + 4 / QUICK.d)

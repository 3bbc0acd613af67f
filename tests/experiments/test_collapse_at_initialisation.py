"""Collapse at initialisation: the first layer and one path hold on a small version, a wrong start is found out."""

import dataclasses
import math

import numpy as np
import pytest

from attnflow import theory
from attnflow_gallery import collapse_at_initialisation as collapse
from attnflow_gallery.collapse_at_initialisation import compare, delay, simulate
from tests.experiments.mutants import mutation

QUICK = collapse.QUICK
CORE = dataclasses.replace(QUICK, cases=((8, 1.0),), replicas=((8, 64),), layers=8, until=5, firsts=1000)


def core():
    """Claims about one path with its depth of collapse, and about the first layer."""
    data = {simulate.name(8, 1.0): simulate.path(CORE, 8, 1.0)}
    return [compare._paths(CORE, data), compare._times(CORE, data)[0], compare._first(CORE, simulate.first(CORE))]


@pytest.mark.long
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


def test_the_delay_in_finite_dimension_by_hand():
    """c_n by the integral of its derivation, and layers of time h, whose constant differs from it by a share of h."""
    for n in (4, 16):
        tau = np.linspace(0, math.log(n + 1), 4001)
        u = np.asarray(theory.random_layers.hot_mean_square(1 / n, tau))
        late = np.trapezoid(2 + (n * u - 1) / (n - 1) + 4 * tau * u * (1 - u), tau)
        assert delay.limit(n) == pytest.approx(late, rel=1e-6)  # the trapezoidal rule, h^2
        for h in (1e-2, 1e-3):
            assert 0 < delay.limit(n) / delay.of_layers(n, h) - 1 < 2 * h


def test_one_layer_in_finite_dimension_has_the_mean_and_the_variance_of_the_derivation():
    """Two orthogonal tokens moved by one Gaussian vector: mean and variance of their new overlap, order 1/d.

    4 million draws of (z_1, z_2, |g|^2) with d = 100: standard errors 0.0001 over d and 0.1 %; the next order is 1/d.
    """
    d, h, draws, rng = 100, 0.5, 4_000_000, np.random.default_rng(0)
    a2 = h / 2  # h u, u = |mean|^2 = 1/2
    z = rng.standard_normal((2, draws))
    square = (z[0] ** 2 + z[1] ** 2 + rng.chisquare(d - 2, draws)) / d
    pushed = np.sqrt(a2 / d) * z
    sizes = np.sqrt(1 + 2 * pushed + a2 * square)
    overlap = (pushed[0] + pushed[1] + a2 * square) / (sizes[0] * sizes[1])
    bent = a2 * (3 + 2 * a2) / (1 + a2) - 2 * (1 + a2)
    assert d * (overlap.mean() - a2 / (1 + a2)) == pytest.approx(a2 / (1 + a2) ** 2 * bent, abs=0.02)
    assert d * overlap.var() == pytest.approx(4 * h * (4 + 2 * h) / 16 / (1 + a2) ** 4, rel=0.03)


@pytest.mark.long
def test_longer_steps_change_the_delay():
    few = dataclasses.replace(QUICK, delay_networks=500)
    right = {"delay4": simulate.delay(few, 4)}
    assert compare._later(few, right).holds
    with mutation(collapse, "steps 5 % longer").applied():
        assert not compare._later(few, {"delay4": simulate.delay(few, 4)}).holds
    right["delay4"]["overlap"][1, 7, 2] = np.nan
    assert not compare._later(few, right).holds


@pytest.mark.long
def test_halving_the_steps_takes_off_the_first_order():
    """The straightened path is nearer to the ODE than the finer of the two, where steps matter most."""
    part = simulate.path(QUICK, 16, 4.0)
    mean, error, change = compare.straightened(part)
    exact = theory.random_layers.simplex_path(16, 4.0, part["tau"].values, d=QUICK.d)
    assert np.all(np.abs(mean - exact)[1:] < 5 * error[1:] + 4 * change[1:] / QUICK.layers + 4 / QUICK.d)

"""Weights that change with depth: printed switches, critical rates and times to merge."""

import numpy as np
import pytest
from scipy.integrate import quad

from attnflow.errors import InvalidInput, NotAccurate
from attnflow.theory import merging, uniform


@pytest.mark.slow
def test_switches_of_ramps():
    """Eight digits after the point are printed."""
    known = [(2.39095886, 1.00815089), (6.71251353, 3.32637727), (13.52735380, 7.14888834), (22.73842327, 12.33889391)]
    known += [(34.26354096, 18.83162188), (48.08143850, 26.61336657)]
    np.testing.assert_allclose([uniform.ramp_switch(k) for k in range(1, 7)], known, atol=5e-9)
    assert [uniform.ramp_winner(product) for product in (0.5, 1.1, 5.0, 13.0)] == [1, 2, 3, 5]
    np.testing.assert_allclose(uniform.ramp_growth(1e-6, 1), 5e-7, rtol=1e-5)  # the rate is 1/2 at beta = 0


def test_critical_rates():
    """Eight digits are printed; the bracket of bisection is 2e-9 wide."""
    found = [merging.freezing_rate(angle, beta) for beta, angle in ((0, 1), (5, 1))]
    np.testing.assert_allclose(found, [6.4445928, 1.3092264], rtol=2e-8)


def test_times_under_a_skew_value_matrix():
    """Eight digits are printed."""
    known = {"USA0": {0.1: 104.83222, 0.5: 25.002822}, "SA": {0.0: 416.09262, 0.1: 441.35886, 0.5: 584.38138}}
    for model, row in known.items():
        found = [merging.skew_merge_time(1.5, 10.0, skew, masses=(0.7, 0.3), model=model) for skew in row]
        np.testing.assert_allclose(found, list(row.values()), rtol=5e-8)
    found = [merging.skew_merge_time(1.5, 20.0, skew, masses=(0.7, 0.3)) for skew in (0.1, 0.5, -0.1, -0.5)]
    np.testing.assert_allclose(found, [110.98583, 25.443753, 28.906197, 9.0278260], rtol=5e-8)


def test_a_start_near_an_equilibrium():
    """Forces that cancel to four digits are refused; up to there eps/1e-4 of the time is lost, and 1e-11 is stated."""
    angle, beta, masses = 1.5, 2.0, (0.7, 0.3)

    def forces(x):
        q = np.exp(-beta * (1 - np.cos(x)))
        return q * np.sin(x), 0.4 * (1 - q * np.cos(x))

    balance = np.divide(*forces(angle))
    for excess in (5e-5, -5e-5):
        with pytest.raises(NotAccurate, match="near an equilibrium"):
            merging.skew_merge_time(angle, beta, balance * (1 + excess), masses=masses)
    for excess, end in ((1.5e-4, 2 * np.pi - 0.01), (-1.5e-4, 0.01)):
        skew = balance * (1 + excess)
        near = angle + np.sign(excess) * np.array([1e-4, 1e-3, 1e-2])
        time, _ = quad(lambda x: 1 / (skew * forces(x)[1] - forces(x)[0]), angle, end, points=near, limit=500, epsabs=0, epsrel=1e-11)  # fmt: skip # noqa: B023
        assert merging.skew_merge_time(angle, beta, skew, masses=masses) == pytest.approx(time, rel=3e-11)


def test_refusals():
    for call in (
        lambda: merging.freezing_rate(4.0, 1.0),
        lambda: merging.skew_merge_time(1.5, 10.0, 0.1, masses=(0.7, 0.3), model="USA"),
        lambda: merging.skew_merge_time(3.5, 1.0, 0.5, masses=(0.9, 0.1)),
        lambda: uniform.ramp_winner(-1.0),
    ):
        with pytest.raises(InvalidInput):
            call()


@pytest.mark.parametrize("beta", [np.nan, -1.0, 1e9])
def test_a_ramp_needs_a_beta_in_range(beta):
    with pytest.raises(InvalidInput, match="beta"):
        uniform.ramp_growth(beta, 2)

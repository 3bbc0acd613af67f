"""Uniform spectrum: the core holds, a wrong beta is found out, Bessel functions and a whole sphere agree."""

import dataclasses

import numpy as np
import pytest
from scipy.special import ive

from attnflow.experiments import Study, kill_matrix
from attnflow.fields import Attention
from attnflow.tokens import Tokens
from attnflow_gallery import uniform_spectrum
from attnflow_gallery.uniform_spectrum import simulate
from tests.experiments.mutants import mutation

QUICK = uniform_spectrum.QUICK


@pytest.mark.long
def test_the_core_holds_and_a_small_part_of_beta_is_found_out():
    """Linearised field on S^2, one threshold on the circle, growth on S^2; 0.02 % of beta."""
    core = dataclasses.replace(QUICK, dims=(3,), thresholds=(2,))
    found = kill_matrix(uniform_spectrum, core, [mutation(uniform_spectrum, "beta 0.02 % larger")])
    assert [row[0] for row in found.killed] == [True, True, True]


@pytest.mark.slow
def test_the_data_hold_what_bessel_functions_say(tmp_path):
    """Without the code of the claims: on the circle lambda_k = k^2 I_k/(beta I_0), over 2 decades."""
    quick = uniform_spectrum.run(QUICK, Study(tmp_path / "parts"))
    flow = quick["growth"].isel(flow=0)
    assert (str(flow["model"].values), int(flow["dimension"])) == ("SA", 2)
    grown = np.log(flow["amplitude"].values[:, -1] / flow["amplitude"].values[:, 0]) / 8
    k = np.arange(1, 5)
    # RK4 of step 0.1: lambda^5 h^4/120 is 2e-7
    np.testing.assert_allclose(grown, k**2 * ive(k, 5.0) / (5 * ive(0, 5.0)), atol=1e-6)
    assert len(uniform_spectrum.draw(QUICK, quick).axes) == 4


def test_a_meridian_feels_the_whole_distribution():
    """On S^3, against tokens all over it: latitudes, then a product quadrature on the S^2 of each."""
    moved = np.linspace(0.3, 2.9, 6)
    masses = np.arange(1.0, 7.0)
    meridian = Tokens(np.stack([np.cos(moved), np.sin(moved), 0 * moved], axis=1), masses)
    attention = Attention(2.0)
    field = simulate.Zonal(attention, *simulate._orbit(10, 4))
    found = field.velocity(meridian)
    orbit = simulate.even_sphere(10)
    sphere = np.asarray(orbit.positions)[:, [2, 0, 1]]  # polar axis of the quadrature along the meridian
    positions = np.concatenate(
        [
            np.repeat(np.cos(moved), len(sphere))[:, None],
            (np.sin(moved)[:, None, None] * sphere).reshape(-1, 3),
        ],
        axis=1,
    )
    whole = Tokens(positions, np.outer(masses, orbit.masses).ravel())
    queries = np.stack([np.cos(moved), np.sin(moved), 0 * moved, 0 * moved], axis=1)
    expected = attention.velocity(whole, at=queries)
    # both quadratures are exact to degree 19, where e^(2 s) has terms of 2^20/20! = 4e-13
    np.testing.assert_allclose(found[:, :2], expected[:, :2], atol=1e-12)
    np.testing.assert_allclose(expected[:, 2:], 0, atol=1e-12)

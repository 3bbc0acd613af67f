"""Uniform spectrum: the quick version holds; a spectrum without k^2, a wrong beta or the sister's field is found out."""

import dataclasses

import numpy as np
import pytest
from scipy.special import ive

from attnflow.experiments import Study
from attnflow.experiments.gallery import uniform_spectrum
from attnflow.fields import Attention
from attnflow.tokens import Tokens

# shapes of the quick version, so that its compiled programs are used again
SMALL = dataclasses.replace(uniform_spectrum.QUICK, dims=(3,), sphere_betas=(5.0,))


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    return uniform_spectrum.run(uniform_spectrum.QUICK, Study(tmp_path_factory.mktemp("spectrum") / "parts"))


def verdicts(parameters, data):
    return {claim.statement.split(":")[0]: claim.holds for claim in uniform_spectrum.claims(parameters, data)}


def test_the_quick_version_holds(quick):
    found = verdicts(uniform_spectrum.QUICK, quick)
    assert all(found.values())
    assert len(found) == 1 + 3 + 2  # linearised field, three spheres, eigenvectors, fastest degree
    figure = uniform_spectrum.draw(uniform_spectrum.QUICK, quick)
    assert len(figure.axes) == 4


def test_the_data_hold_what_bessel_functions_say(quick):
    """Without the code of the claims: on the circle lambda_k = k^2 I_k/(beta I_0), over 2 decades."""
    flow = quick["growth"].isel(flow=0)
    assert (str(flow["model"].values), int(flow["dimension"])) == ("SA", 2)
    grown = np.log(flow["amplitude"].values[:, -1] / flow["amplitude"].values[:, 0]) / 8
    k = np.arange(1, 5)
    # RK4 of step 0.1: lambda^5 h^4/120 is 2e-7
    np.testing.assert_allclose(grown, k**2 * ive(k, 5.0) / (5 * ive(0, 5.0)), atol=1e-6)


def test_a_spectrum_without_the_square_of_the_degree_is_found_out(quick, monkeypatch):
    """I_k/beta, a misprint that circulates: the lowest mode would always win."""
    right = uniform_spectrum.theory.growth_rates

    def wrong(beta, d, k, model="SA"):
        return right(beta, d, k, model) / (np.asarray(k) * (np.asarray(k) + d - 2))

    monkeypatch.setattr(uniform_spectrum.theory, "growth_rates", wrong)
    found = verdicts(uniform_spectrum.QUICK, quick)
    assert sum(not holds for holds in found.values()) == 4  # every rate; not the directions, nor the fastest degree


def test_a_slightly_wrong_beta_is_found_out(quick, tmp_path, monkeypatch):
    """A hundred-thousandth of beta changes a rate by some 1e-6, more than its tolerance."""
    monkeypatch.setattr(uniform_spectrum, "Attention", lambda beta, **rest: Attention(beta * (1 + 1e-5), **rest))
    found = verdicts(SMALL, uniform_spectrum.run(SMALL, Study(tmp_path / "parts")))
    assert [holds for name, holds in found.items() if "linearised" in name or "modes" in name] == [False, False]


def test_sisters_taken_for_each_other_are_found_out(quick, tmp_path, monkeypatch):
    swapped = dict(zip(("SA", "USA0"), reversed(uniform_spectrum.MODELS.values()), strict=True))
    monkeypatch.setattr(uniform_spectrum, "MODELS", swapped)
    found = verdicts(SMALL, uniform_spectrum.run(SMALL, Study(tmp_path / "parts")))
    assert [holds for name, holds in found.items() if "linearised" in name or "modes" in name] == [False, False]


def test_a_meridian_feels_the_whole_law():
    """On S^3, against tokens all over it: latitudes, then a product quadrature on the S^2 of each."""
    moved = np.linspace(0.3, 2.9, 6)
    masses = np.arange(1.0, 7.0)
    meridian = Tokens(np.stack([np.cos(moved), np.sin(moved), 0 * moved], axis=1), masses)
    attention = Attention(2.0)
    field = uniform_spectrum.Zonal(attention, *uniform_spectrum._orbit(10, 4))
    found = field.velocity(0.0, None, meridian)
    orbit = uniform_spectrum.even_sphere(10)
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
    expected = attention.velocity(0.0, queries, whole)
    # both quadratures are exact to degree 19, where e^(2 s) has terms of 2^20/20! = 4e-13
    np.testing.assert_allclose(found[:, :2], expected[:, :2], atol=1e-12)
    np.testing.assert_allclose(expected[:, 2:], 0, atol=1e-12)

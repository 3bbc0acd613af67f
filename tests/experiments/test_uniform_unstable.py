"""Growth of harmonics of a density: the quick version holds; a wrong beta, spectrum or bend is found out."""

import dataclasses

import numpy as np
import pytest
from scipy.special import ive

from attnflow.experiments import Study
from attnflow.experiments.gallery import uniform_unstable
from attnflow.fields import Attention

# on the circle alone, with the shapes of the quick version, so that its compiled programs are used again
SMALL = dataclasses.replace(uniform_unstable.QUICK, zonal_betas=(), bends=(), circle_degrees=(3,))


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    return uniform_unstable.run(uniform_unstable.QUICK, Study(tmp_path_factory.mktemp("unstable") / "parts"))


def failed(parameters, data):
    return [claim.statement for claim in uniform_unstable.claims(parameters, data) if not claim.holds]


def test_one_mode_on_the_circle_and_a_wrong_beta(tmp_path, monkeypatch):
    """Softmax attention, degree 3; a millionth of beta changes the rate by some 1e-7, more than its tolerance."""
    monkeypatch.setattr(uniform_unstable, "MODELS", {"SA": uniform_unstable.MODELS["SA"]})
    data = uniform_unstable.run(SMALL, Study(tmp_path / "right"))
    assert failed(SMALL, data) == []
    assert len(uniform_unstable.claims(SMALL, data)) == 2
    monkeypatch.setattr(uniform_unstable, "Attention", lambda beta, **rest: Attention(beta * (1 + 1e-6), **rest))
    assert len(failed(SMALL, uniform_unstable.run(SMALL, Study(tmp_path / "wrong")))) == 2


@pytest.mark.slow
def test_the_quick_version_holds(quick):
    claims = uniform_unstable.claims(uniform_unstable.QUICK, quick)
    assert all(claim.holds for claim in claims)
    assert len(claims) == 2 + 2 + 1  # rates and lines on two kinds of spheres, and the bend
    assert all(row["tolerance"][-1] / row["t"][-1] < 1e-8 for row in uniform_unstable.lines(quick))
    assert len(uniform_unstable.draw(uniform_unstable.QUICK, quick).axes) == 4


@pytest.mark.slow
def test_the_data_hold_what_bessel_functions_say(quick):
    """Without the code of the claims: k^2 I_k/(beta I_0) on the circle, 5 decades of the degree that grows fastest."""
    part = quick["SA-circle-d2-beta5"]
    rows = part["amplitude"].values[:, 0]
    k, spans = part["degree"].values, part["interval"].values * uniform_unstable.QUICK.frames
    # (lambda h)^5/3600 = 5e-10 of each rate
    np.testing.assert_allclose(
        np.log(rows[:, -1] / rows[:, 0]) / spans, k**2 * ive(k, 5.0) / (5 * ive(0, 5.0)), atol=1e-9
    )
    assert rows[1, -1] / rows[1, 0] == pytest.approx(1e5, rel=1e-7)


@pytest.mark.slow
def test_one_start_alone_is_off_by_its_amplitude(quick):
    """On S^7 the square of a harmonic of degree 2 has a part of degree 2; pairs cancel it."""
    row = next(row for row in uniform_unstable.lines(quick) if row["space"] == "zonal")
    assert abs(row["one"][-1]) > 100 * row["tolerance"][-1]
    # proportional to the amplitude, once that is above the error of the steps
    late, later = np.searchsorted(row["odd"], [1e-5, 1e-4 * (1 - 1e-6)])
    slopes = (row["one"] - row["gap"])[[late, later]] / row["odd"][[late, later]]
    assert slopes[0] == pytest.approx(slopes[1], rel=1e-3)


@pytest.mark.slow
def test_a_slightly_wrong_beta_is_found_out(tmp_path, monkeypatch):
    """A millionth of beta changes a rate by some 1e-7, more than its tolerance."""
    monkeypatch.setattr(uniform_unstable, "Attention", lambda beta, **rest: Attention(beta * (1 + 1e-6), **rest))
    assert len(failed(SMALL, uniform_unstable.run(SMALL, Study(tmp_path / "parts")))) == 2


@pytest.mark.slow
def test_a_spectrum_without_the_square_of_the_degree_is_found_out(quick, monkeypatch):
    right = uniform_unstable.theory.growth_rates
    monkeypatch.setattr(
        uniform_unstable.theory, "growth_rates", lambda beta, d, k, model="SA": right(beta, d, k, model) / np.asarray(k)
    )
    rates = [words for words in failed(uniform_unstable.QUICK, quick | {}) if "rate" in words]
    assert len(rates) == 2


@pytest.mark.slow
def test_a_bend_without_the_second_harmonic_is_found_out(quick, monkeypatch):
    """With b = 0 softmax attention would bend by r (1 - r) a^2/8, and its sister not at all."""
    monkeypatch.setattr(uniform_unstable, "bend", lambda t, start, beta, k, model: 0 * t)
    assert [words.split(":")[1] for words in failed(uniform_unstable.QUICK, quick)] == [
        " log a bends by third-order terms (worst of 6 modes"
    ]

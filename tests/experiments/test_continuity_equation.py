"""Continuity equation: a version without S^2 holds; a wrong beta, the field of the other model and a wrong density make a claim fail."""

import dataclasses

import numpy as np
import pytest

from attnflow.experiments import Study
from attnflow.experiments.gallery import _carried, continuity_equation
from attnflow.fields import Attention, Unnormalised
from attnflow.meanfield import CircleBasis, empirical, quiet
from attnflow.observe import energy
from attnflow.tokens import Tokens

SMALL = dataclasses.replace(continuity_equation.QUICK, sphere=(), n=800, circle_degree=48, circle_until=0.8)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return continuity_equation.run(SMALL, Study(tmp_path_factory.mktemp("continuity") / "parts"))


def failures(data, parameters=SMALL):
    return [claim.statement for claim in continuity_equation.claims(parameters, data) if not claim.holds]


@pytest.mark.parametrize(("beta", "holds"), [(9.0, True), (9.0 * (1 + 1e-3), False)])
def test_tokens_have_what_the_equation_makes_of_their_own_harmonics(beta, holds):
    """Within what halving the number of steps changes; a thousandth of beta is more."""
    field, density, gap, _ = continuity_equation.setting("circle", "SA", SMALL)
    counts, low = (SMALL.legs, SMALL.steps), continuity_equation.LOW["circle"]
    tokens, small = quiet(density, 256), density.basis.refined(32)
    rows = _carried.follow(Attention(beta), tokens, gap, counts, lambda now: empirical(small, now))
    found = _carried.observe(field, small, low, np.array(rows))
    expected = _carried.galerkin(field, density, low, empirical(density.basis, tokens), gap, counts)
    allowed = continuity_equation._step_error(field, density, low, small, gap, counts)
    assert (np.abs(found - expected).max() <= allowed) == holds


@pytest.mark.slow
def test_the_version_without_the_sphere_holds(small):
    assert failures(small) == []
    assert len(continuity_equation.claims(SMALL, small)) == 5 + 1 + 2 + 3
    figure = continuity_equation.draw(SMALL, small)
    assert len(figure.axes) == 5 + 1  # panels and a colour bar


@pytest.mark.slow
def test_a_slightly_wrong_beta_of_the_tokens_is_found_out(small, monkeypatch):
    """A thousandth of beta is far below the noise of 800 tokens, but not below that of their own harmonics."""
    right = continuity_equation.carried.follow

    def wrong(field, *rest):
        return right(Attention(field.beta * (1 + 1e-3)), *rest)

    monkeypatch.setattr(continuity_equation.carried, "follow", wrong)
    found = failures(small | {"circle-SA": continuity_equation.compared("circle", "SA", SMALL)})
    assert len(found) == 3
    assert all("own harmonics" in one or "quiet" in one for one in found)


@pytest.mark.slow
def test_the_sister_s_field_is_found_out(small, monkeypatch):
    right = continuity_equation.carried.follow
    field = Attention(SMALL.circle_beta, normaliser=Unnormalised())
    monkeypatch.setattr(continuity_equation.carried, "follow", lambda _, *rest: right(field, *rest))
    found = failures(small | {"circle-SA": continuity_equation.compared("circle", "SA", SMALL)})
    assert sum("own harmonics" in one for one in found) == 2


@pytest.mark.slow
def test_tokens_of_another_law_are_found_out(small):
    """A shift of one harmonic by six standard errors."""
    part = small["circle-SA"].copy(deep=True)
    part["measured"][0, -1, 2] += 6 * part["deviation"][-1, 2] / np.sqrt(SMALL.n)
    found = failures(small | {"circle-SA": part})
    assert any("iid tokens are those of the density" in one for one in found)


@pytest.mark.slow
def test_a_scheme_of_first_order_and_lost_mass_are_found_out(small):
    cells, ends = small["cells"].copy(deep=True), small["clusters"].copy(deep=True)
    cells["error"] *= cells["count"].astype(float)
    ends["masses"].loc[{"way": "handed over"}] *= 0.9
    found = failures(small | {"cells": cells, "clusters": ends})
    assert len(found) == 3
    assert "second order" in found[0]


def test_the_influence_is_the_change_of_the_observables():
    """Along a direction, against a difference of flows; and at time 0 the harmonics have the deviations of the density."""
    basis = CircleBasis(48)
    density, field = continuity_equation.start(basis, "circle"), Attention(9.0)
    found = _carried.influence(field, density, 4, 0.4, (2, 4))
    way = 1e-4 * np.cos(np.arange(97.0)) * (basis.degrees > 0) / (1 + basis.degrees) ** 3
    up, down = (_carried.galerkin(field, density, 4, density.coefficients + s * way, 0.4, (2, 4)) for s in (1, -1))
    # the cubic term: |way|^3 times derivatives of order 1 to 100
    np.testing.assert_allclose(found @ way, (up - down) / 2, atol=1e-9)
    theta, rho = basis.points(), np.asarray(density.values)
    waves = np.sqrt(2) * np.cos(theta)
    variance = np.mean(rho * waves**2) - np.mean(rho * waves) ** 2
    assert _carried.deviations(density, found)[0, 0] == pytest.approx(np.sqrt(variance), rel=1e-10)


def test_the_energy_of_tokens_is_the_sum_over_pairs():
    basis, field = CircleBasis(32), Attention(9.0)
    tokens: Tokens = quiet(continuity_equation.start(CircleBasis(48), "circle"), 40)
    found = _carried.observe(field, basis, 1, empirical(basis, tokens)[None])[0, -1]
    # e^{-9} I_33(9) is below 1e-18
    assert found == pytest.approx(float(energy(tokens, 9.0)), abs=1e-13)


@pytest.mark.slow
def test_the_quick_version_holds(tmp_path):
    quick = continuity_equation.QUICK
    data = continuity_equation.run(quick, Study(tmp_path / "parts"))
    assert failures(data, quick) == []
    assert len(continuity_equation.draw(quick, data).axes) == 8 + 2

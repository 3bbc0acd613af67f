"""Zonal densities: a small version holds; a wrong dimension, a wrong beta, a wrong distribution of the tokens are found out."""

import dataclasses

import numpy as np
import pytest
from scipy.special import ive

from attnflow.experiments import Study
from attnflow.experiments.gallery import zonal
from attnflow.meanfield import CircleBasis

SMALL = dataclasses.replace(zonal.QUICK, dims=(8,), rate_dims=(8,), n=400)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return zonal.run(SMALL, Study(tmp_path_factory.mktemp("zonal") / "parts"))


def failures(data, parameters=SMALL):
    return [claim.statement for claim in zonal.claims(parameters, data) if not claim.holds]


def test_rates_and_condensation_on_s7_and_wrong_ones(monkeypatch):
    """Rates of the next dimension are wrong for both; those of a beta off by 1e-10, for the linearised equation."""
    parts = zonal.rates(SMALL), zonal.condensation(SMALL)

    def verdicts():
        claims = zonal._rate_claim(SMALL, parts[0], 8), zonal._time_claim(SMALL, parts[1], 8)
        return [claim.holds for claim in claims]

    assert verdicts() == [True, True]
    right = zonal.theory.growth_rates
    monkeypatch.setattr(zonal.theory, "growth_rates", lambda beta, d, *rest: right(beta, d + 1, *rest))
    assert verdicts() == [False, False]
    monkeypatch.setattr(zonal.theory, "growth_rates", lambda beta, *rest: right(beta * (1 + 1e-10), *rest))
    assert verdicts() == [False, True]


@pytest.mark.slow
def test_the_small_version_holds(small):
    assert failures(small) == []
    assert len(zonal.claims(SMALL, small)) == 1 + 1 + 1 + 1 + 1
    assert len(zonal.draw(SMALL, small).axes) == 5


@pytest.mark.slow
def test_the_data_hold_what_bessel_functions_say(small):
    """Without the code of the claims: lambda_k = k (k+6) I_{k+3}/(beta I_3) on S^7, and time log(10)/lambda_1."""
    k = np.arange(1, 9)
    rate = k * (k + 6) * ive(k + 3, 4.0) / (4 * ive(3, 4.0))
    np.testing.assert_allclose(small["rates"]["rate"].sel(model="SA", dimension=8, beta=4.0), rate, rtol=0, atol=1e-12)
    gap = np.diff(small["condensation"]["time"].sel(dimension=8).values)[-1]
    assert gap == pytest.approx(np.log(10) * ive(3, 1.0) / (7 * ive(4, 1.0)), abs=3e-5)  # the square of 1e-3, times 10


@pytest.mark.slow
def test_rates_of_the_next_dimension_are_found_out(small, monkeypatch):
    right = zonal.theory.growth_rates
    monkeypatch.setattr(zonal.theory, "growth_rates", lambda beta, d, *rest: right(beta, d + 1, *rest))
    found = failures(small)
    assert len(found) == 2
    assert "linearised" in found[0]
    assert "mean overlap" in found[1]


@pytest.mark.slow
def test_a_slightly_wrong_beta_is_found_out(small, monkeypatch):
    right = zonal.theory.growth_rates
    monkeypatch.setattr(zonal.theory, "growth_rates", lambda beta, *rest: right(beta * (1 + 1e-10), *rest))
    assert ["linearised" in one for one in failures(small)] == [True]


@pytest.mark.slow
def test_tokens_of_another_law_and_first_order_cells_are_found_out(small):
    tokens, cells = small["tokens"].copy(deep=True), small["cells"].copy(deep=True)
    tokens["overlap"][0, -1] += 8 * tokens["noise"][-1]
    cells["error"] *= cells["count"].astype(float)
    found = failures(small | {"tokens": tokens, "cells": cells})
    assert len(found) == 2
    assert "second order" in found[0]
    assert "iid tokens" in found[1]


@pytest.mark.slow
def test_a_law_that_never_condenses_has_no_time(small):
    part = small["condensation"].copy(deep=True)
    part["time"][:] = zonal.crossing(np.arange(5.0), np.full(5, 0.1), 0.5)
    assert len(failures(small | {"condensation": part})) == 1


def test_turning_to_the_axis_keeps_the_function():
    basis, c = CircleBasis(5), np.cos(np.arange(11.0))
    even, odd = zonal._on_axis(c)
    angle = 0.7
    k = np.arange(1, 6)
    around = even[0] + np.sqrt(2) * np.sum(even[1:] * np.cos(k * angle) + odd * np.sin(k * angle))
    assert around == pytest.approx(float(basis.evaluate(c, np.pi / 2 + angle)), abs=1e-14)

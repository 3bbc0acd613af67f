"""Metastability: one flow and three caps hold, a slightly wrong beta is found out, and caps contract by hand."""

import dataclasses
import math

import numpy as np
import pytest

from attnflow.experiments import Study
from attnflow_gallery import metastability
from tests.experiments.mutants import noticed

ONE = dataclasses.replace(metastability.QUICK, n=4, betas=(25.0,))


@pytest.mark.long
def test_one_beta_holds_and_a_slightly_wrong_beta_is_found_out():
    killed = noticed(metastability, ONE, "beta 0.1 % larger", "*-S2-*")
    assert "log lifetime of a plateau, two-body formula of the pair that merges" in killed
    assert "log escape rate of a plateau, formula of the pair that merges" in killed


@pytest.mark.slow
def test_the_last_plateau_by_hand(tmp_path):
    """USA0: the lifetime of two clusters is e^(beta u)/(beta sin^2) (1 + 2 cos/(beta sin^2)), up to the next order."""
    data = metastability.run(ONE, Study(tmp_path / "parts"))["USA0-S2-25"]
    last = data.isel(plateau=int(np.argmin(data["clusters"].values)))
    x = last["centre"].values[last["mass"].values > 0]
    assert len(x) == 2
    u, beta = float(np.sum((x[0] - x[1]) ** 2) / 2), 25.0
    sine2, cos = u * (2 - u), 1 - u
    life = float(last["log_end"]) + math.log(-math.expm1(float(last["log_start"] - last["log_end"])))
    wanted = beta * u - math.log(beta * sine2) + math.log1p(2 * cos / (beta * sine2))
    assert life == pytest.approx(wanted, abs=2 * (2 / sine2 + 8 * cos**2 / sine2**2) / beta**2)

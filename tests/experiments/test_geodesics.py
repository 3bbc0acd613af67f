"""Geodesics: reference values, and a wrong clock that breaks the bound."""

import dataclasses

import numpy as np
import pytest

from attnflow_gallery import geodesics
from attnflow_gallery.geodesics import compare, simulate
from tests.experiments.mutants import mutation

FEW = dataclasses.replace(geodesics.QUICK, betas=(9.0,), pairs=2, random_tokens=4)
RATES = {0.5: 0.41405760, 1.0: 0.36787944, 4.0: 0.41008864, 9.0: 0.42876464, 100.0: 0.44459558}


@pytest.mark.parametrize("beta", RATES)
def test_largest_rates(beta):
    """Eight digits of an independent derivation."""
    assert compare.largest_rate(beta) == pytest.approx(RATES[beta], abs=5.1e-9)


def test_the_angle_to_the_mean():
    assert compare.to_mean(np.zeros(1), 8)[0] == pytest.approx(1.2094292029, abs=5.1e-11)
    assert simulate.extremal_angle(9.0) == pytest.approx(0.57163077, abs=1e-7)  # a maximum: the root of its rounding


@pytest.mark.slow
def test_pairs_separate_at_the_rate_and_another_clock_is_found_out():
    for name in (None, "other clocks: USA0 for SA, USA for USA0"):
        if name is None:
            data = {"extremal": simulate._extremal(FEW), "random": simulate._random(FEW)}
        else:
            with mutation(geodesics, name).applied():
                data = {"extremal": simulate._extremal(FEW), "random": simulate._random(FEW)}
        assert [claim.holds for claim in compare._separation(FEW, data)] == [name is None] * 2

"""Stability of measures: two tokens and a massless one attain the constants, and a wrong beta is found out."""

import dataclasses

import pytest

from attnflow import theory
from attnflow_gallery import stability_of_measures
from attnflow_gallery.stability_of_measures import simulate
from tests.experiments.mutants import mutation

FEW = dataclasses.replace(stability_of_measures.QUICK, betas=(4.0,), draws=1)


@pytest.mark.slow
def test_constants_are_attained_and_another_beta_is_found_out():
    found = simulate.expansion(FEW)
    omega, steep = float(theory.landscape.expansion_rate(4.0)), float(theory.landscape.softmax_lipschitz(4.0))
    assert float(found["pair"][0]) == pytest.approx(omega, abs=1e-13)
    assert float(found["softmax"][0]) == pytest.approx(steep, abs=1e-12)
    assert float(found["random"].max()) <= omega
    with mutation(stability_of_measures, "beta 5 % larger").applied():
        wrong = simulate.expansion(FEW)
    assert abs(float(wrong["pair"][0]) - omega) > 1e-4
    assert abs(float(wrong["softmax"][0]) - steep) > 0.1

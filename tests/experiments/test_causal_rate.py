"""Causal rate: distances follow the linear theory, and a missing mask is found out."""

import dataclasses

import numpy as np
import pytest

from attnflow_gallery import causal_rate
from attnflow_gallery.causal_rate import compare, simulate
from tests.experiments.mutants import mutation

QUICK = causal_rate.QUICK


@pytest.mark.slow
def test_distances_follow_the_linear_theory_and_a_missing_mask_is_found_out():
    """At N = 16 the linear theory is off by about 0.2; a prompt without a mask has 0.35 less of the constant."""
    found = simulate.distances(QUICK, 16, 2048)
    allowed = 6 * float(found["error"]) + 4 / 16
    assert float(found["mean"]) == pytest.approx(compare.linear(QUICK, 16), abs=allowed)
    with mutation(causal_rate, "no mask").applied():
        wrong = simulate.distances(QUICK, 16, 2048)
    assert float(wrong["mean"]) < float(found["mean"]) - 6 * float(np.hypot(found["error"], wrong["error"]))


def test_constants_are_those_of_the_theory():
    """Digits of an independent derivation: t = 1/4, 1/2, 1 and 2."""
    times = [dataclasses.replace(QUICK, until=t) for t in (0.25, 0.5, 1.0, 2.0)]
    causal, plain = np.array([compare.constants(one) for one in times]).T
    np.testing.assert_allclose(causal, [4.191299, 5.579229, 11.211325, 65.185797], atol=5e-7)
    np.testing.assert_allclose(plain, [4.125300, 5.225155, 8.585930, 24.653706], atol=5e-7)
    linear = [compare.linear(QUICK, n) for n in (64, 256, 1024)]
    np.testing.assert_allclose(linear, [5.459, 5.537, 5.564], atol=5e-4)


def test_the_density_and_the_distance():
    """The mean of the density is that of an independent program; two points have W_2^2 = pi^2/12 if opposite."""
    assert simulate.mean_of_density(QUICK) == pytest.approx(0.3959796, abs=5e-8)
    assert simulate.squared_distance(np.array([[1.0, -1.0 + 0j]])) == pytest.approx(np.pi**2 / 12)
    assert simulate.squared_distance(np.array([[1.0 + 0j]])) == pytest.approx(np.pi**2 / 3)

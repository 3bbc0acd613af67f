"""Zonal densities: rates and times to condensation on S^7 hold; a wrong beta and a wrong dimension are found out."""

import numpy as np
import pytest
from scipy.special import ive

from attnflow_gallery import zonal
from attnflow_gallery.zonal import compare, simulate
from tests.experiments.mutants import mutation

QUICK = zonal.QUICK


@pytest.mark.slow
def test_rates_on_s7_hold_and_another_beta_and_dimension_are_found_out():
    def holds():
        return compare._rates(QUICK, simulate.rates(QUICK)).holds

    assert holds()
    with mutation(zonal, "beta of the equation 1 % larger").applied():
        assert not holds()


@pytest.mark.slow
def test_the_data_hold_what_bessel_functions_say():
    """Without the code of the claims: lambda_k = k (k+6) I_{k+3}/(beta I_3) on S^7, and time log(10)/lambda_1."""
    k = np.arange(1, 5)
    rate = k * (k + 6) * ive(k + 3, 4.0) / (4 * ive(3, 4.0))
    np.testing.assert_allclose(simulate.rates(QUICK)["rate"].sel(dimension=8), rate, rtol=0, atol=1e-3)
    gap = np.diff(simulate.condensation(QUICK)["time"].sel(dimension=8).values)[-1]
    assert gap == pytest.approx(np.log(10) * ive(3, 1.0) / (7 * ive(4, 1.0)), abs=3e-3)


def test_values_that_never_cross_have_no_time():
    assert np.isnan(simulate.crossing(np.arange(5.0), np.full(5, 0.1), 0.5))
    assert simulate.crossing(np.arange(5.0), np.arange(5.0) / 4, 0.6) == pytest.approx(2.4, abs=1e-12)

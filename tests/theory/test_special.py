import mpmath as mp
import numpy as np
import pytest

from attnflow import special


@pytest.mark.parametrize("x", [1e-8, 0.3, 1.0, 20.0, 49.9, 50.0, 50.1, 300.0, 1e4, 1e8])
def test_scaled_exponential_integrals(x):
    with mp.workdps(40):
        exp1 = float(mp.exp(x) * mp.e1(x))
        expi = float(mp.exp(-x) * mp.ei(x))
    assert abs(special.scaled_exp1(x) / exp1 - 1) < 1e-13
    assert abs(special.scaled_expi(x) / expi - 1) < 1e-12
    assert np.isfinite(special.scaled_exp1([x, 1.0])).all()

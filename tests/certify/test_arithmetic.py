"""What the checker trusts: intervals of mpmath hold the values of the functions that it calls, at 200 bits."""

import mpmath
import numpy as np
import pytest
from mpmath import iv, mp

from attnflow.certify.checking.integers import SCALE, atan2, ends


@pytest.fixture
def bits():
    before = iv.prec
    iv.prec = 106  # as the checker sets it
    yield
    iv.prec = before


def holds(interval, value):
    low, high = (mp.make_mpf(end) for end in interval._mpi_)
    return low <= value <= high


@pytest.mark.usefixtures("bits")
def test_functions_of_intervals_hold_their_values():
    """Arguments up to 1000, intervals as wide as 10 and as narrow as 1e-20; ends and points between them."""
    rng = np.random.default_rng(0)
    with mpmath.workprec(200):
        for _ in range(400):
            middle, width = rng.uniform(-1, 1) * 10 ** rng.uniform(-3, 3), 10 ** rng.uniform(-20, 1)
            x = iv.mpf([float(middle - width), float(middle + width)])
            low, high = (mp.make_mpf(end) for end in x._mpi_)
            for share in (0, 1, float(rng.uniform())):
                point = low + (high - low) * share
                for name in ("sin", "cos", "exp"):
                    assert holds(getattr(iv, name)(x), getattr(mp, name)(point)), (name, x, point)
                assert holds(x**2, point**2)
                assert holds(iv.sqrt(abs(x)), mp.sqrt(abs(point)))
                assert holds(1 / (2000 + x), 1 / (2000 + point))
                a, b = ends(x)
                assert a <= point * 2**SCALE <= b


@pytest.mark.usefixtures("bits")
def test_angles_hold_at_200_bits():
    """Exact arguments: atan2 of mpmath itself misses some of these values by a fraction of its last bit."""
    rng = np.random.default_rng(1)
    with mpmath.workprec(200):
        for x, y in np.abs(rng.standard_normal((300, 2))) * 10 ** rng.uniform(-8, 0, (300, 2)):
            assert holds(atan2(iv.mpf(float(y)), iv.mpf(float(x))), mp.atan2(mp.mpf(float(y)), mp.mpf(float(x))))

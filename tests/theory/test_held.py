"""Two neurons that hold two clusters: printed thresholds, separations and rates, and the fold."""

import numpy as np
import pytest

from attnflow.errors import InvalidInput
from attnflow.theory import landscape

TABLE = {
    (2 * np.pi / 3, 1): (1.64872127, 1.32436064),
    (2 * np.pi / 3, 3): (11.84263547, 6.07789913),
    (2 * np.pi / 3, 9): (36199.55944, 18099.84201),
    (2.5, 1): (2.25715953, 1.77854423),
    (2.5, 3): (42.91998719, 21.64634161),
    (2.5, 9): (955223.1134, 477611.6531),
    (3.0, 1): (4.86287361, 2.82674859),
    (3.0, 3): (209.51302027, 105.09512833),
    (3.0, 9): (2.349165103e7, 1.174582579e7),
}


def test_thresholds():
    """Nine digits are printed, ten of the largest."""
    for (opening, beta), known in TABLE.items():
        found = [landscape.hold_threshold(beta, opening, model=model) for model in ("USA0", "SA")]
        np.testing.assert_allclose([one.kappa for one in found], known, rtol=5e-9)
    assert landscape.hold_threshold(1, 2.5, model="SA").turns  # a kink: only mirror images last
    np.testing.assert_allclose(landscape.hold_threshold(3, 2.5).angle, 2.193061, atol=5e-7)


def test_separations_and_rates():
    """Eight and six digits after the point are printed; the printed Hessians are per mass 1/2."""
    for model, known in (("USA0", (2.42741091, 2.26129991)), ("SA", (2.42708113, 2.25996069))):
        top = landscape.hold_threshold(3, 2.5, model=model).kappa
        found = [landscape.held_angle(3, 2.5, share * top, model=model) for share in (0.5, 0.97)]
        np.testing.assert_allclose(found, known, atol=5e-9)
    top = landscape.hold_threshold(3, 2.5).kappa
    half = np.sort(landscape.held_rates(3, 2.5, 0.5 * top)) / 2
    np.testing.assert_allclose(half, [-0.506106, -0.498683, -0.450743, -0.385593], atol=5e-7)
    # near the fold the breathing rate is 0, up to the square root of the distance
    assert abs(landscape.held_rates(3, 2.5, top * (1 - 1e-10))[3]) < 1e-4


def test_refusals():
    for call in (
        lambda: landscape.hold_threshold(3, 1.0),
        lambda: landscape.hold_threshold(3, 2.5, model="USA"),
        lambda: landscape.held_angle(3, 2.5, 50.0),
    ):
        with pytest.raises(InvalidInput):
            call()

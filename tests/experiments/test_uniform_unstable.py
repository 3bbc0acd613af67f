"""Growth of harmonics of a density: the core holds, a wrong beta is found out, Bessel functions agree."""

import dataclasses

import numpy as np
import pytest
from scipy.special import ive

from attnflow.experiments import Study
from attnflow_gallery import uniform_unstable
from attnflow_gallery.uniform_unstable import compare, simulate
from tests.experiments.mutants import changed, noticed

QUICK = uniform_unstable.QUICK


@pytest.mark.long
@changed(simulate, "MODELS", ("SA",))
def test_the_core_holds_and_a_millionth_of_beta_is_found_out():
    """Softmax attention: one pair on S^7, and the bends of three degrees on the circle."""
    core = dataclasses.replace(QUICK, circle_betas=(), zonal_degrees=(2,))
    assert len(noticed(uniform_unstable, core, "beta 0.0001 % larger")) == 3


@pytest.mark.slow
@changed(simulate, "MODELS", ("SA",))
def test_the_data_hold_what_bessel_functions_say(tmp_path):
    """Without the code of the claims: k^2 I_k/(beta I_0) on the circle, 5 decades of the degree that grows fastest."""
    quick = uniform_unstable.run(dataclasses.replace(QUICK, zonal_betas=(), bends=()), Study(tmp_path / "parts"))
    part = quick["SA-circle-d2-beta5"]
    rows = part["amplitude"].values[:, 0]
    k, spans = part["degree"].values, part["interval"].values * QUICK.frames
    # (lambda h)^5/3600 = 5e-10 of each rate
    np.testing.assert_allclose(
        np.log(rows[:, -1] / rows[:, 0]) / spans, k**2 * ive(k, 5.0) / (5 * ive(0, 5.0)), atol=1e-9
    )
    assert rows[1, -1] / rows[1, 0] == pytest.approx(1e5, rel=1e-7)
    assert all(row["tolerance"][-1] / row["t"][-1] < 1e-8 for row in compare.lines(quick))

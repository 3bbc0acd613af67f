"""Layer norms: the core holds, a wrong alpha is found out, and a second integration agrees."""

import dataclasses

import numpy as np
import pytest

from attnflow.experiments import Study
from attnflow_gallery import layer_norms
from tests.experiments.mutants import noticed

QUICK = layer_norms.QUICK


@pytest.mark.slow
def test_two_placements_hold_and_a_slightly_wrong_alpha_is_found_out():
    """An algebraic and an exponential collapse; alpha off by 1e-4."""
    both = dataclasses.replace(QUICK, placements=("pre", "ngpt"))
    killed = noticed(layer_norms, both, "nGPT: alpha 0.01 % larger", "ngpt")
    assert killed
    assert all(claim.startswith("nGPT") for claim in killed)


@pytest.mark.long
def test_the_data_hold_what_a_second_integration_says(tmp_path):
    """Pre-LN at t = 16 by Euler's method on the two scalar equations, extrapolated from two steps."""

    def gap(steps):
        rho, r, n, beta = 0.0, 1.0, QUICK.n, QUICK.beta
        for _ in range(steps):
            e = np.exp(-beta * (1 - rho))
            a = 1 + (n - 1) * e
            turn, grow = 2 * e * (1 - rho) * (1 + (n - 1) * rho) / (a * r), (1 + (n - 1) * rho * e) / a
            rho, r = rho + 16 / steps * turn, r + 16 / steps * grow
        return 1 - rho

    data = layer_norms.run(QUICK, Study(tmp_path / "parts"))
    seen = float(data["pre"]["gap"].sel(start="orthonormal").sel(time=16.0, method="nearest"))
    # extrapolation leaves h^2 = (16/4000)^2 times a constant of order 1
    assert seen == pytest.approx(2 * gap(4000) - gap(2000), rel=1e-4)

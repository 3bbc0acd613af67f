"""The transition of iid tokens: the core holds, a wrong beta is found out, and crossings are found between frames."""

import dataclasses

import numpy as np
import pytest

from attnflow.experiments import kill_matrix
from attnflow.theory.uniform import equiangular_overlap, equiangular_time
from attnflow_gallery import phase_diagram
from attnflow_gallery.phase_diagram import simulate
from tests.experiments.mutants import mutation

QUICK = phase_diagram.QUICK


@pytest.mark.slow
def test_few_draws_hold_and_a_wrong_beta_is_found_out():
    few = dataclasses.replace(QUICK, draws=24, betas=(2.0,), map_betas=(1.0,), map_draws=1, until=6.0)
    found = kill_matrix(phase_diagram, few, [mutation(phase_diagram, "beta 20 % larger")])
    killed = [claim for claim, row in zip(found.claims, found.killed, strict=True) if row == (True,)]
    assert any("against the curve" in claim for claim in killed)


@pytest.mark.parametrize("beta", [0.0, 3.0])
def test_crossings_are_found_between_frames(beta):
    """Exact curves: cubic interpolation is off by the fourth power of the span (at beta = 0, where it is linear, not)."""
    long = dataclasses.replace(QUICK, until=10.0)
    times = np.arange(41) * long.span
    frames = equiangular_overlap(times[:, None], beta, long.n, overlap0=np.array([-0.01, 0.0, 0.02]))
    found = simulate.crossing(frames, long)
    expected = equiangular_time(0.5, beta, long.n, overlap0=np.array([-0.01, 0.0, 0.02]))
    np.testing.assert_allclose(found, expected, atol=1e-12 if beta == 0 else 2e-4)
    assert np.isnan(simulate.crossing(np.full((41, 1), 0.1), long)).all()

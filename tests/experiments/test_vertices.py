"""Vertices: the core holds, a wrong beta and a mask are found out, and a second program has the same hulls."""

import dataclasses

import numpy as np
import pytest
import xarray as xr

from attnflow.experiments import Study, kill_matrix
from attnflow.observe import convex_hull
from attnflow_gallery import vertices
from attnflow_gallery.vertices.compare import limits
from tests.experiments.mutants import mutation

SMALL = dataclasses.replace(vertices.QUICK, starts=4, legs=12, steps=25)


@pytest.mark.long
def test_a_slightly_wrong_beta_and_a_causal_mask_are_found_out():
    """beta off by 1e-4: the radius of a limit depends on it, the kind of limit does not. A mask leaves no polytope."""
    changes = [mutation(vertices, name) for name in ("beta 0.01 % larger", "causal mask")]
    found = kill_matrix(vertices, SMALL, changes)
    first = dict(zip(found.claims, found.killed, strict=True))
    assert [key for key, row in first.items() if row[0]] == ["Regular polygons and polyhedra: radius of the limit of z"]
    assert sum(row[1] for row in first.values()) >= 4


@pytest.mark.slow
def test_the_first_start_is_that_of_an_independent_program(tmp_path):
    """Areas of the hull of 20 Gaussian points (LSODA, its own field), as printed, and four limits."""
    part = vertices.run(vertices.QUICK, Study(tmp_path / "parts"))["R2"]
    frames = np.searchsorted(part["time"].values, [0.0, 0.5, 1.0, 2.0, 4.0])
    areas = [convex_hull(part["positions"].values[frame, 0]).volume for frame in frames]
    np.testing.assert_allclose(areas, [10.0211, 8.7723, 8.2376, 7.0691, 6.1764], atol=6e-5)
    assert len(limits(part, 0)) == 4


def test_a_limit_that_is_a_single_point():
    """Tokens that close in on one of them like e^(-t): one limit, although their hull has several vertices."""
    time = np.linspace(0.0, 12.0, 3)
    cloud = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [-1.0, 2.0]])
    z = np.array([3.0, 0.0]) + np.exp(-time)[:, None, None] * cloud
    part = xr.Dataset({"positions": (("time", "start", "token", "dim"), z[:, None])}, {"time": time})
    assert len(limits(part, 0)) == 1

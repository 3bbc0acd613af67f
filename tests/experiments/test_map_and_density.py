"""Map and density: a small version, and a missing stretching is found out."""

import dataclasses

import numpy as np

from attnflow.experiments import Study
from attnflow_gallery import map_and_density
from attnflow_gallery.map_and_density import compare, simulate
from tests.experiments.mutants import mutation

CORE = dataclasses.replace(map_and_density.QUICK, sizes=((2, 3), (4, 4)), points=2000)


def core(folder):
    data = map_and_density.run(CORE, Study(folder / "parts"))
    return [claim.holds for claim in compare.claims(CORE, data)]


def test_the_map_converges_and_a_missing_stretching_is_found_out(tmp_path):
    assert core(tmp_path / "right")[0]
    density = np.sqrt(simulate.errors(CORE, Study(tmp_path))["log_density"].mean("batch").values)
    assert density[1] < 0.7 * density[0]
    with mutation(map_and_density, "no stretching").applied():
        assert core(tmp_path / "wrong")[1:] == [False, False]


def test_the_jacobian_is_that_of_the_map():
    x, h = np.random.default_rng(1).random((20, 2)), 1e-6
    columns = [(simulate.phi(x + h * e) - simulate.phi(x - h * e)) / (2 * h) for e in np.eye(2)]
    found = columns[0][:, 0] * columns[1][:, 1] - columns[0][:, 1] * columns[1][:, 0]
    assert np.allclose(found, simulate.jacobian(x), atol=1e-8)

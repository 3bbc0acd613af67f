"""Map and density: a small version, and a missing stretching is found out."""

import dataclasses

import numpy as np
import pytest

from attnflow.experiments import Study
from attnflow_gallery import map_and_density
from attnflow_gallery.map_and_density import compare, simulate
from tests.experiments.mutants import mutation

CORE = dataclasses.replace(map_and_density.QUICK, sizes=((2, 2), (3, 3), (4, 4)), points=2000)


def core(folder):
    data = map_and_density.run(CORE, Study(folder / "parts"))
    return [claim.holds for claim in compare.claims(CORE, data)]


@pytest.mark.slow
def test_the_orders_hold_and_a_missing_stretching_is_found_out(tmp_path):
    assert core(tmp_path / "right") == [True, True]
    four = dataclasses.replace(CORE, sizes=((2, 2), (3, 3), (4, 4), (5, 5)), points=400)
    with mutation(map_and_density, "no stretching").applied():
        slope, _, _ = compare.order(simulate.errors(four, Study(tmp_path)), "log_density")
    assert slope > -0.05, "the error of the log-density stays what it is"


def test_whatever_is_no_number_makes_a_claim_fail():
    part = simulate.errors(dataclasses.replace(CORE, points=40), Study("unused"))
    for k, name in enumerate(("map", "log_density")):
        broken = part.copy(deep=True)
        broken[name].values[1, 3] = np.nan
        assert compare.claims(CORE, {"errors": broken})[k].holds is False


def test_the_jacobian_is_that_of_the_map():
    x, h = np.random.default_rng(1).random((20, 2)), 1e-6
    columns = [(simulate.phi(x + h * e) - simulate.phi(x - h * e)) / (2 * h) for e in np.eye(2)]
    found = columns[0][:, 0] * columns[1][:, 1] - columns[0][:, 1] * columns[1][:, 0]
    assert np.allclose(found, simulate.jacobian(x), atol=1e-8)

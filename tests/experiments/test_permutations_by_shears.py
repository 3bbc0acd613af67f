"""Permutations by shears: the quick version holds in part, and a missing shear is found out."""

import dataclasses

import numpy as np
import pytest
import xarray as xr

from attnflow.experiments import Study
from attnflow_gallery import permutations_by_shears
from attnflow_gallery.permutations_by_shears import compare, simulate
from tests.experiments.mutants import mutation

CORE = dataclasses.replace(permutations_by_shears.QUICK, cycles=4, points=400, sizes=(4, 6, 8), permutations=(3,))


def core(folder):
    data = permutations_by_shears.run(CORE, Study(folder / "parts"))
    return {claim.statement: claim.holds for claim in compare.claims(CORE, data)}


@pytest.mark.slow
def test_the_core_holds_and_missing_shears_are_found_out(tmp_path):
    right = core(tmp_path / "right")
    assert [name for name, holds in right.items() if not holds and not name.startswith(("error", "order"))] == []
    with mutation(permutations_by_shears, "3-cycles: the first shear left out").applied():
        assert not core(tmp_path / "short")["3-cycles of cells: largest error on cores"]
    with mutation(permutations_by_shears, "permutations: the first shear left out").applied():
        assert not core(tmp_path / "less")["random permutations: largest error at centres"]


def test_orders_of_made_up_squares():
    """Fine rims: error N^(-1/2), wide ones add N^(1/4) to the square; an entry that is no number is a claim that fails."""
    n, noise = np.array([4.0, 6.0, 8.0, 12.0]), 1 + 1e-3 * np.random.default_rng(0).standard_normal((4, 20))
    fine, more = noise / n[:, None] ** 2, 0.1 * noise * n[:, None] ** 0.5
    square = np.stack([fine, fine + more], axis=1)

    def verdicts(square):
        swirl = xr.Dataset({"square": (("n", "ramp", "batch"), square)}, {"n": n})
        fine = xr.Dataset({"error": ("cell", np.zeros(3))})
        random = xr.Dataset({"error": ("n", np.zeros(1))}, {"n": [3]})
        found = compare.claims(CORE, {"cycles": fine, "random": random, "swirl": swirl})[2:]
        return [claim.measured for claim in found], [claim.holds for claim in found]

    slopes, holds = verdicts(square)
    assert np.allclose(slopes, [-0.5, 0.25], atol=1e-3)
    assert holds == [True, True]
    for ramp, failed in ((0, [False, False]), (1, [True, False])):
        broken = square.copy()
        broken[2, ramp, 5] = np.nan
        assert verdicts(broken)[1] == failed
    assert verdicts(np.stack([fine, fine + 0.1 * fine], axis=1))[1] == [True, False]


def test_the_swirl_preserves_areas_and_the_square():
    x = np.random.default_rng(0).random((50, 2))
    h = 1e-6
    columns = [(simulate.swirl(x + h * e) - simulate.swirl(x - h * e)) / (2 * h) for e in np.eye(2)]
    assert np.allclose(columns[0][:, 0] * columns[1][:, 1] - columns[0][:, 1] * columns[1][:, 0], 1, atol=1e-7)
    assert np.array_equal(np.sort(simulate.assigned(4)), np.arange(16))

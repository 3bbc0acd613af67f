"""Permutations by shears: the quick version holds in part, and a missing shear is found out."""

import dataclasses

import numpy as np

from attnflow.experiments import Study
from attnflow_gallery import permutations_by_shears
from attnflow_gallery.permutations_by_shears import compare, simulate
from tests.experiments.mutants import mutation

CORE = dataclasses.replace(permutations_by_shears.QUICK, cycles=4, points=400, sizes=(4, 8), permutations=(3,))


def core(folder):
    data = permutations_by_shears.run(CORE, Study(folder / "parts"))
    return {claim.statement: claim.holds for claim in compare.claims(CORE, data)}


def test_the_core_holds_and_missing_shears_are_found_out(tmp_path):
    right = core(tmp_path / "right")
    assert [name for name, holds in right.items() if not holds and not name.startswith(("error", "order"))] == []
    with mutation(permutations_by_shears, "3-cycles: the first shear left out").applied():
        assert not core(tmp_path / "short")["3-cycles of cells: largest error on cores"]
    with mutation(permutations_by_shears, "3-cycles: shears tilted").applied():
        assert not core(tmp_path / "tilted")["3-cycles of cells: log-determinant"]


def test_the_swirl_preserves_areas_and_the_square():
    x = np.random.default_rng(0).random((50, 2))
    h = 1e-6
    columns = [(simulate.swirl(x + h * e) - simulate.swirl(x - h * e)) / (2 * h) for e in np.eye(2)]
    assert np.allclose(columns[0][:, 0] * columns[1][:, 1] - columns[0][:, 1] * columns[1][:, 0], 1, atol=1e-7)
    assert np.array_equal(np.sort(simulate.assigned(4)), np.arange(16))

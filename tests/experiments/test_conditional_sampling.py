"""Conditional sampling: divergences are the closed forms, and other nodes and slabs are found out."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from attnflow_gallery import conditional_sampling
from attnflow_gallery.conditional_sampling import compare, simulate
from tests.experiments.mutants import noticed

FEW = dataclasses.replace(conditional_sampling.QUICK, slabs=((2, (4,)),))


def test_divergences_hold_and_other_nodes_and_slabs_are_found_out():
    """Without random units, which need more programs."""

    def run(parameters, study):
        makers = {"sheared": (simulate.sheared, parameters), "scales-2": (simulate.scales, parameters, 2, (4,))}
        return study.parts(makers)

    def claims(parameters, data):
        return [compare._sheared(parameters, data["sheared"]), compare._scales(parameters, data)]

    part = SimpleNamespace(run=run, claims=claims, MUTATIONS=conditional_sampling.MUTATIONS)
    nodes, slabs = noticed(part, FEW, ("cells of equal mass", "one slab more"))
    assert len(nodes) == len(slabs) == 1
    assert nodes != slabs


def test_closed_forms_are_those_of_the_theory():
    """Printed digits of an independent derivation, and the limits of many cells, slabs and units."""
    assert compare.sheared_divergence(4, 2) == pytest.approx(0.02536855, abs=5e-9)
    assert compare.sheared_divergence(8, 3) == pytest.approx(0.00604363, abs=5e-9)
    assert 1024**2 * compare.ramp_divergence(1024) == pytest.approx(0.281146, abs=5e-7)
    found = [compare.scale_divergence(1.0, j, 2) for j in (1, 2, 4, 8, 16)]
    np.testing.assert_allclose(
        found, [0.2976100960, 0.0807196808, 0.0206624273, 0.0051975255, 0.0013014058], atol=5e-11
    )
    found = [compare.composed_square(2.0, k, d) for d in (2, 10) for k in (4, 16, 64)]
    known = [0.87938177, 0.14700303, 0.03302391, 0.10055946, 0.01659092, 0.00374917]
    np.testing.assert_allclose(found, known, atol=5e-9)
    np.testing.assert_allclose(
        [compare.layer_square(b) for b in (0.0, 0.5, 1.0)], [0.375, 0.15890077, 0.05830661], atol=5e-9
    )

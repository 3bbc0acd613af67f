"""General interaction: moments of the uniform measure stay where theory says so, and a transposed B is found out."""

import dataclasses

import numpy as np

from attnflow_gallery import general_interaction
from attnflow_gallery.general_interaction import compare, simulate
from tests.experiments.mutants import mutation

FEW = dataclasses.replace(general_interaction.QUICK, ring=32, scales=(1.0,), directions=2)


def moments():
    return simulate.moments(FEW, 2, "SA")["rate"].values[0]


def test_the_circle_keeps_its_moments_and_a_transposed_interaction_moves_them():
    """Rounding of 32 tokens is below 1e-13; V = B^(-T) with B transposed moves moments by a tenth."""
    found, stays = moments(), len(simulate.kept(FEW, 2))
    assert np.abs(found[:stays]).max() < 1e-13
    for one, rates in zip(simulate.moved(2), found[stays:], strict=True):
        expected, rough = compare.predicted(FEW, 2, one, 1.0, "SA")
        np.testing.assert_allclose(rates, expected, rtol=0, atol=2 * rough.max() + 1e-13)
    with mutation(general_interaction, "B transposed").applied():
        assert np.abs(moments()[1]).max() > 1e-2

"""Distances through time: a transform rises at the model's own beta alone, and its histogram counts every pair once."""

import dataclasses

import numpy as np
import pytest

from attnflow_gallery import distances_through_time
from attnflow_gallery.distances_through_time import simulate
from tests.experiments.mutants import mutation

FEW = dataclasses.replace(distances_through_time.QUICK, tokens=8, runs=1, rise_until=2.0, frames=16)


@pytest.mark.slow
def test_the_transform_rises_at_beta_and_falls_at_another():
    """Rounding is 1e-14; three tokens lose 1e-4 of the transform at 0.5."""
    found = simulate.rises(FEW, "SA")
    assert np.diff(found["own"].values, axis=1).min() > -2e-14
    with mutation(distances_through_time, "the transform at another beta").applied():
        wrong = simulate.rises(FEW, "SA")
    assert np.diff(wrong["own"].values, axis=1).min() < -1e-6


def test_histograms_count_every_pair_once():
    x = np.array([[[1.0, 0, 0], [0, 1, 0], [-1, 0, 0]]])
    found = simulate.histogram(x)[0]
    assert found[0] == 1 / 3
    assert found[simulate.BINS // 2] == 2 / 3

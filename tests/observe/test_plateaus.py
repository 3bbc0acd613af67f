"""Plateaus of a number of clusters: found in a flow, with times that are no floats."""

import numpy as np
import pytest

import attnflow as af


def test_plateaus_are_found():
    time = np.geomspace(1, 1000, 31)
    count = np.where(time < 10, 9, np.where(time < 100, 4, np.where(time < 150, 3, 1)))
    condensed = time > 5
    found = af.observe.plateaus(time, count, condensed, -1.0 / time)
    assert [(p.clusters) for p in found] == [4, 1]
    assert found[0].start == pytest.approx(10, rel=0.3)
    assert found[0].end < 100
    assert np.exp(found[0].log_end) == pytest.approx(found[0].end, rel=1e-15)


def test_plateaus_hold_times_that_are_no_floats():
    long = af.observe.Plateau(-np.inf, 1e4, 3, -0.1)
    assert long.start == 0
    assert long.end == np.inf


def test_a_plateau_begins_with_the_first_frame():
    time, energy = np.array([1.0, 2.0, 8.0]), np.array([0.0, 1.0, 5.0])
    found = af.observe.plateaus(time, np.ones(3, int), np.ones(3, bool), energy)
    assert [(p.log_start, p.energy) for p in found] == [(0.0, 1.0)]

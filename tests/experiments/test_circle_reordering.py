"""Reordering on the circle: speeds hold and another V is found out; instances are in the wrong order."""

import dataclasses

import numpy as np

from attnflow_gallery import circle_reordering
from attnflow_gallery.circle_reordering import compare, simulate
from tests.experiments.mutants import mutation

CORE = dataclasses.replace(circle_reordering.QUICK, lengths=(0.4,), tokens=60)
PLANS = {"w2": np.zeros((2, 4))}


def speeds():
    import xarray as xr

    plans = xr.Dataset({"w2": (("plan", "measure"), np.zeros((2, 4)))})
    return [claim.holds for claim in compare.claims(CORE, {"speeds": simulate.speeds(CORE), "plans": plans})[:2]]


def test_speeds_hold_and_another_rotation_is_found_out():
    assert speeds() == [True, True]
    with mutation(circle_reordering, "V a rotation by 80 degrees").applied():
        assert speeds() == [False, False]
    with mutation(circle_reordering, "V 1 % larger").applied():
        assert speeds()[0] is False


def test_instances():
    inputs, targets = simulate.instance(CORE, 0, 4)
    means = np.array([np.angle(np.mean(np.asarray(one.positions) @ np.array([1, 1j]))) for one in inputs])
    goals = np.array([np.arctan2(*np.asarray(one.positions)[0][::-1]) for one in targets])
    assert not simulate.ordered(means, goals)
    assert simulate.ordered(np.array([0.1, 2.0, 4.0]), np.array([5.0, 0.2, 1.0]))
    assert not simulate.ordered(np.array([0.1, 2.0, 4.0]), np.array([5.0, 1.0, 0.2]))


def test_quantiles_of_a_poisson_kernel():
    x = np.asarray(simulate.kernel(0.6, 80).positions)
    assert np.allclose(x.mean(axis=0), [0.6, 0], atol=1e-14)
    z = x @ np.array([1, 1j])
    assert np.isclose(np.mean(z**2), 0.36, atol=1e-13)

"""Reordering on the circle: speeds hold and another V is found out; instances are in the wrong order."""

import dataclasses

import numpy as np
import xarray as xr

from attnflow_gallery import circle_reordering
from attnflow_gallery.circle_reordering import compare, simulate
from tests.experiments.mutants import mutation

CORE = dataclasses.replace(circle_reordering.QUICK, lengths=(0.4,), tokens=60)


def verdicts(speeds, distances, elements):
    plans = xr.Dataset({"w2": (("plan", "measure"), distances), "elements": ("plan", np.asarray(elements, float))})
    return [claim.holds for claim in compare.claims(CORE, {"speeds": speeds, "plans": plans})]


def speeds():
    return verdicts(simulate.speeds(CORE), np.zeros((2, 4)), [9, 9])[:2]


def test_whatever_is_no_number_makes_a_claim_fail():
    """Entries beyond the measures of a plan, and those of a refused one, are not read; a refusal is counted."""
    turned, good = simulate.speeds(CORE), np.zeros((2, 4))
    assert verdicts(turned, good, [9, 9]) == [True] * 4
    for k in range(8):
        distances = good.copy()
        distances.flat[k] = np.nan
        assert verdicts(turned, distances, [9, 9])[2] is (k == 3), k
    assert verdicts(turned, good, [9, np.nan])[3] is False
    assert verdicts(turned, np.array([[0.0] * 4, [np.nan] * 4]), [9, 0]) == [True, True, True, False]
    for name in ("length", "angle"):
        for k in range(turned[name].size):
            broken = turned.copy(deep=True)
            broken[name].values.flat[k] = np.nan
            assert not all(verdicts(broken, good, [9, 9])), (name, k)


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

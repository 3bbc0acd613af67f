"""Topic switch: amplitudes of the density as known to five digits; a wrong place of the switch is found out."""

import dataclasses

import numpy as np
import pytest

from attnflow.experiments import kill_matrix
from attnflow_gallery import topic_switch
from attnflow_gallery.topic_switch import simulate
from tests.experiments.mutants import mutation

QUICK = topic_switch.QUICK
ONE = dataclasses.replace(
    QUICK,
    shares=(0.25,),
    slopes=(0.0,),
    leanings=(0.1,),
    untils=(5.0,),
    frames=20,
    reads=5,
    tokens=(64, 1024),
    shifts=2,
)


@pytest.mark.slow
def test_amplitudes_of_the_density():
    """Printed digits, from another grid."""
    part = simulate.densities(ONE, 0).isel(eps=0)
    for t, early, late in ((2.0, 0.59780, 1.83987), (4.0, 2.79419, 3.07028), (5.0, 5.12093, 3.75551)):
        found = part.sel(time=t, method="nearest")
        assert float(found["early"]) == pytest.approx(early, abs=1e-5)
        assert float(found["late"]) == pytest.approx(late, abs=1e-5)


def test_the_crossing_of_two_curves():
    times = np.linspace(0.0, 4.0, 30)
    assert simulate.crossing(times, np.exp(times) / 10, np.ones(30)) == pytest.approx(np.log(10), abs=1e-9)
    assert np.isnan(simulate.crossing(times, np.exp(times) / 1e4, np.ones(30)))


@pytest.mark.long
def test_a_later_switch_is_found_out():
    found = kill_matrix(topic_switch, ONE, [mutation(topic_switch, "switch at a place 10 % later")])
    killed = dict(zip(found.claims, found.killed, strict=True))
    assert sum(row == (True,) for row in killed.values()) >= 2

"""Alignment: a network whose updates are steps of the flow is found out."""

import dataclasses

import numpy as np
import pytest

from attnflow.experiments.kit import numbers_of
from attnflow.probe.networks import random_network
from attnflow_gallery import alignment
from attnflow_gallery.alignment import compare
from attnflow_gallery.alignment.mutations import STEP, flowing
from tests.experiments.mutants import noticed, only


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_steps_of_the_flow_align(family):
    """The mutation is what it says: with β = 4 known, R² of one ODE is 1 and its step the given one."""
    ids = np.random.default_rng(3).integers(0, 256, 20)
    stream = flowing(random_network(family, layers=2, heads=2, width=16).run(ids))
    data = numbers_of([stream], (), ("step",)).sel(part="attention")
    # sinks are left out of the fit and not of the flow: a decoder's first token pulls the others a little
    assert float(data["ode_r2"][0]) == pytest.approx(1.0, abs=1e-9 if family == "bert" else 0.2)
    assert float(data["ode_step"][0]) == pytest.approx(STEP, rel=1e-6 if family == "bert" else 0.3)


@pytest.mark.long
def test_steps_of_the_flow_are_found_out():
    few = dataclasses.replace(alignment.QUICK, nulls=(), texts=6)
    module = only(alignment, lambda *given: [compare._little(*given)])
    assert noticed(module, few, "updates are steps of the flow")


@pytest.mark.long
def test_permuted_weights_in_place_of_trained_ones_are_found_out():
    """Four draws: the null is 0.02 ± 0.01, the trained network 0.2."""
    few = dataclasses.replace(alignment.QUICK, nulls=("permuted",), draws=(4,), texts=6)
    module = only(alignment, lambda *given: [compare._above(*given)])
    assert noticed(module, few, "the trained network has permuted weights", "*-network")

"""Fresh networks: the drift of orthonormal tokens is that of the theory of simplices, and repetition is found out."""

import dataclasses

import numpy as np
import pytest

from attnflow import theory
from attnflow.probe import Stream
from attnflow.probe.networks import network
from attnflow_gallery import fresh_networks
from attnflow_gallery.fresh_networks import compare, simulate
from attnflow_gallery.fresh_networks.simulate import OWN, SHARED, name
from tests.experiments.mutants import noticed, only


def test_the_drift_of_orthonormal_tokens():
    """By the Gram matrix and by `simplex_drift`; they differ by b^4 = (0.02^2 64)^4 = 4e-7, relative to 1."""
    x = 5 * np.eye(64)[:12]
    stream = Stream(np.stack([x, x]), after_attention=x[None] + np.ones(64))
    drift = theory.random_layers.simplex_drift(0.0, 12, 0.02**2 * 64, d=63)
    assert simulate.drifts(stream) == pytest.approx([0.02**4 * 64 * 63 * drift], rel=1e-5)
    # <5 e_i + 1, 5 e_j + 1> = 10 + 64 and |5 e_i + 1|^2 = 25 + 10 + 64
    assert simulate.changes(stream) == pytest.approx([74 / 99], rel=1e-12)


@pytest.mark.parametrize("way", [OWN, SHARED])
def test_fresh_matrices_have_the_deviation_that_theory_is_told(way):
    """100,000 entries: five standard errors of a deviation are 5/sqrt(2e5) of it."""
    made = simulate.fresh("rxnmapper", way, 20, seed=5)
    assert made.weights_of(1)["outer"].std() == pytest.approx(simulate.DEVIATION, rel=5 / np.sqrt(2e5))
    assert (made.weights_of(0)["query"] == made.weights_of(1)["query"]).all() == (way == SHARED)


@pytest.mark.long
@pytest.mark.parametrize("which", list(simulate.SHAPES))
def test_shapes_are_those_of_the_catalogue(which):
    found = network(which).architecture
    assert {key: getattr(found, key) for key in simulate.SHAPES[which]} == simulate.SHAPES[which]
    assert found.scale == simulate.DEVIATION
    assert found.shared == (SHARED in simulate.WAYS[which])


@pytest.mark.long
def test_fresh_weights_for_every_repetition_are_found_out():
    few = dataclasses.replace(fresh_networks.QUICK, draws=6, texts=6)
    module = only(
        fresh_networks, lambda given, data: [compare._more(given, {"rxnmapper": data[name("rxnmapper", SHARED)]})]
    )
    assert noticed(module, few, "the repeated layer has fresh weights every time", "*-shared")

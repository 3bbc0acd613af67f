"""Trained beta: numbers of a stream whose attention is known, and a network without training is found out."""

import dataclasses

import numpy as np

from attnflow.experiments.kit import correlations, numbers_of
from attnflow.probe.networks import random_network
from attnflow_gallery import trained_beta
from attnflow_gallery.trained_beta import compare, simulate
from attnflow_gallery.trained_beta.mutations import attention_of
from tests.experiments.mutants import noticed, only

IDS = np.random.default_rng(3).integers(0, 256, 20)


def test_numbers_of_known_attention():
    """softmax(8 cos) has β = 8 and correlation 1 in every head, softmax(-8 cos) the opposite."""
    stream = random_network("bert", layers=3, heads=2, width=16).run(IDS)
    for sign in (1.0, -1.0):
        data = numbers_of([attention_of(sign)(stream)], (0, -1), ("heads",))
        np.testing.assert_allclose(data["beta"].values[0, :-1], 8 * sign, rtol=1e-6)
        np.testing.assert_allclose(correlations(data), sign, rtol=1e-6)
    x = np.asarray(stream.hidden[0][1], float)
    u = x / np.linalg.norm(x, axis=1, keepdims=True)
    assert np.isclose(simulate.overlaps(stream)[1], (u @ u.T)[np.triu_indices(20, 1)].mean(), rtol=1e-9)


def test_layers_that_have_collapsed_count_as_no_temperature():
    part = trained_beta.simulate.xr.Dataset(
        {"beta": (("text", "layer"), [[3.0, 900.0, 5.0]]), "overlap": (("text", "layer"), [[0.2, 0.999, 0.3]])}
    )
    assert compare.of_texts(part, "beta") == 3.0


def test_a_network_without_training_is_found_out():
    """Ten reactions, four permutations: the correlation is 0.28 against 0.00 ± 0.03."""
    few = dataclasses.replace(trained_beta.QUICK, nulls=("permuted",), draws=(4,))
    module = only(trained_beta, lambda *given: [compare._above(*given, "correlation")])
    assert noticed(module, few, "the trained network has permuted weights", "*-network")

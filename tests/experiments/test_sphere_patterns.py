"""Sphere patterns: a random seed grows skew as predicted, and exchanged models are found out; solids are regular."""

import dataclasses

import numpy as np
import pytest

from attnflow import theory
from attnflow.fields import Attention
from attnflow.stability import spectrum
from attnflow.tokens import Tokens
from attnflow_gallery import sphere_patterns
from attnflow_gallery.sphere_patterns import compare, simulate, solids
from tests.experiments.mutants import mutation

FEW = dataclasses.replace(sphere_patterns.QUICK, directions=1, skew_latitudes=8)


@pytest.mark.slow
def test_the_skewness_grows_as_predicted_and_exchanged_models_are_found_out():
    """kappa is 0.336 for softmax and 0.5 without its normaliser; a tenth of that is far above the third order."""
    kappa = theory.uniform.pattern_coefficient(3.0, 3, 2)
    found, bracket, _ = compare.slopes(simulate.skew(FEW, 2, 3.0, "SA"), 2)
    np.testing.assert_allclose(found, 3 * kappa * bracket, atol=10 * simulate.GROWN**2)
    with mutation(sphere_patterns, "SA and USA0 exchanged").applied():
        wrong, bracket, _ = compare.slopes(simulate.skew(FEW, 2, 3.0, "SA"), 2)
    assert np.all(np.abs(wrong - 3 * kappa * bracket) > 0.1 * bracket)


NEIGHBOURS = {"poles": 1, "tetrahedron": 3, "octahedron": 4, "cube": 3, "icosahedron": 5, "dodecahedron": 3}


def test_vertices_of_solids_have_equal_neighbours():
    assert [len(found) for found in solids.VERTICES.values()] == [2, 4, 6, 8, 12, 20]
    for name, found in solids.VERTICES.items():
        overlaps, near = np.sort(found @ found.T, axis=1)[:, -2::-1], NEIGHBOURS[name]
        np.testing.assert_allclose(overlaps[:, :near], overlaps[0, 0], atol=1e-14)
        assert near == len(found) - 1 or np.all(overlaps[:, near] < overlaps[0, 0] - 0.1)


def test_dual_solids_have_the_centres_of_faces():
    """Three vertices are nearest, and equally near, to the centre of a face."""
    for solid, dual in (("octahedron", "cube"), ("icosahedron", "dodecahedron")):
        overlaps = np.sort(solids.VERTICES[dual] @ solids.VERTICES[solid].T, axis=1)
        np.testing.assert_allclose(overlaps[:, -3:], overlaps[0, -1], atol=1e-14)
        assert np.all(overlaps[:, -4] < overlaps[0, -1] - 0.1)


def test_harmonics_are_orthonormal_and_largest_skewness_is_prolate():
    x, masses = solids.nodes(8)
    y = np.concatenate([solids.harmonics(degree, x) for degree in (1, 2, 4)], axis=1)
    np.testing.assert_allclose((y * masses[:, None]).T @ y, np.eye(y.shape[1]), atol=1e-13)
    axis = solids.harmonics(2, np.array([[0.0, 0.6, 0.8]]))[0]
    assert solids.skewness(2, axis / np.linalg.norm(axis))[0] == pytest.approx(0.638877, abs=6e-7)


@pytest.mark.parametrize(
    ("name", "beta", "largest", "least"),
    [("octahedron", 2.0, 0.6941798256, 0.0), ("cube", 2.0, 0.8804853848, -0.0594702245)],
)
def test_rates_at_solids(name, beta, largest, least):
    """Numbers of an independent program; rotations have rate 0."""
    found = spectrum(Attention(beta), Tokens(solids.VERTICES[name])).eigenvalues.real
    assert found.max() == pytest.approx(largest, abs=6e-11)
    assert found.min() == pytest.approx(least, abs=6e-11)

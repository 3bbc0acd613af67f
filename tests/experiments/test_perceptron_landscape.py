"""Perceptron landscape: few networks hold, slightly wrong physics is found out, atoms are counted on a circle."""

import dataclasses

import numpy as np
import pytest

from attnflow import theory
from attnflow.experiments import Study
from attnflow.theory.landscape import circle_points
from attnflow_gallery import perceptron_landscape
from attnflow_gallery.perceptron_landscape import compare, simulate
from tests.experiments.mutants import mutation, noticed

QUICK = perceptron_landscape.QUICK


def test_the_density_at_rest_and_a_slightly_wrong_beta():
    """One part in a million of beta sets the density in motion."""
    assert compare._exception(QUICK, simulate._rest(QUICK)).holds
    with mutation(perceptron_landscape, "beta larger by a factor 1 + 1e-6").applied():
        assert not compare._exception(QUICK, simulate._rest(QUICK)).holds


@pytest.mark.long
def test_two_networks_hold_and_a_slightly_wrong_bias_is_found_out():
    two = dataclasses.replace(QUICK, networks=2, repelling=1)
    killed = noticed(perceptron_landscape, two, "bias of one unit larger by 1e-6", "even")
    assert any("angle" in claim for claim in killed)


@pytest.mark.slow
def test_the_ends_are_critical_by_the_residuals_of_theory(tmp_path):
    """Another way than that of the claims: |P grad Phi| of the measure of all tokens, not of atoms."""
    two = dataclasses.replace(QUICK, networks=2, repelling=1)
    data = perceptron_landscape.run(two, Study(tmp_path / "parts"))["even"]
    n = data.sizes["token"]
    for k in range(data.sizes["network"]):
        ends = data["positions"].values[-1, k]
        residuals = theory.landscape.critical_residuals(
            ends, np.full(n, 1 / n), two.beta, landscape=compare.network_of(data, k)
        )
        # sums of n terms of size 1/n and of five units of size 3 at most
        assert residuals.max() < float(data["speed"].values[k].max()) + 64 * compare.EPS


def test_critical_atoms_have_no_residual():
    """The root of the equations of atoms against the speed that theory computes in the plane."""
    network = theory.landscape.Landscape(*(part[0] for part in simulate.networks(QUICK)))
    masses = np.array([0.7, 0.3])
    tops = compare.peaks(network)
    angles, curvature = compare.critical_atoms(np.resize(tops, 2) + np.array([0.0, 0.05]), masses, QUICK.beta, network)
    residuals = theory.landscape.critical_residuals(circle_points(angles), masses, QUICK.beta, landscape=network)
    assert residuals.max() < 1e-13
    assert curvature > 0


def test_atoms_across_the_end_of_the_turn():
    angles, masses = compare.atoms(circle_points(np.array([-1e-8, 2.0, 1e-8, 2.0 + 1e-8])))
    order = np.argsort(compare.apart(angles, 0.0))
    np.testing.assert_allclose(compare.apart(angles[order], [0.0, 2.0]), 0, atol=1e-7)
    np.testing.assert_allclose(masses, [0.5, 0.5])
    assert len(compare.atoms(circle_points(np.full(5, 1.0)))[0]) == 1
    assert len(compare.atoms(circle_points(2 * np.pi * np.arange(7) / 7))[0]) == 7


def test_networks_see_the_whole_circle():
    grid = circle_points(np.linspace(0, 2 * np.pi, 2000))
    directions, biases, _ = simulate.networks(simulate.Parameters(networks=200))
    slopes = np.einsum("td,kud->ktu", grid, directions) + biases[:, None]
    assert (slopes.max(axis=-1) > 0).all()

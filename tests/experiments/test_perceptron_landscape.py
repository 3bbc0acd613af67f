"""Perceptron landscape: the quick version holds; wrong potentials, kernels and energies are found out."""

import dataclasses

import numpy as np
import pytest

from attnflow import theory
from attnflow.experiments import Study
from attnflow.experiments.gallery import perceptron_landscape as pl


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    return pl.run(pl.QUICK, Study(tmp_path_factory.mktemp("landscape") / "parts"))


def failures(data):
    return [claim.statement for claim in pl.claims(pl.QUICK, data) if not claim.holds]


def test_two_networks_and_the_density_at_rest_hold_and_wrong_physics_is_found_out(tmp_path, monkeypatch):
    """Tokens gather next to peaks of U, a density rests at its own beta: a bias or a beta off by 1e-6 shows."""
    two, flow, shift = dataclasses.replace(pl.QUICK, networks=2), pl.flow, 1e-6 * np.eye(pl.UNITS)[0]

    def follow():
        return pl.compare(two, pl._follow(two, Study(tmp_path), pl.networks(two), 1.0, "attracting"))

    for row in follow():
        assert len(row["angles"]) <= len(row["peaks"])
        assert row["distance"] <= row["tolerance"]
    monkeypatch.setattr(pl, "flow", lambda beta, net, sign=1.0: flow(beta, [net[0], net[1] + shift, net[2]], sign))
    assert max(row["distance"] / row["tolerance"] for row in follow()) > 1
    monkeypatch.setattr(pl, "flow", flow)
    assert [claim.holds for claim in pl._exception(two, pl._rest(two))] == [True, True]
    monkeypatch.setattr(pl, "flow", lambda beta, *rest: flow(beta * (1 + 1e-6), *rest))
    assert [claim.holds for claim in pl._exception(two, pl._rest(two))] == [False, True]


@pytest.mark.slow
def test_the_quick_version_holds(quick):
    assert failures(quick) == []
    assert len(pl.claims(pl.QUICK, quick)) == 10
    assert len(pl.draw(pl.QUICK, quick).axes) == 6


@pytest.mark.slow
def test_the_ends_are_critical_by_the_residuals_of_theory(quick):
    """Another road than the claims take: |P grad Phi| of the measure of all tokens, not of atoms."""
    data = quick["attract"]
    n = data.sizes["token"]
    for k in range(data.sizes["network"]):
        ends = data["positions"].values[-1, k]
        residuals = theory.critical_residuals(ends, np.full(n, 1 / n), pl.QUICK.beta, pl.network_of(data, k))
        # sums of n terms of size 1/n and of five units of size 3 at most
        assert residuals.max() < float(data["speed"].values[k].max()) + 64 * pl.EPS


@pytest.mark.slow
def test_a_slightly_wrong_bias_is_found_out(quick, tmp_path, monkeypatch):
    """A shift of one unit by 1e-6 moves peaks of U by about as much."""
    flow = pl.flow
    shift = 1e-6 * np.eye(pl.UNITS)[0]

    def wrong(beta, network, sign=1.0):
        moved = network[1] + shift if network[1].shape[-1] == pl.UNITS else network[1]
        return flow(beta, [network[0], moved, network[2]], sign)

    monkeypatch.setattr(pl, "flow", wrong)
    moved = pl._follow(pl.QUICK, Study(tmp_path), pl.networks(pl.QUICK), 1.0, "attracting")
    assert any(words.startswith("place of atoms") for words in failures(quick | {"attract": moved}))


@pytest.mark.slow
def test_a_slightly_wrong_beta_is_found_out(quick, monkeypatch):
    """The density that rests does so for its own beta alone."""
    flow = pl.flow
    monkeypatch.setattr(pl, "flow", lambda beta, *rest: flow(beta * (1 + 1e-6), *rest))
    data = quick | {"exception": pl._rest(pl.QUICK)}
    (failed,) = failures(data)
    assert "density without atoms" in failed


@pytest.mark.slow
def test_energies_that_fall_or_pass_their_bounds_are_found_out(quick):
    up, down = quick["attract"].copy(deep=True), quick["repel"].copy(deep=True)
    up["energy"][3, 0] -= 1.0
    assert [words[:15] for words in failures(quick | {"attract": up})] == ["smallest growth"]
    up["energy"][3:, 0] += 9.0
    assert any("1/(2β) + max U" in words for words in failures(quick | {"attract": up}))
    for shift, words in ((-0.01, "(lowest)"), (0.02, "mean Φ - min Φ")):
        down["energy"][-1, 0] = float(quick["repel"]["energy"][-1, 0]) + shift
        assert any(words in failed for failed in failures(quick | {"repel": down}))


@pytest.mark.slow
def test_tokens_that_did_not_gather_are_found_out(quick):
    loose = quick["attract"].copy(deep=True)
    loose["positions"][-1] = loose["positions"][0]
    assert any("most atoms" in words for words in failures(quick | {"attract": loose}))


def test_atoms_across_the_end_of_the_turn():
    angles, masses = pl.atoms(pl.circle(np.array([-1e-8, 2.0, 1e-8, 2.0 + 1e-8])))
    order = np.argsort(pl.apart(angles, 0.0))
    np.testing.assert_allclose(pl.apart(angles[order], [0.0, 2.0]), 0, atol=1e-7)
    np.testing.assert_allclose(masses, [0.5, 0.5])
    assert len(pl.atoms(pl.circle(np.full(5, 1.0)))[0]) == 1
    assert len(pl.atoms(pl.circle(2 * np.pi * np.arange(7) / 7))[0]) == 7


def test_networks_see_the_whole_circle():
    grid = pl.circle(np.linspace(0, 2 * np.pi, 2000))
    directions, biases, _ = pl.networks(pl.Parameters(networks=200))
    slopes = np.einsum("td,kud->ktu", grid, directions) + biases[:, None]
    assert (slopes.max(axis=-1) > 0).all()

"""Cluster counts: the core holds, a wrong beta is found out; fluctuations of a density; counting by hand."""

import dataclasses

import numpy as np
import pytest

from attnflow.experiments import Study
from attnflow.fields import Attention
from attnflow_gallery import cluster_count
from attnflow_gallery.cluster_count import simulate
from tests.experiments.mutants import noticed

QUICK = cluster_count.QUICK


@pytest.mark.long
def test_the_core_holds_and_a_wrong_beta_is_found_out():
    """With a quarter more modes, iid tokens no longer give fewer clusters than k_max."""
    core = dataclasses.replace(QUICK, runs=32)
    killed = noticed(cluster_count, core, "beta 60 % larger", "iid-*")
    assert sum("M(t)" in claim or "below" in claim for claim in killed) == 2


def test_a_density_has_the_fluctuations_of_its_tokens():
    """Fourier coefficients of variance 1/n in every degree, and nothing where the ring cannot carry it."""
    size, ring = 1e6, 96
    angles = []
    for seed in range(200):
        x = np.asarray(simulate.many(size, ring, np.random.default_rng([seed, 1])).positions)
        angles.append(np.arctan2(x[:, 1], x[:, 0]))
    for k in (1, 7, 30):
        power = np.abs(np.mean(np.exp(1j * k * np.array(angles)), axis=1)) ** 2 * size
        # exponential of mean 1: the mean of 200 has standard error 1/sqrt(200)
        assert power.mean() == pytest.approx(1, abs=4 / np.sqrt(200))


def test_modes_of_a_seeded_ring_are_its_crests():
    """Ring of 96 tokens, 5 and 8 crests: the slope of the smoothed density changes sign there alone."""
    for k in (5, 8):
        tokens = simulate.one_mode(k, 96, np.random.default_rng(k))
        assert simulate.count_modes(Attention(25.0), tokens, 256).tolist() == k


@pytest.mark.long
def test_the_figure_has_four_panels(tmp_path):
    few = dataclasses.replace(QUICK, runs=6, tokens=64)
    data = cluster_count.run(few, Study(tmp_path / "parts"))
    assert len(cluster_count.draw(few, data).axes) == 4

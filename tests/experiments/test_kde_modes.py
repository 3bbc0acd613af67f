"""Modes of kernel densities: the core holds, a slightly wrong beta is found out; counting by hand; a second counter."""

import dataclasses

import numpy as np
import pytest

from attnflow import theory
from attnflow.experiments import Study
from attnflow_gallery import kde_modes
from attnflow_gallery.kde_modes import simulate
from tests.experiments.mutants import noticed

QUICK = kde_modes.QUICK


@pytest.mark.slow
def test_the_core_holds_and_a_wrong_beta_on_the_circle_is_found_out():
    """10 % of beta is 5 % of the modes; their standard error is 0.6 %."""
    core = dataclasses.replace(QUICK, samples=20_000, pairs=4000, circle_betas=(100.0,))
    killed = noticed(kde_modes, core, "circle: beta 10 % larger", "circle-*")
    assert killed
    assert all(claim.startswith("Circle") for claim in killed)


def test_counting_by_hand():
    """Two samples have two modes from 2 beta^(-1/2) apart; rows do not feel each other; empty places have no modes."""
    beta = 4.0
    samples = np.array([[0.0, 0.98], [0.0, 1.05], [-30.0, 0.2], [0.3, 0.3]])
    fine, coarse, middle = simulate.count(samples, beta)
    assert fine.tolist() == coarse.tolist() == [1, 2, 2, 1]
    # all between their samples, except for the one at -30
    assert middle.tolist() == [1, 2, 1, 1]


def test_the_grid_counts_what_the_counter_of_theory_counts():
    """n = beta = 100, the same samples: the grid misses at most a third of what halving it changes, and one mode."""
    samples = np.random.default_rng(2).standard_normal((100, 100))
    fine, coarse, _ = simulate.count(samples, 100.0)
    other = np.array([theory.landscape.count_line_modes(row, 100.0) for row in samples])
    assert np.all(other >= fine)
    assert other.sum() - fine.sum() <= (fine.sum() - coarse.sum()) / 3 + 1


@pytest.mark.long
def test_the_data_hold_what_a_table_says(tmp_path):
    """Values of an independent Monte Carlo, with their standard errors: n = beta = 100 and n = 1000, beta = 100."""
    data = kde_modes.run(QUICK, Study(tmp_path / "parts"))
    for n, beta, value, error in ((100, 100.0, 9.941, 0.016), (1000, 100.0, 8.815, 0.032)):
        line = data["line"]
        one = line.isel(case=int(np.flatnonzero((line["n"].values == n) & (line["beta"].values == beta))[0]))
        assert float(one["fine"]) == pytest.approx(value, abs=4 * np.hypot(error, float(one["fine_error"])))
    assert len(kde_modes.draw(QUICK, data).axes) == 4

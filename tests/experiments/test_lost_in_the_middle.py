"""Lost in the middle: derivatives give the means of plain averages; no mask is found out."""

import dataclasses

import numpy as np
import pytest

from attnflow.experiments.gallery import lost_in_the_middle
from attnflow.experiments.gallery.lost_in_the_middle import simulate
from attnflow.experiments.mutation import kill_matrix
from tests.experiments.mutants import mutation

QUICK = lost_in_the_middle.QUICK


@pytest.mark.parametrize("d", [2, 3, 5])
def test_the_control_has_mean_zero(d):
    """4.5 standard errors of 15 means: level 1e-4."""
    start = simulate.drawn(np.random.default_rng(d), 4000, 6, d)
    rows = simulate.first_order(1.0, start, 1.0)[:, :-1]
    assert np.all(np.abs(rows.mean(axis=0)) <= 4.5 * rows.std(axis=0) / np.sqrt(len(rows)))


def test_bins_hold_every_source_once():
    for n in (32, 64, 128):
        assert sorted(np.concatenate(simulate.groups(n)).tolist()) == list(range(n - 1))


def test_derivatives_and_plain_averages_have_the_same_mean():
    """E<x_N, x_j> of 24 tokens by both, in standard errors of the plain one: 4.5 of 6 bins, level 1e-4."""
    start = simulate.drawn(np.random.default_rng(7), 3000, 24, 2)
    field = simulate.attention(1.0, 1.0, 24)
    end, _ = simulate.derivatives(field, start, 1.0)
    plain = 24 * simulate.binned(np.einsum("pd,pjd->pj", end, start))
    mean, _ = simulate.kept(field, start, 1.0, 1.0)
    error = plain.std(axis=0) / np.sqrt(len(plain))
    assert np.all(np.abs(plain.mean(axis=0) - mean.mean(axis=0)) <= 4.5 * error)


@pytest.mark.slow
def test_no_mask_is_found_out():
    core = dataclasses.replace(QUICK, sphere_prompts=64, softmax_prompts=128)
    found = kill_matrix(lost_in_the_middle, core, [mutation(lost_in_the_middle, "no mask")])
    killed = dict(zip(found.claims, found.killed, strict=True))
    assert sum(row == (True,) for row in killed.values()) >= 5

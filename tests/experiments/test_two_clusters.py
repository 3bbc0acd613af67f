"""Two clusters: one pair holds and stays on its great circle; a slightly wrong beta and swapped models are found out."""

import dataclasses

import numpy as np
import pytest

import attnflow as af
from attnflow.fields import Attention
from attnflow.flows import Adaptive, Evenly
from attnflow.tokens import Tokens
from attnflow_gallery import two_clusters
from tests.experiments.mutants import noticed

# one pair of a kind that shows everything: unequal masses, beta and angle away from 0
ONE = dataclasses.replace(two_clusters.QUICK, betas=(5.0,), angles=(1.5,), masses=(0.7,))


@pytest.mark.long
def test_one_pair_holds_and_a_slightly_wrong_beta_is_found_out():
    """One part in a million of beta: the meeting point of USA0 does not depend on it, times do (d log T/d log beta is about 3)."""
    killed = noticed(two_clusters, ONE, "beta 0.0001 % larger", "*-S2")
    assert {f"{model}: merge time of two clusters" for model in ("SA", "USA0")} <= killed
    assert "USA0: angle that cluster # travels to the meeting point" not in killed


@pytest.mark.slow
def test_swapped_models_are_found_out():
    killed = noticed(two_clusters, ONE, "SA and USA0 swapped", "*-S2")
    for model in ("SA", "USA0"):
        assert f"{model}: merge time of two clusters" in killed
        assert f"{model}: angle that cluster # travels to the meeting point" in killed


@pytest.mark.slow
def test_two_clusters_stay_on_their_great_circle():
    """True of any central force; 40 steps, each off by at most 1e-10."""
    frame, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))
    start = np.array([[1.0, 0, 0], [np.cos(1.5), np.sin(1.5), 0]]) @ frame.T
    flow = af.solve(Attention(5.0), Tokens(start, [0.7, 0.3]), 20.0, save=Evenly(5), method=Adaptive(1e-11, 1e-12))
    assert np.abs(flow.positions.values @ frame[:, 2]).max() < 1e-9

"""Causal clusters: rates near consensus hold and another mask is found out; centres and clusters counted by hand."""

import dataclasses

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from attnflow_gallery import causal_clusters
from attnflow_gallery.causal_clusters import compare, simulate
from tests.experiments.mutants import mutation

CORE = dataclasses.replace(causal_clusters.QUICK, betas=(1.0,), near_times=(1.0,))


@pytest.mark.slow
def test_rates_near_consensus_and_a_token_that_does_not_hear_itself():
    assert compare._rates(CORE, simulate.near(CORE)).holds
    with mutation(causal_clusters, "no token hears itself").applied():
        assert not compare._rates(CORE, simulate.near(CORE)).holds


def test_centres_and_clusters_by_hand():
    theta = np.array([0.0, 0.3, 0.55, 3.0, 6.2])
    # 0.3 is close to 0; 0.55 is farther than 0.4 from the centre 0 but not from the token 0.3; 6.2 is close to 0
    assert simulate.renyi(theta, 0.4).tolist() == [0, 2, 3]
    assert simulate.strong(np.cos(theta[:, None] - theta), 0.4).tolist() == [True, False, False, True, False]
    # 6.2 and 0 are 0.083 apart, across the end of the circle
    assert simulate.groups(theta, 0.4).tolist() == [0, 0, 0, 1, 0]
    assert simulate.groups(theta, 0.28).tolist() == [0, 1, 1, 2, 0]
    assert simulate.groups(np.zeros(3), 0.1).tolist() == [0, 0, 0]
    # two of three tokens: the pair is missed never, the single one by one choice of three
    assert simulate.covered(np.array([2, 1]), 2) == pytest.approx((2 + 2 / 3) / 3, rel=1e-15)


def test_the_time_of_the_second_token_is_that_of_its_equation():
    beta = 1.5
    flow = solve_ivp(
        lambda t, a: -np.sin(a) / (1 + np.exp(beta * (1 - np.cos(a)))), (0, 3), [2.5], rtol=1e-11, atol=1e-13
    )
    assert compare.pair_time(2.5, float(flow.y[0, -1]), beta) == pytest.approx(3, abs=1e-8)


def test_centres_of_starts_and_another_angle():
    few = dataclasses.replace(CORE, angles=(1.0,), draws=200, renyi_tokens=2000, strong_tokens=100)
    assert compare._starts(few, simulate.starts(few)).holds
    with mutation(causal_clusters, "angle of Rényi centres 10 % larger").applied():
        assert not compare._starts(few, simulate.starts(few)).holds

"""Continuity equation: tokens have what the equation makes of their harmonics, and a slightly wrong beta is found out."""

import dataclasses

import pytest

from attnflow.meanfield import CircleBasis, evolve
from attnflow_gallery import continuity_equation
from attnflow_gallery.continuity_equation import compare, simulate
from tests.experiments.mutants import mutation

SMALL = dataclasses.replace(continuity_equation.QUICK, circle_n=800, circle_degree=48, circle_until=0.8)


@pytest.mark.long
def test_tokens_solve_the_equation_and_a_thousandth_of_beta_is_found_out():
    """For 800 tokens a thousandth of beta is far below the noise, but the noise is in the equation too."""

    def verdicts():
        part = [simulate.compared("circle", "SA", SMALL)]
        return [claim(part).holds for claim in (compare._solution, compare._iid, compare._quiet)]

    assert verdicts() == [True, True, True]
    with mutation(continuity_equation, "beta of tokens 0.1 % larger").applied():
        assert verdicts() == [False, True, False]


@pytest.mark.slow
def test_the_solver_says_when_harmonics_lose_the_density():
    flow = evolve(simulate.Attention(9.0), simulate.start(CircleBasis(48), "circle"), 10.0, save=20, check=False)
    lost = float(flow.time[-1])
    assert not flow.outcome.ok
    assert 0 < lost < 10
    assert f"t = {lost:.6g}" in flow.outcome.message
    assert "hand_over" in flow.outcome.message

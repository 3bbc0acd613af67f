"""Exit times: absurd distributions fail every claim, a small set holds, and a wrong beta or sampler is found out."""

import dataclasses

import numpy as np
import pytest
import xarray as xr

from attnflow.experiments import Mutation
from attnflow.flows import Ending, Merges, Outcome
from attnflow.theory.merging import limit_staircase, pair_cascade
from attnflow_gallery import exit_times
from attnflow_gallery.exit_times import simulate
from tests.experiments.mutants import claims_of, noticed
from tests.marks import graded

FEW = dataclasses.replace(
    exit_times.QUICK, pair_starts=20, n=3, cases=(("USA0", 10_000.0),), starts=8, others=20, level=0.01
)
MANY = dataclasses.replace(
    exit_times.QUICK, pair_starts=150, cases=(("USA0", 10_000.0),), starts=100, others=100, level=1e-3
)


def pretended(distribution):
    """A simulation that gives back (log T)/beta of a distribution: an array (seed, merge) from positions."""

    def merge_times(field, tokens, **rest):
        x = np.asarray(tokens.positions)
        log_time = float(np.asarray(field.beta)) * distribution(x)
        names = {"log_time": log_time, "undetermined": log_time > np.inf, "evaluations": 0 * log_time + 600}
        table = xr.Dataset({name: (("seed", "merge"), values) for name, values in names.items()})
        return Merges(table, field, Outcome(Ending.FINISHED, "pretended."), {})

    return lambda original: merge_times


def shape(x):
    return x.shape[0], x.shape[1] - 1


def limit(x):
    n = x.shape[1]
    return np.array([limit_staircase(one, np.full(n, 1 / n), model="USA0").s for one in x])


ABSURD = {
    "all merge at time 1": lambda x: np.zeros(shape(x)),
    "all merge at e^(0.2 beta)": lambda x: np.full(shape(x), 0.2),
    "uniform between 0 and 0.25": lambda x: np.sort(np.random.default_rng(0).uniform(0, 0.25, shape(x)), axis=1),
    "twice the limit": lambda x: 2 * limit(x),
}


@graded("name", ABSURD)
def test_an_absurd_distribution_fails_every_claim(name):
    with Mutation(name, simulate, "merge_times", pretended(ABSURD[name])).applied():
        found = claims_of(exit_times, MANY)
    assert [claim.statement for claim in found if claim.holds] == []


@pytest.mark.slow
def test_the_cascade_in_place_of_the_simulation_holds():
    """The pretence itself is sound: with log T of cascades all claims about eight tokens hold."""

    def cascades(x):
        n, beta = x.shape[1], 10_000.0 if x.shape[1] > 2 else 25.0
        end = 2 * np.arcsin(simulate.chord(MANY, beta) / 2)
        return np.array(
            [pair_cascade(one, np.full(n, 1 / n), beta, model="USA0", until=end).log_time / beta for one in x]
        )

    with Mutation("cascade", simulate, "merge_times", pretended(cascades)).applied():
        found = claims_of(exit_times, MANY)
    assert [claim.statement for claim in found if not claim.holds] == []


@pytest.mark.long
def test_a_few_starts_hold_and_a_slightly_wrong_beta_is_found_out():
    killed = noticed(exit_times, FEW, "beta 0.01 % larger")
    assert killed
    assert all("log T of every" in key for key in killed)

"""Mutations change the simulation and nothing else; salts change every stream."""

import dataclasses
import types

import numpy as np
import pytest

from attnflow.errors import InvalidInput
from attnflow.experiments import Claim, Mutation, Salted, altered, kill_matrix, result, scaled, with_arguments

SOURCE = """
def grow(rate, time=2.0):
    return rate * time

def run(parameters, study):
    import xarray as xr
    return study.part("all", lambda: xr.Dataset({"x": ("k", [grow(1.0), grow(rate=3.0)])}))
"""


@pytest.fixture
def module():
    made = types.ModuleType("made_up")
    exec(SOURCE, made.__dict__)
    made.claims = lambda parameters, data: [
        Claim.equal("growth in 2 units", [2.0, 6.0], data["x"].values, 0.5, "s"),
        Claim.at_least("growth of the first", 0.0, float(data["x"][0]), 0.0, "s"),
    ]
    return made


def test_which_claims_notice(module):
    made = [
        Mutation("faster", module, "grow", scaled("rate", 1.5)),
        Mutation("longer", module, "grow", altered("time", lambda t: t + 1)),
        Mutation("a little", module, "grow", with_arguments(time=2.01)),
        Mutation("backwards", module, "grow", result(lambda x: -x)),
    ]
    found = kill_matrix(module, None, made)
    assert found.claims == ("growth in # units", "growth of the first")
    assert found.killed == ((True, True, False, True), (False, False, False, True))
    assert found.survivors == ()
    assert kill_matrix(module, None, made[:3]).survivors == ("growth of the first",)
    assert module.grow(1.0) == 2.0, "restored"


def test_errors(module):
    def refuse(original):
        def call(*arguments):
            raise InvalidInput("no")

        return call

    found = kill_matrix(module, None, [Mutation("refused", module, "grow", refuse)])
    assert found.refused == {"refused": "no"}
    assert found.killed == ((False,), (False,)), "a refusal kills nothing"
    right = module.claims
    module.claims = lambda p, data: [Claim.equal(f"growth of {float(data['x'][0])}", 2.0, 2.0, 0.0, "s")]
    with pytest.raises(InvalidInput, match="put what depends on the data into `detail`"):
        kill_matrix(module, None, [Mutation("faster", module, "grow", scaled("rate", 2.0))])
    module.claims = lambda p, data: right(p, data)[: 1 + (float(data["x"][0]) < 3)]
    with pytest.raises(InvalidInput, match="2 claims became 1"):
        kill_matrix(module, None, [Mutation("faster", module, "grow", scaled("rate", 2.0))])
    module.claims = lambda p, data: [Claim.equal("wrong", 0.0, 1.0, 0.0, "s")]
    with pytest.raises(InvalidInput, match="fails without a mutation"):
        kill_matrix(module, None, [])


def test_a_record_that_is_none(tmp_path, attnflow):
    (tmp_path / "r.json").write_text("{}")
    _, errors = attnflow("gallery", tmp_path, "--mutations", tmp_path / "r.json", code=2)
    assert "r.json' is no record of campaigns/physics.py" in errors


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    n: int = 3


def test_salts_change_every_stream():
    plain, other = Parameters(), Parameters(salt=7)
    assert plain.rng(5, 2).uniform() == np.random.default_rng([5, 2]).uniform()
    draws = [p.rng(*labels).uniform() for p in (plain, other, Parameters(salt=8)) for labels in ((5,), (5, 2), (6,))]
    assert len(set(draws)) == 9
    assert plain.seeds(range(3)) == (0, 1, 2)
    assert not set(other.seeds(range(1000))) & {*plain.seeds(range(1000)), *Parameters(salt=8).seeds(range(1000))}
    assert Parameters(4).n == 4, "the salt is with_arguments by its name only"

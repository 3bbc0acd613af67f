"""Merge times: the quick version holds, its integrals agree with others, and wrong masses, beta or forces are found out."""

import dataclasses
import math

import jax
import numpy as np
import pytest

from attnflow.experiments import Study
from attnflow.experiments.gallery import merge_times
from attnflow.fields import Attention
from attnflow.flows.longtime import integrator
from attnflow.theory import log_merge_time
from attnflow.tokens import Tokens

# one of each kind; compiled programs are shared with the quick version
ONE = dataclasses.replace(
    merge_times.QUICK, betas=(30.0,), angles=(1.0,), masses=(0.7,), triple_betas=(25.0,), gaps=(6.0,),
    symmetric_betas=(12.0, 100.0),
)  # fmt: skip


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    return merge_times.run(merge_times.QUICK, Study(tmp_path_factory.mktemp("merge") / "parts"))


@pytest.mark.slow
def test_the_quick_version_holds(quick):
    claims = merge_times.claims(merge_times.QUICK, quick)
    assert [claim.statement for claim in claims if not claim.holds] == []
    # two clusters: (3 + 3 + 2) times, 3 places, 3 circles; per model 3 of triples, 5 of symmetric ones, 3 of four
    assert len(claims) == 14 + 2 * 11
    assert len(merge_times.draw(merge_times.QUICK, quick).axes) == 6


@pytest.mark.slow
def test_a_number_that_is_none_fails(quick):
    data = {kind: table.copy(deep=True) for kind, table in quick.items()}
    data["pair"]["log_time"][0] = np.nan
    data["triple"]["second"][0] = np.nan
    fails = [claim.statement for claim in merge_times.claims(merge_times.QUICK, data) if not claim.holds]
    assert [words.split(" (")[0] for words in fails] == [
        "SA, β = 1: log T of two clusters", "USA0: log T of the second merge of three, a pair again",
    ]  # fmt: skip


@pytest.mark.parametrize("model", ["SA", "USA0"])
@pytest.mark.parametrize("beta", [1.0, 30.0, 1e4])
def test_the_integral_of_three_without_the_third_is_that_of_two(model, beta):
    """Gauss's rule on halving panels against exponential integrals (and 1e-16 in each term of log T)."""
    found = merge_times.log_closing_time(lambda t: (0 * t, t, 2.5 + 0 * t), (0.3, 0.5, 0.0), 1.2, 1e-4, beta, model)
    want = float(log_merge_time(1.2, beta, (0.3, 0.5), 1e-4, model))
    assert found == pytest.approx(want, abs=1e-12 + 4e-16 * want)


def test_the_tide_falls_like_the_weight_of_the_third():
    """log(delay) has the slope -1 in the gap, up to the geometry: far changes by gap/(beta sin), 1e-4 here."""
    near, far = (merge_times.delay(1e4, merge_times._far(1e4, gap), 1e-6, "USA0")[0] for gap in (8.0, 10.0))
    assert math.log(near / far) == pytest.approx(2.0, abs=1e-2)


def failures(tmp_path, parameters=ONE):
    data = merge_times.run(parameters, Study(tmp_path / "parts"))
    return {claim.statement.split(" (")[0] for claim in merge_times.claims(parameters, data) if not claim.holds}


def test_one_of_each_kind_of_softmax_and_a_wrong_beta(tmp_path, monkeypatch):
    """One part in a million: u beta of it, 1.4e-5, shows in log T, of which steps miss 1e-7."""
    for name in ("MODELS", "FOUR_TIMES"):
        monkeypatch.setattr(merge_times, name, {"SA": getattr(merge_times, name)["SA"]})
    assert failures(tmp_path / "right") == set()
    monkeypatch.setattr(merge_times, "Attention", lambda beta, **rest: Attention(beta * (1 + 1e-6), **rest))
    found = failures(tmp_path / "wrong")
    assert {"SA, β = 30: log T of two clusters", "SA: log T of a symmetric triple"} <= found


@pytest.mark.slow
def test_one_of_each_kind_holds(quick, tmp_path):
    assert failures(tmp_path) <= set()


@pytest.mark.slow
def test_dropped_masses_are_found_out(quick, tmp_path, monkeypatch):
    monkeypatch.setattr(merge_times, "Tokens", lambda positions, masses: Tokens(positions))
    found = failures(tmp_path)
    for model in ("SA", "USA0"):
        assert f"{model}: way of cluster 1 to where they meet" in found
        assert f"{model}, β = 12, four clusters: merge 3" in found
    assert "SA, β = 30: log T of two clusters" in found  # only the sum of the masses counts for USA0


@pytest.mark.slow
def test_a_slightly_wrong_beta_is_found_out(quick, tmp_path, monkeypatch):
    """One part in a million: u beta of it, 1.4e-5, shows in log T, of which steps miss 1e-7."""
    monkeypatch.setattr(merge_times, "Attention", lambda beta, **rest: Attention(beta * (1 + 1e-6), **rest))
    found = failures(tmp_path)
    for model in ("SA", "USA0"):
        assert {f"{model}, β = 30: log T of two clusters", f"{model}: log T of a symmetric triple"} <= found
        assert f"{model}: log T of the second merge of three, a pair again" in found


@pytest.mark.slow
@pytest.mark.parametrize("change", [0.999, 1.001])
def test_a_slightly_wrong_force_is_found_out(tmp_path, monkeypatch, change):
    """The simulator itself, with forces off by 1e-3; programs are compiled anew."""
    right = integrator.force

    def wrong(physics, x, mass):
        towards, level = right(physics, x, mass)
        return change * towards, level

    monkeypatch.setattr(integrator, "force", wrong)
    jax.clear_caches()
    try:
        found = failures(tmp_path)
    finally:
        monkeypatch.undo()
        jax.clear_caches()
    assert {f"{model}, β = 30: log T of two clusters" for model in merge_times.MODELS} <= found

"""Two clusters: the quick version holds, and a wrong field, clock or mass is found out."""

import dataclasses
import sys

import numpy as np
import pytest
import xarray as xr

from attnflow.cli import console, main
from attnflow.experiments import Study, open_part, read_claims
from attnflow.experiments.gallery import two_clusters
from attnflow.fields import Attention
from attnflow.runs import Run
from attnflow.theory import meeting_point, merge_time
from attnflow.tokens import Tokens

# one pair of a kind that shows everything: unequal masses, beta and angle away from 0; compiled programs are shared
ONE = dataclasses.replace(two_clusters.QUICK, betas=(5.0,), angles=(1.5,), masses=(0.7,))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """`attnflow reproduce two-clusters --quick`."""
    path = tmp_path_factory.mktemp("two") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(console, "use_compilation_cache", lambda: None)
        patch.setattr(sys, "argv", ["attnflow", "reproduce", "two-clusters", "--quick", "--out", str(path)])
        with pytest.raises(SystemExit) as ended:
            main()
    assert (ended.value.code or 0) == 0
    return Run.open(path)


@pytest.mark.slow
def test_the_quick_version_holds(run):
    run.verify()
    claims = read_claims(run)
    assert all(claim.holds for claim in claims)
    # two models: time and place per beta, one for the great circle, one per angle for the expansion
    assert len(claims) == 2 * (2 * 2 + 1 + 2)
    for name in ("two-clusters.pdf", "two-clusters.png"):
        assert (run.figures / name).stat().st_size > 10_000


@pytest.mark.slow
def test_the_parts_hold_what_theory_says(run):
    """Without the code of the claims: eight digits of time and place from the files."""
    for model in ("SA", "USA0"):
        part = open_part(run.path / "parts" / f"{model}-S2.npz")
        assert part.sizes["pair"] == 8
        for k in range(8):
            beta, angle, mass, time, way = (float(part[n][k]) for n in ("beta", "angle", "mass", "time", "travelled"))
            # rtol is 1e-11, some 50 steps are taken, and the time magnifies an error of angle by about 1/0.01
            assert time == pytest.approx(float(merge_time(angle, beta, (mass, 1 - mass), model=model)), rel=1e-7)
            assert way == pytest.approx(float(meeting_point(angle, beta, (mass, 1 - mass), model=model)), abs=1e-8)


def failures(tmp_path, parameters=ONE):
    data = two_clusters.run(parameters, Study(tmp_path / "parts"))
    found = [claim for claim in two_clusters.claims(parameters, data) if not claim.holds]
    return {(claim.statement.split(",")[0], "time" if "merge time" in claim.statement else "place") for claim in found}


def test_one_pair_of_softmax_holds_and_wrong_physics_is_found_out(tmp_path, monkeypatch):
    """One part in a million of beta (d log T/d log beta is about 3); masses that are dropped."""
    monkeypatch.setattr(two_clusters, "MODELS", {"SA": two_clusters.MODELS["SA"]})
    assert failures(tmp_path / "right") == set()
    place = two_clusters.place
    with monkeypatch.context() as patch:
        patch.setattr(two_clusters, "Attention", lambda beta, **rest: Attention(beta * (1 + 1e-6), **rest))
        assert ("SA", "time") in failures(tmp_path / "beta")
    monkeypatch.setattr(two_clusters, "place", lambda *rest: Tokens(np.asarray(place(*rest).positions)))
    assert failures(tmp_path / "masses") == {("SA", "time"), ("SA", "place")}


@pytest.mark.slow
def test_dropped_masses_are_found_out(run, tmp_path, monkeypatch):
    """With equal masses USA0 keeps its time (only the sum counts), but nothing else is right."""
    place = two_clusters.place

    def equal(*arguments):
        return Tokens(np.asarray(place(*arguments).positions))

    monkeypatch.setattr(two_clusters, "place", equal)
    assert failures(tmp_path) == {("SA", "time"), ("SA", "place"), ("USA0", "place")}


@pytest.mark.slow
def test_a_slightly_wrong_beta_is_found_out(run, tmp_path, monkeypatch):
    """One part in a million of beta: places hardly depend on it, times do (d log T/d log beta is about 3)."""
    monkeypatch.setattr(two_clusters, "Attention", lambda beta, **rest: Attention(beta * (1 + 1e-6), **rest))
    found = failures(tmp_path)
    assert {("SA", "time"), ("USA0", "time")} <= found


@pytest.mark.slow
def test_sisters_taken_for_each_other_are_found_out(run, tmp_path, monkeypatch):
    monkeypatch.setattr(
        two_clusters, "MODELS", dict(zip(("SA", "USA0"), reversed(two_clusters.MODELS.values()), strict=True))
    )
    assert failures(tmp_path) == {(model, kind) for model in ("SA", "USA0") for kind in ("time", "place")}


@pytest.mark.slow
def test_a_number_that_is_none_fails(run):
    data = xr.concat([open_part(run.path / "parts" / f"{model}-S2.npz") for model in ("SA", "USA0")], dim="pair")
    assert data["beta"].values[5] == 5
    data["travelled"][5] = np.nan
    (fails,) = (claim for claim in two_clusters.claims(two_clusters.QUICK, data) if not claim.holds)
    assert np.isnan(fails.measured)
    data["time"][5] = np.nan  # tolerances hang on it
    fails = [claim.statement for claim in two_clusters.claims(two_clusters.QUICK, data) if not claim.holds]
    assert [words.split(" (")[0] for words in fails] == [
        "SA, β = 5: merge time", "SA, β = 5: way of cluster 1 to the meeting point", "SA: distance from the great circle",
    ]  # fmt: skip

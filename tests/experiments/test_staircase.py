"""The staircase: the quick version holds, its theory is right where closed forms are known, and a wrong force fails."""

import dataclasses
import math

import numpy as np
import pytest
import xarray as xr

from attnflow import theory
from attnflow.experiments import Study, open_part, read_claims, reproduce
from attnflow.experiments.gallery import _pairs, staircase
from attnflow.fields import Attention
from attnflow.tokens import Tokens

FEW = dataclasses.replace(staircase.QUICK, betas=(400.0, 10000.0), halvings=1)
PLACES = np.array([[1.0, 0, 0], [math.cos(0.8), math.sin(0.8), 0], [math.cos(2.5), math.sin(2.5), 0]])


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    run, _ = reproduce("staircase", tmp_path_factory.mktemp("stairs") / "run", quick=True)
    return run


@pytest.mark.slow
def test_the_quick_version_holds(done):
    done.verify()
    claims = read_claims(done)
    assert [claim.statement for claim in claims if not claim.holds] == []
    assert len(claims) == 2 * (5 + 5) + 3  # of a cascade, of the limit; four clusters
    for name in ("staircase.pdf", "staircase.png"):
        assert (done.figures / name).stat().st_size > 10_000


@pytest.mark.slow
def test_the_parts_hold_what_theory_says(done):
    """Without the code of the claims: the last merge is one of a pair, log T = beta u - log(M beta sin^2) + O(1/beta)."""
    part = open_part(done.path / "parts" / "unequal-USA0.npz")
    tokens = staircase.place(staircase.QUICK, "unequal")
    limit = theory.limit_staircase(tokens.positions, tokens.masses, "USA0")
    beta = part["beta"].values
    np.testing.assert_array_equal(part["first"].values, np.broadcast_to(limit.first, (3, 7)))
    sine = np.sqrt(1 - (1 - limit.s) ** 2)
    late = beta[:, None] * limit.s - np.log(limit.masses.sum(axis=1) * beta[:, None] * sine**2)
    # next term 2 |cos|/(beta sin^2); doubled, for what follows it
    off = 4 * np.abs(1 - limit.s) / (beta[:, None] * sine**2)
    assert np.all(np.abs(part["log_time"].values - late) <= off)
    jumps = np.diff(part["level"].values[-1], prepend=limit.levels[0])
    np.testing.assert_allclose(jumps, 2 * limit.masses.prod(axis=1), rtol=1e-13)


def failures(folder):
    data = staircase.run(FEW, Study(folder))
    found = [claim.statement for claim in staircase.claims(FEW, data) if not claim.holds]
    return {(words.split(",")[0], words.split(": ")[1].split(" (")[0]) for words in found}


def test_a_cascade_of_eight_and_a_slightly_wrong_beta(monkeypatch):
    """Softmax attention, beta = 400: times, places and levels of all merges; one part in a thousand of beta shows."""

    one = dataclasses.replace(FEW, betas=(400.0,))

    def fails():
        flow = staircase.follow("SA", 400.0, staircase.place(one, "unequal"), one)
        part = xr.concat([staircase._record(flow)], dim="beta").assign_coords(beta=[400.0])
        return [c.statement for c in staircase._of_cascade(one, "unequal", "SA", part) if not c.holds]

    assert fails() == []
    monkeypatch.setattr(staircase, "Attention", lambda beta, **rest: Attention(beta * (1 + 1e-3), **rest))
    assert any("log t of a merge" in words for words in fails())


@pytest.mark.slow
def test_a_slightly_wrong_beta_is_found_out(done, tmp_path, monkeypatch):
    """One part in a thousand: times, and with them the area, but no pair, level or place of USA0."""
    monkeypatch.setattr(staircase, "Attention", lambda beta, **rest: Attention(beta * (1 + 1e-3), **rest))
    found = failures(tmp_path)
    for model in ("SA", "USA0"):
        wanted = {"log t of a merge", "s of a merge, limit and first corrections", "area between profile and limit"}
        assert wanted <= {words for name, words in found if name == model}
    assert ("USA0", "distance from the point where a pair alone meets") not in found


@pytest.mark.slow
def test_dropped_masses_are_found_out(done, tmp_path, monkeypatch):
    follow = staircase.follow

    def equal(model, beta, tokens, parameters):
        return follow(model, beta, Tokens(np.asarray(tokens.positions)), parameters)

    monkeypatch.setattr(staircase, "follow", equal)
    found = failures(tmp_path)
    for model in ("SA", "USA0"):
        wanted = {"log t of a merge", "distance from the point where a pair alone meets", "level 2βE0 after a merge"}
        assert wanted <= {words for name, words in found if name == model}
    assert any(words.startswith("distance of levels from 0.34, 0.52, 1") for _, words in found)


@pytest.mark.slow
def test_sisters_taken_for_each_other_are_found_out(done, tmp_path, monkeypatch):
    swapped = dict(zip(("SA", "USA0"), reversed(staircase.MODELS.values()), strict=True))
    monkeypatch.setattr(staircase, "MODELS", swapped)
    found = failures(tmp_path)
    assert {("SA", "log t of a merge"), ("USA0", "log t of a merge"), ("SA", "β of the change of order")} <= found


@pytest.mark.slow
def test_a_number_that_is_none_fails(done):
    names = ("unequal-SA", "unequal-USA0", "order")
    data = {name: open_part(done.path / "parts" / f"{name}.npz") for name in names}
    data["unequal-USA0"]["log_time"][1, 3] = np.nan
    fails = [claim for claim in staircase.claims(staircase.QUICK, data) if not claim.holds]
    assert any(np.isnan(claim.measured) and "log t of a merge" in claim.statement for claim in fails)


def test_a_cascade_of_two_is_the_closed_form():
    for model in ("SA", "USA0"):
        one = _pairs.cascade(PLACES[1:], np.array([0.3, 0.7]), 30.0, model)
        assert one.loose[0] == 0
        wanted = theory.log_merge_time(1.7, 30.0, (0.3, 0.7), 1e-3 / 30, model)
        assert one.log_time[0] == pytest.approx(float(wanted), rel=1e-14)  # the angle is rounded
    # both on one geodesic: in the weighted metric its length is angle sqrt(m1 m2/(m1 + m2)); equal masses of SA as well
    assert one.arc[0] == pytest.approx(1.7 * math.sqrt(0.21), rel=1e-14)
    assert _pairs.length(1.7, 30.0, (0.4, 0.4), "SA") == pytest.approx(1.7 * math.sqrt(0.2), rel=1e-14)


def test_how_softmax_attention_approaches_its_limit():
    """The first pair meets A beta^(-1/2) off its limit: int of q/(a + b q) with q = e^(-beta x^2/2) is a polylogarithm."""
    m1, m2, m3 = masses = np.array([0.5, 0.2, 0.3])
    form = _pairs.expansion(PLACES, masses, "SA")
    a, b = m1**2 + m2**2, 2 * m1 * m2
    k = np.arange(1, 4000)
    polylogarithm = np.sum((-1.0) ** (k + 1) * (b / a) ** k / np.sqrt(k))  # the last term is (20/29)^4000
    shift = math.sqrt(math.pi / 2) * (m1**2 - m2**2) / (2 * a) * polylogarithm
    # the meeting point moves towards the third cluster, so its angle shrinks; u changes by sin of it. Extrapolated from
    # beta = 1e8 and 4e8, where the next terms are 1e-8 and differences of angles have lost 4 of 16 digits
    assert form.root[0] == 0
    assert form.root[1] == pytest.approx(-math.sin(form.angle[1]) * shift, rel=1e-6)
    assert form.factor[1] == pytest.approx(((m1 + m2) / m3 + m3 / (m1 + m2)) * math.sin(form.angle[1]) ** 2, rel=1e-14)

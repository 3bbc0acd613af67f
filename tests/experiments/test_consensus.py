"""Consensus: the quick version holds, hemispheres are found, and wrong physics or too short a flow is found out."""

import dataclasses

import numpy as np
import pytest

from attnflow.experiments import Study
from attnflow.experiments.claim import share_interval
from attnflow.experiments.gallery import consensus
from attnflow.spaces import Sphere
from attnflow.tokens import Tokens, uniform

QUICK = consensus.QUICK


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return consensus.run(QUICK, Study(tmp_path_factory.mktemp("consensus") / "parts"))


def failures(data, parameters=QUICK):
    return [claim.statement for claim in consensus.claims(parameters, data) if not claim.holds]


def test_the_quick_version_holds(data):
    claims = consensus.claims(QUICK, data)
    assert len(claims) == 9
    assert all(claim.holds for claim in claims)
    assert len(consensus.draw(QUICK, data).axes) == 4


def test_hemispheres_are_found():
    """Against gaps of angles on the circle, and against normals of all planes through two tokens on the sphere."""
    for x in np.asarray(uniform(Sphere(2), n=5, seed=range(60)).positions):
        angles = np.sort(np.arctan2(x[:, 1], x[:, 0]))
        gap = np.diff(np.append(angles, angles[0] + 2 * np.pi)).max()
        margin = consensus.pole_margin(x)
        assert (margin > 0) == (gap > np.pi)
        assert margin <= max(np.sin((gap - np.pi) / 2), 0) + 1e-12  # the best pole is in the middle of the gap
    for x in np.asarray(uniform(Sphere(3), n=6, seed=range(60)).positions):
        i, j = np.triu_indices(6, 1)
        sides = np.cross(x[i], x[j]) @ x.T
        sides[np.arange(len(i)), i] = sides[np.arange(len(i)), j] = 0
        inside = bool(np.any((sides >= 0).all(axis=1) | (sides <= 0).all(axis=1)))
        assert (consensus.pole_margin(x) > 0) == inside


def test_intervals_are_exact():
    """Nobody of 100: 1 - (alpha/2)^(1/100); all but the end points by the tails of the binomial distribution."""
    from scipy.stats import binom

    low, high = share_interval(np.array([0, 30, 100]), 100, consensus.CONFIDENCE)
    assert low[0] == 0
    assert high[2] == 1
    assert high[0] == pytest.approx(1 - 0.0005**0.01)
    assert binom.sf(29, 100, low[1]) == pytest.approx(0.0005)
    assert binom.cdf(30, 100, high[1]) == pytest.approx(0.0005)


def test_a_wrong_beta_is_found_out(data, monkeypatch):
    """One part in a hundred thousand: eigenvalues and growth rates of the ring notice, and so does the threshold."""
    attention = consensus.Attention
    monkeypatch.setattr(consensus, "Attention", lambda beta, **rest: attention(_more(beta), **rest))
    fails = failures(data | {"ring": consensus._linearised(QUICK)})
    assert [f.split(":")[0] for f in fails] == ["SA, ring of three", "SA"]
    monkeypatch.setattr(consensus, "Attention", lambda beta, **rest: attention(_more(beta, 1e-4), **rest))
    fails = failures(data | {"circle": consensus._circle(dataclasses.replace(QUICK, circle_until=2.0))})
    assert any("growth rate of a displaced ring" in f for f in fails)


def _more(beta, share=1e-5):
    if isinstance(beta, consensus.Along):
        return beta.map(lambda values: (1 + share) * values)
    return (1 + share) * beta


def test_a_flow_that_is_too_short_is_found_out(data):
    short = dataclasses.replace(QUICK, until=4.0, circle_until=4.0)
    fails = failures(data | {"SA-S2": consensus._followed(short, "SA", 3), "circle": consensus._circle(short)})
    for words in (
        "every draw is in consensus",
        "every draw that starts in an open",
        "every draw reaches",
        "120 degrees",
    ):
        assert any(words in f for f in fails), words


def test_a_law_without_symmetry_is_found_out(data, monkeypatch):
    """Wendel needs x and -x to be equally likely: pushed to one side, more draws lie in a hemisphere."""

    def pushed(space, *, n, seed):
        positions = np.asarray(uniform(space, n=n, seed=seed).positions) + np.eye(space.dim)[0] * 0.5
        return Tokens(positions / np.linalg.norm(positions, axis=-1, keepdims=True), dims=("seed",))

    monkeypatch.setattr(consensus, "uniform", pushed)
    (fail,) = failures(data | {"hemisphere": consensus._hemispheres(QUICK)})
    assert "open hemisphere" in fail


def test_a_number_that_is_none_fails(data):
    circle, still = data["circle"].copy(deep=True), data["ring"].copy(deep=True)
    circle["off"][1, 0] = np.nan
    still["rate_SA"][2, 1] = np.nan
    fails = failures(data | {"circle": circle, "ring": still})
    assert len(fails) == 2

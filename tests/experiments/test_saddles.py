"""Saddles: the quick version holds, topology notices what is missing, and a wrong clock or stability is found out."""

import numpy as np
import pytest
import xarray as xr

from attnflow.experiments import Study
from attnflow.experiments.gallery import saddles
from attnflow.observe import overlaps
from attnflow.spaces import Sphere
from attnflow.tokens import ring, simplex

QUICK = saddles.QUICK
LIST, STARTS = "4-S2-beta1", "starts-S2"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return saddles.run(QUICK, Study(tmp_path_factory.mktemp("saddles") / "parts"))


def failures(data):
    return [claim.statement for claim in saddles.claims(QUICK, data) if not claim.holds]


def test_the_quick_version_holds(data):
    claims = saddles.claims(QUICK, data)
    assert len(claims) == 10
    assert all(claim.holds for claim in claims)
    assert len(saddles.draw(QUICK, data).axes) == 4


def test_the_four_tokens_on_the_sphere(data):
    """Tetrahedron, square, triangle with one corner double, two and two, one and three, consensus."""
    part = data[LIST]
    rows = set(zip(*(part[name].values.tolist() for name in ("clusters", "rank", "index", "labelled")), strict=True))
    assert rows == {(4, 3, 5, 2), (4, 2, 4, 3), (3, 2, 3, 6), (2, 1, 2, 3), (2, 1, 2, 4), (1, 1, 0, 1)}
    # (1 + t)(4 t^2 + 2 t^3 + 2 t^4) = 6 t^3 + 3 t^4 + 2 t^5 + (1 + 7 t^2 - (1 + t^2)^3)/(1 - t^2)
    defect, quotient = saddles.morse(part)
    assert (defect, quotient.tolist()) == (0, [0, 0, 4, 2, 2])
    assert saddles.euler(part) == (7 - 12, 3 - 6 - 2)


@pytest.mark.parametrize("missing", range(6))
def test_topology_notices_every_equilibrium_that_is_left_out(data, missing):
    broken = data | {LIST: data[LIST].isel(equilibrium=np.arange(6) != missing)}
    fails = failures(broken)
    assert any("Morse" in f for f in fails)
    assert missing >= 3 or any("Euler" in f for f in fails)  # collinear ones count on both sides


def test_the_three_tokens_on_the_circle_by_hand():
    """Consensus, three ways to split off one, two orientations of the triangle: 1 - 3 + 2 = 0 on the torus T^2."""
    part = xr.Dataset(
        {
            "index": ("equilibrium", [2, 1, 0]),
            "labelled": ("equilibrium", [2, 3, 1]),
            "rank": ("equilibrium", [2, 1, 1]),
        },
        attrs={"n": 3, "d": 2},
    )
    assert saddles.euler(part) == (0, 0)
    assert saddles.morse(part)[0] == 0
    assert saddles.morse(part)[1].tolist() == [0, 1]  # 1 + 3t + 2t^2 - (1 + t)^2 = t (1 + t)
    short = part.isel(equilibrium=[1, 2])
    assert saddles.euler(short) == (0, -2)
    assert saddles.morse(short)[0] != 0


def test_labelled_configurations():
    assert saddles.labelled(overlaps(ring(Sphere(2), n=5)), True) == 24  # 5!/10 reflections included, times 2
    assert saddles.labelled(overlaps(ring(Sphere(3), n=5)), False) == 12
    assert saddles.labelled(overlaps(simplex(Sphere(3), n=4)), True) == 2
    assert saddles.labelled(np.ones((6, 6)), False) == 1


def test_rates_of_tails():
    """Exponential times, rounded up to frames: the rate within four of its standard errors."""
    times = np.random.default_rng(0).exponential(1 / 0.3, 20_000)
    rate, error = saddles.tail_rate(np.ceil(times / saddles.SPAN) * saddles.SPAN)
    assert error == pytest.approx(0.3 / np.sqrt(2000), rel=0.15)  # the frame of the quantile holds more or fewer
    assert abs(rate - 0.3) < 4 * error


def test_a_wrong_beta_of_the_flow_is_found_out(data, monkeypatch):
    attention = saddles.Attention
    monkeypatch.setattr(saddles, "Attention", lambda beta, **rest: attention(1.05 * beta, **rest))
    fails = failures(data | {STARTS: saddles._starts(QUICK, 3)})
    assert len(fails) == 1
    assert "exit time of two groups" in fails[0]


def test_stable_equilibria_are_found_out(data):
    """The linearised flow with the sign turned: consensus repels, saddles of full index attract."""
    part = data[LIST].copy(deep=True)
    part["rates"] = -part["rates"]
    fails = failures(data | {LIST: part})
    assert any("the largest growth rate" in f for f in fails)
    assert any("error of an eigenvalue" in f for f in fails)


def test_a_number_that_is_none_fails(data):
    part, starts = data[LIST].copy(deep=True), data[STARTS].copy(deep=True)
    part["rates"][2, 0] = np.nan
    starts["left"][7] = starts["bent"][0] = np.inf
    fails = failures({LIST: part, STARTS: starts})
    assert any("the largest growth rate" in f for f in fails)
    for words in ("every iid start", "share that lingers", "exit time of two groups"):
        assert any(words in f for f in fails), words

"""Vertices: the quick version holds, the example is that of an independent program, wrong physics is found out."""

import numpy as np
import pytest

from attnflow.experiments import Study
from attnflow.experiments.gallery import boolean_attention, hyperplanes, vertices
from attnflow.fields import Attention
from attnflow.observe import convex_hull


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return vertices.run(vertices.QUICK, Study(tmp_path_factory.mktemp("vertices")))


def failures(data):
    return [claim.statement for claim in vertices.claims(vertices.QUICK, data) if not claim.holds]


def test_the_quick_version_holds(data):
    assert len(vertices.claims(vertices.QUICK, data)) == 6
    assert failures(data) == []


def test_the_example_is_that_of_an_independent_program(data):
    """Areas of the hull of 20 Gaussian points (LSODA, its own field), as printed, and four limits."""
    part = data["R2"]
    frames = np.searchsorted(part["time"].values, [0.0, 0.5, 1.0, 2.0, 4.0])
    areas = [convex_hull(part["fine"].values[frame, 0]).volume for frame in frames]
    np.testing.assert_allclose(areas, [10.0211, 8.7723, 8.2376, 7.0691, 6.1764], atol=6e-5)
    assert len(vertices.limits(part, 0)) == 4


@pytest.mark.parametrize("radius", [0.4, 0.7, 1.3])
def test_three_integrals_for_one_pair_agree(radius):
    """Two corners, two clusters for V = I, and a pair on the line are one thing; each integral is good to 1e-11."""
    corners = vertices.limit_radius(2, 2, radius)
    clusters = radius * np.exp(-hyperplanes.delay(np.eye(2), np.array([radius, 0.0])))
    assert corners == pytest.approx(clusters, rel=1e-10)
    assert corners == pytest.approx(boolean_attention.pair_limit(radius, 1.0), rel=1e-10)
    time, path = vertices.radius_path(2, 2, radius, 6.0)
    # trapezoids in log u, some 300 to a unit: 1/12 of a second derivative of order 1/u, over that squared
    assert path[-1] == pytest.approx(corners, rel=1e-5 / radius**2)
    assert time[-1] == pytest.approx(6.0, abs=0.01)


def test_a_slightly_wrong_beta_is_found_out(data, tmp_path, monkeypatch):
    """One part in 10,000: the radius of a limit depends on beta, the rest of the picture does not."""
    monkeypatch.setattr(vertices, "Attention", lambda beta, **rest: Attention(beta * 1.0001, **rest))
    (found,) = failures(vertices.run(vertices.QUICK, Study(tmp_path)))
    assert "radius of the limit" in found


@pytest.mark.slow
def test_tokens_that_do_not_attract_are_found_out(data, tmp_path, monkeypatch):
    """With uniform weights all tokens go to their mean: no polytope, no leaders, no approach to any."""
    monkeypatch.setattr(vertices, "Attention", lambda beta, **rest: Attention(0.0, **rest))
    found = failures(vertices.run(vertices.QUICK, Study(tmp_path)))
    assert [any(words in one for one in found) for words in ("leaders", "rate", "radius")] == [True] * 3


def test_a_hull_that_grows_is_found_out(data):
    part = data["R2"].copy(deep=True)
    part["fine"][5, 0, :] *= 1.3
    (found,) = failures({"R2": part})
    assert "growth of the hull" in found

"""Class separation: nested circles hold, a flow that is not one-to-one is found out, lines and limits are exact."""

import dataclasses
import sys
from itertools import combinations

import numpy as np
import pytest
import xarray as xr
from scipy.stats import binom

from attnflow.experiments import Study
from attnflow.runs import Run
from attnflow_gallery import class_separation
from attnflow_gallery.class_separation import compare, simulate
from tests.experiments.mutants import changed, mutation

QUICK = class_separation.QUICK


def test_a_stretched_circle_is_refined_until_its_turns_are_small(tmp_path):
    """A homeomorphism that stretches a small arc to half a turn: even points miscount, refined ones do not."""

    def stretch(parameters, field, points):
        radius, half = np.hypot(*points.T), (np.arctan2(points[:, 1], points[:, 0]) + np.pi / simulate.CIRCLE) / 2
        angle = 2 * np.arctan2(1e4 * np.sin(half), np.cos(half))
        return radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)

    with changed(simulate, "carry", stretch):
        inner, outer = simulate.circles(QUICK, None, Study(tmp_path))
    views = inner[:: simulate.CIRCLE // simulate.VIEWS]
    even = stretch(QUICK, None, simulate.ring(np.arange(simulate.CIRCLE) / simulate.CIRCLE))
    assert (np.round(compare.winding(even, views)) == 0).any()
    assert simulate.increments(outer, views).max() < simulate.TURN
    np.testing.assert_allclose(compare.winding(outer, views), 1.0, atol=1e-12)
    assert len(outer) < 1.1 * simulate.CIRCLE


@pytest.mark.long
def test_short_fits_hold_and_a_read_out_without_a_flow_is_found_out(tmp_path):
    """Circles in the plane and in space, one fit each, which is kept: only where it carries points is broken."""
    few = dataclasses.replace(QUICK, tasks=(("circles", 2), ("circles", 3)), fits=1, layers=(64, 128, 256))

    @changed(simulate, "_pictures", lambda *arguments: {})
    def failed():
        data = class_separation.run(few, Study(tmp_path / "parts"))
        return {k for k, claim in enumerate(class_separation.claims(few, data)) if not claim.holds}

    assert failed() == set()
    for part in (tmp_path / "parts").glob("flow-*"):
        part.unlink()
    with mutation(class_separation, "fitted flow stands still").applied():
        assert len(failed()) >= 3


def test_no_line_is_better_than_the_best():
    """Every line through two of the points, tilted to either side, by brute force."""
    rng = np.random.default_rng(0)
    points, labels = rng.standard_normal((24, 2)), np.arange(24) % 2
    brute = 0.5
    for i, j in combinations(range(24), 2):
        normal = np.array([[0, -1], [1, 0]]) @ (points[j] - points[i])
        rest = (points - points[i]) @ normal > 0
        for first, second in ((0, 0), (0, 1), (1, 0), (1, 1)):
            rest[[i, j]] = first, second
            share = np.mean(rest == labels)
            brute = max(brute, share, 1 - share)
    found = compare.best_line(points, labels)
    # at most the points within |x|max pi/DIRECTIONS of a line are counted in: here no more than one or two
    assert brute <= found <= brute + 2 / 24
    assert compare.best_line(points + 9 * np.stack([labels, labels], axis=1), labels) == 1


def test_the_best_line_of_circles_touches_the_inner_one():
    """It has the inner circle and a third of the outer one on the right side: 2/3."""
    angles = 2 * np.pi * np.arange(6000) / 6000
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    found = compare.best_line(np.concatenate([ring, ring / 2]), np.repeat([0, 1], 6000))
    # a margin of |x| pi/180 moves the ends of the arc of the outer circle
    assert 2 / 3 <= found <= 2 / 3 + 0.05


def test_the_lower_limit_is_exact():
    low = compare.lower_limit(97, 100)
    assert binom.sf(96, 100, low) == pytest.approx(compare.LEVEL, rel=1e-9)
    assert compare.lower_limit(100, 100) == pytest.approx(compare.LEVEL ** (1 / 100), rel=1e-12)
    assert compare.lower_limit(0, 100) == 0
    assert compare.lower_limit(97, 100, 4) < low


def test_circles_that_come_apart_are_found_out():
    """What no flow of the plane can do: apart, turned around, or seen too coarsely."""
    ring = simulate.ring(np.arange(simulate.CIRCLE) / simulate.CIRCLE)

    def holds(outer, inner):
        ends = {"outer": (("fit", "o", "dim"), outer[None]), "inner": (("fit", "i", "dim"), inner[None])}
        return compare._nested(xr.Dataset(ends)).holds

    assert holds(ring, ring / 2)
    assert not holds(ring - [2, 0], ring + [2, 0])
    assert not holds(ring[::-1], ring / 2), "a flow keeps the orientation"
    assert not holds(ring[::512], ring / 2), "not resolved"


def test_without_optax_it_says_what_to_install(tmp_path, monkeypatch, attnflow):
    monkeypatch.setitem(sys.modules, "optax", None)
    path = tmp_path / "run"
    _, errors = attnflow("reproduce", "class-separation", "--quick", "--out", path, code=2)
    assert "`fit` needs Optax; install `attnflow[learn]`." in errors
    assert "Traceback" not in errors
    assert Run.open(path).manifest()["status"] == "failed"
    assert "attnflow[learn]" in Run.open(path).manifest()["message"]

"""Class separation: the quick version holds; a flow that is not the fitted one, or no network, is found out."""

import shutil
import sys
from itertools import combinations

import numpy as np
import pytest
import xarray as xr
from scipy.stats import binom

from attnflow.cli import console, main
from attnflow.experiments import Study
from attnflow.experiments.gallery import class_separation as cs
from attnflow.runs import Run


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """(folder of the parts, data) of the quick version."""
    folder = tmp_path_factory.mktemp("classes") / "parts"
    return folder, cs.run(cs.QUICK, Study(folder))


def again(quick, tmp_path):
    """The claims that fail when the fitted weights are judged once more."""
    (tmp_path / "parts").mkdir()
    shutil.copy(quick[0] / "fit-spirals-2.npz", tmp_path / "parts")
    data = cs.run(cs.QUICK, Study(tmp_path / "parts"))
    return [claim.statement for claim in cs.claims(cs.QUICK, data) if not claim.holds]


def test_the_quick_version_holds(quick):
    claims = cs.claims(cs.QUICK, quick[1])
    assert [claim.statement for claim in claims if not claim.holds] == []
    assert len(claims) == 3
    assert claims[1].measured < 0.8, "a line must fail clearly"


def test_a_flow_the_other_way_is_found_out(quick, tmp_path, monkeypatch):
    flow = cs.flow
    monkeypatch.setattr(cs, "flow", lambda learnt: flow(learnt.assign(outer=-learnt["outer"])))
    failed = again(quick, tmp_path)
    assert any("share of the distribution" in words for words in failed)


@pytest.mark.slow
def test_a_read_out_without_a_flow_is_found_out(quick, tmp_path, monkeypatch):
    flow = cs.flow
    monkeypatch.setattr(cs, "flow", lambda learnt: flow(learnt.assign(outer=0 * learnt["outer"])))
    failed = again(quick, tmp_path)
    assert len(failed) == 3, "a line is no better than the best line, and networks of no field have no order"


@pytest.mark.slow
def test_networks_of_another_order_are_found_out(quick, tmp_path, monkeypatch):
    """Extrapolation removes the error of order 1."""
    through = cs.through
    monkeypatch.setattr(cs, "through", lambda f, t, layers: 2 * through(f, t, 2 * layers) - through(f, t, layers))
    (failed,) = again(quick, tmp_path)
    assert "order" in failed


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
    found = cs.best_line(points, labels)
    # at most the points within |x|max pi/DIRECTIONS of a line are counted in: here no more than one or two
    assert brute <= found <= brute + 2 / 24
    assert cs.best_line(points + 9 * np.stack([labels, labels], axis=1), labels) == 1


def test_the_lower_limit_is_exact():
    low = cs.lower_limit(97, 100)
    assert binom.sf(96, 100, low) == pytest.approx(cs.LEVEL, rel=1e-9)
    assert cs.lower_limit(100, 100) == pytest.approx(cs.LEVEL ** (1 / 100), rel=1e-12)
    assert cs.lower_limit(0, 100) == 0


def test_circles_that_come_apart_are_found_out():
    """What no flow of the plane can do, or one that surrounds and yet claims no error."""
    angles = 2 * np.pi * np.arange(cs.CIRCLE) / cs.CIRCLE
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    learnt = xr.Dataset(
        {"readout": (("class", "dim"), np.array([[0.0, 0.0], [1.0, 0.0]])), "offset": ("class", np.zeros(2))}
    )

    def verdicts(outer, inner):
        ends = {"outer": (("end", "o", "dim"), outer[None]), "inner": (("end", "i", "dim"), inner[None])}
        return [claim.holds for claim in cs._surrounded(learnt, xr.Dataset(ends))]

    assert verdicts(ring, ring / 2) == [True, True]
    assert verdicts(ring - [2, 0], ring + [2, 0]) == [False, False]
    assert verdicts(ring[::-1], ring / 2) == [False, True], "a flow keeps the orientation"
    assert cs.winding(ring, np.array([[0.0, 0.9], [3.0, 0.0]])).tolist() == [1, 0]


def test_without_optax_it_says_what_to_install(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(console, "use_compilation_cache", lambda: None)
    monkeypatch.setitem(sys.modules, "optax", None)
    path = tmp_path / "run"
    monkeypatch.setattr(sys, "argv", ["attnflow", "reproduce", "class-separation", "--quick", "--out", str(path)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    seen = " ".join(capsys.readouterr().err.split())
    assert "`fit` needs Optax; install `attnflow[learn]`." in seen
    assert "Traceback" not in seen
    assert Run.open(path).manifest()["status"] == "failed"
    assert "attnflow[learn]" in Run.open(path).manifest()["message"]


@pytest.mark.slow
def test_the_figure_is_drawn(quick):
    axes = cs.draw(cs.QUICK, quick[1]).axes
    assert len(axes) == 6
    assert [one.get_visible() for one in axes] == [True] * 4 + [False] * 2

"""Saddles: the core holds, a slightly wrong beta is found out, and the list of four tokens is the one known by hand."""

import dataclasses

import numpy as np
import pytest

from attnflow.experiments import Study
from attnflow_gallery import saddles
from attnflow_gallery.saddles import compare, simulate
from tests.experiments.mutants import noticed

QUICK = saddles.QUICK


@pytest.mark.long
def test_three_tokens_hold_and_a_slightly_wrong_beta_is_found_out():
    """Two percent of beta move the exit times of two almost antipodal groups by more than the splines err."""
    few = dataclasses.replace(QUICK, cases=((3, 2),), batches=2, dims=(2,), draws=1000, until=80.0)
    killed = noticed(saddles, few, "flow: beta 2 % larger", "starts-*")
    assert "exit time of two groups that are almost antipodal" in killed


@pytest.mark.slow
def test_the_four_tokens_on_the_sphere(tmp_path):
    """Tetrahedron, square, triangle with one corner double, two and two, one and three, consensus."""
    four = dataclasses.replace(QUICK, cases=((4, 3),), batches=2, dims=())
    part = saddles.run(four, Study(tmp_path / "parts"))["4-S2-beta1"]
    rows = set(zip(*(part[key].values.tolist() for key in ("clusters", "rank", "index", "labelled")), strict=True))
    assert rows == {(4, 3, 5, 2), (4, 2, 4, 3), (3, 2, 3, 6), (2, 1, 2, 3), (2, 1, 2, 4), (1, 1, 0, 1)}


def test_rates_of_tails():
    """Exponential times, rounded up to frames: the rate within four of its standard errors."""
    times = np.random.default_rng(0).exponential(1 / 0.3, 100_000)
    rate, error = compare.tail_rate(np.ceil(times / simulate.SPAN) * simulate.SPAN)
    assert error == pytest.approx(0.3 / np.sqrt(3000), rel=0.2)  # the frame of the quantile holds more or fewer
    assert abs(rate - 0.3) < 4 * error
    assert np.isnan(compare.tail_rate(np.append(times, [np.inf] * 10))[0])

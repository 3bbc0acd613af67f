"""Modes of kernel densities: the quick version holds; wrong kernels, distributions and formulas are found out."""

import dataclasses

import numpy as np
import pytest

from attnflow.experiments import Study
from attnflow.experiments.gallery import kde_modes
from attnflow.fields import Attention


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    return kde_modes.run(kde_modes.QUICK, Study(tmp_path_factory.mktemp("kde") / "parts"))


def verdicts(data):
    return {claim.statement.split(":")[0]: claim.holds for claim in kde_modes.claims(kde_modes.QUICK, data)}


def test_the_quick_version_holds(quick):
    claims = kde_modes.claims(kde_modes.QUICK, quick)
    assert all(claim.holds for claim in claims)
    assert len(claims) == 6
    assert len(kde_modes.draw(kde_modes.QUICK, quick).axes) == 4


def test_counting_by_hand():
    """Two samples have two modes from 2 beta^(-1/2) apart; rows do not feel each other; empty places have no modes."""
    beta = 4.0
    samples = np.array([[0.0, 0.98], [0.0, 1.05], [-30.0, 0.2], [0.3, 0.3]])
    fine, coarse, middle = kde_modes.count(samples, beta)
    assert fine.tolist() == coarse.tolist() == [1, 2, 2, 1]
    # all between their samples, but for the one at -30
    assert middle.tolist() == [1, 2, 1, 1]


@pytest.mark.slow
def test_a_kernel_of_the_wrong_width_is_found_out(quick, tmp_path, monkeypatch):
    """e^(-beta x^2) for e^(-beta x^2/2): beta is doubled on the line, as in the notes that forget the half."""
    count = kde_modes.count
    monkeypatch.setattr(kde_modes, "count", lambda samples, beta: count(samples, 2 * beta))
    small = dataclasses.replace(kde_modes.QUICK, samples=10_000)
    found = verdicts(kde_modes.run(small, Study(tmp_path / "parts")))
    wrong = {name.split(",")[0] for name, holds in found.items() if not holds}
    assert not found["line, two samples"]
    assert not found["line"]  # the middle
    assert not found["line, n = β = 100"]
    assert found["circle, 200 tokens"]
    assert wrong == {"line"}


def test_a_wrong_beta_on_the_circle_is_found_out(quick, monkeypatch):
    """A fifth of beta is a tenth of the modes; their standard error is a hundredth."""
    monkeypatch.setattr(kde_modes, "Attention", lambda beta: Attention(1.2 * beta))
    fine, coarse = kde_modes.count_circle(100.0, kde_modes.QUICK)
    broken = quick["circle"].copy(deep=True)
    broken["fine"][1], broken["coarse"][1] = fine, coarse
    found = verdicts(quick | {"circle": broken})
    assert [name for name, holds in found.items() if not holds] == ["circle, 200 tokens"]


def test_the_order_without_the_logarithm_is_found_out(quick):
    """Counts that grow like sqrt(beta) fail one claim, like beta the other."""
    for power, name in ((0.5, "the exponent is above"), (1.0, "exponent of the number")):
        broken = quick["line"].copy(deep=True)
        broken["fine"] = broken["fine"][0] * (broken["beta"] / broken["beta"][0]) ** power
        fails = [c.statement for c in kde_modes.claims(kde_modes.QUICK, quick | {"line": broken}) if not c.holds]
        assert any(name in words for words in fails)

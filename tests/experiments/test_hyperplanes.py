"""Hyperplanes: the core holds, a wrong beta and a broken symmetry are found out, a second program agrees."""

import dataclasses
import math

import numpy as np
import pytest

from attnflow.experiments import Study, kill_matrix
from attnflow_gallery import hyperplanes
from attnflow_gallery.hyperplanes.simulate import draw_values, leading
from tests.experiments.mutants import mutation

SMALL = dataclasses.replace(hyperplanes.QUICK, tokens=12, starts=4, pairs=(1.1,), legs=20, steps=10)


@pytest.mark.long
def test_a_slightly_wrong_beta_and_a_broken_symmetry_are_found_out():
    """beta off by 1e-3: exact solutions depend on it, the number of planes does not. A mass off by 1e-6 tips a tie."""
    names = ("beta 0.1 % larger", "one token of the symmetric starts heavier by 1e-6")
    found = kill_matrix(hyperplanes, SMALL, [mutation(hyperplanes, name) for name in names])
    beta, tipped = ({key[:11] for key, row in zip(found.claims, found.killed, strict=True) if row[k]} for k in (0, 1))
    assert beta == {"Clusters at"}
    assert tipped == {"Clusters at"}
    assert [row[1] for key, row in zip(found.claims, found.killed, strict=True) if "three planes" in key] == [True]


@pytest.mark.slow
def test_the_example_is_that_of_an_independent_program(tmp_path):
    """LSODA to t = 12 has -1.992221 and 2.307841 for a left eigenvector of norm 1; the extremes stand still by t = 7."""
    one = dataclasses.replace(SMALL, tokens=30, starts=1, pairs=(), departures=())
    data = hyperplanes.run(one, Study(tmp_path / "parts"))
    y = data["R2"]["coordinate"].values[-1, 0] / math.hypot(1, 0.3 / 1.4)
    np.testing.assert_allclose([y.min(), y.max()], [-1.992221, 2.307841], atol=2e-6)


def test_values_have_the_leading_eigenvalue_one():
    for value in draw_values(4, 3, np.random.default_rng(0)):
        phi = leading(value)
        np.testing.assert_allclose(value @ phi, phi, atol=1e-12)
        assert sorted(np.linalg.eigvals(value).real)[-2] < 0.31

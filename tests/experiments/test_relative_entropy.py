"""Relative entropy: constants hold on a small version, moved nodes and a missing log-determinant are found out."""

import dataclasses

import numpy as np
import pytest
import xarray as xr

from attnflow.control import match_density_1d
from attnflow.experiments import Study
from attnflow_gallery import relative_entropy
from attnflow_gallery.relative_entropy import compare, simulate
from tests.experiments.mutants import changed, mutation

CORE = dataclasses.replace(relative_entropy.QUICK, cells=(8, 64, 128, 256), degrees=(1.5,), student_cells=16)


@pytest.mark.long
def test_the_core_holds_and_broken_flows_are_found_out(tmp_path):
    # the constant of the optimal mesh and the growth for equal masses need the full number of cells
    data = relative_entropy.run(CORE, Study(tmp_path / "parts"))
    right = {claim.statement: claim.holds for claim in compare.claims(CORE, data)}
    later = {name for name in right if "KL" in name and "shells" not in name}
    assert [name for name, holds in right.items() if not holds and name not in later] == []
    one = dataclasses.replace(CORE, cells=(8,), meshes=("optimal",))
    with mutation(relative_entropy, "no log-determinant").applied():
        wrong = simulate.meshes(one, Study(tmp_path / "unused"))
    assert abs(float(wrong["mass"].item()) - 1) > 1e-3, "the claim on the total mass allows 1e-12"
    with mutation(relative_entropy, "base with heavy tails").applied():
        wrong = compare._tails(CORE, simulate.tails(CORE, Study(tmp_path / "unused")))
    assert not all(claim.holds for claim in wrong)


@changed(compare, "constants", lambda: {"uniform": 9.0, "optimal": 2.7})
def test_whatever_is_no_number_makes_a_claim_fail():
    """Of all numbers of cells the masses are read, of the last three the divergences."""
    cells, meshes = np.array([8.0, 64.0, 128.0, 256.0]), ["uniform", "quantile", "optimal"]
    values = np.stack([9 / cells**2, 1 / cells, 2.7 / cells**2]) * (1 + 0.01 / cells)
    rows = dict.fromkeys(("forward_inside", "backward_inside"), (("mesh", "cells"), values))
    part = xr.Dataset(rows | {"mass": (("mesh", "cells"), np.ones((3, 4)))}, {"mesh": meshes, "cells": cells})
    assert all(claim.holds for claim in compare._constants(CORE, part))
    for name, mesh, k in (
        ("mass", 1, 0),
        ("forward_inside", 0, 1),
        ("backward_inside", 2, 3),
        ("forward_inside", 1, 3),
    ):
        broken = part.copy(deep=True)
        broken[name].values[mesh, k] = np.nan
        assert not all(claim.holds for claim in compare._constants(CORE, broken)), (name, mesh, k)


def test_constants_are_those_of_the_theory():
    assert compare.constants()["uniform"] == pytest.approx(9.3362, abs=1e-4)
    assert compare.constants()["optimal"] == pytest.approx(2.709, abs=1e-3)


def test_divergences_of_two_normal_densities():
    """KL(N(0, 1) || N(m, s)) in closed form, both ways."""
    at, weights = simulate.gauss(np.linspace(-12, 12, 200))
    one, other, mass = simulate.divergences(-(at**2) / 2 - np.log(2 * np.pi) / 2,
                                            -((at - 0.5) ** 2) / 8 - np.log(8 * np.pi) / 2, weights)  # fmt: skip
    assert one == pytest.approx(np.log(2) + (1 + 0.25) / 8 - 0.5, abs=1e-8)
    assert other == pytest.approx(-np.log(2) + (4 + 0.25) / 2 - 0.5, abs=1e-5)
    assert mass == pytest.approx(1, abs=1e-7)


def test_the_schedule_and_the_builder_agree():
    match = match_density_1d(simulate.target(), 32, span=simulate.SPAN)
    part = simulate.meshes(dataclasses.replace(CORE, cells=(32,), meshes=("optimal",)), Study("unused"))
    assert float(part["forward"][0, 0]) == pytest.approx(match.kl, rel=1e-6)
    assert float(part["backward"][0, 0]) == pytest.approx(match.reverse_kl, rel=1e-6)

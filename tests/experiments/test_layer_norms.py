"""Layer norms: the quick version holds; a norm that is left out, a wrong alpha and another exponent are found out."""

import dataclasses

import numpy as np
import pytest

from attnflow.experiments import Study
from attnflow.experiments.gallery import layer_norms
from attnflow.fields import Ngpt

QUICK = layer_norms.QUICK


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    return layer_norms.run(QUICK, Study(tmp_path_factory.mktemp("norms") / "parts"))


def fails(data, parameters=QUICK):
    """Placement and kind (path or exponent) of the claims that fail."""
    found = [claim.statement for claim in layer_norms.claims(parameters, data) if not claim.holds]
    return {(words.split(",")[0].split(":")[0], "path" if "theory" in words else "exponent") for words in found}


def test_two_placements_hold_and_a_slightly_wrong_alpha_is_found_out(tmp_path, monkeypatch):
    """An algebraic and an exponential collapse; alpha off by 1e-4."""
    monkeypatch.setattr(layer_norms, "NAMES", {name: layer_norms.NAMES[name] for name in ("pre", "ngpt")})
    data = layer_norms.run(QUICK, Study(tmp_path / "parts"))
    assert not fails(data)
    assert len(layer_norms.claims(QUICK, data)) == 2 * 2
    monkeypatch.setattr(layer_norms, "Ngpt", lambda inner, alpha: Ngpt(inner, 1.0001 * alpha))
    assert fails(data | {"ngpt": layer_norms._follow(QUICK, "ngpt")}) == {("nGPT", "path"), ("nGPT", "exponent")}


@pytest.mark.slow
def test_the_quick_version_holds(quick):
    assert not fails(quick)
    assert len(layer_norms.claims(QUICK, quick)) == 2 * 6
    assert len(layer_norms.draw(QUICK, quick).axes) == 3


@pytest.mark.slow
def test_the_data_hold_what_a_second_integration_says(quick):
    """Pre-LN at t = 16 by Euler's method on the two scalar equations, extrapolated from two steps."""

    def gap(steps):
        rho, r, n, beta = 0.0, 1.0, QUICK.n, QUICK.beta
        for _ in range(steps):
            e = np.exp(-beta * (1 - rho))
            a = 1 + (n - 1) * e
            turn, grow = 2 * e * (1 - rho) * (1 + (n - 1) * rho) / (a * r), (1 + (n - 1) * rho * e) / a
            rho, r = rho + 16 / steps * turn, r + 16 / steps * grow
        return 1 - rho

    seen = float(quick["pre"]["gap"].sel(start="orthonormal").sel(time=16.0, method="nearest"))
    # extrapolation leaves h^2 = (16/4000)^2 times a constant of order 1
    assert seen == pytest.approx(2 * gap(4000) - gap(2000), rel=1e-4)


@pytest.mark.slow
def test_a_slightly_wrong_alpha_is_found_out(quick, tmp_path, monkeypatch):
    monkeypatch.setattr(layer_norms, "Ngpt", lambda inner, alpha: Ngpt(inner, 1.0001 * alpha))
    data = quick | {"ngpt": layer_norms._follow(QUICK, "ngpt")}
    assert fails(data) == {("nGPT", "path"), ("nGPT", "exponent")}


@pytest.mark.slow
def test_placements_taken_for_each_other_are_found_out(quick):
    """Pre-LN in place of the others: the exponents of peri and mix are the same, their paths are not."""
    pre = quick["pre"]
    assert fails(quick | {"peri": pre}) == {("Peri-LN", "path")}
    assert fails(quick | {"ln-scaling": pre}) == {("LN-scaling", "path"), ("LN-scaling", "exponent")}


@pytest.mark.slow
def test_a_number_that_is_none_fails(quick):
    broken = quick["post"].copy(deep=True)
    broken["gap"][-1, 0] = np.nan
    assert fails(quick | {"post": broken}) == {("Post-LN", "path"), ("Post-LN", "exponent")}


@pytest.mark.slow
def test_an_exponent_of_the_theory_that_is_wrong_is_found_out(quick, monkeypatch):
    right = layer_norms.theory.norm_decay
    monkeypatch.setattr(layer_norms, "decay", lambda p, placement: (right(placement, p.alpha)[0], 1.5))
    assert {name for name, kind in fails(quick, dataclasses.replace(QUICK)) if kind == "exponent"} == {
        "Post-LN", "Pre-LN", "Peri-LN", "nGPT", "Mix-LN", "LN-scaling",
    }  # fmt: skip

"""Euler limit: the quick version holds; another ODE, weights that jump and a lost projection are found out."""

import dataclasses

import numpy as np
import pytest

from attnflow.experiments import Study
from attnflow.experiments.gallery import euler_limit
from attnflow.fields import Attention
from attnflow.flows import Project

QUICK = euler_limit.QUICK


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    return euler_limit.run(QUICK, Study(tmp_path_factory.mktemp("euler") / "parts"))


def fails(data, parameters=QUICK):
    return {claim.statement for claim in euler_limit.claims(parameters, data) if not claim.holds}


def test_the_quick_version_holds(quick):
    assert not fails(quick)
    assert len(euler_limit.claims(QUICK, quick)) == 3 + 2 + 3  # orders of layers and of RK4, sizes of layers
    assert len(euler_limit.draw(QUICK, quick).axes) == 2


def test_the_layers_are_what_numpy_makes_of_them(quick):
    """An attention network of 50 layers, written out: N(x + h A)."""
    x = np.asarray(euler_limit.fields(QUICK)["attention"][1].positions)
    for _ in range(50):
        kernel = np.exp(QUICK.beta * x @ x.T)
        x = x + QUICK.until / 50 * kernel @ x / kernel.sum(axis=1, keepdims=True)
        x /= np.linalg.norm(x, axis=1, keepdims=True)
    error = np.linalg.norm(x - quick["limit"]["x_attention"].values)
    assert error == pytest.approx(float(quick["layers"]["error"].sel(name="N(x + hA)", count=50)), rel=1e-9)


def test_a_slightly_wrong_beta_is_found_out(quick, tmp_path, monkeypatch):
    """A thousandth of beta leaves an error that no number of layers removes."""
    monkeypatch.setattr(euler_limit, "Attention", lambda beta: Attention(1.001 * beta))
    monkeypatch.setattr(euler_limit, "NAMES", ("N(x + hA)",))
    data = {"limit": quick["limit"], "steps": quick["steps"].isel(name=slice(0, 0))}
    data["layers"] = euler_limit._errors(QUICK, quick["limit"], "layers", Study(tmp_path), 0)
    assert len(fails(data)) == 2  # order and size


def test_layers_that_leave_the_sphere_are_found_out(quick, tmp_path, monkeypatch):
    """X + h P A converges at order 1 too, to the same flow, but with another first term."""
    monkeypatch.setattr(euler_limit, "RULES", {"N(x + hPA)": Project()})
    monkeypatch.setattr(euler_limit, "NAMES", ("N(x + hPA)",))
    data = {"limit": quick["limit"], "steps": quick["steps"].isel(name=slice(0, 0))}
    data["layers"] = euler_limit._errors(QUICK, quick["limit"], "layers", Study(tmp_path), 0)
    (found,) = fails(data)
    assert "variational" in found


def test_order_one_half_is_told_from_order_one(quick):
    """The claim of independent layers, on made-up squares: Gaussian of variance h and of variance h^2."""
    parameters = dataclasses.replace(QUICK, random_layers=(50, 100, 200, 400), seeds=100)
    rng = np.random.default_rng(0)
    steps = parameters.until / np.array(parameters.random_layers)
    variance = float(quick["limit"]["variance"])
    for power, failed in ((1, 0), (2, 2)):
        squares = variance * steps[:, None] ** power * rng.chisquare(8, (4, 100)) / 8
        made = euler_limit.xr.Dataset(
            {"square": (("count", "seed"), squares)}, {"count": list(parameters.random_layers)}
        )
        assert len(fails(quick | {"random": made}, parameters)) == failed

"""Splitting orders: a small version holds, and draws in place of turns are found out."""

import dataclasses

import numpy as np
import pytest
import xarray as xr

from attnflow.experiments import Study
from attnflow_gallery import splitting_orders
from attnflow_gallery.splitting_orders import compare, simulate
from tests.experiments.mutants import mutation

CORE = dataclasses.replace(
    splitting_orders.QUICK, dims=(2,), units=16, elements=(64, 1024), points=100, fields=10, draws=4, reference=2**13
)


def core(folder):
    data = splitting_orders.run(CORE, Study(folder / "parts"))
    return {claim.statement: claim.holds for claim in compare.claims(CORE, data)}


@pytest.mark.long
def test_the_core_holds_and_other_orders_are_found_out(tmp_path):
    assert all(core(tmp_path / "right").values())
    with mutation(splitting_orders, "units in turn in place of draws").applied():
        assert not core(tmp_path / "wrong")["order of the map, maurey"]
    with mutation(splitting_orders, "log-determinants without steps").applied():
        assert not core(tmp_path / "smooth")["order of the log-determinant, reshuffled and Strang"]


def test_whatever_is_no_number_makes_a_claim_fail():
    dims = ("d", "order", "elements", "field")
    wanted = {"map": [0.5, 1.0, 1.5, 2.0], "log_det": [0.5, 1.0, 1.0, 1.0]}
    count, noise = np.array(CORE.elements, float), 1 + 0.01 * np.random.default_rng(1).random((1, 4, 2, CORE.fields))
    squares = {name: noise * count[:, None] ** (-2 * np.array(p)[:, None, None]) for name, p in wanted.items()}
    labels = {"d": [2], "order": list(simulate.ORDERS), "elements": list(CORE.elements)}
    data = xr.Dataset({name: (dims, values) for name, values in squares.items()}, labels)
    assert all(claim.holds for claim in compare.claims(CORE, {"errors": data}))
    for name in squares:
        for order in range(4) if name == "map" else (2, 3):
            broken = data.copy(deep=True)
            broken[name].values[0, order, 1, 2] = np.nan
            assert not all(claim.holds for claim in compare.claims(CORE, {"errors": broken})), (name, order)


def test_fields_have_the_stated_variation():
    w, a, b = simulate.wide(CORE, 2, 0)
    assert np.isclose(np.sum(np.linalg.norm(w, axis=1) * np.linalg.norm(a, axis=1)), simulate.VARIATION)
    assert b.shape == (CORE.units,)

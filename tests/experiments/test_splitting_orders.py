"""Splitting orders: a small version holds, and draws in place of turns are found out."""

import dataclasses

import numpy as np

from attnflow.experiments import Study
from attnflow_gallery import splitting_orders
from attnflow_gallery.splitting_orders import compare, simulate
from tests.experiments.mutants import mutation

CORE = dataclasses.replace(
    splitting_orders.QUICK, dims=(2,), units=16, elements=(64, 1024), points=100, fields=2, draws=4, reference=2**13
)


def core(folder):
    data = splitting_orders.run(CORE, Study(folder / "parts"))
    return {claim.statement: claim.holds for claim in compare.claims(CORE, data)}


def test_the_core_holds_and_other_orders_are_found_out(tmp_path):
    assert all(core(tmp_path / "right").values())
    with mutation(splitting_orders, "units in turn in place of draws").applied():
        assert not core(tmp_path / "wrong")["order of the map, maurey"]
    with mutation(splitting_orders, "log-determinants without steps").applied():
        assert not core(tmp_path / "smooth")["order of the log-determinant, reshuffled and Strang"]


def test_fields_have_the_stated_variation():
    w, a, b = simulate.wide(CORE, 2, 0)
    assert np.isclose(np.sum(np.linalg.norm(w, axis=1) * np.linalg.norm(a, axis=1)), simulate.VARIATION)
    assert b.shape == (CORE.units,)

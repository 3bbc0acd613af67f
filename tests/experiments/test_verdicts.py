"""A NaN in the data of an experiment makes its claims fail, whatever they do with the numbers."""

import ast
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from attnflow.errors import NotFinite
from attnflow.experiments import Claim, find, kill_matrix, kit, names
from attnflow.experiments.verdicts import COMPLETE, judged, missing

LENIENT = {
    "isfinite", "isnan", "nan_to_num", "nanmax", "nanmin", "nanmean", "nanmedian", "nanstd", "nanvar", "nansum",
    "nanargmax", "nanargmin", "nanquantile", "nanpercentile", "dropna", "fillna", "notnull", "isnull",
}  # fmt: skip


def lenient(parameters, data):
    """Claims that leave NaN out: one by a mask, one by a comparison, one by a mean of xarray."""
    values = data["outer"]["inner"]["numbers"]
    known = values.values[np.isfinite(values.values)]
    return [
        Claim.at_most("largest", 1.0, known.max(), 0.0, "known"),
        Claim.true("none above 1", not (values.values > 1).any(), "seen", "counted"),
        Claim.equal("mean", 0.5, float(values.mean()), 0.5, "wide"),
    ]


def numbers(values):
    return {"outer": {"inner": xr.Dataset({"numbers": ("x", values), "others": ("x", np.ones(3))})}}


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("array", ["numbers", "others"])
def test_no_claim_holds_where_any_array_has_a_nan(place, array):
    module, data = SimpleNamespace(claims=lenient), numbers([0.2, 0.5, 0.8])
    assert all(claim.holds for claim in judged(module, None, data))
    data["outer"]["inner"][array].values[place] = np.nan
    found = judged(module, None, data)
    assert [claim.statement for claim in found] == [COMPLETE, "largest", "none above 1", "mean"]
    assert not any(claim.holds for claim in found)
    assert found[0].detail == f"NaN in outer/inner/{array}"


def test_claims_that_raise_on_nan_become_one_that_fails():
    def strict(parameters, data):
        raise ValueError("not for NaN")

    (found,) = judged(SimpleNamespace(claims=strict), None, numbers([0.2, np.nan, 0.8]))
    assert (found.holds, found.statement) == (False, COMPLETE)
    with pytest.raises(ValueError, match="not for NaN"):  # an error of an experiment with complete data stays one
        judged(SimpleNamespace(claims=strict), None, numbers([0.2, 0.5, 0.8]))


def test_rows_of_unequal_lengths_say_where_they_end():
    data = xr.Dataset(kit.ragged("a", ("row", "x"), [[1.0, 2.0], [], [3.0, 4.0, 5.0]], 4))
    assert list(missing(data)) == []
    np.testing.assert_array_equal(data["a_counts"], [2, 0, 3])
    for at, seen in (((0, 1), True), ((2, 2), True), ((0, 2), False), ((1, 0), False)):
        other = data.copy(deep=True)
        other["a"].values[at] = np.nan
        assert (list(missing(other)) == ["a"]) == seen
    both = xr.concat([data, data], dim="case")  # attributes and lengths go along
    both["a"].values[1, 2, 0] = np.nan
    assert list(missing({"part": both})) == ["part/a"]


def test_a_mutation_that_gives_nan_kills_nothing():
    def run(parameters, study):
        return numbers([0.2, np.nan, 0.8])

    with pytest.raises(NotFinite, match="outer/inner/numbers"):
        kill_matrix(SimpleNamespace(run=run, claims=lenient, MUTATIONS=[]), None)


SILENT = {"metastability": {"isnan"}}
"""Closed forms that give NaN where they make no statement: `log_plateau_bound`, `log_pair_escape_rate`."""


@pytest.mark.parametrize("name", names())
def test_comparisons_do_not_ask_what_is_finite(name):
    """The data are complete, so whoever leaves something out leaves out a result."""
    text = (Path(find(name).module().__file__).parent / "compare.py").read_text()
    words = {getattr(node, "attr", getattr(node, "id", getattr(node, "arg", ""))) for node in ast.walk(ast.parse(text))}
    assert words & LENIENT == SILENT.get(name, set())

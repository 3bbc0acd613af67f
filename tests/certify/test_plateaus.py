"""Proved lifetimes beside the plateaus of long flows: below what is computed, on every clock; no cost without FLINT."""

import math

import numpy as np
import pytest

import attnflow as af
from attnflow import certify
from attnflow.errors import MissingExtra

ANGLES = np.array([0.0, 0.9, 2.4, 4.1])


def long_flow(normaliser, beta=20.0):
    tokens = af.Tokens(np.column_stack([np.cos(ANGLES), np.sin(ANGLES)]), [0.4, 0.3, 0.2, 0.1])
    return af.solve_long(af.Attention(beta, normaliser=normaliser), tokens, math.inf)


@pytest.fixture(scope="module")
def flow():
    return long_flow("USA0")


@pytest.mark.slow
def test_plateaus_last_at_least_as_long_as_is_proved(flow):
    found = certify.plateaus(flow)
    proved, end = found["log_proved"].values, found["log_end"].values
    assert found["clusters"].values.tolist() == [4, 3, 2]
    assert np.isfinite(proved).all()
    assert (proved < end).all()
    # two clusters: the exact law of two bodies down to the peak of the force; what comes after it is a share of about
    # beta e^(-beta u) of the whole, and the checker gets 2 %
    assert end[-1] - proved[-1] < 0.05
    table = flow.tree.plateaus()
    for name in table:
        assert np.array_equal(table[name], found[name], equal_nan=True)


@pytest.mark.slow
def test_the_clock_of_the_field_counts(flow):
    """USA runs e^beta faster than USA0; SA has its own law."""
    slow, fast = certify.plateaus(flow)["log_proved"], certify.plateaus(long_flow("USA"))["log_proved"]
    # clusters are where an integrator with the relative tolerance 1e-6 puts them; rates have the slope beta in an angle
    assert np.abs(slow - fast - 20.0).max() < 20 * 1e-4
    softmax = certify.plateaus(long_flow("SA"))
    assert (softmax["log_proved"].values < softmax["log_end"].values).all()


@pytest.mark.slow
def test_reports_print_the_bound_or_say_what_it_takes(flow, faults):
    account = af.plots.account(flow)
    assert [row["log_proved"] for row in account.summary["plateaus"]] == certify.plateaus(flow)[
        "log_proved"
    ].values.tolist()
    assert "apart until" in account.after[1]
    assert "comparison of caps" in account.after[2]
    faults.module("flint")
    account = af.plots.account(flow)
    assert all("log_proved" not in row for row in account.summary["plateaus"])
    assert "apart until" not in account.after[1]
    assert "attnflow[certify]" in account.after[2]
    with pytest.raises(MissingExtra, match="python-flint"):
        certify.plateaus(flow)


def test_times_beyond_floats_are_cut():
    """beta = 2000: the time is e^2500 or so; 1e300 is a true bound."""
    tokens = af.Tokens(np.array([[1.0, 0.0], [np.cos(2.0), np.sin(2.0)]]))
    assert certify.stay_apart(tokens, 2000.0, [0, 1]).claims["time"] == 1e300

"""Flows for figures, and what a player shows; internals of plots that several files of tests need are imported here."""

import html
import json
import re

import numpy as np
import xarray as xr

import attnflow as af
from attnflow import meanfield as mf
from attnflow.flows import Ending, Outcome
from attnflow.plots.figure_data import FigureData
from attnflow.plots.times import Scale, TimeAxis, is_long, written

__all__ = ["FigureData", "Scale", "TimeAxis", "density_flow", "is_long", "player_data", "written"]


def player_data(page):
    """Return the numbers of the player in a page, or of an animation as a notebook shows it."""
    text = page if isinstance(page, str) else html.unescape(page._repr_html_())
    return json.loads(re.search(r'<script type="application/json">(.*?)</script>', text, re.S)[1])


def density_flow(amplitude=0.25, times=(0.0, 1.0), basis=None):
    """A flow that nothing was computed for, with frames 1 + amplitude * (k + 1) * (first harmonic) at these times."""
    basis = mf.CircleBasis(8) if basis is None else basis
    start = mf.perturbed(basis, degree=1, amplitude=amplitude)
    one = np.asarray(mf.uniform(basis).coefficients)
    rows = np.stack([one + (k + 1) * (np.asarray(start.coefficients) - one) for k in range(len(times))])
    dims = ("time", *(f"axis{k}" for k in range(rows.ndim - 1)))
    table = {"coefficients": (dims, rows), "energy": ("time", -1.0 / np.arange(2, len(times) + 2))}
    table |= {
        name: ("time", np.ones(len(times))) for name in ("entropy", "mass", "tail", "lowest", "negative", "speed")
    }
    dataset = xr.Dataset(table, {"time": list(times)})
    outcome = Outcome(Ending.FINISHED, f"reached t = {times[-1]:g}.")
    return mf.DensityFlow(dataset, af.Attention(4.0), 0.0, start, outcome, {"accepted": 1, "rejected": 0})

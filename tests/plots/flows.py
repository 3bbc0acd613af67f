"""A flow of a density that nothing was computed for: the density of the start, then one that is twice as far from 1."""

import numpy as np
import xarray as xr

import attnflow as af
from attnflow import meanfield as mf
from attnflow.flows.outcome import Ending, Outcome


def density_flow(amplitude=0.25, times=(0.0, 1.0), basis=None):
    """Frames 1 + amplitude * (k + 1) * (first harmonic) at these times."""
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

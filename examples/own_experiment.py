r"""Two clusters of equal mass meet at a time that theory gives: a statement that checks itself.

A file with `Parameters`, `QUICK`, `run`, `claims` and `draw` is an experiment: `attnflow reproduce own_experiment.py`
runs it, judges its claims and leaves a folder with figure and report. The first paragraph of its docstring is the
statement.

Shown: softmax attention, one angle, several $\beta$. Not shown: unequal masses.
"""

import dataclasses
import os
import shutil
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr

import attnflow as af

PAPERS = ("geshkovski2024metastability",)


@dataclasses.dataclass(frozen=True)
class Parameters:
    """What a run may change."""

    betas: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
    angle: float = 1.5


QUICK = Parameters(betas=(1.0, 4.0))


# %% [markdown]
# `run` simulates and knows no theory. Two tokens are followed until they are nearer than the merging angle.


# %%
def run(parameters, study):
    """Log times of merging and the errors that the solver reports, by beta."""
    pair = af.from_array(np.array([[1.0, 0.0], [np.cos(parameters.angle), np.sin(parameters.angle)]]))
    merges = [af.solve_long(af.Attention(beta), pair).merges for beta in parameters.betas]
    found = {name: ("beta", [float(merge[name][0]) for merge in merges]) for name in ("log_time", "error")}
    return {"pairs": xr.Dataset(found, {"beta": list(parameters.betas)})}


# %% [markdown]
# `claims` compares. A tolerance comes with its reason: here it is the error that `solve_long` reports.


# %%
def predicted(parameters, betas):
    """Theory: log of the merge time."""
    return af.theory.merging.log_merge_time(parameters.angle, np.asarray(betas))


def claims(parameters, data):
    """One claim, about the worst beta."""
    pairs = data["pairs"]
    three = predicted(parameters, pairs["beta"]), pairs["log_time"], pairs["error"]
    labels = [f"beta = {beta:g}" for beta in parameters.betas]
    return [af.experiments.Claim.equal("log t of the merge", *three, "reported error", labels=labels)]


def draw(parameters, data):
    """Times against beta, and theory."""
    figure, axis = plt.subplots()
    betas = np.geomspace(parameters.betas[0], parameters.betas[-1], 100)
    axis.plot(betas, predicted(parameters, betas), "k--", label="theory")
    axis.plot(parameters.betas, data["pairs"]["log_time"], "o", label="simulated")
    axis.set(xlabel=r"$\beta$", ylabel=r"$\log t$ of the merge")
    axis.legend()
    return figure


# %% [markdown]
# `reproduce` carries the file out: a folder with figure, claims and report. A claim that fails would say so here.

# %%
if __name__ == "__main__":
    small = bool(os.environ.get("ATTNFLOW_SMALL"))
    made, judged = af.experiments.reproduce(Path(__file__), "own_experiment", quick=small)
    for claim in judged:
        says = "holds" if claim.holds else "fails"
        print(f"{claim.statement}: {claim.measured:.8f}, theory {claim.predicted:.8f} ± {claim.tolerance:.1e}, {says}")
    shutil.copy(next(made.figures.glob("*.png")), "own_experiment.png")

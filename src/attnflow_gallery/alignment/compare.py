"""Alignment of the trained network against draws of its nulls, paired over texts; and how little theory explains."""

import numpy as np
import xarray as xr

from attnflow.experiments import Claim, observed
from attnflow.experiments.kit import (
    NETWORK,
    Rows,
    differences,
    end_over_draws,
    of_draws,
    part_name,
    upper_ends,
)
from attnflow_gallery.alignment.simulate import Parameters

SEEN = observed("What is compared")
FRESH = observed("Fresh weights align too")
LITTLE = observed("How little it is")
LEAST = 0.01
"""Of a difference, so that a null that does the same makes the claim fail; fixed beforehand."""
MOST = 0.15
"""Share of the squared updates that theory explains, at most; fixed beforehand."""
SHARED = "rxnmapper"
"""The network that applies one layer again and again."""


def of_texts(part: xr.Dataset, quantity: str) -> np.ndarray:
    """One number a text: the median over layers where there are some."""
    values = part[quantity].values
    return np.asarray(np.median(values, axis=1) if values.ndim > 1 else values)


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Above permuted weights, below fresh ones where layers share their weights, and how little is explained."""
    return [_above(parameters, data), _fresh(parameters, data), _little(parameters, data)]


def _alignment(part: xr.Dataset) -> np.ndarray:
    return of_texts(part, "alignment")


def _above(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows, said = differences(parameters, data, _alignment, LEAST, ("permuted",))
    return rows.at_least(
        "alignment of attention, median layer: trained less another draw of permuted weights",
        f"lower end over texts (99.9 %) and draws (99 %); {LEAST:g} is fixed beforehand, and 0 is the null",
        origin=SEEN,
        detail=said,
    )


def _fresh(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows = Rows()
    own, others = of_draws(parameters, data, SHARED, _alignment)
    rows.add(LEAST, end_over_draws(others["init"] - own, another=False), 0.0, f"{SHARED}, init")
    higher = int(np.sum(others["init"].mean(axis=1) > own.mean()))
    return rows.at_least(
        f"{SHARED}, one layer again and again: alignment of attention, median layer: mean over fresh networks less "
        "trained",
        f"lower end over texts (99.9 %) and draws (99 %), {LEAST:g} fixed beforehand: alignment alone does not tell a "
        "trained network",
        origin=FRESH,
        detail=f"{higher} of {len(others['init'])} fresh networks are above the trained one",
    )


def _little(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows, said = Rows(), []
    for which in parameters.networks:
        part = data[part_name(which, NETWORK)]
        for quantity, words in (("r2", "layer by layer, median"), ("ode_r2", "one step for all layers")):
            found = of_texts(part, quantity)
            rows.add(MOST, upper_ends(found), 0.0, f"{which}, {words}")
            said.append(f"{which}, {words}: {found.mean():.3f}")
    return rows.at_most(
        "share of the squared updates by attention that the velocity of theory explains",
        f"{MOST:g}, fixed beforehand; the upper end of the interval of 99.9 % of the mean over texts is below it",
        origin=LITTLE,
        detail="; ".join(said),
    )

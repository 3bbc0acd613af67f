"""Alignment of the trained network against its nulls, paired over texts; and how little theory explains."""

import numpy as np
import xarray as xr

from attnflow.experiments import Claim, observed
from attnflow.experiments.kit import Rows, lower_ends
from attnflow_gallery.alignment.simulate import NETWORK, Parameters, name

SEEN = observed("What is compared")
FRESH = observed("Fresh weights align too")
LITTLE = observed("How little it is")
LEAST = 0.01
"""Of a difference, so that a null that does the same makes the claim fail; fixed beforehand."""
MOST = 0.15
"""Share of the squared updates that theory explains, at most; fixed beforehand."""
REASON = "lower end of the interval of 99.9 % of the mean over texts, paired"
POST_NORM = ("rxnmapper",)
"""Networks in which fresh weights align better."""


def of_texts(part: xr.Dataset, quantity: str) -> np.ndarray:
    """One number a text: the median over layers where there are some."""
    values = part[quantity].values
    return np.asarray(np.median(values, axis=1) if values.ndim > 1 else values)


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Above permuted weights, below fresh ones of a post-norm network, and how little is explained."""
    return [_above(parameters, data), _fresh(parameters, data), _little(parameters, data)]


def _above(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows, said = Rows(), []
    for which in parameters.networks:
        own, other = (of_texts(data[name(which, case)], "alignment") for case in (NETWORK, "permuted"))
        rows.add(LEAST, lower_ends(own - other)[1], 0.0, which)
        said.append(f"{which} {own.mean():.3f}, permuted {other.mean():.3f}")
    return rows.at_least(
        "alignment of attention, median layer: trained less permuted weights",
        f"{REASON}; 0.01 is fixed beforehand, and 0 is the null",
        origin=SEEN,
        detail="; ".join(said),
    )


def _fresh(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows, said = Rows(), []
    for which in parameters.networks:
        own, other = (of_texts(data[name(which, case)], "alignment") for case in (NETWORK, "init"))
        if which in POST_NORM:
            rows.add(LEAST, lower_ends(other - own)[1], 0.0, which)
        said.append(f"{which} {own.mean():.3f}, fresh {other.mean():.3f}")
    return rows.at_least(
        f"post-norm, {', '.join(POST_NORM)}: alignment of attention, median layer: fresh less trained weights",
        f"{REASON}, 0.01 fixed beforehand: alignment alone does not tell a trained network",
        origin=FRESH,
        detail="; ".join(said),
    )


def _little(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows, said = Rows(), []
    for which in parameters.networks:
        part = data[name(which, NETWORK)]
        for quantity, words in (("r2", "layer by layer, median"), ("ode_r2", "one step for all layers")):
            mean, low = lower_ends(-of_texts(part, quantity))
            rows.add(MOST, -low, 0.0, f"{which}, {words}")
            said.append(f"{which}, {words}: {-mean:.3f}")
    return rows.at_most(
        "share of the squared updates by attention that the velocity of theory explains",
        f"{MOST:g}, fixed beforehand; the upper end of the interval of 99.9 % of the mean over texts is below it",
        origin=LITTLE,
        detail="; ".join(said),
    )

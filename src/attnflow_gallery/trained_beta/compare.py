"""The trained network against draws of its nulls, paired over texts; and how little cosines explain."""

import numpy as np
import xarray as xr

from attnflow.experiments import Claim, observed
from attnflow.experiments.kit import NETWORK, Rows, differences, part_name, upper_ends
from attnflow_gallery.trained_beta.simulate import Parameters

SEEN = observed("What is compared")
LITTLE = observed("How little it is")
COLLAPSED = 0.99
"""Layers with a larger mean overlap have no cosines to fit, and count as beta = 0."""
LEAST = 0.01
"""Of a difference, so that a null that does the same makes the claim fail; fixed beforehand."""
MOST = 0.25
"""Share of the variance of log-attention that cosines explain, at most; fixed beforehand."""
REASON = "lower end over texts (99.9 %) and draws (99 %); 0.01 is fixed beforehand, and 0 is the null"
QUANTITIES = {
    "beta": (
        ("permuted", "init"),
        "inverse temperature β, median head and layer, collapsed layers as 0: trained less another draw of a null",
    ),
    "correlation": (
        ("permuted",),
        "correlation of log-attention with cosines, median head and layer: trained less another draw of permuted "
        "weights",
    ),
    "positive": (("permuted",), "share of heads with β > 0: trained less another draw of permuted weights"),
}
"""The nulls that are asked, fixed from a first look at other draws, and the claim in words."""


def of_texts(part: xr.Dataset, quantity: str) -> np.ndarray:
    """One number a text: the median over layers, or the mean of shares."""
    values = part[quantity].values
    if quantity == "beta":
        values = np.where(part["overlap"].values > COLLAPSED, 0 * values, values)
    return np.asarray(values.mean(axis=1) if quantity == "positive" else np.median(values, axis=1))


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Three differences from nulls, and the share that is explained."""
    found = [_above(parameters, data, quantity) for quantity in QUANTITIES]
    return [*found, _little(parameters, data)]


def _above(parameters: Parameters, data: dict[str, xr.Dataset], quantity: str) -> Claim:
    nulls, words = QUANTITIES[quantity]
    rows, said = differences(parameters, data, lambda part: of_texts(part, quantity), LEAST, nulls)
    return rows.at_least(words, REASON, origin=SEEN, detail=said)


def _little(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows, said = Rows(), []
    for which in parameters.networks:
        part = data[part_name(which, NETWORK)]
        found = of_texts(part, "r2")
        rows.add(MOST, upper_ends(found), 0.0, which)
        against = layers_against(part)
        said.append(f"{which} {found.mean():.2g}, layers without β > 0: {', '.join(map(str, against)) or 'none'}")
    return rows.at_most(
        "share R² of the variance of log-attention that cosines explain, median head and layer",
        f"{MOST:g}, fixed beforehand; the upper end of the interval of 99.9 % of the mean over texts is below it",
        origin=LITTLE,
        detail="; ".join(said),
    )


def layers_against(part: xr.Dataset) -> list[int]:
    """Layers whose median head has no positive correlation in the mean over texts."""
    return [int(k) for k in np.flatnonzero(part["correlation"].values.mean(axis=0) <= 0)]

"""The trained network against its nulls, paired over texts; and how little cosines explain."""

import numpy as np
import xarray as xr

from attnflow.experiments import Claim, observed
from attnflow.experiments.kit import Rows, lower_ends
from attnflow_gallery.trained_beta.simulate import NETWORK, Parameters, name

SEEN = observed("What is compared")
LITTLE = observed("How little it is")
COLLAPSED = 0.99
"""Layers with a larger mean overlap have no cosines to fit, and count as beta = 0."""
LEAST = 0.01
"""Of a difference, so that a null that does the same makes the claim fail; fixed beforehand."""
MOST = 0.25
"""Share of the variance of log-attention that cosines explain, at most; fixed beforehand."""
REASON = (
    "lower end of the interval of 99.9 % of the mean over texts, paired; 0.01 is fixed beforehand, and 0 is the null"
)
WORDS = {
    "correlation": "correlation of log-attention with cosines, median head and layer: trained less null",
    "beta": "inverse temperature β, median head and layer, collapsed layers as 0: trained less null",
    "positive": "share of heads with β > 0: trained less null",
}


def of_texts(part: xr.Dataset, quantity: str) -> np.ndarray:
    """One number a text: the median over layers, or the mean of shares."""
    values = part[quantity].values
    if quantity == "beta":
        values = np.where(part["overlap"].values > COLLAPSED, 0 * values, values)
    return np.asarray(values.mean(axis=1) if quantity == "positive" else np.median(values, axis=1))


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Three differences from every null, and the share that is explained."""
    found = [_above(parameters, data, quantity) for quantity in WORDS]
    return [*found, _little(parameters, data)]


def _above(parameters: Parameters, data: dict[str, xr.Dataset], quantity: str) -> Claim:
    rows, said = Rows(), []
    for which in parameters.networks:
        own = of_texts(data[name(which, NETWORK)], quantity)
        said.append(f"{which} {own.mean():.3g}")
        for null in parameters.nulls:
            other = of_texts(data[name(which, null)], quantity)
            _, low = lower_ends(own - other)
            rows.add(LEAST, low, 0.0, f"{which}, {null}")
            said.append(f"{null} {other.mean():.3g}")
    return rows.at_least(WORDS[quantity], REASON, origin=SEEN, detail=", ".join(said))


def _little(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows, said = Rows(), []
    for which in parameters.networks:
        found = of_texts(data[name(which, NETWORK)], "r2")
        mean, low = lower_ends(-found)
        rows.add(MOST, -low, 0.0, which)
        against = layers_against(data[name(which, NETWORK)])
        said.append(f"{which} {-mean:.2g}, layers without β > 0: {', '.join(map(str, against)) or 'none'}")
    return rows.at_most(
        "share R² of the variance of log-attention that cosines explain, median head and layer",
        f"{MOST:g}, fixed beforehand; the upper end of the interval of 99.9 % of the mean over texts is below it",
        origin=LITTLE,
        detail="; ".join(said),
    )


def layers_against(part: xr.Dataset) -> list[int]:
    """Layers whose median head has no positive correlation in the mean over texts."""
    return [int(k) for k in np.flatnonzero(part["correlation"].values.mean(axis=0) <= 0)]

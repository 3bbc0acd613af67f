"""The few numbers of a dataset that a comparison puts beside their nulls, each one value a text."""

from collections.abc import Callable
from typing import Any

import numpy as np

AT_STATES: dict[str, Callable[[Any], Any]] = {
    "overlap": lambda data: data["overlap"].sel(view="raw"),
    "overlap without top 3": lambda data: data["overlap"].sel(view="without top 3"),
    "overlap without top 10": lambda data: data["overlap"].sel(view="without top 10"),
    "overlap, different ids": lambda data: data["overlap_different_ids"].sel(view="raw"),
    "95 % overlap, centred": lambda data: data["overlap_quantile"].sel(view="centred").sel(quantile=0.95),
    "effective rank": lambda data: data["effective_rank"],
    "effective rank, centred": lambda data: data["effective_rank_centred"],
    "clusters per token": lambda data: data["clusters_share"],
    "energy": lambda data: data["energy"],
    "alternatives exp(I)": lambda data: data["next_token_alternatives"].sel(readout="mixture"),
}
"""Numbers of states, which are shown at the first, the middle and the last one."""
OVER_LAYERS: dict[str, Callable[[Any], Any]] = {
    "β, median head": lambda data: data["beta"].median("head").median("layer"),
    "R² of β": lambda data: data["beta_r2"].median("head").median("layer"),
    "heads with β > 0": lambda data: (data["beta"] > 0).where(data["beta"].notnull()).mean(("head", "layer")),
    "attention perplexity": lambda data: data["attention_perplexity"].mean("head").median("layer"),
    "attention to sinks": lambda data: data["attention_to_sinks"].mean("head").median("layer"),
    "alignment of attention": lambda data: data["alignment"].sel(part="attention").median("layer"),
    "alignment of layer": lambda data: data["alignment"].sel(part="layer").median("layer"),
    "R² of effective time": lambda data: data["effective_time_r2"].sel(part="attention").median("layer"),
    "total effective time": lambda data: data["effective_time"].sel(part="attention").sum("layer", min_count=1),
    "ε of one ODE": lambda data: data["ode_step"].sel(part="attention"),
    "R² of one ODE": lambda data: data["ode_r2"].sel(part="attention"),
    "persistence of updates": lambda data: data["persistence"].sel(part="layer"),
    "layers where attention raises overlap": lambda data: _share(data["overlap_change_attention"]),
}
"""Numbers of layers, of which the median or the sum over layers is shown."""


def quantities(dataset: Any, kept: str) -> dict[str, Any]:
    """Arrays (case, text) by name; a number that the dataset does not have is left out."""
    found: dict[str, Any] = {}
    last = dataset.sizes["layer"] - 1
    for name, pick in AT_STATES.items():
        values = _picked(pick, dataset, kept)
        if values is not None:
            for layer in dict.fromkeys((0, last // 2, last)):
                found[f"{name} at state {layer}"] = values.isel(layer=layer)
    for name, pick in OVER_LAYERS.items():
        values = _picked(pick, dataset, kept)
        if values is not None:
            found[f"{name} over layers"] = values
    return {name: values for name, values in found.items() if np.isfinite(values.values).any()}


def _picked(pick: Callable[[Any], Any], dataset: Any, kept: str) -> Any:
    try:
        return pick(dataset.sel(kept=kept))
    except KeyError:  # not measured
        return None


def _share(change: Any) -> Any:
    return (change > 0).where(change.notnull()).mean("layer")

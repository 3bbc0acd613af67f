"""What can be said of all members of a batch in a few numbers."""

import dataclasses
from collections import Counter
from typing import Any

import numpy as np

from attnflow.flows import AbstractTrajectory
from attnflow.plots.figure_data import grouped

FEW = 6
"""Different numbers of clusters that are written out."""


def summarise_members(flow: AbstractTrajectory) -> dict[str, Any]:
    """The entry `batch` of a summary: who the members are, which one is shown, mean and range over all at the end.

    Empty for one system.
    """
    sizes = [flow.dataset.sizes[d] for d in flow.dims]
    if not flow.dims or not flow.dataset.sizes["time"]:
        return {}
    labels = {d: flow.dataset[d].values.tolist() for d in flow.dims}
    found: dict[str, Any] = {
        "members": int(np.prod(sizes)),
        "labels": labels,
        "shown": {d: values[0] for d, values in labels.items()},
    }
    last = dataclasses.replace(flow, dataset=flow.dataset.isel(time=[-1]).load())
    if "energy" in last.dataset:
        found["energy_at_end"] = _range(last.dataset["energy"].values)
    if "resolved" in last.dataset:
        found["resolved"] = int(last.dataset["resolved"].values.sum())
    if "positions" in last.dataset:
        members = (last.member(**dict(zip(flow.dims, where, strict=True))) for where in np.ndindex(*sizes))
        counted = [grouped(one).isel(time=0) for one in members]
        counts = [int(one["count"]) for one in counted]
        found["clusters_at_end"] = _range(np.array(counts))
        found["clusters"] = {str(count): members for count, members in sorted(Counter(counts).items())}
        found["condensed"] = sum(bool(one["condensed"]) for one in counted)
    return {"batch": found}


def _range(values: np.ndarray) -> dict[str, float]:
    return {"mean": float(values.mean()), "min": values.min().item(), "max": values.max().item()}


def member_name(batch: dict[str, Any]) -> str:
    """The member that figures and tables show, "seed = 0, the first of 8 members"."""
    shown = batch["shown"].items()
    labels = (f"{dim} = {label:g}" if isinstance(label, float) else f"{dim} = {label}" for dim, label in shown)
    return f"{', '.join(labels)}, the first of {batch['members']} members"


def member_table(batch: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Headings and rows of a table: all members of a batch at the end."""
    rows = []
    for name, key in (("clusters", "clusters_at_end"), ("energy", "energy_at_end")):
        if key in batch:
            rows.append([name, *(f"{batch[key][part]:.4g}" for part in ("mean", "min", "max"))])
    return [f"all {batch['members']} members at the end", "mean", "least", "largest"], rows


def member_counts(batch: dict[str, Any]) -> dict[str, str]:
    """What is counted over all members of a batch, in words."""
    count, found = batch["members"], {}
    if 1 < len(batch.get("clusters", ())) <= FEW:
        (first, times), *rest = batch["clusters"].items()
        least = f"{times} with {first} cluster{'' if first == '1' else 's'}"
        found["members"] = ", ".join([least, *(f"{times} with {number}" for number, times in rest)])
    if batch.get("condensed", count) < count:
        found["condensed"] = f"{batch['condensed']} of {count} members"
    if batch.get("resolved", count) < count:
        found["resolved"] = f"{batch['resolved']} of {count} members move faster than round-off"
    return found

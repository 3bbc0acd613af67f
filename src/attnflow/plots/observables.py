"""Numbers of the frames against time: observables of a flow, and what else was kept without positions."""

from typing import Any

import numpy as np

from attnflow.flows import AbstractResult, AbstractTrajectory
from attnflow.meanfield import CellFlow, DensityFlow, PlacedFlow
from attnflow.plots.style import COLOURS, PAGE, blank, literal, styled
from attnflow.plots.times import TimeAxis, frames_axis, log_times, time_axis

MOST = 12
"""Observables in one figure."""
MOST_MEMBERS = 200
"""Members of a batch in one panel; of more, every k-th."""
OWN: dict[type, tuple[str, ...]] = {
    AbstractTrajectory: ("positions", "speed", "floor", "resolved", "spread", "energy", "log_time", "log_speed"),
    DensityFlow: ("energy", "entropy", "free_energy", "mass", "tail", "lowest", "negative", "speed"),
    CellFlow: ("energy", "free_energy", "narrow"),
    PlacedFlow: ("tail", "place_tail", "lowest", "negative", "speed"),
}
"""What the frames of a flow hold by themselves."""
NUMBERS = {"energy": "energy", "speed": "largest speed", "spread": "spread"}
"""Numbers that a flow of tokens may hold, and what they are called on an axis."""


def observed(result: AbstractTrajectory | DensityFlow | CellFlow | PlacedFlow) -> list[str]:
    """The names of scalar observables."""
    own = next(names for kind, names in OWN.items() if isinstance(result, kind))
    return [
        str(name)
        for name, values in result.dataset.data_vars.items()
        if name not in own and values.dims == (*_batch(result), "time") and values.dtype.kind in "biuf"
    ]


def draw_observables(result: AbstractTrajectory | DensityFlow | CellFlow | PlacedFlow) -> Any:
    """One panel per scalar observable against time; the members of a batch as thin lines."""
    names = {name: literal(name.replace("_", " ")) for name in observed(result)[:MOST]}
    return _draw(result, names, "this flow has no scalar observable")


def draw_numbers(flow: AbstractTrajectory) -> Any:
    """Energy, speed and spread, as far as they were kept, and the observables: what there is without positions."""
    kept = {name: words for name, words in NUMBERS.items() if name in flow.dataset}
    names = kept | {name: literal(name.replace("_", " ")) for name in observed(flow)}
    return _draw(flow, dict(list(names.items())[:MOST]), "this flow kept nothing that can be drawn")


def draw_rows(result: AbstractResult) -> Any:
    """Every number of the rows of a result against the row: what there is to draw of a type of one's own."""
    dim = rows_of(result)
    names = _along(result, dim)
    if not names or not result.dataset.sizes.get(dim):
        return blank("no number was kept along the rows" if not names else "no row was saved")
    shown, at = names[:MOST], result.dataset[dim].values
    columns = min(len(shown), 3)
    rows = -(-len(shown) // columns)
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE * max(columns, 1.5) / 3, 1.8 * rows + 0.2))
        panels = np.ravel(fig.subplots(rows, columns, squeeze=False))
        for axes, name in zip(panels, shown, strict=False):
            values = result.dataset[name].transpose(..., dim).values
            some = values.reshape(-1, values.shape[-1])[:MOST_MEMBERS].astype(float)
            axes.plot(
                at, some.T, color=COLOURS[0], lw=1.2 if len(some) == 1 else 0.5, marker="." if len(at) < 2 else ""
            )
            axes.set(xlabel=dim, ylabel=literal(name.replace("_", " ")))
        for axes in panels[len(shown) :]:
            axes.remove()
        return fig


def summarise_rows(result: AbstractResult) -> dict[str, Any]:
    """The last value of every number of the rows, as JSON can hold it; the mean over the members of a batch."""
    dim = rows_of(result)
    found: dict[str, Any] = {"kind": "rows", dim: int(result.dataset.sizes.get(dim, 0))}
    for name in _along(result, dim) if found[dim] else ():
        last = float(result.dataset[name].isel({dim: -1}).astype(float).mean())
        found[f"{name}_at_end"] = last if np.isfinite(last) else None
    return found


def rows_of(result: AbstractResult) -> str:
    """The dimension of the rows of a result."""
    return "time" if result.work is None else str(result.work.rows)


def _along(result: AbstractResult, dim: str) -> list[str]:
    """The names of numbers that have a row, and no other dimension than those of a batch."""
    batch = set(getattr(result, "dims", ()))
    return [
        str(name)
        for name, values in result.dataset.data_vars.items()
        if dim in values.dims and set(values.dims) <= batch | {dim} and values.dtype.kind in "biuf"
    ]


def draw_lines(axes: Any, axis: TimeAxis, log_time: np.ndarray, values: np.ndarray, label: str) -> None:
    """Values (member, time) against time; whole numbers and truths as steps."""
    whole, members = values.dtype.kind in "biu", len(values)
    look = {"lw": 1.2} if members == 1 else {"lw": 0.5, "alpha": float(np.clip(8 / members, 0.2, 0.7))}
    some = values[:: -(-members // MOST_MEMBERS)].astype(float)
    axes.plot(axis.at(log_time), some.T, color=COLOURS[0], drawstyle="steps-post" if whole else "default", **look)
    axes.set_ylabel(label)
    axis.draw(axes)


def _draw(result: Any, names: dict[str, str], none: str) -> Any:
    if not names or not result.dataset.sizes["time"]:
        return blank(none if not names else "no frame was saved")
    columns = min(len(names), 3)
    rows = -(-len(names) // columns)
    log_time = log_times(result)
    axis = time_axis(result) if isinstance(result, AbstractTrajectory) else frames_axis(log_time)
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE * max(columns, 1.5) / 3, 1.8 * rows + 0.2))
        panels = np.ravel(fig.subplots(rows, columns, squeeze=False))
        for axes, (name, words) in zip(panels, names.items(), strict=False):
            values = result.dataset[name].values
            draw_lines(axes, axis, log_time, values.reshape(-1, values.shape[-1]), words)
            if name == "speed" and (values > 0).all():
                axes.set_yscale("log")
        for axes in panels[len(names) :]:
            axes.remove()
        return fig


def _batch(result: Any) -> tuple[str, ...]:
    return result.dims if isinstance(result, AbstractTrajectory) else ()

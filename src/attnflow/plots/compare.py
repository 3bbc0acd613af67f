"""Several flows of tokens in one figure: energy, overlap and clusters over one time axis."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from attnflow.checks import shown
from attnflow.describe import differences, flattened, named
from attnflow.errors import InvalidInput
from attnflow.flows import AbstractTrajectory
from attnflow.plots.energy import scale_of_counts
from attnflow.plots.figure_data import FigureData
from attnflow.plots.observables import NUMBERS
from attnflow.plots.style import COLOURS, PAGE, literal, say, styled
from attnflow.plots.times import TimeAxis, joined
from attnflow.spaces import Sphere

MOST = 12
"""Flows in one figure, as many as there are colours."""
MOST_MEMBERS = 8
"""Members of a batch that are drawn, evenly picked."""
DASHES = ("-", (0, (5, 1.5)), (0, (3, 1.2, 1, 1.2)), (0, (1, 1)))
"""Lines differ by their dashes too, for readers without colours."""
SYMBOLS = {"beta": "β", "kappa": "κ"}


def plot_several(flows: Sequence[Any] | Mapping[str, Any]) -> Any:
    """Flows overlaid; a mapping gives their names, of a list the names say what differs."""
    found = _named(flows)
    members = {name: [FigureData.of(one) for one in _members(flow)] for name, flow in found.items()}
    first = [data for several in members.values() for data in several]
    axis = joined([data.axis for data in first])
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 2.3 + 0.16 * _lines(found)))
        panels = fig.subplots(1, 3)
        most = 1.0
        for (name, several), colour, dashes in zip(members.items(), COLOURS, itertools.cycle(DASHES), strict=False):
            look: dict[str, Any] = {"color": colour, "ls": dashes, "lw": 1.3 if len(several) == 1 else 0.7}
            for k, data in enumerate(several):
                label = literal(_symbols(name)) if k == 0 else None
                _line(panels[0], axis, *_height(data, first), label=label, **look)
                _line(panels[1], axis, data.log_time, _closeness(data, first), **look)
                log_time, counts = data.counts
                panels[2].step(axis.at(log_time), counts, where="post", **look)
                most = max(most, float(np.nanmax(counts)) if np.isfinite(counts).any() else 1.0)
        _finish(panels, axis, first, most)
        columns = max(1, min(len(found), 90 // max(map(len, found))))
        handles = panels[0].get_legend_handles_labels()
        fig.legend(*handles, loc="outside upper left", ncols=columns, handlelength=2.6)
        return fig


def _named(flows: Sequence[Any] | Mapping[str, Any]) -> dict[str, AbstractTrajectory]:
    several = list(flows.values()) if isinstance(flows, Mapping) else list(flows)
    if not several or len(several) > MOST:
        raise InvalidInput(f"`result` holds {len(several)} flows; one figure compares 1 to {MOST}.")
    for flow in several:
        if not isinstance(flow, AbstractTrajectory):
            raise InvalidInput(
                f"`result` holds a {type(flow).__name__}; one figure compares flows of solve and solve_long."
            )
        if "positions" not in flow.dataset or not flow.dataset.sizes["time"]:
            raise InvalidInput("one of the flows kept no positions; make it with keep=('positions', ...).")
    names = list(map(str, flows)) if isinstance(flows, Mapping) else labels(several)
    if len(set(names)) < len(names):
        raise InvalidInput(f"`result` has the names {shown(names)}, of which two are the same; give names that differ.")
    return {f"{name} ({_shown(flow)})" if flow.dims else name: flow for name, flow in zip(names, several, strict=True)}


def labels(flows: Sequence[AbstractTrajectory]) -> list[str]:
    """What differs between flows, for each of them."""
    return named(differences([_facts(flow) for flow in flows]), len(flows))


def _facts(flow: AbstractTrajectory) -> dict[str, str]:
    """Everything that tells one flow from another: sizes, field, space."""
    sizes = flow.dataset.sizes
    facts = {} if flow.field is None else flattened(flow.field)
    facts = {key: text for key, text in facts.items() if not {"sum", "kernel"} & set(key.split("."))}
    return {"n": str(sizes["token"]), "d": str(sizes["dim"]), "space": type(flow.space).__name__} | facts


def _members(flow: AbstractTrajectory) -> list[AbstractTrajectory]:
    """All systems of a batch, or MOST_MEMBERS of them."""
    every = list(np.ndindex(*(flow.dataset.sizes[d] for d in flow.dims)))
    pick = np.unique(np.linspace(0, len(every) - 1, min(MOST_MEMBERS, len(every))).round().astype(int))
    return [flow.member(**dict(zip(flow.dims, every[k], strict=True))) for k in pick]


def _shown(flow: AbstractTrajectory) -> str:
    count = int(np.prod([flow.dataset.sizes[d] for d in flow.dims]))
    return f"{count} members" if count <= MOST_MEMBERS else f"{MOST_MEMBERS} of {count} members"


def _line(axes: Any, axis: TimeAxis, log_time: np.ndarray, values: np.ndarray, **look: Any) -> None:
    axes.plot(axis.at(log_time), values, **look)


def _common(every: list[FigureData]) -> str | None:
    """The number that all flows kept: energy, else speed, else spread."""
    return next((name for name in NUMBERS if all(name in data.flow.dataset for data in every)), None)


def _height(data: FigureData, every: list[FigureData]) -> tuple[np.ndarray, np.ndarray]:
    name = _common(every)
    if name == "energy" and data.curve is not None:
        return data.curve
    values = np.full(len(data.log_time), np.nan) if name is None else data.flow.dataset[name].values
    return data.log_time, values


def _on_spheres(every: list[FigureData]) -> bool:
    return all(isinstance(data.flow.space, Sphere) for data in every)


def _closeness(data: FigureData, every: list[FigureData]) -> np.ndarray:
    """The mean overlap of all pairs of tokens, on spheres; else the mean square distance to their mean."""
    x, m = data.flow.positions.values, data.flow.dataset["masses"].values
    mean = np.einsum("tid,i->td", x, m)
    if _on_spheres(every):  # sum_ij m_i m_j <x_i, x_j>
        return np.sum(mean**2, axis=1)
    return np.einsum("tid,i->t", (x - mean[:, None]) ** 2, m)


def _finish(panels: Any, axis: TimeAxis, every: list[FigureData], most: float) -> None:
    name = _common(every)
    if name is None:
        say(panels[0], "no energy, speed or spread was kept of all")
    else:
        plain = name == "energy" and all(data.beta is not None for data in every)
        panels[0].set_ylabel(r"energy $\hat E$" if plain else NUMBERS[name])
        if name == "speed":
            panels[0].set_yscale("log")
    panels[1].set(ylabel=r"mean overlap $\langle x_i, x_j\rangle$" if _on_spheres(every) else "mean square radius")
    panels[1].set(ylim=(0, 1.02 if _on_spheres(every) else None))
    panels[2].set_ylabel("clusters, once condensed")
    scale_of_counts(panels[2], most)
    for axes in panels:
        axis.draw(axes)


def _symbols(name: str) -> str:
    words = name.split(" ")
    return " ".join(SYMBOLS.get(word, word) for word in words)


def _lines(names: Mapping[str, Any]) -> int:
    """Lines of the legend."""
    columns = max(1, min(len(names), 90 // max(map(len, names))))
    return -(-len(names) // columns)

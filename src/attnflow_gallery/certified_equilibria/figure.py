"""Classes of equilibria with their indices against beta, and indices on S^2."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments.kit import panels
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.certified_equilibria.compare import threshold
from attnflow_gallery.certified_equilibria.simulate import Parameters, name


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Equilibria of equal tokens, proved, with their indices.

    (a)-(c) All classes of equilibria on the circle, one row for each arrangement of cluster sizes: a disc with the
    index where the list was proved at one beta; a bar where it was proved for every beta of an interval; a grey cross
    where the list is complete without this class. Dashed: the threshold below which (n-2)+1+1 is missing. (d) Growing
    (full) and decaying (open) directions of configurations on S^2, the same at every beta that was tried; what is left
    are the three rotations.
    """
    sizes = sorted({n for n, _ in parameters.lists})
    shown = (sizes * 3)[:3] if len(sizes) < 3 else sizes[-3:]
    titles = [f"{n} tokens on the circle" for n in shown]
    with panels(2, 2, 5.4, *titles, r"configurations on $S^2$") as page:
        for axes, n in zip(page, shown, strict=False):
            _draw_lists(axes, parameters, data, n)
        _draw_solids(page[3], data["solids"])
    return page.figure


def _draw_lists(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset], n: int) -> None:
    points = {beta: data[name(m, beta, beta)] for m, beta in parameters.lists if m == n}
    lengths = [(low, high, data[name(m, low, high)]) for m, low, high in parameters.intervals if m == n]
    every = sorted(
        {one for part in [*points.values(), *(part for *_, part in lengths)] for one in part["sizes"].values.tolist()},
        key=lambda one: (one.count("+"), one),
    )
    for low, high, part in lengths:
        for one, index in zip(part["sizes"].values.tolist(), part["index"].values.tolist(), strict=True):
            look = {"color": COLOURS[index % len(COLOURS)], "lw": 7, "alpha": 0.3, "solid_capstyle": "butt"}
            axes.plot([max(low, 0.1), high], [every.index(one)] * 2, **look)
    for beta, part in points.items():
        if beta <= 0:
            continue
        there = dict(zip(part["sizes"].values.tolist(), part["index"].values.tolist(), strict=True))
        for row, one in enumerate(every):
            if one in there:
                axes.plot(beta, row, "o", ms=8, color=COLOURS[there[one] % len(COLOURS)], mew=0)
                axes.text(beta, row - 0.02, str(there[one]), ha="center", va="center", fontsize=6, color="white")
            else:
                axes.plot(beta, row, "x", ms=5, color=GREY)
    if n > 4:
        axes.axvline(threshold(n), ls="--", lw=0.8, color=INK)
    axes.set(xscale="log", xlim=(0.1, 30), ylim=(-0.7, len(every) - 0.3), xlabel=r"inverse temperature $\beta$")
    axes.set_yticks(range(len(every)), every, fontsize=6 if len(every) > 8 else 7)


def _draw_solids(axes: Any, solids: xr.Dataset) -> None:
    names = list(dict.fromkeys(solids["solid"].values.tolist()))
    for k, solid in enumerate(names):
        some = solids.isel(case=solids["solid"].values == solid)
        for key, shift, face in (("unstable", -0.17, COLOURS[0]), ("stable", 0.17, "white")):
            values = np.unique(some[key].values)
            axes.bar([k + shift] * len(values), values, 0.3, fc=face, ec=COLOURS[0], lw=0.8)
    axes.bar([0], [0], fc=COLOURS[0], ec=COLOURS[0], label="growing")
    axes.bar([0], [0], fc="white", ec=COLOURS[0], label="decaying")
    axes.set_xticks(range(len(names)), names, rotation=35, ha="right", fontsize=7)
    axes.set(ylabel="directions")
    axes.legend(loc="upper left")

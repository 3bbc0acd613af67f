"""A quantity against the axes of a sweep: lines with bands of standard errors, or a heat map; theory on top."""

from collections.abc import Callable
from typing import Any

import numpy as np

from attnflow.errors import InvalidInput
from attnflow.plots.style import COLOURS, COLUMN, INK, literal, shades, styled

MOST_LINES = 12
"""Lines of one figure; more values make a heat map."""
FEW = 6
"""Values of an axis of a map that are all named."""
FINE = 200
"""Points of a curve of theory."""


def swept(
    mean: Any,
    error: Any,
    x: str,
    *,
    heat: bool = False,
    theory: Callable[..., Any] | None = None,
    label: str = "",
) -> Any:
    """A Matplotlib Figure of `mean`, a DataArray over `x` and at most one more dimension, with the band `error`."""
    others = [str(dim) for dim in mean.dims if dim != x]
    if len(others) > 1:
        raise InvalidInput(
            f"the figure would have the axes {others} besides {x!r}; average one with `over`, or use `at`."
        )
    by = others[0] if others else None
    with styled() as figure:
        fig = figure.Figure(figsize=(COLUMN, 0.75 * COLUMN), dpi=200)
        axes = fig.subplots()
        if heat or (by is not None and mean.sizes[by] > MOST_LINES):
            if by is None:
                raise InvalidInput("a heat map needs two axes, and one is left; leave `heat` out.")
            _map(fig, axes, mean, x, by, theory, label)
        else:
            _lines(axes, mean, error, x, by, theory)
            axes.set_ylabel(label)
        axes.set_xlabel(x)
        return fig


def _lines(axes: Any, mean: Any, error: Any, x: str, by: str | None, theory: Any) -> None:
    if _is_geometric(mean[x].values):
        axes.set_xscale("log")
    values = [None] if by is None else list(mean[by].values)
    colours: Any = COLOURS if len(values) <= 3 else shades(len(values))
    at = np.asarray(mean[x].values)
    for k, value in enumerate(values):
        line = mean if by is None else mean.isel({by: k})
        number = isinstance(value, int | float | np.number)
        name = None if by is None else f"{by} = {value:g}" if number else literal(value)
        axes.plot(at, line.values, marker="o", markersize=2, linewidth=0.8, color=colours[k], label=name)
        if error is not None:
            band = (error if by is None else error.isel({by: k})).values
            axes.fill_between(at, line.values - band, line.values + band, color=colours[k], alpha=0.35, linewidth=0)
        if theory is not None:
            fine = _between(at)
            predicted = [theory(one) if by is None else theory(one, value) for one in fine]
            axes.plot(fine, predicted, "--", linewidth=0.8, color=INK if by is None else colours[k])
    if by is not None:
        axes.legend()
    elif theory is not None:
        axes.plot([], [], "--", linewidth=0.8, color=INK, label="theory")
        axes.legend()


def _map(fig: Any, axes: Any, mean: Any, x: str, by: str, theory: Any, label: str) -> None:
    across, up = np.asarray(mean[x].values), np.asarray(mean[by].values)
    values = mean.transpose(by, x).values
    mesh = axes.pcolormesh(_edges(across), _edges(up), values, cmap="cividis", shading="flat", rasterized=True)
    fig.colorbar(mesh, ax=axes, label=label)
    axes.set_ylabel(by)
    if _is_geometric(across):
        axes.set_xscale("log")
    if _is_geometric(up):
        axes.set_yscale("log")
    if theory is not None and len(across) > 1 and len(up) > 1:
        predicted = np.array([[theory(a, b) for a in across] for b in up], float)
        lines = axes.contour(across, up, predicted, colors="white", linestyles="--", linewidths=0.8)
        axes.clabel(lines, fontsize=6)
    for axis, values in ((axes.xaxis, across), (axes.yaxis, up)):
        _name_values(axis, values)


def _name_values(axis: Any, values: np.ndarray) -> None:
    """Ticks at the values themselves, where they are few or no numbers."""
    numbers = values.dtype.kind in "iuf"
    if len(values) > FEW and numbers:
        return
    axis.set_ticks(values if numbers else range(len(values)), [f"{v:.3g}" if numbers else literal(v) for v in values])
    axis.set_ticks([], minor=True)


def _is_geometric(values: np.ndarray) -> bool:
    """Whether values are spread evenly on a logarithmic axis, or more so than on a plain one."""
    values = np.asarray(values)
    if values.dtype.kind not in "iuf" or len(values) < 3 or (values <= 0).any():
        return False
    plain, log = (np.diff(np.sort(one)) for one in (values.astype(float), np.log(values.astype(float))))
    return bool(np.ptp(log) / log.mean() < np.ptp(plain) / plain.mean())


def _between(at: np.ndarray) -> np.ndarray:
    if np.asarray(at).dtype.kind not in "iuf":
        return at
    low, high = float(np.min(at)), float(np.max(at))
    return np.geomspace(low, high, FINE) if _is_geometric(at) else np.linspace(low, high, FINE)


def _edges(at: np.ndarray) -> np.ndarray:
    """Edges of cells around values; of values that are no numbers, around their places."""
    if at.dtype.kind not in "iuf":
        return np.arange(len(at) + 1) - 0.5
    values, log = at.astype(float), _is_geometric(at)
    values = np.log(values) if log else values
    inner = (values[1:] + values[:-1]) / 2
    first, last = (inner[0] - values[0], values[-1] - inner[-1]) if len(values) > 1 else (0.5, 0.5)
    edges = np.concatenate([[values[0] - first], inner, [values[-1] + last]])
    return np.exp(edges) if log else edges

"""The interactive picture of a run: tokens with a time slider, beside the energy."""

import dataclasses
from typing import Any

import numpy as np

from attnflow.plots.figure_data import FigureData
from attnflow.plots.observables import NUMBERS
from attnflow.plots.style import COLOURS, GREY, INK, colours
from attnflow.plots.times import Scale, written
from attnflow.spaces import Sphere

MOST_TOKENS = 1500
MOST_FRAMES = 90


def interactive(data: FigureData) -> Any:
    """A Plotly figure with one frame per slider position."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    thin = dataclasses.replace(data, flow=data.flow.thinned(MOST_FRAMES))
    x = thin.flow.positions.values
    step = max(1, x.shape[1] // MOST_TOKENS)
    x, paint = x[:, ::step], colours(data.labels[::step])
    if x.shape[2] > 3:
        from attnflow.plots.snapshots import projection

        x = x @ projection(data)
    solid = x.shape[2] == 3
    axis = data.axis
    name, heights = thin.height or ("", np.full(len(thin.log_time), np.nan))
    log_curve, curve = data.curve or (thin.log_time, heights)
    times = axis.at(thin.log_time)

    fig = make_subplots(
        rows=1, cols=2, column_widths=[0.58, 0.42], horizontal_spacing=0.09,
        specs=[[{"type": "scene" if solid else "xy"}, {"type": "xy"}]],
    )  # fmt: skip

    def cloud(k: int) -> Any:
        marker = {"size": 4 if solid else 8, "color": paint, "line": {"width": 0.5, "color": INK}}
        if solid:
            return go.Scatter3d(x=x[k, :, 0], y=x[k, :, 1], z=x[k, :, 2], mode="markers", marker=marker)
        return go.Scatter(x=x[k, :, 0], y=x[k, :, -1], mode="markers", marker=marker)

    def dot(k: int) -> Any:
        return go.Scatter(x=[times[k]], y=[heights[k]], mode="markers", marker={"size": 11, "color": COLOURS[4]})

    fig.add_trace(cloud(0), row=1, col=1)
    fig.add_trace(dot(0), row=1, col=2)
    fig.add_trace(go.Scatter(x=axis.at(log_curve), y=curve, mode="lines", line={"color": COLOURS[0]}), row=1, col=2)
    for outline in _outline(thin, solid):
        fig.add_trace(outline, row=1, col=1)
    names = [str(k) for k in range(len(times))]
    labels = [written(t, axis.scale is Scale.EXPONENT) for t in thin.log_time]
    fig.frames = [go.Frame(data=[cloud(k), dot(k)], traces=[0, 1], name=names[k]) for k in range(len(times))]

    def show(name: str | None, wait: int) -> list[Any]:
        return [
            [name] if name else None,
            {"mode": "immediate", "frame": {"duration": wait}, "transition": {"duration": 0}},
        ]

    fig.update_layout(
        template="simple_white",
        height=560,
        showlegend=False,
        margin={"l": 10, "r": 20, "t": 20, "b": 20},
        font={"size": 13, "color": INK},
        sliders=[{
            "active": 0, "len": 0.84, "x": 0.14, "pad": {"t": 35},
            "currentvalue": {"prefix": f"{axis.symbol} = ", "font": {"size": 15}},
            "steps": [
                {"label": label, "method": "animate", "args": show(name, 0)}
                for name, label in zip(names, labels, strict=True)
            ],
        }],
        updatemenus=[{
            "type": "buttons", "direction": "left", "x": 0.12, "y": 0, "xanchor": "right",
            "pad": {"t": 60, "r": 10},
            "buttons": [
                {"label": "Play", "method": "animate", "args": show(None, 80)},
                {"label": "Pause", "method": "animate", "args": [[None], show(None, 0)[1]]},
            ],
        }],
    )  # fmt: skip
    fig.update_xaxes(title=axis.symbol, type="log" if axis.is_logarithmic else "linear", row=1, col=2)
    fig.update_yaxes(title=NUMBERS.get(name, "no energy or speed was kept"), row=1, col=2)
    if name in ("speed", "spread"):
        fig.update_yaxes(type="log", row=1, col=2)
    if solid:
        bare = {"visible": False, "range": [-1.05, 1.05]} if isinstance(thin.flow.space, Sphere) else {}
        fig.update_scenes(aspectmode="cube", xaxis=bare, yaxis=bare, zaxis=bare)
    elif isinstance(thin.flow.space, Sphere):
        fig.update_xaxes(visible=False, range=[-1.15, 1.15], row=1, col=1)
        fig.update_yaxes(visible=False, range=[-1.15, 1.15], scaleanchor="x", row=1, col=1)
    return fig


def _outline(data: FigureData, solid: bool) -> list[Any]:
    """The sphere or circle that the tokens live on."""
    import plotly.graph_objects as go

    if not isinstance(data.flow.space, Sphere):
        return []
    angle = np.linspace(0, 2 * np.pi, 120)
    line = {"color": GREY, "width": 1}
    if not solid:
        return [go.Scatter(x=np.cos(angle), y=np.sin(angle), mode="lines", line=line, hoverinfo="skip")]
    if data.flow.space.dim > 3:
        return []
    rings = []
    for height in np.sin(np.deg2rad([-60, -30, 0, 30, 60])):
        r = np.sqrt(1 - height**2)
        rings.append((r * np.cos(angle), r * np.sin(angle), np.full(120, height)))
    for turn in np.deg2rad([0, 45, 90, 135]):
        rings.append((np.cos(turn) * np.cos(angle), np.sin(turn) * np.cos(angle), np.sin(angle)))
    return [go.Scatter3d(x=a, y=b, z=c, mode="lines", line=line, opacity=0.35, hoverinfo="skip") for a, b, c in rings]

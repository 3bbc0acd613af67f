"""The interactive picture of a run: tokens with a time slider, beside the energy."""

import dataclasses
from typing import Any

import numpy as np

from attnflow.plots.figure_data import FigureData
from attnflow.plots.observables import NUMBERS
from attnflow.plots.snapshots import View, views
from attnflow.plots.style import COLOURS, GREY, INK, colours
from attnflow.plots.times import Scale, written

MOST_TOKENS = 1500
MOST_FRAMES = 90
MOST_VIEWS = 2


def interactive(data: FigureData) -> Any:
    """A Plotly figure with one frame per slider position; it shows at most two of the pictures of the space."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    thin = dataclasses.replace(data, flow=data.flow.thinned(MOST_FRAMES))
    x = thin.flow.positions.values
    step = max(1, x.shape[1] // MOST_TOKENS)
    x, paint = x[:, ::step], colours(data.labels[::step])
    parts = views(data)[:MOST_VIEWS]
    seen = [_coordinates(data, view, x) for view in parts]
    axis = data.axis
    name, heights = thin.height or ("", np.full(len(thin.log_time), np.nan))
    log_curve, curve = data.curve or (thin.log_time, heights)
    times = axis.at(thin.log_time)

    fig = make_subplots(
        rows=1, cols=len(parts) + 1, column_widths=[*[0.58 / len(parts)] * len(parts), 0.42], horizontal_spacing=0.09,
        specs=[[*({"type": "scene" if points.shape[-1] == 3 else "xy"} for points in seen), {"type": "xy"}]],
    )  # fmt: skip

    def clouds(k: int) -> list[Any]:
        return [_cloud(points[k], paint) for points in seen]

    def dot(k: int) -> Any:
        return go.Scatter(x=[times[k]], y=[heights[k]], mode="markers", marker={"size": 11, "color": COLOURS[4]})

    last = len(parts) + 1
    for col, cloud in enumerate(clouds(0), 1):
        fig.add_trace(cloud, row=1, col=col)
    fig.add_trace(dot(0), row=1, col=last)
    fig.add_trace(go.Scatter(x=axis.at(log_curve), y=curve, mode="lines", line={"color": COLOURS[0]}), row=1, col=last)
    for col, (view, points) in enumerate(zip(parts, seen, strict=True), 1):
        for outline in _outline(view, points.shape[-1] == 3):
            fig.add_trace(outline, row=1, col=col)
    names = [str(k) for k in range(len(times))]
    labels = [written(t, axis.scale is Scale.EXPONENT) for t in thin.log_time]
    fig.frames = [
        go.Frame(data=[*clouds(k), dot(k)], traces=list(range(last)), name=names[k]) for k in range(len(times))
    ]

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
    fig.update_xaxes(title=axis.symbol, type="log" if axis.is_logarithmic else "linear", row=1, col=last)
    fig.update_yaxes(title=NUMBERS.get(name, "no energy or speed was kept"), row=1, col=last)
    if name in ("speed", "spread"):
        fig.update_yaxes(type="log", row=1, col=last)
    for col, (view, points) in enumerate(zip(parts, seen, strict=True), 1):
        if points.shape[-1] == 3:
            bare = {"visible": False, "range": [-1.05, 1.05]} if view.unit else {}
            fig.update_scenes(aspectmode="cube", xaxis=bare, yaxis=bare, zaxis=bare, row=1, col=col)
            continue
        look: dict[str, Any] = {"visible": False, "range": [-1.15, 1.15]} if view.unit else {"range": view.limits}
        names_of_axes = [name.strip("$").replace("{", "").replace("}", "") for name in (*view.labels, "", "")]
        fig.update_xaxes(title=names_of_axes[0], **look, row=1, col=col)
        fig.update_yaxes(title=names_of_axes[1], **look, scaleanchor=f"x{col}", row=1, col=col)
    return fig


def _coordinates(data: FigureData, view: View, x: np.ndarray) -> np.ndarray:
    """Two or three coordinates; those of a solid as they are, since it can be turned."""
    points = data.flow.space.pictures(x)[view.part].points
    return points if points.shape[-1] == 3 else points @ view.projection


def _cloud(x: np.ndarray, paint: list[str]) -> Any:
    import plotly.graph_objects as go

    solid = x.shape[-1] == 3
    marker = {"size": 4 if solid else 8, "color": paint, "line": {"width": 0.5, "color": INK}}
    if solid:
        return go.Scatter3d(x=x[:, 0], y=x[:, 1], z=x[:, 2], mode="markers", marker=marker)
    return go.Scatter(x=x[:, 0], y=x[:, 1], mode="markers", marker=marker)


def _outline(view: View, solid: bool) -> list[Any]:
    """The sphere or circle that the tokens live on; none for a projection of more dimensions."""
    import plotly.graph_objects as go

    if not view.unit or len(view.projection) > 3:
        return []
    angle = np.linspace(0, 2 * np.pi, 120)
    line = {"color": GREY, "width": 1}
    if not solid:
        return [go.Scatter(x=np.cos(angle), y=np.sin(angle), mode="lines", line=line, hoverinfo="skip")]
    rings = []
    for height in np.sin(np.deg2rad([-60, -30, 0, 30, 60])):
        r = np.sqrt(1 - height**2)
        rings.append((r * np.cos(angle), r * np.sin(angle), np.full(120, height)))
    for turn in np.deg2rad([0, 45, 90, 135]):
        rings.append((np.cos(turn) * np.cos(angle), np.sin(turn) * np.cos(angle), np.sin(angle)))
    return [go.Scatter3d(x=a, y=b, z=c, mode="lines", line=line, opacity=0.35, hoverinfo="skip") for a, b, c in rings]

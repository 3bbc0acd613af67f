"""The whole flow in one figure, and in a few numbers."""

from typing import Any

import numpy as np

from attnflow.flows import Trajectory
from attnflow.plots.overlaps import draw_overlap_map
from attnflow.plots.series import draw_count, draw_energy
from attnflow.plots.snapshots import draw_frame, projection
from attnflow.plots.story import Story, tell
from attnflow.plots.style import PAGE, clean, colours, styled


def plot(flow: Trajectory | Story) -> Any:
    """Tokens at four times, energy, cluster count and overlaps, with theory laid over; a Matplotlib Figure.

    Of a batch the first member is shown.
    """
    story = tell(flow) if isinstance(flow, Trajectory) else flow
    frames = story.moments()
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 4.1))
        upper, lower = fig.subfigures(2, 1, height_ratios=[1.05, 1])
        view, paint = projection(story), np.array(colours(story.labels))
        for axes, k in zip(np.atleast_1d(upper.subplots(1, len(frames))), frames, strict=True):
            draw_frame(axes, story, k, view, paint)
            axes.set_title(f"$t = {clean(story.times[k])}$")
        left, middle, right = lower.subplots(1, 3)
        draw_energy(left, story)
        draw_count(middle, story)
        draw_overlap_map(lower, right, story)
        return fig


def summarise(story: Story) -> dict[str, Any]:
    """The numbers of the closing table: plateaus, cluster counts, energies."""
    energy = story.flow.dataset.get("energy")
    return {
        "plateaus": [
            {"start": p.start, "end": p.end, "clusters": p.clusters, "energy": _number(p.energy)}
            for p in story.plateaus
        ],
        "clusters_at_end": int(story.clusters["count"].values[-1]),
        "energy_at_start": None if energy is None else float(energy.values[0]),
        "energy_at_end": None if energy is None else float(energy.values[-1]),
        "final_time": float(story.times[-1]),
        "resolved": bool(story.flow.resolved.values[-1]),
    }


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None

"""The whole flow in one figure, and in a few numbers."""

from typing import Any

import numpy as np

from attnflow.flows import AbstractTrajectory
from attnflow.plots.overlaps import draw_overlap_map
from attnflow.plots.series import draw_count, draw_energy
from attnflow.plots.snapshots import draw_frame, projection
from attnflow.plots.staircase import draw_levels, draw_lifetimes
from attnflow.plots.story import Story, tell
from attnflow.plots.style import PAGE, colours, styled
from attnflow.plots.tree import draw_branches


def plot(flow: AbstractTrajectory | Story) -> Any:
    """Tokens at a few times, energy, cluster count and overlaps, with theory laid over; a Matplotlib Figure.

    Of a flow of `solve_long`: tokens, the staircase, the merge tree and the lifetimes of plateaus. Of a batch the first
    member is shown.
    """
    story = tell(flow)
    frames = story.moments()
    with styled() as figure:
        heights = PAGE / max(len(frames), 4) + 0.3, 2.1
        fig = figure.Figure(figsize=(PAGE, sum(heights)))
        upper, lower = fig.subfigures(2, 1, height_ratios=heights)
        view, paint = projection(story), np.array(colours(story.labels))
        for axes, k in zip(np.atleast_1d(upper.subplots(1, len(frames))), frames, strict=True):
            draw_frame(axes, story, k, view, paint)
            axes.set_title(story.axis.title(story.log_time[k]))
        left, middle, right = lower.subplots(1, 3)
        if story.tree is None:
            draw_energy(left, story)
            draw_count(middle, story)
            draw_overlap_map(lower, right, story)
        else:
            draw_levels(left, story)
            draw_branches(middle, story)
            if story.plateaus:
                draw_lifetimes(right, story)
            else:
                draw_overlap_map(lower, right, story)
        return fig


def summarise(story: Story) -> dict[str, Any]:
    """The numbers of the closing table: plateaus, cluster counts, energies; times as logarithms, None for log 0."""
    energy = story.flow.dataset.get("energy")
    return {
        "plateaus": [
            {
                "log_start": _number(p.log_start),
                "log_end": _number(p.log_end),
                "clusters": p.clusters,
                "energy": _number(p.energy),
            }
            for p in story.plateaus
        ],
        "clusters_at_end": story.count,
        "energy_at_start": None if energy is None else float(energy.values[0]),
        "energy_at_end": None if energy is None else float(energy.values[-1]) + 0.0,  # not -0
        "log_final_time": _number(story.log_time[-1]),
        "resolved": bool(story.flow.resolved.values[-1]),
    }


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None

"""Pictures of flows, with theory laid over them: Matplotlib for print, one interactive page per run."""

from attnflow.plots.attention import draw_attention
from attnflow.plots.eigenfunctions import draw_eigenfunctions
from attnflow.plots.forecast import draw_growth_rates
from attnflow.plots.overlaps import draw_overlaps
from attnflow.plots.report import draw_run
from attnflow.plots.series import draw_series
from attnflow.plots.snapshots import draw_snapshots
from attnflow.plots.staircase import draw_staircase
from attnflow.plots.summary import plot, summarise
from attnflow.plots.tree import draw_tree

__all__ = [
    "draw_attention",
    "draw_eigenfunctions",
    "draw_growth_rates",
    "draw_overlaps",
    "draw_run",
    "draw_series",
    "draw_snapshots",
    "draw_staircase",
    "draw_tree",
    "plot",
    "summarise",
]

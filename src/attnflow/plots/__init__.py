"""Figures of results, with theory overlaid: Matplotlib for print, one page per run."""

from attnflow.lazy import listing, refusing
from attnflow.plots.animation import Animation, animate
from attnflow.plots.attention import draw_attention
from attnflow.plots.density import draw_decay, draw_density, draw_energies, draw_profiles
from attnflow.plots.depth import draw_alignment, draw_cluster_counts, draw_head_betas, draw_sinks, draw_states
from attnflow.plots.eigenfunctions import draw_eigenfunctions
from attnflow.plots.energy import draw_energy_and_count
from attnflow.plots.fit import draw_loss, draw_paths, draw_plane
from attnflow.plots.growth_rates import draw_growth_rates
from attnflow.plots.matching import draw_carried, draw_distances
from attnflow.plots.merges import draw_first, draw_medians, draw_survival
from attnflow.plots.next_token import draw_next_token
from attnflow.plots.observables import draw_numbers, draw_observables
from attnflow.plots.overlaps import draw_overlaps
from attnflow.plots.predicted import draw_layers, draw_middle
from attnflow.plots.report import Account, account, draw_run
from attnflow.plots.snapshots import draw_snapshots
from attnflow.plots.staircase import draw_staircase
from attnflow.plots.still import draw_tokens, draw_velocities
from attnflow.plots.summary import plot, summarise
from attnflow.plots.tree import draw_tree

__all__ = [
    "Account",
    "Animation",
    "account",
    "animate",
    "draw_alignment",
    "draw_attention",
    "draw_carried",
    "draw_cluster_counts",
    "draw_decay",
    "draw_density",
    "draw_distances",
    "draw_eigenfunctions",
    "draw_energies",
    "draw_energy_and_count",
    "draw_first",
    "draw_growth_rates",
    "draw_head_betas",
    "draw_layers",
    "draw_loss",
    "draw_medians",
    "draw_middle",
    "draw_next_token",
    "draw_numbers",
    "draw_observables",
    "draw_overlaps",
    "draw_paths",
    "draw_plane",
    "draw_profiles",
    "draw_run",
    "draw_sinks",
    "draw_snapshots",
    "draw_staircase",
    "draw_states",
    "draw_survival",
    "draw_tokens",
    "draw_tree",
    "draw_velocities",
    "plot",
    "summarise",
]
__dir__ = listing(__all__)
__getattr__ = refusing(__name__)

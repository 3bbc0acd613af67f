"""Observables: numbers and arrays read off tokens, outside of a flow and inside of one."""

from attnflow.lazy import listing, refusing
from attnflow.observe.clusters import Clusters, cluster_count, cluster_scale, clusters
from attnflow.observe.energy import dissipation, energy, energy0, log_energy, total_energy
from attnflow.observe.exits import Estimate, ExitDistribution, Kolmogorov, exit_distribution
from attnflow.observe.heads import energy_rate, interaction_energy
from attnflow.observe.hull import Hull, boolean_rows, convex_hull, distinct, hyperplane_coordinates, leaders
from attnflow.observe.modes import Modes, mode_count, modes
from attnflow.observe.pairs import attention_matrix, overlap_histogram, overlaps
from attnflow.observe.plateaus import Plateau, plateaus
from attnflow.observe.shape import effective_rank, order_parameter, speed, spread
from attnflow.observe.slow_motion import SlowMotion, slow_motion, slow_motion_along
from attnflow.observe.survival import Mean, Survival, survival

__all__ = [
    "Clusters",
    "Estimate",
    "ExitDistribution",
    "Hull",
    "Kolmogorov",
    "Mean",
    "Modes",
    "Plateau",
    "SlowMotion",
    "Survival",
    "attention_matrix",
    "boolean_rows",
    "cluster_count",
    "cluster_scale",
    "clusters",
    "convex_hull",
    "dissipation",
    "distinct",
    "effective_rank",
    "energy",
    "energy0",
    "energy_rate",
    "exit_distribution",
    "hyperplane_coordinates",
    "interaction_energy",
    "leaders",
    "log_energy",
    "mode_count",
    "modes",
    "order_parameter",
    "overlap_histogram",
    "overlaps",
    "plateaus",
    "slow_motion",
    "slow_motion_along",
    "speed",
    "spread",
    "survival",
    "total_energy",
]
__getattr__ = refusing(__name__)
__dir__ = listing(__all__)

"""Observables: numbers and arrays read off tokens."""

from attnflow.observe.clusters import Clusters, cluster_scale, clusters
from attnflow.observe.distance import distance
from attnflow.observe.energy import dissipation, energy, energy0, log_energy
from attnflow.observe.pairs import attention_matrix, overlap_histogram, overlaps
from attnflow.observe.plateaus import Plateau, plateaus
from attnflow.observe.shape import effective_rank, order_parameter, speed, spread

__all__ = [
    "Clusters",
    "Plateau",
    "attention_matrix",
    "cluster_scale",
    "clusters",
    "dissipation",
    "distance",
    "effective_rank",
    "energy",
    "energy0",
    "log_energy",
    "order_parameter",
    "overlap_histogram",
    "overlaps",
    "plateaus",
    "speed",
    "spread",
]

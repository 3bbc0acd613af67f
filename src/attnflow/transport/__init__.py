"""Transport: Wasserstein distances, geodesics, and flows as curves of measures."""

from attnflow.lazy import listing
from attnflow.transport.balance import (
    balance_gap,
    energy_slope,
    gradient_alignment,
    metric_speed,
    path_efficiency,
    path_length,
)
from attnflow.transport.distance import distance, geodesic, sliced_distance

__all__ = [
    "balance_gap",
    "distance",
    "energy_slope",
    "geodesic",
    "gradient_alignment",
    "metric_speed",
    "path_efficiency",
    "path_length",
    "sliced_distance",
]
__dir__ = listing(__all__)

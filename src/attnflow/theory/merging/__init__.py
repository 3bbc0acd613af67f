"""Clusters that merge: when, where, in which order, and how long nothing happens before.

Predicts the merge time of two clusters exactly, of many clusters pair after pair, the staircase of the energy for
large beta, and lower bounds on the life of a plateau. Times grow like e^(beta (1 - cos angle)), hence the `log_` names.
"""

from attnflow.lazy import listing
from attnflow.theory.merging.cascade import (
    PairCascade,
    log_first_merge_time,
    merge_arc_length,
    pair_cascade,
    pair_disturbance,
    pair_lives,
)
from attnflow.theory.merging.exits import (
    first_merge_probability,
    nearest_angle,
    nearest_angle_probability,
    pair_angle_probability,
    pair_time_probability,
)
from attnflow.theory.merging.expansion import StaircaseExpansion, staircase_expansion
from attnflow.theory.merging.pairs import (
    coarse_graining_error,
    layer_angle,
    log_merge_time,
    meeting_point,
    meeting_point_limit,
    merge_time,
    merge_time_of_heads,
    merging_angle,
)
from attnflow.theory.merging.ramps import freezing_rate, skew_merge_time
from attnflow.theory.merging.slow_motion import cap_overlap, log_slow_motion_time, slow_motion_time
from attnflow.theory.merging.staircase import LimitStaircase, limit_staircase, log_plateau_bound
from attnflow.theory.merging.triangles import three_cluster_threshold, three_clusters
from attnflow.theory.merging.triples import (
    Balance,
    Delay,
    log_asymmetry_growth,
    log_closing_time,
    log_merge_time_expansion,
    log_pair_escape_rate,
    neighbour_balance,
    third_cluster_delay,
)

__all__ = [
    "Balance",
    "Delay",
    "LimitStaircase",
    "PairCascade",
    "StaircaseExpansion",
    "cap_overlap",
    "coarse_graining_error",
    "first_merge_probability",
    "freezing_rate",
    "layer_angle",
    "limit_staircase",
    "log_asymmetry_growth",
    "log_closing_time",
    "log_first_merge_time",
    "log_merge_time",
    "log_merge_time_expansion",
    "log_pair_escape_rate",
    "log_plateau_bound",
    "log_slow_motion_time",
    "meeting_point",
    "meeting_point_limit",
    "merge_arc_length",
    "merge_time",
    "merge_time_of_heads",
    "merging_angle",
    "nearest_angle",
    "nearest_angle_probability",
    "neighbour_balance",
    "pair_angle_probability",
    "pair_cascade",
    "pair_disturbance",
    "pair_lives",
    "pair_time_probability",
    "skew_merge_time",
    "slow_motion_time",
    "staircase_expansion",
    "third_cluster_delay",
    "three_cluster_threshold",
    "three_clusters",
]
__dir__ = listing(__all__)

"""Theory: what closed forms predict. Imports `special` alone, so agreement with a simulation is evidence.

Every function states its formula, model and conditions, refuses what lies outside them, and stays in float range from
beta = 0 to 1e4; `log_` variants go where plain numbers cannot. Models are "SA", "USA0" and "USA".
"""

from attnflow.theory.amplitudes import cubic_growth, quadratic_growth
from attnflow.theory.cascade import (
    PairCascade,
    StaircaseExpansion,
    merge_arc_length,
    pair_cascade,
    pair_disturbance,
    pair_lives,
    staircase_expansion,
)
from attnflow.theory.context import (
    exponential_moments,
    long_context_iid_overlap,
    long_context_limit,
    long_context_overlap,
    long_context_threshold,
)
from attnflow.theory.counting import count_circle_modes, count_line_modes
from attnflow.theory.degrees import basis_size, degree_weights, truncation_degree
from attnflow.theory.energy import (
    energy_of_clusters,
    energy_of_uniform,
    energy_rate_of_heads,
    energy_rate_of_tokens,
    largest_energy0,
)
from attnflow.theory.equiangular import equiangular_overlap, equiangular_time, log_equiangular_time
from attnflow.theory.exits import pair_angle_probability, pair_time_probability
from attnflow.theory.hemisphere import hemisphere_probability, log_hemisphere_probability
from attnflow.theory.merging import (
    cap_overlap,
    coarse_graining_error,
    log_merge_time,
    log_slow_motion_time,
    meeting_point,
    meeting_point_limit,
    merge_time,
    merging_angle,
    slow_motion_time,
)
from attnflow.theory.modes import (
    ModeEstimate,
    circle_modes,
    expected_modes,
    line_mode_density,
    line_modes,
    two_point_modes,
)
from attnflow.theory.norms import NormPath, norm_decay, norm_initial_rate, norm_overlap
from attnflow.theory.perceptron import (
    DiracStability,
    Landscape,
    critical_residuals,
    dirac_bound,
    dirac_stability,
    first_variation,
    perceptron_energy,
)
from attnflow.theory.predictions import Prediction, predict_particles
from attnflow.theory.repulsion import (
    RepulsiveMinimiser,
    circle_points,
    largest_potential,
    non_atomic_density,
    non_atomic_threshold,
    repulsive_minimiser,
)
from attnflow.theory.rescaled import pair_delay, pair_departure, regular_radius
from attnflow.theory.response import collapse_time_spread, overlap_growth, overlap_rates, overlap_spread
from attnflow.theory.rings import escape_rate, log_escape_rate, ring_growth_rates
from attnflow.theory.saddles import (
    antipodal_spectrum,
    euler_sums,
    labelled_configurations,
    morse_quotient,
    ring_spectrum,
)
from attnflow.theory.spectrum import (
    critical_noise,
    dominant_degree,
    growth_rates,
    linear_modes,
    linear_time,
    log_growth_rates,
    multiplicity,
    switching_threshold,
)
from attnflow.theory.staircase import LimitStaircase, limit_staircase, log_plateau_bound
from attnflow.theory.transition import jump_threshold, landau_coefficient
from attnflow.theory.triangles import three_cluster_threshold, three_clusters
from attnflow.theory.triples import (
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
    "DiracStability",
    "Landscape",
    "LimitStaircase",
    "ModeEstimate",
    "NormPath",
    "PairCascade",
    "Prediction",
    "RepulsiveMinimiser",
    "StaircaseExpansion",
    "antipodal_spectrum",
    "basis_size",
    "cap_overlap",
    "circle_modes",
    "circle_points",
    "coarse_graining_error",
    "collapse_time_spread",
    "count_circle_modes",
    "count_line_modes",
    "critical_noise",
    "critical_residuals",
    "cubic_growth",
    "degree_weights",
    "dirac_bound",
    "dirac_stability",
    "dominant_degree",
    "energy_of_clusters",
    "energy_of_uniform",
    "energy_rate_of_heads",
    "energy_rate_of_tokens",
    "equiangular_overlap",
    "equiangular_time",
    "escape_rate",
    "euler_sums",
    "expected_modes",
    "exponential_moments",
    "first_variation",
    "growth_rates",
    "hemisphere_probability",
    "jump_threshold",
    "labelled_configurations",
    "landau_coefficient",
    "largest_energy0",
    "largest_potential",
    "limit_staircase",
    "line_mode_density",
    "line_modes",
    "linear_modes",
    "linear_time",
    "log_asymmetry_growth",
    "log_closing_time",
    "log_equiangular_time",
    "log_escape_rate",
    "log_growth_rates",
    "log_hemisphere_probability",
    "log_merge_time",
    "log_merge_time_expansion",
    "log_pair_escape_rate",
    "log_plateau_bound",
    "log_slow_motion_time",
    "long_context_iid_overlap",
    "long_context_limit",
    "long_context_overlap",
    "long_context_threshold",
    "meeting_point",
    "meeting_point_limit",
    "merge_arc_length",
    "merge_time",
    "merging_angle",
    "morse_quotient",
    "multiplicity",
    "neighbour_balance",
    "non_atomic_density",
    "non_atomic_threshold",
    "norm_decay",
    "norm_initial_rate",
    "norm_overlap",
    "overlap_growth",
    "overlap_rates",
    "overlap_spread",
    "pair_angle_probability",
    "pair_cascade",
    "pair_delay",
    "pair_departure",
    "pair_disturbance",
    "pair_lives",
    "pair_time_probability",
    "perceptron_energy",
    "predict_particles",
    "quadratic_growth",
    "regular_radius",
    "repulsive_minimiser",
    "ring_growth_rates",
    "ring_spectrum",
    "slow_motion_time",
    "staircase_expansion",
    "switching_threshold",
    "third_cluster_delay",
    "three_cluster_threshold",
    "three_clusters",
    "truncation_degree",
    "two_point_modes",
]

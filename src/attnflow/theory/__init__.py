"""Theory: what closed forms predict. Imports `special` alone, so agreement with a simulation is evidence.

Every function states its formula, model and conditions, refuses what lies outside them, and stays in float range from
beta = 0 to 1e4; `log_` variants go where plain numbers cannot. Models are "SA", "USA0" and "USA".
"""

from attnflow.theory.context import long_context_limit, long_context_overlap, long_context_threshold
from attnflow.theory.counting import count_circle_modes, count_line_modes
from attnflow.theory.degrees import basis_size, degree_weights, truncation_degree
from attnflow.theory.energy import energy_of_clusters, energy_of_uniform, largest_energy0
from attnflow.theory.equiangular import equiangular_overlap, equiangular_time, log_equiangular_time
from attnflow.theory.hemisphere import hemisphere_probability, log_hemisphere_probability
from attnflow.theory.merging import (
    cap_overlap,
    coarse_graining_error,
    log_merge_time,
    log_slow_motion_time,
    meeting_point,
    meeting_point_limit,
    merge_time,
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
from attnflow.theory.predictions import Prediction, predict
from attnflow.theory.repulsion import (
    RepulsiveMinimiser,
    circle_points,
    largest_potential,
    non_atomic_density,
    non_atomic_threshold,
    repulsive_minimiser,
)
from attnflow.theory.rings import escape_rate, log_escape_rate, ring_growth_rates
from attnflow.theory.spectrum import (
    critical_noise,
    dominant_degree,
    growth_rates,
    linear_modes,
    log_growth_rates,
    multiplicity,
    switching_threshold,
)
from attnflow.theory.staircase import LimitStaircase, limit_staircase, log_plateau_bound

__all__ = [
    "DiracStability",
    "Landscape",
    "LimitStaircase",
    "ModeEstimate",
    "NormPath",
    "Prediction",
    "RepulsiveMinimiser",
    "basis_size",
    "cap_overlap",
    "circle_modes",
    "circle_points",
    "coarse_graining_error",
    "count_circle_modes",
    "count_line_modes",
    "critical_noise",
    "critical_residuals",
    "degree_weights",
    "dirac_bound",
    "dirac_stability",
    "dominant_degree",
    "energy_of_clusters",
    "energy_of_uniform",
    "equiangular_overlap",
    "equiangular_time",
    "escape_rate",
    "expected_modes",
    "first_variation",
    "growth_rates",
    "hemisphere_probability",
    "largest_energy0",
    "largest_potential",
    "limit_staircase",
    "line_mode_density",
    "line_modes",
    "linear_modes",
    "log_equiangular_time",
    "log_escape_rate",
    "log_growth_rates",
    "log_hemisphere_probability",
    "log_merge_time",
    "log_plateau_bound",
    "log_slow_motion_time",
    "long_context_limit",
    "long_context_overlap",
    "long_context_threshold",
    "meeting_point",
    "meeting_point_limit",
    "merge_time",
    "multiplicity",
    "non_atomic_density",
    "non_atomic_threshold",
    "norm_decay",
    "norm_initial_rate",
    "norm_overlap",
    "perceptron_energy",
    "predict",
    "repulsive_minimiser",
    "ring_growth_rates",
    "slow_motion_time",
    "switching_threshold",
    "truncation_degree",
    "two_point_modes",
]

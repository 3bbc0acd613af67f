"""Near a symmetric start: the uniform measure, and tokens that all have the same overlap.

Predicts growth rates of harmonics of the uniform measure, the noise that keeps it stable, the harmonics that the kernel
needs, and the collapse of equiangular tokens: their curve, its spread for iid tokens, and what layer norms and long
contexts change.
"""

from attnflow.lazy import listing
from attnflow.theory.uniform.amplitudes import (
    PatternSkewness,
    cubic_growth,
    pattern_coefficient,
    pattern_skewness,
    quadratic_growth,
)
from attnflow.theory.uniform.context import (
    exponential_moments,
    long_context_iid_overlap,
    long_context_limit,
    long_context_overlap,
    long_context_threshold,
)
from attnflow.theory.uniform.correlations import pair_correlation, triple_correlation
from attnflow.theory.uniform.degrees import basis_size, degree_weights, truncation_degree
from attnflow.theory.uniform.distances import mean_distance, overlap_distribution, overlap_shift
from attnflow.theory.uniform.equiangular import equiangular_overlap, equiangular_time, log_equiangular_time
from attnflow.theory.uniform.interaction import stationarity_defect, turning_rates, uniform_velocity
from attnflow.theory.uniform.norms import NormPath, norm_decay, norm_initial_rate, norm_overlap
from attnflow.theory.uniform.places import placed_overlaps, rotary_consensus_rates, rotary_growth_rates
from attnflow.theory.uniform.ramps import ramp_growth, ramp_switch, ramp_winner
from attnflow.theory.uniform.response import collapse_time_spread, overlap_growth, overlap_rates, overlap_spread
from attnflow.theory.uniform.skip import layer_deficit, layer_growth
from attnflow.theory.uniform.spectrum import (
    critical_noise,
    dominant_degree,
    growth_rates,
    linear_modes,
    linear_time,
    log_growth_rates,
    multiplicity,
    switching_threshold,
)
from attnflow.theory.uniform.transition import jump_threshold, landau_coefficient

__all__ = [
    "NormPath",
    "PatternSkewness",
    "basis_size",
    "collapse_time_spread",
    "critical_noise",
    "cubic_growth",
    "degree_weights",
    "dominant_degree",
    "equiangular_overlap",
    "equiangular_time",
    "exponential_moments",
    "growth_rates",
    "jump_threshold",
    "landau_coefficient",
    "layer_deficit",
    "layer_growth",
    "linear_modes",
    "linear_time",
    "log_equiangular_time",
    "log_growth_rates",
    "long_context_iid_overlap",
    "long_context_limit",
    "long_context_overlap",
    "long_context_threshold",
    "mean_distance",
    "multiplicity",
    "norm_decay",
    "norm_initial_rate",
    "norm_overlap",
    "overlap_distribution",
    "overlap_growth",
    "overlap_rates",
    "overlap_shift",
    "overlap_spread",
    "pair_correlation",
    "pattern_coefficient",
    "pattern_skewness",
    "placed_overlaps",
    "quadratic_growth",
    "ramp_growth",
    "ramp_switch",
    "ramp_winner",
    "rotary_consensus_rates",
    "rotary_growth_rates",
    "stationarity_defect",
    "switching_threshold",
    "triple_correlation",
    "truncation_degree",
    "turning_rates",
    "uniform_velocity",
]
__dir__ = listing(__all__)

"""Causal attention: what each token of a prompt keeps of the tokens before it.

Predicts how fast correlations grow (`rates`), the retrieval profile of the last token and its minimum ("lost in the
middle"), when an early topic takes over, the noise of a prefix, and the centres around which causal tokens gather.
Correlations hold to first order in 1/N for N iid uniform tokens. Their formulas use the scaled time c = a_k t.
"""

from attnflow.lazy import listing
from attnflow.theory.causal.centres import renyi_centres, strong_centres
from attnflow.theory.causal.continuum import (
    correlation,
    graphon,
    hop_ratios,
    hop_sum,
    log_correlation,
    log_hop_sum,
    log_place_ratio,
    log_rates,
    log_softmax_dilution,
    pair_correlation,
    rates,
    softmax_dilution,
)
from attnflow.theory.causal.middle import (
    Middle,
    find_middle,
    last_middle_time,
    recency_threshold,
)
from attnflow.theory.causal.practice import middle_curve, predict_middle
from attnflow.theory.causal.soft_middle import (
    find_soft_middle,
    soft_accuracy,
    soft_critical_time,
    soft_profile,
    theorem_time,
)
from attnflow.theory.causal.tokens import (
    attended_noise,
    correlation_matrix,
    discrete_prefix_noise,
    equal_time_correlations,
    last_row_correlations,
    log_prefix_noise,
    prefix_noise,
    weights,
)
from attnflow.theory.causal.topics import (
    early_share,
    early_signal,
    late_signal,
    log_early_signal,
    log_late_signal,
    takeover_time,
)

__all__ = [
    "Middle",
    "attended_noise",
    "correlation",
    "correlation_matrix",
    "discrete_prefix_noise",
    "early_share",
    "early_signal",
    "equal_time_correlations",
    "find_middle",
    "find_soft_middle",
    "graphon",
    "hop_ratios",
    "hop_sum",
    "last_middle_time",
    "last_row_correlations",
    "late_signal",
    "log_correlation",
    "log_early_signal",
    "log_hop_sum",
    "log_late_signal",
    "log_place_ratio",
    "log_prefix_noise",
    "log_rates",
    "log_softmax_dilution",
    "middle_curve",
    "pair_correlation",
    "predict_middle",
    "prefix_noise",
    "rates",
    "recency_threshold",
    "renyi_centres",
    "soft_accuracy",
    "soft_critical_time",
    "soft_profile",
    "softmax_dilution",
    "strong_centres",
    "takeover_time",
    "theorem_time",
    "weights",
]
__dir__ = listing(__all__)

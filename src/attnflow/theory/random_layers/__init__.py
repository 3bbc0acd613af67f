"""Layers with random weights, as at initialisation: how overlaps of tokens move from layer to layer.

Predicts the regime of a network, the layer at which tokens collapse, whether nearby tokens meet or separate, and what
one noise that all tokens share does to a density. The time of these formulas is tau = step^2 layers/heads.
"""

from attnflow.lazy import listing
from attnflow.theory.random_layers.common_noise import (
    poisson_log_order,
    poisson_order_mean,
    uniform_products,
    uniform_start_power,
)
from attnflow.theory.random_layers.cosines import cosine_drift_constant, mean_cosine
from attnflow.theory.random_layers.diffusion import (
    Regime,
    canonical_time,
    hot_mean_square,
    hot_overlap,
    hot_pair_collapse_probability,
    logit_scale,
    one_token_decay,
    overlap_drift,
    overlap_variation,
    regime,
    small_logit_products,
)
from attnflow.theory.random_layers.exponents import (
    antipodal_exponent,
    attention_moments,
    critical_logit_scale,
    pair_exponent,
    pair_exponent_spread,
    zero_temperature_exponent,
)
from attnflow.theory.random_layers.gaussian_softmax import simplex_weights
from attnflow.theory.random_layers.layer_errors import (
    LayerError,
    consensus_fluctuation,
    pair_layer_error,
    single_token_limit,
    single_token_overlap,
)
from attnflow.theory.random_layers.practice import layer_curve, predict_layers
from attnflow.theory.random_layers.simplex import collapse_time, simplex_drift, simplex_growth, simplex_path

__all__ = [
    "LayerError",
    "Regime",
    "antipodal_exponent",
    "attention_moments",
    "canonical_time",
    "collapse_time",
    "consensus_fluctuation",
    "cosine_drift_constant",
    "critical_logit_scale",
    "hot_mean_square",
    "hot_overlap",
    "hot_pair_collapse_probability",
    "layer_curve",
    "logit_scale",
    "mean_cosine",
    "one_token_decay",
    "overlap_drift",
    "overlap_variation",
    "pair_exponent",
    "pair_exponent_spread",
    "pair_layer_error",
    "poisson_log_order",
    "poisson_order_mean",
    "predict_layers",
    "regime",
    "simplex_drift",
    "simplex_growth",
    "simplex_path",
    "simplex_weights",
    "single_token_limit",
    "single_token_overlap",
    "small_logit_products",
    "uniform_products",
    "uniform_start_power",
    "zero_temperature_exponent",
]
__dir__ = listing(__all__)

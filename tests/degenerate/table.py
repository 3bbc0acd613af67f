"""The table: rows of all rooms, and public names of `theory` without such families, each with its reason."""

from tests.degenerate import causal, interaction, landscape, merging, parts, random_layers, uniform

ROWS = [
    *parts.ROWS,
    *merging.ROWS,
    *uniform.ROWS,
    *interaction.ROWS,
    *causal.ROWS,
    *random_layers.ROWS,
    *landscape.ROWS,
]

RESULT = "holds the numbers of a function that has rows"
WHOLE = "exact integers"
PLAIN = "one product or quotient of its arguments, without a difference"
BY_STEPS = "integrates an equation step by step; its accuracy is that of the steps"
SEARCH = "a search or a sum over formulas that have rows"
SAMPLED = "a mean over random samples"

WITHOUT = {
    "uniform": {
        "NormPath": RESULT,
        "PatternSkewness": RESULT,
        "basis_size": WHOLE,
        "collapse_time_spread": PLAIN,
        "long_context_threshold": PLAIN,
        "multiplicity": WHOLE,
        "norm_decay": "a table of exponents",
        "norm_overlap": BY_STEPS,
        "pattern_skewness": "products of whole numbers and of a polynomial's exact quadrature",
        "stationarity_defect": "a norm of differences by design: how far matrices are from a condition",
    },
    "merging": {
        "Balance": RESULT,
        "Delay": RESULT,
        "LimitStaircase": RESULT,
        "PairCascade": RESULT,
        "StaircaseExpansion": RESULT,
        "first_merge_probability": SEARCH,
        "log_first_merge_time": SEARCH,
        "log_merge_time_expansion": "an expansion for large beta; what it leaves out is tested in test_triples",
        "log_slow_motion_time": "the logarithm of a product",
        "merging_angle": PLAIN,
        "pair_cascade": SEARCH,
        "pair_disturbance": SEARCH,
        "pair_lives": SEARCH,
        "staircase_expansion": SEARCH,
        "three_cluster_threshold": SEARCH,
    },
    "landscape": {
        "DiracStability": RESULT,
        "ModeEstimate": RESULT,
        "RepulsiveMinimiser": RESULT,
        "SolidRates": RESULT,
        "circle_points": PLAIN,
        "critical_residuals": "differences by design: residuals of equilibria",
        "dirac_bound": PLAIN,
        "dirac_stability": SEARCH,
        "energy_of_clusters": "sum of squares less 1, to the absolute accuracy that it states",
        "euler_sums": WHOLE,
        "first_variation": "a sum over the atoms of a measure",
        "labelled_configurations": WHOLE,
        "largest_energy0": PLAIN,
        "largest_potential": SEARCH,
        "line_mode_density": "small beta is in test_modes, against quadrature",
        "morse_quotient": WHOLE,
        "non_atomic_threshold": PLAIN,
        "perceptron_energy": "a sum over the atoms of a measure",
        "repulsive_minimiser": SEARCH,
        "ring_spectrum": SEARCH,
    },
    "causal": {
        "Middle": RESULT,
        "attended_noise": SEARCH,
        "correlation_matrix": SEARCH,
        "discrete_prefix_noise": SEARCH,
        "equal_time_correlations": SEARCH,
        "find_middle": SEARCH,
        "find_soft_middle": SEARCH,
        "last_row_correlations": SEARCH,
        "log_prefix_noise": SEARCH,
        "middle_curve": SEARCH,
        "predict_middle": SEARCH,
        "prefix_noise": SEARCH,
        "soft_accuracy": SEARCH,
        "soft_critical_time": SEARCH,
        "soft_profile": SEARCH,
        "theorem_time": PLAIN,
        "weights": "rows of softmax, each divided by its sum",
    },
    "random_layers": {
        "Regime": RESULT,
        "antipodal_exponent": PLAIN,
        "canonical_time": PLAIN,
        "cosine_drift_constant": PLAIN,
        "critical_logit_scale": SEARCH,
        "hot_overlap": BY_STEPS,
        "layer_curve": BY_STEPS,
        "logit_scale": PLAIN,
        "pair_exponent": PLAIN,
        "pair_exponent_spread": PLAIN,
        "predict_layers": SEARCH,
        "regime": PLAIN,
        "uniform_start_power": "a sum of the numbers of `uniform_products`",
        "zero_temperature_exponent": PLAIN,
    },
}

"""Old names and where they are now, by the room that had them: `attnflow.lazy` tells whoever asks for one."""

RENAMED: dict[str, dict[str, str]] = {
    "attnflow": {
        "depth": "attnflow.random_layers",
        "double": "attnflow.in_float64",
        "rules": "attnflow.step_rules",
        "save": "attnflow.saving",
        "stop": "attnflow.stopping",
        "updates": "attnflow.layer_updates",
    },
    "attnflow.control": {"wasserstein": "attnflow.transport.distance"},
    "attnflow.meanfield": {"wasserstein_circle": "attnflow.transport.distance"},
    "attnflow.observe": {"distance": "attnflow.transport.distance"},
    "attnflow.plots": {"draw_depth": "attnflow.plots.draw_layers"},
    "attnflow.stability": {"tangent_frames": "attnflow.stability.tangent_bases"},
    "attnflow.theory": {
        "DepthRegime": "attnflow.theory.random_layers.Regime",
        "causal_correlation": "attnflow.theory.causal.correlation",
        "causal_graphon": "attnflow.theory.causal.graphon",
        "causal_pair_correlation": "attnflow.theory.causal.pair_correlation",
        "causal_rates": "attnflow.theory.causal.rates",
        "causal_weights": "attnflow.theory.causal.weights",
        "depth_curve": "attnflow.theory.random_layers.layer_curve",
        "depth_regime": "attnflow.theory.random_layers.regime",
        "largest_middle_depth": "attnflow.theory.causal.last_middle_time",
        "log_causal_correlation": "attnflow.theory.causal.log_correlation",
        "log_causal_rates": "attnflow.theory.causal.log_rates",
        "predict_depth": "attnflow.theory.random_layers.predict_layers",
        "takeover_depth": "attnflow.theory.causal.takeover_time",
    },
}
DIVIDED = ("attnflow.theory",)
"""Rooms whose names moved into rooms inside: what is not in `RENAMED` is looked for there."""

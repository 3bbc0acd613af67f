"""Ways to break the simulation."""

import numpy as np

from attnflow.experiments import Mutation, altered, result, scaled, with_arguments
from attnflow_gallery.many_modes import simulate


def red(coefficients: np.ndarray) -> np.ndarray:
    """Noise whose amplitude falls like 1/k."""
    degree = len(coefficients) // 2
    k = np.arange(1, degree + 1)
    return coefficients / np.concatenate([[1], k, k])


MUTATIONS = (
    Mutation("smoothing kernel: beta 3 % larger", simulate, "kernel", scaled("beta", 1.03)),
    Mutation("attention: beta 25 % larger", simulate, "Attention", scaled("beta", 1.25)),
    Mutation("attention: USA0 in place of SA", simulate, "Attention", with_arguments(normaliser="USA0")),
    Mutation("noise of size 1e-2 whatever is asked for", simulate, "start", altered("eps", lambda eps: 1e-2)),
    Mutation("noise falls like 1/k", simulate, "noise", result(red)),
    Mutation("diffusion of 0.005", simulate, "evolve", with_arguments(kappa=0.005)),
)

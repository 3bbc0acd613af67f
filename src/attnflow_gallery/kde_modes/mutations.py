"""Ways to break the simulation."""

from typing import Any

import numpy as np

from attnflow.experiments import Mutation, altered, scaled
from attnflow_gallery.kde_modes import simulate


def uniform_samples(original: Any) -> Any:
    """Uniform samples of variance 1: no tails."""
    return lambda rng, shape: rng.uniform(-np.sqrt(3), np.sqrt(3), shape)


def laplace_samples(original: Any) -> Any:
    """Samples with the density e^(-|x|)/2: tails that are too heavy."""
    return lambda rng, shape: rng.laplace(size=shape)


MUTATIONS = (
    Mutation("line: beta 5 % larger", simulate, "count", scaled("beta", 1.05)),
    Mutation("line: beta 30 % larger", simulate, "count", scaled("beta", 1.3)),
    Mutation("line: kernel e^(-beta x^2)", simulate, "count", scaled("beta", 2.0)),
    Mutation("line: uniform samples", simulate, "normal", uniform_samples),
    Mutation("line: Laplace samples", simulate, "normal", laplace_samples),
    Mutation("circle: beta 10 % larger", simulate, "Attention", scaled("beta", 1.1)),
    Mutation("circle: 20 tokens", simulate, "uniform", altered("n", lambda n: 20)),
)

"""Ways to break the simulation."""

import numpy as np

from attnflow.experiments import Mutation, altered, result, scaled, with_arguments
from attnflow_gallery.homogenisation_rate import simulate

MUTATIONS = (
    Mutation(
        "V of twice the size", simulate, "network", lambda original: lambda d, step, *a: 2.0 * original(d, step, *a)
    ),
    Mutation("two heads", simulate, "random_attention", with_arguments(heads=2)),
    Mutation(
        "Gram layers with four times the heads", simulate, "gram_layers", altered("heads", lambda heads: 4 * heads)
    ),
    Mutation("Gram layers with v 20 % larger", simulate, "gram_layers", scaled("mean_value", 1.2)),
    Mutation("no mean of V", simulate, "random_attention", with_arguments(mean_value=0.0)),
    Mutation("E V = diag(1, 0.8, 0.6)", simulate, "diagonal", result(lambda _: np.diag([1.0, 0.8, 0.6]))),
    Mutation("steps of one token 20 % longer", simulate, "ends", scaled("step", 1.2)),
)

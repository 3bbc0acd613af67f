"""Ways to break the simulation."""

from typing import Any

import numpy as np

from attnflow.experiments import Mutation, result, scaled, with_arguments
from attnflow_gallery.uniform_spectrum import simulate


def equal_masses(rule: tuple[np.ndarray, np.ndarray]) -> Any:
    """The nodes of a quadrature with equal masses: tokens that are no longer uniform."""
    nodes, masses = rule
    return nodes, np.full_like(masses, 1 / len(masses))


MUTATIONS = (
    Mutation("beta 0.0001 % larger", simulate, "Attention", scaled("beta", 1 + 1e-6)),
    Mutation("beta 0.02 % larger", simulate, "Attention", scaled("beta", 1.0002)),
    Mutation("SA runs as USA0", simulate, "Attention", with_arguments(normaliser="USA0")),
    Mutation("USA0 runs as SA", simulate, "Attention", with_arguments(normaliser="SA")),
    Mutation("time 0.0001 % longer", simulate, "solve", scaled("until", 1 + 1e-6)),
    Mutation("steps of RK4 twice as long", simulate, "Fixed", scaled("step", 2.0)),
    Mutation("harmonics of the next dimension", simulate, "harmonic", lambda f: lambda k, d, c: f(k, d + 1, c)),
    Mutation("equal masses on Gauss nodes", simulate, "_gauss", result(equal_masses)),
)

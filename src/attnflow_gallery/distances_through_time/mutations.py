"""Ways to break the simulation."""

import numpy as np

from attnflow.experiments import Mutation, altered, result, scaled
from attnflow.tokens import Tokens
from attnflow_gallery.distances_through_time import simulate


def _paired(prompts: Tokens) -> Tokens:
    """Every second token is opposite to the one before it."""
    moved = np.array(prompts.positions)
    moved[:, 1::2] = -moved[:, ::2]
    return prompts.moved(moved)


def _uneven(masses: np.ndarray) -> np.ndarray:
    """The masses of the first half of the nodes are 5 % larger."""
    return masses * np.where(np.arange(len(masses)) < len(masses) / 2, 1.05, 1.0)


MUTATIONS = (
    Mutation("V = -I", simulate, "field", lambda original: lambda *a, **k: -1.0 * original(*a, **k)),
    Mutation("the transform at another beta", simulate, "transform", altered("beta", lambda beta: 0.5)),
    Mutation("tokens move at a beta of 0.5", simulate, "field", altered("beta", lambda beta: 0.5)),
    Mutation("beta 30 % larger", simulate, "field", scaled("beta", 1.3)),
    Mutation("unnormalised attention", simulate, "field", altered("model", lambda model: "USA0")),
    Mutation("every second token is opposite", simulate, "uniform_prompts", result(_paired)),
    Mutation("seeds that are not symmetric", simulate, "seeded", result(_uneven)),
)

"""Ways to break the simulation."""

import numpy as np

from attnflow.experiments import Mutation, altered, result, scaled
from attnflow.masks import Table
from attnflow.tokens import Tokens
from attnflow_gallery.independence import simulate


def _paired(prompts: Tokens) -> Tokens:
    """Every second token is opposite to the one before it."""
    moved = np.array(prompts.positions)
    moved[:, 1::2] = -moved[:, ::2]
    return prompts.moved(moved)


MUTATIONS = (
    Mutation("softmax without its normaliser", simulate, "ends", altered("model", lambda model: "USA")),
    Mutation("unnormalised attention with one", simulate, "ends", altered("model", lambda model: "SA")),
    Mutation("no token counts itself", simulate, "mask", lambda _: lambda n: Table(~np.eye(n, dtype=bool))),
    Mutation("beta 30 % larger", simulate, "ends", scaled("beta", 1.3)),
    Mutation("time 30 % longer", simulate, "ends", scaled("until", 1.3)),
    Mutation("every second token is opposite", simulate, "uniform_prompts", result(_paired)),
)

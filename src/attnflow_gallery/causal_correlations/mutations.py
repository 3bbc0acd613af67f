"""Ways to break the simulation."""

import numpy as np

from attnflow.experiments import Mutation, faster, result, scaled, with_arguments
from attnflow.masks import Everyone
from attnflow.tokens import Tokens
from attnflow_gallery.causal_correlations import simulate


def _leaning(prompts: Tokens) -> Tokens:
    """Tokens lean towards the first axis by a tenth."""
    moved = np.asarray(prompts.positions) + np.eye(prompts.dim)[0] / 10
    return prompts.moved(moved / np.linalg.norm(moved, axis=-1, keepdims=True))


def _paired(prompts: Tokens) -> Tokens:
    """Every second token is opposite to the one before it: sampling noise is gone at the start."""
    moved = np.array(prompts.positions)
    moved[:, 1::2] = -moved[:, ::2][:, : moved[:, 1::2].shape[1]]
    return prompts.moved(moved)


MUTATIONS = (
    Mutation("beta 30 % larger", simulate, "Attention", scaled("beta", 1.3)),
    Mutation("time of the tokens 30 % longer", simulate, "Attention", faster(1.3)),
    Mutation("no mask", simulate, "Causal", result(lambda _: Everyone())),
    Mutation("no token hears itself", simulate, "Causal", with_arguments(strict=True)),
    Mutation("slope 8 times as large", simulate, "Causal", scaled("slope", 8.0)),
    Mutation("tokens lean to one side", simulate, "uniform_prompts", result(_leaning)),
    Mutation("every second token is opposite", simulate, "uniform_prompts", result(_paired)),
)

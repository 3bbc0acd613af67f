"""Ways to break the simulation."""

import numpy as np

from attnflow.experiments import Mutation, altered, result, scaled, with_arguments
from attnflow.tokens import Tokens
from attnflow_gallery.saddles import simulate


def _flat(tokens: Tokens) -> Tokens:
    """Tokens moved to the nearest point of a great circle."""
    positions = np.array(tokens.positions)
    positions[..., 2:] = 0
    return Tokens(positions / np.linalg.norm(positions, axis=-1, keepdims=True), dims=tokens.dims)


def _paired(tokens: Tokens) -> Tokens:
    """Every second token moved to the antipode of the one before."""
    positions = np.array(tokens.positions)
    positions[..., 1::2, :] = -positions[..., ::2, :]
    return Tokens(positions, dims=tokens.dims)


MUTATIONS = (
    Mutation("Newton: one start per batch", simulate, "find_equilibria", with_arguments(starts=1)),
    Mutation("Newton: beta 0.01 % larger", simulate, "find_equilibria", scaled("beta", 1.0001)),
    Mutation("Newton: beta times -4", simulate, "find_equilibria", scaled("beta", -4.0)),
    Mutation("SA: beta 0.01 % larger", simulate, "Attention", scaled("beta", 1.0001)),
    Mutation("flow: beta 2 % larger", simulate, "Attention", scaled("beta", 1.02)),
    Mutation("flow: USA instead of USA0", simulate, "Attention", altered("normaliser", {"USA0": "USA"}.get)),
    Mutation("iid starts on a great circle", simulate, "uniform", result(_flat)),
    Mutation("iid starts in antipodal pairs", simulate, "uniform", result(_paired)),
)

"""Ways to break the simulation."""

from typing import Any

import numpy as np

from attnflow.axes import Along
from attnflow.experiments import Mutation, altered, result, scaled
from attnflow.tokens import Tokens
from attnflow_gallery.consensus import simulate


def _beta(factor: float) -> Any:
    return altered("beta", lambda beta: beta.map(lambda b: factor * b) if isinstance(beta, Along) else factor * beta)


def _leaning(tokens: Tokens) -> Tokens:
    """Tokens pulled to one side."""
    positions = np.asarray(tokens.positions) + 0.3 * np.eye(tokens.space.dim)[0]
    return Tokens(positions / np.linalg.norm(positions, axis=-1, keepdims=True), dims=tokens.dims)


def _two_points(tokens: Tokens) -> Tokens:
    """Tokens moved to the nearer one of two antipodal points."""
    positions = np.zeros_like(tokens.positions)
    positions[..., 0] = np.where(np.asarray(tokens.positions)[..., 0] > 0, 1.0, -1.0)
    return Tokens(positions, dims=tokens.dims)


MUTATIONS = (
    Mutation("beta 0.01 % larger", simulate, "Attention", _beta(1.0001)),
    Mutation("beta 2 % larger", simulate, "Attention", _beta(1.02)),
    Mutation("beta 20 % larger", simulate, "Attention", _beta(1.2)),
    Mutation("a tenth of the time", simulate, "solve", scaled("until", 0.1)),
    Mutation("iid tokens lean to one side", simulate, "uniform", result(_leaning)),
    Mutation("iid tokens at two antipodal points", simulate, "uniform", result(_two_points)),
    Mutation("time step 15 times as large", simulate, "Fixed", scaled("step", 15.0)),
)

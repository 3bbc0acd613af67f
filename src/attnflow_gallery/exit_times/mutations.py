"""Ways to break the simulation."""

from typing import Any

import numpy as np

from attnflow.experiments import Mutation, altered, scaled
from attnflow.tokens import Tokens
from attnflow_gallery.exit_times import simulate


def _pushed(original: Any) -> Any:
    """Tokens are pushed to one side before they are put on the sphere."""

    def push(space: Any, *, n: int, seed: Any) -> Tokens:
        x = np.array(original(space, n=n, seed=seed).positions)
        x[..., 0] += 0.6
        return Tokens(x / np.linalg.norm(x, axis=-1, keepdims=True), dims=["seed"])

    return push


def _weighted(original: Any) -> Any:
    """Masses 1, 2, ..., n instead of equal ones."""

    def weigh(space: Any, *, n: int, seed: Any) -> Tokens:
        x = original(space, n=n, seed=seed).positions
        return Tokens(x, np.broadcast_to(np.arange(1, n + 1), x.shape[:-1]), dims=["seed"])

    return weigh


MUTATIONS = (
    Mutation("beta 0.01 % larger", simulate, "Attention", scaled("beta", 1.0001)),
    Mutation("beta 30 % larger", simulate, "Attention", scaled("beta", 1.3)),
    Mutation("merging distance doubled", simulate, "LongTime", scaled("angle", 2.0)),
    Mutation("tokens pushed to one side", simulate, "uniform", _pushed),
    Mutation("masses 1, 2, ..., n", simulate, "uniform", _weighted),
    Mutation("SA and USA0 swapped", simulate, "Attention", altered("normaliser", {"SA": "USA0", "USA0": "SA"}.get)),
)

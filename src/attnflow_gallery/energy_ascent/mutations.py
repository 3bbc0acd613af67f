"""Ways to break the simulation."""

from typing import Any

import numpy as np

from attnflow.experiments import Mutation, altered, result, scaled
from attnflow_gallery.energy_ascent import simulate

SKEW = np.array([[1.0, 0.1], [-0.1, 1.0]])


def _repelled(original: Any) -> Any:
    """V = -I where no matrices are given."""
    return lambda *a, **k: original(*a, **({"value": -np.eye(3)} | k))


def _of_matrices(change: Any) -> Any:
    """Random states whose matrices are `change` of what was drawn."""
    return result(lambda drawn: (change(drawn[0]), *drawn[1:]))


def _alike(matrices: np.ndarray) -> np.ndarray:
    return np.broadcast_to(matrices[:, :1], matrices.shape)


MUTATIONS = (
    Mutation("beta 0.1 % larger", simulate, "Attention", scaled("beta", 1.001)),
    Mutation("V = -I", simulate, "Attention", _repelled),
    Mutation("SA and USA0 exchanged", simulate, "Attention", altered("normaliser", {"SA": "USA0", "USA0": "SA"}.get)),
    Mutation("matrices not symmetric, by 10 %", simulate, "states", _of_matrices(lambda drawn: drawn @ SKEW)),
    Mutation("V = -B", simulate, "Attention", altered("value", lambda value: None if value is None else -value)),
    Mutation("all heads alike", simulate, "states", _of_matrices(_alike)),
    Mutation("time runs 0.1 % fast", simulate, "Solve", scaled("until", 1.001)),
)

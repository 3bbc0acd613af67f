"""Ways to break the simulation."""

import numpy as np

from attnflow.experiments import Mutation, altered, scaled
from attnflow_gallery.general_interaction import simulate


def _transposed(matrices: np.ndarray) -> np.ndarray:
    return np.swapaxes(matrices, -1, -2)


def _plain(values: np.ndarray) -> np.ndarray:
    return np.broadcast_to(np.eye(np.shape(values)[-1]), np.shape(values))


MUTATIONS = (
    Mutation("B transposed", simulate, "field", altered("interaction", _transposed)),
    Mutation("V transposed", simulate, "field", altered("value", _transposed)),
    Mutation("V = I", simulate, "field", altered("value", _plain)),
    Mutation("V = 0", simulate, "field", altered("value", np.zeros_like)),
    Mutation("beta 0.1 % larger", simulate, "field", scaled("beta", 1.001)),
    Mutation("SA and USA exchanged", simulate, "field", altered("model", {"SA": "USA", "USA": "SA"}.get)),
)

"""Ways to break the simulation."""

from typing import Any

import numpy as np

from attnflow.axes import Along
from attnflow.experiments import Mutation, altered, scaled, with_arguments
from attnflow.masks import Causal
from attnflow_gallery.vertices import simulate


def _turned(matrix: Any) -> Any:
    """Q turned by half a radian in the plane of the first two coordinates."""
    values = matrix.values if isinstance(matrix, Along) else matrix
    turn = np.eye(np.shape(values)[-1])
    turn[:2, :2] = [[np.cos(0.5), -np.sin(0.5)], [np.sin(0.5), np.cos(0.5)]]
    return matrix.map(lambda q: turn @ q) if isinstance(matrix, Along) else turn @ matrix


MUTATIONS = (
    Mutation("beta 0.01 % larger", simulate, "Attention", scaled("beta", 1.0001)),
    Mutation("uniform attention", simulate, "Attention", scaled("beta", 0.0)),
    Mutation("queries turned, so that B is not symmetric", simulate, "Attention", altered("query", _turned)),
    Mutation("V = 1.01 I", simulate, "Attention", with_arguments(value=1.01 * np.eye(2))),
    Mutation("V = I and a rotation", simulate, "Attention", with_arguments(value=np.array([[1.0, 0.2], [-0.2, 1.0]]))),
    Mutation("causal mask", simulate, "Attention", with_arguments(mask=Causal())),
)

"""Ways to break the simulation."""

from typing import Any

import numpy as np

from attnflow.axes import Along
from attnflow.experiments import Mutation, altered, result, scaled, with_arguments
from attnflow.masks import Causal
from attnflow_gallery.boolean_attention import simulate


def _of(argument: str, factor: float) -> Any:
    """Attention of the flow with one matrix multiplied; attention matrices are those of the right model."""
    return altered(
        argument,
        lambda with_arguments: (
            with_arguments.map(lambda v: factor * v) if isinstance(with_arguments, Along) else with_arguments
        ),
    )


def _moved(start: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The token at 0 moved by 1 % of a."""
    return start[0] + 0.01 * np.array([[0.0], [start[0][2, 0]], [0.0]]), start[1]


def _tipped(start: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The right token heavier by one part in a million."""
    return start[0], start[1] * np.array([1.0, 1.0, 1 + 1e-6])


MUTATIONS = (
    Mutation("QK 0.01 % larger", simulate, "Attention", _of("query", 1.0001)),
    Mutation("V 0.1 % larger", simulate, "Attention", _of("value", 1.001)),
    Mutation("uniform attention", simulate, "Attention", scaled("beta", 0.0)),
    Mutation("causal mask", simulate, "Attention", with_arguments(mask=Causal())),
    Mutation("token at 0 moved by 1 %", simulate, "triple", result(_moved)),
    Mutation("right token heavier by 1e-6", simulate, "triple", result(_tipped)),
)

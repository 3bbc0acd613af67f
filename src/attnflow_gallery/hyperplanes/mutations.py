"""Ways to break the simulation."""

from typing import Any

import numpy as np

from attnflow.axes import Along
from attnflow.experiments import Mutation, altered, result, scaled
from attnflow_gallery.hyperplanes import simulate


def _of_value(change: Any) -> Any:
    """Attention whose V is `change` of what was given."""
    return altered("value", lambda value: value.map(change) if isinstance(value, Along) else value)


def _identities(values: np.ndarray) -> np.ndarray:
    """V = I for all random starts except the first, whose V the other starts share."""
    return np.concatenate([values[:1], np.broadcast_to(np.eye(values.shape[-1]), values[1:].shape)])


def _tipped(masses: np.ndarray) -> np.ndarray:
    """The first token heavier by one part in a million."""
    return masses * np.where(np.arange(len(masses)) == 0, 1 + 1e-6, 1.0)


MUTATIONS = (
    Mutation("beta 0.1 % larger", simulate, "Attention", scaled("beta", 1.001)),
    Mutation("V 1 % larger", simulate, "Attention", _of_value(lambda v: 1.01 * v)),
    Mutation("V transposed", simulate, "Attention", _of_value(lambda v: np.swapaxes(v, -1, -2))),
    Mutation("V = I, whose leading eigenvalue is not simple", simulate, "draw_values", result(_identities)),
    Mutation("one token of the symmetric starts heavier by 1e-6", simulate, "balanced", result(_tipped)),
    Mutation("uniform attention", simulate, "Attention", scaled("beta", 0.0)),
)

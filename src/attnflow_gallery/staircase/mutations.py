"""Ways to break the simulation."""

from typing import Any

import numpy as np

from attnflow.experiments import Mutation, altered, result, scaled
from attnflow.tokens import Tokens
from attnflow_gallery.staircase import simulate


def _moved(tokens: Tokens) -> Tokens:
    """The first cluster stands where the second and the third have their middle."""
    x = np.array(tokens.positions)
    x[0] = (x[1] + x[2]) / np.linalg.norm(x[1] + x[2])
    return Tokens(x, tokens.masses)


def _heavier(masses: Any) -> Any:
    return None if masses is None else np.array([1.1 * masses[0], *masses[1:]])


MUTATIONS = (
    Mutation("beta 0.01 % larger", simulate, "Attention", scaled("beta", 1.0001)),
    Mutation("beta 1 % larger", simulate, "Attention", scaled("beta", 1.01)),
    Mutation("beta 10 % larger", simulate, "Attention", scaled("beta", 1.1)),
    Mutation("equal masses", simulate, "Tokens", altered("masses", lambda masses: None)),
    Mutation("first cluster 10 % heavier", simulate, "Tokens", altered("masses", _heavier)),
    Mutation("SA and USA0 swapped", simulate, "Attention", altered("normaliser", {"SA": "USA0", "USA0": "SA"}.get)),
    Mutation("first cluster elsewhere", simulate, "place", result(_moved)),
    Mutation("merging angle 100 times as large", simulate, "LongTime", scaled("angle", 100.0)),
)

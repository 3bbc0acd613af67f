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


def _swapped(models: dict[str, Any]) -> dict[str, Any]:
    return {"SA": models["USA0"], "USA0": models["SA"]}


MUTATIONS = (
    Mutation("beta 0.01 % larger", simulate, "Attention", scaled("beta", 1.0001)),
    Mutation("beta 1 % larger", simulate, "Attention", scaled("beta", 1.01)),
    Mutation("beta 10 % larger", simulate, "Attention", scaled("beta", 1.1)),
    Mutation("equal masses", simulate, "Tokens", altered("masses", lambda masses: None)),
    Mutation("first cluster 10 % heavier", simulate, "Tokens",
             altered("masses", lambda m: None if m is None else np.array([1.1 * m[0], *m[1:]]))),
    Mutation("SA and USA0 swapped", simulate, "MODELS", _swapped),
    Mutation("first cluster elsewhere", simulate, "place", result(_moved)),
    Mutation("merging angle 100 times as large", simulate, "LongTime", scaled("angle", 100.0)),
)  # fmt: skip

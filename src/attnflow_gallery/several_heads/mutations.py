"""Ways to break the simulation."""

from typing import Any

import numpy as np

from attnflow.experiments import Mutation, altered, scaled
from attnflow_gallery.several_heads import simulate


def _steeper(original: Any) -> Any:
    return lambda betas, weights, model: original((1.2 * min(betas), max(betas)), weights, model)


def _whole_values(original: Any) -> Any:
    def changed(beta: Any, d: int, model: str, other: Any = 1.0) -> Any:
        axes = np.eye(d)[:, :, None] * np.eye(d)[:, None, :]
        return simulate.Attention(beta, query=axes, value=np.eye(d), normaliser=model)

    return changed


MUTATIONS = (
    Mutation("beta 0.0001 % larger", simulate, "Attention", scaled("beta", 1 + 1e-6)),
    Mutation("flat head 20 % steeper", simulate, "mixed", _steeper),
    Mutation("weights of the two heads equal", simulate, "mixed", altered("weights", lambda w: (0.5, 0.5))),
    Mutation("V_h = I", simulate, "axis_heads", _whole_values),
    Mutation("softmax for USA", simulate, "axis_heads", altered("model", lambda model: "SA")),
    Mutation("USA for softmax", simulate, "axis_heads", altered("model", lambda model: "USA")),
)

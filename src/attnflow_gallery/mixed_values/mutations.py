"""Ways to break the simulation."""

from typing import Any

import numpy as np

from attnflow.experiments import Mutation, altered, scaled
from attnflow.masks import Table
from attnflow_gallery.mixed_values import simulate


def _still(original: Any) -> Any:
    return lambda beta: simulate.Attention(beta, value=np.zeros((3, 3)), normaliser="USA")


def _blind(original: Any) -> Any:
    """Attention of the prisms and clouds without the token itself."""

    def changed(value: Any, logits: Any) -> Any:
        if len(value) != 3:
            return original(value, logits)
        return simulate.Attention(1.0, key=logits, value=value, mask=Table(1.0 - np.eye(simulate.POINTS)))

    return changed


MUTATIONS = (
    Mutation("logits 0.01 % larger", simulate, "attention", scaled("logits", 1.0001)),
    Mutation("logits 5 % larger", simulate, "attention", scaled("logits", 1.05)),
    Mutation("V 0.01 % larger", simulate, "attention", scaled("value", 1.0001)),
    Mutation("tokens do not see themselves", simulate, "attention", _blind),
    Mutation("tokens on the sphere stand still", simulate, "repelling", _still),
    Mutation(
        "beta of repelling tokens 0.1 % larger", simulate, "repelling", altered("beta", lambda beta: 1.001 * beta)
    ),
)

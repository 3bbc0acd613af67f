"""Ways to break the simulation."""

from collections.abc import Callable
from typing import Any

import numpy as np

from attnflow.axes import Along
from attnflow.experiments import Mutation, altered, result
from attnflow.fields import Softmax, Unnormalised
from attnflow_gallery.energy_ascent import simulate

SKEW = np.array([[1.0, 0.1], [-0.1, 1.0]])


def _beta(factor: float) -> Callable[[Any], Any]:
    def change(beta: Any) -> Any:
        return beta.map(lambda values: factor * values) if isinstance(beta, Along) else factor * beta

    return altered("beta", change)


def _repelled(original: Any) -> Any:
    """V = -I where no matrices are given."""
    return lambda *a, **k: original(*a, **({"value": -np.eye(3)} | k))


def _exchanged(original: Any) -> Any:
    return {"SA": Unnormalised(), "USA0": Softmax()}


MUTATIONS = (
    Mutation("beta 0.1 % larger", simulate, "Attention", _beta(1.001)),
    Mutation("V = -I", simulate, "Attention", _repelled),
    Mutation("SA and USA0 exchanged", simulate, "MODELS", _exchanged),
    Mutation("matrices not symmetric, by 10 %", simulate, "states",
             result(lambda drawn: (drawn[0] @ SKEW, *drawn[1:]))),
    Mutation("V = -B", simulate, "Attention", altered("value", lambda value: None if value is None else -value)),
    Mutation("all heads alike", simulate, "states",
             result(lambda drawn: (np.broadcast_to(drawn[0][:, :1], drawn[0].shape), *drawn[1:]))),
    Mutation("time runs 0.1 % fast", simulate, "advance", altered("t1", lambda t1: 1.001 * t1)),
)  # fmt: skip

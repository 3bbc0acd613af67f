"""Ways to break the simulation."""

from typing import Any

import numpy as np

from attnflow.experiments import Mutation, altered, result, scaled, with_arguments
from attnflow_gallery.perceptron_landscape import simulate


def _first(part: int, change: Any) -> Any:
    """Changes the first unit of a network: 0 its direction, 1 its bias, 2 its weight."""

    def changed(network: list[np.ndarray]) -> list[np.ndarray]:
        made = [np.array(one) for one in network]
        made[part][..., 0] = change(made[part][..., 0])
        return made

    return altered("network", changed)


MUTATIONS = (
    Mutation("beta larger by a factor 1 + 1e-6", simulate, "flow", scaled("beta", 1 + 1e-6)),
    Mutation("beta 10 % larger", simulate, "flow", scaled("beta", 1.1)),
    Mutation("bias of one unit larger by 1e-6", simulate, "flow", _first(1, lambda bias: bias + 1e-6)),
    Mutation("weight of one unit 5 % larger", simulate, "flow", _first(2, lambda weight: 1.05 * weight)),
    Mutation("no perceptron block", simulate, "flow", altered("network", lambda net: [*net[:2], 0 * net[2]])),
    Mutation("no attention", simulate, "Attention", altered("value", lambda value: 0.0 * value)),
    Mutation("repelling and attracting exchanged", simulate, "flow", scaled("sign", -1.0)),
    Mutation("tanh instead of relu", simulate, "Potential", with_arguments(activation="tanh")),
    Mutation("clock 20 times slower", simulate, "flow", result(lambda field: 0.05 * field)),
)

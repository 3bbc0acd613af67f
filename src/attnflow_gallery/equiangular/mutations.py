"""Ways to break the simulation."""

from typing import Any

import numpy as np

from attnflow.experiments import Mutation, altered, faster, scaled, with_arguments
from attnflow.experiments.kit import with_overlaps
from attnflow.flows import Euler
from attnflow.masks import Causal
from attnflow_gallery.equiangular import simulate


def _another_power(original: Any) -> Any:
    """Overlaps at the start multiplied by d^(1/4)/4: the same at d = 256, another power of d."""

    def wrong(parameters: Any, n: int, dims: tuple[int, ...], draws: int) -> Any:
        scale = (np.array(dims) ** 0.25 / 4)[:, None, None, None]
        return with_overlaps(original(parameters, n, dims, draws), lambda gram: scale * gram)

    return wrong


def _wider(original: Any) -> Any:
    return lambda *a: with_overlaps(original(*a), lambda gram: 1.2 * gram)


MUTATIONS = (
    Mutation("beta 0.0001 % larger", simulate, "Attention", scaled("beta", 1 + 1e-6)),
    Mutation("SA and USA0 exchanged", simulate, "Attention", altered("normaliser", {"SA": "USA0", "USA0": "SA"}.get)),
    Mutation("causal mask", simulate, "Attention", with_arguments(mask=Causal())),
    Mutation("Euler's method", simulate, "Fixed", with_arguments(rule=Euler())),
    Mutation("time runs 0.0001 % fast", simulate, "Attention", faster(1 + 1e-6)),
    Mutation("overlaps of iid tokens fall like d^(-1/4)", simulate, "in_span", _another_power),
    Mutation("overlaps of iid tokens 20 % larger", simulate, "in_span", _wider),
)

"""Ways to break the simulation."""

from typing import Any

import numpy as np

from attnflow.experiments import Mutation, altered, scaled
from attnflow_gallery.conditional_sampling import simulate


def _no_flows(original: Any) -> Any:
    """Every unit is Euler's step of its field: 1 + c/K for e^(c/K), c = 2."""
    return lambda outer, inner, bias, count, **how: original(
        count * np.log1p(2 / count) / 2 * outer, inner, bias, count, **how
    )


def _there_and_back(original: Any) -> Any:
    """Half of the weight there, half back."""
    return lambda a, bias, c: original(np.concatenate([a, a[::-1]]), bias, c)


MUTATIONS = (
    Mutation("cells of equal mass", simulate, "nodes", lambda _: lambda cells: np.sqrt(np.arange(cells + 1) / cells)),
    Mutation("a shear with one cell more", simulate, "shear", altered("cells", lambda cells: cells + 1)),
    Mutation("one slab more", simulate, "triangular", altered("slabs", lambda slabs: slabs + 1)),
    Mutation("units that are Euler's steps", simulate, "split", _no_flows),
    Mutation("bias of the other sign", simulate, "side_by_side", scaled("bias", -1.0)),
    Mutation("units of a layer in turn", simulate, "layer", lambda _: simulate.sweep),
    Mutation("a sweep there and back", simulate, "sweep", _there_and_back),
)

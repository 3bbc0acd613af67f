"""Ways to break the simulation."""

from typing import Any

import numpy as np

from attnflow.experiments import Mutation, altered, scaled
from attnflow.fields import Potential
from attnflow_gallery.perceptron_holds_clusters import simulate


def _biased(original: Any) -> Any:
    return lambda directions, weights: Potential(directions, np.full(len(directions), 0.1), weights)


MUTATIONS = (
    Mutation("beta 0.1 % larger", simulate, "attention", scaled("beta", 1.001)),
    Mutation("beta 5 % larger", simulate, "attention", scaled("beta", 1.05)),
    Mutation("biases 0.1", simulate, "neurons", _biased),
    Mutation("neurons half as strong", simulate, "neurons", scaled("weights", 0.5)),
    Mutation("SA and USA0 swapped", simulate, "attention", altered("model", {"SA": "USA0", "USA0": "SA"}.get)),
)

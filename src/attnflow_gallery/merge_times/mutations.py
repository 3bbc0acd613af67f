"""Ways to break the simulation."""

from typing import Any

from attnflow.experiments import Mutation, altered, result, scaled
from attnflow_gallery.merge_times import simulate


def _models(**others: str) -> Any:
    """Other models for those that are named."""
    return altered("normaliser", lambda model: others.get(model, model))


MUTATIONS = (
    Mutation("beta 0.0001 % larger", simulate, "Attention", scaled("beta", 1 + 1e-6)),
    Mutation("beta 2 % larger", simulate, "Attention", scaled("beta", 1.02)),
    Mutation("equal masses", simulate, "Tokens", altered("masses", lambda masses: None)),
    Mutation("first cluster 0.1 % heavier", simulate, "Tokens", altered("masses", lambda m: [1.001 * m[0], *m[1:]])),
    Mutation("merging distance 1 % larger", simulate, "LongTime", scaled("angle", 1.01)),
    Mutation("third cluster 1 % farther", simulate, "distance_of_third", result(lambda far: 1.01 * far)),
    Mutation("SA and USA0 swapped", simulate, "Attention", _models(SA="USA0", USA0="SA")),
    Mutation("USA on the clock of USA0", simulate, "Attention", _models(USA="USA0")),
)

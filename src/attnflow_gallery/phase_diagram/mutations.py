"""Ways to break the simulation."""

from typing import Any

import numpy as np

from attnflow.experiments import Mutation, altered, faster, with_arguments
from attnflow.experiments.kit import with_overlaps
from attnflow.masks import Causal
from attnflow_gallery.phase_diagram import simulate


def _beta(factor: float) -> Any:
    return altered("beta", lambda beta: beta.map(lambda values: factor * values))


def _overlaps(change: Any) -> Any:
    return lambda original: lambda *a: with_overlaps(original(*a), change)


def _shifted(gram: np.ndarray) -> np.ndarray:
    return np.minimum(gram + 0.03, 0.99)


MUTATIONS = (
    Mutation("beta 1 % larger", simulate, "Attention", _beta(1.01)),
    Mutation("beta 20 % larger", simulate, "Attention", _beta(1.2)),
    Mutation("USA0 instead of SA", simulate, "Attention", with_arguments(normaliser="USA0")),
    Mutation("causal mask", simulate, "Attention", with_arguments(mask=Causal())),
    Mutation("time runs 1 % fast", simulate, "Attention", faster(1.01)),
    Mutation("overlaps at the start 40 % larger", simulate, "in_span", _overlaps(lambda gram: 1.4 * gram)),
    Mutation("overlaps at the start 0.03 larger", simulate, "in_span", _overlaps(_shifted)),
)

"""Ways to break the simulation."""

from typing import Any

from attnflow.experiments import Mutation, altered, scaled
from attnflow_gallery.changing_weights import simulate


def _constant(original: Any) -> Any:
    """beta of a ramp is that of its end from the start; for pairs it stays at the first."""
    return lambda first, rate, model, until: original(30.0 if model == "SA" else first, 0.0, model, until)


def _fast(original: Any) -> Any:
    return lambda first, rate, model, until: original(first, 3 * rate if model == "SA" else rate, model, until)


MUTATIONS = (
    Mutation("beta constant", simulate, "ramped", _constant),
    Mutation("ramps 1 % slower", simulate, "ramped", scaled("rate", 0.99)),
    Mutation("ramps of modes three times as fast", simulate, "ramped", _fast),
    Mutation("skew part 0.1 % larger", simulate, "skewed", scaled("skew", 1.001)),
    Mutation("SA and USA0 swapped", simulate, "skewed", altered("model", {"SA": "USA0", "USA0": "SA"}.get)),
)

"""Ways to break the simulation."""

from typing import Any

import numpy as np

from attnflow.experiments import Mutation, altered, result, scaled
from attnflow.fields.encodings import NoEncoding
from attnflow.masks import Causal, Everyone
from attnflow_gallery.prompt_invariances import simulate


def _heavier(original: Any) -> Any:
    """The first token of every prompt has twice the mass of the others."""

    def make(*arguments: Any, **options: Any) -> Any:
        found = original(*arguments, **options)
        masses = 1.0 + (np.arange(found.n) == 0)
        return simulate.Tokens(found.positions, masses, place=found.place, labels=found.labels)

    return make


def _stretched(matrix: np.ndarray) -> np.ndarray:
    return np.asarray(matrix * np.linspace(1, 1.001, len(matrix)))


MUTATIONS = (
    Mutation("a causal mask everywhere", simulate, "Everyone", lambda original: Causal),
    Mutation("no causal mask", simulate, "Causal", lambda original: Everyone),
    Mutation("no rotary encoding", simulate, "Rotary", lambda original: NoEncoding),
    Mutation("sinusoids everywhere", simulate, "tokens", altered("kind", lambda kind: "sinusoids")),
    Mutation("no sinusoids", simulate, "Sinusoidal", scaled("size", 0.0)),
    Mutation("the first word twice as heavy", simulate, "tokens", _heavier),
    Mutation("rotations that stretch by 0.1 %", simulate, "rotation", result(_stretched)),
)

"""Ways to break the simulation."""

from typing import Any

import numpy as np

from attnflow.experiments import Mutation, result, scaled, with_arguments
from attnflow.fields.encodings import NoEncoding, Rotary
from attnflow.masks import Causal, Everyone
from attnflow_gallery.prompt_invariances import simulate


def _heavier(original: Any) -> Any:
    """The first token of every prompt has twice the mass of the others."""

    def make(*arguments: Any, **options: Any) -> Any:
        found = original(*arguments, **options)
        masses = 1.0 + (np.arange(found.n) == 0)
        return simulate.Tokens(found.positions, masses, place=found.place, labels=found.labels)

    return make


MUTATIONS = (
    Mutation("a causal mask everywhere", simulate, "Everyone", lambda original: Causal),
    Mutation("no causal mask", simulate, "Causal", lambda original: Everyone),
    Mutation("rotary encoding everywhere", simulate, "NoEncoding", lambda original: Rotary),
    Mutation("no rotary encoding", simulate, "Rotary", lambda original: NoEncoding),
    Mutation("no sinusoids", simulate, "Sinusoidal", scaled("size", 0.0)),
    Mutation("the first word twice as heavy", simulate, "tokens", _heavier),
    Mutation(
        "rotations that stretch by 0.1 %", simulate, "rotation", result(lambda q: q * np.linspace(1, 1.001, len(q)))
    ),
    Mutation("places shifted by none", simulate, "tokens", with_arguments(shift=0)),
)

"""Ways to break the simulation."""

from typing import Any

import numpy as np

from attnflow.experiments import Mutation, altered, result, scaled
from attnflow.tokens import Tokens
from attnflow_gallery.sphere_patterns import simulate


def _leaning(tokens: Tokens) -> Tokens:
    """Masses lean towards the first axis by 5 %: antipodal symmetry is lost."""
    masses = np.asarray(tokens.masses) * (1 + 0.05 * np.asarray(tokens.positions)[:, 0])
    return Tokens(tokens.positions, masses)


def _exchanged(original: Any) -> Any:
    """Softmax and unnormalised attention exchanged."""
    return altered("model", {"SA": "USA0", "USA0": "SA"}.get)(original)


MUTATIONS = (
    Mutation("SA and USA0 exchanged", simulate, "field", _exchanged),
    Mutation("beta 30 % larger", simulate, "field", scaled("beta", 1.3)),
    Mutation("beta 4 times smaller", simulate, "field", scaled("beta", 0.25)),
    Mutation("the density leans to one side", simulate, "density", result(_leaning)),
    Mutation("V = -I", simulate, "field", lambda original: lambda *a, **k: -1.0 * original(*a, **k)),
)

"""Ways to break the simulation."""

from typing import Any

import numpy as np

from attnflow.experiments import Mutation, altered, scaled
from attnflow.fields import Attention
from attnflow_gallery.metastability import simulate


def _slower(original: Any) -> Any:
    """Values 0.8 I instead of I."""
    return lambda p: Attention(p.cap_beta, normaliser="USA0", value=0.8 * np.eye(3))


def _lighter(masses: tuple[float, ...]) -> tuple[float, ...]:
    return (*masses[:-1], 0.95 * masses[-1])


MUTATIONS = (
    Mutation("beta 0.1 % larger", simulate, "Attention", scaled("beta", 1.001)),
    Mutation("beta 30 % smaller", simulate, "Attention", scaled("beta", 0.7)),
    Mutation("SA and USA0 swapped", simulate, "Attention", altered("normaliser", {"SA": "USA0", "USA0": "SA"}.get)),
    Mutation("merging angle 10 times as large", simulate, "LongTime", scaled("angle", 10.0)),
    Mutation("caps: values 0.8 I", simulate, "cap_field", _slower),
    Mutation("caps: lightest cap 5 % lighter", simulate, "caps", altered("masses", _lighter)),
)

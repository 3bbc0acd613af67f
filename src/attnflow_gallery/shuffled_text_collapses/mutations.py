"""Ways to break the physics."""

import numpy as np

from attnflow.experiments import Mutation, altered
from attnflow.experiments.kit import NETWORK
from attnflow_gallery.shuffled_text_collapses import simulate


def two_words(ids: np.ndarray, *_: object) -> np.ndarray:
    """Two words of the text again and again, between its first and its last token."""
    return np.array([ids[0], *np.resize(ids[1:3], len(ids) - 2), ids[-1]])


MUTATIONS = (
    Mutation(
        "the trained network has permuted weights",
        simulate,
        "network_of",
        altered("case", lambda case: "permuted" if case == NETWORK else case),
    ),
    Mutation("nulls are the trained network", simulate, "network_of", altered("case", lambda case: NETWORK)),
    Mutation("nothing is shuffled", simulate, "shuffled", lambda original: lambda ids, *_: ids),
    Mutation("two words in place of shuffled text", simulate, "shuffled", lambda original: two_words),
)

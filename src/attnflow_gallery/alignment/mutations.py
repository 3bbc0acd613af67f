"""Ways to break the physics."""

import numpy as np

from attnflow.experiments import Mutation, altered, result
from attnflow.experiments.kit import NETWORK
from attnflow.fields import Attention
from attnflow.masks import Causal
from attnflow.probe import Stream
from attnflow.tokens import Tokens
from attnflow_gallery.alignment import simulate

STEP = 0.1


def flowing(stream: Stream) -> Stream:
    """Every update by attention is a step of the flow at the inverse temperature 4."""
    x = np.asarray(stream.hidden[0], float)
    field = Attention(4.0, mask=Causal()) if stream.causal else Attention(4.0)
    length = np.linalg.norm(x, axis=-1, keepdims=True)
    speed = np.asarray(field.velocity(Tokens(x / length, dims=("layer",))))
    after = (x + STEP * length * speed)[:-1]
    return Stream(x, None, stream.ids[0], stream.causal, after_attention=after)  # type: ignore[index]


MUTATIONS = (
    Mutation(
        "the trained network has permuted weights",
        simulate,
        "network_of",
        altered("case", lambda case: "permuted" if case == NETWORK else case),
    ),
    Mutation("updates are steps of the flow", simulate, "activations", result(flowing)),
    Mutation(
        "all nulls are permuted weights",
        simulate,
        "network_of",
        altered("case", lambda case: case if case == NETWORK else "permuted"),
    ),
)

"""Ways to break the physics."""

from typing import Any

import numpy as np

from attnflow.experiments import Mutation, altered, result
from attnflow.fields import Attention
from attnflow.masks import Causal
from attnflow.probe import Stream
from attnflow.tokens import Tokens
from attnflow_gallery.alignment import simulate

STEP = 0.1


def permuted(net: Any) -> Any:
    """The network with its weights permuted, in place of the trained one."""
    return net.null("permuted", 77)


def flowing(stream: Stream) -> Stream:
    """Every update by attention is a step of the flow at the inverse temperature 4."""
    x = np.asarray(stream.hidden[0], float)
    field = Attention(4.0, mask=Causal()) if stream.causal else Attention(4.0)
    length = np.linalg.norm(x, axis=-1, keepdims=True)
    speed = np.asarray(field.velocity(Tokens(x / length, dims=("layer",))))
    after = (x + STEP * length * speed)[:-1]
    return Stream(x, None, stream.ids[0], stream.causal, after_attention=after)  # type: ignore[index]


MUTATIONS = (
    Mutation("the trained network has permuted weights", simulate, "trained", result(permuted)),
    Mutation("updates are steps of the flow", simulate, "activations", result(flowing)),
    Mutation("all nulls are permuted weights", simulate, "untrained", altered("kind", lambda kind: "permuted")),
)

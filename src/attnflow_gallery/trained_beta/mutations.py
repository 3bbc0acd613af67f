"""Ways to break the physics."""

from typing import Any

import numpy as np

from attnflow.experiments import Mutation, result
from attnflow.probe import Stream
from attnflow_gallery.trained_beta import simulate


def permuted(net: Any) -> Any:
    """The network with its weights permuted, in place of the trained one."""
    return net.null("permuted", 77)


def attention_of(sign: float) -> Any:
    """Streams whose attention is softmax(8 sign cos) in every head: what the theory has, or its opposite."""

    def changed(stream: Stream) -> Stream:
        x = np.asarray(stream.hidden[0][:-1], float)
        u = x / np.linalg.norm(x, axis=-1, keepdims=True)
        weights = np.exp(8 * sign * (u @ u.transpose(0, 2, 1)))
        if stream.causal:
            weights = np.tril(weights)
        weights /= weights.sum(axis=-1, keepdims=True)
        heads = np.repeat(weights[:, None], stream.heads, axis=1)
        return Stream(stream.hidden[0], heads, stream.ids[0], stream.causal)  # type: ignore[index]

    return changed


MUTATIONS = (
    Mutation("the trained network has permuted weights", simulate, "trained", result(permuted)),
    Mutation("attention of the theory in every head", simulate, "activations", result(attention_of(1.0))),
    Mutation("attention prefers what differs", simulate, "activations", result(attention_of(-1.0))),
    Mutation(
        "nulls are the trained network",
        simulate,
        "untrained",
        lambda original: lambda which, *_: simulate.network(which),
    ),
)

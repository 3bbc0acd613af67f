"""Ways to break the physics."""

import numpy as np

from attnflow.experiments import Mutation, altered, result
from attnflow.probe import Stream, networks
from attnflow_gallery.fresh_networks import simulate


def louder(which: str, way: str, words: int, seed: int) -> networks.Network:
    """Fresh weights with variance 1/columns: three times the deviation that theory is told."""
    return networks.random_network(simulate.FAMILIES[way], **simulate.SHAPES[which], vocabulary=words, seed=seed)


def still(stream: Stream) -> Stream:
    """Attention does nothing."""
    x = np.asarray(stream.hidden[0])
    return Stream(x, stream.attention[0], stream.ids[0], after_attention=x[:-1])  # type: ignore[index]


MUTATIONS = (
    Mutation("weights three times as large", simulate, "fresh", lambda original: louder),
    Mutation("attention does nothing", simulate, "activations", result(still)),
    Mutation("the repeated layer has fresh weights every time", simulate, "fresh", altered("way", lambda way: "own")),
)

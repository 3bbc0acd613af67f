"""The logit lens: the next-token distribution that the unembedding would read off the states of a layer."""

import numpy as np

from attnflow.probe.states import Variables
from attnflow.probe.stream import Stream, unit
from attnflow.text import KernelSum, LastToken, Mixture, distribution_of_logits, next_token_distribution
from attnflow.tokens import Tokens

READOUTS = {"mixture": Mixture(), "kernel sum": KernelSum(), "last token": LastToken()}
"""Labels of the dimension `readout`."""


def lens(stream: Stream, count: int) -> Variables:
    """Entropy H, information I and number of alternatives exp(I) of the next-token distribution, at `count` layers.

    The layers are evenly spaced, with the first and the last state among them; others have NaN.
    """
    layers = np.unique(np.linspace(0, stream.states - 1, max(count, 1)).round().astype(int))
    shape = (stream.texts, len(READOUTS), stream.states)
    entropy, information = np.full(shape, np.nan), np.full(shape, np.nan)
    for text, states in enumerate(stream.hidden):
        for layer in layers:
            x = states[layer]
            for number, readout in enumerate(READOUTS.values()):
                rows = x[-1:] if isinstance(readout, LastToken) else x  # the others have no weight there
                if isinstance(stream.unembedding, np.ndarray):
                    tokens = Tokens(unit(rows), dtype=stream.unembedding.dtype)
                    distribution = next_token_distribution(
                        tokens, stream.unembedding, beta=np.sqrt(stream.width), readout=readout
                    )
                else:
                    distribution = distribution_of_logits(stream.unembedding(rows), readout=readout)
                entropy[text, number, layer], information[text, number, layer] = (
                    distribution.entropy,
                    distribution.information,
                )
    dims = ("text", "readout", "layer")
    return {
        "next_token_entropy": (dims, entropy),
        "next_token_information": (dims, information),
        "next_token_alternatives": (dims, np.exp(information)),
    }

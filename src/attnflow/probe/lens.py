"""The logit lens: the next-token distribution that the unembedding would read off the states of a layer."""

import numpy as np

from attnflow.probe.states import Variables
from attnflow.probe.stream import Stream, unit
from attnflow.text import KernelSum, LastToken, Mixture, distribution_of_logits

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
            logits = _logits(stream, states[layer])
            for number, readout in enumerate(READOUTS.values()):
                rows = logits[-1:] if isinstance(readout, LastToken) else logits  # the others have no weight there
                distribution = distribution_of_logits(rows, readout=readout)
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


def _logits(stream: Stream, states: np.ndarray) -> np.ndarray:
    """(token, word) logits of the states of a layer, in the dtype of the unembedding."""
    words = stream.unembedding
    if not isinstance(words, np.ndarray):
        return np.asarray(words(states))
    gain = 1.0 if stream.final_gain is None else stream.final_gain
    scaled = np.sqrt(stream.width) * unit(states) * gain
    return np.asarray(scaled.astype(words.dtype) @ words.T)

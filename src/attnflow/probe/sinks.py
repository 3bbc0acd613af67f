"""Sinks and massive coordinates: the few tokens and the few numbers that make "clustering" out of nothing."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from attnflow.checks import instance, number
from attnflow.errors import InvalidInput
from attnflow.probe.stream import Stream

FACTOR = 10.0
"""A token is a sink if its norm exceeds so many times the median of its layer, in some layer."""
KEPT = ("all", "without sinks")
"""Labels of the dimension `kept` of datasets."""


def find_sinks(stream: Stream, *, factor: float = FACTOR) -> tuple[np.ndarray, ...]:
    """Which tokens of each text are sinks: (token,) booleans, one array for each text.

    A token is a sink if its norm exceeds `factor` times the median norm of its layer in some layer. The first token of
    a causal network always is one: it attends to itself alone. Special tokens of encoders ([CLS], [SEP]) are not
    found by this rule; give them to `measure` by hand.
    """
    instance("stream", stream, Stream, "a Stream, such as Stream(hidden)")
    factor = number("factor", factor, low=1.0)
    found = []
    for states in stream.hidden:
        norms = np.linalg.norm(np.asarray(states, np.float64), axis=-1)
        sinks = (norms > factor * np.median(norms, axis=1, keepdims=True)).any(axis=0)
        if stream.causal:
            sinks[0] = True
        found.append(sinks)
    return tuple(found)


def as_sinks(stream: Stream, given: Sequence[Any] | None) -> tuple[np.ndarray, ...]:
    """Sinks as `find_sinks` gives them, found or given: booleans for each token, or the numbers of tokens."""
    if given is None:
        return find_sinks(stream)
    instance("sinks", given, Sequence, "a list with one entry for each text")
    if len(given) != stream.texts:
        raise InvalidInput(f"`sinks` has {len(given)} entries for {stream.texts} texts; give one for each.")
    found = []
    for text, (one, n) in enumerate(zip(given, stream.lengths, strict=True)):
        marks = np.asarray(one)
        if marks.dtype.kind != "b":
            numbers = marks.astype(int) if marks.size else np.zeros(0, int)
            if (marks.size and marks.dtype.kind not in "iu") or (numbers >= n).any() or (numbers < 0).any():
                raise InvalidInput(f"`sinks` of text {text} is {one!r}; give numbers of tokens from 0 to {n - 1}.")
            marks = np.isin(np.arange(n), numbers)
        if marks.shape != (n,):
            raise InvalidInput(f"`sinks` of text {text} has shape {marks.shape}; give one boolean for each of {n}.")
        found.append(marks)
    return tuple(found)


def largest_coordinates(x: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The `count` coordinates with most energy sum_i x_ic^2, largest first, and their shares of all energy."""
    energies = np.einsum("ic,ic->c", x, x)
    order = np.argsort(-energies, kind="stable")[:count]
    return order, energies[order] / energies.sum()

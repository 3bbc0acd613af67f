"""Updates of layers: what each sub-layer does to overlaps, and how much of it the theory's velocity explains."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from attnflow.axes import Along
from attnflow.fields import Attention
from attnflow.masks import AbstractMask, Causal, Everyone
from attnflow.probe.states import Variables, batch, blocks, mean_cosine
from attnflow.probe.stream import Stream
from attnflow.tokens import Tokens

PARTS = ("attention", "layer")
"""Labels of the dimension `part`: the update by attention alone, and by the whole layer."""
NOISE = 100
"""An update of fewer rounding errors has no direction, as the one of the first token of a causal flow."""


def tangent_updates(before: np.ndarray, after: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """(layer, token, d) a_i = P_u (y_i - x_i)/|x_i| of states x and y; `vectors` are u = x/|x|."""
    many = min(len(after), len(before))
    u = vectors[:many]
    a = np.asarray(after[:many], np.float64) / np.linalg.norm(np.asarray(before[:many], np.float64), axis=-1)[..., None]
    return np.asarray(a - np.sum(a * u, axis=-1, keepdims=True) * u)


def sublayers(stream: Stream, kept: Sequence[Sequence[np.ndarray]]) -> Variables:
    """The change of the mean overlap by attention and by the rest of each layer."""
    assert stream.after_attention is not None
    shape = (stream.texts, len(kept), stream.states)
    by_attention, by_rest = np.full(shape, np.nan), np.full(shape, np.nan)
    for text, middle in enumerate(stream.after_attention):
        for choice, marks in enumerate(kept):
            rows = marks[text]
            states = [mean_cosine(np.asarray(x[rows], np.float64)) for x in stream.hidden[text]]
            between = [mean_cosine(np.asarray(x[rows], np.float64)) for x in middle]
            by_attention[text, choice, : len(between)] = np.array(between) - states[: len(between)]
            after = states[1 : len(between) + 1]
            by_rest[text, choice, : len(after)] = np.array(after) - between[: len(after)]
    dims = ("text", "kept", "layer")
    return {"overlap_change_attention": (dims, by_attention), "overlap_change_rest": (dims, by_rest)}


def explained(
    stream: Stream, vectors: Sequence[np.ndarray], kept: Sequence[Sequence[np.ndarray]], betas: np.ndarray
) -> Variables:
    """Alignment of updates with the velocity of `Attention(beta)`, effective time of a layer, and its R^2.

    The update of a token is a_i = P_u (y_i - x_i)/|x_i|: the part of what the layer adds that is tangent to the sphere
    at u = x/|x|. With the velocity v_i that softmax attention with Q = K = V = I gives these tokens, the alignment is
    the mean of the cosines of a_i and v_i, the effective time is sum <a, v>/sum |v|^2, and R^2 is the share of
    sum |a|^2 that it explains.

    Arguments:
        stream: the stream.
        vectors: unit vectors (layer, token, d) of every text.
        kept: tokens that interact and count.
        betas: (text, layer) inverse temperatures.
    """
    shape = (stream.texts, len(kept), len(PARTS), stream.states)
    alignment, time, r2 = (np.full(shape, np.nan) for _ in range(3))
    mask: AbstractMask = Causal() if stream.causal else Everyone()
    for choice, marks in enumerate(kept):
        for some in blocks(stream):
            speeds = _velocities(batch(stream, marks, some), betas[:, some], mask)
            for text, states in enumerate(stream.hidden):
                rows = marks[text]
                if rows.sum() < 2:
                    continue
                ends = {"layer": states[1:]}
                if stream.after_attention is not None:
                    ends["attention"] = stream.after_attention[text]
                for part, after in ends.items():
                    a = tangent_updates(states[some], after[some], vectors[text][some])[:, rows]
                    v = speeds[text, : len(a), : states.shape[1]][:, rows]
                    where = text, choice, PARTS.index(part), slice(some.start, some.start + len(a))
                    alignment[where], time[where], r2[where] = _agreement(a, v, after.dtype)
    dims = ("text", "kept", "part", "layer")
    return {"alignment": (dims, alignment), "effective_time": (dims, time), "effective_time_r2": (dims, r2)}


def _velocities(tokens: Tokens, betas: np.ndarray, mask: AbstractMask) -> np.ndarray:
    """(text, layer, token, d) velocities of all texts and states in one call; `betas` are (text, layer)."""
    x = np.asarray(tokens.positions)
    present = None if tokens.present is None else np.asarray(tokens.present).reshape(-1, x.shape[2])
    every = Tokens(x.reshape(-1, *x.shape[2:]), present=present, dims=("state",))
    field = Attention(Along("state", betas.ravel(), labels=()), mask=mask)
    return np.asarray(field.velocity(every)).reshape(x.shape)


def _agreement(a: np.ndarray, v: np.ndarray, dtype: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(layer,) alignment, effective time and R^2 of updates a and velocities v (layer, token, d)."""
    inner, aa, vv = np.sum(a * v, axis=-1), np.sum(a * a, axis=-1), np.sum(v * v, axis=-1)
    moves = (np.sqrt(vv) > NOISE * np.finfo(np.float64).eps) & (np.sqrt(aa) > NOISE * np.finfo(dtype).eps)
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.where(moves, inner / np.sqrt(aa * vv), 0.0)
        share = inner.sum(axis=1) ** 2 / (aa.sum(axis=1) * vv.sum(axis=1))
        return (
            each.sum(axis=1) / moves.sum(axis=1),
            inner.sum(axis=1) / vv.sum(axis=1),
            np.where(moves.any(axis=1), share, np.nan),  # of rounding errors nothing is explained
        )

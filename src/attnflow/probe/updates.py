"""Updates of layers: what each sub-layer does to overlaps, and how much of it the theory's velocity explains."""

from collections.abc import Sequence

import numpy as np

from attnflow.axes import Along
from attnflow.fields import Attention
from attnflow.masks import Causal, Everyone
from attnflow.probe.states import Variables, batch, mean_cosine
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
    mask = Causal() if stream.causal else Everyone()
    for choice, marks in enumerate(kept):
        tokens = batch(stream, marks)
        for text, states in enumerate(stream.hidden):
            rows = marks[text]
            if rows.sum() < 2:
                continue
            one = Tokens(
                tokens.positions[text],
                present=None if tokens.present is None else tokens.present[text],
                dims=("layer",),
            )
            speeds = np.asarray(Attention(Along("layer", betas[text], labels=()), mask=mask).velocity(one))
            ends = {"layer": states[1:]}
            if stream.after_attention is not None:
                ends["attention"] = stream.after_attention[text]
            for part, after in ends.items():
                a = tangent_updates(states, after, vectors[text])[:, rows]
                many = len(a)
                v = speeds[:many, : states.shape[1]][:, rows]
                where = text, choice, PARTS.index(part), slice(0, many)
                inner, aa, vv = np.sum(a * v, axis=-1), np.sum(a * a, axis=-1), np.sum(v * v, axis=-1)
                moves = (np.sqrt(vv) > NOISE * np.finfo(np.float64).eps) & (
                    np.sqrt(aa) > NOISE * np.finfo(after.dtype).eps
                )
                with np.errstate(divide="ignore", invalid="ignore"):
                    each = np.where(moves, inner / np.sqrt(aa * vv), 0.0)
                    alignment[where] = each.sum(axis=1) / moves.sum(axis=1)
                    time[where] = inner.sum(axis=1) / vv.sum(axis=1)
                    share = inner.sum(axis=1) ** 2 / (aa.sum(axis=1) * vv.sum(axis=1))
                    r2[where] = np.where(moves.any(axis=1), share, np.nan)  # of rounding errors nothing is explained
    dims = ("text", "kept", "part", "layer")
    return {"alignment": (dims, alignment), "effective_time": (dims, time), "effective_time_r2": (dims, r2)}

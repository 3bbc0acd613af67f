"""Numbers of states: overlaps in several views, rank, clusters, energy, norms; with and without sinks."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from attnflow.axes import unit_rows
from attnflow.observe import clusters, effective_rank, energy
from attnflow.observe.pairs import counted
from attnflow.probe.arrays import program_size
from attnflow.probe.sinks import largest_coordinates
from attnflow.probe.stream import Stream, unit
from attnflow.spaces import Euclidean
from attnflow.tokens import Tokens

REMOVED = (1, 3, 10)
"""Numbers of largest coordinates that views leave out."""
VIEWS = ("raw", "centred", *(f"without top {k}" for k in REMOVED))
"""Labels of the dimension `view`."""
BLOCK = 8 << 20
"""Bytes of tokens that are handed to one compiled call."""
Variables = dict[str, tuple[tuple[str, ...], np.ndarray]]


def tables(u: np.ndarray) -> list[np.ndarray]:
    """(n, n) cosines of unit vectors u in every view: raw, without their mean, without their largest coordinates.

    Products without the ten largest coordinates are formed first, and those of the largest ones added: no difference of
    large numbers, and one product of all coordinates in place of one for every view.
    """
    order, _ = largest_coordinates(u, max(REMOVED))
    rest = u.copy()
    rest[:, order] = 0.0
    products, above, found = rest @ rest.T, len(order), {}
    for count in sorted({0, *REMOVED}, reverse=True):
        some = u[:, order[count:above]]
        products, above = products + some @ some.T, min(count, above)
        found[count] = scaled(products)
    return [found[0], cosines(u - u.mean(axis=0)), *(found[count] for count in REMOVED)]


def scaled(products: np.ndarray) -> np.ndarray:
    """Inner products divided by the norms; 0 where a vector is zero."""
    norms = np.sqrt(np.diagonal(products))
    inverse = 1 / np.where(norms > 0, norms, np.inf)
    return products * inverse[:, None] * inverse


def cosines(x: np.ndarray) -> np.ndarray:
    """(n, n) cosines of all pairs; 0 where a vector is zero."""
    directions = unit_rows(x)
    return np.asarray(directions @ directions.T)


def mean_cosine(x: np.ndarray) -> float:
    """The mean cosine over pairs i < j: (|sum u|^2 - n)/(n (n - 1)) for unit vectors u; that of a zero vector is 0."""
    n = len(x)
    if n < 2:
        return float("nan")
    return float((np.sum(unit_rows(x).sum(axis=0) ** 2) - np.sum(x.any(axis=1))) / (n * (n - 1)))


def overlaps(stream: Stream, kept: Sequence[Sequence[np.ndarray]], quantiles: Sequence[float], bins: int) -> Variables:
    """Mean, quantiles and histogram of overlaps in every view; pairs of equal and of different ids apart."""
    shape = (stream.texts, len(kept), len(VIEWS), stream.states)
    mean, equal, different = (np.full(shape, np.nan) for _ in range(3))
    at = np.full((*shape, len(quantiles)), np.nan)
    shares = np.full((*shape, bins), np.nan)
    top = np.full((stream.texts, len(kept), stream.states, max(REMOVED)), np.nan)
    pairs = np.zeros((stream.texts, len(kept)))
    which = np.full(top.shape, -1)
    for text, states in enumerate(stream.hidden):
        for choice, marks in enumerate(kept):
            rows = marks[text]
            if rows.sum() < 2:
                continue
            upper = np.triu_indices(int(rows.sum()), 1)
            ids = None if stream.ids is None else stream.ids[text][rows]
            same = None if ids is None else (ids[:, None] == ids[None])[upper]
            pairs[text, choice] = 0 if same is None else same.sum()
            for layer, every in enumerate(states):
                u = unit(every[rows])
                order, part = largest_coordinates(u, max(REMOVED))
                top[text, choice, layer, : len(part)], which[text, choice, layer, : len(order)] = part, order
                for view, table in enumerate(tables(u)):
                    values = table[upper]
                    where = text, choice, view, layer
                    mean[where], at[where] = values.mean(), np.quantile(values, quantiles)
                    shares[where] = counted(values, None, bins) / len(values)
                    if same is not None:
                        equal[where] = values[same].mean() if same.any() else np.nan
                        different[where] = values[~same].mean() if not same.all() else np.nan
    dims = ("text", "kept", "view", "layer")
    found: Variables = {
        "overlap": (dims, mean),
        "overlap_quantile": ((*dims, "quantile"), at),
        "overlap_histogram": ((*dims, "bin"), shares),
        "coordinate_share": (("text", "kept", "layer", "rank"), top),
        "largest_coordinate": (("text", "kept", "layer", "rank"), which),
    }
    if stream.ids is not None:
        found |= {
            "overlap_equal_ids": (dims, equal),
            "overlap_different_ids": (dims, different),
            "pairs_of_equal_ids": (("text", "kept"), pairs),
        }
    return found


def ranks(stream: Stream, kept: Sequence[Sequence[np.ndarray]]) -> Variables:
    """Effective rank, raw and centred."""
    raw, centred = np.empty((2, stream.texts, len(kept), stream.states))
    for choice, marks in enumerate(kept):
        for some in blocks(stream):
            tokens = batch(stream, marks, some)
            raw[:, choice, some] = effective_rank(tokens)
            x, m = np.asarray(tokens.positions), np.asarray(tokens.masses)
            away = x - np.einsum("...i,...id->...d", m, x)[..., None, :]
            flat = Tokens(away, m, space=Euclidean(tokens.dim), present=tokens.present, dims=tokens.dims)
            centred[:, choice, some] = effective_rank(flat)
    dims = ("text", "kept", "layer")
    return {
        "effective_rank": (dims, _few(stream, kept, raw)),
        "effective_rank_centred": (dims, _few(stream, kept, centred)),
    }


def counts(stream: Stream, kept: Sequence[Sequence[np.ndarray]], link: float) -> Variables:
    """Clusters of tokens linked at cosines above `link`, the largest one, and whether all are condensed."""
    shape = (stream.texts, len(kept), stream.states)
    number, largest, condensed = np.full(shape, np.nan), np.full(shape, np.nan), np.full(shape, np.nan)
    for choice, marks in enumerate(kept):
        for layer, text in np.ndindex(stream.states, stream.texts):
            if not text:
                tokens = batch(stream, marks, slice(layer, layer + 1))
            found = clusters(tokens.member(text=text, layer=0), scale=float(np.arccos(link)))
            number[text, choice, layer] = found.count
            largest[text, choice, layer] = found.masses[0]
            condensed[text, choice, layer] = found.condensed
    dims = ("text", "kept", "layer")
    tokens_kept = np.array([[marks[text].sum() for marks in kept] for text in range(stream.texts)])
    return {
        "clusters": (dims, _few(stream, kept, number)),
        "clusters_share": (dims, _few(stream, kept, number / np.maximum(tokens_kept, 1)[..., None])),
        "largest_cluster": (dims, _few(stream, kept, largest)),
        "condensed": (dims, _few(stream, kept, condensed)),
    }


def energies(stream: Stream, kept: Sequence[Sequence[np.ndarray]], beta: float) -> Variables:
    """The energy of attention at one beta, so that layers can be compared."""
    found = np.empty((stream.texts, len(kept), stream.states))
    for choice, marks in enumerate(kept):
        for some in blocks(stream):
            found[:, choice, some] = energy(batch(stream, marks, some), beta)
    return {"energy": (("text", "kept", "layer"), _few(stream, kept, found))}


def norms(stream: Stream, kept: Sequence[Sequence[np.ndarray]]) -> Variables:
    """Median and largest norm of the states."""
    shape = (stream.texts, len(kept), stream.states)
    median, largest = np.full(shape, np.nan), np.full(shape, np.nan)
    for text, states in enumerate(stream.hidden):
        lengths = np.linalg.norm(np.asarray(states, np.float64), axis=-1)
        for choice, marks in enumerate(kept):
            if marks[text].any():
                median[text, choice] = np.median(lengths[:, marks[text]], axis=1)
                largest[text, choice] = lengths[:, marks[text]].max(axis=1)
    dims = ("text", "kept", "layer")
    return {"norm_median": (dims, median), "norm_largest": (dims, largest)}


def blocks(stream: Stream) -> list[slice]:
    """Slices of equally many states, together all, whose tokens have `BLOCK` bytes at most; the last one may overlap.

    Equally many, so that they share compiled programs.
    """
    bytes_of_state = 8 * stream.texts * program_size(max(stream.lengths)) * stream.width
    most = max(1, BLOCK // bytes_of_state)
    count = -(-stream.states // most)
    length = -(-stream.states // count)
    starts = [min(k * length, stream.states - length) for k in range(count)]
    return [slice(start, start + length) for start in starts]


def batch(stream: Stream, marks: Sequence[np.ndarray], states: slice = slice(None)) -> Tokens:
    """`stream.tokens`, with the dimension `text` for one text too; texts of which nothing is kept stay whole."""
    whole = [one if one.any() else np.ones_like(one) for one in marks]
    tokens = stream.tokens(whole, rows=program_size(max(stream.lengths)), states=states)
    if not stream.one_text:
        return tokens
    present = None if tokens.present is None else tokens.present[None]
    return Tokens(np.asarray(tokens.positions)[None], present=present, dims=("text", "layer"))


def _few(stream: Stream, kept: Sequence[Sequence[np.ndarray]], values: Any) -> np.ndarray:
    """Values with NaN where fewer than two tokens are kept."""
    found = np.array(values, float)
    for text in range(stream.texts):
        for choice, marks in enumerate(kept):
            if marks[text].sum() < 2:
                found[text, choice] = np.nan
    return found

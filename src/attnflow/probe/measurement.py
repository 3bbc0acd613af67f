"""All numbers of a stream in one labelled dataset."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from attnflow.checks import LARGEST_SEED, in_range, instance, number, reals, shown, whole
from attnflow.errors import InvalidInput
from attnflow.probe import heads, lens, states, updates
from attnflow.probe.one_step import one_step
from attnflow.probe.sinks import KEPT, as_sinks
from attnflow.probe.stream import Stream, unit

FAMILIES = ("overlaps", "rank", "clusters", "energy", "norms", "heads", "updates", "step", "lens", "matrices")
"""Families of numbers, in the order in which they are computed."""
QUANTILES = (0.05, 0.5, 0.95, 0.99)
ABOUT = {
    "overlap": "mean cosine over pairs of tokens; of centred tokens it is near -1/(n-1) whatever happens",
    "overlap_quantile": "quantiles of the cosines over pairs",
    "overlap_histogram": "share of pairs in each of the equal bins of [-1, 1]",
    "overlap_equal_ids": "mean cosine over pairs of tokens with equal ids",
    "overlap_different_ids": "mean cosine over pairs of tokens with different ids",
    "pairs_of_equal_ids": "number of pairs of tokens with equal ids",
    "coordinate_share": "share of sum_i |u_i|^2 in each of the largest coordinates",
    "largest_coordinate": "which coordinates these are; -1 where there are none",
    "effective_rank": "exp of the entropy of the normalised eigenvalues of the second moments of unit tokens",
    "effective_rank_centred": "the same without the mean token",
    "clusters": "connected components of tokens linked at a cosine above `link`",
    "clusters_share": "clusters divided by tokens",
    "largest_cluster": "share of tokens in the largest cluster",
    "condensed": "1 if every cluster is smaller than the linking angle; where 0, the count says nothing about modes",
    "energy": "renormalised energy of softmax attention at the one inverse temperature `energy_beta`, at most 0",
    "norm_median": "median norm of the states",
    "norm_largest": "largest norm of the states",
    "sink": "whether a token is a sink; False beyond the length of a text",
    "tokens": "number of tokens of a text",
    "sinks": "number of sinks of a text",
    "word": "the word of every token of a text, as bytes of UTF-8",
    "cluster": "number of the cluster of every token of the network without sinks, largest first; -1: none",
    "beta": "fitted inverse temperature of a head: slope of log-attention on cosines within rows",
    "beta_r2": "share of the variance of log-attention within rows that the fit explains",
    "beta_low": "2.5 % quantile of beta under resampling of rows",
    "beta_high": "97.5 % quantile of beta under resampling of rows",
    "attention_entropy": "mean entropy of a row of attention, in nats",
    "attention_perplexity": "mean of exp(entropy) of a row, divided by the number of visible tokens",
    "attention_to_sinks": "share of attention that sinks take from other tokens",
    "overlap_change_attention": "change of the mean overlap by attention; positive in random networks too",
    "overlap_change_rest": "change of the mean overlap by the rest of a layer, the perceptron",
    "alignment": "mean cosine between updates of tokens and the velocity of attention with Q = K = V = I",
    "effective_time": "time t of the flow that fits the updates best: sum <a, v>/sum |v|^2",
    "effective_time_r2": "share of the updates that the flow over this time explains",
    "velocity_beta": "inverse temperature at which the velocity was taken",
    "ode_step": "step ε with which all layers together look most like steps of one flow of attention",
    "ode_beta": "inverse temperature of that flow, one of `one_step.GRID`",
    "ode_r2": "share of the updates that steps of this one flow explain, every layer counting the same",
    "ode_r2_free": "the same with a step of its own for every layer",
    "persistence": "mean cosine of the updates of one token by consecutive layers; near 1 for small steps of an ODE",
    "next_token_entropy": "entropy H of the distribution of the next token through the logit lens, in nats",
    "next_token_information": "information I that the tokens carry about it, in nats",
    "next_token_alternatives": "exp(I)",
    "qk_singular_value": "singular values of B = Q^T K, largest first",
    "qk_antisymmetric_share": "|B - B^T|/(2|B|): 0 symmetric, 1 antisymmetric, near 1/√2 for independent entries",
    "qk_trace": "trace of B",
    "ov_sign": "tr(OV)/sum |eigenvalues|: 1 attractive, -1 repulsive",
}
"""What every variable means."""


def measure(
    stream: Stream,
    network: Any = None,
    *,
    families: Sequence[str] = FAMILIES,
    beta: float | None = None,
    energy_beta: float | None = None,
    sinks: Sequence[Any] | None = None,
    quantiles: Sequence[float] = QUANTILES,
    bins: int = 100,
    link: float = 0.9,
    bootstrap: int = 200,
    lens_layers: int = 5,
    seed: int = 0,
) -> Any:
    """All numbers of a stream as an `xarray.Dataset` with dimensions text, layer, head, kept, view and others.

    Entry l of `layer` has the numbers of state l, and of the layer that acts on it; the last state has none of the
    latter (NaN). `kept` says whether sinks are among the tokens; `view` whether cosines are raw, of centred tokens or
    without the largest coordinates. Every variable has a sentence `about`. What cannot be computed from the stream is
    left out. None of these numbers means anything without its null: use `compare` where you have the network.

    Arguments:
        stream: the stream.
        network: where its matrices come from (`heads_of`), if they are to be looked at.
        families: which numbers: "overlaps", "rank", "clusters", "energy", "norms", "heads", "updates", "lens",
            "step", "matrices".
        beta: inverse temperature of the velocity; if left out, the fitted one of the median head of each layer, or 1
            where attention is not known.
        energy_beta: inverse temperature of the energy, one for all layers; if left out, the median of those of the
            velocity, at least 0.
        sinks: for each text the numbers of tokens, or booleans, that count as sinks; `find_sinks` if left out.
        quantiles: of the overlaps.
        bins: of the histogram of overlaps.
        link: cosine above which two tokens belong to one cluster.
        bootstrap: resamples of rows for the intervals of beta.
        lens_layers: number of states, evenly spaced, that are read through the unembedding.
        seed: of the resamples.
    """
    import xarray as xr

    instance("stream", stream, Stream, "a Stream, such as Stream(hidden)")
    families = checked_families(families)
    if network is not None and not (hasattr(network, "heads_of") and hasattr(network, "layers")):
        raise InvalidInput(f"`network` is {shown(network)}; give an object with heads_of and layers, or leave it out.")
    if (levels := reals(quantiles)) is None or levels.ndim != 1:
        raise InvalidInput(f"`quantiles` is {shown(quantiles)}; give a list of numbers in [0, 1].")
    in_range("quantiles", levels, 0.0, 1.0)
    number("link", link, low=-1.0, high=1.0)
    whole("bins", bins, 1, 10**6)
    whole("seed", seed, 0, largest=LARGEST_SEED)
    marks = as_sinks(stream, sinks)
    kept = ([np.ones(n, bool) for n in stream.lengths], [~one for one in marks])
    vectors = [unit(one, f"hidden of text {text}") for text, one in enumerate(stream.hidden)]

    found: states.Variables = {"tokens": (("text",), np.array(stream.lengths))}
    sink = np.zeros((stream.texts, max(stream.lengths)), bool)
    for text, one in enumerate(marks):
        sink[text, : len(one)] = one
    found["sink"] = (("text", "token"), sink)
    if stream.attention is not None and {"heads", "updates", "energy"} & set(families):
        found |= heads.attended(stream, vectors, marks, whole("bootstrap", bootstrap, 0), seed)
    betas = _betas(stream, found, beta)
    steady = max(float(np.median(betas)), 0.0) if energy_beta is None else number("energy_beta", energy_beta)
    if "overlaps" in families:
        found |= states.overlaps(stream, kept, quantiles, bins)
    if "rank" in families:
        found |= states.ranks(stream, kept)
    if "clusters" in families:
        found |= states.counts(stream, kept, link)
    if "energy" in families:
        found |= states.energies(stream, kept, steady)
    if "norms" in families:
        found |= states.norms(stream, kept)
    if "updates" in families and stream.states > 1:
        found |= updates.explained(stream, vectors, kept, betas)
        found["velocity_beta"] = (("text", "layer"), betas)
        if stream.after_attention is not None:
            found |= updates.sublayers(stream, kept)
    if "step" in families and stream.states > 1:
        found |= one_step(stream, vectors, kept)
    if "lens" in families and stream.unembedding is not None:
        found |= lens.lens(stream, whole("lens_layers", lens_layers, 1))
    if "matrices" in families and network is not None:
        found |= heads.matrices(network, stream.states)
    coordinates = {
        "layer": np.arange(stream.states),
        "kept": list(KEPT),
        "view": list(states.VIEWS),
        "quantile": list(quantiles),
        "bin": (np.arange(bins) + 0.5) * 2 / bins - 1,
        "part": list(updates.PARTS),
        "readout": list(lens.READOUTS),
    }
    used = {dim for dims, _ in found.values() for dim in dims}
    attributes = {
        "network": stream.name,
        "causal": int(stream.causal),
        "width": stream.width,
        "link": link,
        "energy_beta": steady,
        "notes": list(stream.notes),
        "facts": json.dumps(stream.facts, default=str),
    }
    return xr.Dataset(
        {name: (dims, values, {"about": ABOUT[name]}) for name, (dims, values) in found.items()},
        {name: values for name, values in coordinates.items() if name in used},
        attributes,
    )


def checked_families(families: Any) -> tuple[str, ...]:
    """The families as a tuple; one name stands for itself."""
    some = (families,) if isinstance(families, str) else tuple(instance("families", families, Sequence, "a list"))
    if unknown := [one for one in some if one not in FAMILIES]:
        raise InvalidInput(f"`families` has {shown(unknown[0])}; choose from {', '.join(FAMILIES)}.")
    return some


def _betas(stream: Stream, found: states.Variables, beta: float | None) -> np.ndarray:
    """(text, layer) the inverse temperature of the velocity: given, or fitted, the median head."""
    shape = (stream.texts, stream.states)
    if beta is not None:
        return np.full(shape, number("beta", beta))
    if "beta" not in found:
        return np.ones(shape)
    fitted = found["beta"][1]
    known = np.asarray(np.isfinite(fitted).any(axis=-1))
    betas = np.ones(shape)
    betas[known] = np.nanmedian(fitted[known], axis=-1)
    for text in range(stream.texts):  # the last state has no layer: it takes the value of the one before
        layers = np.flatnonzero(known[text])
        if len(layers):
            betas[text, layers[-1] + 1 :] = betas[text, layers[-1]]
    return betas

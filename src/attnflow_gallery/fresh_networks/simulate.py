"""Attention of fresh networks on texts: by how much each layer changes the mean overlap, and the predicted change."""

import dataclasses
import functools

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Salted, Study
from attnflow.experiments.kit import activations, passages, reactions
from attnflow.probe import Stream, networks

OWN, SHARED = "own", "shared"
"""Every layer has weights of its own, or one layer is applied again and again."""
SHAPES = {
    "rxnmapper": {"layers": 12, "heads": 8, "width": 256, "hidden": 512},
    "minilm": {"layers": 6, "heads": 12, "width": 384, "hidden": 1536},
}
"""The sizes of two encoders of the catalogue."""
WAYS = {"rxnmapper": (OWN, SHARED), "minilm": (OWN,)}
"""rxnmapper repeats one layer."""
DEVIATION = 0.02
"""Of the entries of fresh matrices."""
FAMILIES = {OWN: "bert", SHARED: "albert"}


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """Which shapes, and how many fresh networks of each; the salt draws weights and texts."""

    shapes: tuple[str, ...] = tuple(SHAPES)
    draws: int = 100
    """Fresh networks of a shape, each on one text, in turn."""
    texts: int = 50
    tokens: int = 64
    """Of a text, at most."""


QUICK = Parameters(shapes=("rxnmapper",), draws=24, texts=24)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Measured and predicted changes (draw, layer) of every shape and way to use weights."""
    return study.parts(
        {name(which, way): (look, parameters, which, way) for which in parameters.shapes for way in WAYS[which]}
    )


def name(which: str, way: str) -> str:
    """Of a part."""
    return f"{which}-{way}"


def texts_of(which: str, parameters: Parameters) -> tuple[list[np.ndarray], int]:
    """Numbers of the signs of reactions, or of the words of passages, and how many different ones there are."""
    pool = [list(one) for one in reactions(60)] if which == "rxnmapper" else [one.split() for one in passages(50)]
    numbers = {piece: k for k, piece in enumerate(sorted({piece for text in pool for piece in text}))}
    chosen = parameters.rng(1, *which.encode()).permutation(len(pool))[: parameters.texts]
    texts = [np.array([numbers[piece] for piece in pool[k][: parameters.tokens]]) for k in chosen]
    return texts, len(numbers)


@functools.lru_cache(maxsize=4)
def shaped(which: str, way: str, words: int) -> networks.Network:
    """A network of this shape."""
    return networks.random_network(FAMILIES[way], **SHAPES[which], vocabulary=words)


def fresh(which: str, way: str, words: int, seed: int) -> networks.Network:
    """A network of this shape with fresh weights."""
    return shaped(which, way, words).null("init", seed)


def look(parameters: Parameters, which: str, way: str) -> xr.Dataset:
    """Changes of the mean overlap by attention (draw, layer), measured and predicted, and the time of a layer."""
    texts, words = texts_of(which, parameters)
    seeds = parameters.rng(2, *name(which, way).encode()).integers(2**31, size=parameters.draws)
    measured, predicted = [], []
    for draw, seed in enumerate(seeds):
        net = fresh(which, way, words, int(seed))
        stream = activations(net, texts[draw % len(texts)])
        measured.append(changes(stream))
        predicted.append(drifts(stream))
    dims = ("draw", "layer")
    return xr.Dataset(
        {
            "measured": (dims, np.array(measured)),
            "predicted": (dims, np.array(predicted)),
            "time": ((), time_of(stream.width)),
        }
    )


def changes(stream: Stream) -> np.ndarray:
    """(layer,) the mean overlap of pairs after attention less that before it."""
    before, after = stream.hidden[0][:-1], stream.after_attention[0]  # type: ignore[index]
    return np.array([_mean(_gram(y)) - _mean(_gram(x)) for x, y in zip(before, after, strict=True)])


def time_of(width: int) -> float:
    """tau of one layer, whose heads have `width` rows together: a layer norm takes one of the dimensions away."""
    return float(DEVIATION**4 * width * (width - 1))


def drifts(stream: Stream) -> np.ndarray:
    """(layer,) tau times the mean drift over pairs, for the tokens that enter each layer."""
    scale, d = DEVIATION**2 * stream.width, stream.width - 1
    found = []
    for x in stream.hidden[0][:-1]:
        gram = _gram(x)
        products = theory.random_layers.small_logit_products(gram, scale)
        own = np.diag(products)
        found.append(_mean(theory.random_layers.overlap_drift(gram, products, own[:, None], own[None], d=d)))
    return time_of(stream.width) * np.array(found)


def _gram(x: np.ndarray) -> np.ndarray:
    u = np.asarray(x, float)
    u = u / np.linalg.norm(u, axis=-1, keepdims=True)
    gram = np.clip(u @ u.T, -1.0, 1.0)
    np.fill_diagonal(gram, 1.0)
    return gram


def _mean(table: np.ndarray) -> float:
    """Over pairs of different tokens."""
    return float((table.sum() - np.trace(table)) / (len(table) * (len(table) - 1)))

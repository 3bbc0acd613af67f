"""Next-token distributions of a prompt and of its variants, with and without what breaks each invariance."""

import dataclasses
from typing import Any

import numpy as np
import xarray as xr

from attnflow import in_float64
from attnflow.experiments import Salted, Study
from attnflow.fields import Attention
from attnflow.fields.encodings import NoEncoding, Rotary, Sinusoidal
from attnflow.flows import Fixed, solve
from attnflow.masks import Causal, Everyone
from attnflow.text import Embedding, KernelSum, LastToken, Mixture, from_text, next_token_distribution, random_embedding
from attnflow.tokens import Tokens, stack

PROMPT = "the cat sat on the mat and the dog ran"
FIELDS = "plain", "sinusoids", "rotary", "causal"


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """A prompt of ten words, random directions."""

    dim: int = 16
    vocabulary: int = 100
    beta: float = 2.0
    read: float = 8.0
    until: float = 2.0
    step: float = 0.05
    copies: int = 3
    shift: int = 5
    size: float = 0.7
    """Of sinusoids."""
    prefix: int = 6
    draws: int = 3


QUICK = Parameters(draws=1)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Every kind of field."""
    return study.parts({kind: (_variants, parameters, kind) for kind in FIELDS})


def field(parameters: Parameters, kind: str) -> Attention:
    """Softmax attention; rotary or causal if `kind` says so."""
    encoding = Rotary() if kind == "rotary" else NoEncoding()
    return Attention(parameters.beta, mask=Causal() if kind == "causal" else Everyone(), encoding=encoding)


def tokens(parameters: Parameters, kind: str, words: list[str], table: Embedding, shift: int = 0) -> Tokens:
    """A text as tokens whose places begin at `shift`."""
    made = from_text(" ".join(words), embedding=table)
    places = np.arange(len(words)) + shift
    x = np.asarray(made.positions)
    if kind == "sinusoids":
        added: Any = Sinusoidal(parameters.size)
        x = np.asarray(in_float64(added.before)(x, places))
        x = x / np.linalg.norm(x, axis=1, keepdims=True)
    return Tokens(x, place=places, labels=made.labels)


def rotation(rng: np.random.Generator, dim: int) -> np.ndarray:
    """A random orthogonal matrix."""
    return np.asarray(np.linalg.qr(rng.standard_normal((dim, dim)))[0])


def _variants(parameters: Parameters, kind: str) -> xr.Dataset:
    """Largest |p(w) - p'(w)| of every variant, (draw,); all variants of all draws flow side by side."""
    prompts: list[Tokens] = []
    tables: list[tuple[np.ndarray, np.ndarray]] = []
    words, names = PROMPT.split(), ("order", "repeated", "rotated", "shifted", "prefix")
    for draw in range(parameters.draws):
        rng, seed = parameters.rng(draw), parameters.seed(draw)
        distinct = list(dict.fromkeys(words))
        table = random_embedding(distinct, dim=parameters.dim, vocabulary=parameters.vocabulary, seed=seed)
        turned = Embedding(table.words, table.vectors @ rotation(rng, parameters.dim))
        other = [words[k] for k in rng.permutation(len(words))]
        prompts += [
            tokens(parameters, kind, words, table),
            tokens(parameters, kind, other, table),
            tokens(parameters, kind, words * parameters.copies, table),
            tokens(parameters, kind, words, turned),
            tokens(parameters, kind, words, table, shift=parameters.shift),
            tokens(parameters, kind, words[: parameters.prefix], table),
        ]
        tables.append((table.vectors, turned.vectors))
    every = stack("prompt", range(len(prompts)), prompts)
    ends = solve(field(parameters, kind), every, parameters.until, save=1, method=Fixed(parameters.step)).tokens(-1)
    each = len(names) + 1
    rows = [
        _changes(parameters, [ends.member(prompt=each * k + j) for j in range(each)], *tables[k])
        for k in range(parameters.draws)
    ]
    return xr.Dataset({name: ("draw", np.array([row[name] for row in rows])) for name in names})


def _changes(parameters: Parameters, ends: list[Tokens], vectors: np.ndarray, turned: np.ndarray) -> dict[str, float]:
    """Largest change of p(w) of every variant of one draw."""
    whole, other, repeated, rotated, shifted, short = ends

    def read(prompt: Tokens, words: np.ndarray = vectors, readout: Any = None) -> np.ndarray:
        found = next_token_distribution(prompt, words, beta=parameters.read, readout=readout)
        return np.asarray(found.probabilities)

    def off(one: np.ndarray, two: np.ndarray) -> float:
        return float(np.max(np.abs(one - two)))

    both = [(read(whole, readout=readout), read(other, readout=readout)) for readout in (Mixture(), KernelSum())]
    inside = Tokens(np.asarray(whole.positions)[parameters.prefix - 1][None])
    return {
        "order": max(off(*pair) for pair in both),
        "repeated": off(read(whole), read(repeated)),
        "rotated": off(read(whole), read(rotated, turned)),
        "shifted": off(read(whole), read(shifted)),
        "prefix": off(read(inside), read(short, readout=LastToken())),
    }

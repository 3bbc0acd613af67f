"""A layer of a network as a field of the library."""

from typing import Any

import numpy as np

from attnflow.fields import Attention, Biased, GatedPerceptron, LayerNorm, Perceptron, Post, Pre, RmsNorm, Rotary
from attnflow.fields.base import AbstractField
from attnflow.masks import Causal
from attnflow.probe.networks.families.base import Architecture, Table


def field_of(shape: Architecture, halves: tuple[str, ...], weights: Table, heads: Any) -> AbstractField:
    """Attention + perceptron, each with its norm; a half that a null takes out is multiplied by 0."""
    own = {name: values.astype(np.float64) for name, values in weights.items()}
    beta = shape.key_width**-0.5
    on = {half: float(half in halves) for half in ("attention", "perceptron")}
    if shape.family == "llama":
        attention = Attention(
            beta,
            query=heads.query,
            key=heads.key,
            value=heads.value,
            output=heads.output,
            average="sum",
            mask=Causal(),
            encoding=Rotary(shape.base, shape.pairing),
        )
        gated = GatedPerceptron(own["gate"], own["up"], own["outer"], "silu")
        first = Pre(on["attention"] * attention, RmsNorm(own["norm1.gain"], eps=shape.eps))
        return first + Pre(on["perceptron"] * gated, RmsNorm(own["norm2.gain"], eps=shape.eps))

    def biased(name: str, matrices: np.ndarray) -> Biased:
        return Biased(matrices, own[f"{name}.bias"].reshape(matrices.shape[:-1]))

    attention = Attention(
        beta,
        query=biased("query", heads.query),
        key=biased("key", heads.key),
        value=biased("value", heads.value),
        output=Biased(heads.output, own["output.bias"]),
        average="sum",
    )
    inner, outer = (Biased(own[name], own[f"{name}.bias"]) for name in ("inner", "outer"))
    perceptron = Perceptron(inner, outer=outer, activation=shape.activation)
    norms = [LayerNorm(own[f"norm{k}.gain"], own[f"norm{k}.bias"], eps=shape.eps) for k in (1, 2)]
    return Post(on["attention"] * attention, norms[0]) + Post(on["perceptron"] * perceptron, norms[1])

"""Gated perceptron blocks: SwiGLU, GEGLU, ReGLU."""

from typing import Any

import jax.numpy as jnp

from attnflow.errors import InvalidInput
from attnflow.fields.activations import AbstractActivation, as_activation
from attnflow.fields.base import AbstractField, Laws, Points
from attnflow.fields.linear import as_weights
from attnflow.fields.perceptron import check_outwards, outwards, required
from attnflow.fields.queries import AbstractQuery
from attnflow.fields.structure import Part
from attnflow.fields.weights import AbstractWeight
from attnflow.precision import in_float64
from attnflow.spaces import AbstractSpace
from attnflow.tokens import Measure, Tokens


class GatedPerceptron(AbstractField):
    """X(x) = W (sigma(G x + g) * (U x + u)) + c: a feed-forward block in which one layer opens and shuts another.

    The product is taken number by number. With "silu" it is SwiGLU, with "gelu" GEGLU, with "relu" ReGLU
    (arXiv:2002.05202). Llama (arXiv:2302.13971) has SwiGLU without biases: G is its `gate_proj`, U its `up_proj`, W its
    `down_proj`. Like `Perceptron` it reads the token and not the measure. It grows like |x|^2: a flow in R^d without a
    norm in front (`Pre`) may reach infinity in finite time.

    Arguments:
        gate: G, shape (width, dim), or `Biased(G, g)`.
        up: U, shape (width, dim), or `Biased(U, u)`.
        outer: W, shape (dim, width), or `Biased(W, c)`; none is the identity, which needs width = dim.
        activation: "silu", "gelu", "gelu-tanh", "relu", "tanh", an activation, or a function.

    Weights are arrays, `PerLayer`, `Interpolated`, `Random` or functions of t.
    """

    gate: AbstractWeight
    gate_bias: AbstractWeight | None
    up: AbstractWeight
    up_bias: AbstractWeight | None
    outer: AbstractWeight | None
    outer_bias: AbstractWeight | None
    """c, the bias of `outer`."""
    activation: AbstractActivation

    def __init__(self, gate: Any, up: Any, outer: Any = None, activation: Any = "silu"):
        self.gate, self.gate_bias = required("gate", gate)
        self.up, self.up_bias = required("up", up)
        self.outer, self.outer_bias = as_weights("outer", outer)
        self.activation = as_activation(activation)

    def formula(self, t: Any, query: AbstractQuery, mu: Measure) -> Points:
        return self.map(t, query.points(mu))

    def children(self, space: AbstractSpace) -> tuple[Part, ...]:
        return ()

    @in_float64
    def map(self, t: Any, x: Any) -> Any:
        """W (sigma(G x + g) * (U x + u)) + c for every row of `x`."""
        x = jnp.asarray(x)
        opened = self.activation(outwards(t, x, self.gate, self.gate_bias))
        return outwards(t, opened * outwards(t, x, self.up, self.up_bias), self.outer, self.outer_bias)

    def check_parameters(self, tokens: Tokens | Measure) -> None:
        d, shape = tokens.dim, self.gate.shape
        for name, matrix, bias in (("gate", self.gate, self.gate_bias), ("up", self.up, self.up_bias)):
            if len(matrix.shape) != 2 or matrix.shape[1] != d:
                raise InvalidInput(
                    f"`{name}` has shape {matrix.shape}, but the tokens live in dimension {d}; give (width, {d})."
                )
            if matrix.shape != shape:
                raise InvalidInput(
                    f"`up` has shape {matrix.shape} and `gate` {shape}: they are multiplied number by number, so give "
                    "both the same width."
                )
            if bias is not None and bias.shape != shape[:1]:
                raise InvalidInput(
                    f"the bias of `{name}` has shape {bias.shape}, but its matrix has {shape[0]} rows; give "
                    f"({shape[0]},)."
                )
        check_outwards("gate", shape, self.outer, self.outer_bias, d)

    @property
    def laws(self) -> Laws:
        weights = (self.gate, self.gate_bias, self.up, self.up_bias, self.outer, self.outer_bias)
        steady = all(weight is None or weight.is_continuous for weight in weights)
        return Laws(rotation=False, exchangeable=True, lipschitz=True, steady=steady)

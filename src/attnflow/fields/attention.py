"""Attention as a field on measures."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from attnflow.axes import Along
from attnflow.errors import InvalidInput
from attnflow.fields.base import AbstractField, Places, Points
from attnflow.fields.kernels import Exponential
from attnflow.fields.linear import AbstractLinearMap, Identity, as_linear_map
from attnflow.fields.normalisers import AbstractNormaliser, Softmax
from attnflow.masks import AbstractMask, Everyone
from attnflow.precision import double, is_concrete
from attnflow.sums import Tiled
from attnflow.tokens import Tokens


class Attention(AbstractField):
    """X[mu](x) = sum_j A_j(x) V y_j, weights A_j(x) proportional to m_j exp(beta <Qx, Ky_j>).

    `Attention(beta=9.0)` is softmax self-attention with Q = K = V = I (the model SA);
    `Attention(beta=9.0, normaliser=Unnormalised())` its gradient-flow sister (USA0). The weight of a token on itself
    moves nothing, but counts in the softmax denominator. Memory is bounded by the tile of `sum`, never n x n.

    Theory: arXiv:2312.10794; USA0 is the clock of arXiv:2410.06833.
    """

    kernel: Exponential
    value: AbstractLinearMap
    normaliser: AbstractNormaliser
    mask: AbstractMask
    sum: Tiled

    def __init__(
        self,
        beta: Any,
        *,
        query: Any = None,
        key: Any = None,
        value: Any = None,
        normaliser: AbstractNormaliser | None = None,
        mask: AbstractMask | None = None,
        sum: Tiled | None = None,
    ):
        self.kernel = Exponential(beta, query, key)
        self.value = as_linear_map(value)
        self.normaliser = Softmax() if normaliser is None else normaliser
        self.mask = Everyone() if mask is None else mask
        self.sum = Tiled() if sum is None else sum
        number = beta.values if isinstance(beta, Along) else beta
        if is_concrete(number):
            self.normaliser.check(float(np.min(number)), float(np.max(number)))

    @property
    def beta(self) -> Any:
        """Inverse temperature."""
        return self.kernel.beta

    @property
    def is_plain(self) -> bool:
        """Whether Q = K = V = I and everyone sees everyone, so that the energy is a Lyapunov function."""
        return self.kernel.is_plain and isinstance(self.value, Identity) and isinstance(self.mask, Everyone)

    @double
    def drive(self, t: Any, x: Points, mu: Tokens, place: Places | None = None) -> Points:
        x = jnp.asarray(x)
        y = jnp.asarray(mu.positions, x.dtype)
        if place is None and self.mask.needs_place:
            raise InvalidInput(f"the mask {self.mask} needs `place`, the places of the query points; none was given.")
        place = jnp.zeros(x.shape[:1], int) if place is None else jnp.asarray(place)
        charges = jnp.concatenate([jnp.ones((y.shape[0], 1), x.dtype), self.value(y)], axis=1)
        scale, sums = self.sum(
            lambda q, k: self.kernel.log_weight(q[0], k[0]) + self.mask.bias(q[1], k[1]).astype(x.dtype),
            (self.kernel.query_features(x), place),
            (self.kernel.key_features(y), jnp.asarray(mu.place)),
            jnp.asarray(mu.masses, x.dtype),
            charges,
        )
        return self.normaliser(scale, sums[:, 0], sums[:, 1:], jnp.asarray(self.beta, x.dtype))

    def check(self, tokens: Tokens) -> None:
        self.kernel.check(tokens.dim)
        self.value.check("value", tokens.dim)

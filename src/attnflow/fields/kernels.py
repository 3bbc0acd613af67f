"""How much a token at x listens to a token at y."""

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow.axes import Along, scalar
from attnflow.fields.linear import AbstractLinearMap, Identity, as_linear_map


class AbstractKernel(eqx.Module):
    """The log weight of a pair, a function of the features of query and key (computed once per point)."""

    @abc.abstractmethod
    def query_features(self, x: Float[Array, "query dim"]) -> Float[Array, "query feature"]:
        """Features of the points that listen."""

    @abc.abstractmethod
    def key_features(self, y: Float[Array, "key dim"]) -> Float[Array, "key feature"]:
        """Features of the tokens that are listened to."""

    @abc.abstractmethod
    def log_weight(
        self, query: Float[Array, "query feature"], key: Float[Array, "key feature"]
    ) -> Float[Array, "query key"]:
        """Log of the weight of every pair."""

    @abc.abstractmethod
    def check(self, dim: int) -> None:
        """Refuse parameters that do not fit tokens of this dimension."""


class Exponential(AbstractKernel):
    """exp(beta (<Qx, Ky> - 1)): with Q = K = I on the sphere at most 1, a Gaussian of bandwidth beta^(-1/2).

    beta is an inverse temperature; softmax(Q K^T / sqrt(d_k)) is beta = 1/sqrt(d_k).
    """

    beta: Float[Array | np.ndarray, ""] | Along
    query: AbstractLinearMap
    key: AbstractLinearMap

    def __init__(self, beta: Any, query: Any = None, key: Any = None):
        self.beta = scalar("beta")(beta)
        self.query = as_linear_map(query)
        self.key = as_linear_map(key)

    @property
    def is_plain(self) -> bool:
        """Whether Q = K = I."""
        return isinstance(self.query, Identity) and isinstance(self.key, Identity)

    def query_features(self, x: Float[Array, "query dim"]) -> Float[Array, "query feature"]:
        return self.query(x)

    def key_features(self, y: Float[Array, "key dim"]) -> Float[Array, "key feature"]:
        return self.key(y)

    def log_weight(
        self, query: Float[Array, "query feature"], key: Float[Array, "key feature"]
    ) -> Float[Array, "query key"]:
        beta = jnp.asarray(self.beta, query.dtype)
        return (beta * query) @ key.T - beta

    def check(self, dim: int) -> None:
        self.query.check("query", dim)
        self.key.check("key", dim)

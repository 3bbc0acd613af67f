"""One ReLU unit, whose flow is known exactly in R^d and on the sphere."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow.fields.base import Laws
from attnflow.fields.exact.base import AbstractJoint, check_constant, constant, constant_laws
from attnflow.fields.exact.gates import gate_flow
from attnflow.fields.queries import AbstractQuery, Points
from attnflow.fields.structure import Part
from attnflow.fields.weights import AbstractWeight, as_weight
from attnflow.spaces import AbstractSpace, Euclidean
from attnflow.special.quotients import expm1_ratio
from attnflow.tokens import Measure, Tokens

_gate = jax.jit(gate_flow)  # compiled as a whole: hundreds of operations one by one take longer


class ReluUnit(AbstractJoint):
    """X(x) = w (<a, x> + b)_+: one unit of a perceptron, with w, a, b constant between jumps. No token feels another.

    R^d: with k = <a, w> the flow over a time h is x -> x + h phi(k h) (<a, x> + b)_+ w, phi(z) = (e^z - 1)/z, and its
    log-determinant is k h where <a, x> + b > 0. That is a residual layer x + u (<a, x> + b)_+ with 1 + <a, u> > 0, and
    every such layer is one (w = u log(1 + <a, u>)/<a, u>).

    Sphere: points with <a, x> + b <= 0 stand still; the others are boosted along w, by a length that solves a scalar
    equation in closed form (`fields.exact.gates`). So a cap is moved inside itself, and all else is fixed
    (arXiv:2411.04551 uses this field; the closed forms are ours).

    `outer` is w and `inner` a, both of shape (dim,), `bias` is b, a number; arrays, `Pieces`, `PerLayer` or `Random`.
    """

    outer: AbstractWeight
    inner: AbstractWeight
    bias: AbstractWeight

    def __init__(self, outer: Any, inner: Any, bias: Any = 0.0):
        self.outer, self.inner = as_weight("outer", outer), as_weight("inner", inner)
        self.bias = as_weight("bias", bias)

    def formula(self, t: Any, query: AbstractQuery, mu: Measure) -> Points:
        x = query.points(mu)
        w, a, b = self._at(t, x.dtype)
        return jnp.maximum(x @ a + b, 0.0)[:, None] * w[None]

    def flow(self, t0: Any, t1: Any, query: AbstractQuery, mu: Measure) -> tuple[Points, Float[Array, " query"]]:
        x = query.points(mu)
        return unit_flow(mu.space, x, *self._at((t0 + t1) / 2, x.dtype), jnp.asarray(t1 - t0, x.dtype))

    @property
    def is_free(self) -> bool:
        return True

    def lipschitz(self, space: AbstractSpace) -> Any:
        w, a = (np.linalg.norm(constant(weight), axis=-1) for weight in (self.outer, self.inner))
        return w * a if isinstance(space, Euclidean) else w * (2 * a + np.abs(constant(self.bias)))

    def times(self, factor: float) -> "ReluUnit":
        return ReluUnit(factor * constant(self.outer), self.inner, self.bias)

    def children(self, space: AbstractSpace) -> tuple[Part, ...]:
        return ()

    def check_parameters(self, tokens: Tokens | Measure) -> None:
        d = tokens.dim
        check_constant(self, tokens, outer=(d,), inner=(d,), bias=())

    @property
    def laws(self) -> Laws:
        return constant_laws(self.outer, self.inner, self.bias)

    def _at(self, t: Any, dtype: Any) -> tuple[Any, Any, Any]:
        return self.outer.at(t, dtype), self.inner.at(t, dtype), self.bias.at(t, dtype)


def unit_flow(space: AbstractSpace, x: Any, w: Any, a: Any, b: Any, h: Any) -> tuple[Any, Any]:
    """(where x' = P_x w (<a, x> + b)_+ carries the rows of x in time h, log-determinants)."""
    if isinstance(space, Euclidean):
        k = a @ w
        height = jnp.maximum(x @ a + b, 0.0)
        moved = x + (h * expm1_ratio(k * h) * height)[:, None] * w[None]
        return moved, jnp.where(height > 0, k * h, 0.0)
    flown: tuple[Any, Any] = _gate(x, w, a, b, h)
    return flown

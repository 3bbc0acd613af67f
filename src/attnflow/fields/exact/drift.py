"""A constant vector, which translates R^d and boosts the sphere."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow.fields.base import Laws
from attnflow.fields.exact.base import AbstractJoint, check_constant, constant, constant_laws
from attnflow.fields.queries import AbstractQuery, Points
from attnflow.fields.structure import Part
from attnflow.fields.weights import AbstractWeight, as_weight
from attnflow.spaces import AbstractSpace, Euclidean
from attnflow.tokens import Measure, Tokens

LONGEST = 300.0
"""A boost takes every point but the opposite one to its goal, to rounding, long before this length."""


class Drift(AbstractJoint):
    """X(x) = y, the same vector everywhere: the bias of a layer. No token feels another.

    R^d: the flow over a time h translates by h y. Sphere: it is a boost, the Moebius map towards y/|y| by the length
    h |y| (`random_layers.boost` has the formula); its log-determinant is (d-1) log(4 q/(|e+x|^2 + q^2 |e-x|^2)) with
    e = y/|y|, q = e^(-h|y|).
    """

    vector: AbstractWeight

    def __init__(self, vector: Any):
        self.vector = as_weight("vector", vector)

    def formula(self, t: Any, query: AbstractQuery, mu: Measure) -> Points:
        x = query.points(mu)
        return jnp.broadcast_to(self.vector.at(t, x.dtype), x.shape)

    def flow(self, t0: Any, t1: Any, query: AbstractQuery, mu: Measure) -> tuple[Points, Float[Array, " query"]]:
        x = query.points(mu)
        h, y = jnp.asarray(t1 - t0, x.dtype), self.vector.at((t0 + t1) / 2, x.dtype)
        if isinstance(mu.space, Euclidean):
            return x + h * y[None], jnp.zeros(x.shape[:1], x.dtype)
        axis, size = direction(y)
        moved, factor = jax.vmap(boosted_along, in_axes=(0, None, None, None))(
            x, jnp.zeros((), x.dtype), axis, h * size
        )
        moved = moved / jnp.sqrt(jnp.sum(moved**2, axis=1, keepdims=True))
        return moved, (x.shape[1] - 1) * jnp.log(factor)

    @property
    def is_free(self) -> bool:
        return True

    def lipschitz(self, space: AbstractSpace) -> Any:
        return 0.0 if isinstance(space, Euclidean) else np.linalg.norm(constant(self.vector), axis=-1)

    def times(self, factor: float) -> "Drift":
        return Drift(factor * constant(self.vector))

    def children(self, space: AbstractSpace) -> tuple[Part, ...]:
        return ()

    def check_parameters(self, tokens: Tokens | Measure) -> None:
        check_constant(self, tokens, vector=(tokens.dim,))

    @property
    def laws(self) -> Laws:
        return constant_laws(self.vector)


def direction(b: Any) -> tuple[Any, Any]:
    """b/|b| and |b|; both are 0 for b = 0 and where the square of b has no digits left, which moves nothing."""
    square = jnp.sum(b**2)
    counts = square > jnp.finfo(b.dtype).tiny / jnp.finfo(b.dtype).eps
    size = jnp.sqrt(jnp.where(counts, square, 1.0))
    return jnp.where(counts, b / size, 0.0), jnp.where(counts, size, 0.0)


def boosted(x: Any, gap: Any, b: Any) -> tuple[Any, Any]:
    """(the point x of the ball, whose 1 - |x|^2 is `gap`, after a boost; the factor of lengths, and of the gap)."""
    return boosted_along(x, gap, *direction(b))


def boosted_along(x: Any, gap: Any, axis: Any, length: Any) -> tuple[Any, Any]:
    """`boosted` by the vector length * axis, with |axis| = 1 and length of either sign."""
    ahead = length >= 0
    e, r = jnp.where(ahead, axis, -axis), jnp.where(ahead, length, -length)
    q = jnp.exp(-jnp.minimum(r, LONGEST))
    to, fro = jnp.sum((x + e) ** 2), jnp.sum((x - e) ** 2)
    # x - <x, e> e by the nearer of e and -e, where the difference loses nothing
    across = jnp.where(to < fro, x + e - (to + gap) / 2 * e, x - e + (fro + gap) / 2 * e)
    across = across - jnp.sum(across * e) * e  # what rounding of e has left, which a long boost would show
    below = to + 2 * q * gap + q**2 * fro
    moved = ((to - q**2 * fro) * e + 4 * q * across) / below
    moves = jnp.any(axis != 0)
    return jnp.where(moves, moved, x), jnp.where(moves, 4 * q / below, 1.0)

"""The linearised flow at a configuration, as a map on tangent vectors.

At x = (x_1, ..., x_n) the linearisation of the velocity F is the covariant derivative v -> P_x DF(x)[v]. It is taken by
forward-mode differentiation of the field itself, so it is exact for every field, and it needs no matrix.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow.errors import InvalidInput
from attnflow.fields import AbstractField
from attnflow.fields.base import tangent_drive
from attnflow.precision import double
from attnflow.spaces import Sphere
from attnflow.tokens import Tokens


def tangent_frames(tokens: Tokens) -> np.ndarray:
    """(n, dim of the space, d): an orthonormal basis of the tangent space at every token.

    On the sphere the columns of the reflection that carries a basis vector to x, that vector left out; all of R^d else.
    """
    x = np.asarray(tokens.positions, dtype=np.float64)
    n, d = x.shape
    if not isinstance(tokens.space, Sphere):
        return np.broadcast_to(np.eye(d), (n, d, d)).copy()
    sign = np.where(x[:, -1] >= 0, 1.0, -1.0)
    w = x.copy()
    w[:, -1] += sign  # no cancellation: the reflection carries e_d to -sign x
    reflection = np.eye(d) - 2 * w[:, :, None] * w[:, None, :] / np.sum(w**2, axis=1)[:, None, None]
    return reflection[:, : d - 1, :]


def jacobian_operator(field: AbstractField, tokens: Tokens, t: float = 0.0) -> Callable[[np.ndarray], np.ndarray]:
    """The map v -> P_x DF(x)[v] on arrays (n, d) of tangent vectors; one compiled field derivative per call."""
    one_system(field, tokens)

    def apply(v: np.ndarray) -> np.ndarray:
        return _apply(field, tokens, jnp.asarray(t, float), v)

    return double(apply)


def one_system(field: AbstractField, tokens: Tokens) -> None:
    """Refuse batches and parameters that do not fit."""
    if tokens.dims:
        raise InvalidInput(f"`tokens` has batch dimensions {tokens.dims}; pick one system with `member`.")
    field.check(tokens)


def linearised(field: AbstractField, tokens: Tokens, t: Any) -> Callable[[Any], Any]:
    """The pure form of `jacobian_operator`."""
    space = tokens.space
    x = jnp.asarray(tokens.positions)

    def velocity(y: Any) -> Any:
        y = space.retract(y)  # constant along normals, so the derivative is that of the field on the space
        return tangent_drive(field, t, y, tokens.moved(y), tokens.place)

    def apply(v: Any) -> Any:
        return space.tangent(x, jax.jvp(velocity, (x,), (space.tangent(x, v),))[1])

    return apply


@eqx.filter_jit
def _apply(field: AbstractField, tokens: Tokens, t: Any, v: Any) -> Any:
    return linearised(field, tokens, t)(jnp.asarray(v))

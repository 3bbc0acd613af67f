"""The linearised flow at a configuration, as a map on tangent vectors.

At x = (x_1, ..., x_n) the linearisation of the velocity F is the covariant derivative v -> P_x DF(x)[v], where P_x is
`space.tangent`. On ellipsoids and centred spheres P_x is not orthogonal: it is the orthogonal projection of the round
sphere that division by the gain makes of the space. At an equilibrium DF(x) maps tangent vectors to tangent vectors,
and P_x changes nothing. The derivative is taken by forward-mode differentiation of the field itself, so it is exact for
every field, and it needs no matrix.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow.axes import one_system
from attnflow.fields import AbstractField
from attnflow.fields.argument_checks import checked_arguments
from attnflow.fields.base import tangent_drive
from attnflow.fields.queries import AtTokens
from attnflow.precision import in_float64
from attnflow.tokens import Measure, Tokens, all_present


@checked_arguments
def tangent_bases(tokens: Tokens) -> np.ndarray:
    """(n, dimension of the space, d): orthonormal bases of the tangent spaces (`space.tangent_basis`)."""
    return tokens.space.tangent_basis(np.asarray(tokens.positions, dtype=np.float64))


@checked_arguments
def jacobian_operator(field: AbstractField, tokens: Tokens, t: float = 0.0) -> Callable[[np.ndarray], np.ndarray]:
    """The map v -> P_x DF(x)[v] on arrays (n, d) of tangent vectors; one compiled field derivative per call."""
    check(field, tokens)

    def apply(v: np.ndarray) -> Any:
        return _apply(field, tokens.measure, jnp.asarray(t, float), v)

    return in_float64(apply)


def check(field: AbstractField, tokens: Tokens) -> None:
    """Refuse batches, absent rows and parameters that do not fit."""
    one_system(field, tokens)
    all_present(tokens, "a linearised flow")
    field.check(tokens)


def tangent_map(field: AbstractField, tokens: Measure, t: Any) -> Callable[[Any], Any]:
    """The pure form of `jacobian_operator`."""
    space = tokens.space
    x = jnp.asarray(tokens.positions)

    def velocity(y: Any) -> Any:
        y = space.retract(y)  # constant along normals, so the derivative is that of the field on the space
        return tangent_drive(field, t, AtTokens(), tokens.moved(y))

    def apply(v: Any) -> Any:
        return space.tangent(x, jax.jvp(velocity, (x,), (space.tangent(x, v),))[1])

    return apply


@eqx.filter_jit
def _apply(field: AbstractField, tokens: Measure, t: Any, v: Any) -> Any:
    return tangent_map(field, tokens, t)(jnp.asarray(v))

"""How spread out a measure is and how fast it moves: order parameter, effective rank, radius, speed.

Pure functions of tokens or of a `Measure`: they give float64 NumPy arrays, and stay traced under `jit`, `grad` and
`vmap`. The derivative of a norm that vanishes is taken to be 0, which is a subgradient. Absent rows have no mass and
no part in any of them.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from attnflow.errors import InvalidInput
from attnflow.fields import AbstractField
from attnflow.fields.argument_checks import checked_arguments
from attnflow.observe.observable import along, observable
from attnflow.precision import in_float64, is_traced
from attnflow.special.formula import Other, formula
from attnflow.tokens import Measure, Tokens

TOKENS = Other("tokens of length up to 1, one system or a batch; the error grows with longer ones")


@observable
@formula(tokens=TOKENS, relative=4e-16, absolute=4e-16)
@checked_arguments
@in_float64
def order_parameter(tokens: Tokens | Measure) -> Any:
    """|sum_i m_i x_i|: 1 at consensus, near 0 for spread-out tokens (Kuramoto's r on the circle)."""
    return _order_parameter(tokens.positions, tokens.masses)


@observable
@formula(tokens=TOKENS, relative=1e-13)
@checked_arguments
@in_float64
def effective_rank(tokens: Tokens | Measure) -> Any:
    """Exp of the entropy of the normalised eigenvalues of sum_i m_i x_i x_i^T: from 1 (a line) to d (isotropic).

    NaN where all tokens of positive mass are at the origin of R^d. It has first derivatives everywhere else, where
    eigenvalues coincide or vanish too; second derivatives only where eigenvalues are apart.
    """
    return _effective_rank(tokens.positions, tokens.masses)


@observable
@formula(tokens=TOKENS, relative=1e-15, absolute=4e-16)
@checked_arguments
@in_float64
def spread(tokens: Tokens | Measure) -> Any:
    """max_i |x_i - mean| over tokens of positive mass: the diameter is between it and twice it."""
    return _spread(tokens.positions, tokens.masses)


@along("token")
@observable
@formula(
    field=Other("a field, of beta up to 1000 and matrices of norm 1; accuracies grow with larger ones"),
    tokens=TOKENS,
    t=Other("a time"),
    relative=1e-12,
    absolute=1e-15,
)
@checked_arguments
@in_float64
def speed(field: AbstractField, tokens: Tokens | Measure, t: Any = 0.0) -> Any:
    """The speed |X_t[mu](x_i)| of every token; batch dimensions first (inside `jit`, `grad` and `vmap`: one system).

    The speed of absent rows is 0.
    """
    if tokens.dims and is_traced((field, tokens, t)):
        raise InvalidInput(
            f"`tokens` has batch dimensions {tokens.dims} inside a JAX transformation; use `jax.vmap` over one system."
        )
    return _norm(_double(field.velocity(tokens, t)))


@eqx.filter_jit
def _order_parameter(x: Any, masses: Any) -> Any:
    x, masses = _arrays(x, masses)
    return _norm(_mean(x, masses))


@eqx.filter_jit
def _effective_rank(x: Any, masses: Any) -> Any:
    return _rank(*_arrays(x, masses))


@jax.custom_jvp
def _rank(x: Any, masses: Any) -> Any:
    """Of fewer tokens than dimensions by the Gram matrix of the sqrt(m_i) x_i, which has the same positive eigenvalues.

    Its derivative is that of the moments, since the root of a mass has none at 0.
    """
    if x.shape[-2] >= x.shape[-1]:
        return _rank_by_moments(x, masses)
    weighted = jnp.sqrt(masses)[..., None] * x
    return _rank_of(weighted @ jnp.swapaxes(weighted, -1, -2))


@_rank.defjvp
def _(primals: Any, tangents: Any) -> Any:
    return jax.jvp(_rank_by_moments, primals, tangents)


def _rank_by_moments(x: Any, masses: Any) -> Any:
    return _rank_of(jnp.swapaxes(masses[..., None] * x, -1, -2) @ x)


def _rank_of(matrix: Any) -> Any:
    values = jnp.maximum(jnp.linalg.eigvalsh(matrix), 0.0)
    shares = values / jnp.sum(values, axis=-1, keepdims=True)
    # A vanishing eigenvalue is a square of distances to a hyperplane: s log s has the derivative 0 in the positions
    # there, although it is infinite in s.
    present = shares > 0
    safe = jnp.where(present, shares, 1.0)
    entropy = -jnp.sum(safe * jnp.log(safe), axis=-1)
    return jnp.exp(jnp.where(jnp.isnan(shares[..., 0]), jnp.nan, entropy))


@eqx.filter_jit
def _spread(x: Any, masses: Any) -> Any:
    x, masses = _arrays(x, masses)
    away = _norm(x - _mean(x, masses)[..., None, :])
    return jnp.max(jnp.where(masses > 0, away, 0.0), axis=-1)


def _double(array: Any) -> Any:
    return jnp.asarray(array, float)


def _arrays(x: Any, masses: Any) -> tuple[Any, Any]:
    """Positions and masses in float64; positions may have batch axes that the masses lack (`advance` of a batch)."""
    x = _double(x)
    return x, jnp.broadcast_to(_double(masses), x.shape[:-1])


def _mean(x: Any, masses: Any) -> Any:
    return jnp.sum(masses[..., None] * x, axis=-2)


def _norm(x: Any) -> Any:
    """|x| over the last axis, with the derivative 0 at 0."""
    square = jnp.sum(x * x, axis=-1)
    present = square > 0
    return jnp.where(present, jnp.sqrt(jnp.where(present, square, 1.0)), 0.0)

"""The energy of attention with matrices, one head or several, and whether a flow climbs it.

    E = sum_h (1/2 beta) sum_ij m_i m_j e^(beta (<Q_h x_i, K_h x_j> - 1)).

Let B_h = Q_h^T K_h be symmetric and V_h = B_h. A single head never decreases E: unnormalised attention (USA0) is its
gradient flow, v_i = (1/m_i) P grad_i E, and softmax divides each v_i by Z_i > 0. Several USA heads add up to the
gradient flow of E (times H^(-a), the average of `Attention`). Several softmax heads do not: each has its own Z_i,h,
the sum is no gradient, and E may go down.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow.axes import one_system
from attnflow.errors import InvalidInput
from attnflow.fields import Attention
from attnflow.fields.argument_checks import checked_arguments
from attnflow.fields.base import tangent_drive
from attnflow.fields.queries import AtTokens
from attnflow.kernels import cast
from attnflow.observe.observable import observable
from attnflow.precision import in_float64, is_concrete, is_traced
from attnflow.special.formula import Other, formula
from attnflow.sums import over_pairs
from attnflow.tokens import Measure, Tokens

FIELD = Other("attention of beta up to 1000, not 0, with matrices of norm 1; accuracies grow with larger ones")
SYSTEM = Other("tokens of length 1, one system")
TIME = Other("a time")


@observable
@formula(field=FIELD, tokens=SYSTEM, t=TIME, relative=1e-11)
@checked_arguments
@in_float64
def interaction_energy(field: Attention, tokens: Tokens | Measure, t: Any = 0.0) -> Any:
    """E at one system, with the matrices that `field` has at time t, over all pairs whatever the mask.

    beta must not be 0. The energy grows with the matrices like e^(beta |Q| |K|) and is not rescaled: inf above e^709.
    """
    _check(field, tokens)
    return _energy(field, jnp.asarray(tokens.positions), tokens.measure, t)


@observable
@formula(field=FIELD, tokens=SYSTEM, t=TIME, relative=1e-11, absolute=1e-15)
@checked_arguments
@in_float64
def energy_rate(field: Attention, tokens: Tokens | Measure, t: Any = 0.0) -> Any:
    """dE/dt at one system along the flow of `field`, by automatic differentiation, the matrices held at time t.

    Positive where the flow climbs E, as it always does for one head, or several USA heads, with V_h = Q_h^T K_h
    symmetric.
    """
    _check(field, tokens)
    return _rate(field, tokens.measure, t)


@eqx.filter_jit
def _rate(field: Attention, tokens: Measure, t: Any) -> Any:
    x = jnp.asarray(tokens.positions)
    velocity = tangent_drive(field, t, AtTokens(), tokens)
    return jax.jvp(lambda y: _energy(field, y, tokens, t), (x,), (velocity,))[1]


@eqx.filter_jit
def _energy(field: Attention, x: Any, tokens: Measure, t: Any) -> Any:
    kernel, features, place = cast(field.kernel, x.dtype), field.features, jnp.asarray(tokens.place)
    masses = jnp.asarray(tokens.masses, x.dtype)
    heads = field.heads or 1
    query, key = (
        jnp.broadcast_to(side, (heads, *side.shape[-2:]))
        for side in (features.of_queries(t, x, place), features.of_keys(t, x, place))
    )

    def one(head: tuple[Any, Any]) -> Any:
        def tile(queries: Any, keys: Any) -> Any:
            features, mass = keys
            return jnp.exp(kernel.block(queries, features)) @ mass

        rows = over_pairs(
            tile,
            jnp.add,
            lambda size: jnp.zeros((size,), x.dtype),
            head[0],
            (head[1], masses),
            x.shape[0],
            x.shape[0],
            key_padding=(None, 0.0),
        )
        return jnp.sum(masses * rows)

    return jnp.sum(jax.lax.map(one, (query, key))) / (2 * jnp.asarray(field.beta, x.dtype))


def _check(field: Any, tokens: Tokens | Measure) -> None:
    if not isinstance(field, Attention):
        raise InvalidInput(f"`field` is {type(field).__name__}; this energy belongs to Attention.")
    if is_traced((field, tokens)):
        return
    one_system(field, tokens)
    if is_concrete(field.beta) and np.asarray(field.beta) == 0:
        raise InvalidInput("`beta` is 0, where the energy is infinite; give another number.")
    field.check(tokens)

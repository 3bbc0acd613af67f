"""The energy of attention with Q = K = V = I, in forms that stay finite for every beta.

E_beta = (1/2 beta) sum_ij m_i m_j e^(beta <x_i, x_j>) grows like e^beta, so it is given as a logarithm only. Its two
finite forms are E0 = e^(-beta) E_beta <= 1/(2 beta) and, with the constant removed,

    E = E0 - 1/(2 beta) = (1/2 beta) sum_ij m_i m_j (e^(beta (<x_i, x_j> - 1)) - 1) <= 0,

zero exactly at consensus and with the limit sum_ij m_i m_j (<x_i, x_j> - 1)/2 at beta = 0.
USA ascends it as a gradient flow, SA for the metric weighted by Z (arXiv:2312.10794, section 3).
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow.axes import Along, members, scalar
from attnflow.errors import InvalidInput
from attnflow.fields import Attention, Softmax
from attnflow.fields.base import tangent_drive
from attnflow.precision import double
from attnflow.spaces import Sphere
from attnflow.sums import over_pairs
from attnflow.tokens import Tokens


@double
def energy(tokens: Tokens, beta: Any) -> Any:
    """The renormalised energy E <= 0; accurate relative to its size, near consensus too. Batches give arrays."""
    return _per_member(tokens, beta, renormalised_energy)


@double
def energy0(tokens: Tokens, beta: Any) -> Any:
    """E0 = e^(-beta) E_beta = E + 1/(2 beta), in (0, 1/(2 beta)] for beta > 0."""
    return _per_member(tokens, _nonzero(beta), lambda x, m, b: renormalised_energy(x, m, b) + 1 / (2 * b))


@double
def log_energy(tokens: Tokens, beta: Any) -> Any:
    """Log E_beta = beta + log E0, for beta > 0."""
    beta = _nonzero(beta, low=np.finfo(float).tiny)
    return _per_member(tokens, beta, lambda x, m, b: b + jnp.log(renormalised_energy(x, m, b) + 1 / (2 * b)))


@double
def dissipation(field: Attention, tokens: Tokens) -> Any:
    """dE/dt along `field` by the dissipation identity, at one system.

    USA0: sum_i m_i |v_i|^2. SA: sum_i m_i Z_i |v_i|^2 with Z_i = sum_k m_k e^(beta (<x_i, x_k> - 1)).
    On the clocks USA and grad the rate carries the factor of the clock.
    """
    if not energy_is_defined(field, tokens) or tokens.dims:
        raise InvalidInput("`dissipation` needs one system on the sphere and Attention with Q = K = V = I, no mask.")
    return _dissipation(field, tokens)


def energy_is_defined(field: Any, tokens: Tokens) -> bool:
    """Whether the energy is a Lyapunov function of `field`: plain attention on a sphere."""
    return isinstance(field, Attention) and field.is_plain and isinstance(tokens.space, Sphere)


def renormalised_energy(x: Any, masses: Any, beta: Any) -> Any:
    """The energy of one system, in tiles; pure."""
    x = x - jnp.sum(masses[:, None] * x, axis=0, keepdims=True)  # a common centre removes cancellation near consensus
    half = 0.5 * jnp.sum(x * x, axis=1)

    def absorb(total: Any, query: Any, key: Any) -> Any:
        (xq, hq), ((xk, hk), mass) = query, key
        drop = jnp.minimum(xq @ xk.T - hq[:, None] - hk[None, :], 0.0)  # <x, y> - 1
        return total + (drop * _expm1_ratio(beta * drop)) @ mass

    rows = over_pairs(
        lambda size: jnp.zeros((size,), x.dtype),
        absorb,
        (x, half),
        ((x, half), masses),
        x.shape[0],
        x.shape[0],
        key_padding=(None, 0.0),
    )
    return 0.5 * jnp.sum(masses * rows)


def _expm1_ratio(z: Any) -> Any:
    """(e^z - 1)/z, 1 at z = 0."""
    small = jnp.abs(z) < 1e-8
    safe = jnp.where(small, 1.0, z)
    return jnp.where(small, 1.0 + 0.5 * z, jnp.expm1(safe) / safe)


@eqx.filter_jit
def _dissipation(field: Attention, tokens: Tokens) -> Any:
    x = jnp.asarray(tokens.positions)
    velocity = tangent_drive(field, 0.0, x, tokens, tokens.place)
    squares = jnp.sum(velocity**2, axis=1)
    if isinstance(field.normaliser, Softmax):
        scale, sums = field.sum(
            field.kernel.log_weight, x, x, jnp.asarray(tokens.masses), jnp.ones((x.shape[0], 1), x.dtype)
        )
        weights = jnp.exp(scale) * sums[:, 0]
    else:
        one = jnp.ones((1, 1), x.dtype)
        weights = 1.0 / field.normaliser(jnp.zeros(1, x.dtype), one[0], one, jnp.asarray(field.beta))[0, 0]
    return jnp.sum(tokens.masses * weights * squares)


def _nonzero(beta: Any, low: float = -np.inf) -> Any:
    value = scalar("beta", low=low)(beta)
    if np.any(np.asarray(value.values if isinstance(value, Along) else value) == 0):
        raise InvalidInput("`beta` is 0, where E0 is infinite; use `energy`, which has a limit there.")
    return value


def _per_member(tokens: Tokens, beta: Any, function: Any) -> Any:
    if not isinstance(tokens.space, Sphere):
        raise InvalidInput(f"`tokens` live on {tokens.space}; the energy is defined on a sphere.")
    systems = members(scalar("beta")(beta), tokens)
    result = _over_members(function, systems.field, systems.field_axes, systems.positions, systems.masses)
    return systems.unflatten(result)


@eqx.filter_jit
def _over_members(function: Any, beta: Any, axis: Any, positions: Any, masses: Any) -> Any:
    if positions.ndim == 2:
        return function(positions, masses, beta)
    return jax.vmap(function, in_axes=(0, 0, axis))(positions, masses, beta)

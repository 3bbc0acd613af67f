"""The attention kernel by degrees: its Funk-Hecke multipliers, and how many degrees it needs."""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow.checks import instance, number
from attnflow.errors import InvalidInput
from attnflow.meanfield.harmonics.basis import AbstractBasis
from attnflow.precision import in_float64, is_concrete
from attnflow.special import truncation_degrees
from attnflow.special.degrees import BETA, DIMENSION, MOST_DEGREES
from attnflow.special.formula import Integers, Other, Reals, formula

BASIS = Other("a CircleBasis, SphereBasis or ZonalBasis")
TOL = Reals(1e-250, 1.0, scalar=True)


@formula(
    beta=Other(f"a number in [0, {BETA.high:g}], which JAX may trace"),
    d=DIMENSION,
    degree=Integers(0, MOST_DEGREES, scalar=True),
    relative="1e-12 * (1 + 1e-4 * degree)",
)
@in_float64
def multipliers(beta: Any, d: int, degree: int) -> Float[Array | np.ndarray, " degree"]:
    """Funk-Hecke multipliers a_0, ..., a_degree of the kernel e^{beta (<x,y> - 1)} on S^{d-1}.

    A convolution with the kernel multiplies harmonics of degree k by a_k = Gamma(d/2) (2/beta)^nu e^{-beta}
    I_{k+nu}(beta), nu = d/2 - 1; on the circle e^{-beta} I_k(beta). Derivatives in beta of all orders are exact, at 0
    too. Quotients r_k = I_{k+nu+1}/I_{k+nu} = beta/(2k + d + beta r_{k+1}) run down from far above both `degree` and
    sqrt(beta), and a_0 makes sum_k N(k, d) a_k = 1, which is the kernel at x = y (arXiv:2312.10794). Multipliers below
    the range of floats are 0.

    Arguments:
        beta: inverse temperature.
        d: dimension of the space around the sphere.
        degree: last degree.
    """
    if is_concrete(beta):
        number("beta", beta, low=0.0, high=BETA.high)
    return _multipliers(jnp.asarray(beta, jnp.float64), d, degree)


@functools.partial(jax.custom_jvp, nondiff_argnums=(1, 2))
def _multipliers(beta: Array, d: int, degree: int) -> Array:
    return _by_quotients(beta, d, degree)


@_multipliers.defjvp
def _multipliers_jvp(d: int, degree: int, primals: Any, tangents: Any) -> tuple[Array, Array]:
    """a_k' = -a_k + (k a_{k-1} + (k+d-2) a_{k+1})/(2k+d-2): the multipliers of (t-1) e^{beta (t-1)}."""
    a = _multipliers(primals[0], d, degree + 1)
    k = np.arange(degree + 1.0)
    whole = np.maximum(2 * k + d - 2, 1)
    down, up = k / whole, (k + d - 2) / whole
    up[0] = 1.0  # also on the circle, where it is 0/0
    slope = -a[:-1] + down * jnp.concatenate([jnp.zeros(1), a[:-2]]) + up * a[1:]
    return a[:-1], slope * tangents[0]


@functools.partial(jax.jit, static_argnums=(1, 2))
def _by_quotients(beta: Array, d: int, degree: int) -> Array:
    def step(k: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        """From r_{k+1} and log H_{k+1} to r_k and log H_k, H_k = sum_{j>=k} N_j a_j / (N_k a_k)."""
        ratio, log_rest = state
        ratio = beta / (2 * k + d + beta * ratio)
        growth = (2 * k + d) * (k + d - 2) / (jnp.maximum(2 * k + d - 2, 1.0) * (k + 1))  # N(k+1)/N(k)
        growth = jnp.where(k == 0, float(d), growth)
        return ratio, jnp.logaddexp(0.0, jnp.log(growth * ratio) + log_rest)

    def inwards(j: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        return step((top - j).astype(jnp.float64), state)

    def recorded(state: tuple[Array, Array], k: Array) -> tuple[tuple[Array, Array], Array]:
        state = step(k, state)
        return state, state[0]

    # beyond `top` the weights N a are below rounding: they are near the distribution of sqrt(beta) chi_{d-1} - (d-2)/2
    extra = 64 + jnp.ceil((math.sqrt(d) + 9) * jnp.sqrt(beta)).astype(jnp.int64)
    top = degree + extra
    state = jax.lax.fori_loop(jnp.zeros((), jnp.int64), extra, inwards, (jnp.zeros(()), jnp.zeros(())))
    (_, log_inverse), ratios = jax.lax.scan(recorded, state, jnp.arange(float(degree + 1))[::-1])
    logs = jnp.cumsum(jnp.log(ratios[::-1][:degree]))
    return jnp.exp(jnp.concatenate([jnp.zeros(1), logs]) - log_inverse)


@formula(beta=BETA, d=DIMENSION, tol=TOL)
def needed_degree(beta: float, d: int, tol: float = 1e-10) -> int:
    """The smallest K such that the kernel e^{beta (<x,y> - 1)} cut after degree K is within `tol` of itself, uniformly.

    The error is exactly sum_{k>K} N(k, d) a_k, since all terms of sum_k N a_k P_k are largest at x = y; a sum that
    equals `tol` to rounding may count on either side.

    Arguments:
        beta: inverse temperature.
        d: dimension of the space around the sphere.
        tol: largest error of the kernel, whose maximum is 1.
    """
    return int(truncation_degrees(np.asarray(tol), beta, d))


@formula(basis=BASIS, beta=BETA, tol=TOL)
def check_degree(basis: AbstractBasis, beta: float, tol: float = 1e-10) -> None:
    """Refuse a basis whose degree is below `needed_degree(beta, basis.dim, tol)`.

    Arguments:
        basis: the basis that has to hold the kernel.
        beta: inverse temperature.
        tol: largest error of the kernel, whose maximum is 1.

    Raises:
        InvalidInput: if the basis is too small.
    """
    degree = needed_degree(beta, instance("basis", basis, AbstractBasis, str(BASIS)).dim, tol)
    if degree > basis.degree:
        raise InvalidInput(
            f"`basis` has degree {basis.degree}, but the kernel of beta = {beta:g} on S^{basis.dim - 1} needs {degree} "
            f"for an error of {tol:g}; use `basis.refined({degree})`."
        )

"""A flow as a curve of measures: its speed in W_2, the slope of the energy, and whether the two balance.

Along a flow with the velocity v the curve mu_t has the metric speed |mu'|^2 = sum_i m_i |v_i|^2 (until tokens meet,
every velocity of atoms is a gradient), and the energy E has the slope |dE|^2 = sum_i m_i |g_i|^2, g = grad(dE/dmu).
Then dE/dt = sum_i m_i <v_i, g_i>, and

    |mu'|^2/2 + |dE|^2/2 - dE/dt = (1/2) sum_i m_i |v_i - g_i|^2 >= 0,

with equality for the gradient flow of E in W_2, which is USA0. Softmax attention has g_i = Z_i v_i: it misses the
balance by (1/2) sum_i m_i (1 - Z_i)^2 |v_i|^2, and closes it in the metric that is weighted by Z (Burger et al. 2025).
The energy is `total_energy`; fields without an energy are refused.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow.errors import InvalidInput
from attnflow.fields import AbstractField
from attnflow.fields.argument_checks import checked_arguments
from attnflow.fields.base import tangent_drive
from attnflow.fields.queries import AtTokens
from attnflow.observe.energy import gradient_weights, require_energy
from attnflow.observe.observable import observable
from attnflow.precision import full_precision, in_float64
from attnflow.special.formula import Other, formula
from attnflow.tokens import Measure, Tokens
from attnflow.transport.distance import distance

FIELD = Other("a field with an energy, of beta up to 1000; accuracies grow with larger ones")
ANY_FIELD = Other("a field, of beta up to 1000 and matrices of norm 1; accuracies grow with larger ones")
SYSTEM = Other("tokens of one system, on a sphere")
STILL = 8
"""Metric speeds up to so many eps are rounding."""


@observable
@formula(field=ANY_FIELD, tokens=SYSTEM, t=Other("a time"), relative=1e-12, absolute=1e-15)
@checked_arguments
@in_float64
def metric_speed(field: AbstractField, tokens: Tokens | Measure, t: Any = 0.0) -> Any:
    """|mu'| = (sum_i m_i |v_i|^2)^(1/2): how fast the measure moves in W_2, at one system; for every field."""
    tokens.single("tokens")
    return _root_mean_square(field.velocity(tokens, t), tokens.masses)


@observable
@formula(field=FIELD, tokens=SYSTEM, relative=1e-12, absolute=1e-15)
@checked_arguments
@in_float64
def energy_slope(field: AbstractField, tokens: Tokens | Measure) -> Any:
    """|dE| = (sum_i m_i |g_i|^2)^(1/2): how steep the energy of `field` is in W_2, at one system."""
    require_energy("energy_slope", field, tokens)
    return _balance(field, tokens.measure)[0]


@observable
@formula(field=FIELD, tokens=SYSTEM, relative=1e-12, absolute=1e-16)
@checked_arguments
@in_float64
def balance_gap(field: AbstractField, tokens: Tokens | Measure) -> Any:
    """|mu'|^2/2 + |dE|^2/2 - dE/dt = (1/2) sum_i m_i |v_i - g_i|^2: 0 for a gradient flow in W_2, at one system.

    It depends on the clock of the field; `gradient_alignment` does not.
    """
    require_energy("balance_gap", field, tokens)
    return _balance(field, tokens.measure)[1]


@observable
@formula(
    field=FIELD,
    tokens=Other("tokens of one system on a sphere, with a `metric_speed` of 1e-6 or more, or at rest"),
    absolute=1e-9,
)
@checked_arguments
@in_float64
def gradient_alignment(field: AbstractField, tokens: Tokens | Measure) -> Any:
    """cos = sum m <v, g>/(|mu'| |dE|): 1 where the velocity is a multiple of the gradient of the energy in W_2.

    For softmax attention sum m Z |v|^2/(sum m |v|^2 sum m Z^2 |v|^2)^(1/2). NaN where nothing moves but by rounding.
    """
    require_energy("gradient_alignment", field, tokens)
    return _balance(field, tokens.measure)[2]


def path_length(flow: Any) -> float:
    """The length of a flow in W_2: the integral of |mu'| over its frames by Simpson's rule.

    The error is that of Simpson's rule between the frames: save more frames to see it.
    """
    from scipy.integrate import simpson

    _require_path(flow)
    times, frames = flow.time.values, [flow.tokens(k) for k in range(len(flow))]
    with full_precision():
        positions = jnp.asarray(np.stack([tokens.positions for tokens in frames]))
        speeds = np.asarray(_speeds(flow.field, frames[0].measure, jnp.asarray(times), positions))
    return float(simpson(speeds, x=times))


def path_efficiency(flow: Any) -> float:
    """W_2 between the first and the last frame over the length of the path: 1 for a geodesic."""
    return float(distance(flow.tokens(0), flow.tokens(-1), order=2)) / path_length(flow)


def _require_path(flow: Any) -> None:
    if not all(hasattr(flow, name) for name in ("field", "time", "tokens")):
        raise InvalidInput(f"`flow` is a {type(flow).__name__}; give what `solve` returns.")
    if flow.dims:
        raise InvalidInput(f"`flow` has batch dimensions {flow.dims}; pick one with `member`.")
    if len(flow) < 3:
        raise InvalidInput(f"`flow` has {len(flow)} frames; a length needs three or more.")


@eqx.filter_jit
def _root_mean_square(velocity: Any, masses: Any) -> Any:
    return jnp.sqrt(jnp.sum(jnp.asarray(masses) * jnp.sum(jnp.asarray(velocity) ** 2, axis=-1)))


@eqx.filter_jit
def _speeds(field: AbstractField, mu: Measure, times: Any, positions: Any) -> Any:
    """|mu'| at every frame, one frame at a time."""

    def one(frame: tuple[Any, Any]) -> Any:
        return _root_mean_square(tangent_drive(field, frame[0], AtTokens(), mu.moved(frame[1])), mu.masses)

    return jax.lax.map(one, (times, positions))


@eqx.filter_jit
def _balance(field: AbstractField, tokens: Measure) -> tuple[Any, Any, Any]:
    """Slope, gap and cosine."""
    weights, squares = gradient_weights(field, tokens)
    speed, rate, slope = (jnp.sum(tokens.masses * weights**k * squares) for k in (0, 1, 2))
    gap = 0.5 * jnp.sum(tokens.masses * (1 - weights) ** 2 * squares)
    # rounding moves tokens at rest: by some eps on the clock USA0, where weights are 1
    resting = jnp.sqrt(speed) * jnp.minimum(jnp.max(weights), 1.0) <= STILL * jnp.finfo(speed.dtype).eps
    return jnp.sqrt(slope), gap, jnp.where(resting, jnp.nan, rate / jnp.sqrt(speed * slope))

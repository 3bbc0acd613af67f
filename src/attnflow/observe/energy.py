"""The energy of attention with Q = K = V = I, in forms that stay finite for every beta.

E_beta = (1/2 beta) sum_ij m_i m_j e^(beta <x_i, x_j>) grows like e^beta, so it is given as a logarithm only. Its two
finite forms are E0 = e^(-beta) E_beta <= 1/(2 beta) and, with the constant removed,

    E = E0 - 1/(2 beta) = (1/2 beta) sum_ij m_i m_j (e^(beta (<x_i, x_j> - 1)) - 1) <= 0,

zero exactly at consensus and with the limit sum_ij m_i m_j (<x_i, x_j> - 1)/2 at beta = 0.
USA ascends it as a gradient flow, SA for the metric weighted by Z (arXiv:2312.10794, section 3). A potential U, the
perceptron in gradient form, adds sum_i m_i U(x_i) (arXiv:2601.21366).
"""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow.axes import Along, members, one_system, over_members, scalar
from attnflow.errors import InvalidInput
from attnflow.fields import AbstractField, Attention, Softmax, Unnormalised
from attnflow.fields.argument_checks import checked_arguments
from attnflow.fields.base import tangent_drive, terms
from attnflow.fields.normalisers import Clock
from attnflow.fields.perceptron import Potential
from attnflow.fields.queries import AtTokens
from attnflow.fields.structure import stated_error
from attnflow.observe.observable import observable
from attnflow.precision import in_float64
from attnflow.spaces import Sphere
from attnflow.special.formula import Other, formula
from attnflow.special.quotients import expm1_ratio
from attnflow.sums import Dense, Tiled, over_pairs
from attnflow.tokens import Measure, Tokens

SYSTEMS = Other("tokens on a sphere, one system or a batch")
SYSTEM = Other("tokens on a sphere, one system")
BETA = Other("a number or a batch of numbers")
FIELD = Other("a field with an energy, of beta up to 1000; accuracies grow with larger ones")
NEAR = 0.01
"""How close to 1 the level sum_i m_i Z_i is when the energy is summed pair by pair."""
STEEP = 1e-12
"""The same for the round-off beta eps of the level: for beta above 4,500 in float64, always in float32."""


@observable
@formula(tokens=SYSTEMS, beta=BETA, relative="4e-15 * (1 + np.abs(beta))")
@checked_arguments
@in_float64
def energy(tokens: Tokens | Measure, beta: Any) -> Any:
    """The renormalised energy E <= 0; accurate relative to its size, near consensus too. Batches give arrays.

    E = (1/2 beta) sum_ij m_i m_j (e^(-beta |x_i - x_j|^2/2) - 1); at beta = 0 -(1/4) sum_ij m_i m_j |x_i - x_j|^2.
    """
    return _per_member(tokens, beta, renormalised_energy)


@observable
@formula(tokens=SYSTEMS, beta=BETA, relative="4e-15 * (1 + np.abs(beta))")
@checked_arguments
@in_float64
def energy0(tokens: Tokens | Measure, beta: Any) -> Any:
    """E0 = e^(-beta) E_beta = E + 1/(2 beta), in (0, 1/(2 beta)] for beta > 0."""
    return _per_member(tokens, _nonzero(beta), _energy0)


@observable
@formula(tokens=SYSTEMS, beta=BETA, relative=1e-15, absolute="4e-15 * (1 + beta)")
@checked_arguments
@in_float64
def log_energy(tokens: Tokens | Measure, beta: Any) -> Any:
    """log E_beta = beta + log E0, for beta > 0."""
    return _per_member(tokens, _nonzero(beta, low=np.finfo(float).tiny), _log_energy)


@observable
@formula(field=FIELD, tokens=SYSTEM, relative=1e-11)
@checked_arguments
@in_float64
def total_energy(field: AbstractField, tokens: Tokens | Measure) -> Any:
    """The energy that the flow of `field` never decreases, at one system: E, plus sum_i m_i U(x_i) with potentials U.

    It is at most max U, reached by a consensus where U is largest (E0 has 1/(2 beta) more). Defined on the sphere for
    Attention with Q = K = V = I, and for its sum with `Potential`s when it is `Unnormalised()` on the clock USA0. A
    multiple of one of these enters with its factor: a X_1 + b grad U climbs a E + b sum_i m_i U(x_i).
    """
    require_energy("total_energy", field, tokens)
    return _total_energy(field, tokens.measure)


@observable
@formula(field=FIELD, tokens=SYSTEM, relative=1e-11, absolute=1e-19)
@checked_arguments
@in_float64
def dissipation(field: AbstractField, tokens: Tokens | Measure) -> Any:
    """The rate of `total_energy` along `field` by the dissipation identity, at one system.

    USA0, with potentials too: sum_i m_i |v_i|^2. SA: sum_i m_i Z_i |v_i|^2, Z_i = sum_k m_k e^(beta (<x_i, x_k> - 1)).
    On the clocks USA and grad the rate carries the factor of the clock.
    """
    require_energy("dissipation", field, tokens)
    return _dissipation(field, tokens.measure)


def lyapunov(field: Any, tokens: Tokens | Measure) -> Callable[[Any, Any], Any] | None:
    """The pure function (positions, masses) -> energy that `field` never decreases on this space, if there is one.

    It reads the numbers of `field` when it is called: inside compiled code make it from the traced field.
    """
    found = _structure(field, tokens)
    if found is None:
        return None
    (own, attention), potentials = found

    def value(x: Any, masses: Any) -> Any:
        energy = _energy_of(attention, Measure(x, masses, present=tokens.present, place=tokens.place), x, masses)
        total = jnp.asarray(math.prod(own), x.dtype) * energy
        for factors, part in potentials:
            total = total + jnp.asarray(math.prod(factors), x.dtype) * jnp.sum(masses * part.potential(x))
        return total

    return value


def energy_is_defined(field: Any, tokens: Tokens | Measure) -> bool:
    """Whether there is an energy that `field` never decreases."""
    return lyapunov(field, tokens) is not None


def frame(field: Any, t: Any, tokens: Measure, energy: bool) -> tuple[Any, Any, Any]:
    """(drive, error, energy) at the tokens; `error` is the number 0 where sums are exact, energy None if not asked for.

    Of softmax attention alone they come from one sum over pairs: Z_i divides the drive, scales its error, and
    sum_i m_i Z_i is the energy except for a constant (`_energy_at_level`).
    """
    shared = field.at_tokens(t, tokens) if isinstance(field, Attention) else None
    if shared is None:
        drive, error = field.drive(tokens, t, at=AtTokens()), stated_error(field, t, AtTokens(), tokens)
    else:
        drive, error, seen = shared
    found = _structure(field, tokens) if energy else None
    if found is None:
        return drive, error, None
    if shared is None:
        own = lyapunov(field, tokens)
        assert own is not None
        return drive, error, own(tokens.positions, tokens.masses)
    level = jnp.sum(tokens.masses * seen)
    return drive, error, _energy_at_level(found[0][1], tokens.positions, tokens.masses, level)


def _energy_of(attention: Attention, mu: Measure, x: Any, masses: Any) -> Any:
    """The energy by the sums of the field: pair by pair where these are exact, else by the level."""
    if _is_exact(attention):
        return renormalised_energy(x, masses, jnp.asarray(attention.beta, x.dtype))
    pairs, _ = attention.pairs(0.0, AtTokens(), mu)
    scale, total = pairs.sums(jnp.ones((x.shape[0], 1), x.dtype))
    level = jnp.sum(masses * jnp.exp(scale) * total[:, 0]) * pairs.unit
    return _energy_at_level(attention, x, masses, level)


def _is_exact(attention: Attention) -> bool:
    return attention.sum is None or isinstance(attention.sum, Tiled | Dense)


def _energy_at_level(attention: Attention, x: Any, masses: Any, level: Any) -> Any:
    """The energy (level - 1)/(2 beta) from the level sum_i m_i Z_i.

    It is off by the error of the level (round-off and cut) over 2 beta; round-off of <x, y> alone is beta eps. Where
    sums are exact and the level is within NEAR of 1, near consensus or at small beta, or beta eps exceeds STEEP, the
    energy is summed pair by pair instead: elsewhere it is off by at most STEEP/NEAR = 1e-10 of itself. Where sums are
    cut, for beta below eps^(1/3), which is 6e-6 in float64, the expansion of the energy to first order in beta takes
    over; two moments give it in closed form. Where sums are cut below round-off the error is then at most a few
    eps^(2/3), below 1e-10 in float64. It is absolute: relative to the energy it is small only away from consensus.
    """
    beta = jnp.asarray(attention.beta, x.dtype)
    if _is_exact(attention):
        steep = jnp.abs(beta) * float(jnp.finfo(x.dtype).eps) > STEEP
        near = steep | (jnp.abs(level - 1.0) < jnp.asarray(NEAR, x.dtype))
        safe = jnp.where(near, 1.0, beta)
        return jax.lax.cond(near, lambda: renormalised_energy(x, masses, beta), lambda: (level - 1.0) / (2 * safe))
    flat = jnp.abs(beta) < jnp.asarray(jnp.finfo(x.dtype).eps ** (1 / 3), x.dtype)
    safe = jnp.where(flat, 1.0, beta)
    return jnp.where(flat, _nearly_flat_energy(x, masses, beta), (level - 1.0) / (2 * safe))


def _nearly_flat_energy(x: Any, masses: Any, beta: Any) -> Any:
    """(1/2) sum m_i m_j (s_ij - 1) + (beta/4) sum m_i m_j (s_ij - 1)^2, s = <x_i, x_j>, by moments.

    The next term, (beta^2/12) sum m_i m_j (s_ij - 1)^3, is at most 2 beta^2/3.
    """
    weighted = masses[:, None] * x
    first = jnp.sum(jnp.sum(weighted, axis=0) ** 2)  # sum m_i m_j s_ij
    second = jnp.sum((weighted.T @ x) ** 2)  # sum m_i m_j s_ij^2
    return 0.5 * (first - 1.0) + 0.25 * beta * (second - 2 * first + 1.0)


def renormalised_energy(x: Any, masses: Any, beta: Any) -> Any:
    """The energy of one system on the unit sphere, in tiles; pure.

    It uses <x, y> - 1 = -|x - y|^2/2, so that off the sphere the kernel would be e^(-beta |x - y|^2/2).
    """
    return 0.5 * _over_drops(x, masses, lambda drop: drop * expm1_ratio(beta * drop))


def _over_drops(x: Any, masses: Any, value: Callable[[Any], Any]) -> Any:
    """The sum of m_i m_j value(<x_i, x_j> - 1) in tiles."""
    x = x - jnp.sum(masses[:, None] * x, axis=0, keepdims=True)  # a common centre removes cancellation near consensus
    half = 0.5 * jnp.sum(x * x, axis=1)

    def tile(query: Any, key: Any) -> Any:
        (xq, hq), ((xk, hk), mass) = query, key
        drop = xq @ xk.T - hq[:, None] - hk[None, :]  # <x, y> - 1
        # not above 0 by rounding; a plain minimum would halve derivatives where tokens coincide
        drop = drop + jax.lax.stop_gradient(jnp.minimum(drop, 0.0) - drop)
        return value(drop) @ mass

    rows = over_pairs(
        tile,
        jnp.add,
        lambda size: jnp.zeros((size,), x.dtype),
        (x, half),
        ((x, half), masses),
        x.shape[0],
        x.shape[0],
        key_padding=(None, 0.0),
    )
    return jnp.sum(masses * rows)


def _energy0(x: Any, masses: Any, beta: Any) -> Any:
    return _over_drops(x, masses, lambda drop: jnp.exp(beta * drop)) / (2 * beta)


def _log_energy(x: Any, masses: Any, beta: Any) -> Any:
    return beta + jnp.log(_energy0(x, masses, beta))


def _structure(
    field: Any, tokens: Tokens | Measure
) -> tuple[tuple[Any, Attention], list[tuple[Any, Potential]]] | None:
    """Plain attention and potentials, with their factors, of which `field` is the sum, if they have a common energy."""
    parts = terms(field)
    heads = [(factors, part) for factors, part in parts if isinstance(part, Attention) and part.is_plain]
    potentials = [(factors, part) for factors, part in parts if isinstance(part, Potential)]
    if len(heads) != 1 or len(potentials) != len(parts) - 1 or not isinstance(tokens.space, Sphere):
        return None
    # U enters with weight 1: softmax divides the rest by Z, and the other clocks multiply it
    if potentials and not (isinstance(rule := heads[0][1].normaliser, Unnormalised) and rule.clock is Clock.USA0):
        return None
    return heads[0], potentials


def require_energy(name: str, field: AbstractField, tokens: Tokens | Measure) -> None:
    """Refuse a batch, and a field that has no energy on the space of the tokens."""
    one_system(field, tokens)
    if not energy_is_defined(field, tokens):
        raise InvalidInput(
            f"`{name}`: {type(field).__name__} on {tokens.space} has no energy here. Give tokens on a sphere and "
            "Attention with Q = K = V = I and no mask; with a Potential it must be Unnormalised() on the clock USA0."
        )


@eqx.filter_jit
def _total_energy(field: AbstractField, tokens: Measure) -> Any:
    function = lyapunov(field, tokens)
    assert function is not None
    return function(jnp.asarray(tokens.positions), jnp.asarray(tokens.masses))


@eqx.filter_jit
def _dissipation(field: AbstractField, tokens: Measure) -> Any:
    weights, squares = gradient_weights(field, tokens)
    return jnp.sum(tokens.masses * weights * squares)


def gradient_weights(field: AbstractField, tokens: Measure) -> tuple[Any, Any]:
    """(w_i, |v_i|^2) where the gradient of the energy is w_i v_i at the token i, v the velocity: Z_i for SA."""
    x = jnp.asarray(tokens.positions)
    velocity = tangent_drive(field, 0.0, AtTokens(), tokens)
    squares = jnp.sum(velocity**2, axis=1)
    found = _structure(field, tokens)
    assert found is not None
    _, attention = found[0]
    if isinstance(attention.normaliser, Softmax):
        pairs, _ = attention.pairs(0.0, AtTokens(), tokens)
        scale, sums = pairs.sums(jnp.ones((x.shape[0], 1), x.dtype))
        return pairs.unit * jnp.exp(scale) * sums[:, 0], squares
    return jnp.ones_like(squares) / _clock_factor(attention), squares


def _clock_factor(field: Attention) -> Any:
    """How much faster than USA0 the clock of an unnormalised field runs: the drive of one token at itself."""
    plain = Attention(field.beta, normaliser=field.normaliser)
    return jnp.linalg.norm(plain.formula(0.0, AtTokens(), Measure(jnp.eye(1, 2))))


def _nonzero(beta: Any, low: float = -np.inf) -> Any:
    value = scalar("beta", low=low)(beta)
    if np.any(np.asarray(value.values if isinstance(value, Along) else value) == 0):
        raise InvalidInput("`beta` is 0, where E0 is infinite; use `energy`, which has a limit there.")
    return value


def _per_member(tokens: Tokens | Measure, beta: Any, function: Any) -> Any:
    if not isinstance(tokens.space, Sphere):
        raise InvalidInput(f"`tokens` live on {tokens.space}; the energy is defined on a sphere.")
    systems = members(scalar("beta")(beta), tokens)
    mu = systems.measure
    result = _over_members(function, systems.field, systems.field_axes, mu.positions, mu.masses)
    return systems.unflatten(result)


@eqx.filter_jit
def _over_members(function: Any, beta: Any, axis: Any, positions: Any, masses: Any) -> Any:
    positions, masses = jnp.asarray(positions, float), jnp.asarray(masses, float)
    if positions.ndim == 2:
        return function(positions, masses, beta)
    return over_members(function, (0, 0, axis), (positions, masses, beta), positions.shape[-2] ** 2)

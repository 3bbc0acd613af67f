"""An adaptive Runge-Kutta method of order 5(4) for c' = L c + N(c), with a diagonal L <= 0 that is integrated exactly.

Lawson's integrating factor (SIAM J. Numer. Anal. 4, 1967): v = e^{-L t} c obeys v' = e^{-L t} N(e^{L t} v), to which
the pair of Dormand and Prince (J. Comput. Appl. Math. 6, 1980) is applied. Diffusion then costs no small steps, and for
L = 0 the method is that pair itself. By hand because Diffrax has no exponential integrators.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

Rate = Callable[[Array], Array]
NODES = np.array([0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1])
TABLEAU = np.array(
    [
        [0, 0, 0, 0, 0, 0, 0],
        [1 / 5, 0, 0, 0, 0, 0, 0],
        [3 / 40, 9 / 40, 0, 0, 0, 0, 0],
        [44 / 45, -56 / 15, 32 / 9, 0, 0, 0, 0],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0, 0],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0, 0],
        [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0],
    ]
)
"""The last row is the solution of order 5, whose stage is the first one of the next step."""
ERROR = np.array([71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40])
"""Weights of order 5 less those of order 4."""
SAFETY, SLOWEST, FASTEST = 0.9, 0.2, 5.0
STALLED = -1


class HarmonicState(eqx.Module):
    """Where an integration stands; everything that the next step depends on."""

    t: Float[Array, ""]
    c: Array
    slope: Array
    """N(c)."""
    step: Float[Array, ""]
    """The step that the controller wants."""
    error: Float[Array, ""]
    """The error of the last step accepted, as a share of the tolerance."""
    fresh: Bool[Array, ""]
    """Before the first evaluation of N."""
    after_rejection: Bool[Array, ""]
    accepted: Int[Array, ""]
    rejected: Int[Array, ""]
    trouble: Int[Array, ""]
    """0, or why there is no next step: `STALLED`, or what `watch` has said."""


class Attempt(NamedTuple):
    """One step: the new state, N there, and the difference to the solution of order 4."""

    c: Array
    slope: Array
    error: Array


def begin(c: Any) -> HarmonicState:
    """The state at time 0, made without a program of its own."""
    none: Any = np.zeros(c.shape, c.dtype)
    zero: Any = np.zeros(())
    one: Any = np.ones(())
    count: Any = np.zeros((), np.int64)
    yes: Any = np.asarray(True)
    return HarmonicState(zero, c, none, zero, one, yes, ~yes, count, count, count)


def step(rate: Rate, linear: Array, c: Array, slope: Array, h: Any) -> Attempt:
    """One step of length `h` from `c`, where N is `slope`.

    Stages are carried from node to node by e^{(difference) h L}; the nodes increase, so that no factor exceeds 1.
    """
    tableau, gaps = jnp.asarray(TABLEAU), jnp.asarray(np.diff(NODES, prepend=0.0))

    def stage(i: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        start, stages, _ = carry
        factor = jnp.exp(gaps[i] * h * linear)
        start, stages = factor * start, jnp.expand_dims(factor, 0) * stages
        point = start + h * jnp.tensordot(tableau[i], stages, 1)
        return start, stages.at[i].set(rate(point)), point

    stages = jnp.zeros((len(NODES), *c.shape), c.dtype).at[0].set(slope)
    _, stages, new = jax.lax.fori_loop(1, len(NODES), stage, (c, stages, c))
    return Attempt(new, stages[-1], h * jnp.tensordot(jnp.asarray(ERROR), stages, 1))


def advance(
    rate: Rate,
    linear: Array,
    state: HarmonicState,
    target: Any,
    limit: Any,
    *,
    rtol: Any,
    atol: Any,
    watch: Callable[[Array], Array] = lambda c: jnp.zeros((), jnp.int64),
) -> HarmonicState:
    """At most `limit` steps towards the time `target`, which is met exactly. Pure; slices may be cut anywhere.

    A step is accepted if the 2-norm of its error estimate is at most atol + rtol |c|; the next one is chosen with
    proportional and integral control (Hairer, Norsett and Wanner, Solving ODEs I, II.4). A new state for which `watch`
    is not 0 is not taken: shorter steps lead up to it, and the integration ends within a thousandth of the time.
    """
    target = jnp.asarray(target)
    before = state.accepted + state.rejected

    def going(s: HarmonicState) -> Array:
        unfinished = (s.trouble == 0) & (s.accepted + s.rejected - before < limit)
        return s.fresh | (unfinished & (s.t < target))

    def body(s: HarmonicState) -> HarmonicState:
        left = target - s.t
        # neither beyond the target nor so near to it that a tiny step remains; the first evaluation is a step of 0
        h = jnp.where(s.step >= left, left, jnp.minimum(s.step, jnp.maximum(left / 2, 0.0)))
        h = jnp.where(s.fresh, 0.0, h)
        tried = step(rate, linear, s.c, s.slope, h)
        tolerance = atol + rtol * jnp.maximum(_norm(s.c), _norm(tried.c))
        error = _norm(tried.error) / tolerance
        good = error <= 1  # False if not a number
        lost = jnp.where(good, watch(tried.c), 0)
        short = h <= 1e-3 * s.t + 1e-9 * target
        trouble = jnp.where(short, lost, 0) + jnp.where(good | (s.step >= 1e-13 * target), 0, STALLED)
        taken = good & (lost == 0)
        size = jnp.where(jnp.isfinite(error), jnp.maximum(error, 1e-10), 1e10)
        growth = SAFETY * jnp.where(good, size**-0.17 * jnp.maximum(s.error, 1e-4) ** 0.04, size**-0.2)
        growth = jnp.clip(growth, SLOWEST, jnp.where(taken & ~s.after_rejection, FASTEST, 1.0))
        growth = jnp.where(lost == 0, growth, SLOWEST)
        wanted = jnp.where(taken & (h < s.step), jnp.maximum(s.step, growth * h), growth * h)
        first = jnp.minimum((tolerance / _norm(linear * tried.c + tried.slope)) ** 0.2, 1.0)
        return HarmonicState(
            t=jnp.where(taken, jnp.where(h == left, target, s.t + h), s.t),
            c=jnp.where(taken, tried.c, s.c),
            slope=jnp.where(taken, tried.slope, s.slope),
            step=jnp.where(s.fresh, first, wanted),
            error=jnp.where(taken & ~s.fresh, error, s.error),
            fresh=jnp.zeros_like(s.fresh),
            after_rejection=~taken,
            accepted=s.accepted + jnp.where(taken & ~s.fresh, 1, 0),
            rejected=s.rejected + jnp.where(taken, 0, 1),
            trouble=jnp.asarray(trouble, s.trouble.dtype),
        )

    return jax.lax.while_loop(going, body, state)


def _norm(c: Array) -> Array:
    return jnp.sqrt(jnp.sum(c**2))

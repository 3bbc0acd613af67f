"""The flow of x' = (<a, x> + b)_+ P_x w on the unit sphere, in closed form up to one scalar equation."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from attnflow.fields.exact.drift import direction
from attnflow.fields.exact.quadratics import inverse_moments

STEPS = 200
"""At most so many steps for the length of an arc. The gates of the tests take 2 or 3 in the median, and 31 at most."""


def gate_flow(x: Any, w: Any, a: Any, b: Any, h: Any) -> tuple[Any, Any]:
    """(where x' = (<a, x> + b)_+ P_x w carries the rows of x in time h, log-determinants), for |w| of any size.

    A boost of length tau along e = w/|w| takes x to a point with <a, x> + b = N(tau)/D(tau). Here
    D = cosh tau + s sinh tau, s = <x, e>, and N = alpha e^tau + c + gamma e^(-tau). So tau' = |w| N/D, and
    log det = log(N/(N(0) D)) - (d - 1) log D: the change of the height, and d - 1 times that of the distance from the
    axis. If h < 0 then -e takes the place of e.

    Errors are those of a, b, w and x rounded once: the conditioning of the flow times a few units in the last place.
    A point with a height of at most 8 eps (|a| + |b|) counts as one at rest on the border.
    """
    e, size = direction(w)
    e = jnp.where(h < 0, -e, e)
    time = jnp.where(h < 0, -h, h) * size
    one_plus, one_minus, across = _sides(x, e)
    along = a @ e
    far = jnp.where((one_plus == 0) | (one_minus == 0), 0.0, across @ (a - along * e))
    alpha, gamma = (along + b) * one_plus / 2, (b - along) * one_minus / 2
    height = alpha + far + gamma
    most = jnp.sqrt(jnp.sum(a**2)) + jnp.abs(b)  # <a, x> + b is not larger
    # a point that has come to rest where N = 0 has a height of either sign by rounding, and must not pass
    active = (height > 8 * jnp.finfo(x.dtype).eps * most) & (size > 0)
    # x = -e stays there, with tau' = |w| gamma and D = e^-tau: it takes this tau from a problem where e^-tau may vanish
    opposite = one_plus == 0
    shape = [
        jnp.where(active, jnp.where(opposite, pole, value), other)
        for value, pole, other in (
            (alpha, gamma / 2, 0.5),
            (far, 0.0, 0.0),
            (gamma, gamma / 2, 0.5),
            (one_plus, 1.0, 1.0),
            (one_minus, 1.0, 1.0),
        )
    ]
    arc = jax.vmap(lambda *shape: _arc(gate_length(*shape, time, most), time, *shape))(*shape)
    plus, minus = shape[3:]
    r = arc.r
    wide = (plus + minus * r**2) / 2  # D e^-tau
    moved = (((plus - minus * r**2) / 2)[:, None] * e[None] + r[:, None] * across) / wide[:, None]
    moves = active & ~opposite
    moved = moved / jnp.sqrt(jnp.where(moves, jnp.sum(moved**2, axis=1), 1.0))[:, None]
    log_width = jnp.where(opposite, -arc.tau, jnp.log(wide) + arc.tau)
    grown = jnp.where(opposite, 0.0, arc.grown - log_width)
    log_det = jnp.where(active, grown - (x.shape[1] - 1) * log_width, 0.0)
    return jnp.where(moves[:, None], moved, x), log_det


def _sides(x: Any, e: Any) -> tuple[Any, Any, Any]:
    """1 + <x, e>, 1 - <x, e> and x - <x, e> e, each to relative accuracy."""
    ahead, back = x - e[None], x + e[None]
    plus, minus = jnp.sum(back**2, axis=1) / 2, jnp.sum(ahead**2, axis=1) / 2
    near = (minus < plus)[:, None]
    return plus, minus, jnp.where(near, ahead + minus[:, None] * e[None], back - plus[:, None] * e[None])


class _Frame(NamedTuple):
    """How an arc is measured: r = e^(-tau) = (1 + rest xi)/(1 + xi), xi = e^sigma - 1.

    If the point comes to rest at a zero `rest` of Q(r) = alpha + c r + gamma r^2 = r N, then sigma is the logarithm of
    its distance from there, and Q = (r - rest)(start + root xi)/(1 + xi). Otherwise rest = 0 and sigma = tau, which
    stays below `reach`: a zero of Q that is too far away to measure by is still never passed.
    """

    rests: Any
    rest: Any
    gap: Any  # 1 - rest
    start: Any
    root: Any
    reach: Any


class _Arc(NamedTuple):
    r: Any
    tau: Any
    grown: Any  # log N/N(0)


def _frame(time: Any, alpha: Any, far: Any, gamma: Any, plus: Any, minus: Any) -> _Frame:
    """The zero of Q where the point comes to rest, unless it is out of reach.

    Zeros that almost coincide are used only if `time` brings the point close: as functions of the weights they are not
    smooth, while tau is.
    """
    height = alpha + far + gamma
    square = far**2 - 4 * alpha * gamma
    real = square > 0
    root = jnp.sqrt(jnp.where(real, square, 1.0))
    rising = far >= 0
    rest = jnp.where(rising, -2 * alpha, root - far) / jnp.where(
        rising, far + root, jnp.where(gamma > 0, 2 * gamma, -1.0)
    )
    slope = 2 * gamma + far  # of Q at 1
    total = root + jnp.abs(slope)
    start = jnp.where(slope >= 0, total / 2, -2 * gamma * height / total)
    ahead = real & (rest > 0) & (rest < 1) & (start > 0)
    reached = root * time * rest > plus + minus * rest**2
    close = (rest > 0.5) & (root > 0.1 * (jnp.abs(alpha) + jnp.abs(far) + jnp.abs(gamma)))
    rests = ahead & (reached | close)
    start = jnp.where(rests, start, 1.0)
    gap = jnp.where(rests, height / start, 1.0)
    reach = jnp.where(ahead & ~rests, -jnp.log(jnp.where(ahead, rest, 1.0)), jnp.inf)
    return _Frame(rests, jnp.where(rests, rest, 0.0), gap, start, jnp.where(rests, root, 1.0), reach)


def _arc(sigma: Any, time: Any, alpha: Any, far: Any, gamma: Any, plus: Any, minus: Any) -> _Arc:
    """e^(-tau), tau and log N(tau)/N(0)."""
    frame = _frame(time, alpha, far, gamma, plus, minus)
    short, gone = jnp.exp(-sigma), -jnp.expm1(-sigma)
    r = frame.rest + frame.gap * short
    moderate = frame.gap < 0.5
    by_gap = jnp.where(moderate, -jnp.log1p(-jnp.where(moderate, frame.gap, 0.0) * gone), 0.0)
    by_rest = -jnp.log(jnp.where(frame.rests, r, 1.0))
    tau = jnp.where(frame.rests, jnp.where(moderate, by_gap, by_rest), sigma)
    decay = jnp.log((frame.start * short + frame.root * gone) / frame.start) - sigma
    height = alpha + far + gamma
    free = jnp.where(frame.rests, height, _level(sigma, alpha, far, gamma))
    return _Arc(r, tau, jnp.where(frame.rests, decay, jnp.log(free / height)) + tau)


def _level(tau: Any, alpha: Any, far: Any, gamma: Any) -> Any:
    """N(tau) e^(-tau), tau >= 0; near tau = 0 from N(0), so that N - N(0) is right where N(0) is small."""
    short, gone = jnp.exp(-tau), -jnp.expm1(-tau)
    near = (alpha + far + gamma) * short + (alpha - gamma * short) * gone
    return jnp.where(tau < 0.5, near, alpha + (far + gamma * short) * short)


@jax.custom_jvp
def gate_length(alpha: Any, far: Any, gamma: Any, plus: Any, minus: Any, time: Any, most: Any) -> Any:
    """The length sigma (see `_Frame`) after `time` >= 0: time = F(sigma), by Newton and bisection.

    N > 0 along the way. Newton's step is taken if it stays in the bracket and is at most half as long as the last
    one; else the bracket is halved.
    """
    shape = (alpha, far, gamma, plus, minus)
    frame = _frame(time, *shape)
    # sigma' = r (gamma (r + rest) + far)/D is at most 3 most, and tau' = N/D at most `most`
    high = jnp.minimum(jnp.where(frame.rests, 3 * most, most) * time, frame.reach)
    close = jnp.finfo(jnp.result_type(alpha)).eps ** 0.75

    def more(state: Any) -> Any:
        k, _, _, _, _, done = state
        return (k < STEPS) & ~done

    def step(state: Any) -> Any:
        k, low, high, last, sigma, _ = state
        left, speed = time - _gate_time(sigma, frame, *shape), _gate_speed(sigma, frame, *shape)
        less = (left > 0) & (speed > 0)
        low, high = jnp.where(less, sigma, low), jnp.where(less, high, sigma)
        move = left * speed
        inside = (sigma + move >= low) & (sigma + move <= high) & (2 * jnp.abs(move) <= last)
        new = jnp.where(inside, sigma + move, low + (high - low) / 2)
        # near a zero of N all moves are short, so that F has to be right too
        settled = (jnp.abs(move) <= close * sigma) & (jnp.abs(left) <= close * time)
        done = (inside & settled) | (new == sigma)
        return k + 1, low, high, jnp.where(inside, jnp.abs(move), high - low), new, done

    first = jnp.minimum(time * _gate_speed(jnp.zeros_like(high), frame, *shape), high)
    first = jnp.minimum(first, frame.reach / 2)  # N = 0 at `reach`, where F is not a number
    state = (0, jnp.zeros_like(high), high, 2 * high, first, high <= 0)
    return jax.lax.while_loop(more, step, state)[4]


@gate_length.defjvp
def _gate_length_jvp(primals: Any, tangents: Any) -> Any:
    """By the implicit function theorem: dsigma = (dtime - dF) sigma'."""
    sigma = gate_length(*primals)
    shape, time = primals[:5], primals[5]

    def gone(*shape: Any) -> Any:
        return _gate_time(sigma, _frame(time, *shape), *shape)

    _, change = jax.jvp(gone, shape, tangents[:5])
    return sigma, (tangents[5] - change) * _gate_speed(sigma, _frame(time, *shape), *shape)


def _gate_speed(sigma: Any, frame: _Frame, alpha: Any, far: Any, gamma: Any, plus: Any, minus: Any) -> Any:
    """sigma' = 1/F'(sigma)."""
    sigma = jnp.minimum(sigma, _longest(sigma))
    short, gone = jnp.exp(-sigma), -jnp.expm1(-sigma)
    r = frame.rest + frame.gap * short
    calm = (frame.start * short + frame.root * gone) * r
    return jnp.where(frame.rests, calm, _level(sigma, alpha, far, gamma)) / ((plus + minus * r**2) / 2)


def _longest(sigma: Any) -> Any:
    """e^(2 sigma) does not overflow. The speed is constant beyond, to rounding."""
    return 0.45 * jnp.log(jnp.finfo(jnp.result_type(sigma)).max)


def _gate_time(sigma: Any, frame: _Frame, alpha: Any, far: Any, gamma: Any, plus: Any, minus: Any) -> Any:
    """F(sigma), the time in which the arc becomes so long: the integral of D/N from 0 to tau.

    With xi = e^sigma - 1 it is a sum of two positive terms, (plus U + minus V)/2. If the point comes to rest,

        U = integral of (1 + xi)/((1 + rest xi)(start + root xi)) dxi,
        V = integral of (1 + rest xi)/((1 + xi)(start + root xi)) dxi,

    where no coefficient is negative; otherwise

        U = integral of (1 + xi)/(N(0) + (2 alpha + c) xi + alpha xi^2) dxi,
        V = integral of r/Q(r) dr from e^(-tau) to 1.

    Each is a combination of the two integrals of `inverse_moments`, with coefficients that are not negative.
    """
    longest = _longest(sigma)
    rest_of_way = jnp.maximum(sigma - longest, 0.0)
    sigma = jnp.minimum(sigma, longest)
    short, gone, xi = jnp.exp(-sigma), -jnp.expm1(-sigma), jnp.expm1(sigma)
    rests, rest, _, start, root, _ = frame
    height = alpha + far + gamma
    level = jnp.where(rests, 1.0, _level(sigma, alpha, far, gamma))
    square = far**2 - 4 * alpha * gamma

    end = start + root * xi
    calm = (
        (start * short, start * short),
        ((rest * start + root) * gone, (start + root) * gone),
        (rest * root * xi * gone, root * xi * gone),
        ((short + rest * gone) * end, end),
        (((rest * start - root) * gone) ** 2, ((start - root) * gone) ** 2),
    )
    free = (
        (height * short, level),
        ((far + 2 * alpha) * gone, (far + 2 * gamma * short) * gone),
        (alpha * xi * gone, gamma * gone**2),
        (level * (1 + xi), height),
        (square * gone**2, square * gone**2),
    )
    pairs = [jnp.where(rests, jnp.stack(one), jnp.stack(other)) for one, other in zip(calm, free, strict=True)]
    zeroth, first = inverse_moments(*pairs)  # of U and of V at once
    weights = jnp.stack([xi, jnp.where(rests, rest * xi, gone)])
    both = jnp.stack([jnp.ones_like(xi), jnp.where(rests, 1.0, short)]) * zeroth + weights * first
    total = gone * (plus * both[0] + minus * both[1]) / 2
    last = _gate_speed(jnp.where(rest_of_way > 0, longest, 0.0), frame, alpha, far, gamma, plus, minus)
    return total + rest_of_way / last

"""The flow of x' = (<a, x> + b)_+ P_x w on the unit sphere, in closed form but for one scalar equation."""

from typing import Any

import jax
import jax.numpy as jnp

from attnflow.fields.drift import direction

STEPS = 121
"""Steps for the length of an arc: every third is a bisection, since those of Newton may creep."""


def gate_flow(x: Any, w: Any, a: Any, b: Any, h: Any) -> tuple[Any, Any]:
    """(where x' = (<a, x> + b)_+ P_x w carries the rows of x in time h, log-determinants), for |w| of any size.

    Behind a boost of length tau along e = w/|w| a point has <a, x> + b = N(tau)/D(tau), with
    D = cosh tau + s sinh tau, s = <x, e>, and N = alpha e^tau + c + gamma e^(-tau). So tau' = |w| N/D, and
    log det = log(N/(N(0) D)) - (d - 1) log D: the change of the height, and d - 1 times that of the distance from the
    axis.
    """
    e, size = direction(w)
    s = x @ e
    across = x - s[:, None] * e[None]
    along, far = a @ e, across @ a
    one_plus, one_minus = _sides(x, e)
    alpha, gamma = (along + b) * one_plus / 2, (b - along) * one_minus / 2
    height = alpha + far + gamma
    most = jnp.sqrt(jnp.sum(a**2)) + jnp.abs(b)  # <a, x> + b is not larger
    # a point that has come to rest where N = 0 has a height of either sign by rounding, and must not pass
    active = (height > 8 * jnp.finfo(x.dtype).eps * most) & (size > 0)

    def length(alpha: Any, far: Any, gamma: Any, plus: Any, minus: Any) -> Any:
        return gate_length(alpha, far, gamma, plus, minus, size * h, most)

    good = [jnp.where(active, value, other) for value, other in
            ((alpha, 0.5), (far, 0.0), (gamma, 0.5), (one_plus, 1.0), (one_minus, 1.0))]  # fmt: skip
    tau = jnp.where(active, jax.vmap(length)(*good), 0.0)
    up, down = _scaled(tau)
    wide = (one_plus * up + one_minus * down) / 2  # D e^-|tau|
    short = jnp.exp(-_size(tau))
    moved = (((one_plus * up - one_minus * down) / 2)[:, None] * e[None] + short[:, None] * across) / wide[:, None]
    moved = moved / jnp.sqrt(jnp.sum(moved**2, axis=1, keepdims=True))
    log_width = jnp.log(wide) + _size(tau)
    after = alpha * up + far * short + gamma * down  # N e^-|tau|
    ratio = jnp.where(active, after / jnp.where(active, height, 1.0), 1.0)
    grown = jnp.log(jnp.maximum(ratio, jnp.finfo(x.dtype).tiny)) + _size(tau) - log_width
    return jnp.where(active[:, None], moved, x), jnp.where(active, grown - (x.shape[1] - 1) * log_width, 0.0)


def _sides(x: Any, e: Any) -> tuple[Any, Any]:
    """1 + <x, e> and 1 - <x, e>, each to relative accuracy."""
    return jnp.sum((x + e[None]) ** 2, axis=1) / 2, jnp.sum((x - e[None]) ** 2, axis=1) / 2


@jax.custom_jvp
def gate_length(alpha: Any, far: Any, gamma: Any, plus: Any, minus: Any, time: Any, most: Any) -> Any:
    """The length tau of the boost after `time`: time = F(tau), the integral of D/N from 0 to tau, in closed form.

    With y = e^tau it is half the integral of ((1 + s) y + (1 - s)/y)/(alpha y^2 + c y + gamma) from 1 to e^tau. N > 0
    along the way: tau stops at the first zero of N, which it never reaches. Bisection and Newton.
    """
    square = far**2 - 4 * alpha * gamma
    forward = time > 0
    # zeros of N in E = e^tau: the nearest one above 1 (forward) or below 1 (backward)
    root = jnp.sqrt(jnp.maximum(square, 0.0))
    big = -(far + jnp.where(far >= 0, root, -root)) / 2
    first, second = _ratio(big, alpha), _ratio(gamma, big)
    real = square >= 0
    inf = jnp.inf

    def beyond(e: Any) -> Any:
        ok = real & (e > 0) & jnp.isfinite(e)
        tau = jnp.log(jnp.where(ok, e, 1.0))
        return jnp.where(
            ok & forward & (tau > 0), tau, jnp.where(ok & ~forward & (tau < 0), tau, jnp.where(forward, inf, -inf))
        )

    ends = (beyond(first), beyond(second))
    stop = jnp.where(forward, jnp.minimum(*ends), jnp.maximum(*ends))
    reach = most * time
    low, high = jnp.where(forward, 0.0, jnp.maximum(stop, reach)), jnp.where(forward, jnp.minimum(stop, reach), 0.0)

    def passed(tau: Any) -> Any:
        return _gate_time(tau, alpha, far, gamma, plus, minus)

    def step(k: Any, state: Any) -> Any:
        low, high, tau = state
        gone = passed(tau)
        less = gone < time
        low, high = jnp.where(less, tau, low), jnp.where(less, high, tau)
        newton = tau + (time - gone) * _gate_speed(tau, alpha, far, gamma, plus, minus)
        inside = (newton > low) & (newton < high) & jnp.isfinite(newton) & (k % 3 != 2)
        return low, high, jnp.where(inside, newton, (low + high) / 2)

    return jax.lax.fori_loop(0, STEPS, step, (low, high, (low + high) / 2))[2]


@gate_length.defjvp
def _gate_length_jvp(primals: Any, tangents: Any) -> Any:
    """By the implicit function theorem: dtau = (dtime - dF) N/D."""
    tau = gate_length(*primals)
    shape, (time,) = primals[:5], tangents[5:6]
    _, change = jax.jvp(lambda *shape: _gate_time(tau, *shape), shape, tangents[:5])
    return tau, (time - change) * _gate_speed(tau, *shape)


def _gate_speed(tau: Any, alpha: Any, far: Any, gamma: Any, plus: Any, minus: Any) -> Any:
    """N/D."""
    up, down = _scaled(tau)
    return (alpha * up + far * jnp.exp(-_size(tau)) + gamma * down) / ((plus * up + minus * down) / 2)


def _scaled(tau: Any) -> tuple[Any, Any]:
    """e^tau and e^(-tau), divided by the larger of them."""
    ahead = tau >= 0
    return jnp.exp(jnp.where(ahead, 0.0, 2 * tau)), jnp.exp(jnp.where(ahead, -2 * tau, 0.0))


def _size(tau: Any) -> Any:
    """|tau|, with the derivative 1 at 0, as `_scaled` has it."""
    return jnp.where(tau >= 0, tau, -tau)


def _ratio(a: Any, b: Any) -> Any:
    return jnp.where(b == 0, jnp.inf, a / jnp.where(b == 0, 1.0, b))


def _gate_time(tau: Any, alpha: Any, far: Any, gamma: Any, plus: Any, minus: Any) -> Any:
    """F(tau): the time in which the length of the boost becomes tau; NaN or infinite beyond a zero of N."""
    return (plus * _moment(tau, alpha, far, gamma) - minus * _moment(-tau, gamma, far, alpha)) / 2


def _moment(tau: Any, alpha: Any, far: Any, gamma: Any) -> Any:
    """The integral of y/P(y) from 1 to e^tau, P(y) = alpha y^2 + c y + gamma.

    With real zeros, P = (alpha y - g)(y - y_2), where g y_2 = gamma and g has no cancellation: two logarithms, which
    stay accurate as alpha -> 0. Otherwise (log(P/P(1)) - c J)/(2 alpha), J the integral of 1/P by one arctangent.
    """
    square = far**2 - 4 * alpha * gamma
    root = jnp.sqrt(jnp.abs(square))
    sign = jnp.where(far >= 0, 1.0, -1.0)
    g = -(far + sign * root) / 2
    other = _ratio(gamma, g)
    ahead, one = _scaled(tau / 2)  # e^tau and 1, divided by the larger
    grown = jnp.where(tau >= 0, tau, 0.0)  # log of the larger
    first = _log_ratio(alpha, -g, ahead, one, grown)
    by_first = jnp.where(alpha == 0, jnp.expm1(tau) / -g, first / jnp.where(alpha == 0, 1.0, alpha))
    split = sign * (other * _log_ratio(1.0, -other, ahead, one, grown) - g * by_first) / jnp.where(root > 0, root, 1.0)
    # J = (2/root) artan(root (E - 1)/(2 alpha E + c (E + 1) + 2 gamma)), analytic in the square of the root
    under = 2 * alpha * ahead + far * (ahead + one) + 2 * gamma * one
    over = jnp.where(tau >= 0, -jnp.expm1(-tau), jnp.expm1(tau))
    u = over / jnp.where(under == 0, 1.0, under)
    series = 2 * u * (1 + square * u**2 / 3 + square**2 * u**4 / 5)
    small = root * jnp.abs(over) < 1e-4 * jnp.abs(under)
    inverse = jnp.where(small, series, 2 * jnp.arctan2(root * over, under) / jnp.where(root > 0, root, 1.0))
    up, down = _scaled(tau)
    high = alpha * up + far * jnp.exp(-_size(tau)) + gamma * down  # N e^-|tau|
    log_p = jnp.log(jnp.maximum(high, 0.0) / (alpha + far + gamma)) + _size(tau) + tau
    whole = (log_p - far * inverse) / jnp.where(alpha == 0, 1.0, 2 * alpha)
    apart = square > 1e-6 * (far**2 + jnp.abs(alpha * gamma))
    return jnp.where(apart, split, whole)


def _log_ratio(slope: Any, level: Any, ahead: Any, one: Any, grown: Any) -> Any:
    """log((slope E + level)/(slope + level)), with E = ahead/one in scaled form."""
    begin = slope + level
    near = slope * (ahead - one) * jnp.exp(jnp.minimum(grown, 80.0)) / jnp.where(begin == 0, 1.0, begin)
    scaled = (slope * ahead + level * one) / jnp.where(begin == 0, 1.0, begin)
    return jnp.where(grown < 80.0, jnp.log1p(jnp.maximum(near, -1.0)), jnp.log(jnp.maximum(scaled, 0.0)) + grown)

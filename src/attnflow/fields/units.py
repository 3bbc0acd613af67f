"""One ReLU unit, whose flow is known exactly in R^d and on the sphere."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attnflow.errors import InvalidInput
from attnflow.fields.base import Laws
from attnflow.fields.exact import AbstractExact
from attnflow.fields.queries import AbstractQuery, Points
from attnflow.fields.structure import Part
from attnflow.fields.weights import AbstractWeight, as_weight
from attnflow.spaces import AbstractSpace, Euclidean, Sphere
from attnflow.tokens import Measure, Tokens

HALVINGS = 60
"""Steps of bisection and Newton for the length of an arc; 55 halvings alone reach rounding."""


class ReluUnit(AbstractExact):
    """X(x) = w (<a, x> + b)_+: one unit of a perceptron, with w, a, b constant between jumps. No token feels another.

    R^d: with k = <a, w> the flow over a time h is x -> x + h phi(k h) (<a, x> + b)_+ w, phi(z) = (e^z - 1)/z, and its
    log-determinant is k h where <a, x> + b > 0. That is a residual layer x + u (<a, x> + b)_+ with 1 + <a, u> > 0, and
    every such layer is one (w = u log(1 + <a, u>)/<a, u>).

    Sphere: points with <a, x> + b <= 0 stand still; the others are boosted along w, by a length that solves a scalar
    equation in closed form (see `gate_length`). So a cap is moved inside itself, and all else is fixed
    (arXiv:2411.04551 uses this field; the closed forms are ours).

    `outer` is w and `inner` a, both of shape (dim,), `bias` is b, a number; arrays, `Pieces`, `PerLayer` or `Random`.
    """

    outer: AbstractWeight
    inner: AbstractWeight
    bias: AbstractWeight

    def __init__(self, outer: Any, inner: Any, bias: Any = 0.0):
        self.outer, self.inner = as_weight("outer", outer), as_weight("inner", inner)
        self.bias = as_weight("bias", bias)

    def formula(self, t: Any, query: AbstractQuery, mu: Measure) -> Points:
        x = query.points(mu)
        w, a, b = self._at(t, x.dtype)
        return jnp.maximum(x @ a + b, 0.0)[:, None] * w[None]

    def carry(self, t0: Any, t1: Any, query: AbstractQuery, mu: Measure) -> Points:
        x = query.points(mu)
        return unit_flow(mu.space, x, *self._at((t0 + t1) / 2, x.dtype), jnp.asarray(t1 - t0, x.dtype))[0]

    def stretching(self, t0: Any, t1: Any, query: AbstractQuery, mu: Measure) -> Float[Array, " query"]:
        x = query.points(mu)
        return unit_flow(mu.space, x, *self._at((t0 + t1) / 2, x.dtype), jnp.asarray(t1 - t0, x.dtype))[1]

    def children(self, space: AbstractSpace) -> tuple[Part, ...]:
        return ()

    def check_parameters(self, tokens: Tokens | Measure) -> None:
        if not isinstance(tokens.space, Sphere | Euclidean):
            raise InvalidInput(
                f"`ReluUnit` is for tokens on Sphere or Euclidean, not on {tokens.space}; use Perceptron."
            )
        d = tokens.dim
        for role, weight, shape in (("outer", self.outer, (d,)), ("inner", self.inner, (d,)), ("bias", self.bias, ())):
            if weight.shape != shape:
                raise InvalidInput(f"`{role}` of ReluUnit has shape {weight.shape}; give shape {shape}.")
            if not weight.is_piecewise:
                raise InvalidInput(
                    f"`{role}` of ReluUnit is {type(weight).__name__}, which changes between its jumps, so that the "
                    "flow is not known; use Pieces or PerLayer, or the field Perceptron."
                )

    @property
    def laws(self) -> Laws:
        weights = (self.outer, self.inner, self.bias)
        return Laws(rotation=False, exchangeable=True, lipschitz=True, steady=all(w.is_continuous for w in weights))

    def _at(self, t: Any, dtype: Any) -> tuple[Any, Any, Any]:
        return self.outer.at(t, dtype), self.inner.at(t, dtype), self.bias.at(t, dtype)


def unit_flow(space: AbstractSpace, x: Any, w: Any, a: Any, b: Any, h: Any) -> tuple[Any, Any]:
    """(where x' = P_x w (<a, x> + b)_+ carries the rows of x in time h, log-determinants)."""
    if isinstance(space, Euclidean):
        k = a @ w
        height = jnp.maximum(x @ a + b, 0.0)
        moved = x + (h * phi(k * h) * height)[:, None] * w[None]
        return moved, jnp.where(height > 0, k * h, 0.0)
    return gate_flow(x, w, a, b, h)


def phi(z: Any) -> Any:
    """(e^z - 1)/z."""
    safe = jnp.where(z == 0, 1.0, z)
    return jnp.where(z == 0, 1.0, jnp.expm1(safe) / safe)


def gate_flow(x: Any, w: Any, a: Any, b: Any, h: Any) -> tuple[Any, Any]:
    """The same on the unit sphere, for |w| of any size.

    Behind a boost of length tau along e = w/|w| a point has <a, x> + b = N(tau)/D(tau), with
    D = cosh tau + s sinh tau, s = <x, e>, and N = alpha e^tau + c + gamma e^(-tau). So tau' = |w| N/D, and
    log det = log(N D(0)/(N(0) D)) - (d - 2) log D + ... = log of the change of height, plus (d-1) times that of the
    distance from the axis.
    """
    size = jnp.sqrt(jnp.sum(w**2))
    e = w / jnp.where(size > 0, size, 1.0)
    s = x @ e
    across = x - s[:, None] * e
    along, far = a @ e, across @ a
    one_plus, one_minus = _sides(x, e)
    alpha, gamma = (along + b) * one_plus / 2, (b - along) * one_minus / 2
    height = alpha + far + gamma
    active = (height > 0) & (size > 0) & (h != 0)

    def length(alpha: Any, far: Any, gamma: Any, plus: Any, minus: Any) -> Any:
        most = jnp.sqrt(jnp.sum(a**2)) + jnp.abs(b)  # <a, x> + b is not larger
        return gate_length(alpha, far, gamma, plus, minus, size * h, most)

    good = [jnp.where(active, value, other) for value, other in
            ((alpha, 0.5), (far, 0.0), (gamma, 0.5), (one_plus, 1.0), (one_minus, 1.0))]  # fmt: skip
    tau = jnp.where(active, jax.vmap(length)(*good), 0.0)
    up, down = _scaled(tau)
    wide = (one_plus * up + one_minus * down) / 2  # D e^-|tau|
    short = jnp.exp(-jnp.abs(tau))
    moved = (((one_plus * up - one_minus * down) / 2)[:, None] * e + short[:, None] * across) / wide[:, None]
    moved = moved / jnp.sqrt(jnp.sum(moved**2, axis=1, keepdims=True))
    log_width = jnp.log(wide) + jnp.abs(tau)
    after = alpha * up + far * short + gamma * down  # N e^-|tau|
    ratio = jnp.where(active, after / jnp.where(active, height, 1.0), 1.0)
    grown = jnp.log(jnp.maximum(ratio, jnp.finfo(x.dtype).tiny)) + jnp.abs(tau) - log_width
    return jnp.where(active[:, None], moved, x), jnp.where(active, grown - (x.shape[1] - 1) * log_width, 0.0)


def _sides(x: Any, e: Any) -> tuple[Any, Any]:
    """1 + <x, e> and 1 - <x, e>, each to relative accuracy."""
    return jnp.sum((x + e) ** 2, axis=1) / 2, jnp.sum((x - e) ** 2, axis=1) / 2


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

    def step(_: Any, state: Any) -> Any:
        low, high, tau = state
        gone = passed(tau)
        less = gone < time
        low, high = jnp.where(less, tau, low), jnp.where(less, high, tau)
        up, down = _scaled(tau)
        speed = (alpha * up + far * jnp.exp(-jnp.abs(tau)) + gamma * down) / ((plus * up + minus * down) / 2)
        newton = tau + (time - gone) * speed
        inside = (newton > low) & (newton < high) & jnp.isfinite(newton)
        return low, high, jnp.where(inside, newton, (low + high) / 2)

    return jax.lax.fori_loop(0, HALVINGS, step, (low, high, (low + high) / 2))[2]


def _scaled(tau: Any) -> tuple[Any, Any]:
    """e^tau and e^(-tau), divided by the larger of them."""
    return jnp.exp(jnp.minimum(2 * tau, 0.0)), jnp.exp(jnp.minimum(-2 * tau, 0.0))


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
    grown = jnp.maximum(tau, 0.0)  # log of the larger
    first = _log_ratio(alpha, -g, ahead, one, grown)
    by_first = jnp.where(alpha == 0, jnp.expm1(tau) / -g, first / jnp.where(alpha == 0, 1.0, alpha))
    split = sign * (other * _log_ratio(1.0, -other, ahead, one, grown) - g * by_first) / jnp.where(root > 0, root, 1.0)
    # J = (2/root) artan(root (E - 1)/(2 alpha E + c (E + 1) + 2 gamma)), analytic in the square of the root
    under = 2 * alpha * ahead + far * (ahead + one) + 2 * gamma * one
    over = jnp.where(tau > 0, -jnp.expm1(-tau), jnp.expm1(tau))
    u = over / jnp.where(under == 0, 1.0, under)
    series = 2 * u * (1 + square * u**2 / 3 + square**2 * u**4 / 5)
    small = root * jnp.abs(over) < 1e-4 * jnp.abs(under)
    inverse = jnp.where(small, series, 2 * jnp.arctan2(root * over, under) / jnp.where(root > 0, root, 1.0))
    up, down = _scaled(tau)
    high = alpha * up + far * jnp.exp(-jnp.abs(tau)) + gamma * down  # N e^-|tau|
    log_p = jnp.log(jnp.maximum(high, 0.0) / (alpha + far + gamma)) + jnp.abs(tau) + tau
    whole = (log_p - far * inverse) / jnp.where(alpha == 0, 1.0, 2 * alpha)
    apart = square > 1e-6 * (far**2 + jnp.abs(alpha * gamma))
    return jnp.where(apart, split, whole)


def _log_ratio(slope: Any, level: Any, ahead: Any, one: Any, grown: Any) -> Any:
    """log((slope E + level)/(slope + level)), with E = ahead/one in scaled form."""
    begin = slope + level
    near = slope * (ahead - one) * jnp.exp(jnp.minimum(grown, 100.0)) / jnp.where(begin == 0, 1.0, begin)
    scaled = (slope * ahead + level * one) / jnp.where(begin == 0, 1.0, begin)
    return jnp.where(grown < 100.0, jnp.log1p(jnp.maximum(near, -1.0)), jnp.log(jnp.maximum(scaled, 0.0)) + grown)

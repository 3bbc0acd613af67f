"""Sums through spherical harmonics: O(n) work for each function of the basis, to a stated absolute accuracy.

On S^(d-1) e^(beta (<x, y> - 1)) = sum_k p_k P_k(<x, y>), with P_k(1) = 1, p_k >= 0 and sum_k p_k = 1. Cut after
degree K the kernel is off by at most sum_{k>K} p_k, everywhere. By the addition theorem P_k splits into harmonics of x
and of y, so that n tokens enter through one moment per harmonic.

Truncation and round-off are absolute, relative to the largest weight 1. A token sees its own mass, so the softmax mean
is off by at most 2 (eps + round-off)/min mass: the series is cut where eps = tol min mass/4, which leaves as much to
round-off. Where a query sees so little that round-off takes more, the sum says so (`trusted`) and its caller falls
back on tiles.
"""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow.errors import InvalidInput
from attnflow.masks import Causal
from attnflow.special.degrees import multiplicity_ratios, truncation_degrees
from attnflow.sums.base import (
    AbstractSum,
    Arguments,
    Charges,
    KeySide,
    QuerySide,
    Sums,
    Use,
    Weights,
    blocked,
    least_mass,
    length,
    seen_by_present,
    side_by_side,
    unsupported,
)
from attnflow.sums.tiled import Tiled
from attnflow.tokens import Measure, Tokens

ROUND_OFF = 4.0
"""Units in the last place of the absolute error of a sum, per sqrt(degree + 1); `python benchmarks/rounding.py` finds
at most 2.4 in float64 and 1.7 in float32."""
GROUPS = 2
"""Loops over chunks that run at the same time."""
DIRECT = 128
"""Tokens of one chunk of causal attention, within which pairs are summed one by one."""


class AbstractSeries(AbstractSum):
    """Sums by harmonics up to a degree of at most `degree`, for tokens on the unit sphere and beta >= 0.

    One compiled function serves every beta, tolerance and mass whose degree fits; beyond that the result is NaN
    (`check` of the field refuses this beforehand). Masks: `Everyone()`, and `Causal` (with any slope) for tokens at
    different places; elsewhere than at the tokens causal sums are tiled.
    """

    tol: Float[Array | np.ndarray, ""]
    degree: int = eqx.field(static=True)
    chunk: int = eqx.field(static=True)
    guarded: bool = eqx.field(static=True, default=True)
    """Whether ratios must be looked at even at the tokens, because round-off over the least mass exceeds `tol`."""

    @property
    @abc.abstractmethod
    def dim(self) -> int:
        """The d of the sphere S^(d-1)."""

    @abc.abstractmethod
    def _moments(self, x: Any, charges: Any, top: Any) -> Any:
        """sum_j Y_b(x_j) charge_j of one chunk, for all harmonics b of degree up to `top` (traced): a pytree."""

    @abc.abstractmethod
    def _weighted(self, moments: Any, p: Any) -> Any:
        """Moments multiplied by p_k/N(k, d)."""

    @abc.abstractmethod
    def _synthesis(self, x: Any, moments: Any, top: Any) -> Any:
        """sum_b Y_b(x_i) moment_b at the points of one chunk."""

    def __call__(
        self,
        weights: Weights,
        query: QuerySide,
        key: KeySide,
        log_mass: Float[Array, " key"],
        charges: Charges,
    ) -> Sums:
        if not (weights.mask.sees_everyone or weights.at_tokens):
            return Tiled()(weights, query, key, log_mass, charges)  # a prefix that ends between two tokens
        top = jnp.max(log_mass)
        masses = jnp.exp(log_mass - top)
        p, beyond = series_weights(weights.beta, self.dim, self.degree)
        tails = jnp.cumsum(jnp.concatenate([p[1:], beyond[None]])[::-1])[::-1]
        lightest = jnp.min(jnp.where(masses > 0, masses, jnp.inf))
        eps = 0.25 * jnp.asarray(self.tol, p.dtype) * lightest / jnp.sum(masses)
        last = jax.lax.stop_gradient(jnp.sum(tails > eps))
        loads = masses[:, None] * charges.array(key[0])
        if weights.mask.sees_everyone:
            sums = self._everyone(query[0], key[0], loads, p, last)
        elif isinstance(weights.mask, Causal) and not weights.mask.strict:
            sums = self._causal(weights, key, loads, p, last)
        else:
            raise InvalidInput(unsupported(type(self).__name__, weights.mask))
        enough = (last <= self.degree) & (weights.beta >= 0)
        return jnp.full(sums.shape[:1], top), jnp.where(enough, sums, jnp.nan)

    def shared(self, copies: int) -> "AbstractSeries":
        return self

    def trusted(self, arguments: Arguments, scale: Any, total: Any) -> Any:
        weights, _, (_, place), log_mass, _ = arguments
        tiled = not (weights.at_tokens or weights.mask.sees_everyone)
        if tiled or (weights.at_tokens and not self.guarded):
            return None
        masses, seen = jnp.exp(log_mass), total * jnp.exp(scale)
        least = 4 * round_off(self.degree, total.dtype) / jnp.asarray(self.tol, total.dtype)
        # where truncation takes the other half of `tol`; a token alone sees its own mass but for rounding
        lightest = 0.99 * jnp.min(jnp.where(masses > 0, masses, jnp.inf))
        if weights.mask.sees_everyone:
            return jnp.min(seen_by_present(weights, seen, jnp.inf)) >= jnp.maximum(least * jnp.sum(masses), lightest)
        seen = seen_by_present(weights, seen, jnp.inf)
        order = jnp.argsort(place)  # what comes later has no part in the error
        return jnp.all(seen[order] >= jnp.maximum(least * jnp.cumsum(masses[order]), lightest))

    def error(self, beta: Any, masses: Float[Array, " key"]) -> Any:
        lightest = jnp.min(jnp.where(masses > 0, masses, jnp.inf)) / jnp.sum(masses)
        cut = 0.25 * jnp.asarray(self.tol, masses.dtype) * lightest
        return cut + jnp.asarray(round_off(self.degree, masses.dtype), masses.dtype)

    def refusal(self, use: Use, tokens: Tokens | Measure | None) -> str:
        name = type(self).__name__
        if why := use.outside_series(name, True):
            return why
        if use.space.dim != self.dim:
            return f"the sum {name} is for points in R^{self.dim}, not in R^{use.space.dim}; use sum=Tiled()."
        if tokens is None or use.betas is None:
            return ""
        if not use.mask.sees_everyone and repeated(tokens):
            return (
                f"`place` holds a number twice, which the sum {name} does not support under a causal mask; "
                "use sum=Tiled()."
            )
        tol = float(np.min(self.tol))
        needed = needed_degree(float(np.max(use.betas)), self.dim, tokens.masses, tol)
        if needed > self.degree:
            return (
                f"the sum {name} was made for degrees up to {self.degree}; beta = {np.max(use.betas):g} and these "
                f"masses need {needed}. Call `prepare` of a field without a sum again, or use sum=Tiled()."
            )
        rounding = round_off(self.degree, tokens.positions.dtype)
        return "" if self.guarded else unguarded(name, tol, tokens, rounding)

    def _everyone(self, query: Any, key: Any, charges: Any, p: Any, last: Any) -> Any:
        size = min(self.chunk, max(length(query), length(key)))
        blocks = (blocked(key, size, None), blocked(charges, size, 0.0))
        one = jax.eval_shape(lambda x, c: self._moments(x, c, last), blocks[0][0], blocks[1][0])

        @jax.checkpoint
        def add(total: Any, block: Any) -> Any:
            return jax.tree.map(jnp.add, total, self._moments(block[0], block[1], last)), None

        zero = jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), one)
        parts = side_by_side(lambda some: jax.lax.scan(add, zero, some)[0], blocks, GROUPS)
        moments = self._weighted(jax.tree.map(lambda *a: sum(a[1:], a[0]), *parts), p)
        at = jax.checkpoint(lambda x: self._synthesis(x, moments, last))
        found = side_by_side(lambda some: jax.lax.map(at, some), blocked(query, size, None), GROUPS)
        return jnp.concatenate(found).reshape(-1, charges.shape[1])[: query.shape[0]]

    def _causal(self, weights: Weights, key: KeySide, charges: Any, p: Any, last: Any) -> Any:
        """Chunk after chunk: what came before through the moments, what is inside pair by pair."""
        (x, place), mask = key, weights.mask
        order = jnp.argsort(place)
        slope = jnp.asarray(mask.slope, x.dtype)  # type: ignore[attr-defined]
        blocks = (
            blocked(x[order], DIRECT, None),
            blocked(place[order], DIRECT, None),
            blocked(charges[order], DIRECT, 0.0),
        )
        one = jax.eval_shape(lambda x, c: self._moments(x, c, last), blocks[0][0], blocks[2][0])
        zero = jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), one)

        @jax.checkpoint
        def step(carry: Any, block: Any) -> Any:
            before, at = carry  # moments of the past as seen from the place `at`
            x, place, charge = block
            first, final = place[0], place[-1]
            gap = jnp.exp(-slope * (first - at).astype(x.dtype))
            here = jax.tree.map(lambda m: m * gap, before)
            far = self._synthesis(x, self._weighted(here, p), last)
            fade = jnp.exp(-slope * (place - first).astype(x.dtype))
            inside = jnp.exp(weights.log((x, place), (x, place))) @ charge
            kept = jnp.exp(-slope * (final - place).astype(x.dtype))
            new = self._moments(x, kept[:, None] * charge, last)
            ahead = jnp.exp(-slope * (final - first).astype(x.dtype))
            return (jax.tree.map(lambda a, b: ahead * a + b, here, new), final), far * fade[:, None] + inside

        _, sums = jax.lax.scan(step, (zero, place[order[0]]), blocks)
        sums = sums.reshape(-1, charges.shape[1])[: x.shape[0]]
        return jnp.zeros_like(sums).at[order].set(sums)


def repeated(tokens: Any) -> bool:
    """Whether two tokens of one system stand at the same place; absent rows do not count."""
    places = np.asarray(tokens.place)
    if tokens.present is not None:
        places = np.where(np.asarray(tokens.present), places, np.nan)  # which is equal to nothing
    return bool((np.diff(np.sort(places, axis=-1), axis=-1) == 0).any())


def unguarded(name: str, tol: float, tokens: Any, rounding: float) -> str:
    """Why ratios at the tokens cannot be taken on trust: round-off over the least mass exceeds the tolerance."""
    lightest = least_mass(tokens)
    if lightest > 0 and 4 * rounding <= 1.0000001 * tol * lightest:
        return ""
    return (
        f"the sum {name} was made with guarded=False and tol = {tol:.1e}, but a token has a mass of only "
        f"{lightest:.1e}; use guarded=True, a larger tol, or sum=Tiled()."
    )


def needed_degree(beta: float, d: int, masses: Any, tol: float) -> int:
    """The degree at which the series is cut for these masses and this tolerance of the softmax mean."""
    masses = np.asarray(masses, np.float64)
    lightest = np.min(masses[masses > 0]) / np.max(np.sum(masses, axis=-1))
    return int(truncation_degrees(np.asarray(max(0.25 * tol * lightest, 1e-280)), beta, d))


def round_off(degree: int, dtype: Any) -> float:
    """A bound of the absolute round-off of a sum, relative to the sum of masses times charges."""
    return ROUND_OFF * float(np.finfo(dtype).eps) * (degree + 1) ** 0.5


def series_weights(beta: Any, d: int, degree: int) -> tuple[Any, Any]:
    """(p_0, ..., p_degree) for a traced beta >= 0, and the sum of all later p_k.

    Quotients of neighbouring Bessel functions by their downward recurrence
    I_{v+1}/I_v = beta/(2 (v + 1) + beta I_{v+2}/I_{v+1}), v = k + d/2 - 1, which forgets where it was started.
    """
    beta = jnp.asarray(beta)
    count = degree + 64
    order = jnp.arange(count, dtype=beta.dtype) + (d / 2 - 1)
    start = beta / (order[-1] + 1.5 + jnp.sqrt((order[-1] + 2.5) ** 2 + beta**2))

    def down(ratio: Any, v: Any) -> Any:
        ratio = beta / (2 * (v + 1) + beta * ratio)
        return ratio, ratio

    _, ratios = jax.lax.scan(down, start, order, reverse=True)
    steps = jnp.asarray(multiplicity_ratios(d, count), beta.dtype) * ratios
    p = jnp.concatenate([jnp.ones((1,), beta.dtype), jnp.cumprod(steps)])
    p = p / jnp.sum(p)
    return p[: degree + 1], jnp.sum(p[degree + 1 :])

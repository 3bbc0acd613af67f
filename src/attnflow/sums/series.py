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
from attnflow.kernels import AbstractKernel, Expansion, Exponential, Gaussian, cast, expanded, first_member
from attnflow.kernels.exponential import STEEPEST
from attnflow.masks import AbstractPrefix
from attnflow.special.degrees import basis_size
from attnflow.sums.base import MEMORY, AbstractSum, Case, Offer, Use, least_mass, named, unsupported
from attnflow.sums.blocks import blocked, length, side_by_side
from attnflow.sums.costs import SETUP, setup_of_harmonics
from attnflow.sums.tiled import Tiled
from attnflow.sums.weights import Arguments, Charges, KeySide, QuerySide, Sums, Weights, seen_by_present
from attnflow.tokens import Measure, Tokens

ROUND_OFF = 4.0
"""Units in the last place of the absolute error of a sum, per sqrt(degree + 1); `python benchmarks/rounding.py` finds
at most 2.4 in float64 and 1.7 in float32."""
LARGEST = {"float64": 1300, "float32": 140}
"""Degrees beyond which harmonics underflow before they can grow again."""
NO_EXPANSION = f"needs a kernel with an expansion in degrees (for a Gaussian, beta >= 0 and at most {STEEPEST:g})"
GROUPS = 2
"""Loops over chunks that run at the same time."""
DIRECT = {2: 32, 3: 128}
"""Tokens of one block of causal attention, within which pairs are summed one by one; the last entry for d > 3 too."""
TOGETHER = {2: 16, 3: 1}
"""Blocks of causal attention that one operation takes together: many small ones, or one that is large enough."""
BUNDLE = 512
"""Blocks of causal attention whose moments are in memory at the same time."""


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
        expansion = expanded(weights.kernel, self.dim, self.degree, key[0].dtype)
        p = expansion.p
        tails = jnp.cumsum(jnp.concatenate([jnp.abs(p[1:]), expansion.rest[None]])[::-1])[::-1]
        lightest = jnp.min(jnp.where(masses > 0, masses, jnp.inf))
        eps = 0.25 * jnp.asarray(self.tol, p.dtype) * lightest / jnp.sum(masses)
        last = jax.lax.stop_gradient(jnp.sum(tails > jnp.maximum(eps, expansion.noise)))
        loads = masses[:, None] * charges.array(key[0])
        if weights.mask.sees_everyone:
            sums = self._everyone(query[0], key[0], loads, p, last)
        elif isinstance(weights.mask, AbstractPrefix) and not weights.mask.strict:
            sums = self._prefix(weights.mask, weights, key, loads, expansion, last)
        else:
            raise InvalidInput(unsupported(type(self).__name__, weights.mask))
        return jnp.full(sums.shape[:1], top + expansion.scale), jnp.where(last <= self.degree, sums, jnp.nan)

    def shared(self, copies: int) -> "AbstractSeries":
        return self

    def trusted(self, arguments: Arguments, scale: Any, total: Any) -> Any:
        weights, _, (_, place), log_mass, _ = arguments
        tiled = not (weights.at_tokens or weights.mask.sees_everyone)
        if tiled or (weights.at_tokens and not self.guarded):
            return None
        masses = jnp.exp(log_mass)
        expansion = expanded(weights.kernel, self.dim, self.degree, total.dtype)
        rounding = round_off(self.degree, total.dtype) + 2 * expansion.noise
        least = 4 * rounding / jnp.asarray(self.tol, total.dtype)
        seen = total * jnp.exp(scale - expansion.scale)
        # where truncation takes the other half of `tol`; a token alone sees its own mass except for rounding
        lightest = 0.99 * jnp.min(jnp.where(masses > 0, masses, jnp.inf))
        if weights.mask.sees_everyone:
            return jnp.min(seen_by_present(weights, seen, jnp.inf)) >= jnp.maximum(least * jnp.sum(masses), lightest)
        seen = seen_by_present(weights, seen, jnp.inf)
        order = jnp.argsort(place)  # what comes later has no part in the error
        return jnp.all(seen[order] >= jnp.maximum(least * jnp.cumsum(masses[order]), lightest))

    def error(self, kernel: AbstractKernel, masses: Float[Array, " key"]) -> Any:
        expansion = expanded(cast(kernel, masses.dtype), self.dim, self.degree, masses.dtype)
        lightest = jnp.min(jnp.where(masses > 0, masses, jnp.inf)) / jnp.sum(masses)
        # coefficients are off by the noise, and a cut below the noise is made at the noise
        cut = 0.25 * jnp.asarray(self.tol, masses.dtype) * lightest + 2 * expansion.noise
        rounding = jnp.asarray(round_off(self.degree, masses.dtype), masses.dtype) * jnp.sum(jnp.abs(expansion.p))
        return jnp.exp(expansion.scale) * (cut + rounding)

    def refusal(self, use: Use, tokens: Tokens | Measure | None) -> str:
        name = type(self).__name__
        if why := use.outside_sphere(name) or use.outside_mask(name, True):
            return why
        if use.space.dim != self.dim:
            return f"the sum {name} is for points in R^{self.dim}, not in R^{use.space.dim}; use sum=Tiled()."
        if tokens is None or (kernels := use.kernels) is None:
            return outside_expansions(name, use, self.dim)
        if not use.mask.sees_everyone and repeated(tokens):
            return (
                f"`place` holds a number twice, which the sum {name} does not support under a causal mask; "
                "use sum=Tiled()."
            )
        tol = float(np.min(self.tol))
        needed = needed_degree(kernels, self.dim, tokens, tol)
        if needed is None or needed[0] > self.degree:
            return too_few_degrees(name, kernels, needed, self.degree)
        rounding = round_off(self.degree, tokens.positions.dtype) + needed[1]
        return "" if self.guarded else unguarded(name, tol, tokens, rounding)

    @classmethod
    @abc.abstractmethod
    def _made(cls, case: Case, degree: int, tol: float, guarded: bool) -> "AbstractSeries":
        """The sum for a case of the right dimension."""

    @classmethod
    @abc.abstractmethod
    def _serves(cls, d: int) -> bool:
        """Whether this series is for S^(d-1)."""

    @classmethod
    def least_seconds(cls, case: Case) -> float:
        return case.costs.call

    @classmethod
    def offers(cls, case: Case) -> tuple[Offer, ...]:
        name, d, n = cls.__name__, case.d, case.n
        if not cls._serves(d):
            return ()

        def out(why: str) -> tuple[Offer, ...]:
            return (Offer(name, None, why_not=why),)

        if why := not_for_series(case, True):
            return out(why)
        needed = needed_degree(case.kernels, d, case.tokens, case.tol)
        if needed is None:
            return out(NO_EXPANSION)
        degree, noise = needed
        size = float(basis_size(degree, d))
        if size > n and d > 2 and case.costs.tiles(n, d, True) < size * n * case.costs.basis:
            return out(f"its {size:.3g} harmonics up to degree {degree} outnumber the tokens")
        limit = LARGEST[case.dtype.name]
        if degree > limit and d > 2:
            return out(f"degree {degree} is above {limit}, where harmonics leave float range")
        if 64 * size > MEMORY:
            return out(f"its {size:.3g} harmonics would take {64 * size / 2**30:.3g} GiB")
        made_degree = cls._made(case, degree, case.tol, True).degree
        work = n * size * case.costs.circle if d == 2 else case.costs.harmonics(n, made_degree, d)
        seconds = case.costs.call + work
        if not case.use.mask.sees_everyone:
            seconds += n * (DIRECT[min(d, 3)] * case.costs.pair[True] + 0.3 * size * case.costs.basis)
        rounding = noise + round_off(made_degree, case.dtype)
        setup = SETUP["Circle"] if d == 2 else setup_of_harmonics(made_degree, d)
        return (case.cut(name, lambda tol, guarded: cls._made(case, degree, tol, guarded), seconds, rounding, setup),)

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

    def _prefix(
        self, mask: AbstractPrefix, weights: Weights, key: KeySide, charges: Any, expansion: Expansion, last: Any
    ) -> Any:
        """What came before a block of tokens through moments, what is inside pair by pair.

        Only the running total of moments goes from block to block. Where blocks are small, moments of many of them and
        sums at their tokens are found together; where a block is work enough, one step does both and evaluates its
        harmonics once.
        """
        x, place = key
        order = jnp.argsort(place)
        size, together = (sizes[min(self.dim, 3)] for sizes in (DIRECT, TOGETHER))

        def fade(later: Any, earlier: Any) -> Any:
            return jnp.exp(mask.decay(later, earlier).astype(x.dtype))

        def moments(x: Any, place: Any, charge: Any) -> Any:
            return self._moments(x, fade(place[-1], place)[:, None] * charge, last)

        def total(x: Any, place: Any, charge: Any, before: Any) -> Any:
            far = self._synthesis(x, self._weighted(before, expansion.p), last)
            inside = weights.values((x, place), (x, place)) @ charge * jnp.exp(-expansion.scale)
            return far * fade(place, place[0])[:, None] + inside

        def along(carry: Any, block: Any) -> Any:
            past, at = carry  # moments of all earlier blocks as seen from the place `at`
            own, first, final = block
            here = jax.tree.map(lambda m: m * fade(first, at), past)
            ahead = fade(final, first)
            return (jax.tree.map(lambda a, b: ahead * a + b, here, own), final), here

        @jax.checkpoint
        def one_block(carry: Any, block: Any) -> Any:
            x, place, charge = block
            carry, before = along(carry, (moments(x, place, charge), place[0], place[-1]))
            return carry, total(x, place, charge, before)

        @jax.checkpoint
        def bundle(carry: Any, blocks: Any) -> Any:
            own = _each(moments, blocks, together)
            carry, before = jax.lax.scan(along, carry, (own, blocks[1][:, 0], blocks[1][:, -1]))
            return carry, _each(total, (*blocks, before), together)

        fills = (None, None, 0.0)
        parts = [blocked(a[order], size, fill) for a, fill in zip((x, place, charges), fills, strict=True)]
        one = jax.eval_shape(moments, *(a[0] for a in parts))
        zero = jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), one)
        step = one_block
        if together > 1:
            step, many = bundle, min(BUNDLE, length(parts))
            parts = [blocked(a, many, fill) for a, fill in zip(parts, fills, strict=True)]
        _, sums = jax.lax.scan(step, (zero, place[order[0]]), tuple(parts))
        sums = sums.reshape(-1, charges.shape[1])[: x.shape[0]]
        return jnp.zeros_like(sums).at[order].set(sums)


def _each(function: Any, blocks: Any, together: int) -> Any:
    """`function` of every block, `together` at a time, in loops that run side by side."""
    count, groups = length(blocks), jax.tree.map(lambda a: blocked(a, together, None), blocks)
    found = side_by_side(lambda some: jax.lax.map(lambda one: jax.vmap(function)(*one), some), groups, GROUPS)
    return jax.tree.map(lambda *a: jnp.concatenate(a).reshape(-1, *a[0].shape[2:])[:count], *found)


def not_for_series(case: Case, takes_prefix: bool) -> str:
    """Why no series is for this case; empty if one may be."""
    use = case.use
    if use.outside_sphere(""):
        return "needs softmax or unnormalised attention with Q = K = I on the unit sphere"
    if use.outside_mask("", takes_prefix):
        return f"does not support the mask {type(use.mask).__name__}"
    if not use.mask.sees_everyone and repeated(case.tokens):
        return "needs different places under a causal mask"
    return "tokens of mass zero may see less than the error of a series" if case.lightest <= 0 else ""


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


def needed_degree(
    kernels: list[AbstractKernel], d: int, tokens: Tokens | Measure, tol: float
) -> tuple[int, float] | None:
    """(degree, noise) of all kernels for these tokens and this tolerance of the softmax mean; None if one has none.

    The noise is what the rounding of coefficients, in the precision of the tokens, may add to a sum.
    """
    masses, dtype = np.asarray(tokens.masses, np.float64), tokens.positions.dtype
    lightest = float(np.min(masses[masses > 0]) / np.max(np.sum(masses, axis=-1)))
    found = [kernel.needed_degree(d, max(0.25 * tol * lightest, 1e-280)) for kernel in kernels]
    known = [one for one in found if one is not None]
    if len(known) < len(found):
        return None
    coarser = float(np.finfo(dtype).eps / np.finfo(np.float64).eps)
    return max(one[0] for one in known), 2 * coarser * max(one[1] for one in known)


def too_few_degrees(name: str, kernels: list[AbstractKernel], needed: tuple[int, float] | None, degree: int) -> str:
    """The refusal of kernels that need more than `degree` degrees, or have no expansion."""
    if needed is None:
        return without_expansion(name, kernels)
    return (
        f"the sum {name} was made for degrees up to {degree}; {named(kernels)} and these masses need {needed[0]}. "
        "Call `prepare` of a field without a sum again, or use sum=Tiled()."
    )


def outside_expansions(name: str, use: Use, d: int) -> str:
    """Why the kernel cannot be expanded, by its structure; empty if it can."""
    kernel = first_member(use.kernel)
    found = jax.eval_shape(lambda: kernel.expansion(d, 1))
    return "" if found is not None else without_expansion(name, [kernel])


def without_expansion(name: str, kernels: list[AbstractKernel]) -> str:
    """The refusal of a kernel by the series `name`."""
    if isinstance(kernels[0], Exponential | Gaussian):
        if max(float(np.asarray(kernel.beta)) for kernel in kernels) > STEEPEST:  # type: ignore[attr-defined]
            return f"`beta` is above {STEEPEST:g}, where the sum {name} needs too many degrees; sum=Tiled() takes any."
        return f"`beta` is negative; the sum {name} needs beta >= 0, sum=Tiled() takes any."
    if jax.eval_shape(lambda: kernels[0].expansion(3, 1)) is not None:
        return (
            f"the kernel {type(kernels[0]).__name__} needs too many degrees for the sum {name}, or is much larger "
            "elsewhere than at equal points; use sum=Tiled()."
        )
    return (
        f"the sum {name} needs a kernel with an expansion in degrees, which {type(kernels[0]).__name__} has not; "
        "use sum=Tiled()."
    )


def round_off(degree: int, dtype: Any) -> float:
    """A bound of the absolute round-off of a sum, relative to the sum of masses times charges."""
    return ROUND_OFF * float(np.finfo(dtype).eps) * (degree + 1) ** 0.5

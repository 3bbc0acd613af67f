"""Sums that run outside the compiled code, in NumPy and the C++ libraries it calls. For the CPU.

A callback has no derivative: these sums take those of `exact`, a sum in JAX that gives the same values. Under `vmap`
the members of a batch are done one after the other.
"""

import abc
import os
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow.errors import InvalidInput
from attnflow.kernels import AbstractKernel, cast
from attnflow.masks import Everyone
from attnflow.sums.base import AbstractSum, unsupported
from attnflow.sums.blocks import derived_from, length
from attnflow.sums.weights import Charges, Columns, KeySide, Moments, QuerySide, Sums, Weights

Work = Callable[[Any, float, np.ndarray, np.ndarray, np.ndarray, Charges], np.ndarray]
"""(numbers of the kernel, eps, x, y, masses, charges) -> S, in float64, off by at most eps sum_j m_j |charge_j| before
rounding."""


class AbstractHostSum(AbstractSum):
    """Sums for unit vectors and the mask `Everyone()`; computed in float64 whatever the type of the tokens.

    `tol` is the absolute error of the softmax mean at the tokens: S is off by at most tol min mass/4 before rounding.
    Tokens that are not finite give NaN.
    """

    tol: Float[Array | np.ndarray, ""]
    exact: AbstractSum

    @abc.abstractmethod
    def _numbers(self, kernel: AbstractKernel) -> tuple[Any, Any, Any]:
        """(scale, what the host needs to know of the kernel over e^scale: a pytree of arrays, its error); traced."""

    @abc.abstractmethod
    def _work(self) -> Work:
        """What is done on the host; `x is y` there when the queries are the tokens. Holds no array of this object."""

    def __call__(
        self,
        weights: Weights,
        query: QuerySide,
        key: KeySide,
        log_mass: Float[Array, " key"],
        charges: Charges,
    ) -> Sums:
        if not weights.mask.sees_everyone:
            raise InvalidInput(unsupported(type(self).__name__, weights.mask))
        at_tokens, work = weights.at_tokens, self._work()
        top = jax.lax.stop_gradient(jnp.max(log_mass))
        top = jnp.where(jnp.isfinite(top), top, 0.0)
        # a rule of differentiation may not close over traced arrays: everything traced is an argument
        arrays, rest = eqx.partition((weights.kernel, self.exact), eqx.is_array)

        def fast(x: Any, y: Any, log_mass: Any, charges: Charges, tol: Any, arrays: Any) -> Any:
            count = y.shape[1] + 1 if isinstance(charges, Moments) else charges.values.shape[1]
            shape = jax.ShapeDtypeStruct((length(x), count, 2), jnp.uint32)
            kernel: AbstractKernel = eqx.combine(arrays, rest)[0]
            numbers = (self._numbers(kernel)[1], tol, x, y, log_mass, charges)

            def answer(words: Any) -> np.ndarray:
                return _to_words(_answer(work, at_tokens, *jax.tree.map(_from_words, words)))

            def in_words(a: Any) -> Any:
                return jax.lax.bitcast_convert_type(jnp.asarray(a, jnp.float64), jnp.uint32)

            found = jax.pure_callback(answer, shape, jax.tree.map(in_words, numbers), vmap_method="sequential")
            return jax.lax.bitcast_convert_type(found, jnp.float64).astype(y.dtype)

        def exact(x: Any, y: Any, log_mass: Any, charges: Any, tol: Any, arrays: Any) -> Any:
            sides = tuple((points, jnp.zeros(points.shape[:1], jnp.int32)) for points in (x, y))
            kernel, summed = eqx.combine(arrays, rest)
            scale, sums = summed(Weights(kernel, Everyone(), at_tokens=at_tokens), *sides, log_mass, charges)
            return jnp.exp(scale - self._numbers(kernel)[0].astype(scale.dtype))[:, None] * sums

        sums = derived_from(exact, fast)(query[0], key[0], log_mass - top, charges, jnp.asarray(self.tol), arrays)
        return jnp.full(sums.shape[:1], top + self._numbers(weights.kernel)[0].astype(top.dtype)), sums

    def error(self, kernel: AbstractKernel, masses: Float[Array, " key"]) -> Any:
        lightest = jnp.min(jnp.where(masses > 0, masses, jnp.inf)) / jnp.sum(masses)
        cut = tol_per_mass(jnp.asarray(self.tol, masses.dtype), lightest)
        scale, _, noise = self._numbers(cast(kernel, masses.dtype))
        cut = cut + noise.astype(masses.dtype) + jnp.asarray(self.rounding(masses.shape[0]), masses.dtype)
        return jnp.exp(scale).astype(masses.dtype) * cut

    @abc.abstractmethod
    def rounding(self, count: int) -> float:
        """A bound of the absolute round-off of S for `count` tokens and a total mass of 1."""


def _to_words(numbers: np.ndarray) -> np.ndarray:
    """Doubles as pairs of 32-bit words: a callback may run in a thread outside 64-bit mode and would cut them."""
    return np.ascontiguousarray(numbers, np.float64)[..., None].view(np.uint32)


def _from_words(words: Any) -> np.ndarray:
    return np.ascontiguousarray(words).view(np.float64)[..., 0]


def _answer(
    work: Work, at_tokens: bool, kernel: Any, tol: Any, x: Any, y: Any, log_mass: Any, charges: Charges
) -> np.ndarray:
    x, y, masses = (np.asarray(a, np.float64) for a in (x, y, np.exp(np.asarray(log_mass, float))))
    tol = float(tol)
    numbers = charges.values if isinstance(charges, Columns) else np.zeros((0, y.shape[1] + 1))
    shape = (x.shape[0], numbers.shape[1])
    known = all(np.all(np.isfinite(a)) for a in (x, y, masses, numbers, tol, *jax.tree.leaves(kernel)))
    if not (known and tol > 0):
        return np.full(shape, np.nan)
    positive = masses[masses > 0]
    if positive.size == 0:
        return np.zeros(shape)
    eps = tol_per_mass(tol, float(np.min(positive) / np.sum(positive)))
    return work(kernel, eps, x, x if at_tokens else y, masses, charges)


def tol_per_mass(tol: Any, lightest: Any) -> Any:
    """What S may be off by, for a total mass of 1: the softmax mean is off by twice that over the least mass seen."""
    return 0.25 * tol * lightest + 1e-280


def cores() -> int:
    """The number of processors that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1

"""Sums on S^(d-1), d >= 3, by spherical harmonics made of Gegenbauer polynomials: O(n) work per harmonic.

Harmonics of R^d are built from those of R^(d-1): with x = (x', t), |x| = 1, and Y' a homogeneous harmonic of degree l
in x', p_k(t) Y'(x') is one of degree l + k, where p_k are orthonormal for (1 - t^2)^(l + (d-3)/2) dt. So the only
operation is a three-term recurrence in k, which runs over all Y' at once; it starts from Re and Im (x_1 + i x_2)^l and
needs no angle, no square root and no case at the poles.
"""

import itertools
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow.checks import flag, whole
from attnflow.feasible import LARGEST_DIM
from attnflow.special.degrees import basis_size, multiplicity_ratios
from attnflow.sums.base import Case, as_tol
from attnflow.sums.series import AbstractSeries

SEGMENTS = (0, 1 / 4, 1 / 2, 3 / 4)
"""Where, in parts of the degree, the rows of the recurrence that no longer matter are dropped."""


class Harmonics(AbstractSeries):
    """Sums on S^(d-1) with (K+1)^2 harmonics on S^2 and C(K+d-1, d-1) + C(K+d-2, d-1) in general.

    Values below the smallest number of float range are lost before the recurrence can raise them again by a factor of
    up to e^(K/2): the degree is at most 1300 in float64 and 140 in float32.
    """

    d: int = eqx.field(static=True, default=3)

    def __init__(self, tol: Any, degree: int, d: int, *, chunk: int | None = None, guarded: bool = True):
        self.tol = as_tol(tol)
        self.degree = -(-whole("degree", degree, 1) // 8) * 8
        self.d = whole("d", d, 3, LARGEST_DIM)
        self.chunk = _chunk(basis_size(self.degree, self.d - 1)) if chunk is None else whole("chunk", chunk, 1)
        self.guarded = flag("guarded", guarded)

    @property
    def dim(self) -> int:
        return self.d

    @classmethod
    def _serves(cls, d: int) -> bool:
        return d > 2

    @classmethod
    def _made(cls, case: Case, degree: int, tol: float, guarded: bool) -> "Harmonics":
        return cls(tol, max(degree, 1), case.d, chunk=case.costs.chunk(degree, case.d), guarded=guarded)

    def _moments(self, x: Any, charges: Any, top: Any) -> Any:
        moments = []
        lower, start = _lower(x, self.degree)
        for first, last, rows in self._segments(lower):

            def step(state: Any, k: Any, rows: int = rows) -> Any:
                def work(state: Any) -> Any:
                    return self._next(state, x, lower[:rows], k), state[1] @ charges

                nothing = jnp.zeros((rows, charges.shape[1]), charges.dtype)
                return jax.lax.cond(k <= top, work, lambda state: (state, nothing), state)

            start = jax.tree.map(lambda a, rows=rows: a[:rows], start)
            start, found = jax.lax.scan(step, start, jnp.arange(first, last))
            moments.append(found)
        return tuple(moments)

    def _weighted(self, moments: Any, p: Any) -> Any:
        per = p / jnp.asarray(np.cumprod(np.concatenate([[1.0], multiplicity_ratios(self.d, self.degree)])), p.dtype)
        per = jnp.concatenate([per, jnp.zeros_like(per)])
        lower = _lower_degrees(self.d - 1, self.degree)
        return tuple(
            moment * per[(np.arange(first, last)[:, None] + lower[None, :rows])][:, :, None]
            for (first, last, rows), moment in zip(self._segments(lower), moments, strict=True)
        )

    def _synthesis(self, x: Any, moments: Any, top: Any) -> Any:
        sums = jnp.zeros((x.shape[0], moments[0].shape[-1]), x.dtype)
        lower, start = _lower(x, self.degree)
        for (first, last, rows), moment in zip(self._segments(lower), moments, strict=True):

            def step(carry: Any, now: Any, rows: int = rows) -> Any:
                k, moment = now

                def work(carry: Any) -> Any:
                    state, sums = carry
                    return self._next(state, x, lower[:rows], k), sums + state[1].T @ moment

                return jax.lax.cond(k <= top, work, lambda carry: carry, carry), None

            start = jax.tree.map(lambda a, rows=rows: a[:rows], start)
            (start, sums), _ = jax.lax.scan(step, (start, sums), (jnp.arange(first, last), moment))
        return sums

    def _segments(self, lower: np.ndarray) -> list[tuple[int, int, int]]:
        """(first k, last k, rows): harmonics Y' of a degree above `degree` - k no longer matter."""
        edges = sorted({math.floor(part * (self.degree + 1)) for part in SEGMENTS} | {self.degree + 1})
        return [(a, b, int(np.sum(lower <= self.degree - a))) for a, b in itertools.pairwise(edges)]

    def _next(self, state: Any, x: Any, lower: np.ndarray, k: Any) -> Any:
        """(p_k, p_{k+1}) Y' from (p_{k-1}, p_k) Y'."""
        before, now = state
        index = jnp.asarray(lower + (self.d - 2) / 2, x.dtype)
        return now, _recur(before, now, x[None, :, -1], jnp.ones((), x.dtype), index, k)


def _lower(x: Any, degree: int) -> tuple[np.ndarray, Any]:
    """Degrees of the harmonics Y' of R^(d-1), in rising order, and the recurrence's start (0, p_0 Y')."""
    d = x.shape[1]
    lower = _lower_degrees(d - 1, degree)
    rows = _solid(x[:, :-1], degree)
    now = jnp.asarray(_norms(d, lower), x.dtype)[:, None] * rows
    return lower, (jnp.zeros_like(now), now)


def _lower_degrees(d: int, degree: int) -> np.ndarray:
    """Degrees of all harmonics of R^d up to `degree`, in rising order."""
    sizes = np.diff([0] + [basis_size(k, d) for k in range(degree + 1)])
    return np.repeat(np.arange(degree + 1), sizes)


def _solid(x: Any, degree: int) -> Any:
    """All homogeneous harmonics of R^d up to `degree` at the points (point, d): rows in rising order of degree.

    Orthonormal on the unit sphere for the uniform probability.
    """
    d = x.shape[1]
    if d == 2:
        re, im = x[None, :, 0], x[None, :, 1]
        while re.shape[0] < degree:
            a, b = re[-1:], im[-1:]
            re, im = jnp.concatenate([re, re * a - im * b]), jnp.concatenate([im, re * b + im * a])
        pairs = jnp.sqrt(jnp.asarray(2.0, x.dtype)) * jnp.stack([re[:degree], im[:degree]], axis=1)
        return jnp.concatenate([jnp.ones((1, x.shape[0]), x.dtype), pairs.reshape(2 * degree, x.shape[0])])
    lower, (before, now) = _lower(x, degree)
    square, t = jnp.sum(x * x, axis=1)[None, :], x[None, :, -1]
    parts, degrees = [now], [lower]
    for k in range(degree):
        index = jnp.asarray(lower + (d - 2) / 2, x.dtype)
        before, now = now, _recur(before, now, t, square, index, jnp.asarray(k))
        keep = int(np.sum(lower <= degree - k - 1))
        before, now, lower = before[:keep], now[:keep], lower[:keep]
        parts.append(now)
        degrees.append(lower + k + 1)
    return jnp.concatenate(parts)[np.argsort(np.concatenate(degrees), kind="stable")]


def _recur(before: Any, now: Any, t: Any, square: Any, index: Any, k: Any) -> Any:
    """p_{k+1} from p_{k-1} and p_k, orthonormal Gegenbauer polynomials of each index, homogeneous in (t, |x|)."""

    def factor(k: Any) -> Any:
        return 0.5 * jnp.sqrt(k * (k + 2 * index - 1) / ((k + index) * (k + index - 1)))[:, None]

    k = k.astype(index.dtype)
    return (t * now - jnp.where(k > 0, factor(jnp.maximum(k, 1.0)), 0.0) * square * before) / factor(k + 1)


def _norms(d: int, lower: np.ndarray) -> np.ndarray:
    """p_0 for each degree l of Y': B((d-1)/2, 1/2)^(1/2) / B(l + (d-1)/2, 1/2)^(1/2), B Euler's beta function."""
    from scipy.special import betaln

    return np.asarray(np.exp(0.5 * (betaln((d - 1) / 2, 0.5) - betaln(lower + (d - 1) / 2, 0.5))))


def _chunk(rows: int) -> int:
    """Tokens of a chunk: what keeps a handful of arrays (rows, chunk) in a second-level cache."""
    return int(np.clip((1 << 15) // rows, 32, 1024))

"""Sums on the circle by Fourier series: O(n K) work, no trigonometric function."""

from typing import Any

import jax
import jax.numpy as jnp

from attnflow.checks import flag, whole
from attnflow.sums.base import Case, as_tol
from attnflow.sums.series import AbstractSeries

BLOCK = 16
"""Degrees that are worked on together."""


class Circle(AbstractSeries):
    """Sums on S^1: z^k = e^(ik theta) as powers of the position z = x + iy, in blocks of 16 degrees.

    sum_j c_j K(cos(theta - phi_j)) = sum_k p_k Re(z^k conj M_k), M_k = sum_j c_j w_j^k; for `Exponential(beta)` p_k is
    the distribution of |Skellam(beta/2, beta/2)|. Powers are formed by repeated doubling; measured absolute errors are
    below 1e-15.
    """

    def __init__(self, tol: Any, degree: int, *, chunk: int = 512, guarded: bool = True):
        self.tol = as_tol(tol)
        self.degree = -(-whole("degree", degree, 1) // BLOCK) * BLOCK
        self.chunk = whole("chunk", chunk, 1)
        self.guarded = flag("guarded", guarded)

    @property
    def dim(self) -> int:
        return 2

    @classmethod
    def _serves(cls, d: int) -> bool:
        return d == 2

    @classmethod
    def _made(cls, case: Case, degree: int, tol: float, guarded: bool) -> "Circle":
        return cls(tol, max(degree, 1), chunk=case.costs.circle_chunk, guarded=guarded)

    def _moments(self, x: Any, charges: Any, top: Any) -> Any:
        powers, stride = _powers(x)

        def block(start: Any, first: Any) -> Any:
            def work(start: Any) -> Any:
                re, im = _times(powers, start)
                return _times(start, stride), jnp.stack([re @ charges, im @ charges])

            nothing = jnp.zeros((2, BLOCK, charges.shape[1]), charges.dtype)
            return jax.lax.cond(first < top, work, lambda start: (start, nothing), start)

        _, moments = jax.lax.scan(block, _one(x), self._firsts())
        return jnp.sum(charges, axis=0), moments

    def _weighted(self, moments: Any, p: Any) -> Any:
        return p[0] * moments[0], p[1:].reshape(-1, 1, BLOCK, 1) * moments[1]

    def _synthesis(self, x: Any, moments: Any, top: Any) -> Any:
        powers, stride = _powers(x)

        def block(carry: Any, now: Any) -> Any:
            first, moment = now

            def work(carry: Any) -> Any:
                start, sums = carry
                re, im = _times(powers, start)
                return _times(start, stride), sums + re.T @ moment[0] + im.T @ moment[1]

            return jax.lax.cond(first < top, work, lambda carry: carry, carry), None

        begin = jnp.broadcast_to(moments[0][None, :], (x.shape[0], moments[0].shape[0]))
        (_, sums), _ = jax.lax.scan(block, (_one(x), begin), (self._firsts(), moments[1]))
        return sums

    def _firsts(self) -> Any:
        """The degree before the first of each block."""
        return jnp.arange(0, self.degree, BLOCK)


def _powers(x: Any) -> tuple[Any, Any]:
    """z, ..., z^16 as (real, imaginary) parts of shape (16, points), and z^16."""
    re, im = x[None, :, 0], x[None, :, 1]
    while re.shape[0] < BLOCK:
        more = _times((re, im), (re[-1], im[-1]))
        re, im = jnp.concatenate([re, more[0]]), jnp.concatenate([im, more[1]])
    return (re, im), (re[-1], im[-1])


def _times(a: Any, b: Any) -> tuple[Any, Any]:
    """The product of complex numbers given by their parts; b has the shape of a or lacks its first axis."""
    re, im = (c if c.ndim == a[0].ndim else c[None, :] for c in b)
    return a[0] * re - a[1] * im, a[0] * im + a[1] * re


def _one(x: Any) -> tuple[Any, Any]:
    return jnp.ones_like(x[:, 0]), jnp.zeros_like(x[:, 0])

"""What a sum offers for one case, and what the case is."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from attnflow.axes import batches
from attnflow.kernels import AbstractKernel, cast
from attnflow.masks import AbstractMask
from attnflow.precision import full_precision
from attnflow.sums.base import AbstractSum, Columns, Use, Weights, least_mass
from attnflow.sums.costs import costs
from attnflow.tokens import Tokens

LOOSEST = 1e-6
"""The largest error that a sum may have when no tolerance is given."""
MEMORY = 2**31
"""Bytes that a sum may take."""


@dataclasses.dataclass(frozen=True)
class Offer:
    """One way to sum: what one evaluation costs and how far its softmax mean may be off; or why it is out."""

    name: str
    sum: AbstractSum | None
    seconds: float = math.inf
    accuracy: float = math.inf
    why_not: str = ""
    doubtful: bool = False
    """Whether its accuracy depends on how much the tokens see of each other now."""


class Case:
    """Everything that an offer depends on."""

    def __init__(
        self, tokens: Tokens, use: Use, tol: float | None, dtype: np.dtype, backend: str, flowing: bool, floor: float
    ):
        self.tokens, self.use, self.dtype, self.backend, self.flowing = tokens, use, dtype, backend, flowing
        self.floor = floor
        """The error of the softmax mean that rounding leaves to any sum."""
        self.given = tol is not None
        """Whether a tolerance was asked for; else an offer may be less accurate, down to LOOSEST."""
        self.tol = max(TOLERANCE[dtype.name], 2 * floor) if tol is None else tol
        self.kernels: list[AbstractKernel] = use.kernels or []
        self.n, self.d = tokens.n, tokens.dim
        self.batched = bool(tokens.dims) or bool(batches((use.kernel, use.mask)))
        """Whether members run side by side: a fall-back on tiles would then run always."""
        self.lightest = least_mass(tokens)
        """The least mass of a token."""
        self.costs = costs(backend, dtype)

    @property
    def setting(self) -> str:
        """The case in words."""
        return f"n = {self.n}, d = {self.d}, {named(self.kernels)}, {self.dtype.name} on {self.backend}"

    def cut(self, name: str, make: Callable[[float, bool], AbstractSum], seconds: float, rounding: float) -> Offer:
        """The offer of a sum `make(tol, guarded)` with absolute errors.

        Its accuracy is bounded by the least mass if round-off allows that, else by what the tokens see now.
        """
        always = 4 * rounding / self.lightest
        if always <= (self.tol if self.given else max(self.tol, LOOSEST)):
            tol = max(self.tol, always)
            return Offer(name, make(tol, False), seconds, tol)
        offer = Offer(name, make(self.tol, True), seconds, self.tol, doubtful=True)
        return self.refused(offer) if self.batched else offer

    def trusted(self, offer: Offer) -> bool:
        """Whether every token sees enough for the absolute error of the sum."""
        assert offer.sum is not None
        with full_precision():
            given = [jnp.asarray(a) for a in (self.tokens.positions, self.tokens.masses, self.tokens.place)]
            return bool(_trusted(offer.sum, self.use.kernel, self.use.mask, *given))

    def refused(self, offer: Offer) -> Offer:
        """The same offer, out because of its round-off."""
        return Offer(offer.name, None, why_not=f"round-off over the least weight seen exceeds {self.tol:.0e}")


TOLERANCE = {"float64": 1e-12, "float32": 1e-4}
"""The error of the softmax mean when no tolerance is given."""


def named(kernels: list[AbstractKernel]) -> str:
    """The kernel in words, with the range of its inverse temperature if it has one."""
    betas = [float(np.asarray(kernel.beta)) for kernel in kernels if hasattr(kernel, "beta")]
    if len(betas) < len(kernels):
        return f"the kernel {type(kernels[0]).__name__}"
    return f"beta = {min(betas):g}" + ("" if min(betas) == max(betas) else f" to {max(betas):g}")


@eqx.filter_jit
def _trusted(made: AbstractSum, kernel: AbstractKernel, mask: AbstractMask, x: Any, masses: Any, place: Any) -> Any:
    """Whether every token sees enough, by the sum itself."""
    weights = Weights(cast(kernel, x.dtype), mask, at_tokens=True)
    arguments = (weights, (x, place), (x, place), jnp.log(masses), Columns(jnp.ones((x.shape[0], 1), x.dtype)))
    scale, total = made(*arguments)
    return made.trusted(arguments, scale, total[:, 0])

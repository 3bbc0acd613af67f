"""The one interface of all sums: S(x; y, charges)_i = sum_j m_j e^(log weight of (x_i, y_j)) charge_j.

What a sum is, what it is used for (`Use`), and what it offers (`Offer`) in one `Case`.
"""

import abc
import dataclasses
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow.axes import batches, positive
from attnflow.errors import InvalidInput
from attnflow.kernels import AbstractKernel, Exponential, cast, members_of
from attnflow.masks import AbstractMask, AbstractPrefix
from attnflow.precision import full_precision
from attnflow.spaces import AbstractSpace, Sphere
from attnflow.sums.costs import costs
from attnflow.sums.weights import Arguments, Charges, Columns, KeySide, QuerySide, Sums, Weights
from attnflow.tokens import Measure, Tokens

EVALUATIONS = {True: 1000, False: 20}
"""Evaluations over which the time of compiling a sum is spread: of a flow, and of a field at tokens that rest."""
EXPONENTIAL = "needs the kernel Exponential with beta >= 0, Q = K = I on the unit sphere and no mask"
LOOSEST = 1e-6
"""The largest error that a sum may have when no tolerance is given."""
MEMORY = 2**31
"""Bytes that a sum may take."""
TOLERANCE = {"float64": 1e-12, "float32": 1e-4}
"""The error of the softmax mean when no tolerance is given."""


class AbstractSum(eqx.Module):
    """One way to evaluate S, with a stated accuracy. Linear in the charges; differentiable in everything."""

    @abc.abstractmethod
    def __call__(
        self,
        weights: Weights,
        query: QuerySide,
        key: KeySide,
        log_mass: Float[Array, " key"],
        charges: Charges,
    ) -> Sums:
        """Pairs (scale, sums) with sum_j e^(log_mass_j) weight_ij charge_j = e^(scale_i) sums_i."""

    @abc.abstractmethod
    def shared(self, copies: int) -> "AbstractSum":
        """The same sum when `copies` of it run side by side (heads) and share the memory of one."""

    @abc.abstractmethod
    def trusted(self, arguments: Arguments, scale: Any, total: Any) -> Any:
        """Whether a softmax over these sums meets the stated tolerance; e^scale total is the weight that a query sees.

        `arguments` are those of the call. None: they are, by construction. Otherwise a traced boolean for all queries
        together; where it is false, the caller sums again in tiles.
        """

    @abc.abstractmethod
    def error(self, kernel: AbstractKernel, masses: Float[Array, " key"]) -> Any:
        """A bound of the absolute error of S, for charges of size at most 1 and a total mass of 1.

        Rounding that every sum of n terms has is not counted: exact sums return the number 0.
        """

    @abc.abstractmethod
    def refusal(self, use: "Use", tokens: Tokens | Measure | None) -> str:
        """Why the sum must not be used so, as a sentence that names the alternative; empty if it may.

        `tokens` are None where their numbers are not known (inside compiled code): then only structure is looked at.
        """

    @classmethod
    def least_seconds(cls, case: "Case") -> float:
        """What every offer in this case takes at least; a field does not ask for offers that another undercuts."""
        return 0.0

    @classmethod
    @abc.abstractmethod
    def offers(cls, case: "Case") -> tuple["Offer", ...]:
        """What this way to sum costs in this case and how accurate it is, or why it is out; none is no offer."""


def as_tol(tol: Any) -> Any:
    """The tolerance of a sum: a finite number above 0, or a traced one."""
    return positive("tol", batch=False)(tol)


class Use(NamedTuple):
    """What a sum is used for: everything that decides whether it gives the right numbers."""

    space: AbstractSpace
    """Where the points lie that it is evaluated on."""
    kernel: AbstractKernel
    """Its parameters may be batched or traced."""
    mask: AbstractMask
    plain: bool
    """Whether the features of queries and keys are the positions: Q = K = I, no encoding."""
    ratios: bool
    """Whether the result is used for softmax or unnormalised attention, and not as a step of an iteration."""

    @property
    def kernels(self) -> list[AbstractKernel] | None:
        """The kernels of the members, if their parameters are known."""
        return members_of(self.kernel)

    @property
    def unit(self) -> bool:
        """Whether features are unit vectors."""
        return self.plain and isinstance(self.space, Sphere)

    def outside_sphere(self, name: str) -> str:
        """Why a sum of plain features on the unit sphere does not apply; empty if it does."""
        if not isinstance(self.space, Sphere):
            return f"the sum {name} is for points on the unit sphere, not on {self.space}; use sum=Tiled()."
        if not self.plain:
            return f"the sum {name} is for attention with Q = K = I and no encoding; use sum=Tiled()."
        if not self.ratios:
            return f"the sum {name} is for Softmax() and Unnormalised() only; use sum=Tiled()."
        return ""

    def outside_mask(self, name: str, takes_prefix: bool) -> str:
        """Why a sum for `Everyone()`, perhaps for causal masks too, does not apply; empty if it does."""
        prefix = takes_prefix and isinstance(self.mask, AbstractPrefix) and self.mask.sees_itself
        return "" if self.mask.sees_everyone or prefix else unsupported(name, self.mask)

    def outside_exponential(self, name: str) -> str:
        """Why a sum for softmax on the unit sphere with Q = K = I, beta >= 0 and no mask does not apply."""
        if why := self.outside_sphere(name) or self.outside_mask(name, False):
            return why
        if not isinstance(self.kernel, Exponential):
            return f"the sum {name} is for the kernel Exponential, not {type(self.kernel).__name__}; use sum=Tiled()."
        betas = self.betas
        if betas is not None and np.min(betas) < 0:
            return f"`beta` is {np.min(betas):g}; the sum {name} needs beta >= 0, sum=Tiled() takes any."
        return ""

    @property
    def betas(self) -> np.ndarray | None:
        """The inverse temperatures of the kernel Exponential, if they are known."""
        kernels = self.kernels
        return None if kernels is None else np.array([float(np.asarray(kernel.beta)) for kernel in kernels])  # type: ignore[attr-defined]

    def require(self, chosen: AbstractSum, tokens: Tokens | Measure | None) -> None:
        """Refuse a sum that would give wrong numbers here."""
        if why := chosen.refusal(self, tokens):
            raise InvalidInput(why)


@dataclasses.dataclass(frozen=True)
class Offer:
    """One way to sum: what it costs and how far its softmax mean may be off; or why it is out.

    Arguments:
        name: the class of the sum.
        sum: the sum; None if it is out.
        seconds: predicted time of one evaluation.
        accuracy: bound of the absolute error of the softmax mean.
        why_not: why the sum is out; empty if it is not.
        doubtful: True if the accuracy depends on how much the tokens see of each other now.
        setup: predicted time of compiling it, spent once.
    """

    name: str
    sum: AbstractSum | None
    seconds: float = math.inf
    accuracy: float = math.inf
    why_not: str = ""
    doubtful: bool = False
    setup: float = 0.0

    def total(self, evaluations: int) -> float:
        """Predicted time of so many evaluations; whether a doubtful offer may be taken is a program of its own."""
        return self.setup * (1 + self.doubtful) + evaluations * self.seconds


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
        self.evaluations = EVALUATIONS[flowing]
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

    def cut(
        self, name: str, make: Callable[[float, bool], AbstractSum], seconds: float, rounding: float, setup: float
    ) -> Offer:
        """The offer of a sum with absolute errors, bounded by the smallest mass or by what the tokens see now.

        Arguments:
            name: the class of the sum.
            make: the sum for a tolerance, and whether it has to look at ratios.
            seconds: predicted time of one evaluation.
            rounding: absolute round-off of a sum, relative to the sum of masses times charges.
            setup: predicted time of compiling it.
        """
        always = 4 * rounding / self.lightest
        if always <= (self.tol if self.given else max(self.tol, LOOSEST)):
            tol = max(self.tol, always)
            return Offer(name, make(tol, False), seconds, tol, setup=setup)
        offer = Offer(name, make(self.tol, True), seconds, self.tol, doubtful=True, setup=setup)
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


def least_mass(tokens: Any) -> float:
    """The least mass of a token; absent rows do not count."""
    masses = np.asarray(tokens.masses)
    return float(np.min(masses if tokens.present is None else masses[np.asarray(tokens.present)]))


def largest(tokens: Any) -> int:
    """The number of tokens of the largest system; absent rows do not count."""
    return tokens.n if tokens.present is None else int(np.max(np.sum(tokens.present, axis=-1)))


def unsupported(name: str, mask: AbstractMask) -> str:
    """The refusal of a mask by the sum `name`."""
    strict = "strict " if isinstance(mask, AbstractPrefix) and mask.strict else ""
    return f"the sum {name} does not support the {strict}mask {type(mask).__name__}; use sum=Tiled(), which does."


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

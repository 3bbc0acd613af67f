"""The one interface of all sums: S(x; y, charges)_i = sum_j m_j e^(log weight of (x_i, y_j)) charge_j."""

import abc
import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Real

from attnflow.errors import InvalidInput
from attnflow.kernels import AbstractKernel, Exponential, members_of
from attnflow.masks import AbstractMask, AbstractPrefix
from attnflow.spaces import AbstractSpace, Sphere
from attnflow.tokens import Measure, Tokens

if TYPE_CHECKING:
    from attnflow.sums.offers import Case, Offer

QuerySide = tuple[Float[Array, "query feature"], Real[Array, " query"]]
"""The points that listen: their features and their places."""
KeySide = tuple[Float[Array, "key feature"], Real[Array, " key"]]
"""The points that are listened to."""
Sums = tuple[Float[Array, " query"], Float[Array, "query charge"]]


EXPONENTIAL = "needs the kernel Exponential with beta >= 0, Q = K = I on the unit sphere and no mask"


class AbstractCharges(eqx.Module):
    """What is summed, a column for each."""

    @abc.abstractmethod
    def array(self, y: Any) -> Any:
        """The columns as an array, for keys with the features `y`."""


class Moments(AbstractCharges):
    """1 and the features of the keys: all that V = I needs, and nothing that has to be handed over."""

    def array(self, y: Any) -> Any:
        ones = (np if isinstance(y, np.ndarray) else jnp).ones((y.shape[0], 1), y.dtype)
        return (np if isinstance(y, np.ndarray) else jnp).concatenate([ones, y], axis=1)


class Columns(AbstractCharges):
    """The columns of an array, one row for each key."""

    values: Float[Array | np.ndarray, "key charge"]

    def array(self, y: Any) -> Any:
        return self.values


Charges = Moments | Columns


class Weights(eqx.Module):
    """The weight of a pair: K(features of query and key) e^(bias of their places)."""

    kernel: AbstractKernel
    mask: AbstractMask
    at_tokens: bool = eqx.field(static=True, default=False)
    """Whether the queries are the tokens themselves in the order of the keys, so that each sees its own mass."""
    present: Bool[Array, " query"] | None = None
    """At the tokens: which queries matter; None is all. What absent ones see must decide nothing."""

    def log(self, query: QuerySide, key: KeySide) -> Float[Array, "query key"]:
        """Log weights of all pairs of two blocks, for a kernel that does not change sign."""
        value = self.kernel.block(query[0], key[0])
        return value if self.mask.sees_everyone else value + self.bias(query, key)

    def values(self, query: QuerySide, key: KeySide) -> Float[Array, "query key"]:
        """Weights of all pairs of two blocks."""
        if not self.kernel.is_signed:
            return jnp.exp(self.log(query, key))
        value = self.kernel.block(query[0], key[0])
        return value if self.mask.sees_everyone else value * jnp.exp(self.bias(query, key))

    def bias(self, query: QuerySide, key: KeySide) -> Float[Array, "query key"]:
        """What the mask adds to the log weights."""
        bias = self.mask.bias(query[1], key[1]).astype(query[0].dtype)
        return jnp.broadcast_to(bias, (query[1].shape[0], key[1].shape[0]))


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
    def trusted(self, arguments: "Arguments", scale: Any, total: Any) -> Any:
        """Whether ratios to e^scale total, the weight that each query sees of all the mass, are accurate as stated.

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


Arguments = tuple[Weights, QuerySide, KeySide, Float[Array, " key"], Charges]
"""What a sum is called with."""


def seen_by_present(weights: Weights, seen: Any, other: Any) -> Any:
    """What each query sees, with `other` for absent ones."""
    return seen if weights.present is None else jnp.where(weights.present, seen, other)


def length(tree: Any) -> int:
    """The number of points of a pytree whose leaves have the point as first axis."""
    return jax.tree.leaves(tree)[0].shape[0]


def blocked(array: Array, size: int, fill: float | None) -> Array:
    """Cut the first axis into blocks of `size`, filling up the last one (None repeats the last row)."""
    missing = -array.shape[0] % size
    if missing:
        shape = (missing, *array.shape[1:])
        tail = jnp.broadcast_to(array[-1:], shape) if fill is None else jnp.full(shape, fill, array.dtype)
        array = jnp.concatenate([array, tail])
    return array.reshape(-1, size, *array.shape[1:])


def side_by_side(function: Any, blocks: Any, groups: int) -> list[Any]:
    """`function` of consecutive groups of blocks, as loops that do not wait for each other.

    On the CPU the compiler works through a loop in one thread but through independent loops at the same time. Few
    blocks, and devices, get a single loop. The grouping depends on the shapes alone, so that results repeat.
    """
    count = length(blocks)
    if count < 32 or jax.default_backend() != "cpu":
        return [function(blocks)]
    edges = [count * k // groups for k in range(groups + 1)]
    return [function(jax.tree.map(lambda a, i=i, j=j: a[i:j], blocks)) for i, j in itertools.pairwise(edges)]


def derived_from(exact: Any, fast: Any) -> Any:
    """`fast` with the derivatives of `exact`, a differentiable function that gives the same values."""

    @jax.custom_jvp
    def function(*args: Any) -> Any:
        return fast(*args)

    @function.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        return function(*primals), jax.jvp(exact, primals, tangents)[1]

    return function

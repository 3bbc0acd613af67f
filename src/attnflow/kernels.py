"""How much a query hears a key: a function K(q, k) of their features.

Sums know a kernel through two things: its values on blocks of pairs, and its expansion in degrees on the unit sphere,

    K(x, y) = e^scale sum_k p_k P_k(<x, y>),   P_k(1) = 1,

with the Gegenbauer polynomials P_k of S^(d-1) (Chebyshev's on the circle, Legendre's on S^2). A kernel with an
expansion is summed by every series (`Circle`, `Harmonics`, `FastSphere`); any other kernel is summed in tiles.
"""

import abc
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow import describe
from attnflow.axes import Batched, batches, is_along, scalar
from attnflow.checks import instance, whole
from attnflow.precision import full_precision, is_traced
from attnflow.special.degrees import multiplicity_ratios, truncation_degrees

Block = Float[Array, "query key"]
BEYOND = 64
"""Degrees beyond the last that tell how much an expansion leaves out."""
STEEPEST = 1e10
"""The largest beta of an expansion, which has about 10 sqrt(beta) degrees."""
LARGEST_BETA = 1e15
"""Beyond, rounding of <q, k> changes the weights of `Exponential` by more than a factor of e: it is `Hardmax`."""


class Expansion(NamedTuple):
    """K(x, y) = e^scale sum_k p_k P_k(<x, y>) on S^(d-1)."""

    scale: Any
    p: Float[Array, " degree"]
    """p_0, ..., p_degree. For a kernel with log values sum_k p_k = 1, so that e^scale is the weight of equal points."""
    rest: Any
    """The sum of |p_k| over all later degrees."""
    noise: Any
    """A bound of the rounding errors of all p_k together."""


class AbstractKernel(eqx.Module):
    """K(q, k) > 0, given by its logarithm; or a kernel that changes sign, given by its values.

    Inside compiled code the parameters are arrays of the type of the features.
    """

    is_isotropic: eqx.AbstractClassVar[bool]
    """Whether K(Rq, Rk) = K(q, k) for every rotation R."""

    @property
    @abc.abstractmethod
    def is_signed(self) -> bool:
        """Whether K changes sign: `block` then holds K itself, and only `Unnormalised` takes the kernel.

        A subclass has it as a constant, or as a field.
        """

    @abc.abstractmethod
    def block(self, query: Float[Array, "query feature"], key: Float[Array, "key feature"]) -> Block:
        """log K of all pairs of two blocks of features; K itself if `is_signed`."""

    @abc.abstractmethod
    def expansion(self, d: int, degree: int) -> Expansion | None:
        """The expansion on S^(d-1) up to `degree`; None if K is no smooth function of <x, y>. May be traced."""

    @abc.abstractmethod
    def needed_degree(self, d: int, error: float) -> tuple[int, float] | None:
        """(degree, noise): where the expansion on S^(d-1) may be cut for an error of max(error, noise).

        Errors are absolute, in units of e^scale; `noise` is that of `Expansion`. None if there is no such degree.
        Asked on the host, of a kernel whose parameters are known.
        """

    @abc.abstractmethod
    def is_bounded(self, unit: bool) -> Any:
        """Whether log K <= 0, with 0 for equal features: for features of norm 1 if `unit`, else for all features.

        A bool, or an array where it depends on parameters, which may be traced.
        """

    @abc.abstractmethod
    def magnitude(self, query: Any, key: Any) -> Any:
        """A bound of the terms that `block` adds up, for features of these norms; None if there is none.

        Rounding errors of `block` are a few units in the last place of it. `Hardmax` needs it to tell ties.
        """


class AbstractPair(AbstractKernel):
    """A kernel given for one pair. Blocks are made by `jax.vmap`."""

    @abc.abstractmethod
    def pair(self, query: Float[Array, " feature"], key: Float[Array, " feature"]) -> Float[Array, ""]:
        """log K of one pair; K itself if `is_signed`."""

    def block(self, query: Float[Array, "query feature"], key: Float[Array, "key feature"]) -> Block:
        return jax.vmap(lambda q: jax.vmap(lambda k: self.pair(q, k))(key))(query)

    def expansion(self, d: int, degree: int) -> Expansion | None:
        return None

    def needed_degree(self, d: int, error: float) -> tuple[int, float] | None:
        return None

    def is_bounded(self, unit: bool) -> Any:
        return False

    def magnitude(self, query: Any, key: Any) -> Any:
        return None


class AbstractZonal(AbstractKernel):
    """A kernel that is a function of <q, k>. Its expansion is found by quadrature, so that every series takes it."""

    is_isotropic = True

    @abc.abstractmethod
    def profile(self, s: Float[Array, "..."]) -> Float[Array, "..."]:
        """log K where <q, k> = s; K itself if `is_signed`. Acts on arrays."""

    def block(self, query: Float[Array, "query feature"], key: Float[Array, "key feature"]) -> Block:
        return self.profile(query @ key.T)

    def expansion(self, d: int, degree: int) -> Expansion | None:
        types = [leaf.dtype for leaf in jax.tree.leaves(self) if eqx.is_inexact_array(leaf)]
        return by_quadrature(self.profile, self.is_signed, d, degree, types[0] if types else float)

    def needed_degree(self, d: int, error: float) -> tuple[int, float] | None:
        return degree_by_quadrature(self, d, error)

    def is_bounded(self, unit: bool) -> Any:
        return False

    def magnitude(self, query: Any, key: Any) -> Any:
        return None


class Exponential(AbstractKernel, describe.Inlined):
    """exp(beta (<q, k> - 1)): on the unit sphere at most 1 for beta >= 0, a Gaussian of bandwidth beta^(-1/2).

    beta is an inverse temperature, at most 1e15 in size; softmax(Q K^T / sqrt(d_k)) is beta = 1/sqrt(d_k).
    """

    beta: Any

    def __init__(self, beta: Batched):
        self.beta = scalar("beta", low=-LARGEST_BETA, high=LARGEST_BETA)(beta)

    is_isotropic = True
    is_signed = False

    def block(self, query: Float[Array, "query feature"], key: Float[Array, "key feature"]) -> Block:
        beta = jnp.asarray(self.beta, query.dtype)
        return (beta * query) @ key.T - beta

    def expansion(self, d: int, degree: int) -> Expansion | None:
        """Quotients of neighbouring Bessel functions by their downward recurrence, which forgets where it started.

        p_k/p_{k-1} = N(k)/N(k-1) I_{v+1}/I_v, v = k + d/2 - 2, N the number of harmonics of a degree, and
        I_{v+1}/I_v = beta/(2 (v + 1) + beta I_{v+2}/I_{v+1}). NaN for beta < 0.
        """
        beta = jnp.asarray(self.beta)
        count = degree + BEYOND
        order = jnp.arange(count, dtype=beta.dtype) + (d / 2 - 1)
        start = beta / (order[-1] + 1.5 + jnp.sqrt((order[-1] + 2.5) ** 2 + beta**2))

        def down(ratio: Any, v: Any) -> Any:
            ratio = beta / (2 * (v + 1) + beta * ratio)
            return ratio, ratio

        _, ratios = jax.lax.scan(down, start, order, reverse=True)
        steps = jnp.asarray(multiplicity_ratios(d, count), beta.dtype) * ratios
        p = jnp.concatenate([jnp.ones((1,), beta.dtype), jnp.cumprod(steps)])
        p = jnp.where(beta >= 0, p / jnp.sum(p), jnp.nan)
        zero = jnp.zeros((), beta.dtype)
        return Expansion(zero, p[: degree + 1], jnp.sum(p[degree + 1 :]), zero)

    def needed_degree(self, d: int, error: float) -> tuple[int, float] | None:
        beta = float(np.asarray(self.beta))
        return None if not 0 <= beta <= STEEPEST else (int(truncation_degrees(np.asarray(error), beta, d)), 0.0)

    def is_bounded(self, unit: bool) -> Any:
        return unit and self.beta >= 0

    def magnitude(self, query: Any, key: Any) -> Any:
        return abs(self.beta) * (1 + query * key)


class Gaussian(AbstractKernel):
    """exp(-beta |q - k|^2 / 2): a Gaussian of bandwidth beta^(-1/2) in R^d; on the unit sphere it is `Exponential`."""

    beta: Any

    def __init__(self, beta: Batched):
        self.beta = scalar("beta")(beta)

    is_isotropic = True
    is_signed = False

    def block(self, query: Float[Array, "query feature"], key: Float[Array, "key feature"]) -> Block:
        """By products of vectors taken from the first key, so that the tokens' common position costs no digits."""
        beta = jnp.asarray(self.beta, query.dtype)
        origin = jax.lax.stop_gradient(key[:1])
        q, k = query - origin, key - origin
        sizes = jnp.sum(q * q, axis=1)[:, None] + jnp.sum(k * k, axis=1)[None, :]
        return (beta * q) @ k.T - 0.5 * beta * sizes

    def expansion(self, d: int, degree: int) -> Expansion | None:
        return Exponential(self.beta).expansion(d, degree)

    def needed_degree(self, d: int, error: float) -> tuple[int, float] | None:
        return Exponential(self.beta).needed_degree(d, error)

    def is_bounded(self, unit: bool) -> Any:
        return self.beta >= 0

    def magnitude(self, query: Any, key: Any) -> Any:
        return 2 * abs(self.beta) * (query + key) ** 2


class Polynomial(AbstractZonal):
    """((offset + <q, k>) / (offset + 1))^degree, 1 for equal unit vectors; signed."""

    degree: int = eqx.field(static=True, converter=lambda degree: whole("degree", degree, 1, 10**6))
    offset: Batched = eqx.field(converter=scalar("offset", low=0.0), default=0.0)
    is_signed = True

    def profile(self, s: Float[Array, "..."]) -> Float[Array, "..."]:
        offset = jnp.asarray(self.offset, s.dtype)
        return ((offset + s) / (offset + 1)) ** self.degree


class Cosine(AbstractKernel):
    """<q, k>/(|q| |k|), the cosine similarity; signed. Features that vanish are heard by nobody."""

    is_isotropic = True
    is_signed = True

    def block(self, query: Float[Array, "query feature"], key: Float[Array, "key feature"]) -> Block:
        return _directions(query) @ _directions(key).T

    def expansion(self, d: int, degree: int) -> Expansion | None:
        return by_quadrature(lambda s: s, True, d, degree)

    def needed_degree(self, d: int, error: float) -> tuple[int, float] | None:
        return degree_by_quadrature(self, d, error)

    def is_bounded(self, unit: bool) -> Any:
        return False

    def magnitude(self, query: Any, key: Any) -> Any:
        return None


def as_kernel(kernel: AbstractKernel | Batched) -> AbstractKernel:
    """A kernel; a number is the inverse temperature of `Exponential`."""
    if isinstance(kernel, AbstractKernel):
        return kernel
    if isinstance(kernel, type):
        instance("kernel", kernel, AbstractKernel, "a kernel such as Gaussian(4.0), or beta")
    return Exponential(kernel)


def cast(kernel: AbstractKernel, dtype: Any) -> AbstractKernel:
    """The kernel with parameters of another floating type."""

    def one(leaf: Any) -> Any:
        inexact = hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jnp.floating)
        return jnp.asarray(leaf, dtype) if inexact or isinstance(leaf, float) else leaf

    return jax.tree.map(one, kernel)


def expanded(kernel: AbstractKernel, d: int, degree: int, dtype: Any) -> Expansion:
    """The expansion of a kernel that has one, in numbers of this type."""
    found = kernel.expansion(d, degree)
    assert found is not None  # or the sum would have been refused
    return Expansion(*(jnp.asarray(number, dtype) for number in found))


def first_member(kernel: AbstractKernel) -> AbstractKernel:
    """The kernel of the first member of a batch; parameters may be traced."""
    return jax.tree.map(lambda a: a.values[0] if is_along(a) else a, kernel, is_leaf=is_along)


def members_of(kernel: AbstractKernel) -> list[AbstractKernel] | None:
    """The kernels of a batch, equal ones once; None where their parameters are traced."""
    if is_traced(kernel):
        return None
    along = batches(kernel)
    if not along:
        return [kernel]
    # members of one batch may differ in several parameters along several dimensions: take every combination
    dims = {leaf.dim: np.asarray(leaf.values).shape[0] for leaf in along}
    found: dict[Any, AbstractKernel] = {}
    for index in np.ndindex(*dims.values()):
        at = dict(zip(dims, index, strict=True))
        picked = {id(leaf): np.asarray(leaf.values)[at[leaf.dim]] for leaf in along}
        one = jax.tree.map(lambda a, picked=picked: picked.get(id(a), a), kernel, is_leaf=is_along)
        found.setdefault(tuple(value.tobytes() for value in picked.values()), one)
    return list(found.values())


def degree_by_quadrature(kernel: AbstractKernel, d: int, error: float, most: int = 512) -> tuple[int, float] | None:
    """`needed_degree` by expansions of more and more degrees.

    A kernel with log values that is much larger elsewhere than at equal points has none: a token would see little
    besides the errors.
    """
    degree = 32
    while degree <= most:
        with full_precision():
            found = jax.tree.map(np.asarray, kernel.expansion(d, degree))
        size = np.sum(np.abs(found.p))
        if not np.isfinite(size) or (size > 2 and not kernel.is_signed):
            return None
        tails = np.cumsum(np.append(np.abs(found.p[1:]), found.rest)[::-1])[::-1]
        needed = int(np.sum(tails > max(error, float(found.noise))))
        if needed <= degree:
            return needed, float(found.noise)
        degree *= 2
    return None


def by_quadrature(profile: Callable[[Any], Any], is_signed: bool, d: int, degree: int, dtype: Any = float) -> Expansion:
    """The expansion of a function of <x, y>: p_k = N(k, d) times the mean of K P_k over the sphere.

    `noise` takes the values of K and the numbers N w P_k to be off by a few units in the last place each.
    """
    nodes, matrix = _quadrature(d, degree + BEYOND)
    values = profile(jnp.append(jnp.asarray(nodes, dtype), jnp.ones((), dtype)))
    scale = jnp.log(jnp.max(jnp.abs(values))) if is_signed else values[-1]
    k = values[:-1] * jnp.exp(-scale) if is_signed else jnp.exp(values[:-1] - scale)
    weights = jnp.asarray(matrix, k.dtype)
    p, noise = weights @ k, 8 * jnp.finfo(k.dtype).eps * (jnp.abs(weights) @ jnp.abs(k))
    beyond = jnp.maximum(jnp.abs(p) - noise, 0.0)[degree + 1 :]
    return Expansion(scale, p[: degree + 1], jnp.sum(beyond), jnp.sum(noise[: degree + 1]))


@functools.lru_cache(16)
def _quadrature(d: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes s_i, and the matrix N(k, d) w_i P_k(s_i) for k = 0, ..., last.

    At s = cos(theta), theta evenly spaced. The weight of the sphere is sin^(d-2) d theta: for even d a trigonometric
    polynomial, which equal weights integrate exactly; for odd d a polynomial in s times ds, for which there is Fejer's
    rule. Both are exact for K P_k of degrees up to 3 `last`, with weights known to the last digit.
    """
    from scipy.fft import dct

    count = 4 * last + d
    theta = (np.arange(count) + 0.5) * np.pi / count
    if d % 2:
        even = np.arange(0, count, 2)
        series = np.zeros(count)
        series[even] = 1 / (1 - even**2.0)
        w = dct(series, 3) * np.sin(theta) ** (d - 3)
    else:
        w = np.sin(theta) ** (d - 2)
    nodes = np.cos(theta)
    rows = [np.ones_like(nodes), nodes]
    for k in range(1, last):
        rows.append(((2 * k + d - 2) * nodes * rows[k] - k * rows[k - 1]) / (k + d - 2))
    counts = np.cumprod(np.concatenate([[1.0], multiplicity_ratios(d, last)]))
    return nodes, counts[:, None] * np.stack(rows) * (w / np.sum(w))[None, :]


def _directions(x: Any) -> Any:
    norms = jnp.linalg.norm(x, axis=-1, keepdims=True)
    return x / jnp.where(norms > 0, norms, 1.0)

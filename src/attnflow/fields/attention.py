"""Attention as a field on measures, with one head or many."""

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow import checks
from attnflow.axes import Along, Batched
from attnflow.errors import InvalidInput
from attnflow.fields import structure
from attnflow.fields.base import AbstractField, Laws, Points
from attnflow.fields.encodings import AbstractEncoding
from attnflow.fields.kernels import Exponential
from attnflow.fields.linear import AbstractLinearMap, Identity, Matrix, as_linear_map
from attnflow.fields.normalisers import AbstractNormaliser, Softmax, Unnormalised
from attnflow.fields.pairs import Keys, Pairs, Values, values_of
from attnflow.fields.queries import AbstractQuery
from attnflow.fields.structure import Part, Summed, is_exact, matrix_bound
from attnflow.fields.weights import AbstractWeight, Constant, as_weight
from attnflow.masks import AbstractMask, Everyone
from attnflow.precision import is_concrete
from attnflow.spaces import AbstractSpace
from attnflow.sums import AbstractSum, Choice, Tiled, Use
from attnflow.tokens import Measure, Tokens

AVERAGES = {"mean": -1.0, "root": -0.5, "sum": 0.0}


class Attention(AbstractField):
    """X[mu](x) = sum_j A_j(x) V y_j, weights A_j(x) proportional to m_j exp(beta <Qx, Ky_j>).

    `Attention(beta=9.0)` is softmax self-attention with Q = K = V = I (the model SA);
    `Attention(beta=9.0, normaliser=Unnormalised())` its gradient-flow sister (USA0). The weight of a token on itself
    moves nothing, but counts in the softmax denominator. Memory is bounded by the tile of `sum`, never n x n.

    Arguments:
        query, key, value: matrices (rows, dim); the same number of rows, the key dimension, for query and key. An
            array is shared by all layers; `PerLayer`, `Interpolated`, `Random` or a function of t change with time.
        normaliser: `Softmax()`, `Unnormalised(clock)`, `Hardmax()` or `Sinkhorn()`.
        mask: `Everyone()`, `Causal(slope)`, `Window(width)` or `Table(matrix)`.
        encoding: `Rotary()` or `Sinusoidal(size)`: places in the logits.
        sum: how pairs are summed; left out, `solve` and `prepare` choose, and a bare `velocity` uses `Tiled()`.

    Theory: arXiv:2312.10794; USA0 is the clock of arXiv:2410.06833.
    """

    kernel: Exponential
    value: AbstractLinearMap
    normaliser: AbstractNormaliser
    mask: AbstractMask
    sum: AbstractSum | None

    def __init__(
        self,
        beta: Batched,
        *,
        query: Any = None,
        key: Any = None,
        value: Any = None,
        normaliser: AbstractNormaliser | None = None,
        mask: AbstractMask | None = None,
        encoding: AbstractEncoding | None = None,
        sum: AbstractSum | None = None,
    ):
        self.kernel = Exponential(beta, query, key, encoding)
        self.value = as_linear_map("value", value)
        self.normaliser, self.mask, self.sum = _parts(self.kernel, normaliser, mask, sum)

    @property
    def beta(self) -> Any:
        """Inverse temperature."""
        return self.kernel.beta

    @property
    def is_plain(self) -> bool:
        """Whether the energy is a Lyapunov function: Q = K = V = I, everyone seen, softmax or unnormalised."""
        plain = self.kernel.is_plain and isinstance(self.value, Identity) and self.mask.sees_everyone
        return plain and isinstance(self.normaliser, Softmax | Unnormalised)

    @property
    def laws(self) -> Laws:
        return _laws(self.kernel, self.value, self.normaliser, self.mask)

    def formula(self, t: Any, query: AbstractQuery, mu: Measure) -> Points:
        pairs, values = self.pairs(t, query, mu)
        return self.normaliser(pairs, values)

    def pairs(self, t: Any, query: AbstractQuery, mu: Measure) -> tuple[Pairs, Values]:
        """The pairs of queries and tokens of `mu`, and the values V y_j; for use inside compiled code."""
        return _prepare(self, t, query, mu)

    def children(self, space: AbstractSpace) -> tuple[Part, ...]:
        return (_summed(self, space, self._size),)

    def check_parameters(self, tokens: Tokens | Measure) -> None:
        self.kernel.check(tokens.dim)
        self.value.check(tokens.dim, None)
        _square(self.value, "value", tokens.dim)
        self.mask.check(np.asarray(tokens.place))

    def choice(self, tokens: Tokens, tol: float | None = None, *, flowing: bool = False) -> Choice:
        """The ways to sum the pairs of these tokens to the accuracy `tol`, and the cheapest; print its `explain()`."""
        return structure.choice(_summed(self, tokens.space, self._size), tokens, tol, flowing)

    def _size(self, t: Any, dtype: Any) -> Any:
        """A bound of |V|."""
        return self.value.bound(t, dtype)


class MultiHead(AbstractField):
    """Several heads in one batched evaluation: X[mu](x) = H^(-a) sum_h O_h (attention of head h with Q_h, K_h, V_h).

    Matrices have the head as first axis, (H, rows, dim); a matrix without it is shared by all heads. `average` is
    "mean" (a = 1, the default), "root" (a = 1/2) or "sum" (a = 0); `output` are matrices O_h (H, dim, rows of V).
    Softmax heads have no common energy: each has its own denominator.
    """

    kernel: Exponential
    value: AbstractLinearMap
    output: AbstractWeight | None
    normaliser: AbstractNormaliser
    mask: AbstractMask
    sum: AbstractSum | None
    average: str = eqx.field(static=True)

    def __init__(
        self,
        beta: Batched,
        *,
        query: Any = None,
        key: Any = None,
        value: Any = None,
        output: Any = None,
        average: str = "mean",
        normaliser: AbstractNormaliser | None = None,
        mask: AbstractMask | None = None,
        encoding: AbstractEncoding | None = None,
        sum: AbstractSum | None = None,
    ):
        self.kernel = Exponential(beta, query, key, encoding)
        self.value = as_linear_map("value", value)
        self.output = None if output is None else as_weight("output", output)
        if average not in AVERAGES:
            raise InvalidInput(f"`average` is {average!r}; use one of {', '.join(map(repr, AVERAGES))}.")
        self.average = average
        self.normaliser, self.mask, self.sum = _parts(self.kernel, normaliser, mask, sum)

    @property
    def beta(self) -> Any:
        """Inverse temperature."""
        return self.kernel.beta

    @property
    def heads(self) -> int:
        """Number of heads."""
        return max(self._counts(), default=1)

    @property
    def laws(self) -> Laws:
        return _laws(self.kernel, self.value, self.normaliser, self.mask, self.output)

    def formula(self, t: Any, query: AbstractQuery, mu: Measure) -> Points:
        heads = self.heads
        pairs, given = _prepare(self, t, query, mu)

        def stacked(a: Any) -> Any:
            return a if a.ndim == 3 else jnp.broadcast_to(a, (heads, *a.shape))

        def one(query: Any, key: Any, own: Any, values: Any) -> Any:
            head = eqx.tree_at(lambda p: (p.query, p.key, p.own), pairs, (query, key, own))
            return self.normaliser(head, values)

        if pairs.query.ndim == 2 and pairs.key.ndim == 2:
            # all heads have the same weights: the values of all are columns of one sum
            if isinstance(given, Keys) or given.ndim == 2:
                each = stacked(self.normaliser(pairs, given))
            else:
                found = self.normaliser(pairs, jnp.concatenate(list(given), axis=1))
                each = jnp.stack(jnp.split(found, heads, axis=1))
        else:
            values = values_of(given, pairs.key)
            pairs = dataclasses.replace(pairs, sum=pairs.sum.shared(heads), at_tokens=False)
            each = jax.vmap(one)(stacked(pairs.query), stacked(pairs.key), stacked(pairs.own), stacked(values))
        factor = jnp.asarray(heads ** AVERAGES[self.average], each.dtype)
        if self.output is None:
            return factor * jnp.sum(each, axis=0)
        return factor * jnp.einsum("hnv,hdv->nd", each, stacked(self.output.at(t, each.dtype)))

    def children(self, space: AbstractSpace) -> tuple[Part, ...]:
        return (_summed(self, space, self._size),)

    def check_parameters(self, tokens: Tokens | Measure) -> None:
        heads, d = self.heads, tokens.dim
        for count in self._counts():
            if count != heads:
                raise InvalidInput(
                    f"the matrices of MultiHead have {count} and {heads} heads; give one number of heads."
                )
        self.kernel.check(d, heads)
        self.value.check(d, heads)
        rows = _rows(self.value, d)
        if self.output is None:
            _square(self.value, "value", d)
        elif len(self.output.shape) not in (2, 3) or self.output.shape[-2:] != (d, rows):
            raise InvalidInput(f"`output` has shape {self.output.shape}; give ({heads}, {d}, {rows}).")
        self.mask.check(np.asarray(tokens.place))

    def _size(self, t: Any, dtype: Any) -> Any:
        """A bound of H^(-a) sum_h |O_h| |V_h|."""
        sizes = self.value.bound(t, dtype)
        if self.output is not None:
            sizes = sizes * matrix_bound(self.output.at(t, dtype))
        return self.heads ** AVERAGES[self.average] * jnp.sum(jnp.broadcast_to(sizes, (self.heads,)))

    def _counts(self) -> list[int]:
        maps = [m.heads for m in (self.kernel.query, self.kernel.key, self.value)]
        if self.output is not None and len(self.output.shape) == 3:
            maps.append(self.output.shape[0])
        return [count for count in maps if count is not None]


def _prepare(field: Attention | MultiHead, t: Any, query: AbstractQuery, mu: Measure) -> tuple[Pairs, Values]:
    if field.sum is not None:
        _use(field, mu.space).require(field.sum, None)  # what can be seen inside compiled code too
    x, place = jnp.asarray(query.points(mu)), query.place(mu)
    y, keys = jnp.asarray(mu.positions, x.dtype), jnp.asarray(mu.place)
    kernel = field.kernel
    if place is None and (kernel.encoding.uses_place or not field.mask.sees_everyone):
        what = type(field.mask).__name__ if not field.mask.sees_everyone else type(kernel.encoding).__name__
        raise InvalidInput(
            f"{what} needs `place`, the places of the query points; give it, or leave out `x` to ask at the tokens."
        )
    places = jnp.zeros(x.shape[:1], int) if place is None else jnp.asarray(place)
    masses = jnp.asarray(mu.masses, x.dtype)
    unit = jnp.max(masses)
    pairs = Pairs(
        kernel,
        field.mask,
        Tiled() if field.sum is None else field.sum,
        query=kernel.query_features(t, x, places),
        query_place=places,
        key=kernel.key_features(t, y, keys),
        key_place=keys,
        masses=masses / unit,
        unit=unit,
        own=kernel.query_features(t, y, keys),
        present=None if mu.present is None else jnp.asarray(mu.present),
        at_tokens=query.at_tokens,
    )
    keys_are_values = isinstance(field.value, Identity) and kernel.has_plain_keys
    return pairs, Keys() if keys_are_values else field.value(t, y)


def _use(field: Attention | MultiHead, space: AbstractSpace) -> Use:
    return Use(space, field.beta, field.mask, field.kernel.is_plain, field.normaliser.takes_series)


def _summed(field: Attention | MultiHead, space: AbstractSpace, size: Callable[[Any, Any], Any]) -> Summed:
    """The one sum of attention, and what its errors do to the drive."""

    def error(t: Any, query: AbstractQuery, mu: Measure) -> Any:
        dtype = query.points(mu).dtype
        cut = 0.0 if field.sum is None else field.sum.error(field.beta, jnp.asarray(mu.masses, dtype))
        if is_exact(cut):
            return 0.0
        pairs, _ = _prepare(field, t, query, mu)
        return size(t, dtype) * field.normaliser.error(pairs, cut)

    return Summed(lambda field: field.sum, _use(field, space), error, lambda: _largest(field))


def _largest(field: Attention | MultiHead) -> float | None:
    """A bound of the matrices behind the weights, where these are constant and known."""
    output = field.output if isinstance(field, MultiHead) else None
    value = field.value.weight if isinstance(field.value, Matrix) else None
    size = field.heads ** (1 + AVERAGES[field.average]) if isinstance(field, MultiHead) else 1.0
    for weight in (value, output):
        if weight is None:
            continue
        numbers = weight.value if isinstance(weight, Constant) else None
        numbers = numbers.values if isinstance(numbers, Along) else numbers
        if numbers is None or not is_concrete(numbers):
            return None
        size *= float(np.max(matrix_bound(np.asarray(numbers))))
    return size


def _parts(kernel: Exponential, normaliser: Any, mask: Any, sum: Any) -> Any:
    """Normaliser, mask and sum, with their defaults, or a refusal."""
    normaliser = Softmax() if normaliser is None else normaliser
    mask = Everyone() if mask is None else mask
    checks.instance("normaliser", normaliser, AbstractNormaliser, "a normaliser such as Softmax()")
    checks.instance("mask", mask, AbstractMask, "a mask such as Causal()")
    checks.instance("sum", sum, AbstractSum | None, "a sum such as Tiled()")
    number = kernel.beta.values if isinstance(kernel.beta, Along) else kernel.beta
    if is_concrete(number):
        normaliser.check(float(np.min(number)), float(np.max(number)), mask)
    return normaliser, mask, sum


def _laws(
    kernel: Exponential,
    value: AbstractLinearMap,
    normaliser: AbstractNormaliser,
    mask: AbstractMask,
    output: Any = None,
) -> Laws:
    weights = [kernel.query.is_continuous, kernel.key.is_continuous, value.is_continuous]
    return Laws(
        rotation=kernel.is_plain and isinstance(value, Identity) and output is None,
        exchangeable=mask.sees_everyone and not kernel.encoding.uses_place,
        lipschitz=normaliser.is_lipschitz,
        steady=all(weights) and (output is None or output.is_continuous),
    )


def _rows(linear: AbstractLinearMap, dim: int) -> int:
    return linear.weight.shape[-2] if isinstance(linear, Matrix) else dim


def _square(linear: AbstractLinearMap, name: str, dim: int) -> None:
    if _rows(linear, dim) != dim:
        raise InvalidInput(f"`{name}` maps to dimension {_rows(linear, dim)}, but the drive lives in dimension {dim}.")

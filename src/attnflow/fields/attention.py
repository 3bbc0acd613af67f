"""Attention as a field on measures, with one head or many."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow import checks
from attnflow.axes import Batched
from attnflow.checks import shown
from attnflow.errors import InvalidInput
from attnflow.fields import structure
from attnflow.fields.base import AbstractField, Laws, Points
from attnflow.fields.encodings import AbstractEncoding
from attnflow.fields.features import Features
from attnflow.fields.linear import Identity, as_linear_map, as_weights, known, largest
from attnflow.fields.maps import AbstractLinearMap
from attnflow.fields.normalisers import AbstractNormaliser, Softmax, Unnormalised, as_normaliser, model_of
from attnflow.fields.pairs import Keys, Pairs, Values, values_of
from attnflow.fields.queries import AbstractQuery, AtTokens
from attnflow.fields.structure import Part, Summed, is_exact, matrix_bound
from attnflow.fields.weights import AbstractWeight
from attnflow.kernels import AbstractKernel, Exponential, cast, members_of
from attnflow.masks import AbstractMask, Everyone
from attnflow.spaces import AbstractSpace
from attnflow.sums import AbstractSum, Choice, Tiled, Use
from attnflow.tokens import Measure, Tokens

AVERAGES = {"mean": -1.0, "root": -0.5, "sum": 0.0}


class Attention(AbstractField):
    """X[mu](x) = sum_j A_j(x) V y_j, weights A_j(x) proportional to m_j exp(beta <Qx, Ky_j>).

    `Attention(beta=9.0)` is softmax self-attention with Q = K = V = I (the model SA);
    `Attention(beta=9.0, normaliser="USA0")` its gradient-flow variant. The weight of a token on itself
    moves nothing, but counts in the softmax denominator. Memory is bounded by the tile of `sum`, never n x n.

    Matrices with the head as first axis, (heads, rows, dim), make several heads in one batched evaluation:
    X[mu](x) = H^(-a) sum_h O_h (attention of head h with Q_h, K_h, V_h). A matrix without that axis is shared by all
    heads. Softmax heads have no common energy: each has its own denominator. Maps with biases, as trained networks have
    them, are `Biased(M, b)`: Q x + b and so on. With the heads of a network, `average="sum"` and the matrices O_h,
    `output=Biased(O, b)` is its output layer, sum_h O_h (head h) + b.

    Arguments:
        beta: inverse temperature of the kernel exp(beta (<Qx, Ky> - 1)).
        kernel: another kernel in its place, such as `kernels.Gaussian(4.0)`. Kernels that change sign take
            `Unnormalised()`.
        query, key, value: matrices (rows, dim); the same number of rows, the key dimension, for query and key. An
            array is shared by all layers; `PerLayer`, `Interpolated`, `Random` or a function of t change with time.
            Or maps such as `Biased(matrix, bias)`.
        output: matrices O_h, (heads, dim, rows of V) or (dim, rows of V); the identity if left out. The bias of a
            `Biased` one, (dim,), is added once, after the sum over heads.
        average: of the heads: "mean" (a = 1), "root" (a = 1/2) or "sum" (a = 0).
        normaliser: `Softmax()`, `Unnormalised(clock)`, `Hardmax()` or `Sinkhorn()`; or a model of `theory` by its
            name, "SA" (softmax), "USA0" or "USA" (unnormalised).
        mask: `Everyone()`, `Causal(slope)`, `Window(width)` or `Table(matrix)`.
        encoding: `Rotary()` or `Sinusoidal(size)`: places in the logits.
        sum: how pairs are summed; left out, `solve` and `prepare` choose, and a bare `velocity` uses `Tiled()`.

    Attributes:
        kernel: the kernel; `Exponential(beta)` where `beta` was given.
        features: what queries and keys are made of: `features.query`, `features.key` and `features.encoding`.
        value: the map V.
        output: the matrices O_h, None for the identity.
        output_bias: the bias of the output, None for none.
        normaliser, mask, sum, average: as given, or what stands for them.

    Theory: arXiv:2312.10794; USA0 is the clock of arXiv:2410.06833.
    """

    kernel: AbstractKernel
    features: Features
    value: AbstractLinearMap
    output: AbstractWeight | None
    output_bias: AbstractWeight | None
    """The bias of the output."""
    normaliser: AbstractNormaliser
    mask: AbstractMask
    sum: AbstractSum | None
    average: str = eqx.field(static=True)

    def __init__(
        self,
        beta: Batched | None = None,
        *,
        kernel: AbstractKernel | None = None,
        query: Any = None,
        key: Any = None,
        value: Any = None,
        output: Any = None,
        average: str = "mean",
        normaliser: AbstractNormaliser | str | None = None,
        mask: AbstractMask | None = None,
        encoding: AbstractEncoding | None = None,
        sum: AbstractSum | None = None,
    ):
        """The field with these parts; `Arguments` above say what each of them is."""
        if isinstance(beta, AbstractKernel):
            raise InvalidInput(f"`beta` is the kernel {type(beta).__name__}; write Attention(kernel=...).")
        if (beta is None) == (kernel is None):
            what = "neither `beta` nor `kernel`" if beta is None else "both `beta` and `kernel`"
            raise InvalidInput(f"Attention got {what}; give one of them, say beta=9.0 or kernel=Gaussian(4.0).")
        if kernel is not None:
            checks.instance("kernel", kernel, AbstractKernel, "a kernel such as Gaussian(4.0)")
        if average not in AVERAGES:
            raise InvalidInput(f"`average` is {shown(average)}; use one of {', '.join(map(repr, AVERAGES))}.")
        self.kernel = Exponential(beta) if kernel is None else kernel  # type: ignore[arg-type]
        self.features = Features(query, key, encoding)
        self.value = as_linear_map("value", value)
        self.output, self.output_bias = as_weights("output", output)
        self.average = average
        self.normaliser = as_normaliser(normaliser)
        self.mask = Everyone() if mask is None else mask
        self.sum = sum
        checks.instance("mask", self.mask, AbstractMask, "a mask such as Causal()")
        checks.instance("sum", sum, AbstractSum | None, "a sum such as Tiled()")
        for member in members_of(self.kernel) or ():
            self.normaliser.check(member, self.mask)

    @property
    def beta(self) -> Any:
        """Inverse temperature of the kernel exp(beta (<Qx, Ky> - 1))."""
        if not isinstance(self.kernel, Exponential):
            raise InvalidInput(f"the kernel {type(self.kernel).__name__} is not Exponential(beta) and has no `beta`.")
        return self.kernel.beta

    @property
    def model(self) -> str:
        """The model of `theory`: "SA", "USA0" or "USA".

        For example `theory.uniform.equiangular_time(0.5, 9.0, 8, model=field.model)`.
        """
        return model_of(self.normaliser)

    @property
    def heads(self) -> int | None:
        """The number of heads; None for one head whose matrices have no axis for heads."""
        return max(self._counts(), default=None)

    @property
    def is_plain(self) -> bool:
        """Whether the energy is a Lyapunov function: exp(beta <x, y>), Q = K = V = I, no mask, softmax or USA."""
        bare = self.features.is_plain and isinstance(self.value, Identity) and self.output is None
        known = isinstance(self.normaliser, Softmax | Unnormalised) and isinstance(self.kernel, Exponential)
        return bare and known and self.mask.sees_everyone

    @property
    def laws(self) -> Laws:
        """What attention with these parts promises: to be the same after rotations, for instance."""
        features, output = self.features, self.output
        weights = [features.query.is_continuous, features.key.is_continuous, self.value.is_continuous]
        bare = features.is_plain and isinstance(self.value, Identity) and output is None
        return Laws(
            rotation=bare and self.kernel.is_isotropic,
            exchangeable=self.mask.sees_everyone and not features.encoding.uses_place,
            lipschitz=self.normaliser.is_lipschitz,
            steady=all(weights) and all(w is None or w.is_continuous for w in (output, self.output_bias)),
        )

    def formula(self, t: Any, query: AbstractQuery, mu: Measure) -> Points:
        """The vector felt at the points of `query`, of all heads together; `drive` is the function for people."""
        pairs, given = self.pairs(t, query, mu)
        heads, output = self.heads, self.output
        if heads is None and output is None:
            return self.normaliser(pairs, given)
        heads = heads or 1

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
        if output is None:
            return factor * jnp.sum(each, axis=0)
        drive = factor * jnp.einsum("hnv,hdv->nd", each, stacked(output.at(t, each.dtype)))
        return drive if self.output_bias is None else drive + self.output_bias.at(t, drive.dtype)[None, :]

    def at_tokens(self, t: Any, mu: Measure) -> tuple[Points, Any, Any] | None:
        """(drive, error, seen) at the tokens by one sum over pairs: `error` as `stated_error` gives it, `seen` is Z_i.

        Of softmax with one head, which divides by Z; None for others. For use inside compiled code.
        """
        if not isinstance(self.normaliser, Softmax) or self.heads is not None or self.output is not None:
            return None
        query, dtype = AtTokens(), jnp.asarray(mu.positions).dtype
        pairs, given = self.pairs(t, query, mu)
        scale, total, weighted = pairs.totals(given)
        seen = pairs.unit * jnp.exp(scale) * total[:, 0]
        cut = self._cut(mu, dtype)
        error = cut if is_exact(cut) else query.kept(mu, self._size(t, dtype) * self.normaliser.bound(cut, seen))
        return query.kept(mu, weighted / total), error, seen

    def pairs(self, t: Any, query: AbstractQuery, mu: Measure) -> tuple[Pairs, Values]:
        """The pairs of queries and tokens of `mu`, and the values V y_j; for use inside compiled code."""
        if self.sum is not None:
            self._use(mu.space).require(self.sum, None)  # what can be seen inside compiled code too
        features = self.features
        x, place = jnp.asarray(query.points(mu)), query.place(mu)
        y, keys = jnp.asarray(mu.positions, x.dtype), jnp.asarray(mu.place)
        if place is None and (features.encoding.uses_place or not self.mask.sees_everyone):
            what = type(features.encoding if self.mask.sees_everyone else self.mask).__name__
            raise InvalidInput(
                f"{what} needs `place`, the places of the points `at`; give it, or leave out `at` to ask at the tokens."
            )
        places = jnp.zeros(x.shape[:1], int) if place is None else jnp.asarray(place)
        masses = jnp.asarray(mu.masses, x.dtype)
        unit = jnp.max(masses)
        pairs = Pairs(
            cast(self.kernel, x.dtype),
            self.mask,
            Tiled() if self.sum is None else self.sum,
            query=features.of_queries(t, x, places),
            query_place=places,
            key=features.of_keys(t, y, keys),
            key_place=keys,
            masses=masses / unit,
            unit=unit,
            own=features.of_queries(t, y, keys),
            present=None if mu.present is None else jnp.asarray(mu.present),
            at_tokens=query.at_tokens,
        )
        keys_are_values = isinstance(self.value, Identity) and features.has_plain_keys
        return pairs, Keys() if keys_are_values else self.value(t, y)

    def children(self, space: AbstractSpace) -> tuple[Part, ...]:
        """The one sum over pairs that attention needs, when it is evaluated on `space`."""
        return (self._summed(space),)

    def check_parameters(self, tokens: Tokens | Measure) -> None:
        """Refuse matrices and places that do not fit these tokens."""
        counts, d = self._counts(), tokens.dim
        heads = max(counts, default=None)
        for count in counts:
            if count != heads:
                raise InvalidInput(
                    f"the matrices of Attention have {count} and {heads} heads; give one number of heads."
                )
        self.features.check(d, heads)
        self.value.check(d, heads)
        rows = self.value.rows(d)
        if self.output is not None:
            shape = (d, rows) if heads is None else (heads, d, rows)
            if len(self.output.shape) not in (2, 3) or self.output.shape[-2:] != (d, rows):
                raise InvalidInput(f"`output` has shape {self.output.shape}; give {shape}.")
            if self.output_bias is not None and self.output_bias.shape != (d,):
                raise InvalidInput(
                    f"the bias of `output` has shape {self.output_bias.shape}; it is added once, after the heads, "
                    f"so give ({d},)."
                )
        elif rows != d:
            raise InvalidInput(f"`value` maps to dimension {rows}, but the drive lives in dimension {d}.")
        self.mask.check(np.asarray(tokens.place))
        for member in members_of(self.kernel) or ():
            self.normaliser.check(member, self.mask, tokens.positions.dtype)

    def choice(self, tokens: Tokens, tol: float | None = None, *, flowing: bool = False) -> Choice:
        """The ways to sum the pairs of these tokens to the accuracy `tol`, and the cheapest; print its `explain()`."""
        checks.instance("tokens", tokens, Tokens, "tokens, such as from_array(positions)")
        return structure.choice(self._summed(tokens.space), tokens, tol, flowing)

    def _use(self, space: AbstractSpace) -> Use:
        return Use(space, self.kernel, self.mask, self.features.is_plain, self.normaliser.takes_series)

    def _summed(self, space: AbstractSpace) -> Summed:
        """The one sum of attention, and what its errors do to the drive."""

        def error(t: Any, query: AbstractQuery, mu: Measure) -> Any:
            dtype = query.points(mu).dtype
            cut = self._cut(mu, dtype)
            if is_exact(cut):
                return 0.0
            pairs, _ = self.pairs(t, query, mu)
            return self._size(t, dtype) * self.normaliser.error(pairs, cut)

        use = Use(space, self.kernel, self.mask, self.features.is_plain, self.normaliser.takes_series)
        return Summed(lambda field: field.sum, use, error, lambda: self._largest())

    def _cut(self, mu: Measure, dtype: Any) -> Any:
        """How far the sums S are off; the number 0 where they are exact."""
        return 0.0 if self.sum is None else self.sum.error(self.kernel, jnp.asarray(mu.masses, dtype))

    def _size(self, t: Any, dtype: Any) -> Any:
        """A bound of H^(-a) sum_h |O_h| |V_h|."""
        sizes = self.value.bound(t, dtype)
        if self.output is not None:
            sizes = sizes * matrix_bound(self.output.at(t, dtype))
        heads = self.heads or 1
        return heads ** AVERAGES[self.average] * jnp.sum(jnp.broadcast_to(sizes, (heads,)))

    def _largest(self) -> float | None:
        """A bound of the matrices of the weights, where these are constant and known."""
        size = largest(self.value)
        if size is None:
            return None
        size *= float((self.heads or 1) ** (1 + AVERAGES[self.average]))
        if self.output is None:
            return size
        numbers = known(self.output)
        return None if numbers is None else size * float(np.max(matrix_bound(numbers)))

    def _counts(self) -> list[int]:
        maps = [m.heads for m in (self.features.query, self.features.key, self.value)]
        if self.output is not None and len(self.output.shape) == 3:
            maps.append(self.output.shape[0])
        return [count for count in maps if count is not None]

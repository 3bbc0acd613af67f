"""Attention on R^d without layer norm, in coordinates that take out its exponential growth."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import expm
from jaxtyping import Array, Float

from attnflow.axes import Along
from attnflow.errors import InvalidInput, TooLarge
from attnflow.feasible import LARGEST_TABLE
from attnflow.fields.attention import Attention
from attnflow.fields.base import AbstractField, Laws, Points
from attnflow.fields.encodings import NoEncoding, Rotary
from attnflow.fields.linear import Identity, Matrix
from attnflow.fields.maps import AbstractLinearMap
from attnflow.fields.normalisers import Softmax
from attnflow.fields.pairs import Pairs
from attnflow.fields.queries import AbstractQuery, AtTokens
from attnflow.fields.structure import Inner, Part
from attnflow.fields.weights import Constant
from attnflow.kernels import Exponential
from attnflow.precision import in_float64, is_concrete, is_traced
from attnflow.spaces import AbstractSpace, Euclidean
from attnflow.tokens import Measure, Tokens, all_present

SQUARINGS = 64
"""Of the matrix exponential: enough for |tV| up to 1e20 (the 16 of JAX give NaN from 3.5e5 on)."""
CLIP = 0.85
"""Share of the log of the largest number (710 in float64) that the exponent 2 growth t may take: 600."""


class Rescaled(AbstractField):
    """X_t[mu](z) = sum_j A_j V (z_j - z), with A_j proportional to m_j exp(beta <Q e^(tV) z, K e^(tV) z_j>), on R^d.

    If tokens x follow `attention` on Euclidean(d), dx_i/dt = sum_j A_ij V x_j, then z = e^(-tV) x follow this field
    (`from_raw`, `to_raw`). x grows like e^(growth t), `growth` the largest real part of the eigenvalues of V, and the
    logits like its square; z has the limits of arXiv:2305.05465: vertices of a polytope for V = I and Q^T K > 0, three
    hyperplanes at most when the leading eigenvalue is simple, and Boolean weights in d = 1.

    V is constant in time (V of `attention`; the identity by default), the normaliser Softmax; Q, K and the mask are
    free, except for an additive encoding. With Q^T K < 0 and growth > 0 the flow is stiff, like e^(2 growth t). A token
    that sees nobody keeps its x, so that its z follows -V z.

    Guarantee: finite as long as z is. e^(tV) is split into e^(growth t) and e^(t(V - growth)); the square of the first
    factor multiplies beta, up to e^600, where the softmax is a hardmax for every difference of logits that float64
    can tell from 0. Rounding shifts logits by 2e-16 e^(2 growth t): from t = 18/growth on, which of several tokens
    with one limit wins is left to chance. Their leading coordinates (those of `hyperplane_coordinates`) are equal, so
    those keep their digits; the coordinates along smaller eigenvalues do not, and along negative ones they grow: where
    they are 1e16 times the leading ones, these are lost. Derivatives are finite too: where the largest logit passes
    eps^(-1/2) (6.7e7) the weights count as constants, as those of a hardmax are, because the rounding of their
    derivatives is larger than what is left of them.
    """

    attention: Attention
    growth: np.ndarray | Along
    """The spectral abscissa of V. The field does not depend on it except for rounding; it has no derivative."""

    def __init__(self, attention: Attention):
        if not isinstance(attention, Attention):
            raise InvalidInput(f"`attention` is {type(attention).__name__}; give an Attention.")
        if not isinstance(attention.normaliser, Softmax):
            raise InvalidInput(
                f"`attention` has the normaliser {type(attention.normaliser).__name__}; Rescaled needs weights that "
                "sum to 1, so give Softmax()."
            )
        if not isinstance(attention.kernel, Exponential):
            raise InvalidInput(
                f"`attention` has the kernel {type(attention.kernel).__name__}, whose logits do not scale with the "
                "tokens; give beta."
            )
        if attention.heads is not None or attention.output is not None:
            raise InvalidInput("`attention` has heads or an output matrix; Rescaled needs one head with one V.")
        for role in ("query", "key"):
            if not getattr(attention.features, role).is_linear:
                raise InvalidInput(
                    f"`attention` has a bias in `{role}`, which does not scale with the tokens; give the matrix alone."
                )
        if not isinstance(attention.features.encoding, NoEncoding | Rotary):
            raise InvalidInput(
                f"`attention` has the encoding {type(attention.features.encoding).__name__}, which does not scale with "
                "the tokens; use Rotary(), or none."
            )
        self.attention = attention
        self.growth = _abscissa(attention.value)

    @property
    def laws(self) -> Laws:
        return self.attention.laws

    def children(self, space: AbstractSpace) -> tuple[Part, ...]:
        # the sum of `attention` gets features that grow like e^(growth t), wherever the tokens are
        return (Inner(lambda field: field.attention, Euclidean(space.dim)),)

    def formula(self, t: Any, query: AbstractQuery, mu: Measure) -> Points:
        x = jnp.asarray(query.points(mu))
        mean = self.attention.normaliser(self.pairs(t, query, mu), jnp.asarray(mu.positions, x.dtype))
        return self.attention.value(t, mean - x)

    def pairs(self, t: Any, query: AbstractQuery, mu: Measure) -> Pairs:
        """The pairs of queries and tokens of `mu` with the weights of time t; for use inside compiled code."""
        x = jnp.asarray(query.points(mu))
        flow = self._flow(t, x.dtype)

        def carried(z: Any) -> Any:
            return z if flow is None else z @ flow.T

        moved = mu.moved(carried(jnp.asarray(mu.positions, x.dtype)))
        pairs, _ = self.attention.pairs(t, query.moved(lambda z: carried(jnp.asarray(z))), moved)
        # a vector common to all keys changes no weight, but costs digits where the logits are large
        key = pairs.key - jax.lax.stop_gradient(_middle(pairs.key, pairs.present))
        factor = self._factor(t, x.dtype)
        beta = jnp.asarray(self.attention.beta, x.dtype)
        features = _resolved(beta, (factor * pairs.query, factor * pairs.own, factor * key))
        return eqx.tree_at(lambda p: (p.query, p.own, p.key), pairs, features)

    @in_float64
    def matrix(self, t: Any, tokens: Tokens) -> Float[Array | np.ndarray, "token token"]:
        """A_ij, the weight that token i gives to token j at time t, z_i the positions of `tokens`; one system."""
        tokens.single()
        if tokens.n > LARGEST_TABLE:
            raise TooLarge(f"`tokens` has {tokens.n} tokens; an attention matrix has {LARGEST_TABLE} at most.")
        self.check(tokens)
        all_present(tokens, "the attention matrix")
        pairs = self.pairs(t, AtTokens(), tokens.measure)
        return self.attention.normaliser(pairs, jnp.eye(tokens.n, dtype=pairs.key.dtype))

    @in_float64
    def to_raw(self, t: Any, z: Float[Array | np.ndarray, "*batch dim"]) -> Float[Array | np.ndarray, "*batch dim"]:
        """x = e^(tV) z: from the coordinates of this field to those of `attention`."""
        return self._exponential(t, z, 1.0)

    @in_float64
    def from_raw(self, t: Any, x: Float[Array | np.ndarray, "*batch dim"]) -> Float[Array | np.ndarray, "*batch dim"]:
        """z = e^(-tV) x: from the coordinates of `attention` to those of this field."""
        return self._exponential(t, x, -1.0)

    def check_parameters(self, tokens: Tokens | Measure) -> None:
        if not isinstance(tokens.space, Euclidean):
            raise InvalidInput(
                f"`tokens` live on {tokens.space}; Rescaled is attention without layer norm, so give them the space "
                f"Euclidean({tokens.dim})."
            )

    def _flow(self, t: Any, dtype: Any) -> Any:
        """e^(t (V - growth)), or None for the identity."""
        matrix = _matrix(self.attention.value, dtype)
        if matrix is None:
            return None
        rest = matrix - jnp.asarray(self.growth, dtype) * jnp.eye(matrix.shape[0], dtype=dtype)
        return expm(jnp.asarray(t, dtype) * rest, max_squarings=SQUARINGS)

    def _factor(self, t: Any, dtype: Any) -> Any:
        """e^(growth t), clipped, for queries and keys alike."""
        exponent = jnp.asarray(self.growth, dtype) * jnp.asarray(t, dtype)
        return jnp.exp(jnp.minimum(exponent, jnp.asarray(CLIP * np.log(jnp.finfo(dtype).max) / 2, dtype)))

    def _exponential(self, t: Any, points: Any, sign: float) -> Any:
        if isinstance(self.growth, Along):
            raise InvalidInput("`value` is a batch of matrices; convert the members one by one, each with its own.")
        points = jnp.asarray(points)
        t = sign * jnp.asarray(t, points.dtype)
        matrix = _matrix(self.attention.value, points.dtype)
        moved = jnp.exp(t) * points if matrix is None else points @ expm(t * matrix, max_squarings=SQUARINGS).T
        if not is_traced(moved) and not np.isfinite(moved).all():
            raise InvalidInput(f"e^(tV) overflows at `t` = {sign * float(t):g}; stay in the coordinates z.")
        return moved


def _middle(key: Any, present: Any) -> Any:
    """The mean of the keys that are present."""
    if present is None:
        return jnp.mean(key, axis=0, keepdims=True)
    return jnp.sum(jnp.where(present[:, None], key, 0.0), axis=0, keepdims=True) / jnp.sum(present.astype(key.dtype))


def _resolved(beta: Any, features: tuple[Any, Any, Any]) -> Any:
    """The features themselves, as constants for derivatives where the largest logit passes eps^(-1/2)."""
    query, _, key = jax.lax.stop_gradient(features)
    largest = jnp.abs(beta) * jnp.max(jnp.linalg.norm(query, axis=-1)) * jnp.max(jnp.linalg.norm(key, axis=-1))
    blurred = largest > jnp.asarray(jnp.finfo(key.dtype).eps ** -0.5, key.dtype)
    return jax.tree.map(lambda a: jnp.where(blurred, jax.lax.stop_gradient(a), a), features)


def _matrix(value: AbstractLinearMap, dtype: Any) -> Any:
    return value.weight.at(0.0, dtype) if isinstance(value, Matrix) else None


def _abscissa(value: AbstractLinearMap) -> Any:
    """The largest real part of the eigenvalues of V, on the host where its numbers are known."""
    if isinstance(value, Identity):
        return np.ones(())
    if not value.is_linear:
        raise InvalidInput("`attention` has a bias in `value`, so that e^(tV) has no meaning; give the matrix alone.")
    if not isinstance(value, Matrix) or not isinstance(value.weight, Constant):
        kind = type(value.weight).__name__ if isinstance(value, Matrix) else type(value).__name__
        raise InvalidInput(f"`value` changes with time ({kind}), so that e^(tV) has no meaning; give one matrix.")
    shape, given = value.weight.shape, value.weight.value
    if len(shape) != 2 or shape[0] != shape[1]:
        raise InvalidInput(f"`value` has shape {shape}; Rescaled needs one square matrix.")
    if isinstance(given, Along):
        return given.map(lambda values: np.linalg.eigvals(np.asarray(values)).real.max(axis=-1))
    if is_concrete(given):
        return np.asarray(np.linalg.eigvals(np.asarray(given)).real.max())
    return jnp.max(jnp.linalg.eigvals(jax.lax.stop_gradient(given)).real)

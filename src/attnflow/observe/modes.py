"""The modes of the kernel density estimate of tokens: where the field condenses them before clusters exist."""

import dataclasses
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow.errors import InvalidInput
from attnflow.fields import Attention
from attnflow.fields.argument_checks import checked_arguments
from attnflow.fields.queries import AtPoints
from attnflow.observe.linked import components
from attnflow.observe.observable import observable
from attnflow.precision import in_float64
from attnflow.spaces import Sphere
from attnflow.special.formula import Integers, Other, Reals, formula
from attnflow.tokens import Measure, Tokens

SYSTEM = Other("tokens of one system on a sphere, no mode of which is about to split or to vanish")
BETA = Reals(0.0, 1e6, scalar=True)
MOST = 4096
"""Tokens from which the ascent starts, unless `starts` is given; of more tokens, every k-th."""


@dataclasses.dataclass(frozen=True)
class Modes:
    """Local maxima of Z(x) = sum_j m_j e^(beta (<x, y_j> - 1))."""

    positions: np.ndarray
    heights: np.ndarray
    labels: np.ndarray
    """The mode that each start climbs to."""
    unfinished: int
    """Starts that were still climbing; they count for the mode that they are near."""

    @property
    def count(self) -> int:
        """Number of modes that were found."""
        return len(self.positions)


@formula(
    tokens=SYSTEM,
    beta=BETA,
    starts=Other("unit vectors, or None for the tokens"),
    tol=Reals(1e-13, 0.1, scalar=True),
    iterations=Integers(1, scalar=True),
    relative="1e-12 + tol",
)
@checked_arguments
@in_float64
def modes(
    tokens: Tokens | Measure, beta: float, *, starts: Any = None, tol: float = 1e-9, iterations: int = 20_000
) -> Modes:
    """Climb from `starts` (default: the tokens, at most 4096) to the maxima of Z by mean shift; one system on a sphere.

    x <- N(x)/|N(x)| with N the softmax mean never decreases Z: grad Z = beta Z (N - <N, x> x). The sums are those that
    `field.prepare` chooses, so a million tokens on S^1 or S^2 cost as little as in a flow. Maxima without a token in
    their basin are not found: there are none for starts at all tokens, since a mode draws in its nearest ones.
    """
    if not isinstance(tokens.space, Sphere) or tokens.dims:
        raise InvalidInput("`tokens` must be one system on a sphere to have modes here; pick one with `member`.")
    tokens = tokens.member()  # without absent rows
    field = Attention(beta).prepare(cast("Tokens", tokens))  # a measure does as well
    x = np.asarray(tokens.positions)[:: -(-tokens.n // MOST)] if starts is None else np.asarray(starts, np.float64)
    ends, moving, heights = (np.asarray(a) for a in _climb(field, tokens.measure, jnp.asarray(x), tol, iterations))
    label = components(ends, max(100 * tol, 1e-3 / np.sqrt(1 + beta)))
    _, first, label = np.unique(label, return_index=True, return_inverse=True)
    order = np.argsort(-heights[first], kind="stable")
    rank = np.argsort(order)
    return Modes(ends[first][order], heights[first][order], rank[label], int(np.sum(moving)))


@observable
@formula(tokens=SYSTEM, beta=BETA)
@checked_arguments
def mode_count(tokens: Tokens | Measure, beta: float) -> np.int64:
    """The number of `modes` of one system on a sphere, on the host."""
    return np.int64(modes(tokens, beta).count)


@eqx.filter_jit
def _climb(field: Attention, tokens: Measure, x: Any, tol: Any, iterations: int) -> Any:
    def mean(x: Any) -> Any:
        return field.drive(tokens, at=AtPoints(x))

    def body(state: Any) -> Any:
        k, x, _ = state
        new = mean(x)
        new = new / jnp.linalg.norm(new, axis=1, keepdims=True)
        return k + 1, new, jnp.linalg.norm(new - x, axis=1)

    def going(state: Any) -> Any:
        return (state[0] < iterations) & jnp.any(state[2] > 1e-3 * tol)

    _, x, step = jax.lax.while_loop(going, body, (0, x, jnp.full(x.shape[:1], jnp.inf, x.dtype)))
    pairs, _ = field.pairs(0.0, AtPoints(x), tokens)
    scale, total = pairs.sums(jnp.ones((tokens.n, 1), x.dtype))
    return x, step > tol, pairs.unit * jnp.exp(scale) * total[:, 0]

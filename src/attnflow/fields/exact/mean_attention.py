"""Attention at infinite temperature: every token feels the mean of all."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow.errors import InvalidInput
from attnflow.fields.base import Laws
from attnflow.fields.exact.base import AbstractJoint, check_constant, constant, constant_laws
from attnflow.fields.queries import AbstractQuery, Points
from attnflow.fields.structure import Part
from attnflow.fields.weights import AbstractWeight, as_weight
from attnflow.spaces import AbstractSpace, Euclidean
from attnflow.tokens import Measure, Tokens

NODES, ROUNDS = 8, 22
"""Gauss nodes of a leg, and Picard iterations: the errors are (|V| h)^16 and (3 |V| h)^22/22!."""
LEG = 0.5
"""Largest |V| h of one leg, so that the maps of a leg are at most boosts of length 1/2."""


class MeanAttention(AbstractJoint):
    """X[mu](x) = V m, with m the mean of mu: softmax attention at beta = 0. V is the identity if left out.

    Sphere: all tokens feel one vector y(t) = V m(t), so the flow is one Moebius map for all of them (Watanabe and
    Strogatz on the circle; Lohe, and Lipton, Mirollo and Strogatz arXiv:1907.07150, on spheres). In homogeneous
    coordinates (lambda, lambda x) it is linear: G' = [[0, y^T], [y, 0]] G in SO+(1, d), that is d(d+1)/2 equations
    for any number of tokens, here solved by Gauss collocation of order 16. Cross ratios
    |x-y||z-w|/(|x-w||z-y|) are conserved, and the log-determinant is -(d-1) log lambda.

    R^d: m grows to e^(hV) m, and all tokens are translated by e^(hV) m - m.
    """

    value: AbstractWeight | None

    def __init__(self, value: Any = None):
        self.value = None if value is None else as_weight("value", value)

    def formula(self, t: Any, query: AbstractQuery, mu: Measure) -> Points:
        x = query.points(mu)
        return jnp.broadcast_to(self._matrix(t, mu) @ _mean(mu), x.shape)

    def flow(self, t0: Any, t1: Any, query: AbstractQuery, mu: Measure) -> tuple[Points, Float[Array, " query"]]:
        points = query.points(mu)
        matrix, h = self._matrix((t0 + t1) / 2, mu), jnp.asarray(t1 - t0, points.dtype)
        if isinstance(mu.space, Euclidean):
            mean = _mean(mu)
            shift = jax.scipy.linalg.expm(h * matrix) @ mean - mean
            return points + shift[None], jnp.zeros(points.shape[:1], points.dtype)
        size = jnp.sqrt(jnp.sum(matrix**2)) * jnp.abs(h)
        legs = jnp.maximum(jnp.ceil(size / LEG), 1.0)

        def leg(state: Any) -> Any:
            done, x, points, grown = state
            map_ = _moebius(matrix, h / legs, x, mu.masses)
            x, _ = _image(map_, x)
            points, change = _image(map_, points)
            return done + 1, x, points, grown + change

        x = jnp.asarray(mu.positions)
        begin = (jnp.zeros((), points.dtype), x, jnp.asarray(points), jnp.zeros(points.shape[:1], points.dtype))
        _, _, moved, grown = jax.lax.while_loop(lambda state: state[0] < legs, leg, begin)
        return moved, grown

    @property
    def is_free(self) -> bool:
        return False

    def lipschitz(self, space: AbstractSpace) -> Any:
        if isinstance(space, Euclidean):
            return 0.0
        return 1.0 if self.value is None else np.linalg.norm(constant(self.value), ord=2, axis=(-2, -1))

    def times(self, factor: float) -> "MeanAttention":
        if self.value is None:
            raise InvalidInput(
                f"{self!r} has no matrix that could be multiplied, say to run it backwards; give MeanAttention its "
                "`value`, the identity np.eye(d)."
            )
        return MeanAttention(factor * constant(self.value))

    def children(self, space: AbstractSpace) -> tuple[Part, ...]:
        return ()

    def check_parameters(self, tokens: Tokens | Measure) -> None:
        check_constant(self, tokens, value=(tokens.dim,) * 2)

    @property
    def laws(self) -> Laws:
        return constant_laws(self.value, rotation=self.value is None)

    def _matrix(self, t: Any, mu: Measure) -> Any:
        dtype = mu.positions.dtype
        return jnp.eye(mu.dim, dtype=dtype) if self.value is None else self.value.at(t, dtype)


def _mean(mu: Measure) -> Any:
    masses = jnp.asarray(mu.masses, mu.positions.dtype)
    if mu.present is not None:
        masses = jnp.where(mu.present, masses, 0.0)
    return masses @ mu.positions / jnp.sum(masses)


def _moebius(matrix: Any, h: Any, x: Any, masses: Any) -> Any:
    """G(h) in SO+(1, d), from G(0) = I, for tokens that start at `x`."""
    d, dtype = x.shape[1], x.dtype
    nodes, integrals = (np.asarray(part, dtype) for part in _collocation())
    share = (masses / jnp.sum(masses)).astype(dtype)
    lifted = jnp.concatenate([jnp.ones((x.shape[0], 1), dtype), x], axis=1)

    def rates(maps: Any) -> Any:
        """[[0, y^T], [y, 0]] G at every node."""
        images = jnp.einsum("kij,nj->kni", maps, lifted)
        mean = jnp.einsum("n,kni->ki", share, images[..., 1:] / images[..., :1])
        y = mean @ matrix.T
        top = jnp.einsum("ki,kij->kj", y, maps[:, 1:])[:, None]
        return jnp.concatenate([top, y[:, :, None] * maps[:, :1]], axis=1)

    one = jnp.eye(d + 1, dtype=dtype)

    def again(maps: Any, _: Any) -> Any:
        return one[None] + h * jnp.einsum("kl,lij->kij", integrals[:-1], rates(maps)), None

    start = jnp.broadcast_to(one, (len(nodes), d + 1, d + 1))
    maps, _ = jax.lax.scan(again, start, None, length=ROUNDS)
    return one + h * jnp.einsum("l,lij->ij", integrals[-1], rates(maps))


def _collocation() -> tuple[np.ndarray, np.ndarray]:
    """Gauss nodes in [0, 1], and the integrals of their Lagrange polynomials from 0 to every node and to 1."""
    nodes, _ = np.polynomial.legendre.leggauss(NODES)
    legendre = np.polynomial.legendre.Legendre
    powers = np.linalg.inv(np.polynomial.legendre.legvander(nodes, NODES - 1))  # Lagrange polynomials, in columns
    ends = np.append(nodes, 1.0)
    columns = [legendre(powers[:, k]).integ(lbnd=-1)(ends) / 2 for k in range(NODES)]
    return (nodes + 1) / 2, np.stack(columns, axis=1)


def _image(map_: Any, x: Any) -> tuple[Any, Any]:
    """(points after a Moebius map, log-determinants)."""
    scale = map_[0, 0] + x @ map_[0, 1:]
    moved = (map_[1:, 0][None] + x @ map_[1:, 1:].T) / scale[:, None]
    return moved / jnp.sqrt(jnp.sum(moved**2, axis=1, keepdims=True)), -(x.shape[1] - 1) * jnp.log(scale)

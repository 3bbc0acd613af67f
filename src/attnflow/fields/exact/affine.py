"""x' = A x + b, the simplest field whose flow is known exactly."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow.errors import InvalidInput
from attnflow.fields.base import Laws
from attnflow.fields.exact.base import AbstractExact, check_constant, constant, constant_laws
from attnflow.fields.queries import AbstractQuery, Points
from attnflow.fields.structure import Part
from attnflow.fields.weights import AbstractWeight, as_weight
from attnflow.spaces import AbstractSpace, Euclidean, Sphere
from attnflow.tokens import Measure, Tokens


class Affine(AbstractExact):
    """X(x) = A x + b on R^d, or P_x A x on the sphere: no token feels another.

    The flow over a time h is x -> e^(hA) x + (integral of e^(sA) b from 0 to h), both from the exponential of the
    matrix [[A, b], [0, 0]]; its log-determinant is h tr A. On the sphere, without b, it is x -> y/|y| with
    y = e^(hA) x, and the log-determinant is h tr A - d log|y|. Weights are arrays, `Pieces`, `PerLayer` or `Random`,
    which are constant between their jumps.
    """

    matrix: AbstractWeight
    bias: AbstractWeight | None

    def __init__(self, matrix: Any, bias: Any = None):
        self.matrix = as_weight("matrix", matrix)
        self.bias = None if bias is None else as_weight("bias", bias)

    def formula(self, t: Any, query: AbstractQuery, mu: Measure) -> Points:
        x = query.points(mu)
        drive = x @ self.matrix.at(t, x.dtype).T
        return drive if self.bias is None else drive + jnp.broadcast_to(self.bias.at(t, x.dtype), drive.shape)

    def carry(self, t0: Any, t1: Any, query: AbstractQuery, mu: Measure) -> Points:
        return mu.space.retract(self._image(t0, t1, query, mu))

    def stretching(self, t0: Any, t1: Any, query: AbstractQuery, mu: Measure) -> Float[Array, " query"]:
        image = self._image(t0, t1, query, mu)
        matrix = self.matrix.at((t0 + t1) / 2, image.dtype)
        grown = jnp.broadcast_to(jnp.asarray(t1 - t0, image.dtype) * jnp.trace(matrix), image.shape[:-1])
        if isinstance(mu.space, Euclidean):
            return grown
        return grown - mu.dim * jnp.log(jnp.linalg.norm(image, axis=-1))

    @property
    def is_free(self) -> bool:
        return True

    def lipschitz(self, space: AbstractSpace) -> Any:
        size = np.linalg.norm(constant(self.matrix), ord=2, axis=(-2, -1))
        return size if isinstance(space, Euclidean) else 2 * size

    def times(self, factor: float) -> "Affine":
        return Affine(factor * constant(self.matrix), None if self.bias is None else factor * constant(self.bias))

    def children(self, space: AbstractSpace) -> tuple[Part, ...]:
        return ()

    def check_parameters(self, tokens: Tokens | Measure) -> None:
        if self.bias is not None and isinstance(tokens.space, Sphere):
            raise InvalidInput("`bias` of Affine is for tokens in R^d; on the sphere leave it out, or use Perceptron.")
        check_constant(self, tokens, matrix=(tokens.dim,) * 2, bias=(tokens.dim,))

    @property
    def laws(self) -> Laws:
        return constant_laws(self.matrix, self.bias)

    def _image(self, t0: Any, t1: Any, query: AbstractQuery, mu: Measure) -> Any:
        """e^(hA) x, and what b adds to it; before it is moved onto the space."""
        x, between = query.points(mu), (t0 + t1) / 2
        matrix, h = self.matrix.at(between, x.dtype), jnp.asarray(t1 - t0, x.dtype)
        if self.bias is None:
            return x @ jax.scipy.linalg.expm(h * matrix).T
        rows = jnp.concatenate([matrix, self.bias.at(between, x.dtype)[:, None]], axis=1)
        grown = jax.scipy.linalg.expm(h * jnp.concatenate([rows, jnp.zeros_like(rows[:1])]))
        return x @ grown[:-1, :-1].T + jnp.broadcast_to(grown[:-1, -1], x.shape)

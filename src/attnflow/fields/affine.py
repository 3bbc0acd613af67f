"""x' = A x + b, the simplest field whose flow is known exactly."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attnflow.errors import InvalidInput
from attnflow.fields.base import Laws
from attnflow.fields.exact import AbstractExact
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

    matrix: AbstractWeight = eqx.field(converter=lambda value: as_weight("matrix", value))
    bias: AbstractWeight | None = eqx.field(
        converter=lambda value: None if value is None else as_weight("bias", value), default=None
    )

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

    def children(self, space: AbstractSpace) -> tuple[Part, ...]:
        return ()

    def check_parameters(self, tokens: Tokens | Measure) -> None:
        if not isinstance(tokens.space, Sphere | Euclidean):
            raise InvalidInput(f"`Affine` is for tokens on Sphere or Euclidean, not on {tokens.space}; use Perceptron.")
        if self.bias is not None and isinstance(tokens.space, Sphere):
            raise InvalidInput("`bias` of Affine is for tokens in R^d; on the sphere leave it out, or use Perceptron.")
        for role, weight, shape in (("matrix", self.matrix, (tokens.dim,) * 2), ("bias", self.bias, (tokens.dim,))):
            if weight is not None and weight.shape != shape:
                raise InvalidInput(f"`{role}` of Affine has shape {weight.shape}; give shape {shape}.")
            if weight is not None and not weight.is_piecewise:
                raise InvalidInput(
                    f"`{role}` of Affine is {type(weight).__name__}, which changes between its jumps, so that the flow "
                    "is not known; use Pieces or PerLayer, or the field Perceptron."
                )

    @property
    def laws(self) -> Laws:
        weights = [self.matrix] if self.bias is None else [self.matrix, self.bias]
        return Laws(rotation=False, exchangeable=True, lipschitz=True, steady=all(w.is_continuous for w in weights))

    def _image(self, t0: Any, t1: Any, query: AbstractQuery, mu: Measure) -> Any:
        """e^(hA) x, and what b adds to it; before it is moved onto the space."""
        x, between = query.points(mu), (t0 + t1) / 2
        matrix, h = self.matrix.at(between, x.dtype), jnp.asarray(t1 - t0, x.dtype)
        if self.bias is None:
            return x @ jax.scipy.linalg.expm(h * matrix).T
        rows = jnp.concatenate([matrix, self.bias.at(between, x.dtype)[:, None]], axis=1)
        grown = jax.scipy.linalg.expm(h * jnp.concatenate([rows, jnp.zeros_like(rows[:1])]))
        return x @ grown[:-1, :-1].T + jnp.broadcast_to(grown[:-1, -1], x.shape)

"""Two fields that know their own flow, as a user's file would add them: a ReLU unit of R^d, and a rotation."""

import jax.numpy as jnp
import numpy as np

import attnflow as af
from attnflow.errors import InvalidInput
from attnflow.fields import AbstractExact, Laws
from attnflow.fields.weights import as_weight


@af.register("field", "relu-unit")
class ReluUnit(AbstractExact):
    """X(x) = w (<a, x> + b)_+ with w, a, b constant between jumps.

    With k = <a, w> the flow over h is x -> x + h phi(k h) (<a, x> + b)_+ w, phi(z) = (e^z - 1)/z, and its
    log-determinant is k h where <a, x> + b > 0, else 0.
    """

    outer: object
    inner: object
    bias: object

    def __init__(self, outer, inner, bias=0.0):
        self.outer, self.inner = as_weight("outer", outer), as_weight("inner", inner)
        self.bias = as_weight("bias", bias)

    def formula(self, t, query, mu):
        w, _, active = self._parts(t, query.points(mu))
        return active[:, None] * w[None]

    def carry(self, t0, t1, query, mu):
        x, h = query.points(mu), t1 - t0
        w, k, active = self._parts((t0 + t1) / 2, x)
        z = k * h
        phi = jnp.where(z == 0, 1.0, jnp.expm1(z) / jnp.where(z == 0, 1.0, z))
        return x + (h * phi * active)[:, None] * w[None]

    def stretching(self, t0, t1, query, mu):
        _, k, active = self._parts((t0 + t1) / 2, query.points(mu))
        return jnp.where(active > 0, k * (t1 - t0), 0.0)

    @property
    def is_free(self):
        return True

    def lipschitz(self, space):
        return np.linalg.norm(self.outer.value, axis=-1) * np.linalg.norm(self.inner.value, axis=-1)

    def times(self, factor):
        return ReluUnit(factor * np.asarray(self.outer.value), self.inner, self.bias)

    def children(self, space):
        return ()

    def check_parameters(self, tokens):
        if not isinstance(tokens.space, af.Euclidean):
            raise InvalidInput(f"a ReluUnit is for tokens in R^d, not on {tokens.space}; use Perceptron.")

    @property
    def laws(self):
        weights = (self.outer, self.inner, self.bias)
        return Laws(rotation=False, exchangeable=True, lipschitz=True, steady=all(w.is_continuous for w in weights))

    def _parts(self, t, x):
        """w, <a, w> and (<a, x> + b)_+."""
        w, a = self.outer.at(t, x.dtype), self.inner.at(t, x.dtype)
        return w, a @ w, jnp.maximum(x @ a + self.bias.at(t, x.dtype), 0.0)


@af.register("field", "rotation")
class Rotation(AbstractExact):
    """X(x) = speed axis x x in R^3 and on S^2. The flow turns by the angle speed |axis| h and keeps volumes."""

    axis: np.ndarray
    speed: float

    def __init__(self, axis, speed=1.0):
        self.axis, self.speed = np.asarray(axis, float), speed

    def formula(self, t, query, mu):
        x = query.points(mu)
        return self.speed * jnp.cross(jnp.asarray(self.axis, x.dtype)[None], x)

    def carry(self, t0, t1, query, mu):
        x = query.points(mu)
        axis = jnp.asarray(self.axis, x.dtype)
        size = jnp.sqrt(jnp.sum(axis**2))
        e, angle = (axis / size)[None], self.speed * size * (t1 - t0)
        along = e * (x @ e[0])[:, None]
        return along + jnp.cos(angle) * (x - along) + jnp.sin(angle) * jnp.cross(e, x)

    def stretching(self, t0, t1, query, mu):
        return jnp.zeros(query.points(mu).shape[:1])

    @property
    def is_free(self):
        return True

    def lipschitz(self, space):
        return abs(self.speed) * np.linalg.norm(self.axis, axis=-1)

    def times(self, factor):
        return Rotation(factor * self.axis, self.speed)

    def children(self, space):
        return ()

    def check_parameters(self, tokens):
        if not isinstance(tokens.space, af.Euclidean | af.Sphere) or tokens.dim != 3:
            raise InvalidInput(f"a Rotation is for tokens in R^3 or on S^2, not on {tokens.space}.")

    @property
    def laws(self):
        return Laws(rotation=False, exchangeable=True, lipschitz=True, steady=True)

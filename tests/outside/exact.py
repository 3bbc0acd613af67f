"""A ReLU unit of R^d that knows its own flow, as a user's file would add it."""

import jax.numpy as jnp

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

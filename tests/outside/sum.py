"""A sum from outside the package: linear attention, exact for quadratic kernels in O(n d^3) work."""

import jax.numpy as jnp

import attnflow as af
from attnflow.kernels import Polynomial
from attnflow.sums import AbstractSum, Offer


@af.register("sum", "squares")
class Squares(AbstractSum):
    """(o + <q, k>)^2/(o + 1)^2 = <f(q), f(k)> with f(x) = (o, sqrt(2 o) x, x x^T)/(o + 1): one moment for each feature."""

    def __call__(self, weights, query, key, log_mass, charges):
        offset = jnp.asarray(weights.kernel.offset, key[0].dtype)
        top = jnp.max(log_mass)
        load = jnp.exp(log_mass - top)[:, None] * charges.array(key[0])

        def features(x):
            square = (x[:, :, None] * x[:, None, :]).reshape(x.shape[0], -1)
            parts = [jnp.broadcast_to(offset, (x.shape[0], 1)), jnp.sqrt(2 * offset) * x, square]
            return jnp.concatenate(parts, axis=1) / (offset + 1)

        return jnp.full(query[0].shape[:1], top), features(query[0]) @ (features(key[0]).T @ load)

    def shared(self, copies):
        return self

    def trusted(self, arguments, scale, total):
        return None

    def error(self, kernel, masses):
        return 0.0

    def refusal(self, use, tokens):
        if isinstance(use.kernel, Polynomial) and use.kernel.degree == 2 and use.mask.sees_everyone:
            return ""
        return "the sum Squares is for Polynomial(2) without a mask; use sum=Tiled()."

    @classmethod
    def offers(cls, case):
        if why := cls().refusal(case.use, case.tokens):
            return (Offer("Squares", None, why_not=why),)
        return (Offer("Squares", cls(), 3e-9 * case.n * case.d**3, case.floor),)

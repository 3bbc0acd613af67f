"""Two kernels from outside the package: heavy tails in R^d, and one that is learned."""

import equinox as eqx
import jax
import jax.numpy as jnp

import attnflow as af
from attnflow.axes import Batched, scalar


@af.register("kernel", "student")
class Student(af.kernels.AbstractPair):
    """K(q, k) = (1 + beta |q - k|^2)^(-power): tokens hear each other over any distance."""

    beta: Batched = eqx.field(converter=scalar("beta", low=0.0))
    power: Batched = eqx.field(converter=scalar("power", low=0.0), default=1.0)
    is_isotropic = True
    is_signed = False

    def pair(self, query, key):
        return -self.power * jnp.log1p(self.beta * jnp.sum((query - key) ** 2))


class Learned(af.kernels.AbstractZonal):
    """log K(q, k) = network(<q, k>). On the sphere every series takes it."""

    network: eqx.nn.MLP
    is_signed = False

    def profile(self, s):
        return jax.vmap(self.network)(s.reshape(-1)).reshape(s.shape)

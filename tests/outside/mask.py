"""A mask from outside the package: causal, with a power law of forgetting."""

import equinox as eqx
import jax.numpy as jnp

import attnflow as af
from attnflow.axes import Batched, scalar


@af.register("mask", "forgetful")
class Forgetful(af.masks.AbstractPrefix):
    """A token at place p hears one at an earlier place q with the factor ((1 + q)/(1 + p))^power."""

    power: Batched = eqx.field(converter=scalar("power", low=0.0), default=1.0)
    strict: bool = eqx.field(static=True, default=False)

    def decay(self, later, earlier):
        return -jnp.asarray(self.power, float) * (jnp.log1p(later.astype(float)) - jnp.log1p(earlier.astype(float)))

"""A kernel of my own as a plugin: `attnflow run own_kernel.toml --plugin own_kernel.py`; see kill_and_resume.py."""

import jax.numpy as jnp

import attnflow as af


@af.register("kernel", "gentle")
class Gentle(af.kernels.AbstractZonal):
    """K(x, y) = (2 - <x, y>)^(-power)."""

    power: float = 4.0
    is_signed = False

    def profile(self, s):
        """Log K where <x, y> = s."""
        return -self.power * jnp.log(2 - s)

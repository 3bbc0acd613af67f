r"""A kernel of my own as a plugin: `attnflow run own_kernel.toml --plugin own_kernel.py`; see kill_and_resume.py.

A zonal kernel is a function of the overlap $s=\langle x,y\rangle$. Its logarithm in one method is all: sums over many
tokens, batches, masks and run folders follow. This one, $K=(2-s)^{-p}$, has a longer reach than $e^{\beta s}$.
"""

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

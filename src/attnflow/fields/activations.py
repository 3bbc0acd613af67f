"""Activations of a perceptron, with their antiderivatives: the potentials of which a block in gradient form is made."""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow.checks import not_instance
from attnflow.errors import InvalidInput
from attnflow.precision import in_float64

Numbers = Float[Array | np.ndarray, "*shape"]


class AbstractActivation(eqx.Module):
    """A Lipschitz function sigma, applied to every number, and s with s' = sigma."""

    @abc.abstractmethod
    def __call__(self, z: Any) -> Numbers:
        """sigma(z)."""

    @abc.abstractmethod
    def antiderivative(self, z: Any) -> Numbers:
        """The function s with s' = sigma."""

    @abc.abstractmethod
    def slope_bound(self, z: Any) -> Any:
        """A bound of |sigma'| near every number of `z`, in compiled code."""


class Relu(AbstractActivation):
    """max(z, 0), with s(z) = max(z, 0)^2 / 2."""

    @in_float64
    def __call__(self, z: Any) -> Numbers:
        return jax.nn.relu(jnp.asarray(z))

    @in_float64
    def antiderivative(self, z: Any) -> Numbers:
        return jax.nn.relu(jnp.asarray(z)) ** 2 / 2

    def slope_bound(self, z: Any) -> Any:
        return jnp.ones_like(z)


class Gelu(AbstractActivation):
    """z Phi(z) with the normal distribution function Phi, not its tanh approximation.

    s(z) = ((z^2 - 1) Phi(z) + z phi(z)) / 2 with the normal density phi; like that of `Relu` it vanishes at -infinity.
    """

    @in_float64
    def __call__(self, z: Any) -> Numbers:
        return jax.nn.gelu(jnp.asarray(z), approximate=False)

    @in_float64
    def antiderivative(self, z: Any) -> Numbers:
        z = jnp.asarray(z)
        density = jnp.exp(-(z**2) / 2) / np.sqrt(2 * np.pi).item()
        return ((z**2 - 1) * jax.scipy.special.ndtr(z) + z * density) / 2

    def slope_bound(self, z: Any) -> Any:
        return jnp.full_like(z, 1.13)  # Phi(sqrt 2) + sqrt 2 phi(sqrt 2) = 1.1289...


class GeluTanh(AbstractActivation):
    """z (1 + tanh(sqrt(2/pi) (z + 0.044715 z^3)))/2: the approximation of `Gelu` that GPT-2 was trained with.

    It is off by at most 5e-4. Its antiderivative is not known in closed form, so it makes no potential.
    """

    @in_float64
    def __call__(self, z: Any) -> Numbers:
        return jax.nn.gelu(jnp.asarray(z), approximate=True)

    def antiderivative(self, z: Any) -> Numbers:
        raise InvalidInput("`activation` is GeluTanh, whose antiderivative is not known; use 'gelu'.")

    def slope_bound(self, z: Any) -> Any:
        return jnp.full_like(z, 1.13)  # 1.1290... at z = 1.41


class Silu(AbstractActivation):
    """z/(1 + e^-z), also called swish: the gate of SwiGLU (arXiv:2002.05202).

    s(z) = z log(1 + e^z) + Li_2(-e^z) with the dilogarithm Li_2; it vanishes at -infinity.
    """

    @in_float64
    def __call__(self, z: Any) -> Numbers:
        return jax.nn.silu(jnp.asarray(z))

    @in_float64
    def antiderivative(self, z: Any) -> Numbers:
        return _integral_of_silu(jnp.asarray(z))

    def slope_bound(self, z: Any) -> Any:
        return jnp.full_like(z, 1.1)  # 1.0998... at z = 2.40


class Tanh(AbstractActivation):
    """tanh(z), with s(z) = log cosh z."""

    @in_float64
    def __call__(self, z: Any) -> Numbers:
        return jnp.tanh(jnp.asarray(z))

    @in_float64
    def antiderivative(self, z: Any) -> Numbers:
        z = jnp.asarray(z)
        size = jnp.abs(z)
        near = jnp.log1p(2 * jnp.sinh(jnp.clip(z, -1, 1) / 2) ** 2)  # accurate relative to z^2/2, and smooth at 0
        return jnp.where(size < 1, near, size + jnp.log1p(jnp.exp(-2 * size)) - np.log(2).item())

    def slope_bound(self, z: Any) -> Any:
        return jnp.ones_like(z)


class Custom(AbstractActivation):
    """Any pure Lipschitz function of JAX. It has no antiderivative here, so it makes no potential."""

    function: Callable[[Any], Any] = eqx.field(static=True)

    @in_float64
    def __call__(self, z: Any) -> Numbers:
        return self.function(jnp.asarray(z))

    def antiderivative(self, z: Any) -> Numbers:
        raise InvalidInput(
            f"`activation` is the function {self.function!r}, whose antiderivative is not known; use 'relu', 'gelu' or "
            "'tanh', or write an AbstractActivation with both."
        )

    def slope_bound(self, z: Any) -> Any:
        return jnp.abs(jax.jvp(self.function, (z,), (jnp.ones_like(z),))[1])


NAMES: dict[str, type[AbstractActivation]] = {
    "relu": Relu,
    "gelu": Gelu,
    "gelu-tanh": GeluTanh,
    "silu": Silu,
    "tanh": Tanh,
}


@jax.custom_jvp
def _integral_of_silu(z: Any) -> Any:
    small = jnp.exp(-jnp.abs(z))
    dilogarithm = jax.scipy.special.spence(1 + small)  # Li_2(-small)
    # Li_2(-e^z) = -pi^2/6 - z^2/2 - Li_2(-e^-z) for z > 0
    far = z**2 / 2 - dilogarithm - np.pi**2 / 6
    return z * jnp.log1p(small) + jnp.where(z < 0, dilogarithm, far)


@_integral_of_silu.defjvp
def _slope_of_integral(at: Any, along: Any) -> Any:
    return _integral_of_silu(*at), jax.nn.silu(at[0]) * along[0]  # the derivative of the dilogarithm is 0/0 far out


def as_activation(value: Any) -> AbstractActivation:
    """An activation from itself, from its name, or from a function."""
    if isinstance(value, AbstractActivation):
        return value
    if isinstance(value, str) and value in NAMES:
        return NAMES[value]()
    if callable(value) and not isinstance(value, type):
        return Custom(value)
    names = ", ".join(map(repr, NAMES))
    raise not_instance("activation", value, AbstractActivation, f"one of {names}, or a function")

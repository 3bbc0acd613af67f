"""Matrices and vectors of a network: constant, or changing from layer to layer."""

import abc
import math
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow import describe
from attnflow.axes import Along, Batched, Number, as_seed, finite_array, positive, random_key, scalar
from attnflow.checks import instance, not_instance, shown, whole
from attnflow.errors import InvalidInput, TooLarge
from attnflow.feasible import require_memory
from attnflow.fields.maps import AbstractLinearMap
from attnflow.fields.timed import AbstractTimed, layer_breaks, piece, times_before
from attnflow.lazy import listing
from attnflow.precision import is_concrete

__all__ = ["AbstractWeight", "Constant", "Function", "Interpolated", "PerLayer", "Pieces", "Random", "as_weight"]
__dir__ = listing(__all__)


class AbstractWeight(AbstractTimed):
    """An array that may depend on time."""

    @property
    @abc.abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape at one time, for one member of a batch."""

    @abc.abstractmethod
    def at(self, t: Any, dtype: Any) -> Float[Array, "..."]:
        """The array at time t."""

    @property
    @abc.abstractmethod
    def is_continuous(self) -> bool:
        """Whether it changes continuously with time, so that layers converge to the flow."""

    @property
    @abc.abstractmethod
    def is_piecewise(self) -> bool:
        """Whether it is constant between its breaks, so that a flow may be known exactly there."""


class Constant(AbstractWeight, describe.Bare):
    """The same array at all times: weights shared by all layers. `Along(dim, arrays)` gives each member its own."""

    value: Float[Array | np.ndarray, "..."] | Along

    def __init__(self, value: Any):
        numbers = finite_array("a weight", value.values if isinstance(value, Along) else value)
        self.value = value if isinstance(value, Along) else numbers

    @property
    def shape(self) -> tuple[int, ...]:
        return _unbatched(self.value)

    @property
    def is_continuous(self) -> bool:
        return True

    @property
    def is_piecewise(self) -> bool:
        return True

    def at(self, t: Any, dtype: Any) -> Float[Array, "..."]:
        return jnp.asarray(self.value, dtype)

    def breaks(self, until: Any) -> np.ndarray:
        return np.zeros(0)


class PerLayer(AbstractWeight):
    """Piecewise constant: values[k] from time k step to (k+1) step, the last one for ever after."""

    values: Float[Array | np.ndarray, "layer ..."]
    step: Number = eqx.field(converter=positive("step"))

    def __init__(self, values: Any, step: Number = 0.1):
        self.values = _layers(values)
        self.step = step

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.values.shape[1:])

    @property
    def is_continuous(self) -> bool:
        return self.values.shape[0] == 1

    @property
    def is_piecewise(self) -> bool:
        return True

    def at(self, t: Any, dtype: Any) -> Float[Array, "..."]:
        return jnp.asarray(self.values, dtype)[jnp.clip(piece(t, self.step), 0, self.values.shape[0] - 1)]

    def breaks(self, until: Any) -> np.ndarray:
        return layer_breaks(self.step, until, self.values.shape[0])


class Pieces(AbstractWeight):
    """Piecewise constant, in pieces of any length: values[k] from times[k] to times[k+1], the last one for ever after.

    `times` start at 0 and increase. `PerLayer` is the case of equal lengths.
    """

    times: Float[Array | np.ndarray, " piece"]
    values: Float[Array | np.ndarray, "piece ..."]

    def __init__(self, times: Any, values: Any):
        self.times, self.values = finite_array("`times`", times), _layers(values)
        if self.times.shape != self.values.shape[:1]:
            raise InvalidInput(
                f"`times` of Pieces has shape {self.times.shape} for {self.values.shape[0]} values; give the time at "
                "which each one begins."
            )
        if is_concrete(self.times) and (self.times[0] != 0 or (np.diff(self.times) <= 0).any()):
            raise InvalidInput(f"`times` of Pieces is {shown(self.times.tolist())}; begin at 0 and increase.")

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.values.shape[1:])

    @property
    def is_continuous(self) -> bool:
        return self.values.shape[0] == 1

    @property
    def is_piecewise(self) -> bool:
        return True

    def at(self, t: Any, dtype: Any) -> Float[Array, "..."]:
        begun = jnp.sum(jnp.asarray(self.times, float) <= jnp.asarray(t, float))
        return jnp.asarray(self.values, dtype)[jnp.maximum(begun - 1, 0)]

    def breaks(self, until: Any) -> np.ndarray:
        return times_before(self.times[1:], until, "times")


class Interpolated(AbstractWeight):
    """values[k] at time k step, linear in between, the last one for ever after: a network smooth in depth."""

    values: Float[Array | np.ndarray, "layer ..."]
    step: Number = eqx.field(converter=positive("step"))

    def __init__(self, values: Any, step: Number = 0.1):
        self.values = _layers(values)
        self.step = step

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.values.shape[1:])

    @property
    def is_continuous(self) -> bool:
        return True

    @property
    def is_piecewise(self) -> bool:
        return False

    def at(self, t: Any, dtype: Any) -> Float[Array, "..."]:
        values, last = jnp.asarray(self.values, dtype), self.values.shape[0] - 1
        where = jnp.asarray(t, float) / jnp.asarray(self.step, float)
        k = jnp.clip(jnp.floor(where), 0, max(last - 1, 0)).astype(int)
        part = jnp.clip(where - k.astype(where.dtype), 0.0, 1.0).astype(dtype)
        return (1 - part) * values[k] + part * values[jnp.minimum(k + 1, last)]

    def breaks(self, until: Any) -> np.ndarray:
        return layer_breaks(self.step, until, self.values.shape[0])  # kinks: a step across one loses its order


class Function(AbstractWeight):
    """The array function(t), for a pure function of JAX that is continuous in t."""

    function: Callable[[Any], Any] = eqx.field(static=True)

    def __check_init__(self) -> None:
        instance("function", self.function, Callable, "a function of t that gives an array")

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(jax.eval_shape(self.function, jax.ShapeDtypeStruct((), jnp.asarray(0.0).dtype)).shape)

    @property
    def is_continuous(self) -> bool:
        return True

    @property
    def is_piecewise(self) -> bool:
        return False

    def at(self, t: Any, dtype: Any) -> Float[Array, "..."]:
        return jnp.asarray(self.function(jnp.asarray(t, float)), dtype)

    def breaks(self, until: Any) -> np.ndarray:
        return np.zeros(0)


class Random(AbstractWeight):
    """Gaussian entries drawn afresh for every layer of length `step`: mean + scale N(0, 1).

    `scale` is 1/sqrt(columns) when it is not given, which keeps the size of a vector. The seed fixes all layers
    (fold_in(seed, role, layer)); weights of one seed in different roles are independent. The field says what the role
    is (query, key, value, ...) unless it is given here.
    `seed=Along("seed", range(8))` gives every member of a batch its own network. Random deep attention:
    arXiv:2604.01978.
    """

    size: tuple[int, ...] = eqx.field(static=True)
    seed: Batched
    step: Number
    scale: Batched
    mean: Float[Array | np.ndarray, "..."]
    role: str = eqx.field(static=True)

    def __init__(
        self,
        shape: Sequence[int],
        *,
        seed: Batched = 0,
        step: Number = 0.1,
        scale: Batched | None = None,
        mean: Any = 0.0,
        role: str = "",
    ):
        try:
            self.size = tuple(whole("shape", s, 1) for s in shape)
            require_memory(8 * math.prod(self.size), f"`shape` of Random is {shown(shape)}, which", "make it smaller")
        except TooLarge:
            raise
        except (InvalidInput, TypeError):
            self.size = ()
        if not self.size:
            raise InvalidInput(
                f"`shape` of Random is {shown(shape)}; give positive lengths, (heads, out, in) or (out, in)."
            )
        self.seed = as_seed(seed)
        self.step = positive("step")(step)
        self.scale = scalar("scale", low=0)(self.size[-1] ** -0.5 if scale is None else scale)
        self.mean = finite_array("`mean`", mean)
        if self.mean.shape and self.mean.shape != self.size[-self.mean.ndim :]:
            raise InvalidInput(f"`mean` of Random has shape {self.mean.shape}; give one number or shape {self.size}.")
        self.role = instance("role", role, str, "a text such as 'value'")

    @property
    def shape(self) -> tuple[int, ...]:
        return self.size

    @property
    def is_continuous(self) -> bool:
        return False

    @property
    def is_piecewise(self) -> bool:
        return True

    def at(self, t: Any, dtype: Any) -> Float[Array, "..."]:
        key = jax.random.fold_in(random_key(self.seed), zlib.crc32(self.role.encode()))
        gaussian = jax.random.normal(jax.random.fold_in(key, piece(t, self.step)), self.size, float).astype(dtype)
        mean = jnp.broadcast_to(jnp.asarray(self.mean, dtype), self.size)
        return mean + jnp.asarray(self.scale, dtype) * gaussian

    def breaks(self, until: Any) -> np.ndarray:
        return layer_breaks(self.step, until)


def as_weight(role: str, value: Any) -> AbstractWeight:
    """A weight for the part `role` of a field: an array is constant in time, a function of t is a `Function`."""
    if isinstance(value, Random) and not value.role:
        return Random(value.size, seed=value.seed, step=value.step, scale=value.scale, mean=value.mean, role=role)
    if isinstance(value, AbstractWeight):
        return value
    if isinstance(value, type):
        raise not_instance(role, value, AbstractWeight, "a matrix, a function of t, or a weight such as Random(shape)")
    if isinstance(value, AbstractLinearMap):  # which can be called, and is no function of t
        raise not_instance(role, value, AbstractWeight, "an array, a function of t, or a weight such as Random(shape)")
    if isinstance(value, Along):
        return Constant(value)
    return Function(value) if callable(value) else Constant(finite_array(f"`{role}`", value))


def _layers(values: Any) -> Any:
    numbers = finite_array("`values`", values)
    if numbers.ndim < 1 or numbers.shape[0] == 0:
        raise InvalidInput(f"`values` has shape {numbers.shape}; give one array per layer, stacked.")
    return numbers


def _unbatched(value: Any) -> tuple[int, ...]:
    return tuple(value.values.shape[1:] if isinstance(value, Along) else value.shape)

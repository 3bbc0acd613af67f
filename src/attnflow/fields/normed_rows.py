"""What norms do to the rows of an array: directions, sizes, gains."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from attnflow.errors import InvalidInput
from attnflow.fields.base import Points
from attnflow.fields.weights import AbstractWeight


def direction(x: Points) -> Points:
    """x/|x| for every row; a row of zeros stays, with finite derivatives (a network's epsilon does the same)."""
    squares = jnp.sum(jnp.square(x), axis=-1, keepdims=True)
    return x / jnp.sqrt(jnp.where(squares > 0, squares, 1.0))  # the derivative of the root at 0 is never taken


def by_size(x: Points, eps: float) -> Points:
    """x/sqrt(mean of x_i^2 + eps) for every row; a row of zeros stays."""
    if eps == 0.0:
        return jnp.asarray(np.sqrt(x.shape[-1]), x.dtype) * direction(x)
    square = jnp.mean(jnp.square(x), axis=-1, keepdims=True) + jnp.asarray(eps, x.dtype)
    return x / jnp.sqrt(jnp.where(square > 0, square, 1.0))  # float32 takes an eps below 1e-45 for 0


def spread(t: Any, dim: int, error: Any, gain: AbstractWeight | None, eps: float) -> Any:
    """gain times the diameter 2 sqrt(d) of the normalised vectors, or the largest slope 1/sqrt(eps) times the error."""
    size = 1.0 if gain is None else jnp.max(jnp.abs(gain.at(t, error.dtype)))
    whole = jnp.full_like(error, 2 * np.sqrt(dim).item())
    return size * (whole if eps == 0.0 else jnp.minimum(whole, error * jnp.asarray(eps**-0.5, error.dtype)))


def affine(t: Any, x: Points, gain: AbstractWeight | None, bias: AbstractWeight | None) -> Points:
    """gain * x + bias for every row."""
    if gain is not None:
        x = x * gain.at(t, x.dtype)[None, :]
    return x if bias is None else x + bias.at(t, x.dtype)[None, :]


def check_rows(dim: int, **weights: AbstractWeight | None) -> None:
    """Refuse gains and biases that do not act on R^dim."""
    for name, weight in weights.items():
        if weight is not None and weight.shape != (dim,):
            raise InvalidInput(f"`{name}` has shape {weight.shape}; give ({dim},), one number per coordinate.")

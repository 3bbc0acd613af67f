"""Predictions: the mean field of N places under given weights, and noise of the start carried by its linearisation."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow import in_float64
from attnflow.fields import Attention
from attnflow.meanfield import AbstractBasis, Density, Model, as_model

STEPS = 8
"""Of Runge-Kutta; (rate/4)^5/120 is below 1e-6 a step for rates below 1/2."""


@dataclasses.dataclass(frozen=True)
class Carried:
    """The order parameter, mean of (cos, sin) over the places that are looked at, and E|noise|^2 of it."""

    order: np.ndarray
    noise: float


def carried(beta: float, starts: list[Density], weights: np.ndarray, looked: np.ndarray, until: float) -> Carried:
    """Follow a density at every place, `starts` in order; place i hears the mean of the others by weights[i].

    `looked` are the weights of the places in the order parameter. The token of a place is drawn from its density.
    """
    basis = starts[0].basis
    rows = np.stack([np.asarray(start.coefficients) for start in starts])
    values = np.stack([np.asarray(start.values) for start in starts])
    order, pulls = in_float64(_response)(as_model(Attention(beta)), basis, weights, looked, rows, float(until))
    masses = basis.weights * values
    shapes = in_float64(jax.vmap(jax.vmap(basis.synthesis)))(pulls)  # (component, place, point)
    means = np.einsum("cip,ip->ci", shapes, masses)
    squares = np.einsum("cip,ip->ci", shapes**2, masses)
    return Carried(np.asarray(order), float(np.sum(squares - means**2)))


@eqx.filter_jit
def _response(model: Model, basis: AbstractBasis, weights: Any, looked: Any, rows: Any, until: Any) -> tuple[Any, Any]:
    """The order parameter (component,), and its derivatives (component, place, harmonic) in the start."""
    waves = jnp.stack([jnp.asarray(basis.harmonic(1, 0)), jnp.asarray(basis.harmonic(1, -1))])
    h = until / STEPS

    def rate(c: Any) -> Any:
        return jax.vmap(lambda own, other: model.rate(basis, own, other))(c, weights @ c)

    def step(c: Any, _: None) -> tuple[Any, None]:
        one = rate(c)
        two = rate(c + h / 2 * one)
        three = rate(c + h / 2 * two)
        four = rate(c + h * three)
        return c + h / 6 * (one + 2 * two + 2 * three + four), None

    def order(c: Any) -> Any:
        return waves @ (looked @ jax.lax.scan(step, c, None, length=STEPS)[0])

    value, pull = jax.vjp(order, rows)
    return value, jnp.stack([pull(unit)[0] for unit in jnp.eye(2)])

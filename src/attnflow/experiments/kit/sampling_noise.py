"""Harmonics and energy of a density along the continuity equation, and the influence of sampling noise at the start.

If the start changes by a small measure xi, an observable at time t changes by the integral of its
influence against xi. The influence is the derivative of the observable in the coefficients of the start, so that iid
tokens have the standard error sqrt(Var(influence)/n), the variance being that of the start.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow.fields import AbstractField
from attnflow.flows import Fixed, advance
from attnflow.meanfield import AbstractBasis, Density, Model, as_model, multipliers
from attnflow.precision import full_precision
from attnflow.tokens import Tokens


def entries(basis: AbstractBasis, low: int) -> np.ndarray:
    """Places, in the flattened coefficients, of those of degree 1 to `low`."""
    return np.flatnonzero((basis.mask & (basis.degrees >= 1) & (basis.degrees <= low)).reshape(-1))


def observed(model: Model, basis: AbstractBasis, low: int, coefficients: Any) -> Any:
    """The harmonics of degree 1 to `low`, and the energy (1/2 beta) int int (K - 1) <= 0. Pure."""
    c = jnp.asarray(coefficients)
    level = (multipliers(model.beta, basis.dim, 0)[0] - 1) / model.beta
    energy = 0.5 * (jnp.sum(model.interaction_multipliers(basis) * c**2) + level)
    return jnp.append(c.reshape(-1)[entries(basis, low)], energy)


def observe(field: AbstractField, basis: AbstractBasis, low: int, coefficients: Any) -> np.ndarray:
    """The same for many coefficients, along the first axis, on the host."""
    beta, c = float(as_model(field).beta), np.asarray(coefficients)
    weights = np.where(basis.mask, np.asarray(multipliers(beta, basis.dim, basis.degree))[basis.degrees], 0.0)
    energies = (np.sum((weights * c**2).reshape(len(c), -1), axis=1) - 1) / (2 * beta)
    return np.concatenate([c.reshape(len(c), -1)[:, entries(basis, low)], energies[:, None]], axis=1)


def galerkin(
    field: AbstractField, density: Density, low: int, coefficients: Any, gap: float, counts: Any
) -> np.ndarray:
    """Observables (time, observable) from any coefficients, e.g. those of tokens, at 0, gap, 2 gap, ... by RK4.

    `counts` are the number of gaps and of steps in each. Coefficients of tokens do not fall with the degree; but those
    above the degrees of the influence do not matter, and those below are in the basis.
    """
    with full_precision():
        model, span = as_model(field), jnp.asarray(float(gap))
        return np.asarray(_galerkin(model, density.basis, low, jnp.asarray(coefficients), span, counts))


def influence(field: AbstractField, density: Density, low: int, gap: float, counts: tuple[int, int]) -> np.ndarray:
    """Derivatives (time, observable, *coefficients) of the observables in the coefficients of the start."""
    with full_precision():
        model, span = as_model(field), jnp.asarray(float(gap))
        found = _influence(model, density.basis, low, jnp.asarray(density.coefficients), span, counts)
    return np.where(density.basis.mask, np.asarray(found), 0.0)


def deviations(density: Density, found: np.ndarray) -> np.ndarray:
    """The standard deviation (time, observable) of the influence under the start: standard errors times sqrt(n)."""
    basis = density.basis
    with full_precision():
        values = np.array([basis.synthesis(c) for c in found.reshape(-1, *basis.mask.shape)])
    masses = (basis.weights * np.asarray(density.values)).reshape(-1)
    values = values.reshape(*found.shape[:2], -1)
    mean = values @ masses
    return np.asarray(np.sqrt((values - mean[..., None]) ** 2 @ masses))


def last_degrees(density: Density, found: np.ndarray) -> float:
    """The largest standard deviation of the influence of the last tenth of the degrees: beyond them it is smaller."""
    last = density.basis.degrees > 0.9 * density.basis.degree
    squares = np.sum(found**2 * last, axis=tuple(range(2, found.ndim)))
    return float(np.sqrt(np.max(squares) * np.max(np.asarray(density.values))))


def follow(
    field: AbstractField, tokens: Tokens, gap: float, counts: tuple[int, int], look: Callable[[Tokens], Any]
) -> list[Any]:
    """What `look` sees of tokens at 0, gap, 2 gap, ...; RK4, `counts` as in `galerkin`."""
    ready = field.prepare(tokens, 1e-10, flowing=True)
    found = [look(tokens)]
    for _ in range(counts[0]):
        # 1.0001: rounding must not make it one step more
        tokens = advance(ready, tokens, 0.0, gap, Fixed(1.0001 * gap / counts[1]))
        found.append(look(tokens))
    return found


@eqx.filter_jit
def _galerkin(model: Model, basis: AbstractBasis, low: int, c: Any, gap: Any, counts: tuple[int, int]) -> Any:
    h = gap / counts[1]

    def step(c: Any, _: None) -> tuple[Any, None]:
        def stage(state: tuple[Any, Any], weights: Any) -> tuple[tuple[Any, Any], None]:
            slope = model.rate(basis, state[0])
            return (c + weights[0] * h * slope, state[1] + weights[1] * h * slope), None

        weights = jnp.array([[1 / 2, 1 / 6], [1 / 2, 1 / 3], [1.0, 1 / 3], [0.0, 1 / 6]])
        return jax.lax.scan(stage, (c, c), weights)[0][1], None

    def leg(c: Any, _: None) -> tuple[Any, Any]:
        c = jax.lax.scan(step, c, None, length=counts[1])[0]
        return c, observed(model, basis, low, c)

    first = observed(model, basis, low, c)
    return jnp.concatenate([first[None], jax.lax.scan(leg, c, None, length=counts[0])[1]])


@eqx.filter_jit
def _influence(model: Model, basis: AbstractBasis, low: int, c: Any, gap: Any, counts: tuple[int, int]) -> Any:
    return jax.jacrev(lambda c: _galerkin(model, basis, low, c, gap, counts))(c)

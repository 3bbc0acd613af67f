"""The pure, differentiable map from tokens at t0 to tokens at t1."""

import functools
from typing import Any, TypeVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from attnflow.axes import members, over_members
from attnflow.checks import instance, number
from attnflow.errors import InvalidInput
from attnflow.fields import AbstractField, breaks
from attnflow.flows.methods import AbstractMethod, Adaptive, Layers, ProjectRenormalise
from attnflow.flows.noises import AbstractNoise, check_noise
from attnflow.flows.system import Particles
from attnflow.precision import in_float64, is_concrete, is_traced
from attnflow.tokens import Measure, Tokens

T = TypeVar("T", Tokens, Measure)


@functools.cache
def default_method(noisy: bool) -> AbstractMethod:
    """The method of `solve` and `advance` where none is given, with noise or without."""
    return Layers(0.01, ProjectRenormalise()) if noisy else Adaptive()


@in_float64
def advance(
    field: AbstractField,
    tokens: T,
    t0: Any,
    t1: Any,
    method: AbstractMethod | None = None,
    *,
    noise: AbstractNoise | None = None,
) -> T:
    """The tokens at time t1 that start as `tokens` at time t0; no disk, no progress, no stop conditions.

    `tokens` may be a `Measure`, which can be made inside these transformations; then a measure is what comes back.
    Use it under `jax.grad`, `jax.jvp`, `jax.vmap` or `jax.jit` with respect to anything: beta, matrices, positions,
    masses, t1. Reverse mode works with every method as long as the number of steps is known beforehand (t0, t1 and the
    step are plain numbers; each number of steps compiles once), forward mode with Fixed, Layers and Alternate.
    t1 < t0 runs the flow backwards (not layer by layer, and not with noise).

    `noise` as for `solve`, with derivatives along the path that the seed fixes, also with respect to kappa > 0; the
    default method is then `Layers(0.01, ProjectRenormalise())`. `jax.vmap` over `seed` gives many paths. With `Layers`
    and `Alternate` the noise of a layer is that of `solve`. With `Fixed` and `Heun` it is that of `solve` from t0 with
    t1 as the only saved time (with `Heun`, if neither field nor noise jumps). Results then agree to rounding.
    """
    instance("field", field, AbstractField, "a field such as Attention(2.0)")
    instance("tokens", tokens, Tokens | Measure, "tokens, such as from_array(positions)")
    instance("noise", noise, AbstractNoise | None, "noise such as Brownian(0.1)")
    method = default_method(noise is not None) if method is None else method
    if not isinstance(method, AbstractMethod):
        raise InvalidInput(f"`method` is {type(method).__name__}, which is for `solve`; use Adaptive, Fixed or Layers.")
    for name, value in (("t0", t0), ("t1", t1)):
        if is_concrete(value):
            number(name, value)
    if not is_traced((field, tokens)):
        field.check(tokens, method.evaluates_on(tokens.space))
    known = is_concrete(t0) and is_concrete(t1)
    if noise is not None:
        check_noise(noise, method, tokens)
        if known and t1 < t0:
            raise InvalidInput(f"t1 = {t1:g} is before t0 = {t0:g}: noise does not run backwards; exchange them.")
    systems = members((field, noise), tokens)
    break_times = breaks((field, noise), max(t0, t1) if known else (t1 if is_concrete(t0) else t0))
    grid = method.grid(t0, t1, break_times)
    moved = _advance(
        systems.field,
        systems.field_axes,
        systems.measure,
        systems.measure_axes,
        _time(t0),
        _time(t1),
        method,
        break_times,
        grid,
    )
    return tokens.moved(systems.unflatten(moved))


def _time(t: Any) -> Any:
    return np.asarray(t, float) if is_concrete(t) else jnp.asarray(t, float)


@eqx.filter_jit
def _advance(
    moving: Any, axes: Any, mu: Measure, mu_axes: Any, t0: Any, t1: Any, method: Any, breaks: Any, grid: Any
) -> Any:
    def one(moving: Any, mu: Measure) -> Any:
        return method.advance(Particles(moving[0], mu, breaks, moving[1]), jnp.asarray(mu.positions), t0, t1, grid)

    if mu_axes is None:
        return one(moving, mu)
    return over_members(one, (axes, mu_axes), (moving, mu), mu.n**2)

"""Flows of SA and USA0 with speed, slope, gap, alignment and energy at every frame."""

import dataclasses
import itertools
from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr

from attnflow.experiments import Salted, Study
from attnflow.fields import Attention
from attnflow.flows import Fixed, Observable, Solve
from attnflow.observe import energy
from attnflow.spaces import Sphere
from attnflow.tokens import Tokens, uniform
from attnflow.transport import balance_gap, distance, energy_slope, gradient_alignment, metric_speed

MODELS = "SA", "USA0"
SUBSTEPS = 2
"""Steps from one frame to the next."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """Iid tokens on the sphere."""

    n: int = 60
    d: int = 3
    betas: tuple[float, ...] = (9.0, 2.0)
    draws: int = 3
    until: float = 8.0
    frames: int = 160
    """A multiple of 4: integrals are made on all frames and on every second one."""


QUICK = Parameters(n=16, betas=(9.0,), draws=2, frames=80)


def cases(parameters: Parameters) -> list[tuple[str, float]]:
    """Models and betas."""
    return list(itertools.product(MODELS, parameters.betas))


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Every model and beta, all draws at once; W_2 between the ends."""
    found = {}
    for model, beta in study.along(cases(parameters)):
        part = study.part(f"{model}-{beta:g}", _flow(parameters, model, beta))
        found[f"{model}-{beta:g}"] = part.assign(apart=("seed", _apart(part["positions"].values)))
    return found


def _flow(parameters: Parameters, model: str, beta: float) -> Solve:
    """The energy that is observed has the beta of the parameters, whatever moves the tokens."""
    start = uniform(Sphere(parameters.d), n=parameters.n, seed=parameters.seeds(range(parameters.draws)))
    field = Attention(beta, normaliser=model)
    seen = {
        "level": energy.of(beta),
        "pace": metric_speed.of(field),
        "slope": energy_slope.of(field),
        "gap": balance_gap.of(field),
        "cosine": gradient_alignment.of(field),
        "own": Observable(lambda mu: own_side(field, beta, mu)),
    }
    method = Fixed(parameters.until / parameters.frames / SUBSTEPS)
    return Solve(
        field, start, parameters.until, save=parameters.frames, method=method, observe=seen, keep=("positions",)
    )


def own_side(field: Any, beta: float, mu: Any) -> Any:
    """Half the square of the speed and of the slope in the metric of softmax: sum m Z |v|^2 and sum m |g|^2/Z."""
    x, m, v = mu.positions, mu.masses, field.velocity(mu)
    weights = jnp.exp(beta * (x @ x.T - 1)) * m[None, :]
    seen, pull = jnp.sum(weights, axis=1), weights @ x
    gradient = pull - jnp.sum(pull * x, axis=1, keepdims=True) * x
    return m @ (seen * jnp.sum(v**2, axis=1) + jnp.sum(gradient**2, axis=1) / seen) / 2


def _apart(positions: np.ndarray) -> np.ndarray:
    """W_2 between the first and the last frame of every draw."""
    return np.array([float(distance(Tokens(x[0]), Tokens(x[-1]), order=2)) for x in positions])

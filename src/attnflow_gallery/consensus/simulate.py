"""Times of consensus of iid tokens, hemispheres, and tokens on the circle at negative beta."""

import dataclasses
import itertools
import math

import jax.numpy as jnp
import numpy as np
import xarray as xr

from attnflow.axes import Along
from attnflow.experiments import Salted, Study
from attnflow.fields import Attention
from attnflow.flows import Fixed, When, merge_times, solve
from attnflow.spaces import Sphere
from attnflow.stability import spectrum
from attnflow.tokens import Tokens, ring, uniform

TOGETHER = 1e-6
"""Tokens are in consensus when every overlap is within this of 1."""
STEP, SPAN = 0.25, 2.0
"""Time step, and time between frames, of iid tokens."""
FINE = 0.1
"""Time step on the circle."""
BEND = 1e-6
"""Angle by which one token of the ring is displaced."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    n: int = 8
    models: tuple[str, ...] = ("SA", "USA0")
    dims: tuple[int, ...] = (2, 3, 4)
    betas: tuple[float, ...] = (0.0, 0.5, 1.0)
    draws: int = 600
    until: float = 120.0
    large_dims: tuple[int, ...] = (2, 3)
    large_betas: tuple[float, ...] = (4.0, 16.0, 64.0)
    """Followed in log time, SA."""
    large_draws: int = 100
    counts: tuple[int, ...] = (4, 8, 16)
    """Numbers of tokens whose hemispheres are looked for, in the dimensions 2, ..., `largest_dim`."""
    largest_dim: int = 10
    hemisphere_draws: int = 2000
    circle_counts: tuple[int, ...] = (3, 4, 5, 7)
    circle_betas: tuple[float, ...] = (-3.0, -2.0, -1.2, -1.0, -0.5, -0.25, 0.0, 0.5)
    circle_draws: int = 400
    circle_until: float = 200.0

    def betas_of(self, n: int) -> tuple[float, ...]:
        """Of n tokens on the circle. Below -2.1 regular pentagons are stable too; from 5 tokens on that is left out."""
        return self.circle_betas if n < 5 else tuple(beta for beta in self.circle_betas if beta >= -2)


QUICK = Parameters(
    models=("SA",),
    dims=(2, 3),
    betas=(1.0,),
    draws=60,
    until=80.0,
    large_dims=(),
    large_betas=(),
    counts=(8,),
    largest_dim=5,
    hemisphere_draws=400,
    circle_counts=(3, 4),
    circle_betas=(-3.0, -2.0, -0.5, 0.5),
    circle_draws=60,
    circle_until=100.0,
)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Times of consensus, hemispheres, and what happens to tokens on the circle."""
    cases = itertools.product(parameters.models, parameters.dims)
    return study.parts(
        {f"{model}-S{d - 1}": (_followed, parameters, model, d) for model, d in cases}
        | {f"large-S{d - 1}": (_large, parameters, d) for d in parameters.large_dims}
        | {"hemisphere": (_hemispheres, parameters)}
        | {f"circle-{n}": (_circle, parameters, n) for n in parameters.circle_counts}
        | {"ring": (_ring, parameters)}
    )


def _followed(parameters: Parameters, model: str, d: int) -> xr.Dataset:
    """When each draw is in consensus, to one frame; infinite if it is not."""
    seeds = parameters.seeds(range(d * parameters.draws, (d + 1) * parameters.draws))
    draws = uniform(Sphere(d), n=parameters.n, seed=seeds)
    field = Attention(Along("beta", parameters.betas), normaliser=model)
    frames, together = math.ceil(parameters.until / SPAN), When(lambda frame: frame.least >= 1 - TOGETHER)
    least = {"least": lambda mu: jnp.min(mu.positions @ mu.positions.T)}
    flow = solve(field, draws, frames * SPAN, save=frames, method=Fixed(STEP), stop=together, observe=least, keep=())
    met = flow.stopped_at.transpose("beta", "seed").fillna(np.inf).values
    return xr.Dataset({"met": (("beta", "seed"), met), "inside": inside(draws)}, {"beta": list(parameters.betas)})


def inside(draws: Tokens) -> tuple[str, list[bool]]:
    """Which draws lie in an open hemisphere."""
    return "seed", [pole_margin(x) > 0 for x in np.asarray(draws.positions)]


def _large(parameters: Parameters, d: int) -> xr.Dataset:
    """Log of the time of the last merge."""
    draws = uniform(Sphere(d), n=parameters.n, seed=parameters.seeds(range(parameters.large_draws)))
    merges = merge_times(Attention(Along("beta", parameters.large_betas)), draws)
    times = merges.log_time.sel(left=1).transpose("beta", "seed").values
    return xr.Dataset({"log_time": (("beta", "seed"), times)}, {"beta": list(parameters.large_betas)})


def _hemispheres(parameters: Parameters) -> xr.Dataset:
    """How many draws lie in an open hemisphere."""
    dims, seeds = range(2, parameters.largest_dim + 1), parameters.seeds(range(parameters.hemisphere_draws))
    hits = [[sum(inside(uniform(Sphere(d), n=n, seed=seeds))[1]) for d in dims] for n in parameters.counts]
    return xr.Dataset({"hits": (("n", "d"), np.array(hits))}, {"n": list(parameters.counts), "d": list(dims)})


def _end(betas: tuple[float, ...], tokens: Tokens, until: float) -> np.ndarray:
    """Positions (beta, ...) at the time `until` on the circle, SA."""
    field = Attention(Along("beta", betas))
    flow = solve(field, tokens, until, save=1, method=Fixed(FINE), keep=("positions",))
    return np.asarray(flow.positions.isel(time=-1).transpose("beta", ...).values)


def _circle(parameters: Parameters, n: int) -> xr.Dataset:
    """Angles in which iid tokens on the circle end, SA, and whether they started in an open half-circle."""
    betas = parameters.betas_of(n)
    draws = uniform(Sphere(2), n=n, seed=parameters.seeds(range(parameters.circle_draws)))
    x = _end(betas, draws, parameters.circle_until)
    angles = (("beta", "seed", "token"), np.arctan2(x[..., 1], x[..., 0]))
    return xr.Dataset({"angle": angles, "inside": inside(draws)}, {"beta": list(betas)})


def _ring(parameters: Parameters) -> xr.Dataset:
    """Rates at the ring of three: by automatic differentiation, of a displaced ring (SA); and where they are 0."""
    from scipy.optimize import brentq

    betas, still = parameters.circle_betas, ring(Sphere(2), n=3)
    found = xr.Dataset(coords={"beta": list(betas)})
    for model in parameters.models:
        spectra = [spectrum(Attention(b, normaliser=model), still) for b in betas]
        # one eigenvalue is 0 (rotation), the other two are equal
        moving = [s.eigenvalues.real[np.argsort(np.abs(s.eigenvalues))[1:]] for s in spectra]
        found[f"rate_{model}"] = (("beta", "mode"), np.array(moving))
        found[f"tolerance_{model}"] = ("beta", np.array([s.tolerance for s in spectra]))
    bent = np.asarray(still.positions).copy()
    bent[1] = np.cos(2 * np.pi / 3 + BEND), np.sin(2 * np.pi / 3 + BEND)
    found["before"] = float(off_ring(bent))
    found["after"] = ("beta", off_ring(_end(betas, Tokens(bent), SPAN)))

    def rate(beta: float) -> float:
        return float(np.sum(spectrum(Attention(beta), still).eigenvalues.real))

    return found.assign_attrs(zero=brentq(rate, -1.0, -0.3, xtol=1e-14, rtol=1e-14))


def pole_margin(x: np.ndarray) -> float:
    """Smallest <x_i, w> for a unit vector w for which all are positive, 0 if there is none.

    Either 0 is a mixture of the x_i, or the part that the best mixture leaves over is minus such a w (Gordan).
    """
    from scipy.optimize import nnls

    matrix, target = np.vstack([x.T, np.ones(len(x))]), np.append(np.zeros(x.shape[1]), 1.0)
    pole = (matrix @ nnls(matrix, target)[0] - target)[:-1]
    size = float(np.linalg.norm(pole))
    return max(float((x @ pole).min()) / size, 0.0) if size > 1e-9 else 0.0


def off_ring(positions: np.ndarray) -> np.ndarray:
    """How far the gaps of three tokens are from 120 degrees, in whichever direction the tokens are numbered."""
    angles = np.sort(np.arctan2(positions[..., 1], positions[..., 0]), axis=-1)
    gaps = np.diff(np.concatenate([angles, angles[..., :1] + 2 * np.pi], axis=-1), axis=-1)
    return np.asarray(np.linalg.norm(gaps - 2 * np.pi / 3, axis=-1))

"""Times of consensus of iid tokens, hemispheres, and tokens on the circle at negative beta."""

import dataclasses
import functools
import math

import numpy as np
import xarray as xr

from attnflow.axes import Along
from attnflow.experiments import Salted, Study
from attnflow.fields import Attention, Softmax, Unnormalised
from attnflow.flows import Fixed, advance, merge_times
from attnflow.observe import overlaps
from attnflow.spaces import Sphere
from attnflow.stability import spectrum
from attnflow.tokens import Tokens, ring, stack, uniform

MODELS = {"SA": Softmax(), "USA0": Unnormalised()}
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
    models=("SA",), dims=(2, 3), betas=(1.0,), draws=60, until=80.0, large_dims=(), large_betas=(), counts=(8,),
    largest_dim=5, hemisphere_draws=400, circle_counts=(3, 4), circle_betas=(-3.0, -2.0, -0.5, 0.5), circle_draws=60,
    circle_until=100.0,
)  # fmt: skip


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Times of consensus, hemispheres, and what happens to tokens on the circle."""
    found = {}
    cases = [(model, d) for model in parameters.models for d in parameters.dims]
    for k, (model, d) in enumerate(cases):
        study.progress(f"iid tokens on S^{d - 1}, {model}", 0.4 * k / len(cases))
        found[f"{model}-S{d - 1}"] = study.part(f"{model}-S{d - 1}", functools.partial(_followed, parameters, model, d))
    for k, d in enumerate(parameters.large_dims):
        study.progress(f"iid tokens on S^{d - 1}, large beta", 0.4 + 0.1 * k)
        found[f"large-S{d - 1}"] = study.part(f"large-S{d - 1}", functools.partial(_large, parameters, d))
    study.progress("hemispheres", 0.6)
    found["hemisphere"] = study.part("hemisphere", functools.partial(_hemispheres, parameters))
    for k, n in enumerate(parameters.circle_counts):
        study.progress(f"{n} tokens on the circle", 0.7 + 0.05 * k)
        found[f"circle-{n}"] = study.part(f"circle-{n}", functools.partial(_circle, parameters, n))
    study.progress("the ring of three", 0.9)
    found["ring"] = study.part("ring", functools.partial(_ring, parameters))
    return found


def _followed(parameters: Parameters, model: str, d: int) -> xr.Dataset:
    """When each draw is in consensus, to one frame; infinite if it is not."""
    seeds = parameters.seeds(range(d * parameters.draws, (d + 1) * parameters.draws))
    draws = uniform(Sphere(d), n=parameters.n, seed=seeds)
    tokens = stack("beta", parameters.betas, [draws] * len(parameters.betas))
    field = Attention(Along("beta", parameters.betas), normaliser=MODELS[model])
    met = np.full((len(parameters.betas), parameters.draws), np.inf)
    for frame in range(1, math.ceil(parameters.until / SPAN) + 1):
        tokens = advance(field, tokens, 0.0, SPAN, Fixed(STEP))
        together = np.asarray(overlaps(tokens).min(axis=(-1, -2)) >= 1 - TOGETHER)
        met = np.minimum(met, np.where(together, frame * SPAN, np.inf))
        if np.isfinite(met).all():
            break
    inside = [pole_margin(x) > 0 for x in np.asarray(draws.positions)]
    return xr.Dataset({"met": (("beta", "seed"), met), "inside": ("seed", inside)}, {"beta": list(parameters.betas)})


def _large(parameters: Parameters, d: int) -> xr.Dataset:
    """Log of the time of the last merge."""
    draws = uniform(Sphere(d), n=parameters.n, seed=parameters.seeds(range(parameters.large_draws)))
    merges = merge_times(Attention(Along("beta", parameters.large_betas)), draws)
    return xr.Dataset({"log_time": (("beta", "seed"), merges.log_time.sel(left=1).transpose("beta", "seed").values)},
                      {"beta": list(parameters.large_betas)})  # fmt: skip


def _hemispheres(parameters: Parameters) -> xr.Dataset:
    """How many draws lie in an open hemisphere."""
    dims, seeds = range(2, parameters.largest_dim + 1), parameters.seeds(range(parameters.hemisphere_draws))
    hits = [
        [sum(pole_margin(x) > 0 for x in np.asarray(uniform(Sphere(d), n=n, seed=seeds).positions)) for d in dims]
        for n in parameters.counts
    ]
    return xr.Dataset({"hits": (("n", "d"), np.array(hits))}, {"n": list(parameters.counts), "d": list(dims)})


def _circle(parameters: Parameters, n: int) -> xr.Dataset:
    """Angles in which iid tokens on the circle end, SA, and whether they started in an open half-circle."""
    betas = parameters.betas_of(n)
    draws = uniform(Sphere(2), n=n, seed=parameters.seeds(range(parameters.circle_draws)))
    tokens = stack("beta", betas, [draws] * len(betas))
    end = advance(Attention(Along("beta", betas)), tokens, 0.0, parameters.circle_until, Fixed(FINE))
    x = np.asarray(end.positions)
    inside = [pole_margin(x) > 0 for x in np.asarray(draws.positions)]
    return xr.Dataset(
        {"angle": (("beta", "seed", "token"), np.arctan2(x[..., 1], x[..., 0])), "inside": ("seed", inside)},
        {"beta": list(betas)},
    )


def _ring(parameters: Parameters) -> xr.Dataset:
    """Rates at the ring of three: by automatic differentiation, of a displaced ring (SA); and where they are 0."""
    from scipy.optimize import brentq

    betas, still = parameters.circle_betas, ring(Sphere(2), n=3)
    found = xr.Dataset(coords={"beta": list(betas)})
    for model in parameters.models:
        spectra = [spectrum(Attention(b, normaliser=MODELS[model]), still) for b in betas]
        # one eigenvalue is 0 (rotation), the other two are equal
        moving = [s.eigenvalues.real[np.argsort(np.abs(s.eigenvalues))[1:]] for s in spectra]
        found[f"rate_{model}"] = (("beta", "mode"), np.array(moving))
        found[f"tolerance_{model}"] = ("beta", np.array([s.tolerance for s in spectra]))
    bent = np.asarray(still.positions).copy()
    bent[1] = np.cos(2 * np.pi / 3 + BEND), np.sin(2 * np.pi / 3 + BEND)
    tokens = stack("beta", betas, [Tokens(bent)] * len(betas))
    moved = advance(Attention(Along("beta", betas)), tokens, 0.0, SPAN, Fixed(FINE))
    found["before"] = float(off_ring(bent))
    found["after"] = ("beta", off_ring(np.asarray(moved.positions)))

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

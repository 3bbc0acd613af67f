"""Overlaps of orthonormal tokens along the flow, and deviations of the overlaps of iid tokens."""

import dataclasses
import functools

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.randomness import Salted
from attnflow.experiments.spans import in_span, pair_overlaps
from attnflow.experiments.study import Study
from attnflow.fields import Attention, Softmax, Unnormalised
from attnflow.flows import Fixed, advance
from attnflow.spaces import Sphere
from attnflow.tokens import Tokens, orthonormal

MODELS = {"SA": Softmax(), "USA0": Unnormalised()}
SUBSTEPS = 8
"""Steps between two frames of orthonormal tokens."""
STEPS = 128
"""Steps of iid tokens."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    n: int = 8
    betas: tuple[float, ...] = (0.0, 1.0, 2.0, 4.0, 6.0)
    """Of orthonormal tokens."""
    step: float = 0.05
    """Of orthonormal tokens; half of it gives the result, the difference gives the tolerance."""
    dims: tuple[int, ...] = (16, 32, 64, 128, 256, 512, 1024)
    draws: int = 400
    iid_betas: tuple[float, ...] = (0.0, 1.0, 2.0, 3.0)
    iid_models: tuple[str, ...] = ("SA", "USA0")
    overlap: float = 0.5
    """Of gamma, where iid tokens are looked at."""


QUICK = Parameters(betas=(2.0,), dims=(16, 64, 256, 1024), draws=64, iid_betas=(1.0,), iid_models=("SA",))


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Overlaps of orthonormal tokens along the flow, and deviations of iid tokens."""
    found = {}
    for k, model in enumerate(MODELS):
        make = functools.partial(_orthonormal, parameters, model, study, k)
        found[f"orthonormal-{model}"] = study.part(f"orthonormal-{model}", make)
    for k, model in enumerate(parameters.iid_models):
        found[f"iid-{model}"] = study.part(f"iid-{model}", functools.partial(_iid, parameters, model, study, k))
    return found


def _orthonormal(parameters: Parameters, model: str, study: Study, place: int) -> xr.Dataset:
    """Mean and spread of the overlaps at every frame, with the step and with half the step."""
    n, span, rows = parameters.n, SUBSTEPS * parameters.step, []
    for k, beta in enumerate(parameters.betas):
        study.progress(f"orthonormal tokens, {model}, beta = {beta:g}", (place + k / len(parameters.betas)) / 4)
        field = Attention(beta, normaliser=MODELS[model])
        frames = int(np.ceil(1.1 * float(theory.uniform.equiangular_time(0.99, beta, n, model=model)) / span))
        coarse = fine = orthonormal(Sphere(n), n=n, seed=parameters.seed(0))
        for frame in range(1, frames + 1):
            coarse = advance(field, coarse, 0.0, span, Fixed(parameters.step))
            for _ in range(2):
                fine = advance(field, fine, 0.0, span / 2, Fixed(parameters.step / 2))
            seen = pair_overlaps(fine.positions)
            rows.append((beta, frame * span, seen.mean(), pair_overlaps(coarse.positions).mean(), np.ptp(seen)))
    names = ("beta", "time", "overlap", "coarse", "spread")
    return xr.Dataset({name: ("frame", column) for name, column in zip(names, np.array(rows).T, strict=True)})


def _iid(parameters: Parameters, model: str, study: Study, place: int) -> xr.Dataset:
    """Per draw the mean square of overlap - gamma, at the time at which gamma is `overlap`."""
    tokens = in_span(parameters, parameters.n, parameters.dims, parameters.draws)
    squares = []
    for k, beta in enumerate(parameters.iid_betas):
        study.progress(f"iid tokens, {model}, beta = {beta:g}", 0.5 + (place + k / len(parameters.iid_betas)) / 4)
        seen = pair_overlaps(at_overlap(parameters, model, beta, tokens).positions)
        squares.append(np.mean((seen - parameters.overlap) ** 2, axis=-1))
    return xr.Dataset(
        {"square": (("beta", "d", "seed"), np.array(squares))},
        {"beta": list(parameters.iid_betas), "d": list(parameters.dims)},
    )


def at_overlap(parameters: Parameters, model: str, beta: float, tokens: Tokens) -> Tokens:
    """Tokens at the time at which orthonormal ones have the common overlap `overlap`."""
    until = float(theory.uniform.equiangular_time(parameters.overlap, beta, parameters.n, model=model))
    return advance(Attention(beta, normaliser=MODELS[model]), tokens, 0.0, until, Fixed(until / STEPS))

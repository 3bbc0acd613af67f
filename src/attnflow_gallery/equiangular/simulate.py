"""Overlaps of orthonormal tokens along the flow, and deviations of the overlaps of iid tokens."""

import dataclasses
import itertools

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Salted, Study
from attnflow.experiments.kit import in_span, pair_overlaps
from attnflow.fields import Attention
from attnflow.flows import Fixed, Solve, advance
from attnflow.spaces import Sphere
from attnflow.tokens import Tokens, orthonormal

MODELS = "SA", "USA0"
SUBSTEPS = 8
"""Steps between two frames of orthonormal tokens."""
STEPS = 32
"""Steps of iid tokens; halving a step changes no square by more than 1e-5 of it."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    n: int = 8
    betas: tuple[float, ...] = (0.0, 1.0, 2.0, 4.0, 6.0)
    """Of orthonormal tokens."""
    step: float = 0.05
    """Of orthonormal tokens; half of it gives the result, the difference gives the tolerance."""
    dims: tuple[int, ...] = (16, 32, 64, 128, 256, 512, 1024)
    draws: int = 1600
    iid_betas: tuple[float, ...] = (0.0, 1.0, 2.0)
    iid_models: tuple[str, ...] = ("SA", "USA0")
    overlap: float = 0.5
    """Of gamma, where iid tokens are looked at."""


QUICK = Parameters(betas=(2.0,), dims=(16, 64, 256, 1024), draws=256, iid_betas=(1.0,), iid_models=("SA",))


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Overlaps of orthonormal tokens along the flow, and deviations of iid tokens."""
    flows = {part_name(*case): orthonormal_flow(parameters, *case) for case in cases(parameters)}
    found = {name: study.refined(name, flow).isel(time=slice(1, None)) for name, flow in study.along(flows.items())}
    return found | study.parts({f"iid-{model}": (_iid, parameters, model, study) for model in parameters.iid_models})


def cases(parameters: Parameters) -> list[tuple[str, float]]:
    """Model and beta of orthonormal tokens."""
    return list(itertools.product(MODELS, parameters.betas))


def part_name(model: str, beta: float) -> str:
    """The part of the data with this flow of orthonormal tokens."""
    return f"orthonormal-{model}-beta{beta:g}"


def orthonormal_flow(parameters: Parameters, model: str, beta: float) -> Solve:
    """Tokens up to the time at which their overlap is 0.99, and a tenth more; observed are overlaps, not positions."""
    n, span = parameters.n, SUBSTEPS * parameters.step
    frames = int(np.ceil(1.1 * float(theory.uniform.equiangular_time(0.99, beta, n, model=model)) / span))
    tokens = orthonormal(Sphere(n), n=n, seed=parameters.seed(0))
    return Solve(
        Attention(beta, normaliser=model),
        tokens,
        frames * span,
        save=frames,
        method=Fixed(parameters.step),
        observe={
            "overlap": lambda mu: pair_overlaps(mu.positions).mean(),
            "spread": lambda mu: np.ptp(pair_overlaps(mu.positions)),
        },
        keep=(),
    )


def _iid(parameters: Parameters, model: str, study: Study) -> xr.Dataset:
    """Per draw the mean square of overlap - gamma, at the time at which gamma is `overlap`."""
    tokens = in_span(parameters, parameters.n, parameters.dims, parameters.draws)
    squares = []
    for k, beta in enumerate(parameters.iid_betas):
        study.progress(f"iid tokens, {model}, beta = {beta:g}", k / len(parameters.iid_betas))
        seen = pair_overlaps(at_overlap(parameters, model, beta, tokens).positions)
        squares.append(np.mean((seen - parameters.overlap) ** 2, axis=-1))
    return xr.Dataset(
        {"square": (("beta", "d", "seed"), np.array(squares))},
        {"beta": list(parameters.iid_betas), "d": list(parameters.dims)},
    )


def at_overlap(parameters: Parameters, model: str, beta: float, tokens: Tokens) -> Tokens:
    """Tokens at the time at which orthonormal ones have the common overlap `overlap`."""
    until = float(theory.uniform.equiangular_time(parameters.overlap, beta, parameters.n, model=model))
    return advance(Attention(beta, normaliser=model), tokens, 0.0, until, Fixed(until / STEPS))

"""The continuity equation in harmonics, from one harmonic of small amplitude."""

import dataclasses
import itertools
from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Study
from attnflow.experiments.kit import ragged
from attnflow.fields import Attention
from attnflow.meanfield import AbstractBasis, CircleBasis, SphereBasis, ZonalBasis, evolve, needed_degree, perturbed

MODELS = "SA", "USA0"
START, GROWN = 1e-9, 1e-4
"""Amplitudes at the start: of the pairs, and of the modes that are followed until they stop growing."""


@dataclasses.dataclass(frozen=True)
class Parameters:
    """What is simulated."""

    circle_betas: tuple[float, ...] = (2.0, 9.0, 100.0)
    circle_degrees: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
    sphere_betas: tuple[float, ...] = (5.0, 20.0)
    sphere_degrees: tuple[int, ...] = (1, 2, 3, 4, 6)
    zonal_betas: tuple[float, ...] = (5.0, 20.0)
    zonal_degrees: tuple[int, ...] = (1, 2, 3, 4)
    dims: tuple[int, ...] = (4, 8, 64)
    """Of the spaces R^d around the spheres with zonal densities."""
    decades: float = 5.0
    """That a mode grows by, if its rate is at least half of the largest one; others have the time of such a one."""
    frames: int = 160
    bends: tuple[float, ...] = (2.0, 9.0)
    """Inverse temperatures at which modes of the circle are followed until they stop growing."""


QUICK = Parameters(
    circle_betas=(5.0,),
    circle_degrees=(1, 4),
    sphere_betas=(),
    zonal_betas=(5.0,),
    zonal_degrees=(1, 2),
    dims=(8,),
    bends=(5.0,),
)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Amplitudes of modes along pairs of flows."""
    flows = [("circle", 2, beta, parameters.circle_degrees) for beta in parameters.circle_betas]
    flows += [("zonal", d, beta, parameters.zonal_degrees) for d in parameters.dims for beta in parameters.zonal_betas]
    flows += [("sphere", 3, beta, parameters.sphere_degrees) for beta in parameters.sphere_betas]
    makers: dict[str, Any] = {}
    for model, (space, d, beta, degrees) in itertools.product(MODELS, flows):
        makers[f"{model}-{space}-d{d}-beta{beta:g}"] = grown, model, space, d, beta, degrees, parameters
    for model, beta in itertools.product(MODELS, parameters.bends):
        makers[f"{model}-bend-beta{beta:g}"] = bent, model, beta, parameters
    return study.parts(makers)


def basis_of(space: str, d: int, beta: float) -> AbstractBasis:
    """Degrees with room for the kernel to rounding, and for powers of each mode."""
    if space == "circle":
        return CircleBasis(128)
    return SphereBasis(max(needed_degree(beta, d, 1e-13), 24)) if space == "sphere" else ZonalBasis(d, 64)


def grown(model: str, space: str, d: int, beta: float, degrees: tuple[int, ...], parameters: Parameters) -> xr.Dataset:
    """Amplitudes from +START and -START along the flow: (degree, sign, frame), the frames `interval` apart."""
    field, basis = Attention(beta, normaliser=model), basis_of(space, d, beta)
    rates = theory.uniform.growth_rates(beta, d, k=np.arange(1, 60), model=model)
    spans = parameters.decades * np.log(10) / np.maximum(rates[np.array(degrees) - 1], rates.max() / 2)
    amplitudes = np.full((len(degrees), 2, parameters.frames + 1), np.nan)  # a frame that is not reached stays NaN
    for k, degree in enumerate(degrees):
        for j, size in enumerate((START, -START)):
            found = _amplitudes(field, basis, degree, size, float(spans[k]), parameters.frames, space)
            amplitudes[k, j, : len(found)] = found
    return xr.Dataset(
        {"amplitude": (("degree", "sign", "frame"), amplitudes), "interval": ("degree", spans / parameters.frames)},
        {"degree": list(degrees), "sign": [1, -1], "frame": np.arange(parameters.frames + 1)},
        {"model": model, "space": space, "d": d, "beta": beta},
    )


def _amplitudes(
    field: Attention, basis: AbstractBasis, k: int, size: float, until: float, frames: int, space: str
) -> np.ndarray:
    """The coefficient of the seeded harmonic, in units in which the harmonic has the maximum 1, while resolved."""
    order = k // 2 if space == "sphere" else 0
    flow = evolve(field, perturbed(basis, k, size, order), until, save=frames, check=False)
    shape = np.asarray(basis.harmonic(k, order)).reshape(-1)
    place = int(np.argmax(np.abs(shape)))
    rows = flow.dataset["coefficients"].values.reshape(len(flow.time), -1)[: frames + 1, place]
    reached = np.isclose(flow.time.values, np.arange(len(rows)) * until / frames)  # the last one may lie between
    return np.asarray(rows[reached] / shape[place])


def bent(model: str, beta: float, parameters: Parameters) -> xr.Dataset:
    """Modes on the circle from k_max on, from 1e-4 until the density is no longer resolved."""
    field, basis = Attention(beta, normaliser=model), basis_of("circle", 2, beta)
    degrees = int(theory.uniform.dominant_degree(beta, 2)) + np.arange(3)
    rates = theory.uniform.growth_rates(beta, 2, k=degrees, model=model)
    spans, frames = 13.0 / rates, 2 * parameters.frames
    rows = [
        _amplitudes(field, basis, int(k), GROWN, float(span), frames, "circle")
        for k, span in zip(degrees, spans, strict=True)
    ]
    return xr.Dataset(
        ragged("amplitude", ("degree", "frame"), rows, frames + 1) | {"interval": ("degree", spans / frames)},
        {"degree": degrees, "frame": np.arange(frames + 1)},
        {"model": model, "space": "bend", "d": 2, "beta": beta},
    )

"""Tokens, the density that they follow, and the linearised flow of their noise."""

import dataclasses
from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments import Salted, Study
from attnflow.fields import Attention
from attnflow.flows import Fixed, solve
from attnflow.kernels import Exponential
from attnflow.meanfield import (
    CircleBasis,
    Fluctuations,
    SphereBasis,
    ZonalBasis,
    carried_noise,
    expected_distance,
    expected_observable,
    fluctuations,
    linearised_distance,
    observable_distance,
    perturbed,
    quadrature,
    quadrature_error,
    quiet,
    sample,
)
from attnflow.sums import Circle, needed_degree
from attnflow.tokens import Tokens

MODELS = "SA", "USA0"
SUMS = 1e-12
"""Error of the kernel in fast sums; its largest value is 1."""
TOGETHER = 65_536
"""Tokens of all samples that move at a time."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    beta: float = 9.0
    amplitude: float = 0.5
    """The density is 1 + amplitude cos(theta), or 1 + amplitude z on S^2."""
    degree: int = 96
    sa_sizes: tuple[int, ...] = (1000, 4000, 16000, 64000)
    sa_draws: tuple[int, ...] = (256, 192, 64, 40)
    """How many samples of iid tokens at each size."""
    usa0_sizes: tuple[int, ...] = (4000, 16000, 64000)
    usa0_draws: tuple[int, ...] = (192, 64, 32)
    until: tuple[float, ...] = (4.0, 24.0)
    """Of SA and of USA0, whose clock is slower."""
    frames: int = 4
    """Times at which tokens are compared, besides 0."""
    steps: int = 12
    """Of the Runge-Kutta method of order 4, a multiple of `frames`."""
    samples: int = 8192
    """Gaussian fields."""
    quiet_sizes: tuple[int, ...] = (1000, 4000, 16000)
    shifts: int = 3
    sphere_beta: float = 4.0
    sphere_degree: int = 24
    sphere_sizes: tuple[int, ...] = (400, 1600)
    sphere_draws: tuple[int, ...] = (192, 128)
    sphere_until: float = 2.0
    grid: int = 2**14
    """Of angles at which distances on the circle are read."""
    observables: int = 4
    """The highest degree of the observables on S^2."""


QUICK = Parameters(
    degree=48,
    sa_sizes=(500, 2000, 8000),
    sa_draws=(96, 48, 16),
    usa0_sizes=(),
    usa0_draws=(),
    until=(2.0,),
    frames=2,
    steps=6,
    samples=1024,
    quiet_sizes=(500, 2000),
    shifts=2,
    sphere_degree=16,
    sphere_sizes=(300,),
    sphere_draws=(32,),
    sphere_until=1.0,
    grid=2**12,
)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """The linearised flow, distances of iid and of quiet tokens, and observables on S^2."""
    models = [model for model in MODELS if sizes_of(parameters, model)]
    first: dict[str, Any] = {f"linear-{model}": (linear, model, parameters) for model in models}
    data = study.parts(first | {"sphere-linear": (sphere_linear, parameters)})
    flows = {model: _flow(parameters, data[f"linear-{model}"]) for model in models}
    makers: dict[str, Any] = {
        f"tokens-{model}-{n}": (samples, model, n, count, flows[model], parameters, study)
        for model in models
        for n, count in sizes_of(parameters, model)
    }
    makers["quiet"] = rest, flows["SA"], parameters
    coefficients = data["sphere-linear"]["coefficients"].values
    for n, count in zip(parameters.sphere_sizes, parameters.sphere_draws, strict=True):
        makers[f"sphere-{n}"] = sphere, n, count, coefficients, parameters
    return data | study.parts(makers)


def samples(model: str, n: int, count: int, flow: Fluctuations, parameters: Parameters, study: Study) -> xr.Dataset:
    """`distances` of all samples of n tokens."""
    rows, size = [], together(n, count)
    for first in range(0, count, size):
        study.progress(f"{model}: {n} tokens, seed {first + 1} of {count}", first / count)
        # n + seed: no part of a larger sample
        seeds = [parameters.seed(n + seed) for seed in range(first, first + size)]
        rows.append(distances(model, iid(n, seeds, parameters), flow, parameters))
    return xr.concat(rows, "seed")


def linear(model: str, parameters: Parameters) -> xr.Dataset:
    """The linearised flow at twice as many times, the constants of it, and the error of the tokens' time steps."""
    field, times = _field(model, parameters), _times(model, parameters)
    fine = np.unique(np.concatenate([times, (times[1:] + times[:-1]) / 2]))
    flow = fluctuations(field, _density(parameters), fine)
    expected = expected_distance(flow, samples=parameters.samples, seed=parameters.seed(0))
    tokens = quiet(_density(parameters, 1), sizes_of(parameters, model)[0][0])
    halves = [_moved(model, tokens, parameters, k * parameters.steps).values[-1] for k in (1, 2)]
    apart = np.max(np.linalg.norm(halves[0] - halves[1], axis=1))
    return xr.Dataset(
        {
            "constant": ("fine", expected.mean),
            "error": ("fine", expected.error),
            "deviation": ("fine", expected.deviation),
            "noise": ("fine", carried_noise(flow)),
            "coefficients": (("fine", "harmonic"), flow.coefficients),
            "moved": (("fine", "start", "axis"), flow.moved),
            "responses": (("fine", "start", "harmonic"), flow.responses),
            "apart": apart * 16 / 15,
            "quadrature": ("time", [quadrature_error(flow.density(2 * k), parameters.grid) for k in range(len(times))]),
        },
        {"fine": fine, "time": times},
    )


def together(n: int, count: int) -> int:
    """How many samples of n tokens move at a time: a divisor of `count`, for one program."""
    return max(k for k in range(1, count + 1) if count % k == 0 and (k == 1 or k * n <= TOGETHER))


def iid(n: int, seeds: list[int], parameters: Parameters) -> Tokens:
    """One sample of n tokens a seed."""
    density = _density(parameters, 1)
    return Tokens(np.stack([sample(density, n, seed).positions for seed in seeds]), dims=("seed",))


def distances(model: str, tokens: Tokens, flow: Fluctuations, parameters: Parameters) -> xr.Dataset:
    """W_1 of samples of tokens to the density, through time, and as the linearised flow has it."""
    frames = _moved(model, tokens, parameters, parameters.steps).values
    measured = [_distances(path, flow, parameters.grid) for path in frames]
    linear = [linearised_distance(flow, Tokens(x), grid=parameters.grid) for x in tokens.positions]
    return xr.Dataset({"measured": (("seed", "time"), measured), "linear": (("seed", "time"), linear)})


def _distances(path: np.ndarray, flow: Fluctuations, grid: int) -> list[float]:
    """W_1 to the density of the tokens `path` (time, token, dim)."""
    return [flow.density(k).distance_from(Tokens(x), grid=grid) for k, x in enumerate(path)]


def rest(flow: Fluctuations, parameters: Parameters) -> xr.Dataset:
    """W_1 of quiet tokens, with steps four times as short."""
    found: list[list[Any]] = [[] for _ in parameters.quiet_sizes]
    for row, n in zip(found, parameters.quiet_sizes, strict=True):
        for shift in range(parameters.shifts):
            path = _moved("SA", _quiet(n, shift, parameters), parameters, 4 * parameters.steps).values
            row.append(_distances(path, flow, parameters.grid))
    labels = {"n": list(parameters.quiet_sizes), "time": _times("SA", parameters)}
    return xr.Dataset({"measured": (("n", "shift", "time"), found)}, labels)


def sphere_linear(parameters: Parameters) -> xr.Dataset:
    """The density on S^2 and the root of n E D^2 by the linearised flow, from rings of latitude."""
    zonal = perturbed(ZonalBasis(3, parameters.sphere_degree // 2), 1, parameters.amplitude)
    starts = quadrature(zonal, copies=parameters.observables // 4 + 1, seed=parameters.seed(0))
    density = perturbed(SphereBasis(parameters.sphere_degree), 1, parameters.amplitude)
    times = _sphere_times(parameters)
    flow = fluctuations(Attention(parameters.sphere_beta), density, times, starts=starts)
    return xr.Dataset(
        {
            "constant": ("time", expected_observable(flow, parameters.observables)),
            "coefficients": (("time", "part", "order", "degree"), flow.coefficients),
        },
        {"time": times},
    )


def sphere(n: int, count: int, coefficients: np.ndarray, parameters: Parameters) -> xr.Dataset:
    """The distance by observables of iid tokens on S^2 to the density."""
    start = perturbed(SphereBasis(1), 1, parameters.amplitude)
    density = perturbed(SphereBasis(parameters.sphere_degree), 1, parameters.amplitude)
    times, rows = _sphere_times(parameters), []
    densities = [density.moved(c) for c in coefficients]
    for seed in range(count):
        tokens = sample(start, n, parameters.seed(n + seed))
        flow = solve(Attention(parameters.sphere_beta), tokens, times[-1], save=times[1:], method=Fixed(0.5))
        rows.append([observable_distance(flow[k], rho, parameters.observables) for k, rho in enumerate(densities)])
    return xr.Dataset({"measured": (("seed", "time"), rows)}, {"time": times})


def _moved(model: str, tokens: Tokens, parameters: Parameters, steps: int) -> xr.DataArray:
    """Positions (..., time, token, dim) at all times."""
    until, field = _times(model, parameters)[-1], moving_field(model, parameters.beta, tokens)
    method = Fixed(until / steps)
    return solve(field, tokens, until, save=parameters.frames, method=method, keep=("positions",)).positions


def moving_field(model: str, beta: float, tokens: Tokens) -> Attention:
    """What moves the tokens on the circle: attention by fast sums."""
    tol = 4 * SUMS * tokens.n  # for a token that would see no other; those here see the whole density
    needed = needed_degree([Exponential(beta)], 2, tokens, tol)
    assert needed is not None
    return Attention(beta, normaliser=model, sum=Circle(tol, needed[0], guarded=False))


def _quiet(n: int, shift: int, parameters: Parameters) -> Tokens:
    return quiet(_density(parameters, 1), n, seed=parameters.seed(shift))


def _field(model: str, parameters: Parameters) -> Attention:
    return Attention(parameters.beta, normaliser=model)


def _density(parameters: Parameters, degree: int | None = None) -> Any:
    return perturbed(CircleBasis(parameters.degree if degree is None else degree), 1, parameters.amplitude)


def _times(model: str, parameters: Parameters) -> np.ndarray:
    return np.linspace(0, parameters.until[MODELS.index(model)], parameters.frames + 1)


def _sphere_times(parameters: Parameters) -> np.ndarray:
    return np.arange(0.0, parameters.sphere_until + 0.5)


def sizes_of(parameters: Parameters, model: str) -> list[tuple[int, int]]:
    """Sizes, and how many samples each has."""
    sa = (parameters.sa_sizes, parameters.sa_draws)
    return list(zip(*(sa if model == "SA" else (parameters.usa0_sizes, parameters.usa0_draws)), strict=True))


def _flow(parameters: Parameters, part: xr.Dataset) -> Fluctuations:
    """The linearised flow at the times of the tokens, from what was stored."""
    density, n = _density(parameters), part.sizes["start"]
    theta = 2 * np.pi * np.arange(n) / n
    starts = Tokens(np.stack([np.cos(theta), np.sin(theta)], axis=1), density(angles=theta))
    kept = part.isel(fine=slice(None, None, 2))
    coefficients, moved, responses = (kept[name].values for name in ("coefficients", "moved", "responses"))
    return Fluctuations(density, kept["fine"].values, coefficients, starts, moved, responses)

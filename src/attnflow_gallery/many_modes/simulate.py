"""The continuity equation of softmax attention on the circle from white noise, and modes of the smoothed density."""

import dataclasses

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Salted, Study
from attnflow.experiments.kit import ragged
from attnflow.fields import Attention
from attnflow.meanfield import CircleBasis, Density, empirical, evolve
from attnflow.spaces import Sphere
from attnflow.tokens import uniform

FIRST_SEED = 1000
"""Sizes and tolerances were chosen on smaller seeds."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    beta: float = 100.0
    exponents: tuple[float, ...] = (2.0, 4.0, 12.0, 36.0, 100.0)
    """eps = 10^-exponent."""
    runs: int = 60
    draws: int = 4000
    """Of white noise whose modes are counted at t = 0 only."""
    tokens: int = 10_000
    """Iid uniform tokens whose harmonics are one more start."""
    degree: int = 192
    points: int = 4096
    """Of the grid on which modes are counted."""
    interval: float = 0.5
    """Between frames; steps are not longer."""


QUICK = Parameters(
    beta=18.0, exponents=(2.0, 24.0), runs=28, draws=4000, tokens=10_000, degree=80, points=1024, interval=2.0
)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Counts of modes along flows, for every size of the fluctuation."""
    flows = {f"eps{x:g}": (follow, parameters, study, 10.0**-x, False) for x in parameters.exponents}
    tokens = follow, parameters, study, parameters.tokens**-0.5, True
    return study.parts({"draws": (drawn, parameters)} | flows | {"tokens": tokens})


def follow(parameters: Parameters, study: Study, eps: float, tokens: bool) -> xr.Dataset:
    """Counts of modes along the flows of all seeds."""
    made = []
    for seed in range(parameters.runs):
        study.progress(f"eps = {eps:.1g}, seed {seed}", seed / parameters.runs)
        made.append(counted(parameters, start(parameters, eps, FIRST_SEED + seed, tokens), eps))
    return xr.concat(made, dim="seed")


def _length(eps: float, beta: float) -> float:
    """The time at which the fastest degree would be of order 10, by when the density is no longer resolved."""
    fastest = float(np.max(theory.uniform.growth_rates(beta, 2, k=np.arange(1, 9 + int(4 * np.sqrt(beta))))))
    return float(np.log(10 / eps) / fastest + 4)


def noise_degree(beta: float) -> int:
    """Where the kernel's harmonics e^(-k^2/(2 beta)) have fallen to 1e-8."""
    return int(np.ceil(np.sqrt(2 * beta * np.log(1e8))))


def noise(parameters: Parameters, eps: float, *labels: int) -> np.ndarray:
    """Coefficients of eps W, W white noise: independent normal numbers."""
    basis = CircleBasis(parameters.degree)
    return eps * parameters.rng(*labels).standard_normal(basis.mask.shape)


def start(parameters: Parameters, eps: float, seed: int, tokens: bool) -> Density:
    """1 + eps W cut after `noise_degree`, or with the harmonics of iid tokens."""
    basis = CircleBasis(parameters.degree)
    if tokens:
        found = empirical(basis, uniform(Sphere(2), n=parameters.tokens, seed=parameters.seed(seed)))
    else:
        found = noise(parameters, eps, seed, round(-np.log10(eps)))
    found = np.where(basis.degrees <= noise_degree(parameters.beta), found, 0.0)
    found[0] = 1.0
    return Density(basis, found)


def drawn(parameters: Parameters) -> xr.Dataset:
    """Modes of K * W at t = 0, without a flow."""
    degrees = np.asarray(CircleBasis(parameters.degree).degrees)
    noises = np.array([noise(parameters, 1.0, FIRST_SEED + k, 1001) for k in range(parameters.draws)])
    rows = np.where(degrees <= noise_degree(parameters.beta), noises, 0.0)
    blocks = np.array_split(rows, max(1, len(rows) // 500))
    counts = [count_modes(block, parameters.beta, parameters.degree, parameters.points) for block in blocks]
    return xr.Dataset({"modes": ("draw", np.concatenate(counts))})


def counted(parameters: Parameters, density: Density, eps: float) -> xr.Dataset:
    """Modes of K * mu and the root mean square of rho - 1, at every frame while the density is resolved."""
    frames = int(np.ceil(_length(eps, parameters.beta) / parameters.interval))
    times = parameters.interval * np.arange(frames + 1)
    flow = evolve(Attention(parameters.beta), density, float(times[-1]), save=frames, check=False)
    rows = flow.dataset["coefficients"].values
    kept = min(len(rows), frames + 1)
    kept -= int(not np.isclose(float(flow.time[kept - 1]), times[kept - 1]))  # the last one may lie between frames
    found = count_modes(rows, parameters.beta, density.basis.degree, parameters.points)
    modes = ragged("modes", ("seed", "time"), [found[:kept]], frames + 1)
    size = ragged("size", ("seed", "time"), [_scale(rows[:kept])], frames + 1)
    return xr.Dataset(
        {
            **modes,
            **size,
            "final": ("seed", [int(found[-1])]),
            "end": ("seed", [float(flow.time[-1])]),
            "smoothed": (("seed", "angle"), [smoothed(rows[-1], parameters.beta, density.basis.degree, 512)]),
        },
        {"time": times},
        {"eps": eps},
    )


def _scale(rows: np.ndarray) -> np.ndarray:
    """The 2-norm of the coefficients from degree 1 on; squares of 1e-200 would underflow."""
    largest = np.max(np.abs(rows[:, 1:]), axis=1)
    return np.asarray(largest * np.sqrt(np.sum((rows[:, 1:] / largest[:, None]) ** 2, axis=1)))


def kernel(beta: float, degree: int) -> np.ndarray:
    """Harmonics 1 to `degree` of e^(beta (cos - 1)) over that of degree 0, from values on a grid."""
    theta = 2 * np.pi * np.arange(8 * degree) / (8 * degree)
    found = np.fft.rfft(np.exp(beta * (np.cos(theta) - 1))).real
    return np.asarray(found[1 : degree + 1] / found[0])


def _waves(rows: np.ndarray, beta: float, degree: int) -> np.ndarray:
    """Complex harmonics 1 to `degree` of K * mu, from coefficients (..., harmonic): cosines, then sines."""
    return np.asarray(kernel(beta, degree) * (rows[..., 1 : degree + 1] - 1j * rows[..., degree + 1 :]))


def count_modes(rows: np.ndarray, beta: float, degree: int, points: int) -> np.ndarray:
    """Local maxima of K * mu around the circle for coefficients (time, harmonic)."""
    waves = _waves(rows, beta, degree)
    waves = waves / np.max(np.abs(waves), axis=1, keepdims=True)  # any scale has the same modes
    spectrum = np.concatenate([np.zeros((len(rows), 1)), 1j * np.arange(1, degree + 1) * waves], axis=1)
    slope = np.fft.irfft(spectrum, points, axis=1)
    return np.asarray(np.sum((slope > 0) & (np.roll(slope, -1, axis=1) <= 0), axis=1))


def smoothed(row: np.ndarray, beta: float, degree: int, points: int) -> np.ndarray:
    """K * mu over its mean, on a grid around the circle."""
    waves = np.concatenate([[1.0], _waves(row, beta, degree) / np.sqrt(2)])
    return np.fft.irfft(waves, points) * points

"""Densities with an axis: growth of small harmonics, condensation, and tokens on S^7."""

import dataclasses

import numpy as np
import xarray as xr
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq

from attnflow import theory
from attnflow.experiments import Salted, Study
from attnflow.experiments.kit import follow, sampling_noise
from attnflow.fields import Attention
from attnflow.meanfield import Density, ZonalBasis, evolve, multipliers, perturbed, sample, uniform, von_mises_fisher

TICK = 0.1
"""Time between two saved overlaps."""
SMALL = 1e-5
"""Coefficients of the harmonics whose growth is measured."""
RTOL = 1e-10
"""Error of a step of the equation, relative to the density."""
LEVELS = (0.0, 0.1, 0.3, 0.5)
"""Mean overlaps at which densities are drawn."""
ANGLES = np.linspace(0, np.pi, 361)


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    dims: tuple[int, ...] = (2, 3, 4, 8, 16, 32, 64)
    """Of the spaces R^d around the spheres."""
    degree: int = 80
    """Of the basis."""
    rate_beta: float = 4.0
    degrees: int = 4
    """Harmonics of degree 1 to this grow from `SMALL`."""
    rate_until: float = 1.0
    beta: float = 1.0
    """Of the condensation."""
    overlaps: tuple[float, ...] = (1e-2, 1e-3, 1e-4)
    """Mean overlaps that densities start with."""
    condensed: float = 0.5
    """The mean overlap at which a density counts as condensed."""
    token_dim: int = 8
    token_beta: float = 4.0
    token_degree: int = 48
    token_until: float = 1.5
    n: int = 2000
    draws: int = 4
    """Samples of n tokens."""


QUICK = Parameters(dims=(8,), degree=48, n=1000, draws=2)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Rates, condensations, tokens."""
    makers = {"rates": rates, "condensation": condensation, "tokens": tokens}
    return study.parts({name: (make, parameters) for name, make in makers.items()})


def rates(parameters: Parameters) -> xr.Dataset:
    """Growth rates under SA of small harmonics of the uniform measure, all degrees at once, by the nonlinear equation.

    From starts with coefficients +-SMALL: in half the difference of the ends terms of second order cancel.
    """
    field, found, steps = Attention(parameters.rate_beta), [], []
    for d in parameters.dims:
        basis = ZonalBasis(d, parameters.degree)
        small = np.where((basis.degrees >= 1) & (basis.degrees <= parameters.degrees), SMALL, 0.0)
        base = np.asarray(uniform(basis).coefficients)
        starts = [Density(basis, base + sign * small) for sign in (1, -1)]
        flows = [evolve(field, start, parameters.rate_until, save=1, rtol=RTOL) for start in starts]
        plus, minus = (flow.dataset["coefficients"].values[-1] for flow in flows)
        gain = (plus - minus)[1 : parameters.degrees + 1] / (2 * SMALL)
        found.append(np.log(gain) / parameters.rate_until)
        steps.append(flows[0].steps["accepted"])
    return xr.Dataset(
        {"rate": (("dimension", "degree"), np.array(found)), "steps": ("dimension", steps)},
        {"dimension": list(parameters.dims), "degree": np.arange(1, parameters.degrees + 1)},
    )


def condensation(parameters: Parameters) -> xr.Dataset:
    """SA from the density 1 + overlap d s: times at which the mean overlap is `condensed`, and densities on the way."""
    times, profiles = [], []
    for d in parameters.dims:
        basis = ZonalBasis(d, parameters.degree)
        first = float(theory.uniform.growth_rates(parameters.beta, d, k=1))
        row = []
        for overlap in parameters.overlaps:
            until = TICK * np.ceil((np.log(1 / overlap) / first + 3) / TICK)
            save = np.arange(0, until + TICK / 2, TICK)
            density = perturbed(basis, 1, overlap * d)
            flow = evolve(Attention(parameters.beta), density, float(save[-1]), save=save, check=False, rtol=RTOL)
            t, mean = flow.time.values, flow.dataset["coefficients"].values[:, 1] / np.sqrt(d)
            row.append(crossing(t, mean, parameters.condensed))
        times.append(row)
        chosen = [int(np.argmax(mean >= level)) for level in LEVELS if mean[-1] >= level]
        made = [flow.density(k)(heights=np.cos(ANGLES)) for k in chosen]
        profiles.append(made + [np.full(len(ANGLES), np.nan)] * (len(LEVELS) - len(made)))
    return xr.Dataset(
        {
            "time": (("dimension", "overlap"), np.array(times)),
            "profile": (("dimension", "level", "angle"), np.array(profiles)),
        },
        {"dimension": list(parameters.dims), "overlap": list(parameters.overlaps), "angle": ANGLES},
    )


def crossing(times: np.ndarray, values: np.ndarray, level: float) -> float:
    """When values rise through a level: on a cubic spline through them; NaN if they do not."""
    above = np.flatnonzero(values >= level)
    if not len(above) or above[0] == 0:
        return float("nan")
    k = int(above[0])
    spline = CubicSpline(times, values)
    return float(brentq(lambda t: float(spline(t)) - level, times[k - 1], times[k], xtol=1e-13))


def tokens(parameters: Parameters) -> xr.Dataset:
    """Mean overlaps with the axis of iid tokens and of the density, and the standard error that the flow carries.

    `own` is the mean weight that a token gives to itself at the start.
    """
    d, counts = parameters.token_dim, (4, 4)
    field = Attention(parameters.token_beta)
    start = von_mises_fisher(ZonalBasis(d, parameters.token_degree), 3.0)
    gap = parameters.token_until / counts[0]
    times = gap * np.arange(counts[0] + 1)
    flow = evolve(field, start, parameters.token_until, save=times)
    influence = sampling_noise.influence(field, start, 1, gap, counts)
    noise = sampling_noise.deviations(start, influence)[:, 0] / np.sqrt(d)

    basis = start.basis
    kernel = np.asarray(multipliers(parameters.token_beta, d, basis.degree))[basis.degrees]
    smooth = np.asarray(basis.synthesis(kernel * np.asarray(start.coefficients)))
    own = float(np.sum(basis.weights * np.asarray(start.values) / smooth)) / parameters.n

    def overlap(now: object) -> float:
        return float(np.mean(np.asarray(now.positions)[:, -1]))  # type: ignore[attr-defined]

    drawn = [sample(start, parameters.n, parameters.seed(k)) for k in range(parameters.draws)]
    return xr.Dataset(
        {
            "overlap": (("draw", "time"), np.array([follow(field, one, gap, counts, overlap) for one in drawn])),
            "density": ("time", flow.dataset["coefficients"].values[:, 1] / np.sqrt(d)),
            "noise": ("time", noise / np.sqrt(parameters.n)),
            "own": own,
        },
        {"time": times},
    )

"""Which number of clusters a nearly uniform density chooses: from sqrt(3 beta/2) to k_max as its fluctuation shrinks.

n iid uniform tokens on the circle have the harmonics of a density 1 + eps W, W white noise and eps = n^(-1/2). Degree k
of it grows like e^(lambda_k t), and while eps e^(lambda t) is small the expected number of modes of the smoothed
density K * mu, K = e^(beta cos), is by Kac and Rice for a Gaussian field

    M(t) = sqrt(sum k^4 I_k^2 e^(2 lambda_k t) / sum k^2 I_k^2 e^(2 lambda_k t)):

near sqrt(3 beta/2) at t = 0 (arXiv:2412.09080), tending to the degree k_max near sqrt(2 beta) that grows fastest
(arXiv:2312.10794), not monotonically, and slowly: neighbours of k_max grow slower by no more than about 2/(e beta).

Shown: the continuity equation of softmax attention from white noise, solved in harmonics until the first cluster is too
sharp for them; its modes are counted. The linear phase lasts log(1/eps) e/2, so that k_max is seen in every run only
from fluctuations of size e^(-beta) and below, which no number of tokens reaches, but a density does.
Not shown: how the clusters then merge (see staircase), or tokens themselves (see kde-modes, cluster-count); tokens
serve here for one start.

White noise is cut where the kernel has fallen to 1e-8. Runs of one eps differ in the seed alone: standard errors.
"""

import dataclasses
import functools
import itertools
from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.claim import Claim, share_used
from attnflow.experiments.study import Study
from attnflow.fields import Attention
from attnflow.meanfield import CircleBasis, Density, empirical, evolve
from attnflow.plots.style import COLOURS, GREY, INK, PAGE, styled
from attnflow.spaces import Sphere
from attnflow.tokens import uniform

PAPERS = ("arXiv:2312.10794", "arXiv:2412.09080")

LINEAR = 0.2
"""Root mean square of rho - 1 up to which a time counts as linear: its square is what the count may be off by."""


@dataclasses.dataclass(frozen=True)
class Parameters:
    """What is simulated."""

    beta: float = 100.0
    exponents: tuple[float, ...] = (2.0, 4.0, 12.0, 36.0, 100.0)
    """eps = 10^-exponent."""
    seeds: int = 32
    first_seed: int = 1000
    """Held-out seeds: sizes and tolerances were chosen on smaller ones."""
    tokens: int = 10_000
    """Iid uniform tokens whose harmonics are one more start."""
    degree: int = 192
    points: int = 4096
    """Of the grid on which modes are counted."""
    interval: float = 0.5
    """Between frames; steps are not longer."""


QUICK = Parameters(beta=20.0, exponents=(2.0, 40.0), seeds=20, tokens=10_000, degree=96, points=2048, interval=1.0)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Counts of modes along flows, for every size of the fluctuation."""
    starts = [(f"eps{x:g}", 10.0**-x, False) for x in parameters.exponents]
    if parameters.tokens:
        starts.append(("tokens", parameters.tokens**-0.5, True))
    lengths = [_length(eps, parameters.beta) for _, eps, _ in starts]

    def make(index: int, eps: float, tokens: bool) -> xr.Dataset:
        made = []
        for seed in range(parameters.seeds):
            share = (sum(lengths[:index]) + lengths[index] * seed / parameters.seeds) / sum(lengths)
            study.progress(f"eps = {eps:.1g}, seed {seed}", share)
            made.append(counted(parameters, eps, parameters.first_seed + seed, tokens))
        return xr.concat(made, dim="seed")

    return {
        name: study.part(name, functools.partial(make, k, eps, tokens)) for k, (name, eps, tokens) in enumerate(starts)
    }


def _length(eps: float, beta: float) -> float:
    """The time at which the fastest degree would be of order 10, by when the density is no longer resolved."""
    fastest = float(np.max(theory.growth_rates(beta, 2, np.arange(1, 9 + int(4 * np.sqrt(beta))))))
    return float(np.log(10 / eps) / fastest + 4)


def noise_degree(beta: float) -> int:
    """Where the kernel's harmonics e^(-k^2/(2 beta)) have fallen to 1e-8."""
    return int(np.ceil(np.sqrt(2 * beta * np.log(1e8))))


def start(parameters: Parameters, eps: float, seed: int, tokens: bool) -> Density:
    """1 + eps W cut after `noise_degree`: W of independent normal coefficients, or the harmonics of iid tokens."""
    basis = CircleBasis(parameters.degree)
    if tokens:
        found = empirical(basis, uniform(Sphere(2), n=parameters.tokens, seed=seed))
    else:
        found = eps * np.random.default_rng((seed, round(-np.log10(eps)))).standard_normal(basis.mask.shape)
    found = np.where(basis.degrees <= noise_degree(parameters.beta), found, 0.0)
    found[0] = 1.0
    return Density(basis, found)


def counted(parameters: Parameters, eps: float, seed: int, tokens: bool) -> xr.Dataset:
    """Modes of K * mu and the root mean square of rho - 1 at every frame, NaN once the density is not resolved."""
    density, field = start(parameters, eps, seed, tokens), Attention(parameters.beta)
    frames = int(np.ceil(_length(eps, parameters.beta) / parameters.interval))
    times = parameters.interval * np.arange(frames + 1)
    flow = evolve(field, density, float(times[-1]), save=frames, check=False)
    rows = flow.dataset["coefficients"].values
    modes, size = np.full((2, frames + 1), np.nan)
    kept = min(len(rows), frames + 1)
    kept -= int(not np.isclose(float(flow.time[kept - 1]), times[kept - 1]))  # the last one may lie between frames
    found = count_modes(rows, parameters.beta, density.basis.degree, parameters.points)
    modes[:kept] = found[:kept]
    size[:kept] = _scale(rows[:kept])
    return xr.Dataset(
        {
            "modes": ("time", modes),
            "size": ("time", size),
            "final": int(found[-1]),
            "end": float(flow.time[-1]),
            "smoothed": ("angle", smoothed(rows[-1], parameters.beta, density.basis.degree, 512)),
        },
        {"time": times},
        {"eps": eps},
    )


def _scale(rows: np.ndarray) -> np.ndarray:
    """The 2-norm of the coefficients from degree 1 on; squares of 1e-200 would underflow."""
    largest = np.max(np.abs(rows[:, 1:]), axis=1)
    return np.asarray(largest * np.sqrt(np.sum((rows[:, 1:] / largest[:, None]) ** 2, axis=1)))


def count_modes(rows: np.ndarray, beta: float, degree: int, points: int) -> np.ndarray:
    """Local maxima of K * mu around the circle for coefficients (time, harmonic): cosines, then sines."""
    kernel = np.concatenate([[1.0], np.cumprod(_quotients(beta, degree))])[1:]
    cosines, sines = rows[:, 1 : degree + 1] * kernel, rows[:, degree + 1 :] * kernel
    waves = cosines - 1j * sines
    waves = waves / np.max(np.abs(waves), axis=1, keepdims=True)  # any scale has the same modes
    k = np.arange(1, degree + 1)
    spectrum = np.concatenate([np.zeros((len(rows), 1)), 1j * k * waves], axis=1)
    slope = np.fft.irfft(spectrum, points, axis=1)
    return np.asarray(np.sum((slope > 0) & (np.roll(slope, -1, axis=1) <= 0), axis=1))


def smoothed(row: np.ndarray, beta: float, degree: int, points: int) -> np.ndarray:
    """K * mu over its mean, on a grid around the circle."""
    kernel = np.cumprod(_quotients(beta, degree)) * np.sqrt(2)
    waves = np.concatenate([[1.0], kernel * (row[1 : degree + 1] - 1j * row[degree + 1 :]) / 2])
    return np.fft.irfft(waves, points) * points


def _quotients(beta: float, degree: int) -> np.ndarray:
    """I_k/I_(k-1) at beta for k = 1, ..., degree."""
    k = np.arange(1, degree + 1)
    rates = theory.growth_rates(beta, 2, k)
    multipliers = np.concatenate([[1.0], beta * rates / k**2])  # lambda_k = k^2 I_k/(beta I_0)
    return np.asarray(multipliers[1:] / multipliers[:-1])


def linear_times(part: xr.Dataset) -> np.ndarray:
    """Frames at which every run is resolved and the root mean square of rho - 1 is at most LINEAR."""
    with np.errstate(invalid="ignore"):
        return np.flatnonzero((part["size"].values <= LINEAR).all(axis=0))


def _mean(counts: Any) -> tuple[float, float]:
    """Mean and standard error; counts that are all alike have that of all but one."""
    values = np.asarray(counts, dtype=np.float64)
    return float(values.mean()), float(max(values.std(ddof=1) / np.sqrt(values.size), 1 / values.size))


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """M(t) in the linear phase, for white noise and for tokens; k_max from the smallest noise; the trend."""
    made, beta, top = [], parameters.beta, int(theory.dominant_degree(parameters.beta, 2))
    for name, part in data.items():
        rows = []
        for at in linear_times(part):
            t, (found, error) = float(part["time"][at]), _mean(part["modes"].values[:, at])
            square = float(np.mean(part["size"].values[:, at] ** 2))
            rows.append((found, float(theory.linear_modes(t, beta)), 4 * error + square * top, t))
        found, expected, tolerance, t = max(rows, key=lambda row: share_used(*row[:3]))
        what = f"{parameters.tokens} iid tokens" if name == "tokens" else f"white noise of size 1e-{name[3:]}"
        statement = f"{what}: M(t) modes while it is linear (worst of {len(rows)} times: t = {t:g})"
        source = (
            f"4 standard errors of {parameters.seeds} seeds; the mean square of ρ - 1, times k_max (±W weigh equal)"
        )
        made.append(Claim.equal(statement, expected, found, tolerance, source))
    finals = {x: data[f"eps{x:g}"]["final"].values for x in sorted(parameters.exponents)}
    least, most = min(finals), max(finals)
    found, error = _mean(finals[most])
    at = int(linear_times(data[f"eps{most:g}"])[-1])
    left = abs(float(theory.linear_modes(float(data[f"eps{most:g}"]["time"][at]), beta)) - top)
    statement = f"white noise of size 1e-{most:g}: the number of clusters at the end is k_max"
    source = "4 standard errors; M(t) - k_max at the end of the linear phase"
    made.append(Claim.equal(statement, top, found, 4 * error + left, source))
    hits = {x: _mean(values == top) for x, values in finals.items()}
    gap, spread = hits[most][0] - hits[least][0], np.hypot(hits[most][1], hits[least][1])
    statement = f"more runs end with k_max clusters from 1e-{most:g} than from 1e-{least:g}, less 2 standard errors"
    source = f"shares {hits[most][0]:.2f} and {hits[least][0]:.2f} of {parameters.seeds} runs"
    made.append(Claim.at_least(statement, 0.0, gap - 2 * spread, 0.0, source))
    far = [_mean(np.abs(values - top)) for values in finals.values()]
    falls = all(after[0] - before[0] < 2 * np.hypot(after[1], before[1]) for before, after in itertools.pairwise(far))
    words = ", ".join(f"1e-{x:g}: {distance:.2f}" for x, (distance, _) in zip(finals, far, strict=True))
    statement = "the mean distance of the number of clusters from k_max does not rise as the fluctuation shrinks"
    made.append(Claim.true(statement, falls, words, "2 standard errors of each difference"))
    return made


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """How many clusters a nearly uniform density chooses on the circle, softmax attention.

    (a) Number of modes against time (mean over seeds, bars of two standard errors, while all runs are resolved) for
    several sizes eps of white noise; line: M(t) of the linear theory. (b) The smoothed density when its first cluster
    is too sharp to be resolved, one run for each eps. (c) Number of clusters then (area: share of seeds; bars: mean and
    two standard errors); squares: M at the end of the linear phase; triangle: from iid tokens. Levels: M(0) and k_max.
    """
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 2.7))
        axes = fig.subplots(1, 3, width_ratios=(1.25, 1.0, 1.0))
        _draw_times(axes[0], parameters, data)
        _draw_smoothed(axes[1], parameters, data)
        _draw_finals(axes[2], parameters, data)
        for letter, one in zip("abc", axes, strict=True):
            one.set_title(f"({letter})", loc="left", fontweight="bold")
        return fig


def _levels(axes: Any, beta: float) -> None:
    axes.axhline(float(theory.expected_modes(beta)), color=GREY, lw=0.8, ls=":")
    axes.axhline(int(theory.dominant_degree(beta, 2)), color=GREY, lw=0.8, ls="--")


def _ordered(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[tuple[float, xr.Dataset]]:
    return [(x, data[f"eps{x:g}"]) for x in sorted(parameters.exponents)]


def _draw_times(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    cases = _ordered(parameters, data)
    last = max(float(part["time"][-1]) for _, part in cases)
    t = np.concatenate([[0.0], np.geomspace(0.3, last, 300)])
    axes.plot(t + 1, theory.linear_modes(t, parameters.beta), color=INK, lw=1.0, label="$M(t)$")
    for (x, part), colour in zip(cases, COLOURS, strict=False):
        resolved = np.flatnonzero(np.isfinite(part["modes"].values).all(axis=0))
        shown = np.unique(np.round(np.geomspace(1, len(resolved), 14)).astype(int)) - 1
        times = part["time"].values[shown]
        found = np.array([_mean(part["modes"].values[:, at]) for at in shown])
        axes.errorbar(times + 1, found[:, 0], 2 * found[:, 1], fmt="o", ms=3, lw=0.8, color=colour,
                      label=rf"$\varepsilon = 10^{{-{x:g}}}$")  # fmt: skip
    _levels(axes, parameters.beta)
    axes.set_xscale("log")
    axes.set_xlabel("$1 + $ time $t$")
    axes.set_ylabel("number of modes")
    axes.legend(loc="lower right", handletextpad=0.3)


def _draw_smoothed(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    cases = _ordered(parameters, data)
    for index, (_, part) in enumerate(cases):
        values = part["smoothed"].values[0]
        angles = np.linspace(0, 2 * np.pi, len(values), endpoint=False)
        height = 0.8 * (values - values.min()) / np.ptp(values)
        axes.plot(angles, index + height - 0.4, color=COLOURS[index], lw=0.9)
    axes.set_yticks(range(len(cases)), [f"$10^{{-{x:g}}}$" for x, _ in cases])
    axes.set_xticks([0, np.pi, 2 * np.pi], ["0", r"$\pi$", r"$2\pi$"])
    axes.set_xlabel(r"angle $\theta$")
    axes.set_ylabel(r"$K * \mu$ at the end, by $\varepsilon$")


def _draw_finals(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    for index, (_, part) in enumerate(_ordered(parameters, data)):
        colour, finals = COLOURS[index], part["final"].values
        counts, shares = np.unique(finals, return_counts=True)
        axes.scatter(np.full(len(counts), index), counts, s=150 * shares / len(finals), color=colour, alpha=0.35, lw=0)
        found, error = _mean(finals)
        axes.errorbar(index, found, 2 * error, fmt="o", ms=3.5, lw=1.0, color=colour)
        t = float(part["time"][linear_times(part)[-1]])
        axes.plot(index + 0.22, theory.linear_modes(t, parameters.beta), "s", ms=3.5, mfc="none", mec=INK, mew=0.8)
    if "tokens" in data:
        found, error = _mean(data["tokens"]["final"].values)
        where = float(np.interp(0.5 * np.log10(parameters.tokens), sorted(parameters.exponents),
                                np.arange(len(parameters.exponents))))  # fmt: skip
        axes.errorbar(where - 0.22, found, 2 * error, fmt="^", ms=4, lw=1.0, color=INK, mfc="none")
    _levels(axes, parameters.beta)
    axes.set_xticks(range(len(parameters.exponents)), [f"$10^{{-{x:g}}}$" for x in sorted(parameters.exponents)])
    axes.set_xlim(-0.6, len(parameters.exponents) - 0.4)
    axes.set_xlabel(r"size $\varepsilon$ of the fluctuation")
    axes.set_ylabel("clusters at the end")

"""The distance of n tokens to the density falls like n^(-1/2), with the constant of the linearised flow.

As n grows the measure of iid tokens follows the continuity equation of its density (arXiv:2312.10794 for attention;
propagation of chaos: arXiv:2203.00446). Sampling noise of size n^(-1/2) is carried by the linearised equation along the
evolving density (Braun and Hepp, Commun. Math. Phys. 56, 1977): where the density is unstable it is amplified, so that
the constant at a later time is not the one that sampling starts with.

Shown: W_1 on the circle, softmax (SA) and unnormalised (USA0) attention, from the density 1 + cos(theta)/2: the mean at
n and 4n, the constant against a Gaussian field carried by the linearised flow, and seed by seed against the linearised
flow from the very same tokens. Quiet tokens (at the quantiles (i + 1/2)/n) stay at the distance pi/(2n), whatever the
time: their noise is a sawtooth that no token feels. On S^2, where W_1 of iid tokens has a factor sqrt(log n), a
distance by smooth observables. Not shown: times at which noise has grown to the size of the density, where n tokens
choose their own clusters.

Rate and constant are those of small noise. Beforehand, from the linearised flow alone, sizes and times are left out at
which the square of the noise's share of the density (`carried_noise`) exceeds a standard error of the mean W_1: that is
the order of what linearisation misses. They are named, with what was seen there: W_1 lies below the constant. The rule
and the seeds were fixed after a first look at other seeds, with which they share nothing.
"""

import dataclasses
import functools
import itertools
from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments.claim import Claim
from attnflow.experiments.gallery._propagation_of_chaos_seeds import Summary, noisy_claims
from attnflow.experiments.study import Study
from attnflow.fields import Attention, Softmax, Unnormalised
from attnflow.flows import At, Fixed, advance, solve
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
    wasserstein_circle,
)
from attnflow.plots.style import PAGE, styled
from attnflow.sums.circle import Circle
from attnflow.sums.series import needed_degree
from attnflow.tokens import Tokens

PAPERS = ("arXiv:2312.10794", "arXiv:2203.00446")

MODELS = {"SA": Softmax(), "USA0": Unnormalised()}
SUMS = 1e-12
"""Error of the kernel in fast sums; its largest value is 1."""


@dataclasses.dataclass(frozen=True)
class Parameters:
    """What is simulated."""

    beta: float = 9.0
    amplitude: float = 0.5
    """The density is 1 + amplitude cos(theta), or 1 + amplitude z on S^2."""
    degree: int = 96
    sizes: tuple[int, ...] = (1000, 4000, 16000, 64000, 256000, 1024000)
    seeds: tuple[int, ...] = (192, 96, 48, 24, 16, 8)
    """How many at each size."""
    first_seed: int = 5_000_000
    sister_sizes: tuple[int, ...] = (4000, 16000, 64000)
    sister_seeds: tuple[int, ...] = (64, 32, 16)
    """The same for USA0."""
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
    sphere_sizes: tuple[int, ...] = (400, 1600, 6400)
    sphere_seeds: tuple[int, ...] = (64, 48, 32)
    sphere_until: float = 2.0
    observables: int = 4
    """The highest degree of the observables on S^2."""


QUICK = Parameters(
    degree=48, sizes=(2000, 8000), seeds=(24, 24), sister_sizes=(), sister_seeds=(), until=(2.0,), frames=2, steps=6,
    samples=1024, quiet_sizes=(500, 2000), shifts=2, sphere_sizes=(), sphere_seeds=(),
)  # fmt: skip


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """The linearised flow, distances of iid and of quiet tokens, and observables on S^2."""
    data: dict[str, xr.Dataset] = {}
    work = [(model, n, count) for model in MODELS for n, count in _sizes(parameters, model)]
    cost = np.cumsum([0] + [n * count + 1000 * count for _, n, count in work])
    for model in dict.fromkeys(model for model, _, _ in work):
        study.progress(f"{model}: the linearised flow", 0.0)
        data[f"linear-{model}"] = study.part(f"linear-{model}", functools.partial(linear, model, parameters))
    for (model, n, count), done in zip(work, cost, strict=False):
        flow = _flow(parameters, data[f"linear-{model}"])

        def make(model: str = model, n: int = n, count: int = count, flow: Any = flow, done: Any = done) -> xr.Dataset:
            rows = []
            for seed in range(count):
                share = 0.05 + 0.8 * (done + seed * (n + 1000)) / cost[-1]
                study.progress(f"{model}: {n} tokens, seed {seed + 1} of {count}", share)
                tokens = sample(
                    _density(parameters, 1), n, parameters.first_seed + n + seed
                )  # no part of a larger sample
                rows.append(distances(model, tokens, flow, parameters))
            return xr.Dataset({name: (("seed", "time"), [row[name] for row in rows]) for name in rows[0]})

        data[f"tokens-{model}-{n}"] = study.part(f"tokens-{model}-{n}", make)
    study.progress("quiet tokens", 0.87)
    data["quiet"] = study.part("quiet", functools.partial(rest, _flow(parameters, data["linear-SA"]), parameters))
    if parameters.sphere_sizes:
        study.progress("observables on S^2: the linearised flow", 0.9)
        data["sphere-linear"] = study.part("sphere-linear", functools.partial(sphere_linear, parameters))
        coefficients = data["sphere-linear"]["coefficients"].values
        for k, (n, count) in enumerate(zip(parameters.sphere_sizes, parameters.sphere_seeds, strict=True)):
            study.progress(f"observables on S^2: {n} tokens", 0.92 + 0.02 * k)
            make_sphere = functools.partial(sphere, n, count, coefficients, parameters)
            data[f"sphere-{n}"] = study.part(f"sphere-{n}", make_sphere)
    return data


def linear(model: str, parameters: Parameters) -> xr.Dataset:
    """The linearised flow at twice as many times, the constants of it, and the error of the tokens' time steps."""
    field, times = _field(model, parameters), _times(model, parameters)
    fine = np.unique(np.concatenate([times, (times[1:] + times[:-1]) / 2]))
    flow = fluctuations(field, _density(parameters), fine)
    expected = expected_distance(flow, samples=parameters.samples)
    tokens = quiet(_density(parameters, 1), _sizes(parameters, model)[0][0])
    halves = [_moved(model, tokens, parameters, k * parameters.steps)[-1].positions for k in (1, 2)]
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
            "quadrature": ("time", [quadrature_error(flow.density(2 * k)) for k in range(len(times))]),
        },
        {"fine": fine, "time": times},
    )


def distances(model: str, tokens: Tokens, flow: Fluctuations, parameters: Parameters) -> dict[str, np.ndarray]:
    """W_1 of tokens to the density, through time, and as the linearised flow has it."""
    frames = _moved(model, tokens, parameters, parameters.steps)
    measured = [wasserstein_circle(frame, flow.density(k)) for k, frame in enumerate(frames)]
    return {"measured": np.array(measured), "linear": linearised_distance(flow, tokens)}


def rest(flow: Fluctuations, parameters: Parameters) -> xr.Dataset:
    """W_1 of quiet tokens, with steps four times as short."""
    found = [
        [
            [
                wasserstein_circle(frame, flow.density(k))
                for k, frame in enumerate(_moved("SA", _quiet(n, shift, parameters), parameters, 4 * parameters.steps))
            ]
            for shift in range(parameters.shifts)
        ]
        for n in parameters.quiet_sizes
    ]
    labels = {"n": list(parameters.quiet_sizes), "time": _times("SA", parameters)}
    return xr.Dataset({"measured": (("n", "shift", "time"), found)}, labels)


def sphere_linear(parameters: Parameters) -> xr.Dataset:
    """The density on S^2 and the root of n E D^2 by the linearised flow, from rings of latitude."""
    zonal = perturbed(ZonalBasis(3, parameters.sphere_degree // 2), 1, parameters.amplitude)
    starts = quadrature(zonal, copies=parameters.observables // 4 + 1)
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
    for seed in range(count):
        flow = solve(
            Attention(parameters.sphere_beta), sample(start, n, parameters.first_seed + n + seed), times[-1],
            save=At(times[1:].tolist()), method=Fixed(0.5),
        )  # fmt: skip
        rows.append(
            [
                observable_distance(flow.tokens(k), density.moved(c), parameters.observables)
                for k, c in enumerate(coefficients)
            ]
        )
    return xr.Dataset({"measured": (("seed", "time"), rows)}, {"time": times})


def _moved(model: str, tokens: Tokens, parameters: Parameters, steps: int) -> list[Tokens]:
    """The tokens at all times."""
    times, frames = _times(model, parameters), [tokens]
    tol = 4 * SUMS * tokens.n  # for a token that would see no other; those here see the whole density
    needed = needed_degree([Exponential(parameters.beta)], 2, tokens, tol)
    assert needed is not None
    sums = Circle(tol, needed[0], guarded=False)
    field = Attention(parameters.beta, normaliser=MODELS[model], sum=sums)
    method = Fixed(times[-1] / steps)
    for t0, t1 in itertools.pairwise(times):
        frames.append(advance(field, frames[-1], t0, t1, method))
    return frames


def _quiet(n: int, shift: int, parameters: Parameters) -> Tokens:
    return quiet(_density(parameters, 1), n, seed=shift)


def _field(model: str, parameters: Parameters) -> Attention:
    return Attention(parameters.beta, normaliser=MODELS[model])


def _density(parameters: Parameters, degree: int | None = None) -> Any:
    return perturbed(CircleBasis(parameters.degree if degree is None else degree), 1, parameters.amplitude)


def _times(model: str, parameters: Parameters) -> np.ndarray:
    return np.linspace(0, parameters.until[list(MODELS).index(model)], parameters.frames + 1)


def _sphere_times(parameters: Parameters) -> np.ndarray:
    return np.arange(0.0, parameters.sphere_until + 0.5)


def _sizes(parameters: Parameters, model: str) -> list[tuple[int, int]]:
    pairs = (
        (parameters.sizes, parameters.seeds) if model == "SA" else (parameters.sister_sizes, parameters.sister_seeds)
    )
    return list(zip(*pairs, strict=True))


def _flow(parameters: Parameters, part: xr.Dataset) -> Fluctuations:
    """The linearised flow at the times of the tokens, from what was stored."""
    density, n = _density(parameters), part.sizes["start"]
    theta = 2 * np.pi * np.arange(n) / n
    starts = Tokens(np.stack([np.cos(theta), np.sin(theta)], axis=1), density(theta))
    kept = part.isel(fine=slice(None, None, 2))
    names = ("coefficients", "moved", "responses")
    coefficients, moved, responses = (kept[name].values for name in names)
    return Fluctuations(density, kept["fine"].values, coefficients, starts, moved, responses)


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Ratios, constants, amplification and the linearised flow seed by seed; quiet tokens; observables on S^2."""
    made = []
    for model in (model for model in MODELS if f"linear-{model}" in data):
        made += noisy_claims(model, Summary.of(_sizes(parameters, model), data, model), data[f"linear-{model}"])
    made += _restful(parameters, data)
    return made + (_observed(parameters, data) if parameters.sphere_sizes else [])


def _restful(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """The noise of quiet tokens is a sawtooth of height 1/(2n) in F: W_1 = pi/(2n) to all orders, at all times."""
    part, measured = data["linear-SA"], data["quiet"]["measured"].values
    sizes = np.array(parameters.quiet_sizes)
    scaled = sizes[:, None, None] * measured
    # steps are 4 times as short, of order 4; displaced tokens change W_1 by no more than that
    room = sizes[:, None] * (part["quadrature"].values + float(part["apart"]) / 4**4)
    k, shift, at = np.unravel_index(np.argmax(np.abs(scaled - np.pi / 2) / room[:, None, :]), scaled.shape)
    where = f"n = {sizes[k]}, t = {part['time'].values[at]:g}"
    source = "quadrature, and the steps of the tokens (order 4)"
    statement = f"quiet tokens: n W_1 is pi/2 at all times (worst of {scaled.size}: {where})"
    made = [Claim.equal(statement, np.pi / 2, scaled[k, shift, at], room[k, at], source)]
    span = np.log(sizes[-1] / sizes[0])
    slope = np.mean(np.log(measured[-1, :, -1] / measured[0, :, -1])) / span
    bound = (room[0, -1] + room[-1, -1]) / (np.pi / 2) / span
    statement = f"quiet tokens: W_1 at t = {part['time'].values[-1]:g} falls like n to this power"
    return [*made, Claim.equal(statement, -1.0, slope, bound, source)]


def _observed(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    sizes, seeds = np.array(parameters.sphere_sizes), np.array(parameters.sphere_seeds)
    rows = [data[f"sphere-{n}"]["measured"].values for n in sizes]
    times, constant = data["sphere-linear"]["time"].values, data["sphere-linear"]["constant"].values
    power = np.array([np.mean(r**2, axis=0) for r in rows])
    error = np.array([np.std(r**2, axis=0, ddof=1) for r in rows]) / np.sqrt(seeds)[:, None] / power
    ratios = np.sqrt(power[:-1] / power[1:])
    expected = np.sqrt(sizes[1:] / sizes[:-1])[:, None]
    room = 3 * expected * np.hypot(error[:-1], error[1:]) / 2
    k, at = np.unravel_index(np.argmax(np.abs(ratios - expected) / room), ratios.shape)
    where = f"n = {sizes[k]}, t = {times[at]:g}"
    statement = (
        f"S^2, smooth observables: ratio of the root mean square distance at n and 4n (worst of {ratios.size}: {where})"
    )
    made = [Claim.equal(statement, expected[k, 0], ratios[k, at], room[k, at], "3 standard errors over seeds")]
    scaled, room = np.sqrt(sizes[-1] * power[-1]), 1.5 * error[-1] * np.sqrt(sizes[-1] * power[-1])
    worst = int(np.argmax(np.abs(scaled - constant) / room))
    statement = (
        f"S^2: sqrt(n) times that distance is the linearised flow's (n = {sizes[-1]}, worst time: {times[worst]:g})"
    )
    return [*made, Claim.equal(statement, constant[worst], scaled[worst], room[worst], "3 standard errors over seeds")]


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """The distance between n tokens and the density they follow.

    (a) Mean W_1 of iid tokens on the circle (SA; bars: standard errors; open: noise is not small) and the linearised
    flow (lines, slope -1/2); squares: quiet tokens, dashed: pi/(2n). (b) sqrt(n) W_1 against time where noise is small
    (bars: 3 standard errors) and the linearised flow (lines); dashed: the initial constant. (c) What the linearised
    flow from the same tokens misses, root mean square over seeds; dashed: slope -1/2. (d) S^2: root mean square
    distance by observables, and the linearised flow (lines).
    """
    from attnflow.experiments.gallery import _propagation_of_chaos_figure as panels

    found = {model: Summary.of(_sizes(parameters, model), data, model) for model in MODELS if f"linear-{model}" in data}
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 5.2))
        axes = fig.subplots(2, 2)
        panels.draw_rates(axes[0, 0], found["SA"], data["linear-SA"], data["quiet"])
        panels.draw_constants(axes[0, 1], found, data, parameters.beta)
        panels.draw_departures(axes[1, 0], found["SA"])
        panels.draw_sphere(axes[1, 1], parameters, data)
        for letter, one in zip("abcd", axes.flat, strict=True):
            one.set_title(f"({letter})", loc="left", fontweight="bold")
        return fig

"""Random tokens on the circle condense into fewer clusters than the fastest mode has crests, unless they are very many.

Around the uniform measure the mode of degree k_max, near sqrt(2 beta), grows fastest, and it is tempting to expect as
many clusters (arXiv:2312.10794). But n iid tokens seed all modes alike, and the density that attention smooths has
sqrt(3 beta/2) modes to begin with (arXiv:2412.09080). While fluctuations are small their expected number at time t is
M(t) = sqrt(sum k^4 I_k^2 e^(2 lambda_k t) / sum k^2 I_k^2 e^(2 lambda_k t)). It climbs to k_max in time, but the linear
phase ends at t near log(n)/1.5, and one mode outgrows its neighbours only by t of order beta.

Shown, for softmax attention: M(t) against counts along flows; the number of clusters after condensation, for iid tokens
and for densities with the fluctuations of up to 10^16 of them; and rings seeded with one mode, which give as many
clusters as it has crests, k_max or not. k_max fails for iid tokens in numbers that can be simulated: they give fewer
clusters at beta of 25 and more, and even at 10^16 tokens single runs scatter about it. Not shown: a formula for the
count after condensation (clusters that form close together merge at once, and the count keeps falling); d > 2.

Very many tokens are not simulated one by one: a ring is displaced so that its Fourier coefficients are those of n iid
tokens, independent Gaussians of variance 1/n, in every degree that the kernel sees. Modes are counted where the
velocity of a test particle changes from + to - around the circle; clusters are tokens linked within beta^(-1/2).
"""

import dataclasses
import functools
import math
from typing import Any

import numpy as np
import xarray as xr
from scipy.optimize import brentq

from attnflow import theory
from attnflow.experiments.claim import Claim, share_used
from attnflow.experiments.study import Study
from attnflow.fields import Attention
from attnflow.flows import Fixed, advance
from attnflow.observe import cluster_scale, clusters
from attnflow.plots.style import COLOURS, GREY, INK, PAGE, styled
from attnflow.spaces import Sphere
from attnflow.tokens import Tokens, stack, uniform

PAPERS = ("arXiv:2312.10794", "arXiv:2412.09080")

LEG = 2.0
"""Time between two looks."""
LOOKS = (0.0, 2.0, 4.0, 8.0, 16.0)
"""When modes are counted."""
CONDENSED = 8.0
"""How long clusters have to contract (at rate 1) after fluctuations have reached the size of the mean."""
EARLY = 8.0
"""How long before that the fluctuations count as small: e^(-8 * 0.7) is 0.4%."""


@dataclasses.dataclass(frozen=True)
class Parameters:
    """What is simulated."""

    betas: tuple[float, ...] = (4.0, 8.0, 16.0, 25.0, 49.0, 100.0)
    """Of iid tokens."""
    tokens: int = 400
    density_betas: tuple[float, ...] = (8.0, 25.0, 100.0)
    """Of the densities of very many tokens, and of seeded rings."""
    densities: tuple[float, ...] = (1e4, 1e8, 1e16)
    """How many tokens the fluctuations of a density are those of."""
    ring: int = 192
    """Tokens that carry such a density."""
    seeds: int = 40
    first_seed: int = 100
    """Held-out seeds: the claims were chosen on seeds 0 to 15."""
    step: float = 0.5
    points: int = 1024
    """Test particles around the circle."""


QUICK = Parameters(betas=(25.0,), tokens=96, density_betas=(25.0,), densities=(1e12,), ring=96, seeds=20, points=256)


def run(parameters: Parameters, study: Study) -> xr.Dataset:
    """Numbers of modes at the looks, and of clusters at the end, seed by seed."""
    jobs = [("iid", float(parameters.tokens), beta) for beta in parameters.betas]
    jobs += [("density", size, beta) for size in parameters.densities for beta in parameters.density_betas]
    jobs += [("seeded", math.inf, beta) for beta in parameters.density_betas]

    def make(index: int, start: str, size: float, beta: float) -> xr.Dataset:
        study.progress(f"{start}, {size:g} tokens, beta {beta:g}", index / len(jobs))
        made = _start(start, size, beta, parameters)
        return follow(made, beta, _end(beta, size), parameters).assign(start=start, size=size, beta=beta)

    made = [
        study.part(f"{start}-{size:g}-beta{beta:g}".replace("+", ""), functools.partial(make, k, start, size, beta))
        for k, (start, size, beta) in enumerate(jobs)
    ]
    return xr.concat(made, dim="case")


def _start(start: str, size: float, beta: float, parameters: Parameters) -> Tokens:
    if start == "iid":
        return uniform(Sphere(2), n=parameters.tokens, seed=_seeds(parameters))
    draw = functools.partial(many, size) if start == "density" else functools.partial(one_mode, beta)
    systems = [draw(parameters.ring, seed) for seed in _seeds(parameters)]
    return stack("seed", _seeds(parameters), systems)


def _seeds(parameters: Parameters) -> range:
    return range(parameters.first_seed, parameters.first_seed + parameters.seeds)


def many(size: float, ring: int, seed: int) -> Tokens:
    """A ring with the fluctuations of `size` iid tokens: density 1 + sum_k 2 (a_k cos + b_k sin) by displacement."""
    top = ring // 3
    a, b = np.random.default_rng([seed, 1]).standard_normal((2, top)) * np.sqrt(0.5 / size)
    k, angles = np.arange(1, top + 1), 2 * np.pi * np.arange(ring) / ring
    waves = np.outer(angles, k)
    return _at(angles + np.cos(waves) @ (2 * b / k) - np.sin(waves) @ (2 * a / k))


def one_mode(beta: float, ring: int, seed: int) -> Tokens:
    """A ring seeded with one mode of relative density 1e-3 and random phase: k_max, or one less or more, by turns."""
    k = seeded_degree(beta, seed)
    angles = 2 * np.pi * np.arange(ring) / ring
    return _at(angles + 1e-3 / k * np.sin(k * angles + np.random.default_rng([seed, 2]).uniform(0, 2 * np.pi)))


def seeded_degree(beta: float, seed: int) -> int:
    """The degree that ring number `seed` is seeded with."""
    return int(theory.dominant_degree(beta, 2)) + (seed + 1) % 3 - 1


def _at(angles: np.ndarray) -> Tokens:
    return Tokens(np.stack([np.cos(angles), np.sin(angles)], axis=1))


def linear_time(beta: float, size: float) -> float:
    """When the smoothed fluctuations of `size` tokens reach the mean, by linear theory (12 for a seeded mode).

    The root t of sum_k 2 (I_k/I_0)^2 e^(2 lambda_k t) = size.
    """
    if math.isinf(size):
        return 12.0
    k = np.arange(1, 30 + int(10 * np.sqrt(beta)))
    rates = theory.growth_rates(beta, 2, k)
    weights = 2 * (beta * rates / k**2) ** 2  # (I_k/I_0)^2
    return float(brentq(lambda t: np.log(np.sum(weights * np.exp(2 * rates * t)) / size), 0.0, 100.0))


def _end(beta: float, size: float) -> float:
    return LEG * math.ceil((linear_time(beta, size) + CONDENSED) / LEG)


def follow(tokens: Tokens, beta: float, until: float, parameters: Parameters) -> xr.Dataset:
    """The flow of all seeds to `until`, leg by leg."""
    field = Attention(beta)
    modes = {}
    for t in np.arange(0.0, until + LEG / 2, LEG):
        if t > 0:
            tokens = advance(field, tokens, 0.0, LEG, Fixed(parameters.step))
        if t in LOOKS:
            modes[float(t)] = count_modes(field, tokens, parameters.points)
    found = [clusters(tokens.member(seed=k), scale=cluster_scale(beta)) for k in range(parameters.seeds)]
    rows = np.array([modes.get(t, np.full(parameters.seeds, np.nan)) for t in LOOKS])
    return xr.Dataset(
        {
            "modes": (("time", "seed"), rows),
            "clusters": ("seed", np.array([one.count for one in found])),
            "condensed": ("seed", np.array([one.condensed for one in found])),
            "until": until,
        },
        {"time": list(LOOKS), "seed": list(_seeds(parameters))},
    )


def count_modes(field: Attention, tokens: Tokens, points: int) -> np.ndarray:
    """Modes of the smoothed density: where the velocity changes from + to - around the circle, for every seed."""
    angles = 2 * np.pi * (np.arange(points) + 0.5) / points
    around = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    forward = np.stack([-np.sin(angles), np.cos(angles)], axis=1)
    velocity = np.sum(np.asarray(field.velocity(0.0, around, tokens)) * forward, axis=-1)
    return np.sum((velocity > 0) & (np.roll(velocity, -1, axis=-1) <= 0), axis=-1)


def mean(counts: Any) -> tuple[float, float]:
    """Mean and standard error; counts are whole numbers, so the variance is raised by 1/seeds: one seed off by one."""
    values = np.asarray(counts, dtype=np.float64)
    return float(values.mean()), float(np.sqrt((values.var(ddof=1) + 1 / values.size) / values.size))


def cases(data: xr.Dataset, start: str) -> list[xr.Dataset]:
    """The cases of one kind of start."""
    return [data.isel(case=k) for k in np.flatnonzero(data["start"].values == start)]


def linear_looks(parameters: Parameters, data: xr.Dataset) -> list[tuple[float, float, float, float, float]]:
    """(beta, t, mean number of modes, standard error, M(t)) of the largest density, while fluctuations are small."""
    rows = []
    for case in cases(data, "density"):
        beta, size = float(case["beta"]), float(case["size"])
        for t in LOOKS:
            if size == max(parameters.densities) and t <= linear_time(beta, size) - EARLY:
                rows.append((beta, t, *mean(case["modes"].sel(time=t)), float(theory.linear_modes(t, beta))))
    return rows


def claims(parameters: Parameters, data: xr.Dataset) -> list[Claim]:
    """Modes at the start and in the linear phase; clusters against k_max."""
    made, n, seeds = [], parameters.tokens, f"{parameters.seeds} seeds"
    start = [(float(c["beta"]), *mean(c["modes"].sel(time=0.0))) for c in cases(data, "iid")]
    beta, count, error = max(start, key=lambda row: share_used(row[1], theory.expected_modes(row[0]), row[2]))
    made.append(
        Claim.equal(
            f"{n} iid tokens, t = 0: modes of the smoothed density (worst of {len(start)}: β = {beta:g})",
            float(theory.expected_modes(beta)), count, 4 * error, f"4 standard errors, {seeds}",
        )
    )  # fmt: skip
    looks = linear_looks(parameters, data)
    beta, t, count, error, predicted = max(looks, key=lambda row: share_used(row[2], row[4], row[3]))
    made.append(
        Claim.equal(
            f"density of {max(parameters.densities):.0e} tokens, small fluctuations: M(t) modes "
            f"(worst of {len(looks)}: β = {beta:g}, t = {t:g})",
            predicted, count, 4 * error, f"4 standard errors, {seeds}",
        )
    )  # fmt: skip
    for case in cases(data, "iid"):
        beta, (count, error) = float(case["beta"]), mean(case["clusters"])
        if beta >= 25:
            made.append(
                Claim.at_most(
                    f"{n} iid tokens, β = {beta:g}: clusters at t = {float(case['until']):g} fall short of k_max",
                    float(theory.dominant_degree(beta, 2)), count + 4 * error, 0.0,
                    f"measured: mean {count:.3f} and 4 standard errors, {seeds}",
                )
            )  # fmt: skip
    beta = max(set(parameters.betas) & set(parameters.density_betas))
    few, many_ = (
        mean(next(c for c in cases(data, kind) if float(c["beta"]) == beta and float(c["size"]) == size)["clusters"])
        for kind, size in (("iid", float(n)), ("density", max(parameters.densities)))
    )
    made.append(
        Claim.at_least(
            f"β = {beta:g}: clusters from a density of {max(parameters.densities):.0e} tokens less those of {n} iid",
            0.0, many_[0] - few[0] - 4 * math.hypot(few[1], many_[1]), 0.0,
            f"measured: {many_[0]:.3f} - {few[0]:.3f} less 4 standard errors, {seeds} each",
        )
    )  # fmt: skip
    right = [
        int(case["clusters"].sel(seed=seed)) == seeded_degree(float(case["beta"]), seed)
        for case in cases(data, "seeded")
        for seed in _seeds(parameters)
    ]
    made.append(
        Claim.true(
            "a ring seeded with k_max - 1, k_max or k_max + 1 crests condenses into as many clusters",
            all(right), f"{sum(right)} of {len(right)} rings", "whole numbers",
        )
    )  # fmt: skip
    wide = 1 - data["condensed"].mean("seed")
    one_error = data["clusters"].std("seed", ddof=1) / math.sqrt(parameters.seeds)
    worst = int(np.argmax((wide - one_error).values))
    made.append(
        Claim.at_most(
            "share of runs that end with a cluster wider than β^(-1/2), so that it may be miscounted by one",
            float(one_error.values[worst]), float(wide.values[worst]), 0.0,
            f"one standard error of the mean count, {seeds}: that much a miscount by one could move it (worst case)",
        )
    )  # fmt: skip
    return made


def draw(parameters: Parameters, data: xr.Dataset) -> Any:
    """Softmax attention on the circle; bars: two standard errors (thick), standard deviation over seeds (thin).

    (a) Clusters from iid tokens, and their modes at t = 0. (b) Modes of the smoothed density against time, for the
    density of the most tokens (full; lines: M(t)) and for iid tokens (open). (c) Clusters against the number of tokens,
    iid (open) or of a density (full); lines: M(t) at the end of the linear phase. (d) How often each number is seen.
    """
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 5.0))
        axes = fig.subplots(2, 2)
        _draw_iid(axes[0, 0], parameters, data)
        _draw_modes(axes[0, 1], parameters, data)
        _draw_densities(axes[1, 0], parameters, data)
        _draw_histogram(axes[1, 1], parameters, data)
        for letter, one in zip("abcd", axes.flat, strict=True):
            one.set_title(f"({letter})", loc="left", fontweight="bold")
        return fig


def _bars(axes: Any, x: float, counts: Any, scale: float, colour: str, face: str | None = None, **rest: Any) -> None:
    values = np.asarray(counts, dtype=np.float64) / scale
    middle, error = values.mean(), mean(counts)[1] / scale
    axes.errorbar(x, middle, values.std(ddof=1), color=colour, lw=0.6, fmt="none")
    axes.errorbar(x, middle, 2 * error, color=colour, lw=1.8, fmt="o", ms=4, mfc=face or colour, mew=0.9, **rest)


def _draw_iid(axes: Any, parameters: Parameters, data: xr.Dataset) -> None:
    low, high = min(parameters.betas) / 1.4, 1.4 * max(parameters.betas)
    betas = np.geomspace(low, high, 2000)
    axes.plot(betas, theory.dominant_degree(betas, 2) / np.sqrt(betas), color=GREY, lw=0.7, label=r"$k_{\max}$")
    axes.plot(betas, theory.expected_modes(betas) / np.sqrt(betas), color=INK, lw=1.0, label="$M(0)$")
    axes.axhline(np.sqrt(2), color=GREY, lw=0.8, ls="--")
    axes.axhline(np.sqrt(1.5), color=INK, lw=0.8, ls="--")
    for level, words, colour in ((np.sqrt(2), r"$\sqrt{2}$", GREY), (np.sqrt(1.5), r"$\sqrt{3/2}$", INK)):
        axes.annotate(
            words, (1.0, level), xycoords=("axes fraction", "data"), xytext=(3, 0), textcoords="offset points",
            fontsize=7, va="center", color=colour, annotation_clip=False,
        )  # fmt: skip
    for k, case in enumerate(cases(data, "iid")):
        beta = float(case["beta"])
        labels = ("clusters", "modes at $t = 0$") if k == 0 else (None, None)
        _bars(axes, beta * 1.03, case["clusters"], np.sqrt(beta), COLOURS[4], label=labels[0])
        _bars(axes, beta / 1.03, case["modes"].sel(time=0.0), np.sqrt(beta), COLOURS[0], "white", label=labels[1])
    axes.set(xscale="log", xlim=(low, high), ylim=(0.9, 2.0))
    axes.set_xlabel(r"inverse temperature $\beta$")
    axes.set_ylabel(rf"number / $\sqrt{{\beta}}$   ({parameters.tokens} iid tokens)")
    axes.legend(loc="upper right", ncols=2)


def _draw_modes(axes: Any, parameters: Parameters, data: xr.Dataset) -> None:
    times = np.linspace(0, max(LOOKS) + 1, 200)
    for k, (beta, colour) in enumerate(
        zip(parameters.density_betas, (COLOURS[0], COLOURS[4], COLOURS[2]), strict=False)
    ):
        scale, shift = float(theory.dominant_degree(beta, 2)), 0.25 * (k - 1)
        axes.plot(times, theory.linear_modes(times, beta) / scale, color=colour, lw=1.0)
        for t, count, error in ((row[1], row[2], row[3]) for row in linear_looks(parameters, data) if row[0] == beta):
            label = rf"$\beta = {beta:g}$" if t == 0 else None
            axes.errorbar(t + shift, count / scale, 2 * error / scale, color=colour, fmt="o", ms=4, lw=1.4, label=label)
        for case in (c for c in cases(data, "iid") if float(c["beta"]) == beta):
            shown = [t for t in LOOKS if t <= float(case["until"])]
            found = [mean(case["modes"].sel(time=t))[0] / scale for t in shown]
            axes.plot(shown, found, "o:", color=colour, ms=4, mfc="white", mew=0.9, lw=0.7)
    axes.axhline(1, color=GREY, lw=0.8, ls="--")
    axes.set_ylim(0.78, 1.06)
    axes.set_xlabel("time $t$")
    axes.set_ylabel(r"modes / $k_{\max}$")
    axes.legend(loc="lower right", ncols=3)


def _draw_densities(axes: Any, parameters: Parameters, data: xr.Dataset) -> None:
    sizes = np.geomspace(min(parameters.tokens, *parameters.densities) / 3, 3 * max(parameters.densities), 60)
    for k, (beta, colour) in enumerate(
        zip(parameters.density_betas, (COLOURS[0], COLOURS[4], COLOURS[2]), strict=False)
    ):
        scale = float(theory.dominant_degree(beta, 2))
        end = [float(theory.linear_modes(linear_time(beta, size), beta)) / scale for size in sizes]
        axes.plot(sizes, end, color=colour, lw=1.0)
        for case in cases(data, "iid") + cases(data, "density"):
            if float(case["beta"]) == beta:
                open_ = "white" if str(case["start"].values) == "iid" else None
                _bars(axes, float(case["size"]) * 1.8 ** (k - 1), case["clusters"], scale, colour, open_)
        axes.plot([], [], "-o", color=colour, ms=4, lw=1.0, label=rf"$\beta = {beta:g}$")
    axes.axhline(1, color=GREY, lw=0.8, ls="--")
    axes.set_xscale("log")
    axes.set_ylim(0.6, 1.15)
    axes.set_xlabel("number of tokens $n$")
    axes.set_ylabel(r"clusters / $k_{\max}$")
    axes.legend(loc="lower right")


def _draw_histogram(axes: Any, parameters: Parameters, data: xr.Dataset) -> None:
    beta = max(set(parameters.betas) & set(parameters.density_betas))
    kinds = (
        ("iid", float(parameters.tokens), f"{parameters.tokens} iid tokens", COLOURS[4], -0.2),
        (
            "density",
            max(parameters.densities),
            rf"density of $10^{{{math.log10(max(parameters.densities)):.0f}}}$",
            COLOURS[0],
            0.2,
        ),
    )
    for start, size, words, colour, shift in kinds:
        case = next(c for c in cases(data, start) if float(c["beta"]) == beta and float(c["size"]) == size)
        values, counts = np.unique(case["clusters"].values, return_counts=True)
        axes.bar(values + shift, counts / parameters.seeds, 0.38, color=colour, label=words)
    axes.axvline(np.sqrt(1.5 * beta), color=INK, lw=0.9, ls="--", label=r"$\sqrt{3\beta/2}$")
    axes.axvline(float(theory.dominant_degree(beta, 2)), color=GREY, lw=0.9, ls="--", label=r"$k_{\max}$")
    axes.set_xlabel(rf"number of clusters   ($\beta = {beta:g}$)")
    axes.set_ylabel("share of seeds")
    axes.legend(loc="upper left")

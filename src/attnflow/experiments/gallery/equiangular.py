"""Orthonormal tokens follow one scalar ODE, and iid tokens in high dimension follow it up to d^(-1/2).

If all overlaps <x_i, x_j> are equal they stay so, and the common one, gamma(t), has a closed form for softmax attention
(SA) and for its gradient-flow variant (USA0) (arXiv:2312.10794, section 6). Overlaps of iid tokens start with the
standard deviation d^(-1/2), hence the theorem that they stay near gamma(t) when d is large.

Shown: orthonormal tokens against the closed form, to the accuracy of the integrator; iid tokens at the time at which
gamma is 1/2: the root mean square of <x_i, x_j> - gamma falls like d^(-1/2), and its size is that of linear response.
For n tokens the linearised flow of the overlaps commutes with permutations, so a deviation has three parts, its mean,
its row sums and the rest, and each grows by one factor, written out in `growth` below. Not shown: the constants of the
theorem, which hold with high probability for all times.

n tokens move within their span, whatever d is. So iid tokens of S^(d-1) are turned into R^n before they flow, and one
compiled program serves all d; that this changes nothing is a claim. Finite d shows up as a factor 1 + O(1/d), which is
fitted; its constant grows with beta, so that d = 16 says little about the limit for beta above 3.
"""

import dataclasses
import functools
from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.claim import Claim, worst
from attnflow.experiments.study import Study
from attnflow.fields import Attention, Softmax, Unnormalised
from attnflow.flows import Fixed, advance
from attnflow.plots.style import COLOURS, GREY, INK, PAGE, styled
from attnflow.spaces import Sphere
from attnflow.special.numbers import Numbers
from attnflow.tokens import Tokens, orthonormal, uniform

PAPERS = ("arXiv:2312.10794",)

MODELS = {"SA": Softmax(), "USA0": Unnormalised()}
SUBSTEPS = 8
"""Steps between two frames of orthonormal tokens."""
STEPS = 128
"""Steps of iid tokens."""
EPS = float(np.finfo(float).eps)
ERRORS = 4.0
"""Standard errors that a random number may be off."""


@dataclasses.dataclass(frozen=True)
class Parameters:
    """What is simulated."""

    n: int = 8
    betas: tuple[float, ...] = (0.0, 1.0, 2.0, 4.0, 6.0)
    """Of orthonormal tokens."""
    step: float = 0.05
    """Of orthonormal tokens; half of it gives the result, the difference gives the tolerance."""
    dims: tuple[int, ...] = (16, 32, 64, 128, 256, 512, 1024)
    seeds: int = 400
    iid_betas: tuple[float, ...] = (0.0, 1.0, 2.0, 3.0)
    iid_models: tuple[str, ...] = ("SA", "USA0")
    overlap: float = 0.5
    """Of gamma, where iid tokens are looked at."""
    direct: int = 16
    """The dimension in which iid tokens flow without being turned into their span first; 0: none."""


QUICK = Parameters(betas=(1.0, 4.0), dims=(16, 64, 256, 1024), seeds=64, iid_betas=(1.0,), iid_models=("SA",), direct=0)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Overlaps of orthonormal tokens along the flow, and deviations of iid tokens."""
    found = {}
    for k, model in enumerate(MODELS):
        make = functools.partial(_orthonormal, parameters, model, study, k)
        found[f"orthonormal-{model}"] = study.part(f"orthonormal-{model}", make)
    for k, model in enumerate(parameters.iid_models):
        found[f"iid-{model}"] = study.part(f"iid-{model}", functools.partial(_iid, parameters, model, study, k))
    if parameters.direct:
        study.progress(f"iid tokens in R^{parameters.direct} and in their span", 0.95)
        found["direct"] = study.part("direct", functools.partial(_direct, parameters))
    return found


def _orthonormal(parameters: Parameters, model: str, study: Study, place: int) -> xr.Dataset:
    """Mean and spread of the overlaps at every frame, with the step and with half the step."""
    n, span, rows = parameters.n, SUBSTEPS * parameters.step, []
    for k, beta in enumerate(parameters.betas):
        study.progress(f"orthonormal tokens, {model}, beta = {beta:g}", (place + k / len(parameters.betas)) / 4)
        field = Attention(beta, normaliser=MODELS[model])
        frames = int(np.ceil(1.1 * float(theory.equiangular_time(0.99, beta, n, model=model)) / span))
        coarse = fine = orthonormal(Sphere(n), n=n, seed=0)
        for frame in range(1, frames + 1):
            coarse = advance(field, coarse, 0.0, span, Fixed(parameters.step))
            for _ in range(2):
                fine = advance(field, fine, 0.0, span / 2, Fixed(parameters.step / 2))
            seen = pair_overlaps(fine.positions)
            rows.append((beta, frame * span, seen.mean(), pair_overlaps(coarse.positions).mean(), np.ptp(seen)))
    names = ("beta", "time", "overlap", "coarse", "spread")
    return xr.Dataset({name: ("frame", column) for name, column in zip(names, np.array(rows).T, strict=True)})


def _iid(parameters: Parameters, model: str, study: Study, place: int) -> xr.Dataset:
    """Per seed the mean square of overlap - gamma, at the time at which gamma is `overlap`."""
    tokens = in_span(parameters.n, parameters.dims, parameters.seeds)
    squares, means = [], []
    for k, beta in enumerate(parameters.iid_betas):
        study.progress(f"iid tokens, {model}, beta = {beta:g}", 0.5 + (place + k / len(parameters.iid_betas)) / 4.5)
        seen = pair_overlaps(_at_overlap(parameters, model, beta, tokens).positions)
        squares.append(np.mean((seen - parameters.overlap) ** 2, axis=-1))
        means.append(np.mean(seen, axis=-1))
    dims = ("beta", "d", "seed")
    return xr.Dataset(
        {"square": (dims, np.array(squares)), "mean": (dims, np.array(means))},
        {"beta": list(parameters.iid_betas), "d": list(parameters.dims)},
    )


def _direct(parameters: Parameters) -> xr.Dataset:
    """The largest difference between overlaps of tokens that flow in R^d and of the same tokens in their span."""
    model, beta, d = parameters.iid_models[0], parameters.iid_betas[-1], parameters.direct
    turned = in_span(parameters.n, (d,), 16)
    whole = uniform(Sphere(d), n=parameters.n, seed=range(16))
    seen = [pair_overlaps(_at_overlap(parameters, model, beta, tokens).positions) for tokens in (whole, turned)]
    return xr.Dataset({"difference": np.abs(seen[0] - seen[1][0]).max()}, attrs={"beta": beta, "model": model})


def _at_overlap(parameters: Parameters, model: str, beta: float, tokens: Tokens) -> Tokens:
    until = float(theory.equiangular_time(parameters.overlap, beta, parameters.n, model=model))
    return advance(Attention(beta, normaliser=MODELS[model]), tokens, 0.0, until, Fixed(until / STEPS))


def in_span(n: int, dims: tuple[int, ...], seeds: int) -> Tokens:
    """Iid tokens on S^(d-1), n for every d and seed, turned into R^n: a batch along `d` and `seed`."""
    positions = np.zeros((len(dims), seeds, n, n))
    for k, d in enumerate(dims):
        drawn = np.asarray(uniform(Sphere(d), n=n, seed=range(k * seeds, (k + 1) * seeds)).positions)
        corner = np.linalg.qr(np.swapaxes(drawn, 1, 2), mode="r")
        positions[k, :, :, : min(n, d)] = np.swapaxes(corner, 1, 2)
    return Tokens(positions, space=Sphere(n), dims=("d", "seed"), coordinates=(dims, range(seeds)))


def pair_overlaps(positions: Any) -> np.ndarray:
    """<x_i, x_j> of all pairs i < j, on the last axis."""
    first, second = np.triu_indices(positions.shape[-2], 1)
    return np.asarray(np.sum(positions[..., first, :] * positions[..., second, :], axis=-1))


def speeds(gamma: Numbers, beta: float, n: int, model: str) -> tuple[Numbers, np.ndarray]:
    """(gamma', rates): the speed of the common overlap, and the rates of the three parts of a small deviation.

    With e = exp(-beta (1 - gamma)), c = (1 - gamma)(1 + beta gamma) and the row sums R_i of a deviation D_ij, USA0 has
    D_ij' = (e/n) (2 (beta (1 - gamma^2) - n gamma - c) D_ij + c (R_i + R_j)). R_i + R_j is 2 (n-1) D_ij for a constant
    D, (n-2) D_ij for D_ij = u_i + u_j with sum u = 0, and 0 for the rest. SA divides by Z_i, which changes by
    e beta R_i/n.
    """
    gamma = np.asarray(gamma)[..., None]
    e, c = np.exp(-beta * (1 - gamma)), (1 - gamma) * (1 + beta * gamma)
    rows = np.array([2.0 * (n - 1), n - 2.0, 0.0])
    half = e / n * (1 - gamma) * (1 + (n - 1) * gamma)
    rates = e / n * (2 * (beta * (1 - gamma**2) - n * gamma - c) + c * rows)
    if model == "SA":
        total = (1 + (n - 1) * e) / n
        rates, half = rates / total - half * e * beta / n / total**2 * rows, half / total
    return 2 * half[..., 0], rates


def growth(gamma: float, beta: float, n: int, model: str) -> np.ndarray:
    """Factors by which the mean, the row sums and the rest of a small deviation have grown when 0 has become gamma."""
    nodes, weights = _quadrature()
    points = gamma * (1 + nodes) / 2
    speed, rates = speeds(points, beta, n, model)
    return np.asarray(np.exp(gamma / 2 * np.sum(weights[:, None] * rates / speed[:, None], axis=0)))


@functools.cache
def _quadrature() -> tuple[np.ndarray, np.ndarray]:
    return np.polynomial.legendre.leggauss(60)


def amplitude(gamma: float, beta: float, n: int, model: str) -> float:
    """Limit of sqrt(d) times the root mean square of <x_i, x_j> - gamma; overlaps start uncorrelated, variance 1/d."""
    pairs = n * (n - 1) // 2
    shares = np.array([1, n - 1, pairs - n]) / pairs
    return float(np.sqrt(np.sum(shares * growth(gamma, beta, n, model) ** 2)))


def fit(terms: list[np.ndarray], values: np.ndarray, errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weighted least squares: coefficients of `terms` and their standard errors."""
    matrix = np.stack(terms, axis=1) / errors[:, None]
    covariance = np.linalg.inv(matrix.T @ matrix)
    return covariance @ matrix.T @ (values / errors), np.sqrt(np.diag(covariance))


def log_rms(square: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log of the root of the mean over the last axis (independent seeds), and its standard error."""
    mean, error = square.mean(axis=-1), square.std(axis=-1, ddof=1) / np.sqrt(square.shape[-1])
    return np.log(mean) / 2, error / mean / 2


def compare(parameters: Parameters, part: xr.Dataset, model: str) -> xr.Dataset:
    """Predictions and tolerances beside the frames of orthonormal tokens, one row per beta: the worst frame."""
    rows = []
    for beta in parameters.betas:
        here = part.isel(frame=part["beta"].values == beta)
        predicted = theory.equiangular_overlap(here["time"].values, beta, parameters.n, model=model)
        error = np.abs(here["overlap"].values - predicted)
        # every step rounds overlaps, sums of n products; what that leaves grows as linear response says
        grown = max(growth(gamma, beta, parameters.n, model).max() for gamma in np.linspace(0.05, 0.99, 20))
        rounding = 2 * SUBSTEPS * len(predicted) * parameters.n * EPS * grown
        scheme = np.abs(here["overlap"].values - here["coarse"].values).max() / 15
        rows.append((error.max(), 2 * scheme + rounding, here["spread"].values.max(), rounding))
    names = ("error", "error_tolerance", "spread", "spread_tolerance")
    columns = {name: ("beta", column) for name, column in zip(names, np.array(rows).T, strict=True)}
    return xr.Dataset(columns, {"beta": list(parameters.betas)})


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Per model the worst beta."""
    made = []
    for model in MODELS:
        table = compare(parameters, data[f"orthonormal-{model}"], model)
        for name, words, source in (
            (
                "error",
                "largest |overlap - γ(t)|",
                "twice the error of order 4, from halving the step; round-off, grown",
            ),
            ("spread", "largest difference of two overlaps", "round-off of every step, grown by linear response"),
        ):
            row, label = worst_row(table, table[name].values / table[f"{name}_tolerance"].values)
            made.append(
                Claim.at_most(
                    f"{model}, orthonormal tokens: {words} up to γ = 0.99 ({label})",
                    0.0, float(row[name]), float(row[f"{name}_tolerance"]), source,
                )
            )  # fmt: skip
    if "direct" in data:
        part, d = data["direct"], parameters.direct
        grown = growth(parameters.overlap, part.attrs["beta"], parameters.n, part.attrs["model"]).max()
        made.append(
            Claim.at_most(
                f"iid tokens flow in R^{d} as in their span: largest difference of an overlap", 0.0,
                float(part["difference"]), 4 * STEPS * d * EPS * grown, "round-off of every step, grown",
            )
        )  # fmt: skip
    for model in parameters.iid_models:
        table = exponents(parameters, data[f"iid-{model}"], model)
        source = f"{ERRORS:g} standard errors, {parameters.seeds} seeds per d; finite d is fitted by a term in 1/d"
        for name, words, predicted in (
            ("slope", "d log rms(overlap - γ) / d log d", -0.5),
            ("ratio", "rms(overlap - γ) √d, over that of linear response", 1.0),
        ):
            tolerance = ERRORS * table[f"{name}_error"].values
            row, label = worst_row(table, np.abs(table[name].values - predicted) / tolerance)
            made.append(
                Claim.equal(
                    f"{model}, iid tokens at γ = {parameters.overlap:g}: {words} ({label})",
                    predicted, float(row[name]), ERRORS * float(row[f"{name}_error"]), source,
                )
            )  # fmt: skip
    return made


def exponents(parameters: Parameters, part: xr.Dataset, model: str) -> xr.Dataset:
    """Slope, and amplitude over that of linear response as d grows, for every beta."""
    d, rows = part["d"].values.astype(float), []
    for beta in part["beta"].values:
        value, error = log_rms(part["square"].sel(beta=beta).values)
        one = np.ones_like(d)
        free, free_error = fit([one, np.log(d), 1 / d], value, error)
        expected = np.log(amplitude(parameters.overlap, float(beta), parameters.n, model)) - np.log(d) / 2
        size, size_error = fit([one, 1 / d], value - expected, error)
        rows.append((free[1], free_error[1], np.exp(size[0]), np.exp(size[0]) * size_error[0]))
    names = ("slope", "slope_error", "ratio", "ratio_error")
    columns = {name: ("beta", column) for name, column in zip(names, np.array(rows).T, strict=True)}
    return xr.Dataset(columns, {"beta": part["beta"].values})


def worst_row(table: xr.Dataset, used: np.ndarray) -> tuple[xr.Dataset, str]:
    """The row that uses most of its tolerance (one that is not a number uses all of it), and what to call it."""
    row = table.isel(beta=worst(used)[0])
    return row, f"worst of {table.sizes['beta']}: β = {float(row['beta']):g}"


LINES = {"SA": "-", "USA0": "--"}
FILLS = {"SA": None, "USA0": "white"}


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Tokens with one common overlap, and iid tokens (marks: full SA, open USA0; lines: theory, solid SA, dashed USA0).

    (a) The overlap of orthonormal tokens against time. (b) What the simulation misses, and what it may miss. (c) Root
    mean square of overlap minus gamma for iid tokens, at the time at which gamma is 1/2, SA; lines: linear response.
    (d) Its size: sqrt(d) times the root mean square, extrapolated to infinite d, against beta. Bars: 4 standard errors.
    """
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 5.0))
        axes = fig.subplots(2, 2)
        _draw_overlaps(axes[0, 0], parameters, data)
        _draw_errors(axes[0, 1], parameters, data)
        _draw_deviations(axes[1, 0], parameters, data)
        _draw_amplitudes(axes[1, 1], parameters, data)
        for letter, one in zip("abcd", axes.flat, strict=True):
            one.set_title(f"({letter})", loc="left", fontweight="bold")
        return fig


def _draw_overlaps(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    for beta, colour in zip(parameters.betas, COLOURS, strict=False):
        for model, line in LINES.items():
            part = data[f"orthonormal-{model}"]
            part = part.isel(frame=part["beta"].values == beta)
            last = float(part["time"].max())
            times = np.geomspace(0.2, last, 300)
            axes.plot(
                times, theory.equiangular_overlap(times, beta, parameters.n, model=model), line, color=colour, lw=1
            )
            wanted = np.geomspace(parameters.step * SUBSTEPS, last, 14)
            pick = np.unique(np.searchsorted(part["time"].values, wanted * 0.999))
            pick = pick[pick < part.sizes["frame"]]
            face = FILLS[model] or colour
            axes.plot(part["time"][pick], part["overlap"][pick], "o", ms=3, mec=colour, mfc=face, mew=0.8)
        axes.plot([], [], color=colour, label=rf"$\beta = {beta:g}$")
    axes.plot([], [], "-o", color=INK, ms=3, lw=1.0, label="SA")
    axes.plot([], [], "--o", color=INK, ms=3, lw=1.0, mfc="white", label="USA0")
    axes.set_xscale("log")
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlabel("time $t$")
    axes.set_ylabel(rf"common overlap $\gamma$   ($n = {parameters.n}$)")
    axes.legend(loc="upper left", handlelength=2.4)


def _draw_errors(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    for model in MODELS:
        table = compare(parameters, data[f"orthonormal-{model}"], model)
        shift = 0.06 if model == "USA0" else -0.06
        for name, marker, colour, words in (("error", "s", 0, "overlap"), ("spread", "^", 4, "spread of overlaps")):
            place, ink = table["beta"] + shift, COLOURS[colour]
            label = words if model == "SA" else None
            axes.plot(place, table[f"{name}_tolerance"], "_", ms=8, mew=0.9, color=ink)
            value = np.maximum(table[name], 1e-17)
            axes.plot(place, value, marker, ms=4, mec=ink, mfc=FILLS[model] or ink, mew=0.8, label=label)
    axes.plot([], [], "_", ms=8, mew=0.9, color=INK, label="tolerance")
    axes.set_yscale("log")
    axes.set_ylim(1e-16, 1e-5)
    axes.set_xlabel(r"inverse temperature $\beta$")
    axes.set_ylabel("|measured $-$ predicted|")
    axes.legend(loc="upper left", ncols=3, columnspacing=1.0, handletextpad=0.2)


def _draw_deviations(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    model = parameters.iid_models[0]
    part = data[f"iid-{model}"]
    d = np.geomspace(min(parameters.dims) / 1.3, max(parameters.dims) * 1.3, 2)
    for beta, colour in zip(parameters.iid_betas, COLOURS, strict=False):
        value, error = log_rms(part["square"].sel(beta=beta).values)
        size = amplitude(parameters.overlap, beta, parameters.n, model)
        axes.plot(d, size / np.sqrt(d), LINES[model], color=colour, lw=1.0)
        bars = np.exp(value) * np.expm1(ERRORS * error)
        axes.errorbar(
            part["d"], np.exp(value), bars, fmt="o", ms=3, color=colour, elinewidth=0.7, label=rf"$\beta = {beta:g}$"
        )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_ylim(0.01, 1.0)
    axes.set_xlabel("dimension $d$")
    axes.set_ylabel(rf"rms of overlap $-\ \gamma$   ({model}, $\gamma = {parameters.overlap:g}$)")
    axes.legend(loc="lower left")


def _draw_amplitudes(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    betas = np.linspace(0, max(parameters.iid_betas) + 0.5, 60)
    for model, colour in zip(parameters.iid_models, (COLOURS[0], COLOURS[4]), strict=False):
        sizes = [amplitude(parameters.overlap, float(beta), parameters.n, model) for beta in betas]
        axes.plot(betas, sizes, LINES[model], color=colour, lw=1.0)
        table = exponents(parameters, data[f"iid-{model}"], model)
        unit = np.array([amplitude(parameters.overlap, float(b), parameters.n, model) for b in table["beta"].values])
        axes.errorbar(
            table["beta"], unit * table["ratio"], ERRORS * unit * table["ratio_error"], fmt="o", ms=4, color=colour,
            mfc=FILLS[model] or colour, elinewidth=0.8, label=model,
        )  # fmt: skip
    axes.plot([], [], color=GREY, lw=1.0, label="linear response")
    axes.set_ylim(bottom=0)
    axes.set_xlabel(r"inverse temperature $\beta$")
    axes.set_ylabel(r"$\sqrt{d}\ \times$ rms,  $d \to \infty$")
    axes.legend(loc="upper left")

"""The time at which iid tokens in high dimension collapse is a curve in the (t, beta) plane, and it is predicted.

For d much larger than n, all overlaps of iid tokens go from about 0 to 1 at about one time, which depends on beta. When
the common overlap gamma(t) of orthonormal tokens passes a level has a closed form: that is the transition curve
(arXiv:2312.10794, section 6).

Shown: maps of the mean overlap for a small, a middling and a large d, SA, with the curve overlaid; and how far the
measured curve is from the predicted one. To first order only the mean overlap at the start matters, of variance
2/(n (n-1) d), and a shift of gamma at 0 is a shift of time by that over gamma'(0). So the curve of one draw is off by
about d^(-1/2), with a known constant; the same theory started from the measured mean overlap should be off by 1/d only.
Both exponents and the constant are claims. Not shown: what replaces the transition when d is small (metastable
clusters: the map for the smallest d shows that the curve is wrong there), and other initial distributions.
"""

import dataclasses
import functools
from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.axes import Along
from attnflow.experiments.claim import Claim
from attnflow.experiments.gallery.equiangular import ERRORS, fit, in_span, log_rms, worst_row
from attnflow.experiments.study import Study
from attnflow.fields import Attention
from attnflow.flows import Fixed, advance
from attnflow.plots.style import COLOURS, INK, PAGE, styled
from attnflow.tokens import Tokens, stack

PAPERS = ("arXiv:2312.10794",)

STEP = 0.125
"""Of time. Rates of SA are of order 1; the error, about STEP^4/120 per unit of time, is below all others here."""


@dataclasses.dataclass(frozen=True)
class Parameters:
    """What is simulated."""

    n: int = 16
    until: float = 20.0
    span: float = 0.25
    """Time between frames."""
    level: float = 0.5
    """Of the mean overlap: where the transition is."""
    map_dims: tuple[int, ...] = (8, 64, 1024)
    map_betas: tuple[float, ...] = tuple(round(0.2 * k, 1) for k in range(33))
    map_seeds: int = 4
    dims: tuple[int, ...] = (128, 256, 512, 1024, 2048, 4096)
    betas: tuple[float, ...] = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)
    seeds: int = 200


QUICK = Parameters(
    n=8, until=10.0, map_dims=(4, 64, 1024), map_betas=tuple(0.5 * k for k in range(8)), map_seeds=16,
    dims=(64, 256, 1024, 4096), betas=(1.0, 2.0, 3.0), seeds=32,
)  # fmt: skip


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Mean overlaps on the grid of the maps, and times of the transition for many draws."""
    maps = functools.partial(_maps, parameters, study)
    times = functools.partial(_times, parameters, study)
    return {"maps": study.part("maps", maps), "times": study.part("times", times)}


def _maps(parameters: Parameters, study: Study) -> xr.Dataset:
    grid = parameters.map_dims, parameters.map_betas, parameters.map_seeds
    frames = _mean_overlaps(parameters, *grid, lambda share: study.progress("maps", 0.3 * share))
    return xr.Dataset(
        {"overlap": (("time", "beta", "d"), frames.mean(axis=-1))},
        {"time": _frame_times(parameters), "beta": list(parameters.map_betas), "d": list(parameters.map_dims)},
    )


def _times(parameters: Parameters, study: Study) -> xr.Dataset:
    grid = parameters.dims, parameters.betas, parameters.seeds
    frames = _mean_overlaps(parameters, *grid, lambda share: study.progress("transition times", 0.3 + 0.7 * share))
    dims = ("beta", "d", "seed")
    return xr.Dataset(
        {"time": (dims, crossing(frames, parameters)), "start": (dims, frames[0])},
        {"beta": list(parameters.betas), "d": list(parameters.dims)},
    )


def _frame_times(parameters: Parameters) -> np.ndarray:
    return parameters.span * np.arange(int(np.ceil(parameters.until / parameters.span)) + 1)


def _mean_overlaps(
    parameters: Parameters, dims: tuple[int, ...], betas: tuple[float, ...], seeds: int, on_share: Any
) -> np.ndarray:
    """(time, beta, d, seed): the mean of <x_i, x_j>, i != j, at every frame."""
    start = in_span(parameters.n, dims, seeds)
    tokens = stack("beta", betas, [start] * len(betas))
    field = Attention(Along("beta", betas))
    times, frames = _frame_times(parameters), [mean_overlap(tokens)]
    for k in range(1, len(times)):
        tokens = advance(field, tokens, 0.0, parameters.span, Fixed(STEP))
        frames.append(mean_overlap(tokens))
        on_share(k / len(times))
    return np.array(frames)


def mean_overlap(tokens: Tokens) -> np.ndarray:
    """The mean of <x_i, x_j> over pairs, (|sum x|^2 - n)/(n (n-1)), for every member."""
    total = np.sum(np.asarray(tokens.positions), axis=-2)
    return np.asarray((np.sum(total**2, axis=-1) - tokens.n) / (tokens.n * (tokens.n - 1)))


def crossing(frames: np.ndarray, parameters: Parameters) -> np.ndarray:
    """When the mean overlap passes the level, by cubic interpolation in its log-odds; NaN where it does not.

    At beta = 0 orthonormal tokens have log((1 + (n-1) gamma)/(1 - gamma)) = 2t + const, so that time is a smooth
    function of these log-odds; four frames around the crossing leave an error of order span^4.
    """
    times, n = _frame_times(parameters), parameters.n
    frames = np.clip(frames, -1 / n, 1 - 1e-12)  # of the frames at the crossing only these matter
    odds = np.log1p((n - 1) * frames) - np.log1p(-frames)
    odds = odds - np.log1p((n - 1) * parameters.level) + np.log1p(-parameters.level)
    first = np.clip(np.argmax(odds >= 0, axis=0), 2, len(times) - 2)
    near = first + np.arange(-2, 2).reshape(-1, *[1] * (odds.ndim - 1))
    x, y = np.take_along_axis(odds, near, axis=0), times[near]
    found = np.zeros(odds.shape[1:])
    with np.errstate(divide="ignore", invalid="ignore"):  # overlaps that stand still, and cross nothing
        for j in range(4):
            found += y[j] * np.prod([-x[k] / (x[j] - x[k]) for k in range(4) if k != j], axis=0)
    return np.where(odds[-1] >= 0, found, np.nan)


def compare(parameters: Parameters, part: xr.Dataset) -> xr.Dataset:
    """Predictions beside measured times: from orthogonality, from the measured mean overlap, and the spread."""
    n, level = parameters.n, parameters.level
    beta = part["beta"].values[:, None, None]
    plain = theory.equiangular_time(level, part["beta"].values, n)
    begin = part["start"].values
    # SA from overlap 0: gamma' = 2/(e^beta + n - 1)
    spread = np.sqrt(2 / (n * (n - 1) * part["d"].values[None, :])) * (np.exp(beta[..., 0]) + n - 1) / 2
    return part.assign(
        predicted=(("beta",), plain),
        started=(("beta", "d", "seed"), theory.equiangular_time(level, beta, n, begin)),
        spread=(("beta", "d"), spread),
    )


def relative(pairs: xr.Dataset, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Per d: log of the root mean square, over seeds and beta, of (time - prediction)/prediction, and its error."""
    off = (pairs["time"] - pairs[name]) / pairs["predicted"]
    return log_rms((off**2).mean("beta", skipna=False).transpose("d", "seed").values)


def exponent(pairs: xr.Dataset, name: str) -> tuple[float, float]:
    """How the deviation from the prediction `name` falls with d, with its standard error; finite d adds a term 1/d."""
    d = pairs["d"].values.astype(float)
    found, error = fit([np.ones_like(d), np.log(d), 1 / d], *relative(pairs, name))
    return float(found[1]), float(error[1])


def constant(pairs: xr.Dataset) -> tuple[float, float]:
    """Root mean square of (time - prediction)/(its spread of first order) as d grows, with its standard error."""
    off = (pairs["time"] - pairs["predicted"]) / pairs["spread"]
    d = pairs["d"].values.astype(float)
    found, error = fit(
        [np.ones_like(d), 1 / d], *log_rms((off**2).mean("beta", skipna=False).transpose("d", "seed").values)
    )
    return float(np.exp(found[0])), float(np.exp(found[0]) * error[0])


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """The curve at the largest d, the constant and the two exponents."""
    pairs, seeds = compare(parameters, data["times"]), parameters.seeds
    largest = pairs.isel(d=-1)
    d, made = int(largest["d"]), []
    off = np.abs(largest["time"].transpose("beta", "seed").values - largest["predicted"].values[:, None])
    row, label = worst_row(largest, off.max(axis=1) / largest["spread"].values)
    k = int(np.argmax(np.abs(row["time"].values - float(row["predicted"]))))
    made.append(
        Claim.equal(
            f"d = {d}: time of the transition, the draw farthest from the curve ({label}, {seeds} draws each)",
            float(row["predicted"]), float(row["time"][k]), ERRORS * float(row["spread"]),
            f"{ERRORS:g} standard deviations of first order: the mean overlap at the start over γ'(0)",
        )
    )  # fmt: skip
    share, error = constant(pairs)
    source = f"{ERRORS:g} standard errors, {seeds} draws per d; finite d is fitted by a term in 1/d"
    made.append(
        Claim.equal(
            "root mean square deviation from the curve over its value of first order, all β, d → ∞",
            1.0, share, ERRORS * error, source,
        )
    )  # fmt: skip
    for name, words, predicted in (
        ("predicted", "deviation from the curve", -0.5),
        ("started", "deviation from theory started at the measured mean overlap", -1.0),
    ):
        slope, error = exponent(pairs, name)
        made.append(
            Claim.equal(
                f"exponent of d in the root mean square {words}, all β", predicted, slope, ERRORS * error, source
            )
        )
    return made


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Collapse of iid tokens under softmax attention.

    (a-c) Mean overlap over time t and inverse temperature beta; white: where theory for orthonormal tokens passes the
    levels 0.1, 0.5 and 0.9, dots: where the mean of the draws passes 0.5. (d) Measured time of the transition minus the
    predicted one in units of the latter: draws (dots), twice the predicted standard deviation (band). (e) Its root mean
    square over draws and beta, from the curve and from theory started at the measured mean overlap; lines: slopes -1/2
    and -1 through the last point. Bars: 4 standard errors.
    """
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 4.6))
        top, bottom = fig.subfigures(2, 1, height_ratios=(1.1, 1.0))
        maps = top.subplots(1, 3, sharey=True)
        _draw_maps(top, maps, parameters, data["maps"])
        below = bottom.subplots(1, 2)
        pairs = compare(parameters, data["times"])
        _draw_curve(below[0], pairs)
        _draw_exponents(below[1], pairs)
        for letter, one in zip("abcde", [*maps, *below], strict=True):
            one.set_title(f"({letter})", loc="left", fontweight="bold")
        return fig


def _draw_maps(fig: Any, axes: Any, parameters: Parameters, maps: xr.Dataset) -> None:
    betas, times = maps["beta"].values, maps["time"].values
    fine = np.linspace(betas[0], betas[-1], 200)
    for k, one in enumerate(axes):
        values = maps["overlap"].isel(d=k).transpose("beta", "time").values
        mesh = one.pcolormesh(times, betas, values, vmin=0, vmax=1, cmap="viridis", shading="nearest", rasterized=True)
        for level, line in ((0.1, ":"), (0.5, "-"), (0.9, ":")):
            one.plot(theory.equiangular_time(level, fine, parameters.n), fine, line, color="white", lw=1.1)
        measured = crossing(values.T, dataclasses.replace(parameters, level=0.5))
        one.plot(measured[::2], betas[::2], "o", ms=2.5, color=COLOURS[4])
        one.set_xlim(times[0], times[-1])
        one.set_ylim(betas[0], betas[-1])
        one.set_xlabel("time $t$")
        one.set_title(rf"$d = {int(maps['d'][k])}$,  $n = {parameters.n}$")
        one.spines[["top", "right"]].set_visible(True)
    axes[0].set_ylabel(r"inverse temperature $\beta$")
    fig.colorbar(mesh, ax=list(axes), label="mean overlap", pad=0.01)


def _draw_curve(axes: Any, pairs: xr.Dataset) -> None:
    chosen = sorted({0, pairs.sizes["d"] // 2, pairs.sizes["d"] - 1})
    for place, (k, colour) in enumerate(zip(chosen, (COLOURS[1], COLOURS[0], COLOURS[2]), strict=False)):
        here = pairs.isel(d=k)
        shift = 0.16 * (place - 1)
        unit = here["predicted"].values
        band = 2 * here["spread"].values / unit
        for beta, width in zip(here["beta"].values, band, strict=True):
            axes.fill_between([beta + shift - 0.07, beta + shift + 0.07], -width, width, color=colour, alpha=0.3, lw=0)
        off = (here["time"].transpose("beta", "seed").values / unit[:, None] - 1)[:, :40]
        x = np.broadcast_to(here["beta"].values[:, None] + shift, off.shape)
        axes.plot(x.ravel(), off.ravel(), ".", ms=1.6, color=colour)
        axes.plot([], [], "o", ms=3, color=colour, label=rf"$d = {int(here['d'])}$")
    axes.axhline(0, color=INK, lw=0.6)
    axes.set_xlabel(r"inverse temperature $\beta$")
    axes.set_ylabel(r"$T_{\rm measured}/T_{\rm predicted} - 1$")
    axes.legend(loc="lower left", ncols=3, columnspacing=1.0, handletextpad=0.2)


def _draw_exponents(axes: Any, pairs: xr.Dataset) -> None:
    d = pairs["d"].values.astype(float)
    for name, words, slope, colour in (
        ("predicted", "from the curve", -0.5, COLOURS[0]),
        ("started", "started at the measured mean", -1.0, COLOURS[4]),
    ):
        value, error = relative(pairs, name)
        bars = np.exp(value) * np.expm1(ERRORS * error)
        axes.errorbar(d, np.exp(value), bars, fmt="o", ms=3.5, color=colour, elinewidth=0.8, label=words)
        axes.plot(d, np.exp(value[-1]) * (d / d[-1]) ** slope, color=colour, lw=1.0)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("dimension $d$")
    axes.set_ylabel("rms deviation of $T$, relative")
    axes.legend(loc="lower left")

"""The density of random tokens has some sqrt(beta log beta) modes on the line and sqrt(3 beta/2) on the circle.

Attention smooths the tokens with a kernel of width beta^(-1/2) and moves them uphill, so the modes of the density are
where clusters begin (arXiv:2412.09080). On the line, for standard normal samples and n^c <= beta <= n^(2-c), their
expected number is of the order of sqrt(beta log beta); for two samples it is exactly 1 + erfc(beta^(-1/2)). On the
circle, for uniform samples and n to infinity, it is sqrt(sum k^4 I_k^2 / sum k^2 I_k^2), near sqrt(3 beta/2).

Shown: Monte-Carlo counts against these, against Kac and Rice's formula in the middle of the line, and against a second
way of counting. The order sqrt(beta log beta) is checked as an exponent along beta = n, where it differs from that of
sqrt(beta) by 1/(2 log beta). Not shown: the constant (sqrt(3/2)/pi along beta = n is a heuristic limit), or the proof's
range of beta beyond the figure.

On the line the sign of the derivative is looked at on a grid of beta^(-1/2)/16, on the circle the sign of the velocity
of test particles in attention itself, which is the slope of the log density. A grid misses pairs of critical points
between two of its points, in proportion to the square of its step; so what halving the step changes, three times what
is still missed, is part of the tolerances.
"""

import dataclasses
import functools
from typing import Any

import numpy as np
import xarray as xr
from scipy.integrate import quad
from scipy.special import ndtr

from attnflow import theory
from attnflow.experiments.claim import Claim, share_used
from attnflow.experiments.study import Study
from attnflow.fields import Attention
from attnflow.plots.style import COLOURS, GREY, INK, PAGE, styled
from attnflow.spaces import Sphere
from attnflow.tokens import uniform

PAPERS = ("arXiv:2412.09080",)

WINDOW = 9.0
"""Distance, in widths of the kernel, beyond which a sample does not count: e^(-40)."""
FINE = 16
"""Grid points per width of the kernel; every second one makes the coarse grid."""


@dataclasses.dataclass(frozen=True)
class Parameters:
    """What is sampled."""

    pair_betas: tuple[float, ...] = (0.5, 1.0, 4.0, 25.0, 100.0)
    """Of two samples."""
    pairs: int = 40_000
    diagonal: tuple[int, ...] = (10, 30, 100, 300, 1000, 3000, 10_000)
    """Numbers n of samples on the line at beta = n."""
    sweep: int = 1000
    """Number of samples on the line at the beta of `sweep_betas`."""
    sweep_betas: tuple[float, ...] = (1.0, 10.0, 100.0, 10_000.0, 100_000.0, 1_000_000.0)
    samples: int = 500_000
    """Samples in all of one case on the line; it is repeated 100 to 2000 times."""
    twice: int = 300
    """Repetitions that are counted twice, n = beta = 100."""
    circle_betas: tuple[float, ...] = (1.0, 5.0, 20.0, 100.0, 400.0)
    circle: int = 400
    """Tokens on the circle."""
    circle_seeds: int = 200
    points: int = 2048
    """Test particles around the circle."""
    seed: int = 0


QUICK = Parameters(
    pair_betas=(1.0, 25.0), pairs=4000, diagonal=(100, 1000), sweep=1000, sweep_betas=(100.0,), samples=40_000,
    twice=60, circle_betas=(5.0, 100.0), circle=200, circle_seeds=100, points=512,
)  # fmt: skip


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Counts of modes, repetition by repetition, on the fine and the coarse grid."""
    cases = [(n, float(n)) for n in parameters.diagonal] + [(parameters.sweep, beta) for beta in parameters.sweep_betas]
    cases = list(dict.fromkeys(cases))

    def pairs() -> xr.Dataset:
        study.progress("two samples", 0.0)
        found = []
        for k, beta in enumerate(parameters.pair_betas):
            samples = np.random.default_rng([parameters.seed, 0, k]).standard_normal((parameters.pairs, 2))
            found.append([counts.mean() for counts in count(samples, beta)[:2]])
        fine, coarse = np.array(found).T
        return xr.Dataset({"fine": ("beta", fine), "coarse": ("beta", coarse)}, {"beta": list(parameters.pair_betas)})

    def line(index: int, n: int, beta: float) -> xr.Dataset:
        repeats = int(np.clip(parameters.samples / n, 100, 2000))
        rng, parts = np.random.default_rng([parameters.seed, 1, index]), []
        for done in range(0, repeats, 20):
            study.progress(f"line, n = {n}, beta = {beta:g}", 0.05 + 0.7 * (index + done / repeats) / len(cases))
            parts.append(count(rng.standard_normal((min(20, repeats - done), n)), beta))
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        (fine, fine_error), (coarse, _), (inner, inner_error) = (_mean(column) for column in columns)
        return xr.Dataset(
            {"n": n, "beta": beta, "repeats": repeats, "fine": fine, "fine_error": fine_error, "coarse": coarse}
            | {"middle": inner, "middle_error": inner_error}
        )

    def twice() -> xr.Dataset:
        study.progress("two ways of counting", 0.75)
        samples = np.random.default_rng([parameters.seed, 2]).standard_normal((parameters.twice, 100))
        fine, coarse, _ = count(samples, 100.0)
        other = np.array([theory.count_line_modes(row, 100.0) for row in samples])
        return xr.Dataset({name: ("repeat", x) for name, x in (("fine", fine), ("coarse", coarse), ("other", other))})

    def circle(index: int, beta: float) -> xr.Dataset:
        study.progress(f"circle, beta = {beta:g}", 0.8 + 0.2 * index / len(parameters.circle_betas))
        fine, coarse = count_circle(beta, parameters)
        return xr.Dataset({"fine": ("seed", fine), "coarse": ("seed", coarse), "beta": beta})

    made = {"pairs": study.part("pairs", pairs)}
    lines = [study.part(f"line-{n}-beta{b:.0f}", functools.partial(line, k, n, b)) for k, (n, b) in enumerate(cases)]
    made["line"] = xr.concat(lines, dim="case")
    made["twice"] = study.part("twice", twice)
    betas = enumerate(parameters.circle_betas)
    circles = [study.part(f"circle-beta{beta:g}", functools.partial(circle, k, beta)) for k, beta in betas]
    made["circle"] = xr.concat(circles, dim="case")
    return made


def count(samples: np.ndarray, beta: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Modes of sum_i e^(-beta (t - X_i)^2/2) for every row of samples: fine grid, coarse grid, fine within [-1, 1].

    All rows are laid on one long line, too far apart to feel each other.
    """
    repeats = len(samples)
    y = np.sort(samples, axis=1) * np.sqrt(beta)
    length = float(np.ceil(y[:, -1].max() - y[:, 0].min() + 3 * WINDOW))
    origin = y[:, 0].min() - 1.5 * WINDOW
    spots = y - origin + length * np.arange(repeats)[:, None]
    slope = _slopes(spots.ravel(), int(repeats * length * FINE) + 1)
    at = np.flatnonzero(_maxima(slope))
    rows = np.minimum((at / (length * FINE)).astype(int), repeats - 1)
    where = (at / FINE - length * rows + origin) / np.sqrt(beta)
    coarse = 2 * np.flatnonzero(_maxima(slope[::2]))
    coarse_rows = np.minimum((coarse / (length * FINE)).astype(int), repeats - 1)
    return (
        np.bincount(rows, minlength=repeats),
        np.bincount(coarse_rows, minlength=repeats),
        np.bincount(rows[np.abs(where) <= 1], minlength=repeats),
    )


def _slopes(spots: np.ndarray, size: int) -> np.ndarray:
    """Sum of gap e^(-gap^2/2) over the spots within the window, on a grid of 1/FINE; 0 where there are none."""
    slope, offsets = np.zeros(size), np.arange(int(2 * WINDOW * FINE) + 1)
    for some in np.array_split(spots, max(1, spots.size * offsets.size // 2_000_000)):
        index = np.ceil((some - WINDOW) * FINE).astype(int)[:, None] + offsets
        gap = some[:, None] - index / FINE
        slope += np.bincount(index.ravel(), (gap * np.exp(-0.5 * gap**2)).ravel(), minlength=size)
    return slope


def _maxima(slope: np.ndarray) -> np.ndarray:
    """Where the slope changes from + to -; a slope of 0, in empty places, counts as what it was before."""
    known = np.maximum.accumulate(np.where(slope != 0, np.arange(slope.size), 0))
    sign = slope[known]
    return (sign[:-1] > 0) & (sign[1:] < 0)


def count_circle(beta: float, parameters: Parameters) -> tuple[np.ndarray, np.ndarray]:
    """Where the velocity of attention changes from + to - around the circle, for every seed: fine and coarse grid."""
    angles = 2 * np.pi * (np.arange(parameters.points) + 0.5) / parameters.points
    around = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    forward = np.stack([-np.sin(angles), np.cos(angles)], axis=1)
    tokens = uniform(Sphere(2), n=parameters.circle, seed=range(parameters.circle_seeds))
    velocity = np.sum(np.asarray(Attention(beta).velocity(0.0, around, tokens)) * forward, axis=-1)
    grids = (velocity, velocity[:, ::2])
    fine, coarse = (np.sum((v > 0) & (np.roll(v, -1, axis=-1) <= 0), axis=-1) for v in grids)
    return fine, coarse


def _mean(counts: Any) -> tuple[float, float]:
    """Mean and standard error."""
    values = np.asarray(counts, dtype=np.float64)
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(values.size))


def middle(n: int, beta: float) -> float:
    """Kac and Rice's expected number of modes in [-1, 1]."""
    return float(quad(lambda x: float(theory.line_mode_density(x, n, beta)), -1.0, 1.0)[0])


def bracket(n: int, beta: float) -> tuple[float, float]:
    """Kac and Rice's number up to where there is one sample a width, and with every sample beyond as a mode."""
    edge = np.sqrt(2 * np.log(n / np.sqrt(beta)))
    inside = 2 * float(quad(lambda x: float(theory.line_mode_density(x, n, beta)), 0.0, edge * (1 - 1e-9))[0])
    return inside, inside + 2 * n * float(ndtr(-edge))


def exponents(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[tuple[int, int, float, float, float]]:
    """(n, 10 n, measured exponent of the count, its standard error, that of sqrt(beta log beta)) along beta = n."""
    line, rows = data["line"], []
    for n in parameters.diagonal:
        if n >= 100 and 10 * n in parameters.diagonal:
            low, high = (_case(line, size, float(size)) for size in (n, 10 * n))
            rate = np.log(float(high["fine"] / low["fine"])) / np.log(10)
            error = np.linalg.norm([float(one["fine_error"] / one["fine"]) for one in (low, high)])
            order = 0.5 + 0.5 * np.log(np.log(10 * n) / np.log(n)) / np.log(10)
            rows.append((n, 10 * n, float(rate), float(error / np.log(10)), float(order)))
    return rows


def _case(line: xr.Dataset, n: int, beta: float) -> xr.Dataset:
    return line.isel(case=int(np.flatnonzero((line["n"].values == n) & (line["beta"].values == beta))[0]))


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Two samples; the middle of the line; the order along beta = n; the circle; two ways of counting."""
    made = []
    rows: list[tuple[float, float, float, Any]] = []
    for beta in parameters.pair_betas:
        one, two = data["pairs"].sel(beta=beta), float(theory.two_point_modes(beta)) - 1
        error = np.sqrt(two * (1 - two) / parameters.pairs)
        change = abs(float(one["fine"] - one["coarse"]))
        rows.append((float(one["fine"]), 1 + two, 4 * error + change, beta))
    found, expected, tolerance, beta = max(rows, key=lambda row: share_used(*row[:3]))
    statement = f"line, two samples: 1 + erfc(β^(-1/2)) modes (worst of {len(rows)}: β = {beta:g})"
    source = f"4 standard errors of {parameters.pairs} pairs; what halving the grid changes"
    made.append(Claim.equal(statement, expected, found, tolerance, source))

    rows = []
    for case in _cases(data["line"]):
        n, beta = int(case["n"]), float(case["beta"])
        rare = np.sqrt(beta) / (n * np.exp(-0.5) / np.sqrt(2 * np.pi))  # one over the samples in a width at 1
        if rare < 0.15 and beta >= 100:
            expected = middle(n, beta)
            rows.append((float(case["middle"]), expected, 4 * float(case["middle_error"]) + rare * expected, (n, beta)))
    found, expected, tolerance, (n, beta) = max(rows, key=lambda row: share_used(*row[:3]))
    statement = f"line: modes in [-1, 1] by Kac and Rice (worst of {len(rows)}: n = {n}, β = {beta:g})"
    source = "4 standard errors; relative 1/(samples in a kernel's width), as their sum is not quite Gaussian"
    made.append(Claim.equal(statement, expected, found, tolerance, source))

    for low, high, rate, error, order in exponents(parameters, data):
        statement = f"line, β = n from {low} to {high}: exponent of the number of modes is that of sqrt(β log β)"
        tolerance = 4 * error + 1 / np.log(np.sqrt(low * high)) ** 2
        source = "4 standard errors; corrections of relative order 1/log β change it by 1/log²β"
        made.append(Claim.equal(statement, order, rate, tolerance, source))
        statement = f"line, β = n from {low} to {high}: the exponent is above that of sqrt(β)"
        source = f"measured: {rate:.4f} less 4 standard errors"
        made.append(Claim.at_least(statement, 0.5, rate - 4 * error, 0.0, source))

    rows = []
    for case in _cases(data["circle"]):
        beta, (found, error) = float(case["beta"]), _mean(case["fine"])
        change = abs(found - float(case["coarse"].mean()))
        rows.append((found, float(theory.expected_modes(beta)), 4 * error + change, beta))
    found, expected, tolerance, beta = max(rows, key=lambda row: share_used(*row[:3]))
    statement = f"circle, {parameters.circle} tokens: sqrt(Σk⁴I_k²/Σk²I_k²) modes (worst of {len(rows)}: β = {beta:g})"
    source = f"4 standard errors of {parameters.circle_seeds} seeds; what halving the grid changes"
    made.append(Claim.equal(statement, expected, found, tolerance, source))

    both = data["twice"]
    fine, other = float(both["fine"].mean()), float(both["other"].mean())
    tolerance = abs(fine - float(both["coarse"].mean())) + 1 / parameters.twice
    statement = "line, n = β = 100: modes by the grid and by the counter of `theory`, on the same samples"
    made.append(Claim.equal(statement, other, fine, tolerance, "what halving the grid changes; one mode in all"))
    return made


def _cases(data: xr.Dataset) -> list[xr.Dataset]:
    return [data.isel(case=k) for k in range(data.sizes["case"])]


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Expected number M of modes: Monte Carlo (marks, bars of two standard errors) and theory (lines).

    (a) Two samples on the line. (b) beta = n samples on the line; band: Kac and Rice up to where samples thin out to
    one a width, without and with the samples beyond; dashed: heuristic limit. (c) A fixed number of samples, from one
    mode to one a sample. (d) The circle.
    """
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 4.6))
        axes = fig.subplots(2, 2)
        _draw_pairs(axes[0, 0], parameters, data["pairs"])
        _draw_diagonal(axes[0, 1], parameters, data["line"])
        _draw_sweep(axes[1, 0], parameters, data["line"])
        _draw_circle(axes[1, 1], parameters, data["circle"])
        for letter, one in zip("abcd", axes.flat, strict=True):
            one.set_title(f"({letter})", loc="left", fontweight="bold")
            one.set_xscale("log")
        return fig


def _marks(axes: Any, x: Any, y: Any, error: Any, **rest: Any) -> None:
    axes.errorbar(x, y, 2 * np.asarray(error), fmt="o", ms=3.5, lw=1.2, color=COLOURS[4], zorder=3, **rest)


def _draw_pairs(axes: Any, parameters: Parameters, pairs: xr.Dataset) -> None:
    betas = np.geomspace(0.1, 10 * float(pairs["beta"].max()), 200)
    axes.plot(betas, theory.two_point_modes(betas), color=INK, lw=1.0, label=r"$1 + \mathrm{erfc}(\beta^{-1/2})$")
    error = np.sqrt((pairs["fine"] - 1) * (2 - pairs["fine"]) / parameters.pairs)
    _marks(axes, pairs["beta"], pairs["fine"], error, label="$n = 2$, line")
    axes.set_ylim(0.95, 2.05)
    axes.set_xlabel(r"inverse temperature $\beta$")
    axes.set_ylabel("$M$")
    axes.legend(loc="upper left")


def _draw_diagonal(axes: Any, parameters: Parameters, line: xr.Dataset) -> None:
    sizes = np.unique(np.geomspace(min(parameters.diagonal), max(parameters.diagonal), 25).astype(int))
    low, high = np.array([bracket(int(n), float(n)) for n in sizes]).T / np.sqrt(sizes)
    axes.fill_between(
        sizes, low, high, color=COLOURS[5], alpha=0.35, lw=0, label="Kac and Rice, without and with tails"
    )
    limit = np.sqrt(1.5) / np.pi * np.sqrt(np.log(sizes))
    axes.plot(sizes, limit, "--", color=INK, lw=1.0, label=r"$\sqrt{3\log\beta/2}\,/\,\pi$")
    cases = [_case(line, n, float(n)) for n in parameters.diagonal]
    scale = np.sqrt(parameters.diagonal)
    found, error = (np.array([float(c[name]) for c in cases]) / scale for name in ("fine", "fine_error"))
    _marks(axes, parameters.diagonal, found, error, label=r"$\beta = n$, line")
    axes.set_ylim(0.4, 1.75)
    axes.set_xlabel(r"number of samples $n = \beta$")
    axes.set_ylabel(r"$M / \sqrt{\beta}$")
    axes.legend(loc="upper left")


def _draw_sweep(axes: Any, parameters: Parameters, line: xr.Dataset) -> None:
    n = parameters.sweep
    cases = sorted((c for c in _cases(line) if int(c["n"]) == n), key=lambda c: float(c["beta"]))
    betas = np.array([float(c["beta"]) for c in cases])
    some = np.geomspace(max(betas.min() * 3, 3.0), betas.max(), 100)
    guide = np.sqrt(1.5) / np.pi * np.sqrt(some * np.log(some))
    axes.plot(
        some[guide < 1.5 * n], guide[guide < 1.5 * n], "--", color=INK, lw=1.0, label=r"$\propto\sqrt{\beta\log\beta}$"
    )
    axes.axhline(n, color=GREY, lw=0.8, ls=":", label="$n$")
    axes.axhline(1, color=GREY, lw=0.8, ls=":")
    _marks(
        axes,
        betas,
        [float(c["fine"]) for c in cases],
        [float(c["fine_error"]) for c in cases],
        label=f"$n = {n}$, line",
    )
    axes.set_yscale("log")
    axes.set_xlabel(r"inverse temperature $\beta$")
    axes.set_ylabel("$M$")
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 0.13))


def _draw_circle(axes: Any, parameters: Parameters, circle: xr.Dataset) -> None:
    betas = np.array([float(c["beta"]) for c in _cases(circle)])
    some = np.geomspace(betas.min() / 2, 2 * betas.max(), 200)
    label = r"$(\Sigma k^4I_k^2 / \Sigma k^2I_k^2)^{1/2}$"
    axes.plot(some, theory.expected_modes(some) / np.sqrt(some), color=INK, lw=1.0, label=label)
    axes.axhline(np.sqrt(1.5), color=GREY, lw=0.8, ls="--", label=r"$\sqrt{3/2}$")
    found, error = np.array([_mean(c["fine"]) for c in _cases(circle)]).T / np.sqrt(betas)
    _marks(axes, betas, found, error, label=f"$n = {parameters.circle}$, circle")
    axes.set_ylim(1.1, 1.6)
    axes.set_xlabel(r"inverse temperature $\beta$")
    axes.set_ylabel(r"$M / \sqrt{\beta}$")
    axes.legend(loc="upper right")

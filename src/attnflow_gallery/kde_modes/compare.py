"""Mean numbers of modes against closed forms and against the order sqrt(beta log beta)."""

from typing import Any

import numpy as np
import xarray as xr
from scipy.integrate import quad
from scipy.stats import norm

from attnflow import theory
from attnflow.experiments import Claim, consequence, published
from attnflow.experiments.kit import LEVEL, Effects, Rows, mean_error
from attnflow_gallery.kde_modes.simulate import Parameters

ORDER = published("geshkovski2024modes", "main theorem")
PAIRS = consequence("Two samples")
MIDDLE = consequence("The middle of the line")
CIRCLE = consequence("The circle")


def each(data: xr.Dataset) -> list[xr.Dataset]:
    """The cases of one kind."""
    return [data.isel(case=k) for k in range(data.sizes["case"])]


def case(line: xr.Dataset, n: int, beta: float) -> xr.Dataset:
    """The case of n samples at this beta."""
    return line.isel(case=int(np.flatnonzero((line["n"].values == n) & (line["beta"].values == beta))[0]))


def paths(parameters: Parameters) -> dict[float, tuple[int, ...]]:
    """Exponents alpha of beta = n^alpha, and the n."""
    return {1.0: parameters.diagonal, 1.5: parameters.steep, 0.5: parameters.flat}


def exponents(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[dict[str, Any]]:
    """Measured exponents of the count along beta = n and n^(3/2) from n >= 100 to 10 n, and exponents of the order."""
    rows = []
    for alpha in (1.0, 1.5):
        sizes = paths(parameters)[alpha]
        for n in sizes:
            if n >= 100 and 10 * n in sizes:
                low, high = (case(data["line"], size, float(size) ** alpha) for size in (n, 10 * n))
                span, start = np.log(float(high["beta"] / low["beta"])), np.log(float(low["beta"]))
                error = np.linalg.norm([float(one["fine_error"] / one["fine"]) for one in (low, high)]) / span
                rate = np.log(float(high["fine"] / low["fine"])) / span
                order = 0.5 + 0.5 * np.log1p(span / start) / span
                slack = 1 / ((2 / alpha - 1) * (start + span / 2) ** 2)
                rows.append({"alpha": alpha, "n": n, "rate": rate, "error": error, "order": order, "slack": slack})
    return rows


def middle(n: int, beta: float) -> float:
    """Kac and Rice's expected number of modes in [-1, 1]."""
    return float(quad(lambda x: float(theory.landscape.line_mode_density(x, n, beta)), -1.0, 1.0)[0])


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """The order on the line; two samples; the middle of the line; the circle."""
    rows = exponents(parameters, data)
    repeats = int(data["line"]["repeats"].min())
    order, root = Rows(), Effects(repeats, parameters.expected_exponent)
    for row in rows:
        words = f"β = n^{row['alpha']:g}, n = {row['n']} to {10 * row['n']}"
        order.add(row["order"], row["rate"], two_sided(len(rows)) * row["error"] + row["slack"], words)
        root.add(0.5, row["rate"], row["error"], words)
    return [
        order.equal(
            "Line, β = n and n^1.5: exponent of the number of modes in β is that of √(β log β)",
            f"normal test, level {LEVEL:g} for all; 1/((2/α − 1) log²β): the edge moved by a factor e in density",
            origin=ORDER,
            level=LEVEL,
        ),
        root.above(
            "Line, β = n and n^1.5: the exponent exceeds 1/2, that of √β",
            f"Student's test of {repeats} repetitions or more",
            origin=ORDER,
        ),
        _pairs(parameters, data["pairs"]),
        _middle(data["line"]),
        _circle(parameters, data["circle"]),
    ]


def two_sided(tests: int) -> float:
    """How many standard errors a mean may be off, so that any of the tests fails with probability LEVEL at most."""
    return float(norm.isf(LEVEL / 2 / tests))


def _pairs(parameters: Parameters, pairs: xr.Dataset) -> Claim:
    rows = Rows()
    for one in each(pairs):
        expected, fine = float(theory.landscape.two_point_modes(float(one["beta"]))), float(one["fine"])
        error = np.sqrt((expected - 1) * (2 - expected) / parameters.pairs)
        allowed = two_sided(pairs.sizes["case"]) * error + abs(fine - one["coarse"])
        rows.add(expected, fine, allowed, f"β = {float(one['beta']):g}")
    words = "Line, two samples: the mean number of modes is 1 + erfc(β^(−1/2))"
    reason = f"normal test of {parameters.pairs} pairs, level {LEVEL:g} for all β; the change by halving the grid"
    return rows.equal(words, reason, origin=PAIRS, level=LEVEL)


def _middle(line: xr.Dataset) -> Claim:
    n, beta = line["n"].values, line["beta"].values
    rare = np.sqrt(beta) / (n * np.exp(-0.5) / np.sqrt(2 * np.pi))  # one over the samples in a width at 1
    chosen, rows = np.flatnonzero((rare < 0.15) & (beta >= 100)), Rows()
    for k in chosen:
        expected, one = middle(int(n[k]), float(beta[k])), line.isel(case=k)
        allowed = two_sided(len(chosen)) * one["middle_error"] + rare[k] * expected
        rows.add(expected, one["middle"], allowed, f"n = {n[k]}, β = {beta[k]:g}")
    words = "Line: the mean number of modes in [−1, 1] is that of Kac and Rice for a Gaussian field"
    reason = f"normal test, level {LEVEL:g} for all; relative √β/(n p(1)), as a sum over few samples is not Gaussian"
    return rows.equal(words, reason, origin=MIDDLE, level=LEVEL)


def _circle(parameters: Parameters, circle: xr.Dataset) -> Claim:
    rows = Rows()
    for one in each(circle):
        beta, (found, error) = float(one["beta"]), mean_error(one["fine"])
        allowed = two_sided(circle.sizes["case"]) * error + abs(found - one["coarse"].values.mean())
        rows.add(theory.landscape.expected_modes(beta), found, allowed, f"β = {beta:g}")
    words = f"Circle, {parameters.circle} tokens: the mean number of modes is √(Σ k⁴I_k²/Σ k²I_k²)"
    reason = f"normal test of {parameters.circle_runs} runs, level {LEVEL:g} for all β; the change by halving the grid"
    return rows.equal(words, reason, origin=CIRCLE, level=LEVEL)

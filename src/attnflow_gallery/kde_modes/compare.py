"""Mean numbers of modes against closed forms and against the order sqrt(beta log beta)."""

from typing import Any

import numpy as np
import xarray as xr
from scipy.integrate import quad
from scipy.stats import norm

from attnflow import theory
from attnflow.experiments import Claim, consequence, published
from attnflow.experiments.kit import mean_error
from attnflow_gallery.kde_modes.simulate import Parameters

LEVEL = 1e-3
"""Of every claim: the probability that it fails by chance."""
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
    """Measured exponents of the count along beta = n and n^(3/2) from n >= 100 to 10 n, and those of the order."""
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
    allowed, above = float(norm.isf(LEVEL / 2 / len(rows))), float(norm.isf(LEVEL / len(rows)))
    names = [f"β = n^{row['alpha']:g}, n = {row['n']} to {10 * row['n']}" for row in rows]
    rates, errors = (np.array([row[name] for row in rows]) for name in ("rate", "error"))
    made = [
        Claim.equal(
            "Line, β = n and n^1.5: exponent of the number of modes in β is that of √(β log β)",
            [row["order"] for row in rows], rates, [allowed * row["error"] + row["slack"] for row in rows],
            f"normal test, level {LEVEL:g} for all; 1/((2/α − 1) log²β): the edge moved by a factor e in density",
            origin=ORDER, labels=names,
        ),
        Claim.at_least(
            "Line, β = n and n^1.5: the exponent exceeds 1/2, that of √β", 0.5, rates - above * errors, 1e-12,
            f"measured: exponent less {above:.2f} standard errors, one-sided test, level {LEVEL:g} for all",
            origin=ORDER, labels=names,
        ),
    ]  # fmt: skip
    made += [_pairs(parameters, data["pairs"]), _middle(data["line"]), _circle(parameters, data["circle"])]
    return made


def _pairs(parameters: Parameters, pairs: xr.Dataset) -> Claim:
    betas, fine, coarse = (pairs[name].values for name in ("beta", "fine", "coarse"))
    expected = theory.landscape.two_point_modes(betas)
    error = np.sqrt((expected - 1) * (2 - expected) / parameters.pairs)
    return Claim.equal(
        "Line, two samples: the mean number of modes is 1 + erfc(β^(−1/2))", expected, fine,
        float(norm.isf(LEVEL / 2 / len(betas))) * error + abs(fine - coarse),
        f"normal test of {parameters.pairs} pairs, level {LEVEL:g} for all β; the change by halving the grid",
        origin=PAIRS, labels=[f"β = {beta:g}" for beta in betas],
    )  # fmt: skip


def _middle(line: xr.Dataset) -> Claim:
    rows = []
    for one in each(line):
        n, beta = int(one["n"]), float(one["beta"])
        rare = np.sqrt(beta) / (n * np.exp(-0.5) / np.sqrt(2 * np.pi))  # one over the samples in a width at 1
        if rare < 0.15 and beta >= 100:
            rows.append(
                (middle(n, beta), float(one["middle"]), float(one["middle_error"]), rare, f"n = {n}, β = {beta:g}")
            )
    expected, found, error, rare, names = (list(column) for column in zip(*rows, strict=True))
    allowed = float(norm.isf(LEVEL / 2 / len(rows)))
    return Claim.equal(
        "Line: the mean number of modes in [−1, 1] is that of Kac and Rice for a Gaussian field", expected, found,
        allowed * np.array(error) + np.array(rare) * np.array(expected),
        f"normal test, level {LEVEL:g} for all; relative √β/(n p(1)), as a sum over few samples is not Gaussian",
        origin=MIDDLE, labels=names,
    )  # fmt: skip


def _circle(parameters: Parameters, circle: xr.Dataset) -> Claim:
    betas = circle["beta"].values
    found, error = np.array([mean_error(row) for row in circle["fine"].values]).T
    return Claim.equal(
        f"Circle, {parameters.circle} tokens: the mean number of modes is √(Σ k⁴I_k²/Σ k²I_k²)",
        theory.landscape.expected_modes(betas), found,
        float(norm.isf(LEVEL / 2 / len(betas))) * error + abs(found - circle["coarse"].values.mean(axis=-1)),
        f"normal test of {parameters.circle_runs} runs, level {LEVEL:g} for all β; the change by halving the grid",
        origin=CIRCLE, labels=[f"β = {beta:g}" for beta in betas],
    )  # fmt: skip

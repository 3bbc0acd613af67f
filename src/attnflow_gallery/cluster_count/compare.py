"""Modes against Kac and Rice's formula, and clusters against the degree that grows fastest."""

from typing import Any

import numpy as np
import xarray as xr
from scipy.stats import mannwhitneyu

from attnflow import theory
from attnflow.experiments import Claim, consequence, published
from attnflow.experiments.kit import LEVEL, Effects, Rows, mean_error, student
from attnflow_gallery.cluster_count.simulate import LOOKS, Parameters, linear_time, seeded_degree

EARLY = 8.0
"""Fluctuations count as small until this time before they reach the mean: e^(-8 * 0.7) is 0.4 %."""
NO_DIFFERENCE = 1e-2
"""p-value at which a difference counts as seen."""
PERIODIC = published("bruno2024emergence")
MODES = consequence("Modes of iid tokens")
FEWER = consequence("Why iid tokens give fewer clusters")


def cases(data: xr.Dataset, start: str) -> list[xr.Dataset]:
    """The cases of one kind of start."""
    return [data.isel(case=k) for k in np.flatnonzero(data["start"].values == start)]


def case(data: xr.Dataset, start: str, size: float, beta: float) -> xr.Dataset:
    """One case."""
    return next(c for c in cases(data, start) if (float(c["size"]), float(c["beta"])) == (size, beta))


def looks(parameters: Parameters, data: xr.Dataset) -> list[dict[str, Any]]:
    """Mean numbers of modes, their errors and M(t): iid tokens at t = 0, the largest density while it is linear."""
    rows = []
    for kind in ("iid", "density"):
        for one in cases(data, kind):
            beta, size = float(one["beta"]), float(one["size"])
            times = [t for t in LOOKS if t <= linear_time(beta, size) - EARLY] if kind == "density" else [0.0]
            for t in times if kind == "iid" or size == max(parameters.densities) else ():
                found, error = mean_error(one["modes"].sel(time=t))
                predicted = float(theory.uniform.linear_modes(t, beta))
                rows.append({"kind": kind, "beta": beta, "t": t, "found": found, "error": error, "M": predicted})
    return rows


def shared_beta(parameters: Parameters) -> float:
    """The largest beta at which there are iid tokens and densities."""
    return max(set(parameters.betas) & set(parameters.density_betas))


def claims(parameters: Parameters, data: xr.Dataset) -> list[Claim]:
    """Seeded rings; modes in the linear phase; clusters of iid tokens against k_max and against very many tokens."""
    n, many, runs = parameters.tokens, max(parameters.densities), parameters.runs
    iid, found = cases(data, "iid"), looks(parameters, data)
    allowed = student(LEVEL, runs, len(found))
    crests, modes, fewer = Rows(), Rows(), Effects(runs, parameters.expected_fewer)
    for ring in cases(data, "seeded"):
        degrees = [seeded_degree(float(ring["beta"]), k) for k in range(runs)]
        crests.add(degrees, ring["clusters"], 0.0, [f"β = {float(ring['beta']):g}, {k} crests" for k in degrees])
    for row in found:
        label = f"{row['kind']}, β = {row['beta']:g}, t = {row['t']:g}"
        modes.add(row["M"], row["found"], allowed * row["error"], label)
    for one in iid:
        top, (mean, error) = float(theory.uniform.dominant_degree(float(one["beta"]), 2)), mean_error(one["clusters"])
        label = f"β = {float(one['beta']):g}, {mean:.2f} ± {error:.2f} of {top:g}"
        fewer.add(1.0, mean / top, error / top, label)
    words = (
        "A ring seeded with k_max − 1, k_max or k_max + 1 crests condenses into as many clusters",
        f"{n} iid tokens at t = 0, density of {many:.0e} while it is linear: mean number of modes is M(t)",
        f"{n} iid tokens, every β: (mean number of clusters)/k_max, raised by its error, is below 1",
    )
    tests = (f"Student's test of {runs} runs, level {LEVEL:g} for all β and t", f"Student's test of {runs} runs")
    wide = f"{_wide(iid):.1%} of all runs end with a cluster wider than β^(−1/2)"
    return [
        crests.equal(words[0], "whole numbers", origin=PERIODIC, level=LEVEL),
        modes.equal(words[1], tests[0], origin=MODES, level=LEVEL),
        fewer.below(words[2], tests[1], origin=FEWER, detail=wide),
        _more(parameters, data),
    ]


def _more(parameters: Parameters, data: xr.Dataset) -> Claim:
    n, many, runs, beta = parameters.tokens, max(parameters.densities), parameters.runs, shared_beta(parameters)
    less = case(data, "iid", float(n), beta)["clusters"].values
    more = case(data, "density", many, beta)["clusters"].values
    words = f"β = {beta:g}: a density of {many:.0e} tokens gives more clusters than {n} iid; p-value of no difference"
    chance = float(mannwhitneyu(less, more, alternative="less").pvalue)
    test = f"Mann and Whitney's rank test of {runs} runs each, one-sided, level {NO_DIFFERENCE:g}"
    reason = f"{test}; a difference of 7.3 standard errors, as seen, is missed with probability 3e-7"
    wide = f"{_wide(cases(data, 'density')):.1%} of the densities end with a wide cluster"
    detail = f"means {less.mean():.2f}, {more.mean():.2f}; {wide}"
    return Claim.at_most(words, NO_DIFFERENCE, chance, 0.0, reason, origin=FEWER, detail=detail, level=LEVEL)


def _wide(some: list[xr.Dataset]) -> float:
    """Share of runs that end with a cluster wider than beta^(-1/2), which may be miscounted by one."""
    return float(1 - np.mean([one["condensed"].values for one in some]))

"""Limits with the first terms of their approach, exact cosines to rounding, iid tokens to their scatter."""

import itertools

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Claim, consequence, published
from attnflow.experiments.kit import EPS, LEVEL, Rows, averaged, student
from attnflow_gallery.long_context.simulate import Parameters, scan

PAPER = published("chen2025critical")


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Two on the limits, one on finite n, one on orthogonal tokens, one on iid tokens."""
    return [
        *_limits(parameters, data["mean"]["cosine"]),
        _exact(parameters, data),
        _orthogonal(parameters, data["mean"]["cosine"]),
        _iid(parameters, data["iid"]),
    ]


def _limits(parameters: Parameters, cosine: xr.DataArray) -> list[Claim]:
    """With y = n^(1 - c(1-rho)) the cosine is (rho + X)/(1 + X), X = rho (2y + y^2) up to O(1/n)."""
    n, beside, on = max(parameters.large), Rows(), Rows()
    for rho in parameters.overlaps:
        c, found = scan(parameters, rho), cosine.sel(overlap=rho, n=n).values
        limit, rounding = theory.uniform.long_context_limit(c, rho), 32 * EPS * c * np.log(n)
        with np.errstate(divide="ignore", over="ignore"):
            y = n ** (1 - c * (1 - rho))
            below, above = (1 - rho) / rho / y**2, 3 * rho * (1 - rho) * y / (1 - y / n) ** 2
        bound = np.where(y > 1, below, above) * 1.01 + rounding
        at = int(np.argmin(abs(c * (1 - rho) - 1)))
        away = np.arange(len(c)) != at
        labels = [f"rho = {rho:g}, c = {one:.3g}" for one in c[away]]
        beside.add(0.0, abs(found - limit)[away], bound[away], labels)
        on.add(limit[at], found[at], 4 / n + rounding[at], f"rho = {rho:g}")
    statement = f"n = {n:.0e}: cosine at the threshold, against 4ρ/(1+3ρ)"
    return [
        beside.at_most(
            f"n = {n:.0e}: |cosine - limit| below (limit 1) and above (limit ρ) the threshold c = 1/(1-ρ)",
            "below: (1-ρ)/(ρy²), above: 3ρ(1-ρ)y, y = n^(1-c(1-ρ)); 1 % for terms O(1/n); rounding",
            origin=PAPER,
        ),
        on.equal(statement, "terms O(1/n), at most 4/n; rounding", origin=PAPER),
    ]


def _exact(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    """All tokens, and the others replaced by their mean; sums have n terms or 3."""
    rows, mean = Rows(), data["mean"]["cosine"]

    def add(found: xr.DataArray, n: float, overlap: float, terms: int, name: str) -> None:
        c = scan(parameters, overlap)
        # relative errors of weights pass to the cosine with a factor of at most 4
        tolerance = 4 * EPS * (1 + c * np.log(n)) * (8 + terms)
        labels = [f"{name}, n = {n:g}, rho = {overlap:g}, c = {one:.3g}" for one in c]
        rows.add(theory.uniform.long_context_overlap(c, n, overlap), found.sel(overlap=overlap), tolerance, labels)

    for n, overlap in itertools.product(parameters.counts, parameters.overlaps):
        add(data[f"all-{n}"]["cosine"], n, overlap, n, "all tokens")
    for size, overlap in itertools.product(parameters.large, (0.0, *parameters.overlaps)):
        add(mean.sel(n=size), size, overlap, 3, "mean of the others")
    counts = f"all tokens (n ≤ {max(parameters.counts)}), mean of the others (n ≤ {max(parameters.large):.0e})"
    reason = "sums of n terms (with the mean: 3) in logits and outputs are off by n eps; beta times that in weights"
    return rows.equal(f"cosine against the exact one: {counts}", reason, origin=consequence("Exact cosine"))


def _orthogonal(parameters: Parameters, cosine: xr.DataArray) -> Claim:
    """X = 2 n^-c + n^(1-2c) up to terms O(n^-c) smaller, so the threshold is 1/2, with the cosine 1/2 there."""
    n, c = max(parameters.large), scan(parameters, 0.0)
    x = 2 * n**-c + n ** (1 - 2 * c)
    tolerance, rows = 4 * n**-c * x / (1 + x) ** 2 + 32 * EPS * c * np.log(n), Rows()
    rows.add(x / (1 + x), cosine.sel(overlap=0.0, n=n), tolerance, [f"c = {one:.3g}" for one in c])
    statement = f"ρ = 0, n = {n:.0e}: cosine against X/(1+X), X = n^(1-2c) + 2n^-c"
    reason = "twice the first order of the terms left out, 2n^-c X of X; rounding"
    return rows.equal(statement, reason, origin=consequence("Orthogonal tokens"))


def _iid(parameters: Parameters, iid: xr.Dataset) -> Claim:
    n, d, overlap = parameters.iid_count, parameters.iid_dim, float(iid.attrs["overlap"])
    c, rows, draws = scan(parameters, overlap), Rows(), iid.sizes["draw"]
    mean, error = averaged(iid["cosine"])
    allowed = student(LEVEL, draws, len(c))
    # the mean of a smooth function of a fluctuating sum is off by half its second derivative times the variance
    tolerance = allowed * error + draws * error**2 + 2 / n + shot(c, n, d, overlap)
    rows.add(
        theory.uniform.long_context_iid_overlap(c, n=n, d=d, overlap=overlap),
        mean,
        tolerance,
        [f"c = {one:.3g}" for one in c],
    )
    return rows.equal(
        f"{n} iid tokens in dimension {d}, ρ = {overlap:g}: mean cosine, against the mean field",
        f"Student's test of {draws} draws, level {LEVEL:g} for all; their variance; noise of the sum over others",
        origin=consequence("Tokens around a direction"),
        level=LEVEL,
    )


def shot(c: np.ndarray, n: float, d: int, overlap: float) -> np.ndarray:
    """What the noise of the sums over the others adds to squared lengths: (1-rho) n e^(-2b) M(2b), over the length."""
    b = c * np.log(n) * (1 - overlap)
    others = (n - 2) * np.exp(theory.uniform.exponential_moments(b, d - 1)[0] - b)
    squares = n * np.exp(theory.uniform.exponential_moments(2 * b, d - 1)[0] - 2 * b)
    return np.asarray(2 * (1 - overlap) * squares / (overlap * (1 + others) ** 2))

"""Limits with the first terms of their approach, exact cosines to rounding, iid tokens to their scatter."""

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Claim, consequence, published
from attnflow_gallery.long_context.simulate import Parameters, scan

ERRORS = 4.0
"""Standard errors that a random number may be off."""
EPS = float(np.finfo(float).eps)
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
    n, rho = max(parameters.large), np.array(parameters.overlaps)
    c = np.array([scan(parameters, one) for one in parameters.overlaps])
    found = cosine.sel(overlap=list(parameters.overlaps), n=n).values
    limit = theory.uniform.long_context_limit(c, rho[:, None])
    at = np.argmin(abs(c * (1 - rho[:, None]) - 1), axis=1)
    here = np.arange(len(rho)), at
    away = np.ones(c.shape, bool)
    away[here] = False
    with np.errstate(divide="ignore", over="ignore"):
        y = n ** (1 - c * (1 - rho[:, None]))
        below = ((1 - rho) / rho)[:, None] / y**2
        above = 3 * (rho * (1 - rho))[:, None] * y / (1 - y / n) ** 2
    bound = np.where(y > 1, below, above) * 1.01 + 32 * EPS * c * np.log(n)
    words = [f"rho = {r:g}, c = {x:.3g}" for r, row, keep in zip(rho, c, away, strict=True) for x in row[keep]]
    return [
        Claim.at_most(
            f"n = {n:.0e}: |cosine - limit| below (limit 1) and above (limit ρ) the threshold c = 1/(1-ρ)",
            0.0, abs(found - limit)[away], bound[away],
            "below: (1-ρ)/(ρy²), above: 3ρ(1-ρ)y, y = n^(1-c(1-ρ)); 1 % for terms O(1/n); rounding",
            origin=PAPER, labels=words,
        ),
        Claim.equal(
            f"n = {n:.0e}: cosine at the threshold, against 4ρ/(1+3ρ)", limit[here], found[here],
            4 / n + 32 * EPS * c[here] * np.log(n), "terms O(1/n), at most 4/n; rounding", origin=PAPER,
            labels=[f"rho = {r:g}" for r in rho],
        ),
    ]  # fmt: skip


def _exact(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    """All tokens, and the others replaced by their mean; sums have n terms or 3."""
    rows: list[tuple[np.ndarray, float, float, int, str]] = []
    for n in parameters.counts:
        for overlap in parameters.overlaps:
            rows.append((data[f"all-{n}"]["cosine"].sel(overlap=overlap).values, n, overlap, n, "all tokens"))
    for size in parameters.large:
        for overlap in (0.0, *parameters.overlaps):
            cosine = data["mean"]["cosine"].sel(overlap=overlap, n=size).values
            rows.append((cosine, size, overlap, 3, "mean of the others"))
    found, exact, tolerance, words = [], [], [], []
    for cosine, size, overlap, terms, name in rows:
        c = scan(parameters, overlap)
        found.append(cosine)
        exact.append(theory.uniform.long_context_overlap(c, size, overlap))
        # relative errors of weights pass to the cosine with a factor of at most 4
        tolerance.append(4 * EPS * (1 + c * np.log(size)) * (8 + terms))
        words += [f"{name}, n = {size:g}, rho = {overlap:g}, c = {one:.3g}" for one in c]
    return Claim.equal(
        f"cosine against the exact one: all tokens (n ≤ {max(parameters.counts)}), mean of the others "
        f"(n ≤ {max(parameters.large):.0e})",
        np.concatenate(exact), np.concatenate(found), np.concatenate(tolerance),
        "sums of n terms (with the mean: 3) in logits and outputs are off by n eps; beta times that in weights",
        origin=consequence("Exact cosine"), labels=words,
    )  # fmt: skip


def _orthogonal(parameters: Parameters, cosine: xr.DataArray) -> Claim:
    """X = 2 n^-c + n^(1-2c) up to terms O(n^-c) smaller, so the threshold is 1/2, with the cosine 1/2 there."""
    n, c = max(parameters.large), scan(parameters, 0.0)
    x = 2 * n**-c + n ** (1 - 2 * c)
    return Claim.equal(
        f"ρ = 0, n = {n:.0e}: cosine against X/(1+X), X = n^(1-2c) + 2n^-c", x / (1 + x),
        cosine.sel(overlap=0.0, n=n).values, 4 * n**-c * x / (1 + x) ** 2 + 32 * EPS * c * np.log(n),
        "twice the first order of the terms left out, 2n^-c X of X; rounding",
        origin=consequence("Orthogonal tokens"), labels=[f"c = {one:.3g}" for one in c],
    )  # fmt: skip


def _iid(parameters: Parameters, iid: xr.Dataset) -> Claim:
    n, d, overlap = parameters.iid_count, parameters.iid_dim, float(iid.attrs["overlap"])
    c, found = scan(parameters, overlap), iid["cosine"].values
    spread = found.std(axis=0, ddof=1)
    # the mean of a smooth function of a fluctuating sum is off by half its second derivative times the variance
    tolerance = ERRORS * spread / np.sqrt(len(found)) + spread**2 + 2 / n + shot(c, n, d, overlap)
    return Claim.equal(
        f"{n} iid tokens in dimension {d}, ρ = {overlap:g}: mean cosine, against the mean field",
        theory.uniform.long_context_iid_overlap(c, n, d, overlap), found.mean(axis=0), tolerance,
        f"{ERRORS:g} standard errors of {len(found)} draws, their variance, and the noise of the sum over the others",
        origin=consequence("Tokens around a direction"), labels=[f"c = {one:.3g}" for one in c],
    )  # fmt: skip


def shot(c: np.ndarray, n: float, d: int, overlap: float) -> np.ndarray:
    """What the noise of the sums over the others adds to squared lengths: (1-rho) n e^(-2b) M(2b), over the length."""
    b = c * np.log(n) * (1 - overlap)
    others = (n - 2) * np.exp(theory.uniform.exponential_moments(b, d - 1)[0] - b)
    squares = n * np.exp(theory.uniform.exponential_moments(2 * b, d - 1)[0] - 2 * b)
    return np.asarray(2 * (1 - overlap) * squares / (overlap * (1 + others) ** 2))

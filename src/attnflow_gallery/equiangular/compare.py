"""Orthonormal tokens against the closed form, iid tokens against linear response."""

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Claim, consequence, published
from attnflow.experiments.kit import EPS, Rows, averaged, student
from attnflow_gallery.equiangular.simulate import SUBSTEPS, Parameters, cases, part_name

LEVEL = 1e-7
"""Of Student's test; skewed means of squares make the probability that chance fails the claim larger, below 1e-6."""
CUT = 0.002
"""What the fit in 1/d leaves out: 60,000 draws per d, of other seeds, give at most 0.0005 ± 0.0009 (derivation)."""
SECTION = published("geshkovski2025perspective", "section 6")
RESPONSE = consequence("Three parts of a deviation")


def tolerances(parameters: Parameters, flow: xr.Dataset, model: str, beta: float) -> tuple[float, float]:
    """What the mean overlap may be off, and what rounding leaves of the difference of two overlaps."""
    # every step rounds overlaps, sums of n products; what that leaves grows as linear response says
    levels = np.linspace(0.05, 0.99, 20)
    grown = max(theory.uniform.overlap_growth(gamma, beta, parameters.n, model=model).max() for gamma in levels)
    rounding = 2 * SUBSTEPS * flow.sizes["time"] * parameters.n * EPS * grown
    return 2 * float(flow["overlap_error"].values.max()) + rounding, rounding


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Orthonormal tokens, then iid tokens."""
    overlap, spread = Rows(), Rows()
    for model, beta in cases(parameters):
        flow = data[part_name(model, beta)]
        times = flow["time"].values
        names = [f"{model}, β = {beta:g}, t = {time:.3g}" for time in times]
        allowed, rounding = tolerances(parameters, flow, model, beta)
        gamma = theory.uniform.equiangular_overlap(times, beta, parameters.n, model=model)
        overlap.add(0.0, flow["overlap"].values - gamma, allowed, names)
        spread.add(0.0, flow["spread"], rounding, names)
    return [
        overlap.equal(
            "orthonormal tokens, SA and USA0: mean overlap minus γ(t), up to γ = 0.99",
            "twice the error of order 4, from halving the step; rounding, grown",
            origin=SECTION,
        ),
        spread.at_most(
            "orthonormal tokens, SA and USA0: largest difference of two overlaps",
            "rounding of every step, grown by linear response",
            origin=SECTION,
        ),
        *_iid(parameters, data),
    ]


def _iid(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    rows = Rows()
    allowed = student(LEVEL, parameters.draws, len(parameters.iid_models) * len(parameters.iid_betas))
    for model in parameters.iid_models:
        table = amplitudes(parameters, data[f"iid-{model}"], model)
        names = [f"{model}, β = {beta:g}" for beta in parameters.iid_betas]
        rows.add(1.0, table["ratio"], allowed * table["ratio_error"] + CUT, names)
    test = f"Student's test, level {LEVEL:g} for all, {parameters.draws} draws per d"
    return [
        rows.equal(
            f"iid tokens at γ = {parameters.overlap:g}: √d times the root mean square of overlap - γ, over that of "
            "linear response",
            f"{test}: {allowed:.2g} standard errors; {CUT:g} for what a fit by 1, 1/d and 1/d² leaves out",
            origin=RESPONSE,
            level=LEVEL,
        )
    ]


def amplitudes(parameters: Parameters, part: xr.Dataset, model: str) -> xr.Dataset:
    """Amplitude over that of linear response as d grows, for every beta."""
    d, rows = part["d"].values.astype(float), []
    # equal weights: weights from the draws would favour what is small by chance
    constant = np.linalg.pinv(np.stack([np.ones_like(d), 1 / d, 1 / d**2], axis=1))[0]
    for beta in part["beta"].values:
        expected = theory.uniform.overlap_spread(parameters.overlap, float(beta), parameters.n, model=model) ** 2 / d
        mean, error = averaged(part["square"].sel(beta=beta).values / expected[:, None], axis=1)
        # of the square; a root halves a relative error
        ratio, half = np.sqrt(constant @ mean), np.sqrt(constant**2 @ error**2) / 2
        rows.append((ratio, half / ratio))
    names = ("ratio", "ratio_error")
    columns = {name: ("beta", column) for name, column in zip(names, np.array(rows).T, strict=True)}
    return xr.Dataset(columns, {"beta": part["beta"].values})

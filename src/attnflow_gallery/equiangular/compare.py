"""Orthonormal tokens against the closed form, iid tokens against linear response."""

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Claim, consequence, published
from attnflow.experiments.kit import EPS, Rows, fit, log_rms
from attnflow_gallery.equiangular.simulate import SUBSTEPS, Parameters, cases, part_name

ERRORS = 4.0
"""Standard errors that a random number may be off."""
SECTION = published("geshkovski2025perspective", "section 6")
RESPONSE = consequence("Three parts of a deviation")


def tolerances(parameters: Parameters, flow: xr.Dataset, model: str, beta: float) -> tuple[float, float]:
    """What the mean overlap may be off, and what rounding leaves of the difference of two overlaps."""
    # every step rounds overlaps, sums of n products; what that leaves grows as linear response says
    levels = np.linspace(0.05, 0.99, 20)
    grown = max(theory.uniform.overlap_growth(gamma, beta, parameters.n, model=model).max() for gamma in levels)
    rounding = 2 * SUBSTEPS * flow.sizes["time"] * parameters.n * EPS * grown
    return 2 * float(flow["overlap_error"].max()) + rounding, rounding


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
    tables = {model: amplitudes(parameters, data[f"iid-{model}"], model) for model in parameters.iid_models}
    names = [f"{model}, β = {beta:g}" for model in tables for beta in parameters.iid_betas]
    found = {key: np.concatenate([table[key].values for table in tables.values()]) for key in ("ratio", "ratio_error")}
    reason = f"{ERRORS:g} standard errors, {parameters.draws} draws per d; finite d is fitted by a term in 1/d"
    where = f"iid tokens at γ = {parameters.overlap:g}"
    return [
        Claim.equal(
            f"{where}: √d times the root mean square of overlap - γ, over that of linear response",
            1.0,
            found["ratio"],
            ERRORS * found["ratio_error"],
            f"{reason} and one in 1/d²",
            labels=names,
            origin=RESPONSE,
        )
    ]


def amplitudes(parameters: Parameters, part: xr.Dataset, model: str) -> xr.Dataset:
    """Amplitude over that of linear response as d grows, for every beta."""
    d, rows = part["d"].values.astype(float), []
    one = np.ones_like(d)
    for beta in part["beta"].values:
        value, error = log_rms(part["square"].sel(beta=beta).values)
        expected = (
            np.log(theory.uniform.overlap_spread(parameters.overlap, float(beta), parameters.n, model=model))
            - np.log(d) / 2
        )
        # at d = 16 the term of order 1/d reaches 0.35 (USA0, beta = 3), and its square exceeds the standard error
        size, size_error = fit([one, 1 / d, 1 / d**2], value - expected, error)
        rows.append((np.exp(size[0]), np.exp(size[0]) * size_error[0]))
    names = ("ratio", "ratio_error")
    columns = {name: ("beta", column) for name, column in zip(names, np.array(rows).T, strict=True)}
    return xr.Dataset(columns, {"beta": part["beta"].values})

"""Orthonormal tokens against the closed form, iid tokens against linear response."""

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.claim import Claim, consequence, published
from attnflow.experiments.statistics import fit, log_rms
from attnflow_gallery.equiangular.simulate import MODELS, SUBSTEPS, Parameters

EPS = float(np.finfo(float).eps)
ERRORS = 4.0
"""Standard errors that a random number may be off."""
SECTION = published("geshkovski2025perspective", "section 6")
RESPONSE = consequence("Three parts of a deviation")


def compare(parameters: Parameters, part: xr.Dataset, model: str) -> xr.Dataset:
    """Error and tolerances beside every frame of orthonormal tokens."""
    n, rows = parameters.n, []
    for beta in parameters.betas:
        here = part.isel(frame=part["beta"].values == beta)
        error = here["overlap"].values - theory.uniform.equiangular_overlap(here["time"].values, beta, n, model=model)
        # every step rounds overlaps, sums of n products; what that leaves grows as linear response says
        grown = max(theory.uniform.overlap_growth(gamma, beta, n, model).max() for gamma in np.linspace(0.05, 0.99, 20))
        rounding = np.full(error.shape, 2 * SUBSTEPS * len(error) * n * EPS * grown)
        scheme = np.abs(here["overlap"].values - here["coarse"].values).max() / 15
        rows.append((error, 2 * scheme + rounding, rounding))
    columns = [np.concatenate(column) for column in zip(*rows, strict=True)]
    return part.assign(error=("frame", columns[0]), tolerance=("frame", columns[1]), rounding=("frame", columns[2]))


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Orthonormal tokens, then iid tokens."""
    tables = [compare(parameters, data[f"orthonormal-{model}"], model) for model in MODELS]
    names = [
        f"{model}, β = {beta:g}, t = {time:.3g}"
        for model, table in zip(MODELS, tables, strict=True)
        for beta, time in zip(table["beta"].values, table["time"].values, strict=True)
    ]
    both = {key: np.concatenate([table[key].values for table in tables])
            for key in ("error", "spread", "tolerance", "rounding")}  # fmt: skip
    return [
        Claim.equal(
            "orthonormal tokens, SA and USA0: mean overlap minus γ(t), up to γ = 0.99", 0.0, both["error"],
            both["tolerance"], "twice the error of order 4, from halving the step; rounding, grown", origin=SECTION,
            labels=names,
        ),
        Claim.at_most(
            "orthonormal tokens, SA and USA0: largest difference of two overlaps", 0.0, both["spread"],
            both["rounding"], "rounding of every step, grown by linear response", origin=SECTION, labels=names,
        ),
        *_iid(parameters, data),
    ]  # fmt: skip


def _iid(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    tables = {model: amplitudes(parameters, data[f"iid-{model}"], model) for model in parameters.iid_models}
    names = [f"{model}, β = {beta:g}" for model in tables for beta in parameters.iid_betas]
    found = {key: np.concatenate([table[key].values for table in tables.values()])
             for key in ("ratio", "ratio_error")}  # fmt: skip
    reason = f"{ERRORS:g} standard errors, {parameters.draws} draws per d; finite d is fitted by a term in 1/d"
    where = f"iid tokens at γ = {parameters.overlap:g}"
    return [
        Claim.equal(
            f"{where}: √d times the root mean square of overlap - γ, over that of linear response", 1.0,
            found["ratio"], ERRORS * found["ratio_error"], f"{reason} and one in 1/d²", labels=names,
            origin=RESPONSE,
        ),
    ]  # fmt: skip


def amplitudes(parameters: Parameters, part: xr.Dataset, model: str) -> xr.Dataset:
    """Amplitude over that of linear response as d grows, for every beta."""
    d, rows = part["d"].values.astype(float), []
    one = np.ones_like(d)
    for beta in part["beta"].values:
        value, error = log_rms(part["square"].sel(beta=beta).values)
        expected = (
            np.log(theory.uniform.overlap_spread(parameters.overlap, float(beta), parameters.n, model)) - np.log(d) / 2
        )
        # at d = 16 the term of order 1/d reaches 0.35 (USA0, beta = 3), and its square exceeds the standard error
        size, size_error = fit([one, 1 / d, 1 / d**2], value - expected, error)
        rows.append((np.exp(size[0]), np.exp(size[0]) * size_error[0]))
    names = ("ratio", "ratio_error")
    columns = {name: ("beta", column) for name, column in zip(names, np.array(rows).T, strict=True)}
    return xr.Dataset(columns, {"beta": part["beta"].values})

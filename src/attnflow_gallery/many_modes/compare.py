"""Numbers of modes against Kac and Rice's formula in the linear phase, and of clusters against k_max."""

from typing import Any

import numpy as np
import xarray as xr
from scipy.stats import spearmanr

from attnflow import theory
from attnflow.experiments import Claim, consequence, published
from attnflow.experiments.kit import mean_error, student
from attnflow_gallery.many_modes.simulate import Parameters

LINEAR = 0.2
"""Root mean square of rho - 1 up to which a time counts as linear: its square is what the count may be off by."""
LOOKS = (0.0, 2.0, 6.0, 20.0, 60.0, 180.0)
"""Times at which modes are compared, while they are linear."""
LEVEL = 1e-3
"""Of every claim: the probability that it fails by chance."""
CLUSTERS = published("bruno2024emergence")
MODES = consequence("Modes of a growing Gaussian field")
CHOICE = consequence("How small the fluctuation must be")


def linear_times(part: xr.Dataset) -> np.ndarray:
    """Frames at which every run is resolved and the root mean square of rho - 1 is at most LINEAR."""
    with np.errstate(invalid="ignore"):
        return np.flatnonzero((part["size"].values <= LINEAR).all(axis=0))


def looks(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[dict[str, Any]]:
    """One row per start and time of LOOKS in the linear phase: mean count, its error, M(t), mean square of rho - 1."""
    rows = []
    for name, part in data.items():
        for at in linear_times(part) if name != "draws" else ():
            t = float(part["time"][at])
            if t in LOOKS:
                found, error = mean_error(part["modes"].values[:, at])
                square = float(np.mean(part["size"].values[:, at] ** 2))
                predicted = float(theory.uniform.linear_modes(t, parameters.beta))
                rows.append({"name": name, "t": t, "found": found, "error": error, "square": square, "M": predicted})
    return rows


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """k_max clusters from the smallest noise; M(t) in the linear phase; the trend with the size of the noise."""
    beta, top, most = (
        parameters.beta,
        int(theory.uniform.dominant_degree(parameters.beta, 2)),
        max(parameters.exponents),
    )
    last = data[f"eps{most:g}"]
    found, error = mean_error(last["final"].values)
    # a density that is never resolved has no linear phase, and no claim holds
    linear = linear_times(last)
    left = (
        abs(float(theory.uniform.linear_modes(float(last["time"][linear[-1]]), beta)) - top) if len(linear) else np.nan
    )
    near = student(LEVEL, parameters.runs)
    made = [
        Claim.equal(
            f"β = {beta:g}, white noise of size 1e-{most:g}: the mean number of clusters is k_max",
            top, found, near * error + left,
            f"Student's test of {parameters.runs} runs at level {LEVEL:g}; M(t) − k_max at the end of the linear phase",
            origin=CLUSTERS,
        )
    ]  # fmt: skip
    found, error = mean_error(data["draws"]["modes"].values)
    made.append(
        Claim.equal(
            f"β = {beta:g}, t = 0: mean number of modes of K∗W, W white noise, is M(0)",
            float(theory.uniform.linear_modes(0.0, beta)), found, student(LEVEL, parameters.draws) * error,
            f"Student's test of {parameters.draws} draws at level {LEVEL:g}", origin=MODES,
        )
    )  # fmt: skip
    rows = looks(parameters, data)
    each = student(LEVEL, parameters.runs, len(rows))
    made.append(
        Claim.equal(
            f"β = {beta:g}, linear phase, white noise and {parameters.tokens} iid tokens: mean number of modes is M(t)",
            [row["M"] for row in rows], [row["found"] for row in rows],
            [each * row["error"] + top * row["square"] for row in rows],
            f"Student's test of {parameters.runs} runs, level {LEVEL:g} for all times; (mean square of ρ − 1) k_max",
            origin=MODES, labels=[f"{_words(row['name'])}, t = {row['t']:g}" for row in rows],
        )
    )  # fmt: skip
    distances = {x: np.abs(data[f"eps{x:g}"]["final"].values - top) for x in sorted(parameters.exponents)}
    sizes = np.concatenate([np.full(len(values), x) for x, values in distances.items()])
    alike = len(np.unique(np.concatenate(list(distances.values())))) == 1
    trend = None if alike else spearmanr(sizes, np.concatenate(list(distances.values())), alternative="less")
    made.append(
        Claim.at_most(
            f"β = {beta:g}: |clusters − k_max| falls with the size of the noise; p-value of no trend",
            LEVEL, 1.0 if trend is None else float(trend.pvalue), 0.0,
            f"Spearman's rank test, one-sided, at level {LEVEL:g}", origin=CHOICE,
            detail=", ".join(f"1e-{x:g}: {values.mean():.2f}" for x, values in distances.items()),
        )
    )  # fmt: skip
    return made


def _words(name: str) -> str:
    return "iid tokens" if name == "tokens" else f"white noise of size 1e-{name[3:]}"

"""Numbers of modes against Kac and Rice's formula in the linear phase, and of clusters against k_max."""

import numpy as np
import xarray as xr
from scipy.stats import spearmanr

from attnflow import theory
from attnflow.experiments import Claim, consequence, published
from attnflow.experiments.kit import LEVEL, Rows, mean_error, student
from attnflow_gallery.many_modes.simulate import Parameters

LINEAR = 0.2
"""Root mean square of rho - 1 up to which a time counts as linear: its square is what the count may be off by."""
LOOKS = (0.0, 2.0, 6.0, 20.0, 60.0, 180.0)
"""Times at which modes are compared, while they are linear."""
TREND = 1e-2
"""p-value at which a trend counts as seen."""
CLUSTERS = published("bruno2024emergence")
MODES = consequence("Modes of a growing Gaussian field")
CHOICE = consequence("How small the fluctuation must be")


def linear_times(part: xr.Dataset) -> np.ndarray:
    """Frames at which all runs are resolved, with a root mean square of rho - 1 of at most LINEAR."""
    return np.flatnonzero((part["size"].values <= LINEAR).all(axis=0))


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """k_max clusters from the smallest noise; M(t) in the linear phase; the trend with the size of the noise."""
    top = int(theory.uniform.dominant_degree(parameters.beta, 2))
    return [
        _clusters(parameters, data, top),
        _start(parameters, data["draws"]),
        _linear(parameters, data, top),
        _trend(parameters, data, top),
    ]


def _clusters(parameters: Parameters, data: dict[str, xr.Dataset], top: int) -> Claim:
    most = max(parameters.exponents)
    last = data[f"eps{most:g}"]
    found, error = mean_error(last["final"].values)
    # a density that is never resolved has no linear phase, and no claim holds
    linear, left = linear_times(last), np.nan
    if len(linear):
        left = abs(float(theory.uniform.linear_modes(float(last["time"][linear[-1]]), parameters.beta)) - top)
    words = f"β = {parameters.beta:g}, white noise of size 1e-{most:g}: the mean number of clusters is k_max"
    test = f"Student's test of {parameters.runs} runs at level {LEVEL:g}"
    reason = f"{test}; M(t) − k_max at the end of the linear phase"
    return Claim.equal(
        words, top, found, student(LEVEL, parameters.runs) * error + left, reason, origin=CLUSTERS, level=LEVEL
    )


def _start(parameters: Parameters, draws: xr.Dataset) -> Claim:
    found, error = mean_error(draws["modes"].values)
    expected, allowed = (
        float(theory.uniform.linear_modes(0.0, parameters.beta)),
        student(LEVEL, parameters.draws) * error,
    )
    words = f"β = {parameters.beta:g}, t = 0: mean number of modes of K∗W, W white noise, is M(0)"
    reason = f"Student's test of {parameters.draws} draws at level {LEVEL:g}"
    return Claim.equal(words, expected, found, allowed, reason, origin=MODES, level=LEVEL)


def _linear(parameters: Parameters, data: dict[str, xr.Dataset], top: int) -> Claim:
    """Starts at the times of LOOKS in their linear phases."""
    flows = {name: part for name, part in data.items() if name != "draws"}
    seen = [(name, at) for name, part in flows.items() for at in linear_times(part) if float(part["time"][at]) in LOOKS]
    each, rows = student(LEVEL, parameters.runs, len(seen)), Rows()
    for name, at in seen:
        part, t = flows[name], float(flows[name]["time"][at])
        found, error = mean_error(part["modes"].values[:, at])
        square = float(np.mean(part["size"].values[:, at] ** 2))
        predicted = float(theory.uniform.linear_modes(t, parameters.beta))
        rows.add(predicted, found, each * error + top * square, f"{_words(name)}, t = {t:g}")
    start = f"β = {parameters.beta:g}, linear phase, white noise and {parameters.tokens} iid tokens"
    test = f"Student's test of {parameters.runs} runs, level {LEVEL:g} for all times"
    return rows.equal(
        f"{start}: mean number of modes is M(t)", f"{test}; (mean square of ρ − 1) k_max", origin=MODES, level=LEVEL
    )


def _trend(parameters: Parameters, data: dict[str, xr.Dataset], top: int) -> Claim:
    distances = {x: np.abs(data[f"eps{x:g}"]["final"].values - top) for x in sorted(parameters.exponents)}
    sizes, values = np.repeat(list(distances), parameters.runs), np.concatenate(list(distances.values()))
    alike = len(np.unique(values)) == 1
    p_value = 1.0 if alike else float(spearmanr(sizes, values, alternative="less").pvalue)
    words = f"β = {parameters.beta:g}: |clusters − k_max| falls with the size of the noise; p-value of no trend"
    test = f"Spearman's rank test, one-sided, at level {TREND:g}"
    reason = f"{test}; a trend of 7.8 standard errors, as seen, is missed with probability 3e-8"
    detail = ", ".join(f"1e-{x:g}: {some.mean():.2f}" for x, some in distances.items())
    return Claim.at_most(words, TREND, p_value, 0.0, reason, origin=CHOICE, detail=detail, level=LEVEL)


def _words(name: str) -> str:
    return "iid tokens" if name == "tokens" else f"white noise of size 1e-{name[3:]}"

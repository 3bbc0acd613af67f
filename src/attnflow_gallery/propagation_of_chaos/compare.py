"""Distances of iid and of quiet tokens to the density, against the linearised flow."""

import dataclasses

import numpy as np
import xarray as xr

from attnflow.experiments import Claim, consequence, published
from attnflow.experiments.kit import Rows, student
from attnflow_gallery.propagation_of_chaos.simulate import MODELS, Parameters, sizes_of

RATE = published("chaintron2022chaos")
CARRIED = consequence("Noise carried by the linearised flow")
QUIET = consequence("Quiet tokens")
LEVEL = 1e-7
"""Of Student's test; skewed distances make the probability that chance fails a claim larger, below 1e-6."""
SIZES = 3
"""A power of n is claimed where noise is small at this many sizes."""
DRAWS = 50
"""A constant is claimed where noise is small in this many samples."""


@dataclasses.dataclass(frozen=True)
class Summary:
    """What the samples of one model say, (size, time)."""

    model: str
    sizes: np.ndarray
    draws: np.ndarray
    times: np.ndarray
    mean: np.ndarray
    """Of W_1."""
    spread: np.ndarray
    """(time,): standard deviation of W_1 as a share of its mean, pooled over sizes."""
    missed: np.ndarray
    """Root mean square of W_1/(W_1 of the linearised flow from the same tokens) - 1."""
    missed_error: np.ndarray
    """Standard error of log `missed`."""
    apart: np.ndarray
    """(time,): how far W_1 may be off by quadrature and by the steps of the tokens."""
    small: np.ndarray
    """Whether noise is small by the linearised flow: the square of its share is below a standard error of the mean."""
    constant: np.ndarray
    """(time,): sqrt(n) W_1, mean over the samples with small noise (NaN without any); `error` its standard error."""
    error: np.ndarray
    count: np.ndarray
    """(time,): number of samples with small noise."""
    predicted: np.ndarray
    """(time,): the same for Gaussian noise in the linearised flow; `predicted_error` its Monte Carlo error."""
    predicted_error: np.ndarray

    @classmethod
    def of(cls, parameters: Parameters, data: dict[str, xr.Dataset], model: str) -> "Summary":
        """Read the parts of one model."""
        part = data[f"linear-{model}"]
        sizes, draws = (np.array(column) for column in zip(*sizes_of(parameters, model), strict=True))
        measured = [data[f"tokens-{model}-{n}"]["measured"].values for n in sizes]
        off = [rows / data[f"tokens-{model}-{n}"]["linear"].values - 1 for rows, n in zip(measured, sizes, strict=True)]
        mean = np.array([rows.mean(axis=0) for rows in measured])
        squares = sum(np.sum((rows / m - 1) ** 2, axis=0) for rows, m in zip(measured, mean, strict=True))
        spread = np.sqrt(squares / (np.sum(draws) - len(draws)))
        second = np.array([np.mean(rows**2, axis=0) for rows in off])
        error = np.array([np.std(rows**2, axis=0, ddof=1) / np.sqrt(len(rows)) for rows in off])
        noise, wide = (part[name].values[::2] for name in ("noise", "deviation"))
        allowed = wide / part["constant"].values[::2] / np.sqrt(draws)[:, None]
        used = noise**2 / sizes[:, None] / allowed
        small, mean = ~(used > 1), mean + 0 * used  # what is not a number stays so, and is not left out
        weights = draws[:, None] * small
        with np.errstate(invalid="ignore", divide="ignore"):
            count = np.sum(weights, axis=0)
            constant = np.sum(weights * np.sqrt(sizes)[:, None] * mean, axis=0) / count
            own, missed = spread * constant / np.sqrt(count), (np.sqrt(second), error / (2 * second))
        apart = part["quadrature"].values + float(part["apart"])
        known = (part[name].values[::2] for name in ("constant", "error"))
        head = model, sizes, draws, part["time"].values, mean, spread
        return cls(*head, *missed, apart, small, constant, own, count, *known)


def summaries(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Summary]:
    """One for every model that was simulated."""
    return [Summary.of(parameters, data, model) for model in MODELS if sizes_of(parameters, model)]


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """The power of n; constants on the circle and on S^2; quiet tokens."""
    found = summaries(parameters, data)
    return [_rate(found), _constant(found), _sphere(parameters, data), _quiet(parameters, data)]


def power(sizes: np.ndarray, values: np.ndarray, weights: np.ndarray, off: np.ndarray) -> tuple[float, float, float]:
    """The power of n in `values` by weighted least squares, its standard error, and what errors `off` of log values do.

    The standard error is for logs whose variances are 1/weights.
    """
    x = np.log(sizes) - np.average(np.log(sizes), weights=weights)
    total = np.sum(weights * x**2)
    found = np.sum(weights * x * np.log(values)) / total
    return float(found), float(1 / np.sqrt(total)), float(np.sum(weights * np.abs(x) * off) / total)


def _allowed(found: list[Summary], kept: list[np.ndarray]) -> tuple[float, str]:
    """Standard errors that the entries of one claim may be off, and words; the spread is pooled over sizes."""
    tests = int(sum(np.sum(one) for one in kept))
    allowed = student(LEVEL, min(int(np.sum(one.draws)) for one in found), tests)
    return allowed, f"{allowed:.2g} standard errors (level {LEVEL:g} for all {tests})"


def _rate(found: list[Summary]) -> Claim:
    """The power of n, by least squares of log mean W_1 weighted by samples, where noise is small at three sizes."""
    rows, kept = Rows(), [np.sum(one.small, axis=0) >= SIZES for one in found]
    allowed, words = _allowed(found, kept)
    for one, times in zip(found, kept, strict=True):
        for at in np.flatnonzero(times):
            some = one.small[:, at]
            mean = one.mean[some, at]
            slope, error, off = power(one.sizes[some], mean, one.draws[some], one.apart[at] / mean)
            rows.add(-0.5, slope, allowed * one.spread[at] * error + off, f"{one.model}, t = {one.times[at]:g}")
    says = "circle: the mean W_1 of n iid tokens to the density falls like n^(-1/2): power of n"
    detail = "tolerances are at most " + f"{max((float(np.max(row[2])) for row in rows.values), default=np.nan):.2f}"
    return rows.equal(says, f"{words} over samples; quadrature and steps", origin=RATE, level=LEVEL, detail=detail)


def _constant(found: list[Summary]) -> Claim:
    rows, share, kept = Rows(), 0.0, [one.count >= DRAWS for one in found]
    allowed, words = _allowed(found, kept)
    for one, some in zip(found, kept, strict=True):
        room = allowed * np.hypot(one.error, one.predicted_error) + np.sqrt(np.max(one.sizes)) * one.apart
        labels = [f"{one.model}, t = {t:g}" for t in one.times[some]]
        rows.add(one.predicted[some], one.constant[some], room[some], labels)
        share = max(share, 100 * np.max((room / one.predicted)[some]))
    ratios = [(one.predicted[some][-1] / one.predicted[0], one.model) for one, some in zip(found, kept, strict=True)]
    grown = ", ".join(f"{model}: {ratio:.2f} times that at t = 0" for ratio, model in ratios)
    says = "circle: mean of √n W_1 is that of Gaussian noise carried by the linearised flow"
    reason = f"{words} of tokens and of Gaussian fields; quadrature and steps"
    detail = f"tolerances are at most {share:.0f} %; at the last time {grown}"
    return rows.equal(says, reason, origin=CARRIED, level=LEVEL, detail=detail)


def _sphere(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows, part = Rows(), data["sphere-linear"]
    constant, labels = part["constant"].values, [f"t = {t:g}" for t in part["time"].values]
    tests = len(labels) * len(parameters.sphere_sizes)
    allowed = student(LEVEL, min(parameters.sphere_draws), tests)
    for n, distance, error in zip(parameters.sphere_sizes, *observed(parameters, data), strict=True):
        # what linearisation misses is of order 1/n for a mean square
        room = allowed * np.sqrt(n) * error + constant * (constant**2 / n)
        rows.add(constant, np.sqrt(n) * distance, room, [f"n = {n}, {t}" for t in labels])
    says = "S²: root mean square of √n times the distance by smooth observables is the linearised flow's"
    words = f"{allowed:.2g} standard errors over samples (level {LEVEL:g} for all {tests})"
    reason = f"{words}; a share D² of the second order, D the distance"
    return rows.equal(says, reason, origin=CARRIED, level=LEVEL)


def observed(parameters: Parameters, data: dict[str, xr.Dataset]) -> tuple[np.ndarray, np.ndarray]:
    """Root mean square distance on S^2 by smooth observables and its standard error, (size, time)."""
    rows = [data[f"sphere-{n}"]["measured"].values for n in parameters.sphere_sizes]
    found = np.sqrt([np.mean(one**2, axis=0) for one in rows])
    error = np.array([np.std(one**2, axis=0, ddof=1) / np.sqrt(len(one)) for one in rows]) / (2 * found)
    return found, error


def _quiet(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    part, rows = data["linear-SA"], Rows()
    # steps are 4 times as short, of order 4; displaced tokens change W_1 by no more than that
    room = part["quadrature"].values + float(part["apart"]) / 4**4
    for n, measured in zip(parameters.quiet_sizes, data["quiet"]["measured"].values, strict=True):
        labels = [f"n = {n}, t = {t:g}" for t in part["time"].values] * len(measured)
        rows.add(np.pi / 2, n * measured, n * room, labels)
    reason = "quadrature, and the steps of the tokens (order 4)"
    return rows.equal("circle: quiet tokens have n W_1 = π/2 at all times", reason, origin=QUIET)

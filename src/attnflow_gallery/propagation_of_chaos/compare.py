"""Distances of iid and of quiet tokens to the density, against the linearised flow."""

import dataclasses

import numpy as np
import xarray as xr

from attnflow.experiments import Claim, consequence, published
from attnflow_gallery.propagation_of_chaos.simulate import MODELS, Parameters, sizes_of

RATE = published("chaintron2022chaos")
CARRIED = consequence("Noise carried by the linearised flow")
SECOND = consequence("The second order")
QUIET = consequence("Quiet tokens")
ERRORS = 4.0
"""Standard errors that are allowed: beyond them lie 6e-5 of the values of a normal distribution."""


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
    """Root mean square of W_1/(that of the linearised flow from the same tokens) - 1."""
    missed_error: np.ndarray
    """Standard error of log `missed`."""
    apart: np.ndarray
    """(time,): how far W_1 may be off by quadrature and by the steps of the tokens."""
    small: np.ndarray
    """Whether noise is small by the linearised flow: the square of its share is below a standard error of the mean."""
    constant: np.ndarray
    """(time,): sqrt(n) W_1, mean over the samples with small noise (NaN without any); `error` its standard error."""
    error: np.ndarray
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
        share = part["noise"].values[::2] / np.sqrt(sizes)[:, None]
        small = share**2 <= (part["deviation"] / part["constant"]).values[::2] / np.sqrt(draws)[:, None]
        weights = draws[:, None] * small
        with np.errstate(invalid="ignore", divide="ignore"):
            count = np.sum(weights, axis=0)
            constant = np.sum(weights * np.sqrt(sizes)[:, None] * mean, axis=0) / count
            return cls(
                model, sizes, draws, part["time"].values, mean, spread, np.sqrt(second), error / (2 * second),
                part["quadrature"].values + float(part["apart"]), small, constant, spread * constant / np.sqrt(count),
                part["constant"].values[::2], part["error"].values[::2],
            )  # fmt: skip


def summaries(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Summary]:
    """One for every model that was simulated."""
    return [Summary.of(parameters, data, model) for model in MODELS if sizes_of(parameters, model)]


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """The power of n; constants on the circle and on S^2; the second order; quiet tokens."""
    found = summaries(parameters, data)
    return [_rate(found), _constant(found), _sphere(parameters, data), _second(found), _quiet(parameters, data)]


def _rate(found: list[Summary]) -> Claim:
    """The power of n, by least squares of log mean W_1 weighted by samples, where noise is small at two sizes."""
    rows = []
    for one in found:
        for at, t in enumerate(one.times):
            some = one.small[:, at]
            if np.sum(some) < 2:
                continue
            x, y, weights = np.log(one.sizes[some]), np.log(one.mean[some, at]), one.draws[some]
            x = x - np.average(x, weights=weights)
            total = np.sum(weights * x**2)
            off = np.sum(weights * np.abs(x) * one.apart[at] / one.mean[some, at]) / total
            error = one.spread[at] / np.sqrt(total)
            rows.append((np.sum(weights * x * y) / total, ERRORS * error + off, f"{one.model}, t = {t:g}"))
    powers, tolerance, labels = zip(*rows, strict=True)
    return Claim.equal(
        "circle: the mean W_1 of n iid tokens to the density falls like n^(-1/2): power of n", -0.5, powers, tolerance,
        "4 standard errors over samples; quadrature and steps", origin=RATE, labels=labels,
        detail=f"{sum(np.sum(~one.small) for one in found)} pairs of n and t are left out: noise is not small there",
    )  # fmt: skip


def _constant(found: list[Summary]) -> Claim:
    predicted, measured, tolerance, labels = [], [], [], []
    for one in found:
        room = ERRORS * np.hypot(one.error, one.predicted_error) + np.sqrt(np.max(one.sizes)) * one.apart
        for at, t in enumerate(one.times):
            predicted.append(one.predicted[at])
            measured.append(one.constant[at])
            tolerance.append(room[at])
            labels.append(f"{one.model}, t = {t:g}")
    share = 100 * max(np.array(tolerance) / np.array(predicted))
    grown = ", ".join(f"{one.model}: {one.predicted[-1] / one.predicted[0]:.2f} times that at t = 0" for one in found)
    return Claim.equal(
        "circle: mean of √n W_1 is that of Gaussian noise carried by the linearised flow", predicted, measured,
        tolerance, "4 standard errors of tokens and of Gaussian fields; quadrature and steps", origin=CARRIED,
        labels=labels, detail=f"tolerances are at most {share:.0f} %; at the end {grown}",
    )  # fmt: skip


def _sphere(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    power, error = observed(parameters, data)
    constant, times = data["sphere-linear"]["constant"].values, data["sphere-linear"]["time"].values
    sizes = np.array(parameters.sphere_sizes)
    scaled = np.sqrt(sizes)[:, None] * power
    # what linearisation misses is of order 1/n for a mean square
    return Claim.equal(
        "S²: root mean square of √n times the distance by smooth observables is the linearised flow's", constant,
        scaled, ERRORS * np.sqrt(sizes)[:, None] * error + constant * (constant**2 / sizes[:, None]),
        "4 standard errors over samples; a share D² of the second order, D the distance", origin=CARRIED,
        labels=lambda at: f"n = {sizes[at[0]]}, t = {times[at[1]]:g}",
    )  # fmt: skip


def observed(parameters: Parameters, data: dict[str, xr.Dataset]) -> tuple[np.ndarray, np.ndarray]:
    """Root mean square distance on S^2 by smooth observables and its standard error, (size, time)."""
    rows = [data[f"sphere-{n}"]["measured"].values for n in parameters.sphere_sizes]
    power = np.sqrt([np.mean(one**2, axis=0) for one in rows])
    error = np.array([np.std(one**2, axis=0, ddof=1) / np.sqrt(len(one)) for one in rows]) / (2 * power)
    return power, error


def _second(found: list[Summary]) -> Claim:
    """The power of n of what the linearised flow from the same tokens misses, as a share."""
    rows = []
    for one in found:
        for at, t in enumerate(one.times[1:], start=1):
            some = one.small[:, at] & (one.apart[at] < 0.1 * one.missed[:, at] * one.mean[:, at])
            if np.sum(some) < 2:
                continue
            x, y, weights = np.log(one.sizes[some]), np.log(one.missed[some, at]), one.missed_error[some, at] ** -2.0
            x = x - np.average(x, weights=weights)
            total = np.sum(weights * x**2)
            off = np.sum(weights * np.abs(x) * (one.apart[at] / (one.missed * one.mean)[some, at]) ** 2) / total
            rows.append((np.sum(weights * x * y) / total, ERRORS / np.sqrt(total) + off, f"{one.model}, t = {t:g}"))
    powers, tolerance, labels = zip(*rows, strict=True) if rows else ((np.nan,), (0.0,), ("none",))
    return Claim.equal(
        "circle: the share of W_1 that the linearised flow from the same tokens misses falls like n^(-1/2)", -0.5,
        powers, tolerance, "4 standard errors over samples; quadrature and steps", origin=SECOND, labels=labels,
    )  # fmt: skip


def _quiet(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    part, measured, sizes = data["linear-SA"], data["quiet"]["measured"].values, np.array(parameters.quiet_sizes)
    # steps are 4 times as short, of order 4; displaced tokens change W_1 by no more than that
    room = sizes[:, None] * (part["quadrature"].values + float(part["apart"]) / 4**4)
    return Claim.equal(
        "circle: quiet tokens have n W_1 = π/2 at all times", np.pi / 2, sizes[:, None, None] * measured,
        room[:, None, :], "quadrature, and the steps of the tokens (order 4)", origin=QUIET,
        labels=lambda at: f"n = {sizes[at[0]]}, t = {part['time'].values[at[2]]:g}",
    )  # fmt: skip

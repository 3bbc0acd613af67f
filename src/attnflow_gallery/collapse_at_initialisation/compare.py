"""Overlaps through depth against the ODE, depths of collapse, the first layer, and differences between networks."""

import math

import numpy as np
import xarray as xr
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq

from attnflow import theory
from attnflow.experiments import Claim, consequence
from attnflow.experiments.kit import student
from attnflow_gallery.collapse_at_initialisation.simulate import Parameters, name

PATH = consequence("The ODE of one overlap")
TIMES = consequence("Depth of collapse")
FIRST = consequence("The first layer")
SPREAD = consequence("Differences between networks")
LEVEL = 1e-4
"""The probability that a right claim fails by chance."""
LAG = 4.0
"""Over d: how far the mean over networks may lag behind the ODE, which has no noise."""
HALF = 0.5
"""The overlap that tokens pass when they collapse."""


def straightened(part: xr.Dataset) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean overlaps (tau,) without the bias of first order in the step, standard errors, and what steps changed."""
    rows = part["overlap"].values
    means, errors = rows.mean(axis=1), rows.std(axis=1, ddof=1) / math.sqrt(rows.shape[1])
    return 2 * means[1] - means[0], np.hypot(2 * errors[1], errors[0]), np.abs(means[1] - means[0])


def left(parameters: Parameters, change: np.ndarray) -> np.ndarray:
    """What steps leave in second order: 4 eta^2 times the change by halving them; and the lag of the mean."""
    return 4 * change / parameters.layers + LAG / parameters.d


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Paths, depths of collapse, the closed form at b = 0, the first layer, and differences between networks."""
    return [
        _paths(parameters, data),
        *_times(parameters, data),
        _first(parameters, data["first"]),
        *_networks(parameters, data),
    ]


def _paths(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    predicted, measured, tolerance = [], [], []
    for n, b in parameters.cases:
        part = data[name(n, b)]
        mean, error, change = straightened(part)
        tests = len(parameters.cases) * parameters.until
        count = student(LEVEL, part.sizes["replica"], tests)
        predicted.append(theory.random_layers.simplex_path(n, b, part["tau"].values[1:], d=parameters.d))
        measured.append(mean[1:])
        tolerance.append(count * error[1:] + left(parameters, change[1:]))
    return Claim.equal(
        f"d = {parameters.d}: mean overlap at τ = 1, 2, ... is that of the ODE", predicted, measured, tolerance,
        f"Student's test, level {LEVEL:g} for all; second order of the steps, 4η² of the first; {LAG:g}/d for noise",
        origin=PATH, labels=lambda at: f"n = {parameters.cases[at[0]][0]}, b = {parameters.cases[at[0]][1]:g}, "
        f"τ = {at[1] + 1}", detail=f"tolerances up to {np.max(tolerance):.4f}",
    )  # fmt: skip


def passing(tau: np.ndarray, overlap: np.ndarray, n: int) -> float:
    """When the overlap passes 1/2: log(u/(1-u)), u = |mean token|^2, is interpolated, which is straight for b = 0."""
    u = (1 + (n - 1) * overlap) / n
    if not (u[0] < 0.5 and np.all((u > 0) & (u < 1))):
        return math.nan
    level = (1 + (n - 1) * HALF) / n
    curve = CubicSpline(tau, np.log(u / (1 - u)) - math.log(level / (1 - level)))
    return float(brentq(curve, tau[0], tau[-1])) if curve(tau[0]) < 0 < curve(tau[-1]) else math.nan


def collapse(parameters: Parameters, data: dict[str, xr.Dataset], n: int, b: float) -> tuple[float, float, float]:
    """The depth at which the mean overlap passes 1/2, its standard error, and the error that is not by chance."""
    part = data[name(n, b)]
    tau = part["tau"].values
    mean, error, change = straightened(part)
    exact = theory.random_layers.simplex_path(n, b, tau, d=parameters.d)
    known = float(theory.random_layers.collapse_time(n, b, HALF, d=parameters.d))
    speed = float(theory.random_layers.simplex_drift(HALF, n, b, parameters.d))
    apart = float(np.interp(known, tau, left(parameters, change))) / speed
    missed = abs(passing(tau, exact, n) - known)
    return passing(tau, mean, n), float(np.interp(known, tau, error)) / speed, apart + missed


def _times(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    found = np.array([collapse(parameters, data, n, b) for n, b in parameters.cases])
    counts = np.array([student(LEVEL, dict(parameters.replicas)[n], len(found)) for n, _ in parameters.cases])
    tolerance = counts * found[:, 1] + found[:, 2]
    labels = [f"n = {n}, b = {b:g}" for n, b in parameters.cases]
    hot = np.array([b == 0 for _, b in parameters.cases])
    words = f"Student's test, level {LEVEL:g} for all; steps, noise and interpolation"
    return [
        Claim.equal(
            f"d = {parameters.d}: depth τ at which the mean overlap passes 1/2",
            [float(theory.random_layers.collapse_time(n, b, HALF, d=parameters.d)) for n, b in parameters.cases],
            found[:, 0], tolerance, words, origin=TIMES, labels=labels,
        ),
        Claim.equal(
            "b = 0: this depth is ln(n + 1)", [math.log(n + 1) for n, b in parameters.cases if b == 0], found[hot, 0],
            tolerance[hot] + 8 / parameters.d, f"{words}; 8/d for finite d", origin=TIMES,
            labels=[one for one, is_hot in zip(labels, hot, strict=True) if is_hot],
        ),
    ]  # fmt: skip


def _first(parameters: Parameters, part: xr.Dataset) -> Claim:
    n, h = parameters.cases[0][0], parameters.first_step
    values = n * part["overlap"].values / h
    errors = values.std(axis=1, ddof=1) / math.sqrt(values.shape[1])
    count = student(LEVEL, values.shape[1], len(values))
    return Claim.equal(
        "first layer: n times the mean overlap over η²/H is 1 at every temperature", 1.0, values.mean(axis=1),
        count * errors + 2 * h, f"Student's test, level {LEVEL:g} for all; 2η² for the finite step", origin=FIRST,
        labels=[f"b = {b:g}" for b in part["scale"].values],
    )  # fmt: skip


def spread(parameters: Parameters, tau: float) -> float:
    """sqrt(d) times the standard deviation of the mean overlap at tau, b = 0, for large d."""
    n = parameters.cases[0][0]
    u0, times = 1 / n, np.linspace(0.0, tau, 401)
    u = np.asarray(theory.random_layers.hot_mean_square(u0, times))
    gamma = (n * u - 1) / (n - 1)
    noise = 4 * n / (n - 1) ** 2 * u * u * ((1 - u) + (n - 1) * (1 - 2 * u + u * gamma))
    speed = u * (1 - u)
    return math.sqrt(float(np.trapezoid((speed[-1] / speed) ** 2 * noise, times)))


def differences(parameters: Parameters, data: dict[str, xr.Dataset]) -> tuple[np.ndarray, np.ndarray]:
    """sqrt(d) times the standard deviation over networks, for every d, and its standard error."""
    found, errors = [], []
    for d in parameters.dims:
        values = data[f"d{d}"]["overlap"].values
        off = values - values.mean()
        deviation = values.std(ddof=1)
        fourth = np.mean(off**4) / deviation**4
        found.append(math.sqrt(d) * deviation)
        errors.append(math.sqrt(d) * deviation * math.sqrt((fourth - 1) / len(values)) / 2)
    return np.array(found), np.array(errors)


def _networks(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    found, errors = differences(parameters, data)
    dims, known = np.array(parameters.dims), spread(parameters, parameters.mark)
    count = student(LEVEL, parameters.networks, len(dims))
    return [
        Claim.equal(
            f"b = 0, τ = {parameters.mark}: √d times the standard deviation of the mean overlap over networks", known,
            found, count * errors + known * (1 / parameters.layers + 8 / dims),
            f"Student's test, level {LEVEL:g} for all; shares 2η² for the steps and 8/d for the next order",
            origin=SPREAD, labels=[f"d = {d}" for d in dims],
        ),
    ]  # fmt: skip

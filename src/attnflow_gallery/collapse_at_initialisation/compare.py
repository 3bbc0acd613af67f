"""Overlaps through depth against the ODE, depths of collapse, the first layer, and differences between networks."""

import math

import numpy as np
import xarray as xr
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq

from attnflow import theory
from attnflow.experiments import Claim, consequence
from attnflow.experiments.kit import Rows, averaged, student
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
    means, errors = averaged(part["overlap"], axis=1)
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
        _networks(parameters, data),
    ]


def _paths(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows, most = Rows(), 0.0
    for n, b in parameters.cases:
        part = data[name(n, b)].isel(tau=slice(1, None))
        tau = part["tau"].values
        mean, error, change = straightened(part)
        count = student(LEVEL, part.sizes["replica"], len(parameters.cases) * parameters.until)
        tolerance = count * error + left(parameters, change)
        exact = theory.random_layers.simplex_path(n, b, tau, d=parameters.d)
        rows.add(exact, mean, tolerance, [f"n = {n}, b = {b:g}, τ = {t:g}" for t in tau])
        most = max(most, float(tolerance.max()))
    return rows.equal(
        f"d = {parameters.d}: mean overlap at τ = 1, 2, ... is that of the ODE",
        f"Student's test, level {LEVEL:g} for all; second order of the steps, 4η² of the first; {LAG:g}/d for noise",
        origin=PATH,
        detail=f"tolerances up to {most:.4f}",
    )


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
    speed = float(theory.random_layers.simplex_drift(HALF, n, b, d=parameters.d))
    apart = float(np.interp(known, tau, left(parameters, change))) / speed
    missed = abs(passing(tau, exact, n) - known)
    return passing(tau, mean, n), float(np.interp(known, tau, error)) / speed, apart + missed


def _times(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    every, hot = Rows(), Rows()
    for n, b in parameters.cases:
        found, error, apart = collapse(parameters, data, n, b)
        tolerance = student(LEVEL, dict(parameters.replicas)[n], len(parameters.cases)) * error + apart
        every.add(
            theory.random_layers.collapse_time(n, b, HALF, d=parameters.d), found, tolerance, f"n = {n}, b = {b:g}"
        )
        if b == 0:
            hot.add(math.log(n + 1), found, tolerance + 8 / parameters.d, f"n = {n}, b = {b:g}")
    reason = f"Student's test, level {LEVEL:g} for all; steps, noise and interpolation"
    return [
        every.equal(f"d = {parameters.d}: depth τ at which the mean overlap passes 1/2", reason, origin=TIMES),
        hot.equal("b = 0: this depth is ln(n + 1)", f"{reason}; 8/d for finite d", origin=TIMES),
    ]


def first_layer(parameters: Parameters, part: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """n times the mean overlap over eta^2/H, for every b, and its standard error."""
    return averaged(parameters.cases[0][0] * part["overlap"] / parameters.first_step, axis=1)


def _first(parameters: Parameters, part: xr.Dataset) -> Claim:
    rows = Rows()
    mean, error = first_layer(parameters, part)
    tolerance = student(LEVEL, part.sizes["replica"], len(mean)) * error + 2 * parameters.first_step
    rows.add(1.0, mean, tolerance, [f"b = {b:g}" for b in part["scale"].values])
    statement = "first layer: n times the mean overlap over η²/H is 1 at every temperature"
    return rows.equal(statement, f"Student's test, level {LEVEL:g} for all; 2η² for the finite step", origin=FIRST)


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
    values = np.array([data[f"d{d}"]["overlap"].values for d in parameters.dims])
    deviation = values.std(axis=1, ddof=1)
    fourth = np.mean((values - values.mean(axis=1, keepdims=True)) ** 4, axis=1) / deviation**4
    found = np.sqrt(parameters.dims) * deviation
    return found, found * np.sqrt((fourth - 1) / values.shape[1]) / 2


def _networks(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    found, errors = differences(parameters, data)
    dims, known, rows = np.array(parameters.dims), spread(parameters, parameters.mark), Rows()
    tolerance = student(LEVEL, parameters.networks, len(dims)) * errors + known * (1 / parameters.layers + 8 / dims)
    rows.add(known, found, tolerance, [f"d = {d}" for d in dims])
    return rows.equal(
        f"b = 0, τ = {parameters.mark}: √d times the standard deviation of the mean overlap over networks",
        f"Student's test, level {LEVEL:g} for all; shares 2η² for the steps and 8/d for the next order",
        origin=SPREAD,
    )

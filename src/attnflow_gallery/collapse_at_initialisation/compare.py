"""Overlaps through depth against the ODE, depths of collapse, the first layer, and differences between networks."""

import math

import numpy as np
import xarray as xr
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq

from attnflow import theory
from attnflow.experiments import Claim, consequence
from attnflow.experiments.kit import LEVEL, Rows, averaged, student
from attnflow_gallery.collapse_at_initialisation import delay
from attnflow_gallery.collapse_at_initialisation.simulate import BATCHES, Parameters, name

PATH = consequence("The ODE of one overlap")
TIMES = consequence("Depth of collapse")
FIRST = consequence("The first layer")
LATER = consequence("Later in finite dimension")
SPREAD = consequence("Differences between networks")
LAG = 4.0
"""Over d: how far the mean over networks may lag behind the ODE, which has no noise."""
HALF = 0.5
"""The overlap that tokens pass when they collapse."""


def straightened(part: xr.Dataset) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean overlaps (tau,) without the bias of first order in the step, standard errors, and what steps changed."""
    means, errors = averaged(part["overlap"], axis=1)
    return 2 * means[1] - means[0], np.hypot(2 * errors[1], errors[0]), np.abs(means[1] - means[0])


def left(parameters: Parameters, change: np.ndarray) -> np.ndarray:
    """What steps leave in second order: 4 eta^2 times the change by halving them."""
    return 4 * change / parameters.layers


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Paths, depths of collapse, closed forms at b = 0, the first layer, and differences between networks."""
    return [
        _paths(parameters, data),
        *_times(parameters, data),
        _later(parameters, data),
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
        tolerance = count * error + left(parameters, change) + LAG / parameters.d
        exact = theory.random_layers.simplex_path(n, b, tau, d=parameters.d)
        rows.add(exact, mean, tolerance, [f"n = {n}, b = {b:g}, τ = {t:g}" for t in tau])
        most = max(most, float(tolerance.max()))
    return rows.equal(
        f"d = {parameters.d}: mean overlap at τ = 1, 2, ... is that of the ODE",
        f"Student's test, level {LEVEL:g} for all; second order of the steps, 4η² of the first; {LAG:g}/d for noise",
        origin=PATH,
        level=LEVEL,
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
    every, hot, d = Rows(), Rows(), parameters.d
    for n, b in parameters.cases:
        found, error, apart = collapse(parameters, data, n, b)
        tolerance = student(LEVEL, dict(parameters.replicas)[n], len(parameters.cases)) * error + apart
        speed = float(theory.random_layers.simplex_drift(HALF, n, b, d=d))
        exact = theory.random_layers.collapse_time(n, b, HALF, d=d)
        every.add(exact, found, tolerance + LAG / d / speed, f"n = {n}, b = {b:g}")
        if b == 0:
            later = delay.limit(n) / d
            hot.add(math.log(n + 1) + later, found, tolerance + later**2, f"n = {n}, b = {b:g}")
    reason = f"Student's test, level {LEVEL:g} for all; second order of the steps, interpolation"
    says = f"d = {d}: depth τ at which the mean overlap passes 1/2"
    return [
        every.equal(says, f"{reason}; {LAG:g}/d for noise", origin=TIMES, level=LEVEL),
        hot.equal(
            "b = 0: this depth is ln(n + 1) + c_n/d",
            f"{reason}; (c_n/d)² for the next order",
            origin=TIMES,
            level=LEVEL,
        ),
    ]


def weights(dims: np.ndarray) -> np.ndarray:
    """Of sum 1; they take out what grows like sqrt(d), the noise that all dimensions share, and what falls like 1/d."""
    return np.linalg.solve(np.stack([np.ones_like(dims), np.sqrt(dims), 1 / dims]), [1.0, 0.0, 0.0])


def later(part: xr.Dataset, n: int, h: float) -> tuple[np.ndarray, float, float]:
    """d (depth of collapse - ln(n + 1)) for every d, its value at d = inf, and the standard error of that."""
    rows, tau = part["overlap"].values, np.log1p(h) * part["layer"].values
    dims = part["d"].values.astype(float)

    def constants(overlap: np.ndarray) -> np.ndarray:
        return dims * ([passing(tau, one, n) - math.log(n + 1) for one in overlap])

    total = rows.sum(axis=1)
    ends = [weights(dims) @ constants((total - rows[:, k]) / (BATCHES - 1)) for k in range(BATCHES)]
    found = constants(total / BATCHES)
    return found, float(weights(dims) @ found), math.sqrt((BATCHES - 1) * np.var(ends))


def _later(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    h, rows, seen = 1 / parameters.delay_layers, Rows(), []
    for n in parameters.delay_contexts:
        found, end, error = later(data[f"delay{n}"], n, h)
        known = delay.of_layers(n, h)
        rest = known * (known / parameters.delay_dims[0]) ** 2
        rows.add(known, end, student(LEVEL, BATCHES, len(parameters.delay_contexts)) * error + rest, f"n = {n}")
        seen.append(f"n = {n}: " + ", ".join(f"{one:.2f}" for one in found) + f"; c_n = {delay.limit(n):.3f} for h → 0")
    test = f"Student's test of {BATCHES} batches (errors by leaving one out), level {LEVEL:g} for all"
    return rows.equal(
        "b = 0: d times (depth − ln(n + 1)) for d → ∞, layers on their clock log(1 + h)",
        f"{test}; (c_n/d)² of c_n for the third order in 1/d",
        origin=LATER,
        level=LEVEL,
        detail=f"at d = {', '.join(map(str, parameters.delay_dims))} " + "; ".join(seen),
    )


def first_layer(parameters: Parameters, part: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """n times the mean overlap over eta^2/H, for every b, and its standard error."""
    return averaged(parameters.cases[0][0] * part["overlap"] / parameters.first_step, axis=1)


def _first(parameters: Parameters, part: xr.Dataset) -> Claim:
    rows = Rows()
    mean, error = first_layer(parameters, part)
    tolerance = student(LEVEL, part.sizes["replica"], len(mean)) * error + 2 * parameters.first_step
    rows.add(1.0, mean, tolerance, [f"b = {b:g}" for b in part["scale"].values])
    statement = "first layer: n times the mean overlap over η²/H is 1 at every temperature"
    return rows.equal(
        statement, f"Student's test, level {LEVEL:g} for all; 2η² for the finite step", origin=FIRST, level=LEVEL
    )


def spread(parameters: Parameters, tau: float) -> float:
    """sqrt(d) times the standard deviation of the mean overlap at tau, b = 0, for large d."""
    n = parameters.cases[0][0]
    u = float(theory.random_layers.hot_mean_square(1 / n, tau))
    return 2 * math.sqrt(tau) * u * (1 - u) * n / (n - 1)


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
        level=LEVEL,
    )

"""Orders from halvings, first terms from the variational equation, fluctuations from the linear noise equation."""

import numpy as np
import xarray as xr

from attnflow.experiments import NUMERICS, Claim, Origin, consequence, published
from attnflow.experiments.kit import LEVEL, Rows, fit, left_of_order, orders, student
from attnflow_gallery.euler_limit.simulate import FRAMES, NAMES, Parameters

DEEP = published("chen2018neural")
FIRST = consequence("The first term of the error")
INDEPENDENT = consequence("Independent layers")


def first_terms(parameters: Parameters, layers: xr.Dataset) -> np.ndarray:
    """Error/h at every frame, extrapolated from h and h/2 to h = 0: (name, halving, time)."""
    ratio = layers["error"].values * np.array(parameters.layers)[:, None] / parameters.until
    return np.asarray(2 * ratio[:, 1:] - ratio[:, :-1])


def fluctuation(random: xr.Dataset) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers of layers, mean squares over networks, and their standard errors."""
    squares = random["square"].values
    return random["count"].values, squares.mean(axis=1), squares.std(axis=1, ddof=1) / np.sqrt(squares.shape[1])


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Order 1 uniformly in time, its constant, order 1/2 with its constant, order 4."""
    return [*_layers(parameters, data), *_random(parameters, data), _steps(data["steps"])]


def _order(says: str, order: float, errors: np.ndarray, labels: tuple[str, ...], origin: Origin) -> Claim:
    found = orders(errors)
    reason = "3 times the last change of the order by a halving, or half the change before if that is larger"
    return Claim.equal(says, order, found[:, -1], left_of_order(found), reason, origin=origin, labels=labels)


def _layers(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    part, limit, rows = data["layers"], data["limit"], Rows()
    for name, (*_, before, last) in zip(NAMES, first_terms(parameters, part), strict=True):
        labels = [f"{name}, t = {t:.3g}" for t in limit["time"].values[1:]]
        rows.add(limit[name].values[1:], last[1:], abs(last - before).max(), labels)
    order = f"order of the largest error over t ≤ T, layers {', '.join(NAMES)}"
    first = f"error/h for h → 0 at {FRAMES} times t ≤ T, against |E₁(t)| of the variational equation"
    reason = "largest change of the extrapolated value at the last halving, three times what is left of O(h²)"
    return [
        _order(order, 1.0, part["error"].max("time", skipna=False).values, NAMES, DEEP),
        rows.equal(first, reason, origin=FIRST),
    ]


def _random(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    count, mean, error = fluctuation(data["random"])
    step, variance = parameters.until / count, float(data["limit"]["variance"])
    (slope, _), (spread, _) = fit([np.log(step), np.ones(len(step))], np.log(mean) / 2, error / mean / 2)
    allowed = student(LEVEL, parameters.networks)
    off, reason = allowed * float(spread), f"Student's test of {parameters.networks} networks, level {LEVEL:g}"
    power = "independent layers: order of the root mean square of x_L - x(T)"
    square = f"independent layers, L = {count[-1]}: mean square over h, against the linear noise equation"
    found, room = mean[-1] / step[-1], allowed * error[-1] / step[-1]
    return [
        Claim.equal(power, 0.5, float(slope), off, f"{reason}; as many for each L", origin=INDEPENDENT, level=LEVEL),
        Claim.equal(square, variance, found, room, reason, origin=INDEPENDENT, level=LEVEL),
    ]


def _steps(part: xr.Dataset) -> Claim:
    says = "order of RK4 at T, attention (back to the sphere after every step) and network"
    return _order(says, 4.0, part["error"].values, ("attention", "network"), NUMERICS)

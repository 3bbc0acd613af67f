"""Orders from halvings, first terms from the variational equation, fluctuations from the linear noise equation."""

import numpy as np
import xarray as xr

from attnflow.experiments import NUMERICS, Claim, consequence, published
from attnflow.experiments.kit import left_of_order, orders
from attnflow_gallery.euler_limit.simulate import FRAMES, NAMES, Parameters

ERRORS = 4.0
"""Standard errors that a random number may be off."""


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
    largest = data["layers"]["error"].max("time").values
    slopes, runge = orders(largest), orders(data["steps"]["error"].values)
    better, first = first_terms(parameters, data["layers"]), np.array([data["limit"][name].values for name in NAMES])
    count, mean, error = fluctuation(data["random"])
    step, variance = parameters.until / count, float(data["limit"]["variance"])
    slope, matrix = np.polyfit(np.log(step), np.log(mean) / 2, 1, w=2 * mean / error, cov="unscaled")
    halving = "3 times the last change of the order by a halving, or half the change before if that is larger"
    return [
        Claim.equal(
            f"order of the largest error over t ≤ T, layers {', '.join(NAMES)}", 1.0, slopes[:, -1],
            left_of_order(slopes), halving, origin=published("chen2018neural"), labels=NAMES,
        ),
        Claim.equal(
            f"error/h for h → 0 at {FRAMES} times t ≤ T, against |E₁(t)| of the variational equation", first[:, 1:],
            better[:, -1, 1:], abs(better[:, -1] - better[:, -2]).max(axis=1)[:, None],
            "largest change of the extrapolated value at the last halving, three times what is left of O(h²)",
            origin=consequence("The first term of the error"),
            labels=lambda at: f"{NAMES[at[0]]}, t = {data['limit']['time'].values[at[1] + 1]:.3g}",
        ),
        Claim.equal(
            "independent layers: order of the root mean square of x_L - x(T)", 0.5, slope[0],
            ERRORS * float(np.sqrt(matrix[0, 0])),
            f"{ERRORS:g} standard errors, {parameters.networks} networks for each L",
            origin=consequence("Independent layers"),
        ),
        Claim.equal(
            f"independent layers, L = {count[-1]}: mean square over h, against the linear noise equation", variance,
            mean[-1] / step[-1], ERRORS * error[-1] / step[-1],
            f"{ERRORS:g} standard errors, {parameters.networks} networks", origin=consequence("Independent layers"),
        ),
        Claim.equal(
            "order of RK4 at T, attention (back to the sphere after every step) and network", 4.0, runge[:, -1],
            left_of_order(runge), halving, origin=NUMERICS, labels=("attention", "network"),
        ),
    ]  # fmt: skip

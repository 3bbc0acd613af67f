"""Divergences and mean squares against closed forms; skew parts of Jacobians."""

import itertools

import numpy as np
import xarray as xr
from scipy.integrate import quad
from scipy.stats import norm

from attnflow.experiments import Claim, consequence
from attnflow.experiments.kit import EPS, LEVEL, Rows, student
from attnflow_gallery.conditional_sampling.simulate import SHIFT, STEP, Parameters

SHEARED = consequence("A density and a shear")
SCALE = consequence("A conditional scale")
COMPOSED = consequence("A random composition")
LAYER = consequence("Units side by side")


def ramp_divergence(cells: int) -> float:
    """KL of the density 2x from the best piecewise constant density of `cells` cells, which is q_k + q_(k+1) in a cell.

    The integral of 2x log(2x/s) is x^2 (log(2x/s) - 1/2).
    """
    q = (np.arange(cells + 1) / cells) ** 1.5
    s = q[1:] + q[:-1]
    above = q[1:] ** 2 * (np.log(2 * q[1:] / s) - 0.5)
    below = np.append(0.0, q[1:-1] ** 2 * (np.log(2 * q[1:-1] / s[1:]) - 0.5))
    return float(np.sum(above - below))


def sheared_divergence(along: int, across: int) -> float:
    """KL of the sheared target."""
    return ramp_divergence(along) + SHIFT**2 / (60 * across**4)


def scale_divergence(c: float, slabs: int, d: int) -> float:
    """KL of the conditional scale with d - 1 given coordinates."""
    h = 2 * c / slabs
    return float((d - 1) * np.log(np.sinh(h) / h) / 2)


def straight(cells: int) -> float:
    """Standard deviations up to which the map of a slab is straight: its nodes and as much again, less a fiftieth."""
    return float(1.98 * norm.isf(1e-4 / cells**2))


def widest(c: float, slabs: int, d: int) -> float:
    """The largest ratio of the deviation of y given x to that of its cell."""
    h = 2 * c / slabs
    return float((np.exp(h) * h / np.sinh(h)) ** ((d - 1) / 2))


def composed_square(c: float, count: int, d: int) -> float:
    """E|x_K - e^(c/2d) x_0|^2 of a unit vector x_0 under `count` random units."""
    step = np.expm1(c / count)
    grown = (1 + step / d + step**2 / (2 * d)) ** count
    return float(grown - 2 * np.exp(c / (2 * d)) * (1 + step / (2 * d)) ** count + np.exp(c / d))


def layer_square(bias: float) -> float:
    """m E|F_m - F|^2 in the plane, at normal points."""

    def push(r: float) -> float:
        t = np.arccos(min(bias / r, 1.0))
        return float((r * t - bias * np.sin(t)) / (2 * np.pi))

    mean = quad(lambda r: push(r) ** 2 * r * np.exp(-(r**2) / 2), max(bias, 1e-300), np.inf, epsabs=1e-13)[0]
    return float((1 + bias**2) * norm.sf(bias) - bias * norm.pdf(bias) - mean)


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Divergences, then random units, then units in turn."""
    return [
        _sheared(parameters, data["sheared"]),
        _scales(parameters, data),
        _composed(parameters, data),
        _layers(parameters, data["layers"]),
        *_skew(parameters, data["skew"]),
    ]


def _sheared(parameters: Parameters, part: xr.Dataset) -> Claim:
    rows = Rows()
    for k, (along, across) in enumerate(parameters.shears):
        words = f"{along} + {across} cells, {part['units'].values[k]:.0f} units"
        # Gauss's rule on smooth pieces; logs of round trips through up to 50 units with slopes below 100
        rows.add(sheared_divergence(along, across), part["divergence"].values[k], 1e-9, words)
    return rows.equal(
        "d = 2, x of density 2x, y given x normal around 3x²: KL(target | reached), K_1 cells and K_2 of the shear",
        "quadrature and round trips: 1e-9",
        origin=SHEARED,
    )


def _scales(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows = Rows()
    for d, slabs in parameters.slabs:
        for k, j in enumerate(slabs):
            part = data[f"scales-{d}"]
            words = f"d = {d}, {j} slabs on an axis, {part['units'].values[k]:.0f} units"
            tails = 100 * 2 * norm.sf(straight(parameters.cells) / widest(parameters.scale, j, d)) + 1e-9
            rows.add(scale_divergence(parameters.scale, j, d), part["divergence"].values[k], tails, words)
    return rows.equal(
        "y given x normal with the scale e^(x_1 + ... + x_(d-1)), J slabs: KL(target | reached)",
        "beyond the straight part of the maps: 100 times the mass there of the widest density of a cell",
        origin=SCALE,
    )


def _composed(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows, allowed = Rows(), student(LEVEL, parameters.draws, len(parameters.dims) * len(parameters.counts))
    for d in parameters.dims:
        part = data[f"composed-{d}"]
        for k, count in enumerate(parameters.counts):
            mean, error = float(part["mean"][k]), float(part["error"][k])
            expected = composed_square(parameters.growth, count, d)
            rows.add(expected, mean, allowed * error, f"d = {d}, K = {count}")
    return rows.equal(
        "K units drawn at random, one after the other: mean square error of the map",
        f"Student's test over draws, level {LEVEL:g}",
        origin=COMPOSED,
        level=LEVEL,
    )


def _layers(parameters: Parameters, part: xr.Dataset) -> Claim:
    rows, allowed = Rows(), student(LEVEL, parameters.draws, len(parameters.biases))
    for k, bias in enumerate(parameters.biases):
        rows.add(layer_square(bias), part["mean"].values[k], allowed * part["error"].values[k], f"b = {bias:g}")
    return rows.equal(
        f"d = 2, {parameters.width} random units side by side: m E|F_m − F|²",
        f"Student's test over draws, level {LEVEL:g}",
        origin=LAYER,
        level=LEVEL,
    )


def _skew(parameters: Parameters, part: xr.Dataset) -> list[Claim]:
    flat, rise, m = Rows(), Rows(), parameters.sweeps
    # rounding of the map, at most 20 in size, over the step of the differences
    flat.add(0.0, part["layer"].values, 100 * EPS / STEP, [f"m = {one}" for one in m])
    sweep = part["sweep"].values
    rise.add(0.0, np.diff(sweep), 0.0, [f"from m = {one} to {other}" for one, other in itertools.pairwise(m)])
    return [
        flat.equal("units side by side: skew part of the Jacobian", "rounding of the differences", origin=LAYER),
        rise.at_least(
            "the same units one after the other: the skew part does not fall as units are added, its change",
            "deterministic; quadrature is the same for all m",
            origin=LAYER,
            detail=", ".join(f"{one:.4f}" for one in sweep),
        ),
    ]

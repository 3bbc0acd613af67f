"""KL K^2 against integrals, local orders in K, and powers of shells."""

import numpy as np
import xarray as xr
from scipy.stats import norm

from attnflow.experiments import Claim, consequence
from attnflow.experiments.kit import Rows, left_of_order, orders
from attnflow_gallery.relative_entropy.simulate import CENTRES, SPAN, WEIGHTS, WIDTHS, Parameters

CONSTANT = consequence("The sharp constant")
MASSES = consequence("Cells of equal mass")
TAILS = consequence("Tails")


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Constants, orders, equal masses, and the dichotomy."""
    return [*_constants(parameters, data["meshes"]), *_tails(parameters, data["tails"])]


def constants() -> dict[str, float]:
    """lim KL K^2 in the span for equal and for the best cells, by the trapezoidal rule on a fine grid."""
    x = np.linspace(*SPAN, 400_001)
    weights, centres, widths = (np.array(values)[:, None] for values in (WEIGHTS, CENTRES, WIDTHS))
    parts = weights * norm.pdf(x, centres, widths)
    density = parts.sum(axis=0)
    slope = np.sum(-(x - centres) / widths**2 * parts, axis=0) / density
    below, above = (np.sum(weights * side(x, centres, widths), axis=0) for side in (norm.cdf, norm.sf))
    source = np.where(below < 0.5, norm.ppf(below), norm.isf(above))
    bend = slope + source * density / norm.pdf(source)  # (log S')', for a normal base
    uniform = (SPAN[1] - SPAN[0]) ** 2 * np.trapezoid(density * bend**2, x) / 24
    return {"uniform": float(uniform), "optimal": float(np.trapezoid((density * bend**2) ** (1 / 3), x) ** 3 / 24)}


def _constants(parameters: Parameters, part: xr.Dataset) -> list[Claim]:
    cells, limit, order, mass = part["cells"].values, Rows(), Rows(), Rows()
    most = int(cells[-1])
    for mesh, constant in constants().items():
        for way in ("forward", "backward"):
            rows = part[f"{way}_inside"].sel(mesh=mesh).values[-3:]
            scaled, local = rows * cells[-3:] ** 2.0, orders(rows)
            limit.add(constant, scaled[-1], left_of_order(scaled[-2:]), f"{mesh}, {way}")
            order.add(2.0, local[-1], left_of_order(local), f"{mesh}, {way}")
    for mesh in part["mesh"].values:
        mass.add(1.0, part["mass"].sel(mesh=mesh).values, 1e-12, [f"{mesh}, K = {count}" for count in cells])
    equal = orders(part["forward_inside"].sel(mesh="quantile").values[-2:])
    last = "K = {}, {} and {}: three times the last change, which bounds terms of order 1/K and beyond".format(
        *cells[-3:]
    )
    return [
        limit.equal(f"K = {most}: KL K^2 in the span over the constant of the span", last, origin=CONSTANT),
        order.equal("local order of KL in K, in the span", last, origin=CONSTANT),
        Claim.at_most(
            f"K = {most}, cells of equal mass: local order of KL in K",
            1.5,
            float(equal[-1]),
            0.0,
            "nearer to 1, where the cells at the ends of the span dominate, than to 2, where all cells are fine",
            origin=MASSES,
        ),
        mass.equal(
            "total mass of the reached density",
            "Gauss's rule with 20 points in cells up to 3 wide (K = 4)",
            origin=CONSTANT,
        ),
    ]


def powers(parameters: Parameters, part: xr.Dataset) -> np.ndarray:
    """The power of R with which the parts of shells grow, from the last ones."""
    last = part.isel(shell=slice(-parameters.fitted, None))
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log10(last["part"].values)
    return np.polyfit(last["shell"].values, logs.T, 1)[0]


def _tails(parameters: Parameters, part: xr.Dataset) -> list[Claim]:
    rows, nu = Rows(), part["degrees"].values
    rows.add(2 - nu, powers(parameters, part), 1e-3, [f"nu = {one:g}" for one in nu])
    words = "parts of KL on shells of Student targets go like R^(2 - nu)"
    scale = "shells from 10^9 on; the scale of the map in the tails is below 10^6, corrections are its square over R^2"
    return [rows.equal(words, scale, origin=TAILS)]
